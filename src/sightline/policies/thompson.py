"""Linear Thompson sampling: play the best arm of a parameter drawn from the posterior.

Bayesian form: prior N(0, prior_std^2 I), Gaussian likelihood with the noise level of the
problem, no inflation.  Guarantees: Bayesian regret O(d sqrt(n) log n) (Russo, Van Roy, 2014);
like optimism it is not asymptotically optimal on the end-of-optimism problem.

Cost per round: O(k d + d^2).  It learns from every round and never commits.

| symbol                          | here       | shape  |
|---------------------------------|------------|--------|
| P = I / prior_std^2 + sum x x^T / sigma^2 = R^T R | ``factor`` = R | (d, d) |
| b = sum x y / sigma^2           | ``moment`` | (d,)   |

The posterior is N(P^-1 b, P^-1), so R^-1 (R^-T b + standard normal) is a draw from it: two
triangular solves, and no inverse that could drift.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.cholesky import rank_one_update, solve, solve_transposed
from sightline.core.clock import Clock
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update
from sightline.validation import number

__all__ = ["ThompsonSampling", "ThompsonState"]

Array = NDArray[np.float64]


class ThompsonState(NamedTuple):
    """Gaussian posterior over theta."""

    actions: Array
    noise_std: float
    factor: Array
    moment: Array
    draw: Array  # workspace (d,)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Thompson sampling with a Gaussian prior and matched noise.

    Parameters
    ----------
    prior_std : float
        Standard deviation of every coordinate of theta before any data.
    """

    prior_std: float = 1.0

    def __post_init__(self) -> None:
        number("prior_std", self.prior_std, above=0)

    def start(self, actions: Array, noise_std: float) -> ThompsonState:
        """State before any data."""
        d = actions.shape[1]
        return ThompsonState(
            actions, noise_std, np.eye(d) / self.prior_std, np.zeros(d), np.zeros(d)
        )


@compiled
def _best_under(actions: Array, theta: Array) -> int:
    best = 0
    highest = -math.inf
    for x in range(actions.shape[0]):
        mean = 0.0
        for i in range(actions.shape[1]):
            mean += actions[x, i] * theta[i]
        if mean > highest:
            best, highest = x, mean
    return best


@compiled
def _whitened_mean(state: ThompsonState) -> Array:
    """R^-T b, in the workspace."""
    for i in range(state.draw.shape[0]):
        state.draw[i] = state.moment[i]
    solve_transposed(state.factor, state.draw)
    return state.draw


@choose.register(ThompsonState)
@compiled
def choose_thompson(state: ThompsonState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Best arm of one posterior draw; its probability has no closed form."""
    theta = _whitened_mean(state)
    for i in range(theta.shape[0]):
        theta[i] += rng.standard_normal()
    solve(state.factor, theta)
    return Choice(_best_under(state.actions, theta), math.nan, clock)


@update.register(ThompsonState)
@compiled
def update_thompson(state: ThompsonState, arm: int, reward: float) -> None:
    """Posterior after one more observation."""
    scaled = state.draw
    for i in range(scaled.shape[0]):
        scaled[i] = state.actions[arm, i] / state.noise_std
        state.moment[i] += scaled[i] * (reward / state.noise_std)
    rank_one_update(state.factor, scaled)


@inspect.register(ThompsonState)
@compiled
def inspect_thompson(state: ThompsonState, clock: Clock) -> Evidence:
    """Best arm of the posterior mean; a posterior draw has no confidence level."""
    theta = _whitened_mean(state)
    solve(state.factor, theta)
    return Evidence(_best_under(state.actions, theta), math.nan, math.nan, clock)
