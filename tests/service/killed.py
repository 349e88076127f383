"""Services that are killed: python -m tests.service.killed COUNT [--postgresql] [--servers N].

Clients keep services busy, with asks, rewards and amendments, and note every request before it is
sent and after it is answered.  Services are killed (SIGKILL) at random moments, or PostgreSQL is
(``--database-kills``).  Then the log must hold everything that was acknowledged, each thing once;
what was under way is sent again, under the same key, and must get the answer that is in the log;
and the state must be that of the whole log done again, bit for bit.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import json
import logging
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sightline.service import events
from sightline.service.events import Entry
from sightline.service.experiment import Lifecycle, ServiceSession
from sightline.service.loading import create_session, load_session, warm_up
from sightline.service.schemas import Specification
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.sessions import live
from sightline.sessions.journal import amendment_in
from tests.service.databases import Server, new_database
from tests.service.forked import SPECIFICATION, Book, begin_service, clients, end, fork
from tests.stress.actor import bits

__all__ = ["survive"]

LONGEST = 0.25  # seconds that a service lives after its first answer
SNAPSHOT_EVERY = 150


class Witness:
    """One experiment, all that was acknowledged of it, and all that its log says."""

    def __init__(self, url: str, experiment: str) -> None:
        self._url, self.experiment = url, experiment
        self._twin: ServiceSession | None = None
        self._last = 0
        self._asked: dict[str, Entry] = {}
        self._keys: dict[str, Entry] = {}
        self._ends: dict[str, Entry] = {}
        self._amended: dict[str, set[Any]] = collections.defaultdict(set)
        self.acknowledged = 0

    def look(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Compare the log with what was answered; return what is to be sent again."""
        with Store(self._url, serving=False) as store, store.reading() as connection:
            self._read(events.entries_after(connection, self.experiment, self._last))
            loaded = load_session(connection, self.experiment)
            if self._twin is None and loaded is not None:
                first = events.read_snapshot(connection, self.experiment, first=True)
                assert first is not None
                self._twin = ServiceSession.from_snapshot(
                    first.content, Lifecycle.from_json(first.lifecycle)
                )
                self._twin.replay(events.entries_after(connection, self.experiment, first.sequence))
        if loaded is not None:
            assert self._twin is not None
            known, found = bits(self._twin.live), bits(loaded[0].live)
            different = [name for name, value in known.items() if found[name] != value]
            assert not different, f"the log done again differs in {different}"
            assert loaded[0].lifecycle == self._twin.lifecycle
        return self._judge(lines)

    def _read(self, entries: list[Entry]) -> None:
        for entry in entries:
            event = entry.event
            self._last += 1
            assert event.sequence == self._last, f"entry {event.sequence} after {self._last - 1}"
            if event.kind == "asked":
                assert event.round == len(self._asked) + 1, f"drawn twice: {event}"
                assert event.decision not in self._asked, f"the same id: {event}"
                self._asked[event.decision or ""] = entry
            elif event.kind in ("told", "expired", "given up"):
                assert event.decision not in self._ends, f"closed twice: {event}"
                self._ends[event.decision or ""] = entry
            elif event.kind == "amended":
                self._amended[event.decision or ""].add(amendment_in(event).now)
            if entry.key is not None:
                assert entry.key not in self._keys, f"the same key twice: {entry}"
                self._keys[entry.key] = entry
        if self._twin is not None:
            self._twin.replay(entries)

    def _judge(self, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        waiting: dict[str, dict[str, Any]] = {}
        for line in lines:
            if "failed" in line:
                raise AssertionError(line["failed"])
            name = line.get("key") or line["decision"]
            if "doing" in line:
                waiting[name] = line
                continue
            waiting.pop(name, None)
            self.acknowledged += 1
            if line["done"] == "ask":
                self._check_asked(line)
            elif line["done"] == "amend":
                self._check_amended(line)
            elif line["done"] == "tell":
                end = self._ends.get(line["decision"])
                assert end is not None, f"an acknowledged reward is lost: {line}"
                assert end.event.kind == "told"
                known = {end.event.reward, *self._amended[line["decision"]]}
                assert line["reward"] in known, f"another reward: {line}, {end}"
            else:
                assert self._ends[line["decision"]].event.kind == "expired", line
        return list(waiting.values())

    def _check_asked(self, line: dict[str, Any]) -> None:
        first = self._keys.get(line["key"])
        assert first is not None, f"an acknowledged decision is lost: {line}"
        assert first.event.decision == line["decisions"][0]["id"], f"drawn again: {line}"
        for made in line["decisions"]:
            event = self._asked[made["id"]].event
            said = (made["arm"], made["probability"], made["round"], made["exploring"])
            assert said == (event.arm, event.probability, event.round, event.exploring)

    def _check_amended(self, line: dict[str, Any]) -> None:
        first = self._keys.get(line["key"])
        assert first is not None, f"an acknowledged amendment is lost: {line}"
        assert first.event.decision == line["decision"], f"of another decision: {line}, {first}"
        assert amendment_in(first.event).now == line["reward"], f"another reward: {line}, {first}"


def _kill_services(
    url: str, witness: Witness, again: list[dict[str, Any]], servers: int, rng: random.Random
) -> list[dict[str, Any]]:
    """Let services and clients live for a moment; return what the clients have noted."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "book")
        book = Book(path)
        begun = [begin_service(url) for _ in range(servers)]
        ports = [port for _, port in begun]
        seed = rng.random()
        work = fork(lambda: clients(book, ports, witness.experiment, again, seed))
        if rng.random() < 0.95:  # else it may be killed before it has begun
            _wait_for_answer(path)
        time.sleep(rng.uniform(0.0, LONGEST))
        for process, _ in begun:
            end(process)
        _wait(work)
        return [json.loads(line) for line in Path(path).read_text().splitlines()]


def _wait_for_answer(path: str) -> None:
    deadline = time.monotonic() + 20
    while b'"done"' not in Path(path).read_bytes() and time.monotonic() < deadline:
        time.sleep(0.005)


def _wait(process: int) -> None:
    """Wait for clients, which end when no service responds."""
    deadline = time.monotonic() + 30
    while os.waitpid(process, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            end(process)
            raise AssertionError("clients never end")
        time.sleep(0.002)


def survive(count: int, url: str, servers: int, seed: int) -> dict[str, Any]:
    """Kill services so many times."""
    rng = random.Random(seed)
    live.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    wanted = Specification.model_validate(SPECIFICATION)
    warm_up(
        create_session(wanted, Settings()).snapshot(), wanted
    )  # no service lives long enough for that
    witnesses: list[Witness] = []
    again: list[dict[str, Any]] = []
    repeated = 0
    for i in range(count):
        if not witnesses or rng.random() < 0.05:
            witnesses.append(Witness(url, f"experiment-{i}"))
            again = []
        lines = _kill_services(url, witnesses[-1], again, servers, rng)
        again = witnesses[-1].look(lines)
        repeated += len(again)
    return _found(witnesses, {"kills": count * servers, "sent again": repeated})


def _kill_database(
    server: Server, witness: Witness, port: int, again: list[dict[str, Any]], rng: random.Random
) -> list[dict[str, Any]]:
    """Let clients work for a moment, kill PostgreSQL, start it, and check."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "book")
        book, seed = Book(path), rng.random()
        work = fork(lambda: clients(book, [port], witness.experiment, again, seed))
        _wait_for_answer(path)
        time.sleep(rng.uniform(0.0, LONGEST))
        server.kill()
        time.sleep(rng.uniform(0.0, 0.02))  # in which nothing can be acknowledged
        server.start()
        time.sleep(rng.uniform(0.0, LONGEST))
        end(work)
        return witness.look([json.loads(line) for line in Path(path).read_text().splitlines()])


def survive_database(
    count: int, server: Server, url: str, seed: int, progress: str | None = None
) -> dict[str, Any]:
    """Kill PostgreSQL so many times, under one service that goes on."""
    rng = random.Random(seed)
    live.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    wanted = Specification.model_validate(SPECIFICATION)
    warm_up(
        create_session(wanted, Settings()).snapshot(), wanted
    )  # no service lives long enough for that
    witnesses: list[Witness] = []
    again: list[dict[str, Any]] = []
    repeated = 0
    process, port = begin_service(url)
    try:
        for i in range(count):
            if not witnesses or rng.random() < 0.05:
                witnesses.append(Witness(url, f"experiment-{i}"))
                again = []
            again = _kill_database(server, witnesses[-1], port, again, rng)
            repeated += len(again)
            if progress is not None and (i + 1) % 10 == 0:
                done = _found(witnesses, {"kills of PostgreSQL": i + 1, "sent again": repeated})
                Path(progress).write_text(json.dumps(done))
    finally:
        end(process)
    return _found(witnesses, {"kills of PostgreSQL": count, "sent again": repeated})


def _found(witnesses: list[Witness], counts: dict[str, int]) -> dict[str, Any]:
    return {
        **counts,
        "experiments": len(witnesses),
        "acknowledged": sum(one.acknowledged for one in witnesses),
        "amended": sum(len(now) for one in witnesses for now in one._amended.values()),
        "events": sum(one._last for one in witnesses),
        "endings": dict(
            collections.Counter(end.event.kind for one in witnesses for end in one._ends.values())
        ),
    }


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    logging.disable(logging.WARNING)  # of services that lose their database
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--servers", type=int, default=1)
    parser.add_argument("--database-kills", action="store_true")
    parser.add_argument("--progress", help="file in which is said how far it has come")
    parser.add_argument("--folder", help="empty or new, for the data of PostgreSQL")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        if given.postgresql:
            server = Server(given.folder)
            url = stack.enter_context(new_database(server))
        else:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            url = f"sqlite:///{folder}/experiments.db"
        with Store(url, serving=False):
            pass  # tables are made before anybody is killed
        if given.database_kills:
            found = survive_database(given.count, server, url, given.seed, given.progress)
        else:
            found = survive(given.count, url, given.servers, given.seed)
        print(json.dumps(found))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
