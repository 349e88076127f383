"""The confidence coefficient beta, the exploitation test, and how a rule is registered.

| symbol                 | here                 | meaning                                          |
|------------------------|----------------------|--------------------------------------------------|
| beta_{s, s^2}          | ``local_beta``       | for gaps and information gain, delta = 1/s^2     |
| beta_{s, t log t}      | ``global_beta``      | for the exploitation test, delta = 1/(t log t)   |
|                        | ``settled_until``    | largest log t with evidence >= beta_{s, t log t} |
|                        | ``next_exploration`` | first round with evidence < beta_{s, t log t}    |
| sigma, S, lambda       |                      | noise level, bound on the norm of theta, ridge   |

A rule is a frozen configuration.  Its ``build`` makes a small named tuple for one problem, and
:func:`register_confidence` adds the kernels for the class of that tuple.  beta is in squared units
of the reward, as are squared distances between parameters in the norm of V.

This module has the kernels of the paper's coefficient, for known sigma and S (Abbasi-Yadkori, Pal,
Szepesvari, 2011):

    sqrt(beta) = sigma sqrt(2 log(1/delta) + log det(V/lambda)) + sqrt(lambda) S.            (0)

delta is a number for both times, or 1/s^2 and 1/(t log t): a :class:`Level` tells which.

All configurations are in :mod:`sightline.core.confidence_rules`.
"""

from __future__ import annotations

import functools
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from sightline.core.clock import FAR, Clock, log_round
from sightline.jit import callable_for, compiled, generic, interpreted, is_kernel, number_between
from sightline.validation import LARGEST

# Evidence that suffices up to this log t counts as sufficient permanently.
_LARGEST_LOG_T = 1e15
# Dimensions up to which ``adapt`` takes less than 10 ms interpreted.
_FEW = 24
_WIDEST = LARGEST * LARGEST
LOG_2 = math.log(2.0)
_LOG_FAR = math.log(FAR)


class ConfidenceRule(ABC):
    """Base of all confidence rules; subclasses are frozen dataclasses.

    The field ``norm_bound`` is S, or None if S is to be learned.  ``regulariser="matched"`` needs a
    rule with this field; other uses take S = 1 if a rule does not have it.
    """

    norm_bound: float | None = 1.0

    @abstractmethod
    def build(self, d: int, noise_std: float, regulariser: float) -> Any:
        """Named tuple for d dimensions, this noise and this lambda, with registered kernels."""

    def build_without_noise(self, d: int, guess: float, regulariser: float) -> Any:
        """Named tuple for d dimensions and an unknown noise level; optional."""
        raise ValueError(f"{self} needs to know the noise level; LogDet() does without")


_within = functools.partial(number_between, low=0.0, high=sys.float_info.max)


@functools.partial(generic, guard=_within("local beta"))
def local_beta(confidence: Any, log_det: float, s: int) -> float:
    """beta_{s, s^2}, or at another local level, where s counts exploration rounds from 1."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


@functools.partial(generic, guard=_within("overall beta"))
def global_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t}: it must not fall as t grows."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


@compiled
def acting_beta(confidence: Any, log_det: float, log_t: float) -> float:
    """beta_{s, t log t}, but finite: where it is infinite, policies then play the widest arm."""
    return min(global_beta(confidence, log_det, log_t), _WIDEST)


@functools.partial(generic, guard=number_between("what settled returns", -math.inf, math.inf))
def settled_until(confidence: Any, log_det: float, evidence: float) -> float:
    """Largest log t with evidence >= beta_{s, t log t}; -inf for none, inf for all."""
    raise TypeError(f"no confidence rule is registered for {type(confidence).__name__}")


@generic
@compiled
def adapt(confidence: Any, estimate: Any) -> None:
    """Follow an estimate after it has learned; optional, for rules that learn sigma or S."""


def adapt_to(confidence: Any, estimate: Any) -> None:
    """Call :func:`adapt` from the interpreter."""
    # O(d^3) at most: in few dimensions the interpreter is faster than the compiler
    few = estimate.learned.theta.shape[0] <= _FEW
    call = interpreted(adapt) if few else callable_for(adapt, confidence, estimate)
    call(confidence, estimate)


@compiled
def _search_settled(confidence: Any, log_det: float, evidence: float) -> float:
    """``settled_until`` by bisection, for a rule without a closed form."""
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


# --- levels delta, and the growth of beta with time ---------------------------------------------


class Level(NamedTuple):
    """The levels delta of a rule."""

    fixed: float  # log(1/delta) if delta is a number, else 0
    slow: bool  # whether delta at local time s is 1/(s log s)


@compiled
def local_level(level: Level, s: int) -> float:
    """log(1/delta) at local time s: fixed, or for 1/s^2 or, growing more slowly, 1/(s log s)."""
    if level.fixed > 0.0:
        return level.fixed
    if level.slow:
        u = math.log(max(s, 2))
        return u + math.log(u)
    return 2.0 * math.log(s)


@compiled
def level_in_round(level: Level, log_t: float) -> float:
    """log(1/delta) of the exploitation test in round t: fixed, or for delta = 1/(t log t)."""
    if level.fixed > 0.0:
        return level.fixed
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


# --- the end of a commitment --------------------------------------------------------------------


@compiled
def next_exploration(confidence: Any, log_det: float, evidence: float, clock: Clock) -> Clock:
    """First round >= now at which evidence < beta_{s, t log t}: Algorithm 1 explores there.

    Where rounds are counted exactly, the answer is exact: the first round at which the comparison
    of the two floating-point numbers fails, as a run that asks every round finds it.
    """
    if clock.t == FAR:
        return Clock(FAR, max(settled_until(confidence, log_det, evidence), clock.log_t))
    if evidence < global_beta(confidence, log_det, log_round(clock)):
        return clock
    log_end = settled_until(confidence, log_det, evidence)
    if log_end >= _LOG_FAR:
        return Clock(FAR, log_end)
    low = clock.t  # settled
    # The next loop ends with ``high`` unsettled or beyond FAR.  It is needed because exp is off by
    # some bits, and beside a large log det the growth of log t may round to nothing.
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


# --- the paper's coefficient, for known sigma and S ---------------------------------------------


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
    return _log_det_beta(confidence, log_det, local_level(confidence.level, s))


@compiled
def _log_det_overall(confidence: LogDetConfidence, log_det: float, log_t: float) -> float:
    return _log_det_beta(confidence, log_det, level_in_round(confidence.level, log_t))


@compiled
def _log_det_settled(confidence: LogDetConfidence, log_det: float, evidence: float) -> float:
    if evidence == math.inf:
        return math.inf
    if confidence.level.fixed > 0.0:  # the test is the same in all rounds
        return math.inf if evidence >= _log_det_overall(confidence, log_det, 0.0) else -math.inf
    radius = math.sqrt(evidence / confidence.factor) - confidence.prior_radius
    if radius <= 0.0:
        return -math.inf
    level = 0.5 * (radius * radius / confidence.noise_variance - log_det)
    return solve_growth(1.0, 1.0, level, LOG_2)


register_confidence(
    LogDetConfidence, local=_log_det_local, overall=_log_det_overall, settled=_log_det_settled
)
