"""Linear Thompson sampling: play the best arm of a parameter drawn from the posterior.

Prior N(0, prior_std^2 I), Gaussian likelihood with the noise level of the problem.  A draw is
mean + v P^-1/2 eta, P the posterior precision and eta standard normal.

Guarantees: with v = 1, the Bayesian form, Bayesian regret O(d sqrt(n) log n) (Russo, Van Roy,
2014).  The frequentist forms inflate the draw for a bound against every theta, O(d^(3/2) sqrt(n))
up to logarithms: v = sqrt(9 d log(t / delta)) (Agrawal, Goyal, ICML 2013) and v =
sqrt(beta) / sigma (Abeille, Lazaric, AISTATS 2017).  Both papers fix delta; here it is
1/(t log t), the level of LinUCB.  Like optimism, no form is asymptotically optimal on the
end-of-optimism problem.  In a game, where what an arm shows is not what it pays, there is no
guarantee: regret grows linearly where arms that may be best show nothing that tells them apart.

Clicks and counts: draws are from the Laplace approximation N(theta-hat, v^2 H^-1), theta-hat being
the maximum of likelihood times prior and H the curvature there (Chapelle, Li, NeurIPS 2011, who
kept the diagonal of H only).  The best arm of a draw is that of its mean rewards.  The bounds above
are for normal rewards.

Cost per round: O(k d + p d^2), p numbers per observation, and with clicks or counts a few
steps of Newton's method, O(k d^2 + d^3) each.  It learns from every round and
never commits.  The posterior and its symbols: :mod:`sightline.core.posterior.gaussian`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, global_beta
from sightline.core.confidence_rules import LogDet, needs_norm_bound, valid_rule
from sightline.core.estimate import spanning_coordinates
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import none_if_unknown, persists
from sightline.core.posterior.gaussian import (
    Posterior,
    absorb,
    best_under,
    draw_parameter,
    log_det_ratio,
    posterior_for,
    posterior_mean,
    show_rows,
)
from sightline.jit import compiled
from sightline.policies.base import (
    EVERY_KIND,
    PROBABILITY_DRAWS,
    Choice,
    Evidence,
    Policy,
    Supports,
    register_policy,
    share_draws,
)
from sightline.validation import one_of, scale

_INFLATION = ("none", "agrawal-goyal", "abeille-lazaric")
_LOG_2 = math.log(2.0)


@dataclass(frozen=True)
class ThompsonSampling(Policy):
    """Thompson sampling with a Gaussian prior and matched noise.

    Parameters
    ----------
    prior_std : float, optional
        Standard deviation of every coordinate of theta before any data; the regulariser of least
        squares is sigma^2 / prior_std^2.  1 by default: theta of norm about one.  None is a wide
        prior in units of the noise, for rewards of any scale; files write ``"unknown"`` for it.
    inflation : {"none", "agrawal-goyal", "abeille-lazaric"} or float
        v, by which draws are wider than the posterior: 1 by default, the strongest in practice; by
        one of the two frequentist rules; or a fixed number.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        beta of ``"abeille-lazaric"``, at the level of LinUCB; unused otherwise.
    """

    prior_std: float | None = 1.0
    inflation: str | float = "none"
    confidence: ConfidenceRule = field(default_factory=LogDet)

    probability_by_draws = True

    def __post_init__(self) -> None:
        none_if_unknown(self, "prior_std")
        if self.prior_std is not None:
            scale("prior_std", self.prior_std)
        if isinstance(self.inflation, str):
            one_of("inflation", self.inflation, _INFLATION)
        else:
            scale("inflation", self.inflation)
        valid_rule(self.confidence)

    @property
    def supports(self) -> Supports:
        """What the policy can play beyond a plain bandit."""
        return replace(EVERY_KIND, unknown_noise=self.inflation != "abeille-lazaric")

    def start(self, model: Model) -> ThompsonState:
        """State before any data."""
        posterior = posterior_for(model, self.prior_std)
        return ThompsonState(posterior, self._inflation(model), np.zeros(model.rewards.shape[1]))

    def _inflation(self, model: Model) -> Inflation:
        """Rule for v, with the numbers of one problem."""
        if not isinstance(self.inflation, str):
            return Inflation(float(self.inflation))
        if self.inflation == "none":
            return Inflation(1.0)
        # d is the dimension of the span of the arms; those of a stream may span everything
        arms = model.rewards
        if model.stream:
            arms = np.eye(arms.shape[1])
        elif model.weights is None:
            arms = np.vstack([arms, model.observations.reshape(-1, arms.shape[1])])
        d = spanning_coordinates(arms).shape[1]
        if self.inflation == "agrawal-goyal":
            return Inflation(math.nan, dimension=float(d))
        if self.prior_std is None:
            raise ValueError('inflation="abeille-lazaric" needs prior_std, got None')
        regulariser = (model.noise_std / self.prior_std) ** 2
        needs_norm_bound(self.confidence, "ThompsonSampling with its confidence")
        confidence = self.confidence.build(d, model.noise_std, regulariser)
        return Inflation(
            math.nan,
            confidence=confidence,
            prior_std=float(self.prior_std),
            noise_variance=model.noise_std**2,
        )


class Inflation(NamedTuple):
    """Rule for v: fixed, Agrawal-Goyal if ``dimension`` is set, or by a confidence rule."""

    fixed: float
    dimension: float = 0.0
    confidence: Any = None
    prior_std: float = 1.0
    noise_variance: float = 1.0


@persists()
class ThompsonState(NamedTuple):
    """Posterior over theta, and the last draw from it."""

    posterior: Posterior
    inflation: Inflation
    draw: Array  # scratch (d,)


@compiled
def _choose(state: ThompsonState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play the best arm of one posterior draw; its probability has no closed form."""
    theta, rule = state.draw, state.inflation
    v = _inflation(rule, rule.confidence, state.posterior, clock)
    draw_parameter(state.posterior, v, theta, rng)
    return Choice(best_under(state.posterior, theta, offer), math.nan, clock)


@compiled
def _inflation(rule: Inflation, confidence: Any, posterior: Posterior, clock: Clock) -> float:
    """v: the number of posterior standard deviations of a draw."""
    if confidence is not None:  # v = sqrt(beta) / sigma
        log_det = log_det_ratio(posterior, rule.prior_std)
        beta = global_beta(confidence, log_det, log_round(clock))
        # the posterior covariance is sigma^2 V^-1, and beta has sigma^2 in it already
        return math.sqrt(beta / rule.noise_variance)
    if rule.dimension > 0.0:  # v = sqrt(9 d log(t / delta)), delta = 1/(t log t)
        u = max(log_round(clock), _LOG_2)  # t / delta = t^2 log t
        return 3.0 * math.sqrt(rule.dimension * (2.0 * u + math.log(u)))
    return rule.fixed


@compiled
def _probabilities(
    state: ThompsonState, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    """Estimate the action probabilities by many draws, with a standard error of at most 0.008.

    Every arm of the action set gets at least half a draw: an arm that was played is not impossible.
    """
    for x in range(probabilities.shape[0]):
        probabilities[x] = 0.0
    for _ in range(PROBABILITY_DRAWS):
        probabilities[_choose(state, clock, offer, rng).arm] += 1.0
    share_draws(offer, probabilities)


@compiled
def learn_posterior(state: Any, clock: Clock, arm: int, outcome: Any) -> None:
    """Posterior after one more observation."""
    absorb(state.posterior, arm, outcome)


@compiled
def _inspect(state: ThompsonState, clock: Clock, offer: Any) -> Evidence:
    """Report the best arm of the posterior mean, without a confidence level."""
    theta = state.draw
    posterior_mean(state.posterior, theta)
    return Evidence(best_under(state.posterior, theta, offer), math.nan, math.nan, clock)


@compiled
def show_posterior(state: Any, rows: Array, start: int, stop: int) -> None:
    """Put new arms into the table."""
    show_rows(state.posterior, rows, start, stop)


register_policy(
    ThompsonState,
    choose=_choose,
    update=learn_posterior,
    inspect=_inspect,
    probabilities=_probabilities,
    show=show_posterior,
)
