"""Every policy against its plain NumPy version: time per round that a policy learns from.

theta = 0, so that no arm is better than another and exploration never ends.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import sightline as sl
from benchmarks.measurement import Measurement
from benchmarks.plain_numpy import PLAIN, play
from benchmarks.problems import without_best_arm
from benchmarks.timing import fastest
from sightline.policies.catalogue import POLICIES

SIZES = [(6, 2), (50, 5)]
# Rounds of one run: ours needs many to outlast the fixed cost of a call, NumPy need not.
OURS, THEIRS, BAYESIAN = 20_000, 300, 100


def measure(repeats: int) -> Iterator[Measurement]:
    """Measure all policies of the yardstick."""
    for name, plain in PLAIN.items():
        policy = eval(name, dict(POLICIES))
        bayesian = name == "BayesianIDS()"
        for k, d in SIZES:
            problem = without_best_arm(k, d)
            rounds = (BAYESIAN, BAYESIAN) if bayesian else (OURS, THEIRS)
            ours = functools.partial(sl.simulate, problem, policy, rounds[0], 1, [rounds[0]])
            theirs = functools.partial(play, plain, problem, rounds[1], 1)
            learnt = int(ours().explorations[-1]), theirs()[1]
            seconds = fastest([ours, theirs], repeats)
            yield Measurement(
                name, {"k": k, "d": d}, seconds[0] / learnt[0], "NumPy", seconds[1] / learnt[1]
            )
