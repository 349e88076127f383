"""Confidence rules: configurations of beta, for known and for unknown sigma and S.

| rule          | beta                                                  |
|---------------|-------------------------------------------------------|
| ``LogDet``    | the paper's, (0) of :mod:`sightline.core.confidence`  |
| ``LogLog``    | sigma^2 (2 log t + d log log t)                       |
| ``FixedBeta`` | a number                                              |

``Threshold`` is the level sigma^2 f_{n, delta} of policies with a known horizon n.

If sigma or S is unknown, ``LogDet`` estimates a bound from the data:

| symbol                                   | here                     |
|------------------------------------------|--------------------------|
| log(1/delta), n outcomes                 |                          |
| RSS(nu) = sum (r - <y, nu>)^2            |                          |
| RSS = min_nu RSS(nu) + lambda |nu|^2     | ``NoiseTerm.residual``   |
| A, with RSS(theta) <= RSS + A            | ``excess``               |
| log(RSS + A) where delta = V/lambda = 1  | ``NoiseTerm.level``      |
| rho >= lambda / (least eigenvalue of V)  | ``NormTerm.share``       |
| Q, projection onto what is never observed | ``NormTerm.hidden``     |
| sqrt(lambda) |theta-hat|                 | ``NormTerm.length``      |

Both terms rest on one martingale: the marginal likelihood of the outcomes under a prior, over that
at the true parameters.  By Ville's inequality it stays below 1/delta in all rounds at once with
probability 1 - delta.  Since RSS(nu) + lambda |nu|^2 = RSS + |nu - theta-hat|_V^2, a bound on
RSS(theta) is one on the distance of theta:

    |theta - theta-hat|_V^2 <= A + lambda |theta|^2.

**Noise.**  If sigma, or a bound on a sub-Gaussian parameter, is known, the prior is N(0, sigma^2 /
lambda I) and

    A = sigma^2 (2 log(1/delta) + log det(V/lambda)).                                    (1)

If sigma is unknown and the noise normal, 1/sigma^2 has a Gamma(a, b) prior.  The likelihood is at
most its maximum over sigma, hence

    RSS + A = (n/e) exp((2/n) (log(1/delta) + log det(V/lambda)/2 + a log(b_n/b)
                               + log Gamma(a) - log Gamma(a + n/2))) b_n,                (2)

with b_n = b + RSS/2: a Student form, exact for every n >= 1 and for any choice of arms.  As n grows
A tends to RSS/n (2 log(1/delta) + log det(V/lambda) + log n + c).  The prior enters by c only: with
r the ratio of sqrt(b/a) to sigma, c is twice log Gamma(a) - a log a - 2 a log r + a r^2, up to
constants.  A guess that is too small costs its logarithm, one that is too large its square.  With
a = 1/20 and a hundredth of the guess, c is between 7 and 8 for guesses that are wrong by up to 1000
either way.

**Norm.**  With a bound S on the norm, |theta| <= S.  Without one, |theta| <= |theta-hat| +
|theta - theta-hat|_V / sqrt(least eigenvalue of V).  This gives a quadratic inequality for
sqrt(beta), with the solution, for h = sqrt(lambda) |theta-hat| and rho < 1,

    sqrt(beta) = (sqrt(rho) h + sqrt((1 - rho) A + h^2)) / (1 - rho).                    (3)

rho < 1 holds as soon as there are data in all directions.  Before that nothing bounds theta: beta
of the exploitation test is infinite.  beta of gaps and gains must be finite; it takes rho at most
1/2.  Directions that outcomes do not show, and in which arms do not differ, are left out: V is
lambda there, and lambda |theta|^2 has the same part on both sides.  If V is the curvature of
another likelihood, the bound holds for the quadratic approximation around theta-hat.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from sightline.core.confidence import (
    LOG_2,
    ConfidenceRule,
    Level,
    LogDetConfidence,
    adapt,
    level_in_round,
    local_level,
    register_confidence,
    solve_growth,
)
from sightline.core.estimate import WEAK_COUNT, WEAK_SHARE
from sightline.core.linalg import Array, squared_length
from sightline.core.model import Model
from sightline.core.persistence import none_if_unknown, persists
from sightline.jit import compiled
from sightline.validation import LARGEST, integer, number, one_of, scale, shown

# Noise over the signal of one outcome, if neither is known.  For clicks and counts, 1 over the
# change in log odds or logarithms: features rarely change these by more than 3.
_PRIOR_NOISE, _PRIOR_OF_LIKELIHOODS = 0.1, 1.0 / 3.0
_LOG_3 = math.log(3.0)

_SLOW = "1/(s log s)"  # a level of gaps and information gain at local time s

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
        """Coefficient for one problem with an unknown noise level: the same."""
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
        Terms that sigma^2 multiplies: both, as in the paper, or the first one only, as in the code
        of its authors.
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
    """Numbers of f_{n, delta} = 2 (1 + 1/log n) log(1/delta) + c d log(d log n) for one problem.

    With probability at least 1 - delta, all rounds until n have |<x, theta-hat - theta>|^2 <=
    sigma^2 f_{n, delta} times the squared norm of x in G^-1, G = sum x x^T, for c large enough
    (Lattimore, Szepesvari, AISTATS 2017, theorem 8).
    """

    log_horizon: float
    noise_variance: float
    dimension_term: float  # c d log(d log n)


def valid_threshold(horizon: object, constant: object) -> None:
    """Check a horizon n and a constant c."""
    integer("horizon", horizon, at_least=SMALLEST_HORIZON)
    number("constant", constant, at_least=0, at_most=LARGEST)


def threshold(horizon: int, constant: float, d: int, noise_std: float) -> Threshold:
    """Threshold for d dimensions and any horizon."""
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
    """Check a confidence rule."""
    if not isinstance(value, ConfidenceRule):
        raise ValueError(
            f"confidence must be LogDet(), LogLog(), FixedBeta(1.0) or another ConfidenceRule, "
            f"got {shown(value)}"
        )


def needs_norm_bound(rule: ConfidenceRule, policy: str) -> float:
    """Return S, or raise if the rule has none."""
    if rule.norm_bound is None:
        raise ValueError(f"{policy} needs a bound S on the norm of theta: LogDet(norm_bound=1.0)")
    return rule.norm_bound


def valid_regulariser(value: object, rule: ConfidenceRule) -> None:
    """Check a rule, and a regulariser: a positive number, or ``"matched"`` to its S."""
    valid_rule(rule)
    if not isinstance(value, str):
        scale("regulariser", value)
        return
    one_of("regulariser", value, ["matched"])
    owners = [owner for owner in (rule, *type(rule).__mro__) if owner is not ConfidenceRule]
    if not any("norm_bound" in vars(owner) for owner in owners):
        raise ValueError(
            f'regulariser="matched" is sigma^2 / S^2, and {rule} has no norm_bound S: give a number'
        )
    if rule.norm_bound == 0:
        raise ValueError(
            f'regulariser="matched" is sigma^2 / S^2: norm_bound must be > 0, got {rule.norm_bound}'
        )


def ridge(regulariser: float | str, rule: ConfidenceRule, model: Model) -> float:
    """Find lambda of least squares; ``"matched"`` is sigma^2 / S^2.

    Both parts of the log-det coefficient then shrink with the noise; at lambda = 1 the part
    sqrt(lambda) S stays and dominates for small noise.

    If sigma or S is unknown, theta is taken to be of the order of 10 sigma over the largest
    feature.  A prior that is too wide costs its logarithm only.  For clicks and counts, which have
    a known scale, it is 3 over the largest feature.
    """
    if not isinstance(regulariser, str):
        return float(regulariser)
    if model.noise_known and rule.norm_bound is not None:
        return (model.noise_std / number("norm_bound", rule.norm_bound, above=0)) ** 2
    rows = model.observations.reshape(-1, model.observations.shape[-1])
    if model.intercept:
        rows = rows[:, :-1]
    largest = math.sqrt(float((rows * rows).sum(axis=1).max(initial=0.0)))
    share = _PRIOR_NOISE if model.likelihood is None else _PRIOR_OF_LIKELIHOODS
    return (share * (largest or 1.0)) ** 2  # a stream has no features yet


class NoiseTerm(NamedTuple):
    """The part of beta from the noise; for unknown sigma the Gamma prior and its update."""

    known: bool
    variance: float  # sigma^2, if it is known
    shape: float  # a
    rate: float  # b
    outcomes: Array  # (1,): n, at least 1; like the next two empty if sigma is known
    residual: Array  # (1,)
    level: Array  # (1,)


@persists("length", "share")
class NormTerm(NamedTuple):
    """The part of beta from the norm of theta, which S or the data bound."""

    bounded: bool
    square: float  # lambda S^2, if S is given
    length: Array  # (1,); like the next two empty if S is given
    share: Array  # (1,)
    hidden: Array  # (d, d): Q


class LearnedConfidence(NamedTuple):
    """The coefficient for one problem, with unknown sigma or S."""

    level: Level
    factor: float
    noise: NoiseTerm
    norm: NormTerm


@dataclass(frozen=True)
class LogDet(ConfidenceRule):
    """Self-normalised coefficient of Abbasi-Yadkori et al. (2011), the paper's choice.

    ``sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S``.

    For an unknown noise level (``Gaussian(std=None)``) a Student form replaces it, which is exact
    for normal noise.

    Parameters
    ----------
    norm_bound : float, optional
        S, a bound on the norm of theta: 0, or between 1e-70 and 1e70.  With None the data bound
        it: nothing is settled before there are data in all directions, and the coefficient is
        proven for every theta.  Files and the command line write ``"unknown"`` for None.
    factor : float
        Multiplies beta: below 1 is optimistic tuning without a guarantee.
    delta : {"1/s^2", "1/(s log s)"} or float
        Level of gaps and information gain at local time s: the paper's, or the one of its
        experiments, which keeps the theory and halves the leading term.  With either, the
        exploitation test has the level 1/(t log t).  A number, such as 0.05, is the level of all of
        them in all rounds: with probability 1 - delta every confidence set holds.  A policy that
        has settled then stays with its arm, which is wrong with probability up to delta, and so has
        linear expected regret; c* log n does not apply.
    """

    norm_bound: float | None = 1.0
    factor: float = 1.0
    delta: str | float = "1/s^2"

    def __post_init__(self) -> None:
        none_if_unknown(self, "norm_bound")
        if self.norm_bound is not None and number("norm_bound", self.norm_bound, at_least=0) != 0.0:
            scale("norm_bound", self.norm_bound)
        scale("factor", self.factor)
        if isinstance(self.delta, str):
            one_of("delta", self.delta, ("1/s^2", _SLOW))
        elif number("delta", self.delta, above=0) >= 1.0:
            raise ValueError(
                f'delta must be "1/s^2", "{_SLOW}" or a number between 0 and 1, '
                f"got {shown(self.delta)}"
            )

    def _level(self) -> Level:
        fixed = 0.0 if isinstance(self.delta, str) else -math.log(self.delta)
        return Level(fixed, self.delta == _SLOW)

    def build(
        self, d: int, noise_std: float, regulariser: float
    ) -> LogDetConfidence | LearnedConfidence:
        """Coefficient for one problem."""
        if self.norm_bound is None:
            nothing = (np.zeros(0) for _ in range(3))
            return self._learned(d, NoiseTerm(True, noise_std**2, 0.0, 0.0, *nothing), regulariser)
        radius = math.sqrt(regulariser) * self.norm_bound
        return LogDetConfidence(self._level(), float(self.factor), noise_std**2, radius)

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> LearnedConfidence:
        """Coefficient for one problem with an unknown noise level."""
        shape, sigma = 0.5 * WEAK_COUNT, WEAK_SHARE * guess
        rate = shape * sigma * sigma
        noise = NoiseTerm(False, 0.0, shape, rate, np.ones(1), np.zeros(1), np.zeros(1))
        return self._learned(d, noise, regulariser)

    def _learned(self, d: int, noise: NoiseTerm, regulariser: float) -> LearnedConfidence:
        bound = self.norm_bound
        if bound is None:
            norm = NormTerm(False, 0.0, np.zeros(1), np.ones(1), np.zeros((d, d)))
        else:
            square = regulariser * bound * bound
            norm = NormTerm(True, square, np.zeros(0), np.zeros(0), np.zeros((0, 0)))
        return LearnedConfidence(self._level(), float(self.factor), noise, norm)


# Beyond, exp would overflow; bounds stay finite, and nothing is settled there.
_LARGEST_LOG = 400.0
_LARGEST_LOCAL_SHARE = 0.5
_SMALL_SHARE = 0.25  # below, a bound that is too large hardly matters


def leave_out(confidence: Any, basis: Array) -> None:
    """Exclude directions outside a basis, which outcomes do not show, from the bound on theta."""
    d, r = basis.shape
    norm = getattr(confidence, "norm", None)
    if isinstance(norm, NormTerm) and not norm.bounded and r < d:
        norm.hidden[...] = np.eye(d) - basis @ basis.T


@compiled
def _excess(noise: NoiseTerm, log_det: float, log_inverse_delta: float) -> float:
    """Compute A, by (1) or (2)."""
    if noise.known:
        return noise.variance * (2.0 * log_inverse_delta + log_det)  # (1)
    exponent = noise.level[0] + (2.0 * log_inverse_delta + log_det) / noise.outcomes[0]
    bound: float = math.exp(min(exponent, _LARGEST_LOG)) - noise.residual[0]  # (2)
    return max(bound, 0.0)


@compiled
def _level_at(noise: NoiseTerm, log_det: float, excess: float) -> float:
    """Find log(1/delta) at which A is ``excess``: the inverse of ``_excess``."""
    if noise.known:
        return 0.5 * (excess / noise.variance - log_det)
    exponent = math.log(excess + noise.residual[0]) - noise.level[0]
    level: float = 0.5 * (noise.outcomes[0] * exponent - log_det)
    return level


@compiled
def _beta_of(norm: NormTerm, excess: float, largest_share: float) -> float:
    """Compute beta from A, by (3)."""
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
    """Invert ``_beta_of``; the answer is not positive if there is none."""
    if norm.bounded:
        return beta - norm.square
    if norm.share[0] >= 1.0:
        return -1.0
    bias: float = norm.length[0] + math.sqrt(norm.share[0] * beta)
    return beta - bias * bias


@compiled
def _learned_local(confidence: LearnedConfidence, log_det: float, s: int) -> float:
    # before any data all terms but the level are 0, and it would be for s = 1
    level = local_level(confidence.level, max(s, 2))
    excess = _excess(confidence.noise, log_det, level)
    return confidence.factor * _beta_of(confidence.norm, excess, _LARGEST_LOCAL_SHARE)


@compiled
def beta_at(confidence: LearnedConfidence, log_det: float, log_inverse_delta: float) -> float:
    """Beta at a level delta that is the same in all rounds."""
    excess = _excess(confidence.noise, log_det, log_inverse_delta)
    return confidence.factor * _beta_of(confidence.norm, excess, 1.0)


@compiled
def _learned_overall(confidence: LearnedConfidence, log_det: float, log_t: float) -> float:
    return beta_at(confidence, log_det, level_in_round(confidence.level, log_t))


@compiled
def _learned_settled(confidence: LearnedConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    if confidence.level.fixed > 0.0:  # the test is the same in all rounds
        return math.inf if evidence >= _learned_overall(confidence, log_det, 0.0) else -math.inf
    excess = _excess_at(confidence.norm, evidence / confidence.factor)
    if excess <= 0.0:
        return -math.inf
    return solve_growth(1.0, 1.0, _level_at(confidence.noise, log_det, excess), LOG_2)


register_confidence(
    LearnedConfidence, local=_learned_local, overall=_learned_overall, settled=_learned_settled
)


@compiled
def _largest_share(regulariser: float, inverse: Array, hidden: Array) -> float:
    """Bound the largest eigenvalue of lambda V^-1 - Q by Frobenius norms.

    The norm of this matrix, O(d^2), is at most sqrt(d) times too large.  Unless it is small, take
    the root of the norm of its square lambda^2 V^-2 - Q, O(d^3), at most d^(1/4) times too large.
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
    noise, norm, learned = confidence.noise, confidence.norm, estimate.learned
    if not noise.known:  # log(RSS + A) at delta = V/lambda = 1
        n = max(float(learned.rounds[0]), 1.0)  # before any, as after one without error
        residual = estimate.noise.errors[0]
        rate = noise.rate + 0.5 * residual
        prior = noise.shape * math.log(rate / noise.rate) + math.lgamma(noise.shape)
        noise.outcomes[0] = n
        noise.residual[0] = residual
        share = 2.0 * (prior - math.lgamma(noise.shape + 0.5 * n)) / n
        noise.level[0] = math.log(n) - 1.0 + math.log(rate) + share
    if not norm.bounded:
        norm.length[0] = math.sqrt(estimate.regulariser * squared_length(learned.theta))
        norm.share[0] = _largest_share(estimate.regulariser, learned.gram_inverse, norm.hidden)
