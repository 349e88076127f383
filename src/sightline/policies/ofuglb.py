"""OFUGLB: optimism over a likelihood-ratio confidence set, for generalised linear bandits.

Lee, Yun, Jun (NeurIPS 2024).  With L_t the negative log-likelihood and S a bound on the norm of
theta, the set of all theta with norm at most S and

    L_t(theta) - min L_t <= log(1/delta) + d log max(e, 2 e S G_t / d)

holds the true one in all rounds at once, G_t being a Lipschitz constant of L_t on the ball.  The
policy plays the arm with the largest possible <x, theta>: a convex program per arm.

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
of powers of S; for logistic and Poisson rewards.  For the identity link the set is asymptotic.
Not asymptotically optimal, as no optimism is.  With normal rewards the set is an ellipsoid, and the
policy is LinUCB with another radius.

The largest <x, nu> is sought over C = {nu:  L(nu) <= r}, L the fall of the regularised log-
likelihood from theta-hat (``loss_at``).  C is convex.  For normal rewards it is an ellipsoid and
the answer <x, theta-hat> + sqrt(2 r) |x|.  For clicks and counts that is where the search begins.
Every iterate lies on the boundary of C, by a search in one dimension, along which L grows.  From
there the linear function is maximised over the parabola of a Taylor expansion of L: with the
gradient g and the curvature H of L at nu,

    step = tau H^-1 x - H^-1 g,    tau^2 = <g, H^-1 g> / <x, H^-1 x>.

By Cauchy-Schwarz it promises sqrt(<g, H^-1 g> <x, H^-1 x>) - <x, H^-1 g> >= 0, and nothing only
where g is a multiple of x: at the maximum.  It converges as Newton's method does, in two or three
steps of O(k d^2 + d^3).

Cost per round: the fit, and for each arm on offer two or three steps of O(k d^2 + d^3).  It learns
from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import first_largest_offered, is_offered
from sightline.core.alternatives import HalfSpaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, global_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares, LikelihoodFit
from sightline.core.least_squares import noise_variance, reward_of
from sightline.core.likelihood import divergence, slope
from sightline.core.likelihood_alternatives import (
    LikelihoodHalfSpaces,
    expand_loss,
    half_spaces_for,
)
from sightline.core.linalg import (
    Array,
    inner_product,
    inner_products,
    norm,
    solve,
    solve_transposed,
)
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy, Supports, begin, learn, register_policy, report
from sightline.validation import scale

_LOG_2 = math.log(2.0)
_MOST_STEPS = 30
# Promised gain relative to the gain so far: the maximum is then right to six digits.
_LAST_PROMISE = 1e-6
_LEAST_FRACTION = 1e-3
# The radius is met to this relative precision.
_ON_BOUNDARY, _MOST_TRIES = 1e-7, 60


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
    randomises = False

    def __post_init__(self) -> None:
        scale("norm_bound", self.norm_bound)
        valid_regulariser(self.regulariser, self._reported())

    def _reported(self) -> ConfidenceRule:
        """Rule of what is reported about the best arm."""
        if self.confidence is None:
            return LogDet(norm_bound=float(self.norm_bound))
        return self.confidence

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


class PublishedRadius(NamedTuple):
    """log(1/delta) + d log max(e, 2 e S G_t / d), and what the Lagrangian of the ball adds."""

    norm_bound: float
    lengths: Array  # (k,): norms of the arms


@persists()
class LikelihoodSet(NamedTuple):
    """Workspace of a search."""

    rewards: Array  # (k,): mean rewards at theta-hat
    predictors: Array  # (k,): <x, shift>
    shift: Array  # (d,): nu - theta-hat
    trial: Array  # (d,): the next shift
    parameter: Array  # (d,): nu
    descent: Array  # (d,)
    image: Array  # (d,): R^-T x


def likelihood_set(k: int, d: int) -> LikelihoodSet:
    """Workspace for k arms in d dimensions."""
    return LikelihoodSet(np.zeros(k), np.zeros(k), *(np.zeros(d) for _ in range(5)))


@persists()
class OFUGLBState(NamedTuple):
    """Estimates from all rounds."""

    estimate: LeastSquares
    confidence: Any  # of the radius, or for reports only
    alternatives: HalfSpaces | LikelihoodHalfSpaces  # for reports only
    published: PublishedRadius | None  # else the radius is beta/2 of the confidence rule
    search: LikelihoodSet
    bounds: Array  # (k,): scratch


@compiled
def _choose(state: OFUGLBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Arm whose <x, theta> can be largest, and so its mean reward."""
    estimate, bounds = state.estimate, state.bounds
    fit = estimate.arms.observations.fit
    begin_set(state.search, estimate)
    radius = _radius(state.published, state, log_round(clock))
    for x in range(bounds.shape[0]):
        if is_offered(offer, x):
            bounds[x] = highest_predictor(fit, state.search, estimate, x, radius)
    return Choice(first_largest_offered(offer, bounds), 1.0, clock)


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
def begin_set(part: LikelihoodSet, estimate: LeastSquares) -> None:
    """Prepare for searches at the present estimate."""
    fit = estimate.arms.observations.fit
    for x in range(part.rewards.shape[0]):
        part.rewards[x] = reward_of(fit, estimate.arms.means[x])


@compiled
def highest_predictor(
    fit: LikelihoodFit | None, part: LikelihoodSet, estimate: LeastSquares, arm: int, radius: float
) -> float:
    """Find the largest <x, nu> for one arm x, after :func:`begin_set`."""
    if fit is not None:
        return _highest_by_search(part, estimate, arm, radius)
    beta = 2.0 * radius * noise_variance(estimate)
    optimism = math.sqrt(beta * max(estimate.arms.squared_widths[arm], 0.0))
    highest: float = estimate.arms.means[arm] + optimism
    return highest


@compiled
def _highest_by_search(
    part: LikelihoodSet, estimate: LeastSquares, arm: int, radius: float
) -> float:
    arms, shift, trial, step = estimate.arms, part.shift, part.trial, part.descent
    row, d = arms.rewards[arm], shift.shape[0]
    mean: float = arms.means[arm]
    if arms.squared_widths[arm] <= 0.0 or radius <= 0.0:  # the arm is known perfectly
        return mean
    for i in range(d):
        shift[i] = inner_product(estimate.learned.gram_inverse[i], row, d)
        shift[i] *= math.sqrt(2.0 * radius / arms.squared_widths[arm])
    s = _to_boundary(part, estimate, shift, radius)
    for i in range(d):
        shift[i] *= s
    value = inner_product(row, shift, d)
    for _ in range(_MOST_STEPS):
        if _write_step(part, estimate, row) <= _LAST_PROMISE * value:
            break
        fraction, reached = 1.0, value
        while fraction > _LEAST_FRACTION:
            for i in range(d):
                trial[i] = shift[i] + fraction * step[i]
            s = _to_boundary(part, estimate, trial, radius)
            reached = s * inner_product(row, trial, d)
            if reached > value:
                break
            fraction *= 0.5
        if reached <= value:  # rounding errors leave no gain
            break
        for i in range(d):
            shift[i] = s * trial[i]
        value = reached
    return mean + value


@compiled
def _write_step(part: LikelihoodSet, estimate: LeastSquares, row: Array) -> float:
    """Write the step from the boundary; return what it promises."""
    nu, step, image, d = part.parameter, part.descent, part.image, row.shape[0]
    for i in range(d):
        nu[i] = estimate.learned.theta[i] + part.shift[i]
        image[i] = row[i]
    expand_loss(estimate, part.rewards, nu, step)
    factor = estimate.scratch.factor
    solve_transposed(factor, image)
    across = inner_product(image, image, d)
    along = inner_product(step, step, d)
    promise = math.sqrt(along * across) + inner_product(step, image, d)
    tau = math.sqrt(along / across)
    for i in range(d):
        step[i] += tau * image[i]
    solve(factor, step)
    return promise


@compiled
def _to_boundary(part: LikelihoodSet, estimate: LeastSquares, shift: Array, radius: float) -> float:
    """Find s with L(theta-hat + s shift) = r: Newton's method on the root of L, within bounds."""
    inner_products(estimate.arms.columns, shift, part.predictors)
    squared = inner_product(shift, shift, shift.shape[0])
    low, high, s = 0.0, math.inf, 1.0
    for _ in range(_MOST_TRIES):
        fall, growth = _along(part, estimate, squared, s)
        if abs(fall - radius) <= _ON_BOUNDARY * radius:
            break
        if fall > radius:
            high = s
        else:
            low = s
        after = s - 2.0 * (fall - math.sqrt(radius * fall)) / growth if growth > 0.0 else math.inf
        if not low < after < high:
            after = 2.0 * s if high == math.inf else 0.5 * (low + high)
        if after == s:
            break
        s = after
    return s


@compiled
def loss_at(
    fit: LikelihoodFit | None, part: LikelihoodSet, estimate: LeastSquares, shift: Array
) -> float:
    """L at theta-hat + shift."""
    arms, squared = estimate.arms, inner_product(shift, shift, shift.shape[0])
    inner_products(arms.columns, shift, part.predictors)
    if fit is not None:
        return _along(part, estimate, squared, 1.0)[0]
    total = 0.5 * estimate.regulariser * squared
    for x in range(part.predictors.shape[0]):
        total += 0.5 * arms.pulls[x] * part.predictors[x] * part.predictors[x]
    return total / noise_variance(estimate)


@compiled
def _along(
    part: LikelihoodSet, estimate: LeastSquares, squared: float, s: float
) -> tuple[float, float]:
    """Compute L at theta-hat + s shift, and its derivative in s."""
    arms, likelihood = estimate.arms, estimate.arms.observations.fit.likelihood
    fall = 0.5 * estimate.regulariser * s * s * squared
    growth = estimate.regulariser * s * squared
    for x in range(arms.pulls.shape[0]):
        n = arms.pulls[x]
        if n > 0.0:
            u, step = arms.means[x], part.predictors[x]
            fall += n * divergence(likelihood, u, s * step)
            growth += n * step * slope(likelihood, part.rewards[x], u + s * step)
    return fall, growth


register_policy(OFUGLBState, choose=_choose, update=learn, inspect=report)
