"""Configurations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sightline.core.confidence import (
    LEVELS,
    LOG_2,
    ConfidenceRule,
    LogDetConfidence,
    adapt,
    level_in_round,
    log_inverse_delta,
    register_confidence,
    solve_growth,
)
from sightline.core.estimate import WEAK_COUNT, WEAK_SHARE
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import none_if_unknown, persists
from sightline.jit import compiled
from sightline.validation import LARGEST, integer, number, one_of, scale, shown

# Noise over what the features of one outcome show, where neither is known; and of clicks and counts
# the same in log odds or logarithms: features rarely change these by more than 3.
_PRIOR_NOISE, _PRIOR_OF_LAWS = 0.1, 1.0 / 3.0


_LOG_3 = math.log(3.0)


#: Below, d log n <= 1 and the term in d would be negative.
SMALLEST_HORIZON = 3


class FixedConfidence(NamedTuple):
    """The coefficient."""

    value: float


@dataclass(frozen=True)
class FixedBeta(ConfidenceRule):
    """The same coefficient at all times: a tuning device without a guarantee.

    Parameters
    ----------
    value : float
        beta itself, in squared units of the reward.
    """

    value: float = 1.0

    def __post_init__(self) -> None:
        scale("value", self.value)

    def build(self, d: int, noise_std: float, regulariser: float) -> FixedConfidence:
        """Coefficient for one problem."""
        return FixedConfidence(float(self.value))

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> FixedConfidence:
        """Coefficient for one problem whose noise level is not known: the same."""
        return self.build(d, guess, regulariser)


@compiled
def _fixed_beta(confidence: FixedConfidence, log_det: float, time: Any) -> float:
    return confidence.value


@compiled
def _fixed_settled(confidence: FixedConfidence, log_det: float, evidence: float) -> float:
    return math.inf if evidence >= confidence.value else -math.inf


register_confidence(FixedConfidence, local=_fixed_beta, overall=_fixed_beta, settled=_fixed_settled)


class LogLogConfidence(NamedTuple):
    """The coefficient for one problem."""

    factor: float
    noise_variance: float
    dimension: float  # d, or d / sigma^2 where sigma^2 multiplies the first term only


@dataclass(frozen=True)
class LogLog(ConfidenceRule):
    """Simplified coefficient ``sigma^2 (2 log t + d log log t)``, with s for t at local time.

    Parameters
    ----------
    factor : float
        Multiplies beta.
    variance_of : {"both", "first"}
        Terms that sigma^2 multiplies: both, as the paper prints it, or the first one only, as
        the code of its authors had it.
    """

    factor: float = 1.0
    variance_of: str = "both"

    def __post_init__(self) -> None:
        scale("factor", self.factor)
        one_of("variance_of", self.variance_of, ("both", "first"))

    def build(self, d: int, noise_std: float, regulariser: float) -> LogLogConfidence:
        """Coefficient for one problem."""
        dimension = float(d) if self.variance_of == "both" else d / noise_std**2
        return LogLogConfidence(float(self.factor), noise_std**2, dimension)


@compiled
def _log_log_beta(confidence: LogLogConfidence, log_det: float, log_time: float) -> float:
    # log log t is negative below t = e, and beta may not be
    u = max(log_time, _LOG_3)
    growth = 2.0 * u + confidence.dimension * math.log(u)
    return confidence.factor * confidence.noise_variance * growth


@compiled
def _log_log_local(confidence: LogLogConfidence, log_det: float, s: int) -> float:
    return _log_log_beta(confidence, log_det, math.log(s))


@compiled
def _log_log_settled(confidence: LogLogConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    level = evidence / confidence.factor / confidence.noise_variance
    return solve_growth(2.0, confidence.dimension, level, _LOG_3)


register_confidence(
    LogLogConfidence, local=_log_log_local, overall=_log_log_beta, settled=_log_log_settled
)


class Threshold(NamedTuple):
    """f_{n, delta} for one problem, as compiled code sees it."""

    log_horizon: float
    noise_variance: float
    dimension_term: float  # c d log(d log n)


def valid_threshold(horizon: object, constant: object) -> None:
    """Refuse what is no horizon, or no constant c."""
    integer("horizon", horizon, at_least=SMALLEST_HORIZON)
    number("constant", constant, at_least=0, at_most=LARGEST)


def threshold(horizon: int, constant: float, d: int, noise_std: float) -> Threshold:
    """Threshold for d dimensions; the horizon may be any Python integer."""
    log_horizon = math.log(horizon)
    return Threshold(log_horizon, noise_std**2, constant * d * math.log(d * log_horizon))


@compiled
def evidence_level(level: Threshold, log_inverse_delta: float) -> float:
    """sigma^2 f_{n, delta}."""
    growth = 2.0 * (1.0 + 1.0 / level.log_horizon) * log_inverse_delta
    return level.noise_variance * (growth + level.dimension_term)


@compiled
def full_level(level: Threshold) -> float:
    """sigma^2 f_n."""
    return evidence_level(level, level.log_horizon)


def valid_rule(value: object) -> None:
    """Refuse what is not a confidence rule."""
    if not isinstance(value, ConfidenceRule):
        raise ValueError(
            f"confidence must be LogDet(), LogLog(), FixedBeta(1.0) or another ConfidenceRule, "
            f"got {shown(value)}"
        )


def needs_norm_bound(rule: ConfidenceRule, policy: str) -> float:
    """Return S, or say that a policy needs it."""
    if rule.norm_bound is None:
        raise ValueError(f"{policy} needs a bound S on the norm of theta: LogDet(norm_bound=1.0)")
    return rule.norm_bound


def valid_regulariser(value: object, rule: ConfidenceRule) -> None:
    """Refuse what is neither a positive number nor ``"matched"`` to the S of a valid rule."""
    valid_rule(rule)
    if not isinstance(value, str):
        scale("regulariser", value)
        return
    one_of("regulariser", value, ["matched"])
    if not _has_norm_bound(rule):
        raise ValueError(
            f'regulariser="matched" is sigma^2 / S^2, and {rule} has no norm_bound S: give a number'
        )
    if rule.norm_bound == 0:
        raise ValueError(
            f'regulariser="matched" is sigma^2 / S^2: norm_bound must be > 0, got {rule.norm_bound}'
        )


def _has_norm_bound(rule: ConfidenceRule) -> bool:
    """Whether a rule says what S is, by a field or attribute of its own."""
    classes = [cls for cls in type(rule).__mro__ if cls is not ConfidenceRule]
    return any("norm_bound" in vars(owner) for owner in (rule, *classes))


def ridge(regulariser: float | str, rule: ConfidenceRule, model: Model) -> float:
    """Find lambda of least squares; ``"matched"`` is sigma^2 / S^2.

    Then the two parts of the log-det coefficient shrink together with the noise, where at
    lambda = 1 the part sqrt(lambda) S stays and dominates for small noise.

    Where sigma or S is left to the data, theta is taken to be of the order of 10 sigma over the
    largest feature: rather too large, since a prior that is too wide costs its logarithm only.  Of
    clicks and counts, whose scale is known, it is 3 over the largest feature.
    """
    if not isinstance(regulariser, str):
        return float(regulariser)
    if model.noise_known and rule.norm_bound is not None:
        return (model.noise_std / number("norm_bound", rule.norm_bound, above=0)) ** 2
    rows = model.observations.reshape(-1, model.observations.shape[-1])
    if model.intercept:
        rows = rows[:, :-1]
    largest = math.sqrt(float((rows * rows).sum(axis=1).max(initial=0.0)))
    share = _PRIOR_NOISE if model.likelihood is None else _PRIOR_OF_LAWS
    return (share * (largest or 1.0)) ** 2  # features of a stream are still to come


# Beyond, exp would overflow: nothing is settled there, and bounds stay numbers.
_LARGEST_LOG = 400.0


_LARGEST_LOCAL_SHARE = 0.5


_SMALL_SHARE = 0.25  # below, a bound that is too large hardly matters


@dataclass(frozen=True)
class LogDet(ConfidenceRule):
    """Self-normalised coefficient of Abbasi-Yadkori et al. (2011), the paper's choice.

    ``sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S``.

    Where the noise level is unknown (``Gaussian(std=None)``) a Student form takes its place, which
    is exact for normal noise (see the module).

    Parameters
    ----------
    norm_bound : float, optional
        S, a bound on the norm of theta: 0, or between 1e-70 and 1e70.  With None the data bound
        it: nothing is settled before there are data in all directions, and the coefficient is
        proven whatever theta is.  Files and the command line have ``"unknown"`` for None.
    factor : float
        Multiplies beta: below 1 is optimistic tuning without a guarantee.
    delta : {"1/s^2", "1/(s log s)"}
        Level of gaps and information gain at local time s: the paper's, or the one of its
        experiments, which keeps the theory and halves the leading term.
    """

    norm_bound: float | None = 1.0
    factor: float = 1.0
    delta: str = "1/s^2"

    def __post_init__(self) -> None:
        none_if_unknown(self, "norm_bound")
        if self.norm_bound is not None and number("norm_bound", self.norm_bound, at_least=0) != 0.0:
            scale("norm_bound", self.norm_bound)
        scale("factor", self.factor)
        one_of("delta", self.delta, LEVELS)

    def build(
        self, d: int, noise_std: float, regulariser: float
    ) -> LogDetConfidence | LearnedConfidence:
        """Coefficient for one problem."""
        if self.norm_bound is None:
            return self._learned(d, known_level(noise_std**2), regulariser)
        radius = math.sqrt(regulariser) * self.norm_bound
        return LogDetConfidence(LEVELS[self.delta], float(self.factor), noise_std**2, radius)

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> LearnedConfidence:
        """Coefficient for one problem whose noise level is not known."""
        return self._learned(d, student_level(guess), regulariser)

    def _learned(self, d: int, noise: NoiseTerm, regulariser: float) -> LearnedConfidence:
        bound = self.norm_bound
        norm = unbounded_norm(d) if bound is None else bounded_norm(regulariser * bound * bound)
        return LearnedConfidence(LEVELS[self.delta], float(self.factor), noise, norm)


class NoiseTerm(NamedTuple):
    """The part of beta that comes from the noise.

    If sigma is not known: the Gamma prior of 1 / sigma^2, and what follows from the outcomes.
    """

    known: bool
    variance: float  # sigma^2, if it is known
    shape: float  # a
    rate: float  # b
    outcomes: Array  # (1,): n, at least 1; empty if sigma is known, like the others
    residual: Array  # (1,)
    level: Array  # (1,)


@persists("length", "share")
class NormTerm(NamedTuple):
    """The part of beta that comes from the norm of theta.

    Without S the data bound the norm, but for directions that no comparison of arms needs.
    """

    bounded: bool
    square: float  # lambda S^2, if S is given
    length: Array  # (1,); empty if S is given, like the others
    share: Array  # (1,)
    hidden: Array  # (d, d): Q


class LearnedConfidence(NamedTuple):
    """The coefficient for one problem."""

    delta: Any  # local level
    factor: float
    noise: NoiseTerm
    norm: NormTerm


def known_level(variance: float) -> NoiseTerm:
    """Noise of known variance."""
    return NoiseTerm(True, variance, 0.0, 0.0, *(np.zeros(0) for _ in range(3)))


def student_level(guess: float) -> NoiseTerm:
    """Noise of unknown variance before any outcome, after a guess of sigma."""
    shape, sigma = 0.5 * WEAK_COUNT, WEAK_SHARE * guess
    rate = shape * sigma * sigma
    return NoiseTerm(False, 0.0, shape, rate, np.ones(1), np.zeros(1), np.zeros(1))


def bounded_norm(square: float) -> NormTerm:
    """Norm with the bound S, from lambda S^2."""
    return NormTerm(True, square, np.zeros(0), np.zeros(0), np.zeros((0, 0)))


def unbounded_norm(d: int) -> NormTerm:
    """Norm without a bound, before any outcome."""
    return NormTerm(False, 0.0, np.zeros(1), np.ones(1), np.zeros((d, d)))


def leave_out(confidence: Any, basis: Array) -> None:
    """Exclude directions outside a basis, which outcomes do not show, from the bound on theta."""
    d, r = basis.shape
    norm = getattr(confidence, "norm", None)
    if isinstance(norm, NormTerm) and not norm.bounded and r < d:
        norm.hidden[...] = np.eye(d) - basis @ basis.T


@compiled
def _excess(noise: NoiseTerm, log_det: float, log_inverse_delta: float) -> float:
    """Find A."""
    if noise.known:
        return noise.variance * (2.0 * log_inverse_delta + log_det)  # (1)
    exponent = noise.level[0] + (2.0 * log_inverse_delta + log_det) / noise.outcomes[0]
    bound: float = math.exp(min(exponent, _LARGEST_LOG)) - noise.residual[0]  # (2)
    return max(bound, 0.0)


@compiled
def _level_at(noise: NoiseTerm, log_det: float, excess: float) -> float:
    """Find log(1/delta) at which A is this: the inverse of :func:`_excess`."""
    if noise.known:
        return 0.5 * (excess / noise.variance - log_det)
    exponent = math.log(excess + noise.residual[0]) - noise.level[0]
    level: float = 0.5 * (noise.outcomes[0] * exponent - log_det)
    return level


@compiled
def _beta_of(norm: NormTerm, excess: float, largest_share: float) -> float:
    """Find beta from A, with rho at most this."""
    if norm.bounded:
        return excess + norm.square
    h, share = norm.length[0], min(norm.share[0], largest_share)
    if share >= 1.0:
        return math.inf
    rest = 1.0 - share
    radius: float = (math.sqrt(share) * h + math.sqrt(rest * excess + h * h)) / rest  # (3)
    return radius * radius


@compiled
def _excess_at(norm: NormTerm, beta: float) -> float:
    """Find A at which beta is this, the inverse of :func:`_beta_of`; not positive if none is."""
    if norm.bounded:
        return beta - norm.square
    if norm.share[0] >= 1.0:
        return -1.0
    bias: float = norm.length[0] + math.sqrt(norm.share[0] * beta)
    return beta - bias * bias


@compiled
def _learned_local(confidence: LearnedConfidence, log_det: float, s: int) -> float:
    # before any data all terms but the level are 0, and it would be for s = 1
    level = log_inverse_delta(confidence.delta, max(s, 2))
    excess = _excess(confidence.noise, log_det, level)
    return confidence.factor * _beta_of(confidence.norm, excess, _LARGEST_LOCAL_SHARE)


@compiled
def beta_at(confidence: LearnedConfidence, log_det: float, log_inverse_delta: float) -> float:
    """Beta at a level delta that is the same in all rounds."""
    excess = _excess(confidence.noise, log_det, log_inverse_delta)
    return confidence.factor * _beta_of(confidence.norm, excess, 1.0)


@compiled
def _learned_overall(confidence: LearnedConfidence, log_det: float, log_t: float) -> float:
    return beta_at(confidence, log_det, level_in_round(log_t))


@compiled
def _learned_settled(confidence: LearnedConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    excess = _excess_at(confidence.norm, evidence / confidence.factor)
    if excess <= 0.0:
        return -math.inf
    return solve_growth(1.0, 1.0, _level_at(confidence.noise, log_det, excess), LOG_2)


register_confidence(
    LearnedConfidence, local=_learned_local, overall=_learned_overall, settled=_learned_settled
)


@compiled
def _adapt_noise(noise: NoiseTerm, estimate: Any) -> None:
    """Compute log(RSS + A) at delta = V/lambda = 1 from the residual sum of squares."""
    n = max(float(estimate.learned.rounds[0]), 1.0)  # without outcomes, as after one without error
    residual = estimate.noise.errors[0]
    rate = noise.rate + 0.5 * residual
    prior = noise.shape * math.log(rate / noise.rate) + math.lgamma(noise.shape)
    noise.outcomes[0] = n
    noise.residual[0] = residual
    share = 2.0 * (prior - math.lgamma(noise.shape + 0.5 * n)) / n
    noise.level[0] = math.log(n) - 1.0 + math.log(rate) + share


@compiled
def _adapt_norm(norm: NormTerm, estimate: Any) -> None:
    """Compute the length of theta-hat, and rho."""
    learned = estimate.learned
    square = 0.0
    for i in range(learned.theta.shape[0]):
        square += learned.theta[i] * learned.theta[i]
    norm.length[0] = math.sqrt(estimate.regulariser * square)
    norm.share[0] = _largest_share(estimate.regulariser, learned.gram_inverse, norm.hidden)


@compiled
def _largest_share(regulariser: float, inverse: Array, hidden: Array) -> float:
    """Bound the largest eigenvalue of lambda V^-1 - Q by norms of Frobenius.

    Its own, O(d^2), is at most sqrt(d) times too large; while it tells too little, the root of that
    of its square lambda^2 V^-2 - Q, O(d^3), is at most d^(1/4) times too large.
    """
    d = inverse.shape[0]
    total = 0.0
    for i in range(d):
        for j in range(d):
            entry = regulariser * inverse[i, j] - hidden[i, j]
            total += entry * entry
    if total <= _SMALL_SHARE * _SMALL_SHARE:
        return math.sqrt(total)
    total = 0.0
    for i in range(d):
        for j in range(d):
            entry = 0.0
            for m in range(d):
                entry += inverse[i, m] * inverse[m, j]
            entry = entry * (regulariser * regulariser) - hidden[i, j]
            total += entry * entry
    return math.sqrt(math.sqrt(total))


@adapt.register(LearnedConfidence)
@compiled
def _adapt_learned(confidence: LearnedConfidence, estimate: Any) -> None:
    if not confidence.noise.known:
        _adapt_noise(confidence.noise, estimate)
    if not confidence.norm.bounded:
        _adapt_norm(confidence.norm, estimate)
