"""What a session answers, and what it says when it refuses."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.labels import Level
from sightline.validation import integer

__all__ = [
    "ClosedDecisionError",
    "Decision",
    "DecisionError",
    "ExpiredDecisionError",
    "Pending",
    "RefusedRewardsError",
    "Status",
    "UnknownDecisionError",
    "UnlearnableRewardError",
]

_REASONS = 3  # in one message


@dataclass(frozen=True)
class Decision:
    """Answer to one question.

    Attributes
    ----------
    id : str
        Under which to tell the reward: unguessable, and never given out again.
    arm : int
        Row of the actions; of those that came with the question, where they are new in every
        round.
    action : ndarray, shape (d,)
        Its features.
    probability : float
        With which this arm was drawn given all rewards told before; nan if unknown, as for
        Thompson sampling among new arms without a ``floor``.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the question, from 1.
    option : str
        Name of the arm.
    levels : mapping of factor to level
        Its level of every factor, where options are combinations of factors; else empty.
    made : float
        When it was made, in seconds since 1970.
    context : str or None
        Name of its context; None where there are none.
    pair : tuple of two str, or None
        Names of the two to be compared, which are one and the same where it is to be shown alone;
        None where it is no duel.
    """

    id: str
    arm: int
    action: NDArray[np.float64]
    probability: float
    exploring: bool
    round: int
    option: str
    levels: Mapping[str, Level]
    made: float
    context: str | None = None
    pair: tuple[str, str] | None = None


class Pending(NamedTuple):
    """A decision whose reward has not been told.

    Attributes
    ----------
    id : str
        Under which to tell the reward.
    arm : int
        Row of the actions.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the question.
    probability : float
        With which the arm was drawn.
    made : float
        When, in seconds since 1970.
    features : tuple of float, or None
        Of the arm, where arms are new in every round: an outcome is learned through them.  None
        once the decision is closed.
    """

    id: str
    arm: int
    exploring: bool
    round: int
    probability: float
    made: float
    features: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Status:
    """Where an experiment stands.

    Attributes
    ----------
    best : str, int or None
        Name of the empirically best option, or its row where options have no names; None if the
        policy does not report one, if there are contexts, or if arms are new in every round.  In a
        duel, the best item.
    settled : bool or None
        Whether ``evidence >= threshold``: at the confidence level 1 / (t log t) of the current
        round t, no plausible parameter has another best arm, in any context.  None if the policy
        has no level.  Never while the data contradict what was told of the rewards: ``advice`` then
        says so.
    evidence, threshold : float
        m_s and beta_{s, t log t} / 2; with contexts, m_s of the one of which least is known.  nan
        if arms are new in every round: those to come are not known.
    round : int
        The next question.
    next_exploration : int or None
        First round at which the policy would learn again if nothing more is told; None: never,
        or beyond 10^4000.
        Where arms are new in every round, the next one: it may.
    explorations : int
        Rewards learned from.
    pending : int
        Questions whose reward has not been told.
    waiting : int
        Rewards that were told and wait until their window closes; then they enter the estimate.
    waiting_until : float or None
        When the last of them does: in seconds since 1970, or in which round if the window is
        measured in rounds; None if no reward waits.
    told, expired, given_up : int
        Questions that were closed: by a reward, by the end of the reward window, by ``give_up``.
    late : int
        Rewards that came after the end of their window, and were refused.
    expected_loss : float
        What stopping now, and playing the best arm for ever, is expected to lose per decision; nan
        if the policy does not say, or if there are contexts or new arms in every round.
    price : float
        What it costs, in rewards, to make this loss smaller by the factor e.
    bests : mapping of str to str or int
        Empirically best option of every context, as ``best`` has it, by the name of the context;
        empty without contexts, or if the policy does not report any.
    advice : str
        What would make the experiment better, in a sentence; mostly nothing.
    unit : str
        What ``expected_loss`` and ``price`` are counted in: ``"clicks"`` of Bernoulli rewards,
        ``"events"`` of Poisson ones, else ``"reward"``.
    """

    best: str | int | None
    settled: bool | None
    evidence: float
    threshold: float
    round: int
    next_exploration: int | None
    explorations: int
    pending: int
    told: int
    expired: int
    given_up: int
    late: int
    expected_loss: float
    price: float
    bests: Mapping[str, str | int] = field(default_factory=dict)
    advice: str = ""
    waiting: int = 0
    waiting_until: float | None = None
    unit: str = "reward"

    def at_stake(self, decisions: int) -> str:
        """Say in words whether it is worth to go on exploring.

        Losing L per decision and paying C for every factor of e, exploring is worth its price
        until as much is lost as one more factor costs.

        Parameters
        ----------
        decisions : int
            How many are still to come.
        """
        count = integer("decisions", decisions, at_least=1)
        if math.isnan(self.expected_loss):
            return "This policy does not say what is at stake."
        lost, unit = count * self.expected_loss, self.unit
        stop = (
            f"Stopping now and always choosing the best option so far is expected to lose "
            f"{_amount(lost, unit)} in {count:,} more decisions"
        )
        if math.isinf(self.price):
            return f"{stop}; no option can tell more."
        if lost <= self.price:
            price = _amount(self.price, unit)
            return f"{stop}; finding out more would cost {price} and is not worth it."
        cost = self.price * math.log(lost / self.price) if self.price > 0.0 else 0.0
        return (
            f"{stop}; exploring first costs {_amount(cost, unit)} and leaves an expected loss of "
            f"{_amount(self.price, unit)}."
        )


def _amount(value: float, unit: str) -> str:
    """Write a total of rewards with its unit: people do not want its digits."""
    number = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"
    if unit == "reward":
        return f"about {number} in reward"
    return f"about {number} {unit.removesuffix('s') if number == '1' else unit}"


class DecisionError(KeyError):
    """A reward that cannot be taken; nothing was changed."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError shows its key in quotes


class UnknownDecisionError(DecisionError):
    """No decision has this id."""


class ClosedDecisionError(DecisionError):
    """Another reward was told before, or the decision was given up."""


class ExpiredDecisionError(DecisionError):
    """The reward came after the end of its window."""


class UnlearnableRewardError(ValueError):
    """Learning from a reward would lead to numbers that are not finite."""


class RefusedRewardsError(DecisionError):
    """Some of several rewards were refused; all others were told.

    Attributes
    ----------
    refused : dict of str to Exception
        By the id of a decision, what telling its reward alone would have raised.
    """

    def __init__(self, refused: Mapping[str, Exception], count: int) -> None:
        self.refused = dict(refused)
        reasons = "; ".join(f"{id_}: {error}" for id_, error in islice(refused.items(), _REASONS))
        more = "; ..." if len(refused) > _REASONS else ""
        others = "the others were told" if count > len(refused) else "there were no others"
        super().__init__(f"{len(refused)} of {count} rewards refused, {others}: {reasons}{more}")
