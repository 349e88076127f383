"""Decisions in flight: handed out, their outcomes still open.

Means come from outcomes that have been told, V from all arms that have been handed out: what is on
its way will tell as much as if it were here, and need not be asked for again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, whole
from sightline.core.estimation.foreseen import Foreseen, begin_now, foresee, foreseen
from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = ["InFlight", "in_flight", "land", "see_all_landed", "take_off"]


@persists("pulls")
class InFlight(NamedTuple):
    """Open decisions of each arm, and what one will know once all have come."""

    pulls: NDArray[np.float64]  # (k,)
    space: Foreseen


@invariant(InFlight)
def _check(flight: InFlight, name: str) -> None:
    whole(f"{name}.pulls", flight.pulls)


def in_flight(estimate: LeastSquares) -> InFlight:
    """No open decision."""
    return InFlight(np.zeros(len(estimate.arms.rewards)), foreseen(estimate))


@compiled
def take_off(flight: InFlight, arm: int) -> None:
    """Take note of a decision whose outcome is open."""
    flight.pulls[arm] += 1.0


@compiled
def land(flight: InFlight, arm: int) -> None:
    """Take note that the outcome of a decision has come, or never will.

    Whoever tells every outcome at once need not announce it.
    """
    if flight.pulls[arm] > 0.0:
        flight.pulls[arm] -= 1.0


@compiled
def see_all_landed(flight: InFlight, estimate: LeastSquares) -> None:
    """Make the view as sure as the estimate will be once all open outcomes have come."""
    view = flight.space.estimate
    begin_now(view, estimate)
    for x in range(flight.pulls.shape[0]):
        if flight.pulls[x] > 0.0:
            foresee(view, x, flight.pulls[x])
