"""Gap estimates: how much worse than the best an arm may be, given the confidence coefficient.

| symbol            | here               | meaning                                          |
|-------------------|--------------------|--------------------------------------------------|
| Delta-hat_s(x)    | ``gaps[x]``        | gap estimate                                     |
| delta_s           | ``gaps[x-hat]``    | estimation error                                 |
| delta_s^+         | ``lift_gaps``      | estimation error, at least sigma / sqrt(s)       |
| x_s^UCB           | ``optimistic_arm`` | arm with the largest upper confidence bound      |

The paper's estimate uses upper bounds on values.  Upper bounds on differences are tighter: once
every arm but x-hat is refuted at the level 1/s^2, delta_s is zero.  The information ratio is then
zero on x-hat alone, and IDS would play it for ever, although the exploitation test, at the level
1/(t log t), still asks for information on the others.  Difference gaps are therefore always
lifted to delta_s^+, the remedy that the paper proposes for best arms of norm zero: an informative
arm then keeps a probability of order 1/sqrt(s), rare enough for x-hat to be known far better
than it, as the optimal allocation wants, and often enough for exploration to end.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.linalg.vectors import first_largest, inner_products
from sightline.jit import compiled

__all__ = [
    "best_difference_gaps",
    "difference_gaps",
    "empirical_gaps",
    "lift_gaps",
    "optimistic_arm",
    "upper_bound",
    "value_gaps",
]

Array = NDArray[np.float64]


@compiled
def upper_bound(estimate: LeastSquares, beta: float, arm: int) -> float:
    """Upper confidence bound on the mean of one arm."""
    # max: a squared width may round to just below zero for an arm played very often
    optimism = math.sqrt(beta * max(estimate.squared_widths[arm], 0.0))
    bound: float = estimate.means[arm] + optimism
    return bound


@compiled
def optimistic_arm(estimate: LeastSquares, beta: float) -> int:
    """Arm with the largest upper confidence bound; the first one among equals."""
    bounds = estimate.products
    for x in range(bounds.shape[0]):
        bounds[x] = upper_bound(estimate, beta, x)
    return first_largest(bounds)


@compiled
def value_gaps(estimate: LeastSquares, beta: float, ucb_arm: int, gaps: Array) -> None:
    """Write max_z UCB(z) - <x, theta-hat> for every arm x: O(k)."""
    highest = upper_bound(estimate, beta, ucb_arm)
    for x in range(gaps.shape[0]):
        gaps[x] = highest - estimate.means[x]


@compiled
def difference_gaps(estimate: LeastSquares, beta: float, gaps: Array) -> None:
    """Write max_z <z - x, theta-hat> + sqrt(beta) |z - x| for every arm x: O(k^2 d)."""
    actions, inverse, w = estimate.actions, estimate.gram_inverse, estimate.direction
    products = estimate.products
    k, d = actions.shape
    for x in range(k):
        for i in range(d):
            total = 0.0
            for j in range(d):
                total += inverse[i, j] * actions[x, j]
            w[i] = total
        gaps[x] = 0.0
        inner_products(estimate.columns, w, products)
        for z in range(k):
            norm = estimate.squared_widths[x] + estimate.squared_widths[z] - 2.0 * products[z]
            bound = estimate.means[z] - estimate.means[x] + math.sqrt(beta * max(norm, 0.0))
            gaps[x] = max(gaps[x], bound)


@compiled
def best_difference_gaps(beta: float, separations: Array, shortfalls: Array, gaps: Array) -> None:
    """Write <x-hat - x, theta-hat> + delta_s, where delta_s bounds differences to x-hat: O(k)."""
    delta = 0.0
    for z in range(gaps.shape[0]):
        delta = max(delta, math.sqrt(beta * separations[z]) - shortfalls[z])
    for x in range(gaps.shape[0]):
        gaps[x] = delta + shortfalls[x]


@compiled
def empirical_gaps(shortfalls: Array, least: float, gaps: Array) -> None:
    """Write <x-hat - x, theta-hat>, but at least ``least``, for every arm x: O(k)."""
    for x in range(gaps.shape[0]):
        gaps[x] = max(shortfalls[x], least)


@compiled
def lift_gaps(gaps: Array, best: int, least: float) -> None:
    """Raise all gaps alike, so that delta_s is at least ``least``."""
    missing = least - gaps[best]
    if missing > 0.0:
        for x in range(gaps.shape[0]):
            gaps[x] += missing
