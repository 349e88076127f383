"""Gap estimates: how much worse than the best an arm may be, given the confidence coefficient.

| symbol            | here               | meaning                                          |
|-------------------|--------------------|--------------------------------------------------|
| Delta-hat_s(x)    | ``gaps[x]``        | gap estimate                                     |
| delta_s           | ``gaps[x-hat]``    | estimation error, the smallest gap estimate      |
| x_s^UCB           | returned           | arm with the largest upper confidence bound      |
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.least_squares import LeastSquares
from sightline.jit import compiled

__all__ = ["optimistic_arm", "upper_bound", "value_gaps"]

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
    best = 0
    highest = -math.inf
    for x in range(estimate.means.shape[0]):
        bound = upper_bound(estimate, beta, x)
        if bound > highest:
            best, highest = x, bound
    return best


@compiled
def value_gaps(estimate: LeastSquares, beta: float, gaps: Array) -> int:
    """Write max_z UCB(z) - <x, theta-hat> for every arm x into ``gaps``; return the UCB arm."""
    ucb_arm = optimistic_arm(estimate, beta)
    highest = upper_bound(estimate, beta, ucb_arm)
    for x in range(gaps.shape[0]):
        gaps[x] = highest - estimate.means[x]
    return ucb_arm
