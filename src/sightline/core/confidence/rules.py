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

:mod:`sightline.core.confidence.log_det` has the paper's choice, and the forms of it that learn the
noise level or the norm of theta.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sightline.core.clock import FAR, Clock, log_round
from sightline.core.model import Model
from sightline.jit import (
    callable_for,
    compiled,
    generic,
    interpreted,
    is_kernel,
    number_between,
)
from sightline.validation import LARGEST, integer, number, one_of, scale, shown

__all__ = [
    "LEVELS",
    "LOG_2",
    "SMALLEST_HORIZON",
    "ConfidenceRule",
    "FixedBeta",
    "FixedConfidence",
    "Level",
    "LogLog",
    "LogLogConfidence",
    "Threshold",
    "acting_beta",
    "adapt",
    "adapt_to",
    "evidence_level",
    "full_level",
    "global_beta",
    "level_in_round",
    "local_beta",
    "log_inverse_delta",
    "needs_norm_bound",
    "next_exploration",
    "register_confidence",
    "ridge",
    "settled_until",
    "solve_growth",
    "threshold",
    "valid_regulariser",
    "valid_rule",
    "valid_threshold",
]

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
    share = _PRIOR_NOISE if model.law is None else _PRIOR_OF_LAWS
    return (share * (largest or 1.0)) ** 2  # features of a stream are still to come
