"""Decisions in flight: handed out, their outcomes still open.

Means come from outcomes that have been told, V from all arms that have been handed out: what is on
its way will tell as much as if it were here, and need not be asked for again.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, whole
from sightline.core.estimation.estimate import LeastSquares, LikelihoodFit
from sightline.core.estimation.foreseen import (
    Foreseen,
    begin_now,
    foresee,
    foresee_gram,
    foreseen,
)
from sightline.core.estimation.least_squares import update_seen_widths
from sightline.core.likelihood.laws import information
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "InFlight",
    "NewInFlight",
    "in_flight",
    "land",
    "new_in_flight",
    "see_all_landed",
    "take_off",
]


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


@persists("gram", "open")
class NewInFlight(NamedTuple):
    """Open decisions among arms that were new: sum of x x^T, and how many there are."""

    gram: NDArray[np.float64]  # (d, d)
    open: NDArray[np.int64]  # (1,)
    space: Foreseen


@invariant(NewInFlight)
def _check_new(flight: NewInFlight, name: str) -> None:
    whole(f"{name}.open", flight.open)


def new_in_flight(estimate: LeastSquares) -> NewInFlight:
    """No open decision."""
    d = estimate.arms.rewards.shape[1]
    return NewInFlight(np.zeros((d, d)), np.zeros(1, dtype=np.int64), foreseen(estimate))


@generic
def take_off(flight: Any, estimate: LeastSquares, arm: int) -> None:
    """Take note of a decision whose outcome is open."""
    raise TypeError(f"{type(flight).__name__} keeps no open decisions")


@take_off.register(InFlight)
@compiled
def _take_off(flight: InFlight, estimate: LeastSquares, arm: int) -> None:
    flight.pulls[arm] += 1.0


@take_off.register(NewInFlight)
@compiled
def _take_off_new(flight: NewInFlight, estimate: LeastSquares, arm: int) -> None:
    flight.open[0] += 1
    _add_square(flight.gram, estimate.arms.rewards[arm], 1.0)


@compiled
def _add_square(gram: NDArray[np.float64], row: NDArray[np.float64], sign: float) -> None:
    for i in range(row.shape[0]):
        for j in range(row.shape[0]):
            gram[i, j] += sign * row[i] * row[j]


@generic
def land(flight: Any, estimate: LeastSquares, arm: int) -> None:
    """Take note that the outcome of a decision has come, or never will.

    Whoever tells every outcome at once need not announce it.
    """
    raise TypeError(f"{type(flight).__name__} keeps no open decisions")


@land.register(InFlight)
@compiled
def _land(flight: InFlight, estimate: LeastSquares, arm: int) -> None:
    if flight.pulls[arm] > 0.0:
        flight.pulls[arm] -= 1.0


@land.register(NewInFlight)
@compiled
def _land_new(flight: NewInFlight, estimate: LeastSquares, arm: int) -> None:
    if flight.open[0] > 0:
        flight.open[0] -= 1
        # what rounding would leave of the last one is none of it
        _add_square(flight.gram, estimate.arms.rewards[arm], -1.0)
        if flight.open[0] == 0:
            for i in range(flight.gram.shape[0]):
                for j in range(flight.gram.shape[0]):
                    flight.gram[i, j] = 0.0


@generic
def see_all_landed(flight: Any, estimate: LeastSquares) -> None:
    """Make the view as sure as the estimate will be once all open outcomes have come."""
    raise TypeError(f"{type(flight).__name__} keeps no open decisions")


@see_all_landed.register(InFlight)
@compiled
def _see_landed(flight: InFlight, estimate: LeastSquares) -> None:
    view = flight.space.estimate
    update_seen_widths(estimate)
    begin_now(view, estimate)
    for x in range(flight.pulls.shape[0]):
        if flight.pulls[x] > 0.0:
            foresee(view, x, flight.pulls[x])


@see_all_landed.register(NewInFlight)
@compiled
def _see_new_landed(flight: NewInFlight, estimate: LeastSquares) -> None:
    view = flight.space.estimate
    begin_now(view, estimate)
    if flight.open[0] > 0:
        seen = estimate.arms.observations
        worth = _worth(seen.likelihood, estimate)
        foresee_gram(view, seen.stream.factor, flight.gram, worth)


@compiled
def _worth(likelihood: LikelihoodFit | None, estimate: LeastSquares) -> float:
    """Say what an open outcome is worth, beside one of unit noise.

    A click or a count as much as one of an arm with the mean predictor of those that are shown.
    """
    if likelihood is None:
        return 1.0
    means = estimate.arms.means
    total = 0.0
    for x in range(means.shape[0]):
        total += means[x]
    return information(likelihood.law, total / means.shape[0])
