"""The allocation that would be optimal if the estimates were true, for policies that track it.

| symbol                                             | here             | shape |
|----------------------------------------------------|------------------|-------|
| x-hat, of every context                            | ``best``         | (C,)  |
| D_x = <x-hat - x, theta-hat>, x-hat of its context | ``gaps``         | (k,)  |
| D_min, the smallest positive one                   | ``least_gap``    |       |
| alpha at the estimated gaps, inf for x-hat         | ``allocation``   | (k,)  |

alpha is in the units of :mod:`sightline.core.allocation.program`: sigma^2 f alpha pulls refute all
alternatives at the level f; the lower bound has f = 2 log n.

With contexts there is an entry for every arm of every context, D_min is the smallest of them all,
and the x-hat of all contexts are free, as in the lower bound.

A solution costs some hundred times as much as a round.  It changes no faster than the estimates
do, so it is computed again only when det V has grown by a factor, or x-hat of the present context
has changed.  Among many contexts, that of some context changes nearly always.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.action_set import (
    ActionSet,
    first_largest_between,
    first_largest_offered,
    nth_offered,
    number_offered,
)
from sightline.core.allocation.program import cheapest_allocation
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import Array, Ints, equal_rows, first_largest
from sightline.core.model import Contexts, starts_of
from sightline.core.persistence import indices, invariant, may_hold, persists, within
from sightline.jit import compiled, compiled_apart

# An allocation that costs this much too much, relatively, is as good: estimates are far rougher.
TOLERANCE = 1e-3


@may_hold(negative=("best",))
@persists("allocation", "best", "log_det")
class Target(NamedTuple):
    """The last allocation."""

    allocation: Array
    gaps: Array
    best: Ints  # (C,): -1 before the first solution
    log_det: Array  # (1,) of V then
    growth: float  # of log det until the next solution
    precisions: Array  # (k,): squared weight of an observation of each arm
    starts: Ints  # (C + 1,): first arm of every context, and k


@invariant(Target)
def _check(goal: Target, name: str) -> None:
    within(f"{name}.allocation", goal.allocation, 0.0)
    indices(f"{name}.best", goal.best, len(goal.allocation), least=-1)
    within(f"{name}.log_det", goal.log_det, ends=False)


def target(weights: Array, determinant_growth: float, contexts: Contexts | None = None) -> Target:
    """Arrays before a first solution; a new one is due when det V has grown by 1 + this."""
    k = len(weights)
    starts = starts_of(contexts, k)
    return Target(
        allocation=np.zeros(k),
        gaps=np.zeros(k),
        best=np.full(len(starts) - 1, -1),
        log_det=np.zeros(1),
        growth=math.log1p(determinant_growth),
        precisions=weights**2,
        starts=starts,
    )


@compiled
def _leader(starts: Ints, c: int, means: Array, best: int) -> int:
    """Arm x-hat of a context, given that of the present one; a bandit is one context."""
    if starts.shape[0] == 2:
        return best
    return first_largest_between(means, starts[c], starts[c + 1])


@compiled
def least_gap(starts: Ints, estimate: LeastSquares, best: int, gaps: Array) -> float:
    """Write D_x for all arms, given x-hat on offer; return D_min, or 0 if no gap is positive."""
    means, least = estimate.arms.means, math.inf
    for c in range(starts.shape[0] - 1):
        leader = _leader(starts, c, means, best)
        for x in range(starts[c], starts[c + 1]):
            gaps[x] = means[leader] - means[x]
            if gaps[x] > 0.0:
                least = min(least, gaps[x])
    return least if least < math.inf else 0.0


@compiled_apart
def find_allocation(goal: Target, estimate: LeastSquares) -> None:
    """Find the allocation for the present estimates.

    An arm that ties with x-hat gets the gap D_min; refuting it at its own gap would have infinite
    cost.  If all arms tie, in every context, nothing is known yet: all allocations are infinite
    but those of arms equal to x-hat, which need none.
    """
    means, rewards = estimate.arms.means, estimate.arms.rewards
    goal.log_det[0] = estimate.learned.log_det[0]
    free = np.zeros(goal.gaps.shape[0], dtype=np.bool_)
    overall = first_largest(means)
    for c in range(goal.best.shape[0]):
        goal.best[c] = _leader(goal.starts, c, means, overall)
        free[goal.best[c]] = True
    least = least_gap(goal.starts, estimate, overall, goal.gaps)
    if least > 0.0:
        for x in range(goal.gaps.shape[0]):
            goal.gaps[x] = max(goal.gaps[x], least)
        cheapest_allocation(rewards, free, goal.gaps, goal.precisions, TOLERANCE, goal.allocation)
        return
    for c in range(goal.best.shape[0]):
        best = goal.best[c]
        for x in range(goal.starts[c], goal.starts[c + 1]):
            twin = x != best and equal_rows(rewards, x, best)
            goal.allocation[x] = 0.0 if twin else math.inf


@compiled
def follow(goal: Target, estimate: LeastSquares, offer: ActionSet) -> int:
    """Update the allocation if the estimates have moved enough; return x-hat of the offer."""
    best = first_largest_offered(offer, estimate.arms.means)
    grown = estimate.learned.log_det[0] - goal.log_det[0] >= goal.growth
    if grown or best != goal.best[offer.context]:
        find_allocation(goal, estimate)
    return best


@compiled
def fewest_pulls(estimate: LeastSquares, offer: ActionSet) -> int:
    """Arm on offer that was played least often; the first one among equals."""
    pulls = estimate.arms.pulls
    arm = nth_offered(offer, 0)
    for n in range(1, number_offered(offer, pulls.shape[0])):
        x = nth_offered(offer, n)
        if pulls[x] < pulls[arm]:
            arm = x
    return arm
