"""How decisions turned out, by what an arm shows, and what the kernels of turns ask of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import State
from sightline.jit import compiled, generic
from sightline.policies.base import show
from sightline.validation import SMALLEST

__all__ = [
    "Outcome",
    "OutcomeOfNew",
    "OutcomeOfSeveral",
    "add_told",
    "note_scale",
    "place_of",
    "was_told",
]

Array = NDArray[np.float64]


class Outcome(NamedTuple):
    """How a decision turned out.

    Attributes
    ----------
    t : int
        Round of the decision.
    arm : int
        What was played.
    reward : float
        What was told, in a game the outcome; nan if nothing ever will be.
    weight : float
        rho of the arm: the outcome is reward times weight.
    learns : bool
        Whether the policy wants to know.
    """

    t: int
    arm: int
    reward: float
    weight: float
    learns: bool


class OutcomeOfNew(NamedTuple):
    """How a decision turned out whose arm has gone since: others came with later questions.

    Attributes
    ----------
    t, arm, reward, weight, learns
        As of :class:`Outcome`; ``arm`` is the row among those that came with the question.
    row : ndarray, shape (1, d)
        Features of the arm.
    place : int
        Row of the policy's table through which it is learned.
    """

    t: int
    arm: int
    reward: float
    weight: float
    learns: bool
    row: Array
    place: int


class OutcomeOfSeveral(NamedTuple):
    """How a decision turned out whose arm shows p numbers.

    Attributes
    ----------
    t, arm, learns
        As of :class:`Outcome`.
    reward, weight : ndarray, shape (p,)
        As of :class:`Outcome`, for each number; all nan if nothing ever will be told.
    """

    t: int
    arm: int
    reward: Array
    weight: Array
    learns: bool


@generic
def place_of(outcome: Any, state: State) -> int:
    """Say which row of its table a policy is to learn from, and put it there if it has gone."""
    raise TypeError(f"{type(outcome).__name__} is no outcome")


@place_of.register(Outcome)
@place_of.register(OutcomeOfSeveral)
@compiled
def _own_place(outcome: Any, state: State) -> int:
    arm: int = outcome.arm
    return arm


@place_of.register(OutcomeOfNew)
@compiled
def _spare_place(outcome: OutcomeOfNew, state: State) -> int:
    show(state, outcome.row, outcome.place, outcome.place + 1)
    return outcome.place


@generic
def was_told(outcome: Any) -> bool:
    """Whether anything was told."""
    raise TypeError(f"{type(outcome).__name__} is no outcome")


@was_told.register(Outcome)
@was_told.register(OutcomeOfNew)
@compiled
def _number_comes(outcome: Any) -> bool:
    return not np.isnan(outcome.reward)


@was_told.register(OutcomeOfSeveral)
@compiled
def _numbers_come(outcome: OutcomeOfSeveral) -> bool:
    return not np.isnan(outcome.reward[0])


@generic
def add_told(outcome: Any, totals: Array) -> None:
    """Add what was told to the totals of its arm."""
    raise TypeError(f"{type(outcome).__name__} is no outcome")


@add_told.register(Outcome)
@add_told.register(OutcomeOfNew)
@compiled
def _add_number(outcome: Any, totals: Array) -> None:
    totals[outcome.arm] += outcome.reward


@add_told.register(OutcomeOfSeveral)
@compiled
def _add_numbers(outcome: OutcomeOfSeveral, totals: Array) -> None:
    p = outcome.reward.shape[0]
    for i in range(p):
        totals[outcome.arm * p + i] += outcome.reward[i]


@generic
def note_scale(outcome: Any, standing: Any) -> None:
    """Learn origin and unit of rewards, and how much they vary, before totals have this one."""
    raise TypeError(f"{type(outcome).__name__} is no outcome")


@compiled
def _find_units(reward: float, origin: Array, unit: Array) -> None:
    if np.isnan(origin[0]):
        origin[0] = reward
    distance = abs(reward - origin[0])
    if np.isnan(unit[0]) and distance > 0.0:
        unit[0] = max(distance, SMALLEST)


@note_scale.register(OutcomeOfSeveral)
@compiled
def _note_nothing(outcome: OutcomeOfSeveral, standing: Any) -> None:
    pass


@note_scale.register(OutcomeOfNew)
@compiled
def _note_units_and_square(outcome: OutcomeOfNew, standing: Any) -> None:
    """Add the square of what the policy learns: new arms have no mean to deviate from."""
    _find_units(outcome.reward, standing.origin, standing.unit)
    if outcome.learns and not np.isnan(standing.unit[0]):
        scaled = (outcome.reward - standing.origin[0]) / standing.unit[0] * outcome.weight
        standing.squares[0] += scaled * scaled


@note_scale.register(Outcome)
@compiled
def _note_units_and_spread(outcome: Outcome, standing: Any) -> None:
    _find_units(outcome.reward, standing.origin, standing.unit)
    n = standing.told[outcome.arm]
    if n > 0:
        total = standing.totals[outcome.arm]
        before = outcome.reward - total / n
        after = outcome.reward - (total + outcome.reward) / (n + 1)
        # while all rewards are the same, their mean differs from them by rounding alone
        if before * after > 0.0 and not np.isnan(standing.unit[0]):
            scale = outcome.weight / standing.unit[0]
            standing.squares[0] += before * scale * after * scale
