"""Linear Thompson sampling: play the best arm of a parameter drawn from the posterior.

Prior N(0, prior_std^2 I), Gaussian likelihood with the noise level of the problem.  A draw is
mean + v P^-1/2 eta, P the posterior precision and eta standard normal.

Guarantees: with v = 1, the Bayesian form, Bayesian regret O(d sqrt(n) log n) (Russo, Van Roy,
2014).  The frequentist forms inflate the draw for a bound against every theta, O(d^(3/2) sqrt(n))
up to logarithms: v = sqrt(9 d log(t / delta)) (Agrawal, Goyal, ICML 2013) and v =
sqrt(beta) / sigma (Abeille, Lazaric, AISTATS 2017).  Both papers fix delta; here it is
1/(t log t), the level of LinUCB.  Like optimism, no form is asymptotically optimal on the
end-of-optimism problem.

Cost per round: O(k d + d^2).  It learns from every round and never commits.  The posterior, with
its symbols, is that of :mod:`sightline.core.posterior.gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock, log_round
from sightline.core.confidence.rules import (
    Confidence,
    ConfidenceRule,
    LogDet,
    global_beta,
    valid_rule,
)
from sightline.core.estimation.least_squares import spanning_coordinates
from sightline.core.posterior.gaussian import (
    Posterior,
    absorb,
    best_under,
    draw_parameter,
    gaussian_posterior,
    log_det_ratio,
    posterior_mean,
)
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update
from sightline.validation import number, one_of

__all__ = ["ThompsonSampling", "ThompsonState"]

Array = NDArray[np.float64]

_INFLATION = {"none": 0, "agrawal-goyal": 1, "abeille-lazaric": 2}
_AGRAWAL_GOYAL, _ABEILLE_LAZARIC = _INFLATION["agrawal-goyal"], _INFLATION["abeille-lazaric"]
_LOG_2 = math.log(2.0)


class Inflation(NamedTuple):
    """How v is found."""

    rule: int
    value: float  # v itself, where it is fixed
    prior_std: float
    confidence: Confidence


class ThompsonState(NamedTuple):
    """Posterior over theta, and the last draw from it."""

    posterior: Posterior
    inflation: Inflation
    draw: Array  # workspace (d,)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Thompson sampling with a Gaussian prior and matched noise.

    Parameters
    ----------
    prior_std : float
        Standard deviation of every coordinate of theta before any data; the regulariser of least
        squares is sigma^2 / prior_std^2.  1 by default: theta of norm about one.
    inflation : {"none", "agrawal-goyal", "abeille-lazaric"} or float
        v, by which draws are wider than the posterior: 1 by default, the strongest in practice; by
        one of the two frequentist rules; or a fixed number.
    confidence : LogDet, LogLog or FixedBeta
        beta of ``"abeille-lazaric"``, at the level of LinUCB; unused otherwise.
    """

    prior_std: float = 1.0
    inflation: str | float = "none"
    confidence: ConfidenceRule = field(default_factory=LogDet)

    def __post_init__(self) -> None:
        number("prior_std", self.prior_std, above=0)
        if isinstance(self.inflation, str):
            one_of("inflation", self.inflation, _INFLATION)
        else:
            number("inflation", self.inflation, above=0)
        valid_rule(self.confidence)

    def start(self, actions: Array, noise_std: float) -> ThompsonState:
        """State before any data."""
        posterior = gaussian_posterior(actions, noise_std, self.prior_std)
        named = isinstance(self.inflation, str)
        # as everywhere, d is the dimension of the span of the arms
        d = spanning_coordinates(actions).shape[1]
        regulariser = (noise_std / self.prior_std) ** 2
        inflation = Inflation(
            rule=_INFLATION[str(self.inflation)] if named else _INFLATION["none"],
            value=1.0 if named else float(self.inflation),
            prior_std=float(self.prior_std),
            confidence=self.confidence.build(d, noise_std, regulariser),
        )
        return ThompsonState(posterior, inflation, np.zeros(actions.shape[1]))


@compiled
def _inflation(state: ThompsonState, clock: Clock) -> float:
    """v: how many posterior standard deviations a draw has."""
    inflation = state.inflation
    if inflation.rule == _AGRAWAL_GOYAL:
        u = max(log_round(clock), _LOG_2)  # delta = 1/(t log t), and t / delta = t^2 log t
        return 3.0 * math.sqrt(inflation.confidence.dimension * (2.0 * u + math.log(u)))
    if inflation.rule == _ABEILLE_LAZARIC:
        log_det = log_det_ratio(state.posterior, inflation.prior_std)
        beta = global_beta(inflation.confidence, log_det, log_round(clock))
        # the posterior covariance is sigma^2 V^-1, and beta has sigma^2 in it already
        return math.sqrt(beta / inflation.confidence.noise_variance)
    return inflation.value


@choose.register(ThompsonState)
@compiled
def choose_thompson(state: ThompsonState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Best arm of one posterior draw; its probability has no closed form."""
    theta = state.draw
    draw_parameter(state.posterior, _inflation(state, clock), theta, rng)
    return Choice(best_under(state.posterior, theta), math.nan, clock)


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
    posterior_mean(state.posterior, theta)
    return Evidence(best_under(state.posterior, theta), math.nan, math.nan, clock)
