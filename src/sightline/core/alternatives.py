"""Alternatives: the parameter nearest to theta-hat under which another arm would be best.

| symbol                         | here              | shape |
|--------------------------------|-------------------|-------|
| x-hat                          | ``best``          | int   |
| u_z = x-hat - z                |                   | (d,)  |
| norm of nu-hat(z) - theta-hat in V, squared | ``distances[z]`` | (k,)  |
| nu-hat(z) - theta-hat          | ``alternative_shift`` | (d,) |
| q(z)                           | ``weights[z]``    | (k,)  |

Over all of R^d the half-space alternative has the closed form (paper, closed form of nu-hat)
nu-hat(z) - theta-hat = -(gap(z) / |u_z|^2) V^-1 u_z with the norm taken in V^-1, at squared
distance gap(z)^2 / |u_z|^2.  An arm equal to x-hat is no alternative: its distance is inf.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.least_squares import LeastSquares
from sightline.jit import compiled

__all__ = ["alternative_shift", "halfspace_distances", "mixing_weights"]

Array = NDArray[np.float64]

# Below this fraction of its terms, |u|^2 = |x-hat|^2 - 2<x-hat, z> + |z|^2 has lost three digits:
# it and gap(z) = <x-hat, theta-hat> - <z, theta-hat> are then computed from u itself.
CANCELLATION = 1e-3


@compiled
def _close_distance(estimate: LeastSquares, best: int, z: int) -> float:
    """Squared distance for an arm close to x-hat; inf for x-hat itself and its twins."""
    actions, inverse = estimate.actions, estimate.gram_inverse
    d = actions.shape[1]
    norm = 0.0
    gap = 0.0
    for i in range(d):
        u_i = actions[best, i] - actions[z, i]
        gap += u_i * estimate.theta[i]
        for j in range(d):
            norm += u_i * inverse[i, j] * (actions[best, j] - actions[z, j])
    gap = max(gap, 0.0)  # x-hat is the best but for rounding
    return gap * gap / norm if norm > 0.0 else math.inf


@compiled
def halfspace_distances(estimate: LeastSquares, best: int, distances: Array) -> float:
    """Write the squared distance to every half-space into ``distances``; return the least one."""
    actions, inverse, w = estimate.actions, estimate.gram_inverse, estimate.direction
    k, d = actions.shape
    own = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[i, j] * actions[best, j]
        w[i] = total
        own += actions[best, i] * total
    least = math.inf
    for z in range(k):
        cross = 0.0
        for i in range(d):
            cross += actions[z, i] * w[i]
        other = estimate.squared_widths[z]
        norm = own - 2.0 * cross + other
        if norm > CANCELLATION * (own + other):
            gap = estimate.means[best] - estimate.means[z]
            distances[z] = gap * gap / norm
        else:
            distances[z] = _close_distance(estimate, best, z)
        least = min(least, distances[z])
    return least


@compiled
def alternative_shift(
    estimate: LeastSquares, best: int, z: int, distance: float, shift: Array
) -> None:
    """Write nu-hat(z) - theta-hat of the half-space alternative into ``shift``."""
    actions, inverse = estimate.actions, estimate.gram_inverse
    d = actions.shape[1]
    norm = 0.0
    for i in range(d):
        row = 0.0
        for j in range(d):
            row += inverse[i, j] * (actions[best, j] - actions[z, j])
        shift[i] = row
        norm += (actions[best, i] - actions[z, i]) * row
    scale = math.sqrt(distance / norm)  # gap(z) / |u|^2
    for i in range(d):
        shift[i] *= -scale


@compiled
def mixing_weights(distances: Array, least: float, rate: float, weights: Array) -> None:
    """Write q(z) proportional to exp(-rate distance(z)) into ``weights``; x-hat gets none.

    Shifting by the least distance keeps the largest weight at 1 before normalisation, so the
    weights cannot all underflow.
    """
    total = 0.0
    for z in range(weights.shape[0]):
        weights[z] = math.exp(-rate * (distances[z] - least))
        total += weights[z]
    for z in range(weights.shape[0]):
        weights[z] /= total
