"""Opening and closing a journal under signals: python -m tests.stress.interrupted_opening COUNT.

After every interruption the journal must open at once in the same process, with all that was
acknowledged; also while the exception is still being handled, whose traceback keeps objects alive.
And the process that has opened it must hold the lock: another process tries.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import os
import random
import tempfile
from pathlib import Path
from typing import Any

import sightline as sl
from tests.stress.actor import POLICIES, begin
from tests.stress.sender import Interrupted, Interruptions

STUCK_AFTER = 60.0


class Opener:
    """Opens a journal, asks a few questions, and closes it again."""

    def __init__(self, path: Path, rng: random.Random) -> None:
        self._path, self._rng = path, rng
        self._sessions: list[sl.Session] = []
        self.acknowledged: list[str] = []

    def work(self) -> None:
        """Open, ask, tell, close."""
        session = begin(POLICIES["LinUCB"], self._path)
        self._sessions.append(session)
        for _ in range(self._rng.randrange(4)):
            decision = session.ask()
            self.acknowledged.append(decision.id)
            session.tell(decision, 0.5)
        session.close()
        self._sessions.clear()

    def look(self) -> str:
        """Open it as if nothing had happened, and compare."""
        where = "open" if self._sessions else "opening"
        for session in self._sessions:  # the interruption came after it was open
            session.close()
        self._sessions.clear()
        with begin(POLICIES["LinUCB"], self._path) as session:
            asked = [event.decision for event in session.events() if event.kind == "asked"]
            if lost := set(self.acknowledged) - set(asked):
                raise AssertionError(f"acknowledged, but not in the journal: {lost}")
            if len(set(asked)) != len(asked):
                raise AssertionError("a decision was made twice")
            if not _held_against_others(self._path):
                raise AssertionError("the journal is open here, and another process opens it too")
        return where


def _held_against_others(path: Path) -> bool:
    """Whether another process is refused."""
    child = os.fork()
    if child == 0:
        code = 0
        try:
            sl.Session.open(path)
        except BlockingIOError:
            code = 7
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def survive(count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Interrupt the opening and closing of a journal so many times."""
    rng = random.Random(seed)
    opener = Opener(folder / "journal.db", rng)
    opener.work()
    interruptions = Interruptions(seed, longest=0.05)
    found = collections.Counter[str]()
    while interruptions.raised < count:
        faulthandler.dump_traceback_later(STUCK_AFTER, exit=True)
        interruptions.request()
        handled = False
        try:
            while interruptions.coming():
                opener.work()
            found["swallowed"] += 1
        except Interrupted:
            if rng.random() < 0.5:
                handled = True
                found[opener.look()] += 1
        if not handled:
            found[opener.look()] += 1
    faulthandler.cancel_dump_traceback_later()
    return {"sent": interruptions.sent, "raised": interruptions.raised, "found": dict(found)}


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(survive(given.count, given.seed, Path(folder))))


if __name__ == "__main__":
    main()
