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
from sightline.core.model import Contexts, OneContext
from sightline.core.offers import first_largest_offered
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "ContextHalfSpaces",
    "HalfSpaces",
    "block_of",
    "block_start",
    "blocks_in",
    "context_half_spaces",
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


def half_spaces(k: int) -> HalfSpaces:
    """Arrays for k arms."""
    return HalfSpaces(np.zeros(k), np.zeros(k), np.zeros(k))


@persists()
class ContextHalfSpaces(NamedTuple):
    """Half-space alternatives of all contexts, with the arrays of ``comparison``."""

    separations: Array
    shortfalls: Array
    distances: Array
    starts: Ints  # (C + 1,)
    bests: Ints  # (k,): the best arm of the context of each arm


def context_half_spaces(contexts: Contexts) -> ContextHalfSpaces:
    """Arrays for all arms of these contexts."""
    starts = contexts.starts.copy()
    k = int(starts[-1])
    bests = np.zeros(k, dtype=np.int64)
    return ContextHalfSpaces(np.zeros(k), np.zeros(k), np.zeros(k), starts, bests)


@generic
def blocks_in(alternatives: Any) -> int:
    """Count the contexts: one where there are none."""
    raise TypeError(f"{type(alternatives).__name__} are no half-spaces")


@blocks_in.register(HalfSpaces)
@compiled
def _one_block(alternatives: HalfSpaces) -> int:
    return 1


@blocks_in.register(ContextHalfSpaces)
@compiled
def _several_blocks(alternatives: ContextHalfSpaces) -> int:
    return len(alternatives.starts) - 1


@generic
def block_start(alternatives: Any, c: int) -> int:
    """First arm of a context, which is also where the one before ends."""
    raise TypeError(f"{type(alternatives).__name__} are no half-spaces")


@block_start.register(HalfSpaces)
@compiled
def _end_of_all(alternatives: HalfSpaces, c: int) -> int:
    return c * len(alternatives.distances)


@block_start.register(ContextHalfSpaces)
@compiled
def _start_of_context(alternatives: ContextHalfSpaces, c: int) -> int:
    start: int = alternatives.starts[c]
    return start


@generic
def block_of(alternatives: Any, arm: int) -> int:
    """Context that an arm belongs to."""
    raise TypeError(f"{type(alternatives).__name__} are no half-spaces")


@block_of.register(HalfSpaces)
@compiled
def _only_block(alternatives: HalfSpaces, arm: int) -> int:
    return 0


@block_of.register(ContextHalfSpaces)
@compiled
def _block_of_arm(alternatives: ContextHalfSpaces, arm: int) -> int:
    c = 0
    while alternatives.starts[c + 1] <= arm:
        c += 1
    return c


@generic
def rival_of(alternatives: Any, comparison: Comparison, z: int) -> int:
    """Arm that z is compared with."""
    raise TypeError(f"{type(alternatives).__name__} are no half-spaces")


@rival_of.register(HalfSpaces)
@compiled
def _rival_of_all(alternatives: HalfSpaces, comparison: Comparison, z: int) -> int:
    return comparison.best


@rival_of.register(ContextHalfSpaces)
@compiled
def _rival_in_context(alternatives: ContextHalfSpaces, comparison: Comparison, z: int) -> int:
    rival: int = alternatives.bests[z]
    return rival


@compare.register(HalfSpaces)
@compiled
def _compare_halfspaces(alternatives: HalfSpaces, estimate: LeastSquares, best: int) -> Comparison:
    compare_arms(estimate, best, alternatives.separations, alternatives.shortfalls)
    return Comparison(best, _measure(alternatives))


@compare.register(ContextHalfSpaces)
@compiled
def _compare_contexts(
    alternatives: ContextHalfSpaces, estimate: LeastSquares, best: int
) -> Comparison:
    """Compare the arms of every context with its best: O(k d + C d^2)."""
    starts, bests = alternatives.starts, alternatives.bests
    for c in range(starts.shape[0] - 1):
        start, stop = starts[c], starts[c + 1]
        leader = first_largest_offered(OneContext(c, start, stop), estimate.arms.means)
        for z in range(start, stop):
            bests[z] = leader
        compare_block(
            estimate, leader, start, stop, alternatives.separations, alternatives.shortfalls
        )
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
@locate_alternatives.register(ContextHalfSpaces)
@compiled
def _locate_halfspaces(alternatives: Any, estimate: LeastSquares, comparison: Comparison) -> float:
    return comparison.least


@write_shifts.register(HalfSpaces)
@write_shifts.register(ContextHalfSpaces)
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
