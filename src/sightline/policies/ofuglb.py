"""OFUGLB: optimism over a likelihood-ratio confidence set, for generalised linear bandits.

Lee, Yun, Jun (NeurIPS 2024).  With L_t the negative log-likelihood and S a bound on the norm of
theta, the set of all theta with norm at most S and

    L_t(theta) - min L_t <= log(1/delta) + d log max(e, 2 e S G_t / d)

holds the true one in all rounds at once, G_t being a Lipschitz constant of L_t on the ball.  The
arm is played whose <x, theta> can be largest: a convex programme per arm
(:mod:`sightline.core.likelihood_set`).

Two things differ from the paper.  There delta is fixed; here it is 1/(t log t), the level of
LinUCB.  And the ball enters by its Lagrangian: the set is that of all theta with

    L_t(theta) + lambda/2 (|theta|^2 - S^2) <= L_t(theta-hat) + radius,

theta-hat being the regularised fit, moved into the ball if it lies outside.  It contains the
paper's, is larger by at most lambda S^2 in the likelihood where the fit lies inside, and has one
constraint in place of two.  G_t is found from counts and sums per arm.

With a ``confidence`` rule the radius is beta/2, for which
:mod:`sightline.core.likelihood_fit` has the proof: it grows with half of
log det H, and not with d log t.

Guarantees: regret of order d sqrt(n) log n, whose leading term is free of exp(S) and, for clicks,
of powers of S; for the logistic and the Poisson law.  For the identity link the set is asymptotic.
Not asymptotically optimal, as no optimism is.  With normal rewards the set is an ellipsoid, and the
policy is LinUCB with another radius.

Cost per round: the fit, and for each arm on offer two or three steps of O(k d^2 + d^3).  It learns
from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import first_largest_offered, is_offered
from sightline.core.alternatives import HalfSpaces, LikelihoodHalfSpaces, half_spaces_for
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import (
    ConfidenceRule,
    LogDet,
    global_beta,
    valid_regulariser,
    valid_rule,
)
from sightline.core.estimate import LeastSquares, LikelihoodFit, noise_variance
from sightline.core.likelihood import slope
from sightline.core.likelihood_set import (
    LikelihoodSet,
    begin_set,
    highest_predictor,
    likelihood_set,
    loss_at,
)
from sightline.core.linalg import norm
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy, Supports, begin, learn, register_policy, report
from sightline.validation import scale

Array = NDArray[np.float64]

_LOG_2 = math.log(2.0)


class PublishedRadius(NamedTuple):
    """log(1/delta) + d log max(e, 2 e S G_t / d), and what the Lagrangian of the ball adds."""

    norm_bound: float
    lengths: Array  # (k,): norms of the arms


@persists()
class OFUGLBState(NamedTuple):
    """Estimates from all rounds."""

    estimate: LeastSquares
    confidence: Any  # of the radius, or for reports only
    alternatives: HalfSpaces | LikelihoodHalfSpaces  # for reports only
    published: PublishedRadius | None  # else the radius is beta/2 of the confidence rule
    search: LikelihoodSet
    bounds: Array  # (k,): scratch


@dataclass(frozen=True)
class OFUGLB(Policy):
    """Optimism over a likelihood-ratio confidence set.

    Parameters
    ----------
    norm_bound : float
        S, a bound on the norm of theta.
    confidence : ConfidenceRule, optional
        Rule whose beta/2 is the radius of the set, such as ``LogDet(norm_bound=S)``; by default the
        radius of the paper.
    regulariser : float or "matched"
        lambda; ``"matched"``, the default, is sigma^2 / S^2.
    """

    norm_bound: float = 1.0
    confidence: ConfidenceRule | None = None
    regulariser: float | str = "matched"

    supports = Supports(
        masks=True, contexts=True, masks_in_contexts=True, likelihoods=True, delays=True
    )

    def __post_init__(self) -> None:
        scale("norm_bound", self.norm_bound)
        if self.confidence is not None:
            valid_rule(self.confidence)
        valid_regulariser(self.regulariser, self._reported())

    def _reported(self) -> ConfidenceRule:
        """Rule of what is reported about the best arm."""
        return self.confidence or LogDet(norm_bound=float(self.norm_bound))

    @property
    def randomises(self) -> bool:
        """Whether choices are drawn at random given the state and the round."""
        return False

    def start(self, model: Model) -> OFUGLBState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self._reported())
        arms = estimate.arms.rewards
        published = None
        if self.confidence is None:
            lengths = np.sqrt((arms**2).sum(axis=1))
            published = PublishedRadius(float(self.norm_bound), lengths)
        return OFUGLBState(
            estimate=estimate,
            confidence=confidence,
            alternatives=half_spaces_for(estimate),
            published=published,
            search=likelihood_set(*arms.shape),
            bounds=np.zeros(len(arms)),
        )


@compiled
def _radius(published: PublishedRadius | None, state: OFUGLBState, log_t: float) -> float:
    """Radius of the set, as a fall of the log-likelihood from theta-hat."""
    if published is not None:
        return _published_radius(published, state, log_t)
    log_det = state.estimate.learned.log_det[0]
    beta: float = global_beta(state.confidence, log_det, log_t)
    variance: float = noise_variance(state.estimate)
    return 0.5 * beta / variance


@compiled
def _published_radius(rule: PublishedRadius, state: OFUGLBState, log_t: float) -> float:
    estimate, search = state.estimate, state.search
    theta, d = estimate.learned.theta, estimate.learned.theta.shape[0]
    arms, bound = estimate.arms, rule.norm_bound
    fit = arms.observations.fit
    steepest = 0.0
    for x in range(arms.pulls.shape[0]):
        n, length = arms.pulls[x], rule.lengths[x]
        if n > 0.0:  # the cost is convex: it is steepest at an end
            low = _slope(fit, estimate, arms.sums[x] / n, -bound * length)
            high = _slope(fit, estimate, arms.sums[x] / n, bound * length)
            steepest += n * length * max(abs(low), abs(high))
    u = max(log_t, _LOG_2)
    radius: float = u + math.log(u) + d * math.log(max(math.e, 2.0 * math.e * bound * steepest / d))
    # the likelihood within the ball is at least that of theta-hat, moved into it
    length = norm(theta)
    part = min(1.0, bound / length) if length > 0.0 else 1.0
    for i in range(d):
        search.shift[i] = (part - 1.0) * theta[i]
    ball = bound * bound - part * part * length * length
    radius += 0.5 * estimate.regulariser / noise_variance(estimate) * max(ball, 0.0)
    if part < 1.0:
        radius += loss_at(fit, search, estimate, search.shift)
    return radius


@compiled
def _slope(fit: LikelihoodFit | None, estimate: LeastSquares, m: float, v: float) -> float:
    """Differentiate the cost of a reward in v."""
    if fit is None:
        return (v - m) / noise_variance(estimate)
    derivative: float = slope(fit.likelihood, m, v)
    return derivative


@compiled
def choose_ofuglb(state: OFUGLBState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    """Arm whose <x, theta> can be largest, and so its mean reward."""
    estimate, bounds = state.estimate, state.bounds
    fit = estimate.arms.observations.fit
    begin_set(state.search, estimate)
    radius = _radius(state.published, state, log_round(clock))
    for x in range(bounds.shape[0]):
        if is_offered(offer, x):
            bounds[x] = highest_predictor(fit, state.search, estimate, x, radius)
    return Choice(first_largest_offered(offer, bounds), 1.0, clock)


register_policy(OFUGLBState, choose=choose_ofuglb, update=learn, inspect=report)
