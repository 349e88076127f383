"""Whole runs on random action sets against the authors' own code, in seconds per 10^4 rounds.

Their times were measured once, on a machine with two cores, and are constants here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import sightline as sl
from benchmarks.measurement import Measurement
from benchmarks.timing import fastest

SEEDS = 10
# Policy: rounds of our runs, and seconds of the authors' code per 10^4 rounds by (k, d).
PUBLISHED: list[tuple[sl.extend.Policy, int, dict[tuple[int, int], float]]] = [
    (sl.IDS(information="halfspace-ucb"), 10**5, {(6, 2): 4.1, (50, 5): 7.9}),
    (sl.IDS(information="halfspace-ucb", sampling="exact"), 10**5, {(50, 5): 41.0}),
    (sl.LinUCB(), 10**5, {(6, 2): 0.9, (50, 5): 2.3}),
    (sl.ThompsonSampling(), 10**5, {(6, 2): 0.75, (50, 5): 1.7}),
    (sl.BayesianIDS(), 10**4, {(6, 2): 44.0, (50, 5): 132.0}),
]


def label(policy: sl.extend.Policy) -> str:
    """Name, with information and sampling where they differ from the default."""
    options = [
        f"{name}={getattr(policy, name)!r}"
        for name in ("information", "sampling")
        if getattr(policy, name, None) != getattr(type(policy), name, None)
    ]
    return f"{type(policy).__name__}({', '.join(options)})"


def measure(repeats: int) -> Iterator[Measurement]:
    """Mean over action sets, each the least of several."""
    for policy, rounds, seconds in PUBLISHED:
        for (k, d), theirs in seconds.items():
            sets = [sl.problems.unit_sphere(k=k, d=d, seed=seed) for seed in range(SEEDS)]
            runs = [
                functools.partial(sl.simulate, problem, policy, rounds, seed, [rounds])
                for seed, problem in enumerate(sets)
            ]
            sl.simulate(sets[0], policy, 1)  # compiled before the clock starts
            ours = sum(fastest(runs, repeats)) / len(runs)
            size = {"k": k, "d": d, "n": rounds}
            yield Measurement(label(policy), size, ours, "authors", theirs * rounds / 10**4)
