"""A journal whose process is killed: python -m tests.stress.killed COUNT.

Workers are forked by a process that has compiled everything, do all that can be done to a session,
and report every call before it is made and after it has returned.  They are killed (SIGKILL) at
random moments.  Then the journal must hold every call that has returned, and all or nothing of the
one that has not; opening it, a copy of it, and replaying it from its beginning must lead to the
same bits; and the lock must be free.  The next worker goes on with the same file.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import random
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sightline as sl
from sightline.sessions import state
from sightline.sessions.journal import replay
from tests.stress.actor import POLICIES, Actor, begin, bits, own, where
from tests.stress.books import Deed, Record, judge, left_over

__all__ = ["survive"]

LONGEST = 0.04  # seconds that a worker lives
SNAPSHOT_EVERY = 60


class Reporter(Actor):
    """An actor that reports to a pipe."""

    def __init__(self, session: sl.Session, rng: random.Random, folder: Path, pipe: int) -> None:
        super().__init__(session, rng, folder)
        self._pipe = pipe

    def report(self, **line: Any) -> None:
        """Write a line."""
        os.write(self._pipe, json.dumps(line).encode() + b"\n")

    def _do(self, deed: Deed, call: Callable[[], Any]) -> Any:
        self.report(doing=deed)
        return super()._do(deed, call)

    def act(self) -> None:
        """Do something, and report that it is done."""
        super().act()
        self.report(done=self.acknowledged)
        self.acknowledged = []


class Victim:
    """One journal, and everything it has acknowledged."""

    def __init__(self, path: Path, name: str, rng: random.Random) -> None:
        self.path, self.policy, self._rng = path, POLICIES[name], rng
        self._twin = begin(self.policy)
        self._twin._live.states_probabilities = True  # as sessions with a journal
        self._seen = 0
        self._ids: dict[int, str] = {}
        self.acknowledged = self.unfinished = 0
        self._again: list[tuple[str, float]] = []  # told before the kill; perhaps in vain
        self._again_known = False

    def work(self, pipe: int) -> None:
        """Use the session until the process is killed."""
        session = begin(self.policy, self.path)
        reporter = Reporter(session, random.Random(self._rng.random()), self.path.parent, pipe)
        if self._again:
            session.tell_many(self._again)
            told = [] if self._again_known else [("received", *pair) for pair in self._again]
            reporter.report(done=told)
        reporter.refresh()
        while True:
            reporter.act()

    def look(self, lines: list[dict[str, Any]]) -> str:
        """Open the journal after a kill, and compare."""
        doing, acknowledged = _read(lines)
        retrying = not lines and bool(self._again)  # or opening before that
        if retrying and not self._again_known:
            doing = Deed("tell", dict(self._again))
        copy = self._copied() if self._rng.random() < 0.2 else None
        session = begin(self.policy, self.path)
        events = session.events(after=self._seen)
        self._seen += len(events)
        self.acknowledged += len(acknowledged)
        left = left_over(events, acknowledged)
        found = judge(doing, left)
        self.unfinished += found.endswith("after")
        for event in events:
            if event.kind == "asked":
                if event.round != len(self._ids) + 1 or event.decision in self._ids.values():
                    raise AssertionError(f"drawn twice: {event}")
                self._ids[event.round or 0] = event.decision or ""
        replay(self._twin._live, events)
        known = bits(session._live)
        _require("replayed from the beginning", bits(self._twin._live), known)
        if copy is not None:
            _require("opened as a copy", self._opened(copy), known)
        self._leave(session)
        _require("opened again", self._opened(self.path), known)
        saved = self.path.parent / "state"
        if saved.exists():
            sl.Session.load(saved, own(self.policy))  # refuses one that is not whole
        if retrying:
            self._again_known = self._again_known or found.endswith("after")
        elif doing is None or doing.kind != "tell":
            self._again = []
        else:
            self._again = [(self._ids[int(t)], reward) for t, reward in doing.argument.items()]
            self._again_known = found.endswith("after")
        return found

    def _copied(self) -> Path:
        copy = self.path.with_suffix(".copy")
        for end in ("", "-wal"):
            Path(f"{copy}{end}").unlink(missing_ok=True)
            if Path(f"{self.path}{end}").exists():
                shutil.copy(f"{self.path}{end}", f"{copy}{end}")
        return copy

    def _opened(self, path: Path) -> dict[str, Any]:
        session = begin(self.policy, path)
        found = bits(session._live)
        self._leave(session)
        return found

    def _leave(self, session: sl.Session) -> None:
        """Close it, or leave as a killed process does: without a snapshot."""
        if self._rng.random() < 0.5:
            session.close()
        elif session._live.journal is not None:
            session._live.journal.close()


def _read(lines: list[dict[str, Any]]) -> tuple[Deed | None, list[Record]]:
    """What a worker was doing when it was killed, and what it had acknowledged."""
    doing, acknowledged = None, []
    for line in lines:
        doing = Deed(*line["doing"]) if "doing" in line else None
        acknowledged += [tuple(one) for one in line.get("done", ())]
    return doing, acknowledged


def _require(how: str, found: dict[str, Any], known: dict[str, Any]) -> None:
    different = [name for name, value in known.items() if found[name] != value]
    if different:
        raise AssertionError(f"{how}, the session differs in {different}")


def _killed(victim: Victim, rng: random.Random) -> tuple[list[dict[str, Any]], int]:
    """Let a worker live for a moment, and read what it has reported and how it ended."""
    reading, writing = os.pipe()
    worker = os.fork()
    if worker == 0:
        try:
            os.close(reading)
            victim.work(writing)
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
        finally:
            os._exit(1)
    os.close(writing)
    if rng.random() < 0.9:  # else it is killed while it opens the journal, mostly
        select.select([reading], [], [], 10.0)
    time.sleep(rng.uniform(0.0, LONGEST))
    os.kill(worker, signal.SIGKILL)
    with os.fdopen(reading) as file:
        lines = [json.loads(line) for line in file]
    return lines, os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])


def survive(count: int, seed: int, folder: Path, names: tuple[str, ...]) -> dict[str, Any]:
    """Kill so many workers."""
    rng = random.Random(seed)
    state.SNAPSHOT_EVERY = SNAPSHOT_EVERY
    for name in names:  # workers find all kernels
        session = begin(POLICIES[name])
        session._live.states_probabilities = True  # as sessions with a journal
        session.tell(session.ask(**where(session)), 0.5)
        session.status()
    found = collections.Counter[str]()
    victims: list[Victim] = []
    for i in range(count):
        if not victims or rng.random() < 0.05:
            path = folder / f"{i}" / "journal.db"
            path.parent.mkdir()
            victims.append(Victim(path, names[len(victims) % len(names)], rng))
        victim = victims[-1]
        lines, code = _killed(victim, rng)
        if code != -signal.SIGKILL:
            raise AssertionError(f"a worker ended with {code}")
        found["killed while opening"] += not lines
        found[victim.look(lines)] += 1
    return {
        "kills": count,
        "journals": len(victims),
        "acknowledged": sum(victim.acknowledged for victim in victims),
        "events": sum(victim._seen for victim in victims),
        "done but not acknowledged": sum(victim.unfinished for victim in victims),
        "found": dict(found),
    }


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--policy", choices=POLICIES, action="append")
    given = parser.parse_args()
    names = tuple(given.policy or POLICIES)
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(survive(given.count, given.seed, Path(folder), names)))


if __name__ == "__main__":
    main()
