"""Runs under signals: python -m tests.stress.interrupted_runs {simulate,threads,processes} COUNT.

Whatever the handlers raise must come out of ``simulate`` and ``run``, soon, with no worker left at
work; the next run must be right, and a store must be complete when the experiment is run again.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import json
import multiprocessing
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import sightline as sl
from tests.own_policies import EpsilonGreedy
from tests.stress.actor import POLICIES, PROBLEM
from tests.stress.sender import Interrupted, Interruptions

STUCK_AFTER = 120.0
COMPILED = ("IDS", "LinUCB", "ThompsonSampling")


class Simulations:
    """``simulate`` to a million rounds; then a short run, whose numbers are known."""

    LONGEST = 0.3

    def __init__(self, rng: random.Random, folder: Path) -> None:
        self._rng = rng
        self._known = {name: self._short(name) for name in COMPILED}

    def _short(self, name: str) -> tuple[bytes, bytes]:
        run = sl.simulate(PROBLEM, POLICIES[name], 300, seed=5)
        return run.regret.tobytes(), run.pulls.tobytes()

    def work(self) -> None:
        """Simulate."""
        sl.simulate(PROBLEM, POLICIES[self._rng.choice(COMPILED)], 10**6, seed=5)

    def look(self) -> str:
        """Simulate again, and compare."""
        for name, known in self._known.items():
            if self._short(name) != known:
                raise AssertionError(f"{name} has other numbers after an interruption")
        return "as before"


class Experiments:
    """``run`` with a store; then again until it is complete."""

    def __init__(self, rng: random.Random, folder: Path, experiment: sl.Experiment) -> None:
        self._rng, self._folder, self._experiment = rng, folder, experiment
        self._known = self._numbers(sl.run(experiment))
        self._stores = 0

    @staticmethod
    def _numbers(results: sl.types.Results) -> dict[str, Any]:
        frame = results.frame.drop(columns=["seconds"], errors="ignore")
        return {name: column.tolist() for name, column in frame.items()}

    @property
    def _store(self) -> Path:
        return self._folder / str(self._stores)

    def work(self) -> None:
        """Run, or go on."""
        sl.run(self._experiment, self._store)
        self._stores += 1

    def look(self) -> str:
        """Look for workers, and sometimes complete the store and compare."""
        began = time.perf_counter()
        while _workers():
            if time.perf_counter() - began > 5.0:
                raise AssertionError(f"still at work after an interruption: {_workers()}")
            time.sleep(0.001)
        if self._rng.random() < 0.8:
            return "stopped"
        if self._numbers(sl.run(self._experiment, self._store)) != self._known:
            raise AssertionError("a store that was gone on with has other numbers")
        self._stores += 1
        return "stopped and completed"


def _workers() -> list[str]:
    names = [one.name for one in threading.enumerate() if "ThreadPool" in one.name]
    return names + [one.name for one in multiprocessing.active_children()]


class WithThreads(Experiments):
    """Compiled policies."""

    LONGEST = 0.3

    def __init__(self, rng: random.Random, folder: Path) -> None:
        policies = [POLICIES[name] for name in COMPILED]
        super().__init__(rng, folder, sl.Experiment([PROBLEM], policies, 30_000, 20))


class WithProcesses(Experiments):
    """A policy in plain Python beside compiled ones."""

    LONGEST = 5.0

    def __init__(self, rng: random.Random, folder: Path) -> None:
        policies = [EpsilonGreedy(0.3), POLICIES["LinUCB"]]
        super().__init__(rng, folder, sl.Experiment([PROBLEM], policies, 3_000, 16))


KINDS: dict[str, Callable[[random.Random, Path], Any]] = {
    "simulate": Simulations,
    "threads": WithThreads,
    "processes": WithProcesses,
}


def survive(kind: str, count: int, seed: int, folder: Path) -> dict[str, Any]:
    """Interrupt so many times."""
    rng = random.Random(seed)
    one = KINDS[kind](rng, folder)
    interruptions = Interruptions(seed, one.LONGEST)
    found = collections.Counter[str]()
    ages = []
    while interruptions.raised < count:
        faulthandler.dump_traceback_later(STUCK_AFTER, exit=True)
        interruptions.request(rng.choice([1, 1, 1, 2]))
        seen = interruptions.raised
        try:
            while interruptions.coming():
                one.work()
            found["swallowed"] += 1
        except Interrupted:
            ages.append(interruptions.age)
        interruptions.cancel()
        found["interrupted while stopping"] += interruptions.raised - seen - 1
        found[one.look()] += 1
    faulthandler.cancel_dump_traceback_later()
    return {
        "sent": interruptions.sent,
        "raised": interruptions.raised,
        "found": dict(found),
        "seconds to stop": [float(np.median(ages)), max(ages)],
    }


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps(survive(given.kind, given.count, given.seed, Path(folder))))


if __name__ == "__main__":
    main()
