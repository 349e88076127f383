"""The self-normalised coefficient where the noise level or the norm of theta is left to the data.

| symbol                                   | here                     |
|------------------------------------------|--------------------------|
| log(1/delta), n outcomes                 |                          |
| RSS(nu) = sum (r - <y, nu>)^2            |                          |
| RSS = min_nu RSS(nu) + lambda |nu|^2     | ``StudentLevel.residual`` |
| A, with RSS(theta) <= RSS + A            | ``excess``               |
| log(RSS + A) where delta = V/lambda = 1  | ``StudentLevel.level``   |
| rho >= lambda / (least eigenvalue of V)  | ``LearnedNorm.share``    |
| Q, projection onto what is never seen    | ``LearnedNorm.hidden``   |
| sqrt(lambda) |theta-hat|                 | ``LearnedNorm.length``   |

Both rest on one martingale, the marginal likelihood of the outcomes under a prior over that at the
true parameters; by Ville's inequality it stays below 1/delta in all rounds at once with
probability 1 - delta.  Since RSS(nu) + lambda |nu|^2 = RSS + |nu - theta-hat|_V^2, a bound on
RSS(theta) is one on the distance of theta:

    |theta - theta-hat|_V^2 <= A + lambda |theta|^2.

**Noise.**  With sigma known, or a bound on a sub-Gaussian parameter, and the prior N(0, sigma^2 /
lambda I), A = sigma^2 (2 log(1/delta) + log det(V/lambda)).  With sigma unknown, noise normal, and
1/sigma^2 drawn from a Gamma(a, b) prior, the likelihood is at most its maximum over sigma, hence

    RSS + A = (n/e) exp((2/n) (log(1/delta) + log det(V/lambda)/2 + a log(b_n/b)
                               + log Gamma(a) - log Gamma(a + n/2))) b_n,      b_n = b + RSS/2,

a Student form, exact for every n >= 1 and however arms were chosen.  As n grows A tends to RSS/n
(2 log(1/delta) + log det(V/lambda) + log n + c).  The prior enters by c only: with r the ratio of
sqrt(b/a) to sigma, it is twice log Gamma(a) - a log a - 2 a log r + a r^2, up to constants.  So
a guess that is too small costs its logarithm, one that is too large its square: a = 1/20 and a
hundredth of the guess make c between 7 and 8 for guesses that are wrong by up to 1000 either way.

**Norm.**  With a bound S on the norm, |theta| <= S.  Without one, |theta| <= |theta-hat| +
|theta - theta-hat|_V / sqrt(least eigenvalue of V), which gives a quadratic inequality for
sqrt(beta), solved by

    sqrt(beta) = (sqrt(rho) h + sqrt((1 - rho) A + h^2)) / (1 - rho),   h = sqrt(lambda) |theta-hat|

once rho < 1: as soon as there are data in all directions.  Before, nothing bounds theta; beta of
the exploitation test is infinite, and that of gaps and gains, which must be a number, has rho at
most 1/2.  Where outcomes show nothing of some directions, and arms do not differ in them, these are
left out: V is lambda there, and lambda |theta|^2 has the same part on both sides.  Where V is the
curvature of another likelihood, this is a statement about its quadratic approximation around
theta-hat.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.confidence.growth import solve_growth
from sightline.core.confidence.levels import LOG_2, level_in_round, log_inverse_delta
from sightline.core.confidence.rules import adapt, register_confidence
from sightline.core.estimation.noise import WEAK_COUNT, WEAK_SHARE
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "GivenNorm",
    "KnownLevel",
    "LearnedConfidence",
    "beta_at",
    "learned_norm",
    "leave_out",
    "student_level",
]

Array = NDArray[np.float64]

# Beyond, exp would overflow: nothing is settled there, and bounds stay numbers.
_LARGEST_LOG = 400.0
_LARGEST_LOCAL_SHARE = 0.5
_SMALL_SHARE = 0.25  # below, a bound that is too large hardly matters


class KnownLevel(NamedTuple):
    """sigma is known."""

    noise_variance: float


class StudentLevel(NamedTuple):
    """sigma is not known: the Gamma prior of 1 / sigma^2, and what follows from the outcomes."""

    shape: float  # a
    rate: float  # b
    outcomes: Array  # (1,): n, at least 1
    residual: Array  # (1,)
    level: Array  # (1,)


class GivenNorm(NamedTuple):
    """|theta| <= S."""

    square: float  # lambda S^2


@persists("length", "share")
class LearnedNorm(NamedTuple):
    """|theta| is bounded by the data, but for directions that no comparison of arms needs."""

    length: Array  # (1,)
    share: Array  # (1,)
    hidden: Array  # (d, d): Q


class LearnedConfidence(NamedTuple):
    """The coefficient for one problem."""

    delta: Any  # local level
    factor: float
    noise: Any  # KnownLevel or StudentLevel
    norm: Any  # GivenNorm or LearnedNorm


def student_level(guess: float) -> StudentLevel:
    """Level before any outcome, after a guess of sigma."""
    shape, sigma = 0.5 * WEAK_COUNT, WEAK_SHARE * guess
    return StudentLevel(shape, shape * sigma * sigma, np.ones(1), np.zeros(1), np.zeros(1))


def learned_norm(d: int) -> LearnedNorm:
    """Norm before any outcome: anything."""
    return LearnedNorm(np.zeros(1), np.ones(1), np.zeros((d, d)))


def leave_out(confidence: Any, basis: Array) -> None:
    """Leave directions outside a basis to themselves, which outcomes do not show."""
    d, r = basis.shape
    norm = getattr(confidence, "norm", None)
    if isinstance(norm, LearnedNorm) and r < d:
        norm.hidden[...] = np.eye(d) - basis @ basis.T


@generic
def _excess(noise: Any, log_det: float, log_inverse_delta: float) -> float:
    """Find A."""
    raise TypeError(f"no noise level for {type(noise).__name__}")


@_excess.register(KnownLevel)
@compiled
def _known_excess(noise: KnownLevel, log_det: float, log_inverse_delta: float) -> float:
    return noise.noise_variance * (2.0 * log_inverse_delta + log_det)


@_excess.register(StudentLevel)
@compiled
def _student_excess(noise: StudentLevel, log_det: float, log_inverse_delta: float) -> float:
    exponent = noise.level[0] + (2.0 * log_inverse_delta + log_det) / noise.outcomes[0]
    bound: float = math.exp(min(exponent, _LARGEST_LOG)) - noise.residual[0]
    return max(bound, 0.0)


@generic
def _level_at(noise: Any, log_det: float, excess: float) -> float:
    """Find log(1/delta) at which A is this."""
    raise TypeError(f"no noise level for {type(noise).__name__}")


@_level_at.register(KnownLevel)
@compiled
def _known_level_at(noise: KnownLevel, log_det: float, excess: float) -> float:
    return 0.5 * (excess / noise.noise_variance - log_det)


@_level_at.register(StudentLevel)
@compiled
def _student_level_at(noise: StudentLevel, log_det: float, excess: float) -> float:
    exponent = math.log(excess + noise.residual[0]) - noise.level[0]
    level: float = 0.5 * (noise.outcomes[0] * exponent - log_det)
    return level


@generic
def _beta_of(norm: Any, excess: float, largest_share: float) -> float:
    """Find beta from A, with rho at most this."""
    raise TypeError(f"no norm for {type(norm).__name__}")


@_beta_of.register(GivenNorm)
@compiled
def _beta_given(norm: GivenNorm, excess: float, largest_share: float) -> float:
    return excess + norm.square


@_beta_of.register(LearnedNorm)
@compiled
def _beta_learned(norm: LearnedNorm, excess: float, largest_share: float) -> float:
    h, share = norm.length[0], min(norm.share[0], largest_share)
    if share >= 1.0:
        return math.inf
    rest = 1.0 - share
    radius: float = (math.sqrt(share) * h + math.sqrt(rest * excess + h * h)) / rest
    return radius * radius


@generic
def _excess_at(norm: Any, beta: float) -> float:
    """Find A at which beta is this; not positive if there is none."""
    raise TypeError(f"no norm for {type(norm).__name__}")


@_excess_at.register(GivenNorm)
@compiled
def _excess_given(norm: GivenNorm, beta: float) -> float:
    return beta - norm.square


@_excess_at.register(LearnedNorm)
@compiled
def _excess_learned(norm: LearnedNorm, beta: float) -> float:
    if norm.share[0] >= 1.0:
        return -1.0
    bias: float = norm.length[0] + math.sqrt(norm.share[0] * beta)
    return beta - bias * bias


@compiled
def _local(confidence: LearnedConfidence, log_det: float, s: int) -> float:
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
def _overall(confidence: LearnedConfidence, log_det: float, log_t: float) -> float:
    return beta_at(confidence, log_det, level_in_round(log_t))


@compiled
def _settled(confidence: LearnedConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    excess = _excess_at(confidence.norm, evidence / confidence.factor)
    if excess <= 0.0:
        return -math.inf
    return solve_growth(1.0, 1.0, _level_at(confidence.noise, log_det, excess), LOG_2)


register_confidence(LearnedConfidence, local=_local, overall=_overall, settled=_settled)


@generic
def _adapt(part: Any, estimate: Any) -> None:
    """Take over what an estimate says of the noise or the norm."""
    raise TypeError(f"nothing is learned by a {type(part).__name__}")


@_adapt.register(KnownLevel)
@_adapt.register(GivenNorm)
@compiled
def _adapt_nothing(part: Any, estimate: Any) -> None:
    pass


@_adapt.register(StudentLevel)
@compiled
def _adapt_level(part: StudentLevel, estimate: Any) -> None:
    n = max(float(estimate.learned.rounds[0]), 1.0)  # without outcomes, as after one without error
    residual = estimate.noise.errors[0]
    rate = part.rate + 0.5 * residual
    prior = part.shape * math.log(rate / part.rate) + math.lgamma(part.shape)
    part.outcomes[0] = n
    part.residual[0] = residual
    share = 2.0 * (prior - math.lgamma(part.shape + 0.5 * n)) / n
    part.level[0] = math.log(n) - 1.0 + math.log(rate) + share


@_adapt.register(LearnedNorm)
@compiled
def _adapt_norm(part: LearnedNorm, estimate: Any) -> None:
    learned = estimate.learned
    square = 0.0
    for i in range(learned.theta.shape[0]):
        square += learned.theta[i] * learned.theta[i]
    part.length[0] = math.sqrt(estimate.regulariser * square)
    part.share[0] = _largest_share(estimate.regulariser, learned.gram_inverse, part.hidden)


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
def _adapt_both(confidence: LearnedConfidence, estimate: Any) -> None:
    _adapt(confidence.noise, estimate)
    _adapt(confidence.norm, estimate)
