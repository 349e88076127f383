"""Growth of the cost of a round with k and d, and of a run with n.

The yardstick is a power law: the cost at the smallest size times the expected growth.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

import sightline as sl
from benchmarks.measurement import Measurement
from benchmarks.problems import random_arms, without_best_arm
from benchmarks.published import label
from benchmarks.timing import fastest

H_UCB = sl.IDS(information="halfspace-ucb")


class Series(NamedTuple):
    """Sizes of one kind, all else equal."""

    policy: sl.extend.Policy
    variable: str
    fixed: int
    values: list[int]
    rounds: int  # at the smallest size; fewer at the others, to take equal time
    exponent: float  # of the expected power law


SERIES = [
    Series(H_UCB, "k", 20, [1_000, 3_000, 10_000, 30_000, 100_000], 2000, 1.0),
    Series(H_UCB, "d", 1_000, [10, 20, 50, 100, 200], 4000, 2.0),
    Series(sl.LinUCB(), "k", 20, [1_000, 3_000, 10_000, 30_000, 100_000], 40_000, 1.0),
    Series(sl.LinUCB(), "d", 1_000, [10, 20, 50, 100, 200], 40_000, 1.0),
    Series(sl.ThompsonSampling(), "k", 20, [1_000, 3_000, 10_000, 30_000, 100_000], 40_000, 1.0),
]
HORIZONS: list[tuple[sl.extend.Policy, list[int]]] = [
    (sl.LinUCB(), [10**e for e in range(3, 7)]),
    (sl.IDS(), [10**e for e in (3, 4, 5, 6, 9, 12, 100)]),
    (H_UCB, [10**e for e in (3, 4, 5, 6, 9, 12, 100)]),
]


def seconds_per_round(series: Series, value: int, repeats: int) -> float:
    """Time of a round without the start: a long run minus a run of one round."""
    k, d = (value, series.fixed) if series.variable == "k" else (series.fixed, value)
    problem = without_best_arm(k, d)
    n = int(series.rounds * (series.values[0] / value) ** series.exponent)
    runs = [
        functools.partial(sl.simulate, problem, series.policy, rounds, 1, [rounds])
        for rounds in (n + 1, 1)
    ]
    runs[1]()  # compiled before the clock starts
    long, short = fastest(
        runs, repeats, time.thread_time
    )  # without waiting, which would dominate the difference
    return (long - short) / n


def exponent(sizes: list[int], seconds: list[float]) -> float:
    """Slope of log cost in log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def measure(repeats: int) -> Iterator[Measurement]:
    """Measure all series, then runs to far horizons on the random action set of (6, 2)."""
    for series in SERIES:
        first = 0.0
        for value in series.values:
            seconds = seconds_per_round(series, value, repeats)
            first = first or seconds
            expected = first * (value / series.values[0]) ** series.exponent
            other = "d" if series.variable == "k" else "k"
            yield Measurement(
                label(series.policy),
                {series.variable: value, other: series.fixed},
                seconds,
                f"{series.variable}^{series.exponent:g}",
                expected,
            )
    problem = random_arms(6, 2)
    for policy, horizons in HORIZONS:
        first = 0.0
        for n in horizons:
            run = functools.partial(sl.simulate, problem, policy, n, 1, [n])
            run()
            seconds = fastest([run], repeats)[0]
            first = first or seconds
            yield Measurement(
                label(policy), {"n": n}, seconds, "n^1", first * float(n // horizons[0])
            )
