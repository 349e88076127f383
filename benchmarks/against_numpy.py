"""Every policy against plain NumPy: time per learning round.

Policies that decide round by round play theta = 0, where all arms are equally good and exploration
never ends.  Policies that follow plans play the first rounds on a random action set, against the
reference implementations of the tests; both then use the solver of this library.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from tests import naive, naive_allocation_policies, naive_rivals

import sightline as sl
from benchmarks.measurement import Measurement
from benchmarks.plain_numpy import PLAIN, Plain, play
from benchmarks.problems import random_arms, without_best_arm
from benchmarks.timing import fastest

SIZES = [(6, 2), (50, 5)]
# Rounds of a run: ours needs many to outlast the fixed cost of a call, NumPy need not.
OURS, THEIRS, BAYESIAN, PLANNED = 20_000, 300, 100, 300
HORIZON = 10**6
PLANNERS: dict[str, Callable[[naive.World], Any]] = {
    f"OAM(horizon={HORIZON})": lambda world: naive_allocation_policies.oam(
        world, naive_allocation_policies.OAM(HORIZON), PLANNED
    ),
    "OSSB()": lambda world: naive_allocation_policies.ossb(
        world, naive_allocation_policies.OSSB(0.01, 0.0, 0.1), PLANNED
    ),
    f"E4(horizon={HORIZON})": lambda world: naive_allocation_policies.e4(
        world, HORIZON, 1.0, PLANNED
    ),
    f"ExploreThenAllocate(horizon={HORIZON})": lambda world: (
        naive_allocation_policies.explore_then_allocate(world, HORIZON, 1.0, PLANNED)
    ),
    f"PhasedElimination(horizon={HORIZON})": lambda world: naive_rivals.phased_elimination(
        world, HORIZON, 1.0, PLANNED
    ),
}


def measure(repeats: int) -> Iterator[Measurement]:
    """Measure all policies, those that plan at the end."""
    for name, plain in PLAIN.items():
        for k, d in SIZES:
            yield _measure_round(name, plain, k, d, repeats)
    for name, truth in PLANNERS.items():
        for k, d in SIZES:
            yield _measure_plan(name, truth, k, d, repeats)


def _measure_round(name: str, plain: Plain, k: int, d: int, repeats: int) -> Measurement:
    problem = without_best_arm(k, d)
    rounds = (BAYESIAN, BAYESIAN) if name == "BayesianIDS()" else (OURS, THEIRS)
    ours = functools.partial(sl.simulate, problem, _policy(name), rounds[0], 1, [rounds[0]])
    theirs = functools.partial(play, plain, problem, rounds[1], 1)
    learned = int(ours().explorations[-1]), theirs()[1]
    seconds = fastest([ours, theirs], repeats)
    return Measurement(
        name, {"k": k, "d": d}, seconds[0] / learned[0], "NumPy", seconds[1] / learned[1]
    )


def _measure_plan(
    name: str, truth: Callable[[naive.World], Any], k: int, d: int, repeats: int
) -> Measurement:
    problem = random_arms(k, d)
    ours = functools.partial(sl.simulate, problem, _policy(name), PLANNED, 1, [PLANNED])

    def theirs() -> object:
        streams = np.random.default_rng(1).spawn(2)
        actions, theta = np.array(problem.actions), np.array(problem.theta)
        return truth(naive.World(actions, theta, problem.model.noise_std, *streams))

    ours()  # compiled before the clock starts
    seconds = [value / PLANNED for value in fastest([ours, theirs], repeats)]
    return Measurement(name, {"k": k, "d": d}, seconds[0], "truth", seconds[1])


def _policy(name: str) -> sl.extend.Policy:
    policy: sl.extend.Policy = eval(f"sl.{name}")
    return policy
