"""Alternatives: for each arm, the parameter nearest to theta-hat under which it beats x-hat.

| symbol                         | here                  | shape |
|--------------------------------|-----------------------|-------|
| x-hat                          | ``best``              | int   |
| u_z = x-hat - z                |                       | (d,)  |
| squared norm of u_z in V^-1    | ``separations[z]``    | (k,)  |
| <u_z, theta-hat>               | ``shortfalls[z]``     | (k,)  |
| squared norm of nu-hat(z) - theta-hat in V | ``distances[z]`` | (k,)  |
| the least of them, 2 m_s       | ``Comparison.least``  | number |
| nu-hat(z) - theta-hat          | ``columns[:, n]``, z = ``arms[n]`` | (d, m) |

Half-spaces with normal rewards have a closed form (paper, closed form of nu-hat):

    nu-hat(z) - theta-hat = -(<u_z, theta-hat> / |u_z|^2) V^-1 u_z,    the norm taken in V^-1,

at squared distance <u_z, theta-hat>^2 / |u_z|^2.  An arm equal to x-hat is no alternative: its
distance is inf.  With contexts, the best arm of its own context takes the place of x-hat for every
arm z.

Half-spaces for clicks and counts are in :mod:`sightline.core.likelihood_alternatives`; cells, and
alternatives within a polytope, in :mod:`sightline.core.projections`.

Alternatives are a named tuple with at least the first three arrays.  ``compare`` fills them once
per round and returns a :class:`Comparison`; every kernel that reads the arrays takes one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, first_largest_between, withhold
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import Array, Ints, inner_products, multiply_symmetric
from sightline.core.model import Contexts, starts_of
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

# Below this fraction of its terms, |u|^2 = |x-hat|^2 - 2<x-hat, z> + |z|^2 has lost three digits:
# it and <u, theta-hat> are then computed from u itself.
CANCELLATION = 1e-3
# Arms per block, so that a block of shifts stays in the processor's cache.
BLOCK = 256


class Comparison(NamedTuple):
    """Result of :func:`compare`, which has filled the arrays of alternatives."""

    best: int
    least: float


@persists()
class Shifts(NamedTuple):
    """nu-hat(z) - theta-hat for a block of arms z, side by side: loops over z are vector code."""

    arms: NDArray[np.uint64]  # (m,); unsigned, as no index counts from the end
    columns: Array  # (d, m)
    differences: Array  # scratch (d, m)
    scales: Array  # scratch (m,)


def shifts(k: int, d: int) -> Shifts:
    """Arrays for at most k arms at once, in d dimensions."""
    m = min(k, BLOCK)
    return Shifts(np.zeros(m, dtype=np.uint64), np.zeros((d, m)), np.zeros((d, m)), np.zeros(m))


@generic
def compare(alternatives: Any, estimate: LeastSquares, best: int) -> Comparison:
    """Compare all arms with one, and write the squared distances to half-spaces.

    These suffice for the exploitation test, as cells have the same union.
    """
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@generic
@compiled
def locate_alternatives(alternatives: Any, estimate: LeastSquares, comparison: Comparison) -> float:
    """In exploration rounds, write distances that ``compare`` has not; return the least of all."""
    least: float = comparison.least
    return least


@generic
def write_shifts(
    alternatives: Any, estimate: LeastSquares, comparison: Comparison, count: int, shifts: Shifts
) -> None:
    """Write nu-hat(z) - theta-hat for the first ``count`` arms, all at finite distance."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@compiled
def restrict_alternatives(
    offer: ActionSet, alternatives: Any, comparison: Comparison
) -> Comparison:
    """Exclude alternatives under which an arm outside the action set is best."""
    distances = alternatives.distances
    if offer.start == 0 and offer.stop >= distances.shape[0] and offer.mask.shape[0] == 0:
        return comparison
    withhold(offer, distances, math.inf)
    least = math.inf
    for z in range(distances.shape[0]):
        least = min(least, distances[z])
    return Comparison(comparison.best, least)


@compiled
def compare_arms(estimate: LeastSquares, best: int, separations: Array, shortfalls: Array) -> None:
    """Write |x-hat - z|^2 in V^-1 and <x-hat - z, theta-hat> for all arms z: O(k d)."""
    arms, w = estimate.arms, estimate.scratch.direction
    own = multiply_symmetric(estimate.learned.gram_inverse, arms.rewards[best], w, 0.0)
    inner_products(arms.columns, w, estimate.scratch.products)
    _compare_range(estimate, best, own, 0, separations.shape[0], separations, shortfalls)


@compiled
def _compare_range(
    estimate: LeastSquares,
    best: int,
    own: float,
    start: int,
    stop: int,
    separations: Array,
    shortfalls: Array,
) -> None:
    """Write both for a range of arms, whose inner products with V^-1 x-hat are known."""
    arms, products = estimate.arms, estimate.scratch.products
    widths, mean = arms.squared_widths, arms.means[best]
    for z in range(start, stop):
        separation = own - 2.0 * products[z] + widths[z]
        separations[z] = separation
        shortfalls[z] = mean - arms.means[z]
        if separation <= CANCELLATION * (own + widths[z]):
            _compare_close(estimate, best, z, separations, shortfalls)
    # V^-1 may have lost all digits, as with a tiny regulariser: x-hat is at no distance from itself
    separations[best] = 0.0
    shortfalls[best] = 0.0


@compiled
def _compare_close(
    estimate: LeastSquares, best: int, z: int, separations: Array, shortfalls: Array
) -> None:
    """Compare two arms that nearly coincide, from their difference: O(d^2)."""
    actions, inverse = estimate.arms.rewards, estimate.learned.gram_inverse
    d = actions.shape[1]
    norm = 0.0
    shortfall = 0.0
    for i in range(d):
        u_i = actions[best, i] - actions[z, i]
        shortfall += u_i * estimate.learned.theta[i]
        for j in range(d):
            norm += u_i * inverse[i, j] * (actions[best, j] - actions[z, j])
    separations[z] = max(norm, 0.0)  # exactly zero for x-hat itself and its twins
    shortfalls[z] = max(shortfall, 0.0)  # x-hat is the best but for rounding


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
    else:
        arms, w, products = estimate.arms, estimate.scratch.direction, estimate.scratch.products
        for c in range(starts.shape[0] - 1):
            start, stop = starts[c], starts[c + 1]
            leader = first_largest_between(arms.means, start, stop)
            for z in range(start, stop):
                bests[z] = leader
            inverse = estimate.learned.gram_inverse
            own = multiply_symmetric(inverse, arms.rewards[leader], w, 0.0)
            inner_products(arms.columns[:, start:stop], w, products[start:stop])
            _compare_range(estimate, leader, own, start, stop, separations, shortfalls)
    least = math.inf
    for z in range(separations.shape[0]):
        separation, shortfall = separations[z], shortfalls[z]
        distance = shortfall * shortfall / separation if separation > 0.0 else math.inf
        alternatives.distances[z] = distance
        least = min(least, distance)
    return Comparison(best, least)


@write_shifts.register(HalfSpaces)
@compiled
def _write_halfspace_shifts(
    alternatives: Any, estimate: LeastSquares, comparison: Comparison, count: int, shifts: Shifts
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
