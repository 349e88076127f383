"""Alternatives: the parameter nearest to theta-hat under which another arm would be best.

| symbol                         | here                  | shape |
|--------------------------------|-----------------------|-------|
| x-hat                          | ``best``              | int   |
| u_z = x-hat - z                |                       | (d,)  |
| squared norm of u_z in V^-1    | ``separations[z]``    | (k,)  |
| <u_z, theta-hat>               | ``shortfalls[z]``     | (k,)  |
| squared norm of nu-hat(z) - theta-hat in V | ``distances[z]`` | (k,)  |
| nu-hat(z) - theta-hat          | ``columns[:, n]``, z = ``arms[n]`` | (d, m) |
| q(z)                           | ``weights[z]``        | (k,)  |

Over all of R^d the half-space alternative has the closed form (paper, closed form of nu-hat)
nu-hat(z) - theta-hat = -(<u_z, theta-hat> / |u_z|^2) V^-1 u_z with the norm taken in V^-1, at
squared distance <u_z, theta-hat>^2 / |u_z|^2.  An arm equal to x-hat is no alternative: its
distance is inf.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.linalg.vectors import inner_products
from sightline.jit import compiled, generic

__all__ = [
    "BLOCK",
    "HalfSpaces",
    "Shifts",
    "compare_to_best",
    "half_spaces",
    "least_distance",
    "locate",
    "mixing_weights",
    "shifts",
    "write_shifts",
]

Array = NDArray[np.float64]

# Below this fraction of its terms, |u|^2 = |x-hat|^2 - 2<x-hat, z> + |z|^2 has lost three digits:
# it and <u, theta-hat> are then computed from u itself.
CANCELLATION = 1e-3
# Arms at once, so that what is computed of them stays in the processor's cache.
BLOCK = 256


class HalfSpaces(NamedTuple):
    """Half-space alternatives over all of R^d, in closed form."""

    separations: Array
    shortfalls: Array
    distances: Array


def half_spaces(k: int) -> HalfSpaces:
    """Arrays for k arms."""
    return HalfSpaces(np.zeros(k), np.zeros(k), np.zeros(k))


class Shifts(NamedTuple):
    """nu-hat(z) - theta-hat for a block of arms z, side by side: loops over z are vector code."""

    arms: NDArray[np.uint64]  # (m,); unsigned, as no index counts from the end
    columns: Array  # (d, m)
    differences: Array  # workspace (d, m)
    scales: Array  # workspace (m,)


def shifts(k: int, d: int) -> Shifts:
    """Arrays for at most k arms at once, in d dimensions."""
    m = min(k, BLOCK)
    return Shifts(np.zeros(m, dtype=np.uint64), np.zeros((d, m)), np.zeros((d, m)), np.zeros(m))


@generic
def least_distance(alternatives: Any, estimate: LeastSquares, best: int) -> float:
    """Squared distance from theta-hat to the nearest parameter with another best arm: 2 m_s."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@generic
def locate(alternatives: Any, estimate: LeastSquares, best: int) -> float:
    """Write the distances of all alternatives, given those of ``least_distance``; return the least.

    The union of the alternatives is the same for half-spaces and cells, so the test of
    ``least_distance`` serves both, and only exploration rounds pay for more.
    """
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@generic
def write_shifts(
    alternatives: Any, estimate: LeastSquares, best: int, count: int, shifts: Shifts
) -> None:
    """Write nu-hat(z) - theta-hat for the first ``count`` arms, all at finite distance."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@compiled
def compare_to_best(
    estimate: LeastSquares, best: int, separations: Array, shortfalls: Array
) -> None:
    """Write |x-hat - z|^2 in V^-1 and <x-hat - z, theta-hat> for all arms z: O(k d)."""
    actions, inverse, w = estimate.actions, estimate.gram_inverse, estimate.direction
    k, d = actions.shape
    own = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[i, j] * actions[best, j]
        w[i] = total
        own += actions[best, i] * total
    products, widths = estimate.products, estimate.squared_widths
    inner_products(estimate.columns, w, products)
    mean = estimate.means[best]
    for z in range(k):
        separation = own - 2.0 * products[z] + widths[z]
        separations[z] = separation
        shortfalls[z] = mean - estimate.means[z]
        if separation <= CANCELLATION * (own + widths[z]):
            _compare_close(estimate, best, z, separations, shortfalls)


@compiled
def _compare_close(
    estimate: LeastSquares, best: int, z: int, separations: Array, shortfalls: Array
) -> None:
    """Compare two arms that nearly coincide, from their difference: O(d^2)."""
    actions, inverse = estimate.actions, estimate.gram_inverse
    d = actions.shape[1]
    norm = 0.0
    shortfall = 0.0
    for i in range(d):
        u_i = actions[best, i] - actions[z, i]
        shortfall += u_i * estimate.theta[i]
        for j in range(d):
            norm += u_i * inverse[i, j] * (actions[best, j] - actions[z, j])
    separations[z] = max(norm, 0.0)  # exactly zero for x-hat itself and its twins
    shortfalls[z] = max(shortfall, 0.0)  # x-hat is the best but for rounding


@least_distance.register(HalfSpaces)
@compiled
def _least_halfspace(alternatives: HalfSpaces, estimate: LeastSquares, best: int) -> float:
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    compare_to_best(estimate, best, separations, shortfalls)
    least = math.inf
    for z in range(separations.shape[0]):
        separation, shortfall = separations[z], shortfalls[z]
        distance = shortfall * shortfall / separation if separation > 0.0 else math.inf
        alternatives.distances[z] = distance
        least = min(least, distance)
    return least


@locate.register(HalfSpaces)
@compiled
def _locate_halfspaces(alternatives: HalfSpaces, estimate: LeastSquares, best: int) -> float:
    least = math.inf
    for z in range(alternatives.distances.shape[0]):
        least = min(least, alternatives.distances[z])
    return least


@write_shifts.register(HalfSpaces)
@compiled
def _write_halfspace_shifts(
    alternatives: HalfSpaces, estimate: LeastSquares, best: int, count: int, shifts: Shifts
) -> None:
    """Write -(shortfall / separation) V^-1 u, from u itself: arms may nearly coincide."""
    arms, columns, differences, scales = shifts
    inverse, d = estimate.gram_inverse, columns.shape[0]
    for n in range(count):
        scales[n] = -alternatives.shortfalls[arms[n]] / alternatives.separations[arms[n]]
    for j in range(d):
        for n in range(count):
            differences[j, n] = estimate.columns[j, best] - estimate.columns[j, arms[n]]
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


@compiled
def mixing_weights(distances: Array, least: float, rate: float, weights: Array) -> None:
    """Write q(z) proportional to exp(-rate distance(z)) into ``weights``; x-hat gets none.

    Shifting by the least distance keeps the largest weight at 1 before normalisation, so the
    weights cannot all underflow.
    """
    total = 0.0
    for z in range(weights.shape[0]):
        finite = distances[z] < math.inf  # 0 * inf would be no weight
        weights[z] = math.exp(-rate * (distances[z] - least)) if finite else 0.0
        total += weights[z]
    for z in range(weights.shape[0]):
        weights[z] /= total
