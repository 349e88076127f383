"""Confidence rules: what a coefficient beta is made of, and how to add one.

| symbol            | here             | meaning                                        |
|-------------------|------------------|------------------------------------------------|
| beta_{s, s^2}     | ``local_beta``   | for gaps and information gain, delta = 1/s^2   |
| beta_{s, t log t} | ``global_beta``  | for the exploitation test, delta = 1/(t log t) |
| largest log t at which evidence suffices | ``settled_until`` |                       |
| S                 | ``norm_bound``   | bound on the norm of theta                     |
| sigma or S, from the data | ``adapt`` |                                               |

A rule is a frozen configuration whose ``build`` makes a small named tuple for one problem; the
kernels are registered for the class of that tuple.  beta is in squared units of the reward, as
are squared distances between parameters in the norm of V.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from sightline.core.model import Model
from sightline.jit import (
    callable_for,
    compiled,
    generic,
    interpreted,
    is_kernel,
    number_between,
)
from sightline.validation import LARGEST, number, one_of, scale, shown

__all__ = [
    "ConfidenceRule",
    "acting_beta",
    "adapt",
    "adapt_to",
    "global_beta",
    "local_beta",
    "needs_norm_bound",
    "register_confidence",
    "ridge",
    "settled_until",
    "valid_regulariser",
    "valid_rule",
]

# Where log t is so large, evidence that still suffices is taken to suffice for ever.
_LARGEST_LOG_T = 1e15
# Dimensions in which adapting takes less than 10 ms interpreted.
_FEW = 24
_WIDEST = LARGEST * LARGEST
# Noise over what the features of one outcome show, where neither is known; and of clicks and counts
# the same in log odds or logarithms: features rarely change these by more than 3.
_PRIOR_NOISE, _PRIOR_OF_LAWS = 0.1, 1.0 / 3.0


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
