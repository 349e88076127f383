"""Half-space alternatives over all of R^d, in closed form: for fixed arms, or for every context.

nu-hat(z) - theta-hat = -(<u_z, theta-hat> / |u_z|^2) V^-1 u_z with the norm taken in V^-1, at
squared distance <u_z, theta-hat>^2 / |u_z|^2 (paper, closed form of nu-hat).  An arm equal to
x-hat is no alternative: its distance is inf.

With contexts, every arm z has the best arm of its own context in place of x-hat.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import first_largest_between
from sightline.core.alternatives.comparison import (
    Comparison,
    Shifts,
    compare,
    compare_arms,
    compare_block,
    locate_alternatives,
    write_shifts,
)
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.model import Contexts, starts_of
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = [
    "HalfSpaces",
    "context_of_arm",
    "half_spaces",
    "rival_of",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


@persists()
class HalfSpaces(NamedTuple):
    """Half-space alternatives over all of R^d, with the arrays of ``comparison``."""

    separations: Array
    shortfalls: Array
    distances: Array
    starts: Ints  # (C + 1,): first arm of every context, and k; a bandit is one context
    bests: Ints  # (k,): the best arm of the context of each arm, where there are several


def half_spaces(k: int, contexts: Contexts | None = None) -> HalfSpaces:
    """Arrays for k arms, all in one context by default."""
    starts = starts_of(contexts, k)
    return HalfSpaces(np.zeros(k), np.zeros(k), np.zeros(k), starts, np.zeros(k, dtype=np.int64))


@compiled
def context_of_arm(alternatives: Any, arm: int) -> int:
    """Context that an arm belongs to."""
    c = 0
    while alternatives.starts[c + 1] <= arm:
        c += 1
    return c


@compiled
def rival_of(alternatives: Any, comparison: Comparison, z: int) -> int:
    """Arm that z is compared with."""
    if alternatives.starts.shape[0] == 2:
        return comparison.best
    rival: int = alternatives.bests[z]
    return rival


@compare.register(HalfSpaces)
@compiled
def _compare_halfspaces(alternatives: HalfSpaces, estimate: LeastSquares, best: int) -> Comparison:
    """Compare the arms of every context with its best: O(k d + C d^2)."""
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    starts, bests = alternatives.starts, alternatives.bests
    if starts.shape[0] == 2:
        compare_arms(estimate, best, separations, shortfalls)
        return Comparison(best, _measure(alternatives))
    for c in range(starts.shape[0] - 1):
        start, stop = starts[c], starts[c + 1]
        leader = first_largest_between(estimate.arms.means, start, stop)
        for z in range(start, stop):
            bests[z] = leader
        compare_block(estimate, leader, start, stop, separations, shortfalls)
    return Comparison(best, _measure(alternatives))


@compiled
def _measure(alternatives: Any) -> float:
    """Write the distances; return the least."""
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    least = math.inf
    for z in range(separations.shape[0]):
        separation, shortfall = separations[z], shortfalls[z]
        distance = shortfall * shortfall / separation if separation > 0.0 else math.inf
        alternatives.distances[z] = distance
        least = min(least, distance)
    return least


@locate_alternatives.register(HalfSpaces)
@compiled
def _locate_halfspaces(alternatives: Any, estimate: LeastSquares, comparison: Comparison) -> float:
    return comparison.least


@write_shifts.register(HalfSpaces)
@compiled
def _write_halfspace_shifts(
    alternatives: Any,
    estimate: LeastSquares,
    comparison: Comparison,
    count: int,
    shifts: Shifts,
) -> None:
    """Write -(shortfall / separation) V^-1 u, from u itself: arms may nearly coincide."""
    arms, columns, differences, scales = shifts
    inverse, d = estimate.learned.gram_inverse, columns.shape[0]
    features = estimate.arms.columns
    for n in range(count):
        scales[n] = -alternatives.shortfalls[arms[n]] / alternatives.separations[arms[n]]
    for j in range(d):
        for n in range(count):
            rival = rival_of(alternatives, comparison, arms[n])
            differences[j, n] = features[j, rival] - features[j, arms[n]]
    for i in range(d):
        entry = inverse[i, 0]
        for n in range(count):
            columns[i, n] = entry * differences[0, n]
        for j in range(1, d):
            entry = inverse[i, j]
            for n in range(count):
                columns[i, n] += entry * differences[j, n]
    for i in range(d):
        for n in range(count):
            columns[i, n] *= scales[n]
