"""Joint distribution of the value of an arm and the cell, on an even grid of values.

| symbol                              | here       | shape         |
|-------------------------------------|------------|---------------|
| <x, theta> - <x, mean>              | u          |               |
| P(u near (i - half) step, x* = z)   | ``table``  | (c, >= 2 half + 2) |

The variance of u, returned beside the table, is that of the distribution itself; on the grid it may
differ.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.linalg import norm
from sightline.core.posterior.cells import Angles, Cells, normal_cdf, normal_pdf, sector
from sightline.core.posterior.samples import WIDTH, Samples
from sightline.jit import compiled, generic

Array = NDArray[np.float64]
Singles = NDArray[np.float32]

_SLICES = 256  # lines across the posterior, for the exact distribution
# A line through the apex of all sectors tells nothing about them; its neighbours do.
_APEX = 1e-12


@generic
def joint_distribution(
    source: object, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """Write the table for arm x; return the variance of u."""
    raise TypeError(f"no joint distribution is known to a {type(source).__name__}")


@compiled
def _add(table: Array, z: int, position: float, weight: float) -> None:
    """Divide a weight between the two nearest nodes, which keeps its mean."""
    node = int(position)
    share = position - node
    table[z, node] += weight * (1.0 - share)
    table[z, node + 1] += weight * share


@compiled
def _multiply(eta: Singles, direction: Singles, products: Singles) -> None:
    """Inner products of a direction with every sample of a block, (d, width)."""
    a, b = direction[0], direction[1]
    first, second = eta[0], eta[1]
    for j in range(WIDTH):
        products[j] = a * first[j] + b * second[j]
    for i in range(2, eta.shape[0], 2):
        a, b = direction[i], direction[i + 1]
        first, second = eta[i], eta[i + 1]
        for j in range(WIDTH):
            products[j] += a * first[j] + b * second[j]


@joint_distribution.register(Samples)
@compiled
def sampled_distribution(
    source: Samples, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """One entry for every sample and one for its mirror image: O(M d)."""
    _clear(table)
    d = cells.shifts.shape[1]
    length = norm(cells.whitened[x])
    for i in range(d):
        source.direction[i] = cells.whitened[x, i] / length
    weight = 1.0 / source.samples
    square = 0.0
    for block in range(source.radii.shape[0]):
        products = source.scores[0]
        _multiply(source.eta[block], source.direction, products)
        known = block < source.scored[0]
        for j in range(min(WIDTH, source.samples // 2 - block * WIDTH)):  # not the padding
            one, other = int(source.labels[block, 0, j]), int(source.labels[block, 1, j])
            u = length * float(products[j])  # not in float32
            square += u * u
            _add(table, one if known else leader, half + u / step, weight)
            _add(table, other if known else leader, half - u / step, weight)
    if source.samples % 2 == 1:
        table[leader, half] += weight
    return 2.0 * weight * square


@compiled
def _clear(table: Array) -> None:
    for z in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[z, i] = 0.0


@compiled
def _interval(low: float, high: float) -> float:
    """Probability of low < standard normal < high, precise in both tails."""
    if low > 0.0:
        return normal_cdf(-low) - normal_cdf(-high)
    return normal_cdf(high) - normal_cdf(low)


@compiled
def _visible(start: float, width: float) -> tuple[float, float]:
    """Part of a sector in front: tangents of its ends, equal if there is none."""
    low = max(start, -0.5 * math.pi)
    high = min(start + width, 0.5 * math.pi)
    if low >= high:  # or it comes round from behind
        low = -0.5 * math.pi
        high = min(start + width - 2.0 * math.pi, 0.5 * math.pi)
    return (math.tan(low), math.tan(high)) if low < high else (0.0, 0.0)


@joint_distribution.register(Angles)
@compiled
def angular_distribution(
    source: Angles, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """In whitened coordinates u fixes a line, and a sector cuts an interval out of it."""
    _clear(table)
    arm = cells.whitened[x]
    length = norm(arm)
    direction = math.atan2(arm[1], arm[0])
    along = cells.means[x] / length
    across = (arm[0] * cells.centre[1] - arm[1] * cells.centre[0]) / length
    for z in range(table.shape[0]):
        start, width = sector(source.rays, z, direction)
        low, high = _visible(start, width)
        start, width = sector(source.rays, z, direction + math.pi)
        back_low, back_high = _visible(start, width)
        for i in range(_SLICES):
            u = source.reach * ((2 * i + 1) / _SLICES - 1.0)
            at = along + u
            if abs(at) < _APEX:
                at = _APEX
            if at > 0.0:
                inside = _interval(at * low - across, at * high - across)
            else:
                inside = _interval(at * back_high - across, at * back_low - across)
            weight = 2.0 * source.reach / _SLICES * normal_pdf(u) * inside
            _add(table, z, half + u * length / step, weight)
    return length * length
