"""The allocation that would be optimal if the estimates were true, for policies that track it.

| symbol                                             | here             | shape |
|----------------------------------------------------|------------------|-------|
| x-hat                                              | ``best[0]``      | int   |
| D_x = <x-hat - x, theta-hat>                       | ``gaps``         | (k,)  |
| D_min, the smallest positive one                   | ``least_gap``    |       |
| alpha at the estimated gaps, inf for x-hat         | ``allocation``   | (k,)  |

alpha is in the units of :mod:`sightline.core.allocation.program`: sigma^2 f alpha pulls refute all
alternatives at the level f; the lower bound has f = 2 log n.

A solution costs some hundred times as much as a round.  It changes no faster than the estimates
do, so it is found anew only when det V has grown by a factor, or x-hat has changed.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.program import optimal_allocation
from sightline.core.consistency import indices, invariant, may_hold, within
from sightline.core.estimation.least_squares import LeastSquares, best_arm
from sightline.core.linalg.vectors import equal_rows
from sightline.core.persistence import persists
from sightline.jit import compiled, compiled_apart

__all__ = ["Target", "fewest_pulls", "find_allocation", "follow", "least_gap", "target"]

Array = NDArray[np.float64]

# An allocation that costs this much too much, relatively, is as good: estimates are far rougher.
TOLERANCE = 1e-3


@may_hold(negative=("best",))
@persists("allocation", "best", "log_det")
class Target(NamedTuple):
    """The allocation last found; see the table above."""

    allocation: Array
    gaps: Array
    best: NDArray[np.int64]  # (1,) of the last solution; -1 before
    log_det: Array  # (1,) of V then
    growth: float  # of log det until the next solution
    precisions: Array  # (k,): squared weight of an observation of each arm


@invariant(Target)
def _check(goal: Target, name: str) -> None:
    within(f"{name}.allocation", goal.allocation, 0.0)
    indices(f"{name}.best", goal.best, len(goal.allocation), least=-1)
    within(f"{name}.log_det", goal.log_det, ends=False)


def target(weights: Array, determinant_growth: float) -> Target:
    """Arrays for arms whose observations weigh so much; found anew when det V grew by 1 + this."""
    k = len(weights)
    return Target(
        allocation=np.zeros(k),
        gaps=np.zeros(k),
        best=np.full(1, -1),
        log_det=np.zeros(1),
        growth=math.log1p(determinant_growth),
        precisions=weights**2,
    )


@compiled
def least_gap(estimate: LeastSquares, best: int, gaps: Array) -> float:
    """Write D_x for all arms; return D_min, or 0 if no gap is positive."""
    least = math.inf
    for x in range(gaps.shape[0]):
        gaps[x] = estimate.arms.means[best] - estimate.arms.means[x]
        if gaps[x] > 0.0:
            least = min(least, gaps[x])
    return least if least < math.inf else 0.0


@compiled_apart
def find_allocation(goal: Target, estimate: LeastSquares) -> None:
    """Find the allocation for the present estimates.

    An arm that ties with x-hat would have to be told from it at any cost; it gets the gap D_min.
    If all arms tie, nothing is known yet, and all allocations are infinite but those of arms
    equal to x-hat, which never need any.
    """
    best = best_arm(estimate)
    goal.best[0] = best
    goal.log_det[0] = estimate.learned.log_det[0]
    least = least_gap(estimate, best, goal.gaps)
    if least > 0.0:
        for x in range(goal.gaps.shape[0]):
            goal.gaps[x] = max(goal.gaps[x], least)
        optimal_allocation(
            estimate.arms.rewards, best, goal.gaps, goal.precisions, TOLERANCE, goal.allocation
        )
    else:
        for x in range(goal.gaps.shape[0]):
            twin = x != best and equal_rows(estimate.arms.rewards, x, best)
            goal.allocation[x] = 0.0 if twin else math.inf


@compiled
def follow(goal: Target, estimate: LeastSquares) -> None:
    """Find the allocation anew if the estimates have moved enough for it to differ."""
    grown = estimate.learned.log_det[0] - goal.log_det[0] >= goal.growth
    if grown or best_arm(estimate) != goal.best[0]:
        find_allocation(goal, estimate)


@compiled
def fewest_pulls(estimate: LeastSquares) -> int:
    """Arm played least often; the first one among equals."""
    arm = 0
    for x in range(1, estimate.arms.pulls.shape[0]):
        if estimate.arms.pulls[x] < estimate.arms.pulls[arm]:
            arm = x
    return arm
