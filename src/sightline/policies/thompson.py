"""Linear Thompson sampling: play the best arm of a parameter drawn from the posterior.

Bayesian form: prior N(0, prior_std^2 I), Gaussian likelihood with the noise level of the
problem, no inflation.  Guarantees: Bayesian regret O(d sqrt(n) log n) (Russo, Van Roy, 2014);
like optimism it is not asymptotically optimal on the end-of-optimism problem.

Cost per round: O(k d + d^2).  It learns from every round and never commits.  The posterior, with
its symbols, is that of :mod:`sightline.core.posterior`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.cholesky import solve
from sightline.core.clock import Clock
from sightline.core.posterior import (
    Posterior,
    absorb,
    best_under,
    gaussian_posterior,
    whitened_mean,
)
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update
from sightline.validation import number

__all__ = ["ThompsonSampling", "ThompsonState"]

Array = NDArray[np.float64]


class ThompsonState(NamedTuple):
    """Posterior over theta, and the last draw from it."""

    posterior: Posterior
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
        posterior = gaussian_posterior(actions, noise_std, self.prior_std)
        return ThompsonState(posterior, np.zeros(actions.shape[1]))


@choose.register(ThompsonState)
@compiled
def choose_thompson(state: ThompsonState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Best arm of one posterior draw; its probability has no closed form."""
    theta = state.draw
    whitened_mean(state.posterior, theta)
    for i in range(theta.shape[0]):
        theta[i] += rng.standard_normal()
    solve(state.posterior.factor, theta)
    return Choice(best_under(state.posterior.actions, theta), math.nan, clock)


@update.register(ThompsonState)
@compiled
def update_thompson(state: ThompsonState, arm: int, reward: float) -> None:
    """Posterior after one more observation."""
    absorb(state.posterior, arm, reward)


@inspect.register(ThompsonState)
@compiled
def inspect_thompson(state: ThompsonState, clock: Clock) -> Evidence:
    """Best arm of the posterior mean; a posterior draw has no confidence level."""
    theta = state.draw
    whitened_mean(state.posterior, theta)
    solve(state.posterior.factor, theta)
    return Evidence(best_under(state.posterior.actions, theta), math.nan, math.nan, clock)
