"""Confidence rules: the contract of a coefficient beta, and the rules with closed forms.

| symbol                 | here                 | meaning                                          |
|------------------------|----------------------|--------------------------------------------------|
| beta_{s, s^2}          | ``local_beta``       | for gaps and information gain, delta = 1/s^2     |
| beta_{s, t log t}      | ``global_beta``      | for the exploitation test, delta = 1/(t log t)   |
|                        | ``settled_until``    | largest log t with evidence >= beta_{s, t log t} |
|                        | ``next_exploration`` | first round with evidence < beta_{s, t log t}    |
| S                      | ``norm_bound``       | bound on the norm of theta                       |
| lambda                 | ``ridge``            | regulariser of least squares                     |
| sigma^2 f_{n, delta}   | ``evidence_level``   | threshold for a known horizon n                  |

A rule is a frozen configuration.  Its ``build`` makes a small named tuple for one problem, and
:func:`register_confidence` adds the kernels for the class of that tuple.  beta is in squared units
of the reward, as are squared distances between parameters in the norm of V.

Here are the rules that depend on nothing else:

    FixedBeta   beta
    LogLog      sigma^2 (2 log t + d log log t)

:mod:`sightline.core.confidence` has the paper's choice, and the forms of it that learn the
noise level or the norm of theta.

The self-normalised coefficient, the paper's choice; also if sigma or S is not known.

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S             (0)

The paper's coefficient has sigma = lambda = S = 1.  If sigma or S is not known, the data take its
place.

| symbol                                   | here                     |
|------------------------------------------|--------------------------|
| log(1/delta), n outcomes                 |                          |
| RSS(nu) = sum (r - <y, nu>)^2            |                          |
| RSS = min_nu RSS(nu) + lambda |nu|^2     | ``NoiseTerm.residual``   |
| A, with RSS(theta) <= RSS + A            | ``excess``               |
| log(RSS + A) where delta = V/lambda = 1  | ``NoiseTerm.level``      |
| rho >= lambda / (least eigenvalue of V)  | ``NormTerm.share``       |
| Q, projection onto what is never seen    | ``NormTerm.hidden``      |
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
sqrt(beta), whose solution is, with h = sqrt(lambda) |theta-hat| and rho < 1,

    sqrt(beta) = (sqrt(rho) h + sqrt((1 - rho) A + h^2)) / (1 - rho).                    (3)

rho < 1 holds as soon as there are data in all directions.  Before that nothing bounds theta: beta
of the exploitation test is infinite, and beta of gaps and gains, which must be a number, has rho at
most 1/2.  Directions that outcomes do not show, and in which arms do not differ, are left out: V is
lambda there, and lambda |theta|^2 has the same part on both sides.  If V is the curvature of
another likelihood, this is a statement about its quadratic approximation around theta-hat.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import FAR, Clock, log_round
from sightline.core.estimate import WEAK_COUNT, WEAK_SHARE
from sightline.core.model import Model
from sightline.core.persistence import none_if_unknown, persists
from sightline.jit import (
    callable_for,
    compiled,
    generic,
    interpreted,
    is_kernel,
    number_between,
)
from sightline.validation import LARGEST, integer, number, one_of, scale, shown

# Where log t is so large, evidence that still suffices is taken to suffice permanently.
_LARGEST_LOG_T = 1e15
# Dimensions in which adapting takes less than 10 ms interpreted.
_FEW = 24
_WIDEST = LARGEST * LARGEST
# Noise over what the features of one outcome show, where neither is known; and of clicks and counts
# the same in log odds or logarithms: features rarely change these by more than 3.
_PRIOR_NOISE, _PRIOR_OF_LAWS = 0.1, 1.0 / 3.0
LOG_2 = math.log(2.0)
_LOG_3 = math.log(3.0)
_LOG_FAR = math.log(FAR)

#: Below, d log n <= 1 and the term in d would be negative.
SMALLEST_HORIZON = 3


# The contract


class ConfidenceRule(ABC):
    """Base of all confidence rules; subclasses are frozen dataclasses.

    A rule with a field ``norm_bound`` of its own says what S is, which ``regulariser="matched"``
    asks for, or None if the data are to say it; for one without, S is 1 wherever else a policy
    needs it.
    """

    norm_bound: float | None = 1.0

    @abstractmethod
    def build(self, d: int, noise_std: float, regulariser: float) -> Any:
        """Named tuple for d dimensions, this noise and this lambda, with registered kernels."""

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> Any:
        """Named tuple for d dimensions and a noise level that must be learned; optional."""
        raise ValueError(f"{self} needs to know the noise level; LogDet() does without")


def _local_beta(confidence: Any, log_det: float, s: int) -> float:
    """beta_{s, s^2}, or at another local level, where s counts exploration rounds from 1."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


def _global_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t}: it must not fall as t grows."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


_LARGEST_FLOAT = sys.float_info.max
local_beta = generic(_local_beta, guard=number_between("local beta", 0.0, _LARGEST_FLOAT))
global_beta = generic(_global_beta, guard=number_between("overall beta", 0.0, _LARGEST_FLOAT))


@compiled
def acting_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t} as a number to act on: where it is infinite, the widest arm is played."""
    return min(global_beta(confidence, log_det, log_t), _WIDEST)


def _settled_until(confidence: Any, log_det: float, evidence: float) -> float:
    """Largest log t with evidence >= beta_{s, t log t}; -inf for none, inf for all."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


settled_until = generic(
    _settled_until, guard=number_between("what settled returns", -math.inf, math.inf)
)


@generic
@compiled
def adapt(confidence: Any, estimate: Any) -> None:
    """Follow an estimate after it has learned; optional, for rules whose numbers the data tell."""


def adapt_to(confidence: Any, estimate: Any) -> None:
    """Follow an estimate, called by the interpreter.

    It may take O(d^3).  In few dimensions that is sooner done interpreted than compiled.
    """
    few = estimate.learned.theta.shape[0] <= _FEW
    call = interpreted(adapt) if few else callable_for(adapt, confidence, estimate)
    call(confidence, estimate)


@compiled
def _search_settled(confidence: Any, log_det: float, evidence: float) -> float:
    """Find the end of what is settled by bisection, for a rule without a closed form."""
    if evidence < global_beta(confidence, log_det, 0.0):
        return -math.inf
    high = 1.0
    while evidence >= global_beta(confidence, log_det, high):
        high *= 2.0
        if high > _LARGEST_LOG_T:
            return math.inf
    low = 0.0
    while True:
        middle = 0.5 * (low + high)
        if middle <= low or middle >= high:
            return low
        if evidence >= global_beta(confidence, log_det, middle):
            low = middle
        else:
            high = middle


def register_confidence(
    cls: type,
    *,
    local: Callable[..., float],
    overall: Callable[..., float],
    settled: Callable[..., float] | None = None,
) -> None:
    """Add a confidence rule: kernels for the named tuples that its ``build`` makes.

    Parameters
    ----------
    cls : type
        Class of the named tuple.
    local : callable
        ``local(confidence, log_det, s)``: beta at local time s, compiled or plain.
    overall : callable
        ``overall(confidence, log_det, log_t)``: beta of the exploitation test in round t.
    settled : callable, optional
        ``settled(confidence, log_det, evidence)``: largest log t at which ``overall`` does not
        exceed the evidence; found by bisection by default.
    """
    local_beta.register(cls)(local)
    global_beta.register(cls)(overall)
    # compiled code cannot call an ``overall`` in plain Python
    search = _search_settled if is_kernel(overall) else interpreted(_search_settled)
    settled_until.register(cls)(settled or search)


# Levels delta, and the growth of beta with time


class Level(NamedTuple):
    """delta = 1/s^2, or 1/(s log s)."""

    slow: bool


#: Levels of gaps and information gain at local time s, by name.
LEVELS = {"1/s^2": Level(False), "1/(s log s)": Level(True)}


@compiled
def log_inverse_delta(level: Level, s: int) -> float:
    """log(1/delta) at local time s."""
    if level.slow:
        u = math.log(max(s, 2))
        return u + math.log(u)
    return 2.0 * math.log(s)


@compiled
def level_in_round(log_t: float) -> float:
    """log(1/delta) of the exploitation test in round t: delta = 1/(t log t)."""
    u = max(log_t, LOG_2)  # at t = 1 the value of t = 2, where t log t is not yet 0
    return u + math.log(u)


@compiled
def solve_growth(a: float, b: float, level: float, start: float) -> float:
    """Root u >= start of a u + b log u = level; -inf if it lies before ``start``.

    It has a closed form (Lambert W); a few Newton steps find it at any magnitude.
    """
    u = start
    step = level - a * u - b * math.log(u)
    if step < 0.0:
        return -math.inf
    # The left side is concave, so Newton climbs monotonically from the left and cannot overshoot.
    while step > 1e-15 * level:
        increase = step / (a + b / u)
        if u + increase == u:
            break
        u += increase
        step = level - a * u - b * math.log(u)
    return u


# The end of a commitment


@compiled
def next_exploration(confidence: Any, log_det: float, evidence: float, clock: Clock) -> Clock:
    """First round >= now at which evidence < beta_{s, t log t}: Algorithm 1 explores there.

    Where rounds are counted exactly, so is this one: it is the first round at which the
    comparison of the two floating-point numbers comes out as "explore", as a run that asks
    every round would find it.
    """
    if clock.t == FAR:
        return Clock(FAR, max(settled_until(confidence, log_det, evidence), clock.log_t))
    if evidence < global_beta(confidence, log_det, log_round(clock)):
        return clock
    log_end = settled_until(confidence, log_det, evidence)
    if log_end >= _LOG_FAR:
        return Clock(FAR, log_end)
    low = clock.t  # settled
    # unsettled, or beyond FAR, as soon as the next loop ends: exp is off by some bits, and a large
    # log det may swallow what time adds
    high = max(int(math.exp(log_end)), low) + 1
    while high < FAR and evidence >= global_beta(confidence, log_det, math.log(high)):
        low, high = high, high + 2 * (high - low)
    while high - low > 1:
        middle = low + (high - low) // 2
        if evidence >= global_beta(confidence, log_det, math.log(middle)):
            low = middle
        else:
            high = middle
    return Clock(high, math.nan) if high < FAR else Clock(FAR, max(log_end, _LOG_FAR))


# Rules


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


# Threshold for a known horizon
#
#     f_{n, delta} = 2 (1 + 1/log n) log(1/delta) + c d log(d log n)
#
# With probability at least 1 - delta, all rounds until n have |<x, theta-hat - theta>|^2 <= sigma^2
# f_{n, delta} times the squared norm of x in G^-1, G = sum x x^T, for c large enough (Lattimore,
# Szepesvari, AISTATS 2017, theorem 8).


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


# Configurations and the regulariser


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
    """Refuse what is neither a positive number nor ``"matched"`` to the S of a rule."""
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


Array = NDArray[np.float64]

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


# Noise level and norm are known


class LogDetConfidence(NamedTuple):
    """The coefficient for one problem."""

    level: Level
    factor: float
    noise_variance: float
    prior_radius: float  # sqrt(lambda) S


@compiled
def _log_det_beta(confidence: LogDetConfidence, log_det: float, level: float) -> float:
    noise = math.sqrt(confidence.noise_variance * (2.0 * level + log_det))
    radius = noise + confidence.prior_radius  # (0)
    return confidence.factor * radius * radius


@compiled
def _log_det_local(confidence: LogDetConfidence, log_det: float, s: int) -> float:
    return _log_det_beta(confidence, log_det, log_inverse_delta(confidence.level, s))


@compiled
def _log_det_overall(confidence: LogDetConfidence, log_det: float, log_t: float) -> float:
    return _log_det_beta(confidence, log_det, level_in_round(log_t))


@compiled
def _log_det_settled(confidence: LogDetConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    radius = math.sqrt(evidence / confidence.factor) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return solve_growth(1.0, 1.0, level, LOG_2)


register_confidence(
    LogDetConfidence, local=_log_det_local, overall=_log_det_overall, settled=_log_det_settled
)


# Noise level or norm is not known


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
