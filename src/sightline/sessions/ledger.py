"""Decisions of a session: open, closed, and when they expire.

Only what has been applied to the policy is entered here; entering the same twice changes nothing,
so that an interrupted entry can be made again.
"""

from __future__ import annotations

import math
import os
import re
from binascii import b2a_base64
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

from sightline.sessions.decisions import (
    ClosedDecisionError,
    DecisionError,
    ExpiredDecisionError,
    Pending,
    UnknownDecisionError,
)
from sightline.validation import LARGEST, flag, integer, number, shown

__all__ = [
    "Closing",
    "Ending",
    "Ledger",
    "Received",
    "Tally",
    "Told",
    "Window",
    "date_of",
    "is_nothing",
    "new_ids",
    "numbers_told",
    "refusal",
    "reward_value",
    "unknown",
    "valid_window",
    "window",
]

Ending = Literal["told", "expired", "given up"]
#: A reward or outcome; several numbers where options of a game show more than one.
Told = float | tuple[float, ...]

#: Longest windows: when they end can be written as a date (317 years), and as a number of JSON.
MOST_SECONDS, MOST_ROUNDS = 1e10, 10**15
#: Closed decisions that are remembered, so that a reward told twice is recognised.
REMEMBERED = 10_000


class Closing(NamedTuple):
    """How a decision was closed.

    Attributes
    ----------
    decision : Pending
        The decision.
    ending : str
        ``"told"``, ``"expired"`` or ``"given up"``.
    reward : float or tuple of float
        What was told, or assumed in its place; nan if nothing.
    when : float
        Seconds since 1970.
    """

    decision: Pending
    ending: Ending
    reward: Told
    when: float


class Received(NamedTuple):
    """A reward that was told while the window of its decision is open."""

    reward: Told
    when: float


class Window(NamedTuple):
    """How long to wait for rewards, and when they enter the estimate.

    Attributes
    ----------
    seconds : float or None
        Since the decision.
    rounds : int or None
        Later questions.
    reward : float or None
        What to learn in place of a reward that has not come; None: nothing.
    early : bool
        Whether a reward enters the estimate when it is told.  If not, all rewards wait until
        their window closes: successes that are told at once would otherwise count before the
        failures of the same time, which are known by silence alone.
    """

    seconds: float | None = None
    rounds: int | None = None
    reward: float | None = None
    early: bool = False

    @property
    def holds(self) -> bool:
        """Whether rewards wait until their window closes."""
        return not (self.early or (self.seconds is None and self.rounds is None))

    def is_over(self, decision: Pending, now: float, round_: int) -> bool:
        """Whether the reward of a decision comes too late."""
        late = self.seconds is not None and now - decision.made > self.seconds
        return late or (self.rounds is not None and round_ - decision.round > self.rounds)


def valid_window(seconds: object, rounds: object, reward: object, early: object = False) -> Window:
    """Check a window that comes from a file."""
    return _consistent(
        None if seconds is None else _seconds("seconds", seconds),
        None if rounds is None else _rounds("rounds", rounds),
        None if reward is None else reward_value("reward", reward),
        flag("early_rewards", early),
    )


def _seconds(name: str, value: object) -> float:
    return number(name, value, above=0, at_most=MOST_SECONDS)


def _rounds(name: str, value: object) -> int:
    return integer(name, value, at_least=1, at_most=MOST_ROUNDS)


def _consistent(
    seconds: float | None, rounds: int | None, reward: float | None, early: bool
) -> Window:
    """Refuse to learn early where silence means a reward: it comes later than the others."""
    if early and reward is not None:
        raise ValueError(
            f"early_rewards=True needs on_timeout='ignore', got {reward:g}: rewards that are told "
            "would enter the estimate before those that are known by silence"
        )
    if early and seconds is None and rounds is None:
        raise ValueError("early_rewards=True needs a reward_window such as '2 hours'")
    return Window(seconds, rounds, reward, early)


_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}


def window(reward_window: object, on_timeout: object, early_rewards: object = False) -> Window:
    """Check the arguments of a session.

    Parameters
    ----------
    reward_window : float, timedelta, str or None
        Seconds, or a text such as ``"2 hours"`` or ``"500 rounds"``; None: no end.
    on_timeout : "ignore" or float
        What to learn after that.
    early_rewards : bool
        Whether rewards enter the estimate when they are told, not when their window closes.
    """
    early = flag("early_rewards", early_rewards)
    if on_timeout == "ignore":
        reward = None
    elif isinstance(on_timeout, str):
        raise ValueError(f"on_timeout must be 'ignore' or a reward such as 0, got {on_timeout!r}")
    else:
        reward = reward_value("on_timeout", on_timeout)
    if reward_window is None:
        if reward is not None:
            raise ValueError(f"on_timeout={reward:g} needs a reward_window such as '2 hours'")
        return _consistent(None, None, None, early)
    if isinstance(reward_window, timedelta):
        reward_window = reward_window.total_seconds()
    if not isinstance(reward_window, str):
        seconds = _seconds("reward_window", reward_window)
        return _consistent(seconds, None, reward, early)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]+?)s?\s*", reward_window)
    if match is None or (match[2] != "round" and match[2] not in _UNITS):
        raise ValueError(
            "reward_window must be seconds, a timedelta, or a text such as '2 hours' or "
            f"'500 rounds', got {reward_window!r}"
        )
    try:
        amount = int(match[1]) if match[2] == "round" else float(match[1])
    except ValueError:
        raise ValueError(f"reward_window has no valid number: {reward_window!r}") from None
    if match[2] == "round":
        rounds = _rounds("reward_window", amount)
        return _consistent(None, rounds, reward, early)
    seconds = _seconds("reward_window", amount * _UNITS[match[2]])
    return _consistent(seconds, None, reward, early)


def reward_value(name: str, reward: object) -> float:
    """Return a reward of a size that can be squared."""
    if type(reward) is float and -LARGEST <= reward <= LARGEST:
        return reward  # which most are
    value = number(name, reward)
    if abs(value) > LARGEST:
        raise ValueError(f"{name} must not exceed {LARGEST:g}, got {value:g}")
    return value


_LETTERS = bytes.maketrans(b"+/", b"-_")  # which can be part of an address


def new_ids(count: int) -> list[str]:
    """Make ids that nobody can guess and that no other session has: 96 random bits each."""
    text = b2a_base64(os.urandom(12 * count), newline=False)  # four letters per three bytes
    letters = text.translate(_LETTERS).decode()
    return [letters[i : i + 16] for i in range(0, 16 * count, 16)]


def date_of(seconds: float) -> str:
    """Write a moment as people do."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")


class Tally(NamedTuple):
    """How many decisions were closed in which way, and how many rewards came too late."""

    told: int = 0
    expired: int = 0
    given_up: int = 0
    late: int = 0

    def after(self, closings: list[Closing], late: int = 0) -> Tally:
        """Count these as well."""
        if not (closings or late):
            return self
        endings = [closing.ending for closing in closings]
        return Tally(
            told=self.told + endings.count("told"),
            expired=self.expired + endings.count("expired"),
            given_up=self.given_up + endings.count("given up"),
            late=self.late + late,
        )


class Ledger:
    """Open decisions, the last closed ones, and how many there were of each kind."""

    def __init__(self, window_: Window) -> None:
        self.window = window_
        # Whose first entry is found at once, however many before it were removed.
        self.open: OrderedDict[str, Pending] = OrderedDict()  # the oldest first
        self.closed: OrderedDict[str, Closing] = OrderedDict()  # the one closed first comes first
        self.received: dict[str, Received] = {}  # of open decisions, until their window closes
        self.tally = Tally()

    def due(self, now: float, round_: int, most: int | None = None) -> list[Closing]:
        """Decisions whose window is over, with their rewards or what is learned in their place.

        The oldest ones, as many as ``most`` says.
        """
        limits = self.window
        if limits.seconds is None and limits.rounds is None:
            return []
        reward = math.nan if limits.reward is None else limits.reward
        over: list[Closing] = []
        for decision in self.open.values():
            if len(over) == most:
                break
            if limits.is_over(decision, now, round_):
                told = self.received.get(decision.id)
                over.append(
                    Closing(decision, "expired", reward, now)
                    if told is None
                    else Closing(decision, "told", told.reward, now)
                )
            elif limits.seconds is None or decision.made <= now:
                break  # those made later are not over either
            # else the clock was set back since, and it says nothing of those made later
        return over

    def waiting_until(self) -> float | None:
        """Find when the last of the rewards received so far enters the estimate; None for none.

        In seconds since 1970, or as a round, as the window is measured.
        """
        if not self.received:
            return None
        newest = self.open[next(id_ for id_ in reversed(self.open) if id_ in self.received)]
        limits = self.window
        if limits.rounds is not None:
            return float(newest.round + limits.rounds + 1)
        assert limits.seconds is not None
        return newest.made + limits.seconds

    def enter(
        self,
        closings: Iterable[Closing],
        decisions: Iterable[Pending],
        tally: Tally,
        received: Mapping[str, Received],
    ) -> None:
        """Enter what has happened, and the tally after it.

        What has been entered already changes nothing: an interrupted entry is made again.
        """
        self.received.update(received)
        for closing in closings:
            decision = closing.decision
            self.received.pop(decision.id, None)
            if decision.features is not None:  # which nobody needs any more
                closing = closing._replace(decision=decision._replace(features=None))
            self.closed[decision.id] = closing
            self.open.pop(decision.id, None)
        for made in decisions:
            self.open[made.id] = made
        while len(self.closed) > REMEMBERED:
            self.closed.popitem(last=False)
        self.tally = tally

    def amend(self, id_: str, reward: Told | list[float]) -> None:
        """Remember another reward of a decision that was told, if it is remembered at all."""
        closing = self.closed.get(id_)
        if closing is not None:
            told = tuple(reward) if isinstance(reward, list) else reward
            self.closed[id_] = closing._replace(reward=told)


def is_nothing(told: Told) -> bool:
    """Whether nothing was told."""
    return isinstance(told, float) and math.isnan(told)


def numbers_told(told: Any) -> tuple[float, ...]:
    """List the numbers that were told of a decision."""
    return (told,) if isinstance(told, float) else tuple(told)


def unknown(id_: str) -> UnknownDecisionError:
    """Error for an id that nothing is known of."""
    return UnknownDecisionError(
        f"no decision has the id {shown(id_)}: it was made by another session, or after the "
        f"state that this session was loaded from, or closed more than {REMEMBERED} rewards ago"
    )


def refusal(id_: str, closing: Closing | None, reward: Told) -> DecisionError | None:
    """Error for a reward that comes when its decision is not open; None for the same again."""
    if closing is None:
        return unknown(id_)
    when = date_of(closing.when)
    if closing.ending == "expired":
        return ExpiredDecisionError(f"the window of decision {id_} ended: {when}")
    if closing.ending == "given up":
        return ClosedDecisionError(f"decision {id_} was given up at {when}")
    if closing.reward == reward:
        return None
    return ClosedDecisionError(
        f"decision {id_} was told before: {closing.reward!r} at {when}, now {reward!r}"
    )
