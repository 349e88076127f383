"""Policies against implementations in C: time per learning round, then whole runs.

Policies that learn from every round play a random action set.  IDS plays theta = 0, where
exploration never ends, and then whole runs, in which most rounds are exploitation.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import sightline as sl
from benchmarks.measurement import Measurement
from benchmarks.plain_c import POLICIES, runner
from benchmarks.problems import random_arms, without_best_arm
from benchmarks.timing import fastest

# Rounds of a run that takes a tenth of a second or so.
ROUNDS = {
    ("lin_ucb", 6, 2): 1_000_000,
    ("lin_ucb", 50, 5): 500_000,
    ("lin_ucb", 1000, 20): 20_000,
    ("thompson", 6, 2): 1_000_000,
    ("thompson", 50, 5): 500_000,
    ("thompson", 1000, 20): 20_000,
    ("ids", 6, 2): 200_000,
    ("ids", 50, 5): 20_000,
    ("ids_ucb", 6, 2): 200_000,
    ("ids_ucb", 50, 5): 50_000,
}
WHOLE_RUN = 100_000


def measure(repeats: int) -> Iterator[Measurement]:
    """Measure rounds, then whole runs of IDS."""
    for (name, k, d), rounds in ROUNDS.items():
        problem = without_best_arm(k, d) if name.startswith("ids") else random_arms(k, d)
        yield _compare(f"{name}, a round", name, problem, rounds, repeats)
    for name in ("ids", "ids_ucb"):
        for k, d in ((6, 2), (50, 5)):
            yield _compare(f"{name}, a run", name, random_arms(k, d), WHOLE_RUN, repeats)


def _compare(
    what: str, name: str, problem: sl.LinearBandit, rounds: int, repeats: int
) -> Measurement:
    ours = functools.partial(sl.simulate, problem, POLICIES[name], rounds, 1, [rounds])
    plain = functools.partial(runner(name, problem, rounds), 1)
    learned = int(ours().explorations[-1]), plain()[1]  # compiled before the clock starts
    seconds = fastest([ours, plain], repeats)
    size = {"k": problem.k, "d": problem.d}
    return Measurement(what, size, seconds[0] / learned[0], "C", seconds[1] / learned[1])
