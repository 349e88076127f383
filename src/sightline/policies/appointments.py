"""Explorations at a round that is drawn in one step: how long a silent arm is played before one.

Where playing x-hat changes nothing that is known, every round has the same law: another arm with
probability p.  The number of rounds before it is geometric, and drawing that at once, or drawing
anew in each of them, is the same law.  A time that was drawn has no memory: what cancels it costs
nothing.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import is_offered
from sightline.core.clock import FAR, Clock, is_before, later, tick
from sightline.core.consistency import invariant, may_hold
from sightline.core.persistence import migration, state_version
from sightline.jit import compiled
from sightline.policies.base import Choice

__all__ = ["Appointment", "appoint", "cancel", "keep", "no_appointment"]


@state_version(2)
@may_hold(nan=("log_t",))
class Appointment(NamedTuple):
    """The next exploration of a commitment; arrays of length one.

    Attributes
    ----------
    t, log_t : ndarray
        When; ``t`` is 0 if there is none.
    arm : ndarray
        What is played then, if it is on offer.
    probability : ndarray
        That of the exploration, in each round.
    """

    t: NDArray[np.int64]
    log_t: NDArray[np.float64]
    arm: NDArray[np.int64]
    probability: NDArray[np.float64]


@migration(Appointment, 1)
def _without_best(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Leave out what is played until then, which the means say."""
    return {name: array for name, array in arrays.items() if name != "best"}


@invariant(Appointment)
def _check(due: Appointment, name: str) -> None:
    if not 0 <= due.t[0] <= FAR:
        raise ValueError(f"{name}.t must be a round, got {due.t[0]}")


def no_appointment() -> Appointment:
    """Nothing is due."""
    t, arm = (np.zeros(1, dtype=np.int64) for _ in range(2))
    return Appointment(t, np.zeros(1), arm, np.zeros(1))


@compiled
def cancel(due: Appointment) -> None:
    """Drop what was drawn on grounds that have changed."""
    due.t[0] = 0


@compiled
def appoint(
    due: Appointment,
    best: int,
    arm: int,
    log_probability: float,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
) -> Choice:
    """Draw how long x-hat is played before another arm is, which has this probability each time."""
    offered = is_offered(offer, arm)
    begin = clock if offered else tick(clock)
    probability = min(math.exp(log_probability), 1.0)
    waiting = -math.log1p(-rng.random())  # exponential; over -log(1 - p), it is geometric
    # -log(1 - p) = p to the last bit where p is small, and p may be no float
    small = probability < 1e-9 or probability == 1.0
    log_rate = log_probability if small else math.log(-math.log1p(-probability))
    wake = later(begin, math.log(waiting) - log_rate if waiting > 0.0 else -math.inf)
    if offered and (probability == 1.0 or not is_before(clock, wake)):
        return Choice(arm, probability, clock)
    due.t[0], due.log_t[0] = wake.t, wake.log_t
    due.arm[0] = arm
    due.probability[0] = probability
    return Choice(best, 1.0 - probability if offered else 1.0, wake)


@compiled
def keep(due: Appointment, best: int, clock: Clock, offer: Any) -> Choice:
    """Keep an appointment: x-hat before it, then its arm; arm -1 if that is not on offer then."""
    wake = Clock(due.t[0], due.log_t[0])
    offered = is_offered(offer, due.arm[0])
    if is_before(clock, wake):
        return Choice(best, 1.0 - due.probability[0] if offered else 1.0, wake)
    due.t[0] = 0
    return Choice(due.arm[0] if offered else -1, due.probability[0], clock)
