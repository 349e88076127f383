"""GLM-UCB: optimism on mean rewards of generalised linear and logistic bandits.

Filippi, Cappe, Garivier, Szepesvari (NeurIPS 2010).  Play the largest

    mu(<x, theta-hat>) + rho(t) |x|,    the norm in V^-1, V = lambda I + sum x x^T,

theta-hat being the maximum of the likelihood.  V counts all rewards alike, however informative they
are, so rho must allow for the worst: for rare clicks it is far too wide, and LinUCB, with the
curvature at theta-hat in its ellipsoid, is better.

- ``"asymptotic"``, the practical form: rho(t) = sigma_max sqrt(2 log t), sigma_max^2 being the
  largest variance of a reward that the bound on the norm of theta allows.
- ``"proven"``: the self-normalised coefficient, times k_mu / c_mu, the largest slope of mu over the
  smallest within that bound, as later papers state it.  Rewards must be bounded or normal.

Guarantees: with the proven width regret O((k_mu / c_mu) d sqrt(n) log n), in which c_mu falls
exponentially with the bound on the norm; proven where theta-hat obeys that bound, and the
projection that the paper makes where it does not is left out.  The paper has no regulariser, and
plays d independent arms first.  With normal rewards the mean is <x, theta-hat> itself.

Cost per round: that of the fit, and O(k d + d^2) for V.  It learns from every round and never
commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import first_largest_offered
from sightline.core.alternatives import HalfSpaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import global_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares, observe, reward_of, show_arms
from sightline.core.likelihood import LikelihoodKind, kind_of, limits_of, mean_slope, variance_of
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.jit import callable_for, compiled
from sightline.policies.base import EVERY_KIND, Choice, Policy, begin, register_policy, report
from sightline.validation import one_of, scale

_WIDTHS = ("asymptotic", "proven")
_HALF_RANGE = 0.5  # the sub-Gaussian parameter of rewards in [0, 1]


@dataclass(frozen=True)
class GLMUCB(Policy):
    """Upper bounds on mean rewards of a generalised linear model.

    Parameters
    ----------
    norm_bound : float
        S, a bound on the norm of theta.
    width : {"asymptotic", "proven"}
        rho(t).
    regulariser : float or "matched"
        lambda; ``"matched"``, the default, is sigma^2 / S^2.
    """

    norm_bound: float = 1.0
    width: str = "asymptotic"
    regulariser: float | str = "matched"

    supports = replace(EVERY_KIND, games=False, unknown_noise=False)
    randomises = False

    def __post_init__(self) -> None:
        scale("norm_bound", self.norm_bound)
        one_of("width", self.width, _WIDTHS)
        valid_regulariser(self.regulariser, self._rule())

    def _rule(self) -> LogDet:
        return LogDet(norm_bound=float(self.norm_bound))

    def start(self, model: Model) -> GLMUCBState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self._rule())
        alike = replace(model, likelihood=None)
        return GLMUCBState(
            estimate=estimate,
            design=least_squares(alike, estimate.regulariser),
            width=self._width(model, estimate),
            confidence=confidence,
            alternatives=half_spaces_for(estimate),
        )

    def _width(self, model: Model, estimate: LeastSquares) -> Width:
        d = estimate.arms.rewards.shape[1]
        sigma, ratio = model.noise_std, 1.0
        if model.likelihood is not None:
            # features of a stream are unknown beforehand: their norm is taken to be at most 1
            lengths = np.sqrt((model.rewards**2).sum(axis=1))
            sigma, ratio = _worst(model.likelihood, self.norm_bound * (lengths.max() or 1.0))
        if self.width == "asymptotic":
            return Width(sigma, ratio)
        if model.likelihood is not None and kind_of(model.likelihood) in (
            LikelihoodKind.POISSON,
            LikelihoodKind.OWN,
        ):
            raise ValueError('width="proven" needs rewards that are bounded or normal, not counts')
        if model.likelihood is not None:
            sigma = _HALF_RANGE
        return Width(sigma, ratio, self._rule().build(d, sigma, estimate.regulariser))


def _worst(likelihood: Any, reach: float) -> tuple[float, float]:
    """Return sigma_max and k_mu / c_mu, for predictors up to a size."""
    least, most = -reach, reach
    low, high = limits_of(likelihood)
    if math.isfinite(low):
        least, most = low + likelihood.edge, high - likelihood.edge
    predictors = np.linspace(least, most, 401)
    slopes = [callable_for(mean_slope, likelihood)(likelihood, u) for u in predictors]
    variances = [callable_for(variance_of, likelihood)(likelihood, u) for u in predictors]
    return math.sqrt(max(variances)), max(slopes) / min(slopes)


class Width(NamedTuple):
    """rho(t): asymptotic, or proven where there is a confidence rule."""

    sigma: float  # sigma_max
    ratio: float  # k_mu / c_mu
    confidence: Any = None


class GLMUCBState(NamedTuple):
    """Estimates from all rounds, and V."""

    estimate: LeastSquares
    design: LeastSquares  # V, as for normal rewards
    width: Width
    confidence: Any  # for reports only
    alternatives: HalfSpaces | LikelihoodHalfSpaces  # for reports only


@compiled
def _choose(state: GLMUCBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Largest upper bound on the mean reward."""
    arms, widths = state.estimate.arms, state.design.arms.squared_widths
    bounds = state.estimate.scratch.products
    fit = arms.observations.fit
    rho = _rho(state.width, state.width.confidence, state.design, log_round(clock))
    for x in range(bounds.shape[0]):
        bounds[x] = reward_of(fit, arms.means[x]) + rho * math.sqrt(max(widths[x], 0.0))
    return Choice(first_largest_offered(offer, bounds), 1.0, clock)


@compiled
def _rho(width: Width, confidence: Any, design: LeastSquares, log_t: float) -> float:
    if confidence is not None:
        beta = global_beta(confidence, design.learned.log_det[0], log_t)
        return width.ratio * math.sqrt(beta)
    return width.sigma * math.sqrt(2.0 * log_t)


@compiled
def _update(state: GLMUCBState, clock: Clock, arm: int, outcome: float) -> None:
    observe(state.estimate, arm, outcome)
    observe(state.design, arm, outcome)


@compiled
def _show(state: GLMUCBState, rows: Array, start: int, stop: int) -> None:
    show_arms(state.estimate, rows, start, stop)
    show_arms(state.design, rows, start, stop)


register_policy(GLMUCBState, choose=_choose, update=_update, inspect=report, show=_show)
