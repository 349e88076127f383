"""Validation of choices, for simulations and sessions.

An arm is an index into arrays, and compiled code does not check indices: an invalid arm would read
and write memory outside of them.  Kernels therefore test every choice by :func:`is_refused`, which
describes an invalid choice in a :class:`Fault`, and stop.  The interpreter then calls
:func:`raise_fault`.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import is_offered, rows_offered
from sightline.core.clock import FAR, Clock, is_before, is_round
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy

__all__ = [
    "Fault",
    "is_arm_refused",
    "is_probability_refused",
    "is_refused",
    "no_fault",
    "raise_fault",
]

_ARM, _BEST, _PROBABILITY, _WAKE = 1, 2, 3, 4
# Probabilities that are sums may exceed 1 by rounding.
_ONE = 1.0 + 1e-9


class Fault(NamedTuple):
    """Description of an invalid choice.

    Attributes
    ----------
    found : ndarray, shape (6,)
        Code of the error (0: valid), arm, round, first row of the action set and the row after its
        last, and the round until which the choice holds.
    probability : ndarray, shape (1,)
        Probability of the arm.
    states_probability : bool
        Whether the policy must state the probability of a choice.
    """

    found: NDArray[np.int64]
    probability: NDArray[np.float64]
    states_probability: bool


def no_fault(policy: Policy | None = None) -> Fault:
    """Make the description of a valid choice, to be overwritten by an invalid one."""
    states = policy is not None and not policy.probability_by_draws
    return Fault(np.zeros(6, dtype=np.int64), np.zeros(1), states)


@compiled
def _note(fault: Fault, code: int, arm: int, clock: Clock, offer: Any, k: int) -> None:
    fault.found[0], fault.found[1], fault.found[2] = code, arm, clock.t
    fault.found[3], fault.found[4] = rows_offered(offer, k)


@compiled
def is_arm_refused(fault: Fault, arm: int, clock: Clock, offer: Any, k: int) -> bool:
    """Whether the arm that a committed policy plays is outside of the action set, of k rows."""
    if 0 <= arm < k and is_offered(offer, arm):
        return False
    _note(fault, _BEST, arm, clock, offer, k)
    return True


@compiled
def _is_excused(fault: Fault, probability: float, clock: Clock) -> bool:
    """Whether a probability is nan by declaration, or has underflowed to 0 beyond round 2^53."""
    if probability == 0.0:
        return clock.t == FAR
    return math.isnan(probability) and not fault.states_probability


@compiled
def is_refused(fault: Fault, choice: Choice, clock: Clock, offer: Any, k: int) -> bool:
    """Whether a choice is invalid, in a table of k rows; describe it in ``fault``."""
    arm, probability, wake = choice.arm, choice.probability, choice.wake
    code = 0
    if not (0 <= arm < k and is_offered(offer, arm)):
        code = _ARM
    elif not 0.0 < probability <= _ONE and not _is_excused(fault, probability, clock):
        code = _PROBABILITY
    elif wake.t == clock.t < FAR:  # most rounds explore
        return False
    elif is_before(wake, clock) or not is_round(wake):
        code = _WAKE
    if code == 0:
        return False
    _note(fault, code, arm, clock, offer, k)
    fault.found[5] = wake.t
    fault.probability[0] = probability
    return True


@compiled
def is_probability_refused(
    fault: Fault, arm: int, probability: float, clock: Clock, offer: Any, k: int
) -> bool:
    """Whether an action probability is outside of [0, 1]; describe it in ``fault``."""
    if 0.0 <= probability <= _ONE:
        return False
    _note(fault, _PROBABILITY, arm, clock, offer, k)
    fault.probability[0] = probability
    return True


def raise_fault(fault: Fault, policy: object) -> None:
    """Raise ValueError if a choice was invalid."""
    code, arm, t, start, stop, wake = fault.found.tolist()
    if code == 0:
        return
    fault.found[0] = 0
    name = policy if isinstance(policy, str) else type(policy).__name__
    when = f"in round {t}" if t < FAR else f"beyond round {FAR}"
    if code in (_ARM, _BEST):
        allowed = f"arms {start} to {stop - 1} are on offer"
        if start <= arm < stop:
            allowed = f"only some of the arms {start} to {stop - 1} are on offer, and not this one"
        chose = "chose arm" if code == _ARM else "commits, and best_of returned arm"
        raise ValueError(f"{name} {chose} {arm} {when}: {allowed}")
    if code == _PROBABILITY:
        raise ValueError(
            f"{name} chose arm {arm} {when} with probability {fault.probability[0]:g}: it must be "
            "above 0 and at most 1 (nan is for policies with probability_by_draws)"
        )
    raise ValueError(
        f"{name} chose arm {arm} {when} with wake at {wake}: wake must be the clock of this round, "
        "to explore, or that of a later one, to commit"
    )
