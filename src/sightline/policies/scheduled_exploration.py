"""Scheduled exploration: the round of the next exploration, drawn in one step.

While playing x-hat changes nothing that is known, every round has the same distribution: another
arm with probability p.  The number of rounds before that arm is geometric.  Drawing this number at
once and drawing in every round give the same distribution.  A geometric time has no memory, so
cancelling it costs nothing.

| symbol                | here                     | shape |
|-----------------------|--------------------------|-------|
| round of the next exploration | ``t``, ``log_t`` | (1,)  |
| arm that it plays     | ``arm``                  | (1,)  |
| p                     | ``probability``          | (1,)  |
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, is_offered
from sightline.core.clock import FAR, Clock, is_before, later, tick
from sightline.core.persistence import invariant, may_hold, state_version
from sightline.jit import compiled
from sightline.policies.base import Choice


@state_version(2)
@may_hold(nan=("log_t",))
class ScheduledExploration(NamedTuple):
    """The next exploration of a commitment; arrays of length one.

    Attributes
    ----------
    t, log_t : ndarray
        Its round; ``t`` is 0 if none is scheduled.
    arm : ndarray
        Arm that is played then, if it is on offer.
    probability : ndarray
        Probability of an exploration in each round.
    """

    t: NDArray[np.int64]
    log_t: NDArray[np.float64]
    arm: NDArray[np.int64]
    probability: NDArray[np.float64]


@invariant(ScheduledExploration)
def _check(scheduled: ScheduledExploration, name: str) -> None:
    if not 0 <= scheduled.t[0] <= FAR:
        raise ValueError(f"{name}.t must be a round, got {scheduled.t[0]}")


def nothing_scheduled() -> ScheduledExploration:
    """Make an empty schedule."""
    t, arm = (np.zeros(1, dtype=np.int64) for _ in range(2))
    return ScheduledExploration(t, np.zeros(1), arm, np.zeros(1))


@compiled
def cancel(scheduled: ScheduledExploration) -> None:
    """Cancel the exploration: what it was drawn from has changed."""
    scheduled.t[0] = 0


@compiled
def schedule(
    scheduled: ScheduledExploration,
    best: int,
    arm: int,
    log_probability: float,
    clock: Clock,
    offer: ActionSet,
    rng: np.random.Generator,
) -> Choice:
    """Draw the next round of an arm that has this probability in every round; x-hat until then."""
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
    scheduled.t[0], scheduled.log_t[0] = wake.t, wake.log_t
    scheduled.arm[0] = arm
    scheduled.probability[0] = probability
    return Choice(best, 1.0 - probability if offered else 1.0, wake)


@compiled
def play_scheduled(
    scheduled: ScheduledExploration, best: int, clock: Clock, offer: ActionSet
) -> Choice:
    """Play x-hat before the scheduled round and its arm then; arm -1 if that is not on offer."""
    wake = Clock(scheduled.t[0], scheduled.log_t[0])
    offered = is_offered(offer, scheduled.arm[0])
    if is_before(clock, wake):
        return Choice(best, 1.0 - scheduled.probability[0] if offered else 1.0, wake)
    scheduled.t[0] = 0
    return Choice(scheduled.arm[0] if offered else -1, scheduled.probability[0], clock)
