"""The first calls of a session under signals: python -m tests.stress.interrupted_compilation COUNT.

Kernels are compiled then, or read from the cache (``--cached``).  Every process of COUNT is
interrupted several times before the calls have returned; then its decisions must be right, and
another thread must be able to compile.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import json
import os
import sys
import tempfile
import threading
import traceback
from typing import Any

import sightline as sl
from tests.stress.actor import POLICIES, PROBLEM, begin
from tests.stress.sender import Interrupted, Interruptions

STUCK_AFTER = 120.0
AT_MOST = 12  # interruptions of one process


def _decisions() -> list[tuple[int, float]]:
    """Return the decisions of a session that is told the same rewards always."""
    session = begin(POLICIES["LinUCB"])
    decisions = []
    for _ in range(30):
        decision = session.ask()
        session.tell(decision, 0.1 * decision.arm)
        decisions.append((decision.arm, session.status().evidence))
    return decisions


def _interrupted(seed: int, longest: float, report: int) -> None:
    """Call a session until it answers, and write to a pipe what has happened."""
    interruptions = Interruptions(seed, longest, shortest=longest / 1000)
    faulthandler.dump_traceback_later(STUCK_AFTER, exit=True)
    session = begin(POLICIES["LinUCB"])
    for call in (session.ask, lambda: session.tell(session.pending()[0].id, 0.1), session.status):
        while interruptions.raised < AT_MOST:
            interruptions.request()
            with contextlib.suppress(*Interrupted):
                call()
                break
    interruptions.cancel()
    decisions = _decisions()
    others: list[sl.types.Trajectory] = []
    run = threading.Thread(
        target=lambda: others.append(sl.simulate(PROBLEM, POLICIES["LinUCB"], 10, seed=1))
    )
    run.start()
    run.join()
    found = {
        "raised": interruptions.raised,
        "sent": interruptions.sent,
        "decisions": decisions,
        "thread": len(others),
    }
    os.write(report, json.dumps(found).encode())


def survive(count: int, seed: int, cached: bool) -> dict[str, Any]:
    """Interrupt the first calls of so many processes."""
    found = collections.Counter[str]()
    known = None
    for i in range(count):
        reading, writing = os.pipe()
        child = os.fork()  # no kernel is compiled in here
        if child == 0:
            code = 1
            try:
                with tempfile.TemporaryDirectory() as folder:
                    if not cached:
                        os.environ["NUMBA_CACHE_DIR"] = folder
                    _interrupted(seed + i, 0.3 if cached else 3.0, writing)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        os.close(writing)
        with os.fdopen(reading) as file:
            text = file.read()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        found[f"ended with {code}"] += 1
        if not text:
            continue
        one = json.loads(text)
        known = known or one["decisions"]
        found["other decisions"] += one["decisions"] != known
        found["no thread could compile"] += not one["thread"]
        found["raised"] += one["raised"]
        found["sent"] += one["sent"]
    return dict(found)


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cached", action="store_true")
    given = parser.parse_args()
    print(json.dumps(survive(given.count, given.seed, given.cached)))


if __name__ == "__main__":
    main()
