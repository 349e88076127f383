"""Confidence ellipsoid of the parameter, and effects of options, valid at all rounds at once.

| symbol                                    | here                   | shape  |
|-------------------------------------------|------------------------|--------|
| V = lambda I + sum y y^T = R^T R          | ``factor`` = R         | (d, d) |
| R^-T sum y r = R theta-hat                | ``whitened``           | (d,)   |
| lambda, sigma, S                          | ``regulariser``, ``noise_std``, ``norm_bound`` | |
| sqrt(beta)                                | :func:`radius`         | number |

With probability at least 1 - delta, at every round |R (theta - theta-hat)| <= sqrt(beta), where

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S

(Abbasi-Yadkori, Pal, Szepesvari, 2011).  It assumes linear means, noise that is sub-Gaussian with
parameter sigma given everything before, a parameter of norm at most S, and that whether and when a
reward is told does not depend on the reward.  How options were chosen does not matter.

If sigma or S is unknown, beta is that of :mod:`sightline.core.confidence`: without S it holds for
every theta, without sigma for normal noise.

For clicks and counts V is the curvature of the log-likelihood at its maximum, sigma is 1, and theta
is in log odds or logarithms of means.  The ellipsoid is then asymptotic.  With the identity link
the curvature is that of rates between 0 and 1 (``_factor_inside``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, adapt_to, global_beta
from sightline.core.confidence_rules import LogDet, beta_at, ridge
from sightline.core.estimate import Learned, LeastSquares, Noise, estimated_noise, known_noise
from sightline.core.least_squares import least_squares, refresh
from sightline.core.likelihood import LikelihoodKind, kind_of
from sightline.core.model import Model, bandit_model, common_noise, valid_noise_std
from sightline.core.persistence import State
from sightline.core.posterior.gaussian import Posterior
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.base import Evidence, Policy, inspect
from sightline.policies.lin_ucb import LinUCB
from sightline.sessions.options import Options
from sightline.sessions.rewards import Scale
from sightline.validation import finite_array, number

Array = NDArray[np.float64]
# Successes and failures added to those of every option.  Likelihood-ratio intervals are still up to
# 12 % longer for beta up to 20, and 24 % at 40.
_ADDED = 10.0
# Ascent of a sum of means: its starting points, steps, and the step of a numerical derivative.
_STARTS, _MOST_STEPS, _STEP = 4, 100, 1e-5


class Residuals(NamedTuple):
    """Data on an unknown noise level: residual sum of squares, and number of outcomes."""

    errors: float
    outcomes: int


class Ellipsoid(NamedTuple):
    """Confidence ellipsoid of the parameter; see the table above."""

    factor: Array
    whitened: Array
    regulariser: float
    noise_std: float  # a guess, where it is not known
    norm_bound: float | None
    residuals: Residuals | None = None  # where the noise level is not known


def ellipsoid_of(
    features: Array,
    pulls: ArrayLike,
    totals: ArrayLike,
    noise_std: float | ArrayLike,
    norm_bound: float | None = 1.0,
    squares: float | None = None,
    regulariser: float | None = None,
) -> Ellipsoid:
    """Make the ellipsoid from number (pulls) and sum (totals) of the rewards of each option.

    S is ``norm_bound``, None if it is unknown, and lambda is sigma^2 / S^2 unless ``regulariser``
    is given.  If only the ratios of noise levels are known, ``squares`` is the sum of squared
    deviations of rewards from the mean of their option, divided by the squared noise level relative
    to the largest.
    """
    k, d = features.shape
    count = finite_array("pulls", pulls, (k,))
    total = finite_array("totals", totals, (k,))
    if (count < 0.0).any():
        raise ValueError(f"pulls must be >= 0, got {count.min():g}")
    rule = LogDet(norm_bound=valid_bound(norm_bound))
    levels = valid_noise_std(noise_std, k)
    sigma = common_noise(levels)
    if regulariser is None:
        regulariser = ridge("matched", rule, bandit_model(features, levels))
    played = count > 0.0
    weights = np.sqrt(count) * (sigma / levels)
    targets = np.divide(total * (sigma / levels), np.sqrt(count), where=played, out=np.zeros(k))
    rows = np.vstack(
        [
            np.hstack([math.sqrt(regulariser) * np.eye(d), np.zeros((d, 1))]),
            np.column_stack([weights[:, None] * features, targets])[played],
        ]
    )
    # a QR decomposition loses half as many digits as factorising the sum of squares
    triangle: Array = np.asarray(np.linalg.qr(rows, mode="r"))
    factor, whitened = triangle[:d, :d], triangle[:d, d]
    residuals = None
    if squares is not None:  # variance within options, and lack of fit of the features
        lack = float(triangle[d, d]) if len(triangle) > d else 0.0
        residuals = Residuals(squares + lack * lack, int(count.sum()))
    return Ellipsoid(factor, whitened, regulariser, sigma, rule.norm_bound, residuals)


def valid_bound(norm_bound: object) -> float | None:
    """Return S > 0, or None if it is unknown."""
    return None if norm_bound is None else number("norm_bound", norm_bound, above=0)


def valid_delta(delta: object) -> float:
    """Return a probability in the open interval (0, 1)."""
    level = number("delta", delta, above=0)
    if level >= 1.0:
        raise ValueError(f"delta must be below 1, got {delta!r}")
    return level


def ellipsoid_by_likelihood(
    features: Array,
    likelihood: Any,
    pulls: ArrayLike,
    totals: ArrayLike,
    norm_bound: float | None,
    regulariser: float,
) -> Ellipsoid:
    """Make the ellipsoid of clicks or counts, from their number and sum per option."""
    fit = least_squares(bandit_model(features, likelihood=likelihood), regulariser, reduce=False)
    fit.arms.pulls[:] = pulls
    fit.arms.sums[:] = totals
    fit.learned.rounds[0] = int(fit.arms.pulls.sum())
    callable_for(refresh, fit)(fit)  # the kernel of the policy: the same fit, bit for bit
    factor = np.triu(fit.scratch.factor)
    if kind_of(likelihood) == LikelihoodKind.IDENTITY:
        factor = _factor_inside(features, fit.arms.pulls, fit.arms.sums, fit.regulariser)
    whitened = factor @ fit.learned.theta
    return Ellipsoid(factor, whitened, fit.regulariser, 1.0, valid_bound(norm_bound))


def _factor_inside(features: Array, pulls: Array, totals: Array, regulariser: float) -> Array:
    """Compute R with variances of rates that are strictly between 0 and 1.

    An option without a success would have variance 0 and an interval of length 0.  As in Agresti
    and Coull (1998), some successes and failures are added.
    """
    rates = (totals + _ADDED) / (pulls + 2.0 * _ADDED)
    weights = np.sqrt(pulls / (rates * (1.0 - rates)))
    rows = np.vstack(
        [math.sqrt(regulariser) * np.eye(features.shape[1]), weights[:, None] * features]
    )
    return np.asarray(np.linalg.qr(rows, mode="r"), np.float64)


def ellipsoid_in(
    state: State,
    features: Array,
    noise_std: float | ArrayLike,
    norm_bound: float | None = 1.0,
    outcomes: int = 0,
) -> Ellipsoid | None:
    """Make the ellipsoid from the data that a policy keeps, in the coordinates of the features.

    These are the rewards that it has learned from: IDS leaves out exploitation rounds.  If a policy
    discards data at times that it chooses, such as E4 and ExploreThenAllocate, the guarantee holds
    after each of these times, not for all rounds at once.  For policies with a Gaussian posterior
    lambda is sigma^2 over the prior variance, and in a stream it is that of the policy.
    ``outcomes`` is the number of outcomes behind a posterior with an unknown noise level.  None if
    the policy keeps neither least squares nor a posterior.
    """
    levels, bound = valid_noise_std(noise_std, len(features)), valid_bound(norm_bound)
    sigma = common_noise(levels)
    for part in parts_of(state):
        stream = part.arms.observations.stream if isinstance(part, LeastSquares) else None
        if stream is not None:
            outcomes = int(part.learned.rounds[0])
            factor, target, ridge_ = np.triu(stream.factor), stream.target.copy(), part.regulariser
            return Ellipsoid(factor, target, ridge_, sigma, bound, _residuals(part.noise, outcomes))
        if isinstance(part, LeastSquares):  # in other coordinates, perhaps; use its data
            arms = part.arms
            totals = arms.sums * (levels / sigma)
            return ellipsoid_of(features, arms.pulls, totals, noise_std, bound)
        if isinstance(part, Posterior):
            factor, whitened = sigma * part.factor, sigma * part.whitened
            lambda_ = sigma**2 * part.precision
            return Ellipsoid(
                factor, whitened, lambda_, sigma, bound, _residuals(part.noise, outcomes)
            )
    return None


def _residuals(noise: Noise, outcomes: int) -> Residuals | None:
    return None if noise.known else Residuals(float(noise.errors[0]), outcomes)


def log_det(ellipsoid: Ellipsoid) -> float:
    """Compute log det(V / lambda)."""
    diagonal = np.abs(np.diagonal(ellipsoid.factor)) / math.sqrt(ellipsoid.regulariser)
    return max(2.0 * float(np.log(diagonal).sum()), 0.0)


def radius(ellipsoid: Ellipsoid, log_inverse_delta: float) -> float:
    """Compute sqrt(beta), the radius in the norm of V."""
    if ellipsoid.norm_bound is None or ellipsoid.residuals is not None:
        confidence = _confidence(ellipsoid, LogDet(norm_bound=ellipsoid.norm_bound))
        return math.sqrt(interpreted(beta_at)(confidence, log_det(ellipsoid), log_inverse_delta))
    noise = ellipsoid.noise_std * math.sqrt(2.0 * log_inverse_delta + log_det(ellipsoid))
    return noise + math.sqrt(ellipsoid.regulariser) * ellipsoid.norm_bound


def least_norm(ellipsoid: Ellipsoid, log_inverse_delta: float) -> float:
    """Compute the norm of the shortest parameter in the ellipsoid, to a relative error of 1e-3.

    If it is above S, the data contradict S.  With V = Q diag(v) Q^T that parameter has the
    coordinates theta-hat mu v / (1 + mu v), where mu puts it on the boundary.
    """
    _, singular, basis = np.linalg.svd(ellipsoid.factor)
    v, centre = singular**2, basis @ parameter(ellipsoid)
    reach = radius(ellipsoid, log_inverse_delta)
    if math.sqrt(v @ centre**2) <= reach:
        return 0.0
    low, high = -60.0, 60.0  # log mu, for v around one
    scale = float(v.max())
    for _ in range(40):
        middle = 0.5 * (low + high)
        share = 1.0 / (1.0 + math.exp(middle) * v / scale)
        low, high = (
            (middle, high) if math.sqrt(v @ (centre * share) ** 2) > reach else (low, middle)
        )
    return float(np.linalg.norm(centre * (1.0 - 1.0 / (1.0 + math.exp(high) * v / scale))))


def _confidence(ellipsoid: Ellipsoid, rule: ConfidenceRule) -> Any:
    """Coefficient of a rule, for the noise and norm of these data."""
    unknown = ellipsoid.residuals
    build = rule.build if unknown is None else rule.build_without_noise
    confidence = build(len(ellipsoid.whitened), ellipsoid.noise_std, ellipsoid.regulariser)
    inverse = np.linalg.inv(ellipsoid.factor)
    learned = Learned(
        gram_inverse=inverse @ inverse.T,
        theta=inverse @ ellipsoid.whitened,
        log_det=np.array([log_det(ellipsoid)]),
        rounds=np.array([0 if unknown is None else unknown.outcomes]),
        since_refresh=np.zeros(1, dtype=np.int64),
    )
    noise = known_noise(ellipsoid.noise_std**2)
    if unknown is not None:
        noise = estimated_noise(ellipsoid.noise_std, 0.0, unknown.errors, unknown.outcomes)
    adapt_to(confidence, _Estimate(learned, noise, ellipsoid.regulariser))
    return confidence


class _Estimate(NamedTuple):
    """The fields of least squares that a confidence rule uses."""

    learned: Learned
    noise: Noise
    regulariser: float


def whiten(ellipsoid: Ellipsoid, vectors: Array) -> Array:
    """Compute R^-T c for every row c; its length is the norm of c in V^-1."""
    solved: Array = np.asarray(np.linalg.solve(ellipsoid.factor.T, vectors.T), np.float64)
    return solved.T


def evidence_of(
    ellipsoid: Ellipsoid, features: Array, clock: Clock, rule: ConfidenceRule
) -> Evidence:
    """Compare m_s with beta_{s, t log t} / 2, as policies with a confidence rule do."""
    best, evidence = _nearest(ellipsoid, features)
    # interpreted: a compiled kernel would not pay
    confidence = _confidence(ellipsoid, rule)
    beta = interpreted(global_beta)(confidence, log_det(ellipsoid), log_round(clock))
    return Evidence(best, evidence, 0.5 * float(beta), clock)


def evidence_at(ellipsoid: Ellipsoid, features: Array, clock: Clock, delta: float) -> Evidence:
    """Compare m_s with beta_delta / 2: evidence above means that no other option is best.

    With probability at least 1 - delta, this is right at all rounds at once.
    """
    level = valid_delta(delta)
    best, evidence = _nearest(ellipsoid, features)
    return Evidence(best, evidence, 0.5 * radius(ellipsoid, -math.log(level)) ** 2, clock)


def _nearest(ellipsoid: Ellipsoid, features: Array) -> tuple[int, float]:
    """Best option, and half the squared distance to a parameter with another best option."""
    whitened = whiten(ellipsoid, features)
    means = whitened @ ellipsoid.whitened
    best = int(means.argmax())
    gaps = means[best] - means
    squared = ((whitened[best] - whitened) ** 2).sum(axis=1)
    # options that equal the best one are no alternatives
    twins = squared <= 1e-24 * (whitened**2).sum(axis=1).max()
    distances = np.divide(gaps**2, squared, where=~twins, out=np.full(len(means), np.inf))
    return best, 0.5 * float(distances.min())


def parameter(ellipsoid: Ellipsoid) -> Array:
    """Compute theta-hat."""
    return np.asarray(np.linalg.solve(ellipsoid.factor, ellipsoid.whitened), np.float64)


# Relative part of a contrast outside the span of the features that counts as zero.
_NEGLIGIBLE = 1e-9


class Effect(NamedTuple):
    """An effect with an interval.

    Attributes
    ----------
    term : str
        A factor, several factors as in ``"picture:text"``, or a column of the features.
    level : str
        Level or levels of the factors, as in ``"large:short"``.
    effect : float
        Estimate; nan if no data about these options could identify it.
    lower, upper : float
        Ends of the interval; infinite if no data about these options could identify the effect.
    """

    term: str
    level: str
    effect: float
    lower: float
    upper: float


def effects(
    options: Options, ellipsoid: Ellipsoid, delta: float = 0.05, scale: Scale | None = None
) -> list[Effect]:
    """Estimate every contrast of the options, with intervals that hold at all rounds at once.

    The probability that any interval of any contrast at any round misses the truth is at most
    delta: it is valid to look after every reward, stop at any time, and read off the largest
    effect.  The price is width: after 20,000 rewards, with four features, intervals are about four
    times as wide as those for a single look at a single effect.

    ``scale`` has the coordinates and units of the ellipsoid, by default those of features and
    rewards.
    """
    vectors = np.array([contrast.vector for contrast in options.contrasts])
    if len(vectors) == 0:
        return []
    # future options of a stream can have any features
    rows = np.eye(vectors.shape[1]) if options.stream else options.seen
    values, lower, upper = intervals(rows, vectors, ellipsoid, delta, scale)
    return [
        Effect(contrast.term, contrast.level, float(value), float(low), float(high))
        for contrast, value, low, high in zip(options.contrasts, values, lower, upper, strict=True)
    ]


def intervals(
    rows: Array,
    vectors: Array,
    ellipsoid: Ellipsoid,
    delta: float,
    scale: Scale | None = None,
    constant: float | Array | None = None,
) -> tuple[Array, Array, Array]:
    """Estimate <c, theta> of every row c of the vectors, with the guarantee of :func:`effects`.

    A vector outside the span of the observation rows cannot be identified: its estimate is nan, and
    its interval infinite.  ``constant`` is the share of the constant in each vector, or an array of
    shares: 1 for means of options, 0 for their differences.  By default it follows from the
    features.
    """
    level = valid_delta(delta)
    if scale is None:
        d = vectors.shape[1]
        scale = Scale(0.0, 1.0, 0.0, np.zeros(d), np.eye(d))
    shares = scale.shares(vectors) if constant is None else np.full(len(vectors), constant)
    whitened = whiten(ellipsoid, scale.contrasts(vectors, shares))
    distance = scale.unit * radius(ellipsoid, -math.log(level))
    values = np.where(identified(rows, vectors), whitened @ ellipsoid.whitened, np.nan)
    values = scale.unit * values + scale.origin * shares
    reach = np.full(len(values), np.inf)
    if math.isfinite(distance):  # 0 times infinity would be nan
        known = ~np.isnan(values)
        reach[known] = distance * np.sqrt((whitened[known] ** 2).sum(axis=1))
    centres = np.nan_to_num(values)
    return values, centres - reach, centres + reach


def limits_of_sum(
    predictors: Array,
    directions: Array,
    weights: Array,
    mean: Callable[[Array], Array],
    range_of_means: tuple[float, float],
) -> tuple[float, float]:
    """Find the least and the largest sum_j w_j mean(u_j) over an ellipsoid.

    u = ``predictors`` + ``directions`` z for |z| <= 1.  A predictor that is nan is not identified:
    its mean can be anything in the range.  The ends are found by ascent along the sphere from
    several starting points, and never exceed what the terms can reach one by one.
    """
    known = np.isfinite(predictors) & np.isfinite(directions).all(axis=1)
    ends = []
    for sign in (-1.0, 1.0):
        w = sign * weights
        free = np.where(w > 0.0, *range_of_means[::-1])[~known & (w != 0.0)]
        largest = float(w[~known & (w != 0.0)] @ free)
        if known.any():
            largest += _largest_sum(predictors[known], directions[known], w[known], mean)
        ends.append(sign * largest)
    return ends[0], ends[1]


def _largest_sum(
    predictors: Array, directions: Array, weights: Array, mean: Callable[[Array], Array]
) -> float:
    """Find the largest sum of weighted means over a ball."""

    def value(z: Array) -> float:
        return float(weights @ mean(predictors + directions @ z))

    def gradient(z: Array) -> Array:
        u = predictors + directions @ z
        slopes = (mean(u + _STEP) - mean(u - _STEP)) / (2.0 * _STEP)
        return np.asarray((weights * slopes) @ directions)

    heaviest = np.argsort(-abs(weights))[:_STARTS]
    starts = [gradient(np.zeros(directions.shape[1]))]
    starts += [weights[j] * directions[j] for j in heaviest]
    best = value(np.zeros(directions.shape[1]))
    for start in starts:
        length = float(np.linalg.norm(start))
        if length == 0.0:
            continue
        z = start / length
        found = value(z)
        for _ in range(_MOST_STEPS):
            ahead = gradient(z)
            length = float(np.linalg.norm(ahead))
            if length == 0.0:
                break
            step = ahead / length
            for _ in range(10):  # half the way to the tangent's maximum, until it is uphill
                other = value(step)
                if other > found:
                    break
                step = step + z
                step /= float(np.linalg.norm(step)) or 1.0
            if other <= found + 1e-9 * abs(found):
                break
            z, found = step, other
        best = max(best, found)
    lengths = np.sqrt((directions**2).sum(axis=1))
    return min(best, float(weights @ mean(predictors + np.sign(weights) * lengths)))


def identified(features: Array, contrasts: Array) -> NDArray[np.bool_]:
    """Whether each contrast lies in the span of the features, so that data can identify it."""
    triangle = np.linalg.qr(features, mode="r")
    _, singular, basis = np.linalg.svd(triangle, full_matrices=False)
    negligible = max(features.shape) * float(np.finfo(np.float64).eps)
    kept = basis[singular > singular[0] * negligible]
    outside = contrasts - (contrasts @ kept.T) @ kept
    lengths = np.sqrt((contrasts**2).sum(axis=1))
    inside: NDArray[np.bool_] = np.sqrt((outside**2).sum(axis=1)) <= _NEGLIGIBLE * lengths
    return inside


def rule_of(policy: Policy) -> ConfidenceRule:
    """Return the confidence rule of a policy, ``LogDet()`` if it has none."""
    rule = getattr(policy, "confidence", None)
    return rule if isinstance(rule, ConfidenceRule) else LogDet()


def bound_of(rule: ConfidenceRule) -> float | None:
    """Return S of a rule for an ellipsoid, where it must be positive; None if unknown."""
    return None if rule.norm_bound is None else rule.norm_bound or 1.0


def evidence_by_likelihood(
    model: Model,
    pulls: NDArray[np.float64],
    sums: NDArray[np.float64],
    clock: Clock,
    rule: ConfidenceRule,
) -> Evidence:
    """Return the evidence of LinUCB on clicks or counts: a likelihood ratio and its threshold."""
    state: Any = LinUCB(rule, regulariser="matched").start(model)
    state.estimate.arms.pulls[:], state.estimate.arms.sums[:] = pulls, sums
    state.estimate.learned.rounds[0] = int(pulls.sum())
    interpreted(refresh)(state.estimate)  # a compiled kernel would not pay
    report: Evidence = interpreted(inspect)(state, clock, ALL_ARMS)
    return report
