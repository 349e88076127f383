"""The confidence ellipsoid of the parameter, valid at all rounds at once, from all data.

| symbol                                    | here                   | shape  |
|-------------------------------------------|------------------------|--------|
| V = lambda I + sum y y^T = R^T R          | ``factor`` = R         | (d, d) |
| R^-T sum y r, so that R theta-hat is that | ``whitened``           | (d,)   |
| lambda, sigma, S                          | ``regulariser``, ``noise_std``, ``norm_bound`` | |
| sqrt(beta)                                | :func:`radius`         | number |

With probability at least 1 - delta, at every round |R (theta - theta-hat)| <= sqrt(beta), where

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S

(Abbasi-Yadkori, Pal, Szepesvari, 2011).  It assumes linear means, noise that is sub-Gaussian with
parameter sigma given everything before, a parameter of norm at most S, and that whether and when a
reward is told does not depend on the reward.  How options were chosen does not matter.

Where sigma or S is not known, beta is that of :mod:`sightline.core.confidence`: without S
it holds for every theta, without sigma for normal noise.

Of clicks and counts V is the curvature of the log-likelihood at its maximum, sigma is 1, and theta
is in log odds or logarithms of means.  The ellipsoid is then asymptotic.  Where theta adds up to
rates themselves, the curvature is that of rates between 0 and 1 (``_factor_inside``).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, adapt_to, global_beta
from sightline.core.confidence_rules import LogDet, beta_at, ridge
from sightline.core.estimate import Learned, LeastSquares, Noise, estimated_noise, known_noise
from sightline.core.least_squares import least_squares, refresh
from sightline.core.likelihood import Kind, kind_of
from sightline.core.model import bandit_model, common_noise, valid_noise_std
from sightline.core.persistence import State
from sightline.core.posterior.gaussian import Posterior
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.base import Evidence
from sightline.validation import finite_array, number

__all__ = [
    "Ellipsoid",
    "Residuals",
    "ellipsoid_by_likelihood",
    "ellipsoid_in",
    "ellipsoid_of",
    "evidence_at",
    "evidence_of",
    "least_norm",
    "log_det",
    "parameter",
    "radius",
    "valid_bound",
    "valid_delta",
    "whiten",
]

Array = NDArray[np.float64]

# Successes and failures that are added to those of every option.  Likelihood-ratio intervals are
# still up to 12 % longer for beta up to 20, and 24 % at 40.
_ADDED = 10.0


class Residuals(NamedTuple):
    """What tells an unknown noise level: RSS, and from how many outcomes."""

    errors: float
    outcomes: int


class Ellipsoid(NamedTuple):
    """What the data say of the parameter; see the table above."""

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
    """Ellipsoid from how often each option was played and told, and the sum of its rewards.

    Parameters
    ----------
    features : ndarray, shape (k, d)
        One option per row.
    pulls, totals : array_like, shape (k,)
        Rewards told of each option, and their sum.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, or of those of each option.
    norm_bound : float, optional
        S; lambda is sigma^2 / S^2.  None if it is not known.
    squares : float, optional
        Sum of squared deviations of rewards from the mean of their option, over the square of its
        noise level relative to the largest: where these levels are relative to one another, and
        their common factor is not known.
    regulariser : float, optional
        Another lambda.
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
    # rotating the rows loses half as many digits as factorising the sum of their squares
    triangle: Array = np.asarray(np.linalg.qr(rows, mode="r"))
    factor, whitened = triangle[:d, :d], triangle[:d, d]
    residuals = None
    if squares is not None:  # what the options do not explain, and what features do not
        lack = float(triangle[d, d]) if len(triangle) > d else 0.0
        residuals = Residuals(squares + lack * lack, int(count.sum()))
    return Ellipsoid(factor, whitened, regulariser, sigma, rule.norm_bound, residuals)


def valid_bound(norm_bound: object) -> float | None:
    """Return S > 0, or None if it is not known."""
    return None if norm_bound is None else number("norm_bound", norm_bound, above=0)


def valid_delta(delta: object) -> float:
    """Return a probability between 0 and 1, the ends left out."""
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
    """Ellipsoid of clicks or counts, from their number and sum per option."""
    bound, model = valid_bound(norm_bound), bandit_model(features, likelihood=likelihood)
    fit = least_squares(model, regulariser, reduce=False)
    fit.arms.pulls[:] = pulls
    fit.arms.sums[:] = totals
    fit.learned.rounds[0] = int(fit.arms.pulls.sum())
    callable_for(refresh, fit)(fit)  # by the kernel that has made the fit
    factor = np.triu(fit.scratch.factor)
    if kind_of(likelihood) == Kind.IDENTITY:
        factor = _factor_inside(features, fit.arms.pulls, fit.arms.sums, fit.regulariser)
    return Ellipsoid(factor, factor @ fit.learned.theta, fit.regulariser, 1.0, bound)


def _factor_inside(features: Array, pulls: Array, totals: Array, regulariser: float) -> Array:
    """Find R with the variances of rates that are not 0 or 1, whatever the rewards were.

    An option that never had a success would have a variance of nothing, and an interval of no
    length.  As Agresti and Coull (1998) do, some successes and failures are added.
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
    """Ellipsoid from the data that a policy keeps, in the coordinates of the features.

    Those are the rewards it has learned from: IDS leaves out exploitation rounds.  A policy that
    discards data at times of its own choice, as E4 and ExploreThenAllocate do, has the guarantee
    anew after each of these, not for all rounds at once.

    Parameters
    ----------
    state : NamedTuple
        State of the policy.
    features : ndarray, shape (k, d)
        One option per row, as the policy was given them.
    noise_std : float or array_like, shape (k,)
        As the policy was told.
    norm_bound : float, optional
        S; for policies with a Gaussian posterior lambda is sigma^2 over the variance of the prior,
        and that of the policy where arms are new in every round.
    outcomes : int
        How many the policy has learned from, which a posterior does not count; for an unknown
        noise level.

    Returns
    -------
    Ellipsoid or None
        None if the policy keeps neither least squares nor a posterior.
    """
    levels = valid_noise_std(noise_std, len(features))
    sigma = common_noise(levels)
    for part in parts_of(state):
        stream = part.arms.observations.stream if isinstance(part, LeastSquares) else None
        if stream is not None:
            factor, target = np.triu(stream.factor), stream.target.copy()
            found = Ellipsoid(factor, target, part.regulariser, sigma, valid_bound(norm_bound))
            return _with_residuals(found, part)
        if isinstance(part, LeastSquares):  # its coordinates may be others, its data are not
            arms = part.arms
            totals = arms.sums * (levels / sigma)
            return ellipsoid_of(features, arms.pulls, totals, noise_std, norm_bound)
        if isinstance(part, Posterior):
            bound = valid_bound(norm_bound)
            factor, whitened = sigma * part.factor, sigma * part.whitened
            found = Ellipsoid(factor, whitened, sigma**2 * part.precision, sigma, bound)
            if not part.noise.known:
                return found._replace(residuals=Residuals(float(part.noise.errors[0]), outcomes))
            return found
    return None


def _with_residuals(ellipsoid: Ellipsoid, estimate: LeastSquares) -> Ellipsoid:
    """Add what an estimate has learned of the noise, if it does."""
    noise = estimate.noise
    if noise.known:
        return ellipsoid
    residuals = Residuals(float(noise.errors[0]), int(estimate.learned.rounds[0]))
    return ellipsoid._replace(residuals=residuals)


def log_det(ellipsoid: Ellipsoid) -> float:
    """Compute log det(V / lambda)."""
    diagonal = np.abs(np.diagonal(ellipsoid.factor)) / math.sqrt(ellipsoid.regulariser)
    return max(2.0 * float(np.log(diagonal).sum()), 0.0)


def radius(ellipsoid: Ellipsoid, log_inverse_delta: float) -> float:
    """sqrt(beta): how far theta can be from theta-hat, in the norm of V."""
    if ellipsoid.norm_bound is None or ellipsoid.residuals is not None:
        confidence = _confidence(ellipsoid, LogDet(norm_bound=ellipsoid.norm_bound))
        return math.sqrt(interpreted(beta_at)(confidence, log_det(ellipsoid), log_inverse_delta))
    noise = ellipsoid.noise_std * math.sqrt(2.0 * log_inverse_delta + log_det(ellipsoid))
    return noise + math.sqrt(ellipsoid.regulariser) * ellipsoid.norm_bound


def least_norm(ellipsoid: Ellipsoid, log_inverse_delta: float) -> float:
    """Find the norm of the shortest parameter in the ellipsoid, to a relative error of 1e-3.

    Above S, the data contradict that S bounds the norm of theta.  With V = Q diag(v) Q^T it is
    that of the point with the coordinates theta-hat mu v / (1 + mu v), for the mu that puts it on
    the boundary.
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
    """Coefficient of a rule, for what these data say of noise and norm."""
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
    """As much of least squares as a confidence rule looks at."""

    learned: Learned
    noise: Noise
    regulariser: float


def whiten(ellipsoid: Ellipsoid, vectors: Array) -> Array:
    """R^-T c of every row c: its length is the norm of c in V^-1."""
    solved: Array = np.asarray(np.linalg.solve(ellipsoid.factor.T, vectors.T), np.float64)
    return solved.T


def evidence_of(
    ellipsoid: Ellipsoid, features: Array, clock: Clock, rule: ConfidenceRule
) -> Evidence:
    """Report m_s against beta_{s, t log t} / 2, as policies with a confidence rule do."""
    best, evidence = _nearest(ellipsoid, features)
    # interpreted: a kernel would be compiled for this alone
    confidence = _confidence(ellipsoid, rule)
    beta = interpreted(global_beta)(confidence, log_det(ellipsoid), log_round(clock))
    return Evidence(best, evidence, 0.5 * float(beta), clock)


def evidence_at(ellipsoid: Ellipsoid, features: Array, clock: Clock, delta: float) -> Evidence:
    """Report m_s against beta_delta / 2: evidence above means that no other option is best.

    With probability at least 1 - delta that is never said wrongly, at any round.
    """
    level = valid_delta(delta)
    best, evidence = _nearest(ellipsoid, features)
    return Evidence(best, evidence, 0.5 * radius(ellipsoid, -math.log(level)) ** 2, clock)


def _nearest(ellipsoid: Ellipsoid, features: Array) -> tuple[int, float]:
    """Best option, and half the squared distance to where another one is."""
    whitened = whiten(ellipsoid, features)
    means = whitened @ ellipsoid.whitened
    best = int(means.argmax())
    gaps = means[best] - means
    squared = ((whitened[best] - whitened) ** 2).sum(axis=1)
    twins = squared <= 1e-24 * (whitened**2).sum(axis=1).max()  # of the best option: no rivals
    distances = np.divide(gaps**2, squared, where=~twins, out=np.full(len(means), np.inf))
    return best, 0.5 * float(distances.min())


def parameter(ellipsoid: Ellipsoid) -> Array:
    """theta-hat."""
    return np.asarray(np.linalg.solve(ellipsoid.factor, ellipsoid.whitened), np.float64)
