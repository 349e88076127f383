"""Half-space alternatives over all of R^d, in closed form.

nu-hat(z) - theta-hat = -(<u_z, theta-hat> / |u_z|^2) V^-1 u_z with the norm taken in V^-1, at
squared distance <u_z, theta-hat>^2 / |u_z|^2 (paper, closed form of nu-hat).  An arm equal to
x-hat is no alternative: its distance is inf.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import (
    Comparison,
    Shifts,
    compare,
    compare_arms,
    locate_alternatives,
    write_shifts,
)
from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = ["HalfSpaces", "half_spaces"]

Array = NDArray[np.float64]


@persists()
class HalfSpaces(NamedTuple):
    """Half-space alternatives over all of R^d, with the arrays of ``comparison``."""

    separations: Array
    shortfalls: Array
    distances: Array


def half_spaces(k: int) -> HalfSpaces:
    """Arrays for k arms."""
    return HalfSpaces(np.zeros(k), np.zeros(k), np.zeros(k))


@compare.register(HalfSpaces)
@compiled
def _compare_halfspaces(alternatives: HalfSpaces, estimate: LeastSquares, best: int) -> Comparison:
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    compare_arms(estimate, best, separations, shortfalls)
    least = math.inf
    for z in range(separations.shape[0]):
        separation, shortfall = separations[z], shortfalls[z]
        distance = shortfall * shortfall / separation if separation > 0.0 else math.inf
        alternatives.distances[z] = distance
        least = min(least, distance)
    return Comparison(best, least)


@locate_alternatives.register(HalfSpaces)
@compiled
def _locate_halfspaces(
    alternatives: HalfSpaces, estimate: LeastSquares, comparison: Comparison
) -> float:
    return comparison.least


@write_shifts.register(HalfSpaces)
@compiled
def _write_halfspace_shifts(
    alternatives: HalfSpaces,
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
            differences[j, n] = features[j, comparison.best] - features[j, arms[n]]
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
