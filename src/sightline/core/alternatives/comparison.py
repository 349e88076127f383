"""Alternatives: the parameter nearest to theta-hat under which another arm would be best.

| symbol                         | here                  | shape |
|--------------------------------|-----------------------|-------|
| x-hat                          | ``best``              | int   |
| u_z = x-hat - z                |                       | (d,)  |
| squared norm of u_z in V^-1    | ``separations[z]``    | (k,)  |
| <u_z, theta-hat>               | ``shortfalls[z]``     | (k,)  |
| squared norm of nu-hat(z) - theta-hat in V | ``distances[z]`` | (k,)  |
| the least of them, 2 m_s       | ``Comparison.least``  | number |
| nu-hat(z) - theta-hat          | ``columns[:, n]``, z = ``arms[n]`` | (d, m) |

Alternatives are a named tuple with at least the first three arrays.  They are compared once per
round: ``compare`` fills the arrays and returns a :class:`Comparison`, and every kernel that reads
them asks for it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, withhold
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.linalg.vectors import inner_products, multiply_symmetric
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "BLOCK",
    "Comparison",
    "Shifts",
    "compare",
    "compare_arms",
    "compare_block",
    "locate_alternatives",
    "restrict_alternatives",
    "shifts",
    "write_shifts",
]

Array = NDArray[np.float64]

# Below this fraction of its terms, |u|^2 = |x-hat|^2 - 2<x-hat, z> + |z|^2 has lost three digits:
# it and <u, theta-hat> are then computed from u itself.
CANCELLATION = 1e-3
# Arms at once, so that what is computed of them stays in the processor's cache.
BLOCK = 256


class Comparison(NamedTuple):
    """That all arms have been compared with one: the arrays of the alternatives are filled."""

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
    """Compare all arms with one, and find the nearest parameter under which it is not best.

    The union of the alternatives is the same for half-spaces and cells, so the distances written
    here are those to half-spaces in either case.
    """
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@generic
def locate_alternatives(alternatives: Any, estimate: LeastSquares, comparison: Comparison) -> float:
    """Write the distances of all alternatives of this kind; return the least.

    Only exploration rounds pay for what goes beyond ``compare``.
    """
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@generic
def write_shifts(
    alternatives: Any,
    estimate: LeastSquares,
    comparison: Comparison,
    count: int,
    shifts: Shifts,
) -> None:
    """Write nu-hat(z) - theta-hat for the first ``count`` arms, all at finite distance."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@compiled
def restrict_alternatives(
    offer: ActionSet, alternatives: Any, comparison: Comparison
) -> Comparison:
    """Leave out arms that are not on offer: being best of all, they would not be played."""
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
def compare_block(
    estimate: LeastSquares,
    best: int,
    start: int,
    stop: int,
    separations: Array,
    shortfalls: Array,
) -> None:
    """Write the same for a block of arms, of which ``best`` is one."""
    arms, w, products = estimate.arms, estimate.scratch.direction, estimate.scratch.products
    own = multiply_symmetric(estimate.learned.gram_inverse, arms.rewards[best], w, 0.0)
    inner_products(arms.columns[:, start:stop], w, products[start:stop])
    _compare_range(estimate, best, own, start, stop, separations, shortfalls)


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
    # where V^-1 has lost all digits, as with a tiny regulariser, rounding would tell it from itself
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
