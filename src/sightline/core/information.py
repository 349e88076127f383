"""Information gains: what one more observation of an arm would tell about the alternatives.

| symbol                  | here                 | shape |
|-------------------------|----------------------|-------|
| I_s(x), I_s^UCB(x)      | ``gains[x]``         | (k,)  |
| q_s(z)                  | ``weights[z]``       | (k,)  |
| nu-hat(z) - theta-hat   | ``shift``            | (d,)  |
| beta^{1/2} norm of x in V^-1 | the optimistic term | scalar |
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives import alternative_shift
from sightline.core.least_squares import LeastSquares
from sightline.jit import compiled

__all__ = ["Workspace", "halfspace_gain", "halfspace_ucb_gain", "workspace"]

Array = NDArray[np.float64]

# An alternative of smaller weight adds less than the last bit: by Cauchy-Schwarz its term is at
# most q(z) |x|^2 (sqrt(distance) + sqrt(beta))^2, against at least |x|^2 beta in the whole gain
# (for I^UCB, in that of the UCB arm, which the ratio of any other arm has to beat).
NEGLIGIBLE_WEIGHT = 1e-20


class Workspace(NamedTuple):
    """What one exploration round computes, kept so that no round allocates."""

    distances: Array  # (k,)
    weights: Array  # (k,)
    gaps: Array  # (k,)
    gains: Array  # (k,)
    shift: Array  # (d,)
    form: Array  # (d, d)


def workspace(k: int, d: int) -> Workspace:
    """Arrays for k arms in d dimensions."""
    return Workspace(
        np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(k), np.zeros(d), np.zeros((d, d))
    )


@compiled
def _optimistic_term(estimate: LeastSquares, beta: float, x: int) -> float:
    return math.sqrt(beta * max(estimate.squared_widths[x], 0.0))


@compiled
def halfspace_gain(estimate: LeastSquares, best: int, beta: float, work: Workspace) -> None:
    """I_s(x) = 1/2 sum_z q(z) (|<shift(z), x>| + sqrt(beta) |x|)^2 for all x: O(k d) per z."""
    actions, gains, shift = estimate.actions, work.gains, work.shift
    k, d = actions.shape
    gains[:] = 0.0
    for z in range(k):
        if work.weights[z] < NEGLIGIBLE_WEIGHT:
            continue
        alternative_shift(estimate, best, z, work.distances[z], shift)
        for x in range(k):
            inner = 0.0
            for i in range(d):
                inner += actions[x, i] * shift[i]
            term = abs(inner) + _optimistic_term(estimate, beta, x)
            gains[x] += 0.5 * work.weights[z] * term * term


@compiled
def halfspace_ucb_gain(
    estimate: LeastSquares, best: int, beta: float, ucb_arm: int, work: Workspace
) -> None:
    """I_s^UCB(x): the optimistic term for the UCB arm only, so the rest is a quadratic form.

    With W = sum_z q(z) shift(z) shift(z)^T the gain of every other arm is x^T W x / 2: O(k d^2).
    """
    actions, gains, shift, form = estimate.actions, work.gains, work.shift, work.form
    k, d = actions.shape
    optimism = _optimistic_term(estimate, beta, ucb_arm)
    ucb_gain = 0.0
    form[:] = 0.0
    for z in range(k):
        if work.weights[z] < NEGLIGIBLE_WEIGHT:
            continue
        alternative_shift(estimate, best, z, work.distances[z], shift)
        inner = 0.0
        for i in range(d):
            inner += actions[ucb_arm, i] * shift[i]
            for j in range(d):
                form[i, j] += work.weights[z] * shift[i] * shift[j]
        ucb_gain += 0.5 * work.weights[z] * (abs(inner) + optimism) ** 2
    for x in range(k):
        total = 0.0
        for i in range(d):
            row = 0.0
            for j in range(d):
                row += form[i, j] * actions[x, j]
            total += actions[x, i] * row
        gains[x] = 0.5 * total
    gains[ucb_arm] = ucb_gain
