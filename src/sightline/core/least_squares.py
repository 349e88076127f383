"""Regularised least squares over a fixed set of arms, updated one observation at a time.

| symbol            | here                   | shape  |
|-------------------|------------------------|--------|
| X                 | ``actions``            | (k, d) |
| V_s = lambda I + sum x x^T | ``gram`` (lower triangle) | (d, d) |
| V_s^-1            | ``gram_inverse``       | (d, d) |
| sum x y           | ``moment``             | (d,)   |
| theta-hat_s       | ``theta``              | (d,)   |
| <x, theta-hat_s>  | ``means``              | (k,)   |
| norm of x in V_s^-1, squared | ``squared_widths`` | (k,) |
| log det(V_s / lambda) | ``log_det[0]``     | (2,)   |
| s - 1             | ``counts[0]``          | (2,)   |

An update costs O(k d + d^2): with w = V^-1 x and q = 1 + <x, w>, the Sherman-Morrison formula
moves the mean of arm z by <z, w> r / q and its squared width by -<z, w>^2 / q, in one pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.cholesky import factorise, solve_lower, solve_upper
from sightline.jit import compiled

__all__ = ["LeastSquares", "best_arm", "least_squares", "observe", "refresh"]

Array = NDArray[np.float64]

# Subtracting c^2/q loses digits in proportion to how far widths have fallen, which the growth of
# log det measures; and rounding errors add up with the number of updates.  Either one triggers
# a recomputation from V, whose own sums only ever grow.
REFRESH_AFTER_UPDATES = 2048
REFRESH_AFTER_LOG_DET = 7.0


class LeastSquares(NamedTuple):
    """Estimates from all data so far; see the table above."""

    actions: Array
    regulariser: float
    gram: Array
    gram_inverse: Array
    moment: Array
    theta: Array
    means: Array
    squared_widths: Array
    log_det: Array  # now, and at the last refresh
    counts: NDArray[np.int64]  # observations, and of these since the last refresh
    direction: Array  # workspace (d,): w = V^-1 x
    factor: Array  # workspace (d, d): Cholesky factor of V


def least_squares(actions: Array, regulariser: float) -> LeastSquares:
    """Estimates before any data."""
    k, d = actions.shape
    state = LeastSquares(
        actions=actions,
        regulariser=regulariser,
        gram=regulariser * np.eye(d),
        gram_inverse=np.empty((d, d)),
        moment=np.zeros(d),
        theta=np.empty(d),
        means=np.empty(k),
        squared_widths=np.empty(k),
        log_det=np.empty(2),
        counts=np.zeros(2, dtype=np.int64),
        direction=np.empty(d),
        factor=np.zeros((d, d)),
    )
    refresh(state)
    return state


@compiled
def observe(state: LeastSquares, arm: int, reward: float) -> None:
    """Learn from one reward of one arm."""
    actions, w = state.actions, state.direction
    k, d = actions.shape
    x = actions[arm]
    q = 1.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += state.gram_inverse[i, j] * x[j]
        w[i] = total
        q += x[i] * total
    shrink = 1.0 / q
    step = (reward - state.means[arm]) * shrink
    for i in range(d):
        state.moment[i] += x[i] * reward
        state.theta[i] += w[i] * step
        for j in range(i + 1):
            state.gram[i, j] += x[i] * x[j]
            entry = state.gram_inverse[i, j] - w[i] * w[j] * shrink
            state.gram_inverse[i, j] = entry
            state.gram_inverse[j, i] = entry
    for z in range(k):
        c = 0.0
        for i in range(d):
            c += actions[z, i] * w[i]
        state.means[z] += c * step
        state.squared_widths[z] -= c * c * shrink
    state.log_det[0] += math.log(q)
    state.counts[0] += 1
    state.counts[1] += 1
    if (
        state.counts[1] >= REFRESH_AFTER_UPDATES
        or state.log_det[0] - state.log_det[1] > REFRESH_AFTER_LOG_DET
    ):
        refresh(state)


@compiled
def refresh(state: LeastSquares) -> None:
    """Recompute every estimate from V and sum x y through a Cholesky factor."""
    k, d = state.actions.shape
    factor, w = state.factor, state.direction
    factorise(state.gram, factor)
    log_det = -d * math.log(state.regulariser)
    for i in range(d):
        log_det += 2.0 * math.log(factor[i, i])
        state.theta[i] = state.moment[i]
        for j in range(d):
            w[j] = 1.0 if i == j else 0.0
        solve_lower(factor, w)
        solve_upper(factor, w)
        for j in range(i + 1):  # one triangle, mirrored: symmetric to the last bit
            state.gram_inverse[i, j] = w[j]
            state.gram_inverse[j, i] = w[j]
    solve_lower(factor, state.theta)
    solve_upper(factor, state.theta)
    for z in range(k):
        mean = 0.0
        for i in range(d):
            mean += state.actions[z, i] * state.theta[i]
            w[i] = state.actions[z, i]
        state.means[z] = mean
        solve_lower(factor, w)
        width = 0.0
        for i in range(d):
            width += w[i] * w[i]
        state.squared_widths[z] = width
    state.log_det[0] = log_det
    state.log_det[1] = log_det
    state.counts[1] = 0


@compiled
def best_arm(state: LeastSquares) -> int:
    """Empirically best arm x-hat; the first one among equals."""
    best = 0
    for z in range(1, state.means.shape[0]):
        if state.means[z] > state.means[best]:
            best = z
    return best
