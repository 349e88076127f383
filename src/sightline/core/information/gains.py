"""Information gains: what one more observation of an arm would tell.

| symbol                  | here                 | shape |
|-------------------------|----------------------|-------|
| I_s(x), I_s^UCB(x)      | ``gains[x]``         | (k,)  |
| q_s(z)                  | ``weights[z]``       | (k,)  |
| nu-hat(z) - theta-hat   | ``shifts``           | (d, m) |
| beta^{1/2} norm of x in V^-1 | the optimistic term | scalar |

The first two gains weigh alternatives, of whatever kind: half-spaces or cells.  The others are
those of earlier frequentist IDS (Kirschner, Krause, COLT 2018; Kirschner, Lattimore, Krause, COLT
2020): how much an observation shrinks log det V^-1, or the width in one direction.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.half_spaces import Shifts, shifts, write_shifts
from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.linalg.vectors import inner_product, inner_products
from sightline.jit import compiled

__all__ = [
    "Workspace",
    "directional_gain",
    "log_det_gain",
    "optimistic_gain",
    "quadratic_gain",
    "widest_plausible_difference",
    "workspace",
]

Array = NDArray[np.float64]

# An alternative of smaller weight adds less than the last bit: by Cauchy-Schwarz its term is at
# most q(z) |x|^2 (sqrt(distance) + sqrt(beta))^2, against at least |x|^2 beta in the whole gain
# (for I^UCB, in that of the UCB arm, which the ratio of any other arm has to beat).
NEGLIGIBLE_WEIGHT = 1e-20


class Workspace(NamedTuple):
    """What one exploration round computes, kept so that no round allocates."""

    weights: Array  # (k,)
    gaps: Array  # (k,)
    gains: Array  # (k,)
    optimism: Array  # (k,)
    shift: Array  # (d,)
    form: Array  # (d, d)
    shifts: Shifts


def workspace(k: int, d: int) -> Workspace:
    """Arrays for k arms in d dimensions."""
    return Workspace(
        weights=np.zeros(k),
        gaps=np.zeros(k),
        gains=np.zeros(k),
        optimism=np.zeros(k),
        shift=np.zeros(d),
        form=np.zeros((d, d)),
        shifts=shifts(k, d),
    )


@compiled
def _next_weighty(work: Workspace, start: int) -> tuple[int, int]:
    """List a block of alternatives of more than negligible weight; return how many, and the rest.

    The rest begins at the arm that is returned.
    """
    arms, count, k = work.shifts.arms, 0, work.weights.shape[0]
    for z in range(np.uint64(start), np.uint64(k)):  # unsigned: no index counts from the end
        if count == arms.shape[0]:
            return count, z
        if work.weights[z] >= NEGLIGIBLE_WEIGHT:
            arms[count] = z
            count += 1
    return count, k


@compiled
def optimistic_gain(
    alternatives: Any, estimate: LeastSquares, best: int, beta: float, work: Workspace
) -> None:
    """I(x) = 1/2 sum_z q(z) (|<shift(z), x>| + sqrt(beta) |x|)^2 for all x: O(k d) per z."""
    gains, products, optimism = work.gains, estimate.products, work.optimism
    arms, columns = work.shifts.arms, work.shifts.columns
    k = gains.shape[0]
    for x in range(k):
        gains[x] = 0.0
        optimism[x] = math.sqrt(beta * max(estimate.squared_widths[x], 0.0))
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(alternatives, estimate, best, count, work.shifts)
        for n in range(count):
            inner_products(estimate.columns, columns[:, n], products)
            half = 0.5 * work.weights[arms[n]]
            for x in range(k):
                term = abs(products[x]) + optimism[x]
                gains[x] += half * term * term


@compiled
def quadratic_gain(
    alternatives: Any,
    estimate: LeastSquares,
    best: int,
    optimist: int,
    optimism: float,
    work: Workspace,
) -> None:
    """I(x) = 1/2 sum_z q(z) (|<shift(z), x>| + optimism [x = optimist])^2 for all x: O(k d^2).

    With W = sum_z q(z) shift(z) shift(z)^T the gain of every other arm is x^T W x / 2.
    """
    gains, form, products = work.gains, work.form, estimate.products
    arms, columns = work.shifts.arms, work.shifts.columns
    k, d = estimate.actions.shape
    for i in range(d):
        for j in range(i, d):
            form[i, j] = 0.0
    optimistic_gain = 0.0
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(alternatives, estimate, best, count, work.shifts)
        for n in range(count):
            inner = 0.0
            for i in range(d):
                inner += estimate.actions[optimist, i] * columns[i, n]
            term = abs(inner) + optimism
            optimistic_gain += 0.5 * work.weights[arms[n]] * term * term
        for i in range(d):
            for n in range(count):
                products[n] = work.weights[arms[n]] * columns[i, n]
            for j in range(i, d):
                form[i, j] += inner_product(products, columns[j], count)
    for x in range(k):
        gains[x] = 0.0
    for i in range(d):
        for j in range(i):
            form[i, j] = form[j, i]
        inner_products(estimate.columns, form[i], products)
        for x in range(k):
            gains[x] += 0.5 * estimate.columns[i, x] * products[x]
    gains[optimist] = optimistic_gain


@compiled
def log_det_gain(estimate: LeastSquares, gains: Array) -> None:
    """Write log(1 + |x|^2) in V^-1, by which log det V would grow: O(k)."""
    for x in range(gains.shape[0]):
        gains[x] = math.log1p(max(estimate.squared_widths[x], 0.0))


@compiled
def directional_gain(estimate: LeastSquares, direction: Array, gains: Array) -> None:
    """Write by how much the log of the squared width in one direction would fall: O(k d)."""
    inverse, w, products = estimate.gram_inverse, estimate.direction, estimate.products
    d = direction.shape[0]
    norm = 0.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += inverse[i, j] * direction[j]
        w[i] = total
        norm += direction[i] * total
    inner_products(estimate.columns, w, products)
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        if norm > 0.0:
            width = max(estimate.squared_widths[x], 0.0)
            share = products[x] * products[x] / (norm * (1.0 + width))
            gains[x] = -math.log1p(-min(share, 1.0 - 1e-16))


@compiled
def widest_plausible_difference(
    estimate: LeastSquares,
    best: int,
    beta: float,
    separations: Array,
    shortfalls: Array,
    direction: Array,
) -> None:
    """Write the widest difference between x-hat and an arm that may be better, or nearly is.

    Where confidence at the level of ``beta`` has refuted every other arm, the one nearest to
    refuting x-hat is taken: without a direction there would be nothing to learn, and exploration
    at the level of the exploitation test would never end.
    """
    widest, nearest = best, best
    width, ratio = 0.0, math.inf
    for z in range(separations.shape[0]):
        if separations[z] <= 0.0:
            continue
        distance = shortfalls[z] * shortfalls[z] / separations[z]
        if distance < ratio:
            nearest, ratio = z, distance
        if distance <= beta and separations[z] > width:
            widest, width = z, separations[z]
    z = widest if widest != best else nearest
    for i in range(direction.shape[0]):
        direction[i] = estimate.actions[best, i] - estimate.actions[z, i]
