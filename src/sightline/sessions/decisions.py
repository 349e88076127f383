"""Decisions of a session, the windows of their rewards, and exact sums of all rewards.

:class:`Decisions` holds the decisions that the policy knows of.  Entering the same twice changes
nothing, so that an interrupted entry can be repeated.

:class:`RewardSums` keeps the rewards of every option as exact sums, from which an amendment
recomputes what was learned.  Floating-point sums do not suffice: subtracting a reward of 1e18 from
them leaves 0 of all others.  All sums are therefore integers in units of the smallest float.
Adding and subtracting are exact in any order, and their cost does not grow with the number of
rewards.

| symbol                                  | here                  |
|-----------------------------------------|-----------------------|
| n, number of rewards                    | ``ExactSums.n``       |
| sum of r, in units of 2^-1074           | ``ExactSums.total``   |
| sum of r^2, in units of 2^-2148         | ``ExactSums.squares`` |
"""

from __future__ import annotations

import math
import os
import re
from binascii import b2a_base64
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import within
from sightline.sessions.attributes import (
    NO_ATTRIBUTES,
    Attributes,
    attributes_in,
    attributes_to_text,
    note_kinds,
    valid_attributes,
    valid_kinds,
)
from sightline.sessions.options import Level, Options
from sightline.sessions.snapshot import Arrays, Snapshot
from sightline.validation import LARGEST, finite_array, flag, integer, number, shown

#: Upper limits of windows: their end is a date (317 years) and a number that JSON can hold.
MOST_SECONDS, MOST_ROUNDS = 1e10, 10**15
#: Closed decisions kept in memory, to recognise a reward that is told twice.
REMEMBERED = 10_000
#: Checks without which an option must not be called settled.
DOUBTS = ("scale", "drift", "fit")
_REASONS = 3  # in one message
_WINDOW_UNITS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0}
_URL_SAFE = bytes.maketrans(b"+/", b"-_")

Ending = Literal["told", "expired", "given up"]
_ENDINGS: tuple[Ending, ...] = get_args(Ending)
#: A reward or outcome; several numbers where options of a game show more than one.
Told = float | tuple[float, ...]


@dataclass(frozen=True)
class Decision:
    """Answer to one question.

    Attributes
    ----------
    id : str
        Identifies the decision when its reward is told.  Ids are unguessable and never reused.
    arm : int
        Row of the options; in a stream, of those that came with the question.
    features : ndarray, shape (d,)
        Features of the arm.
    probability : float
        Probability of this arm, given all rewards told before; nan if unknown, as for Thompson
        sampling in a stream without a ``min_probability``.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the decision, from 1.
    option : str
        Name of the arm.
    levels : mapping of factor to level
        Levels of the arm in a factorial design; otherwise empty.
    made : float
        Time of the decision, in seconds since 1970.
    context : str or None
        Name of its context; None without contexts.
    pair : tuple of two str, or None
        In a duel, the names of the two options to compare, which are equal where one option is to
        be shown alone.
    attributes : mapping of str to str, int, float or bool
        Its recorded attributes; otherwise empty.
    """

    id: str
    arm: int
    features: NDArray[np.float64]
    probability: float
    exploring: bool
    round: int
    option: str
    levels: Mapping[str, Level]
    made: float
    context: str | None = None
    pair: tuple[str, str] | None = None
    attributes: Mapping[str, Level] = field(default_factory=dict)


class Pending(NamedTuple):
    """A decision without a reward.

    Attributes
    ----------
    id : str
        Identifies the decision when its reward is told.
    arm : int
        Row of the options.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the decision.
    probability : float
        Probability of the arm.
    made : float
        Time of the decision, in seconds since 1970.
    features : tuple of float, or None
        Features of the arm in a stream, to learn from its outcome; None once it is closed.
    attributes : mapping of str to str, int, float or bool
        Its recorded attributes; empty once it is closed.
    """

    id: str
    arm: int
    exploring: bool
    round: int
    probability: float
    made: float
    features: tuple[float, ...] | None = None
    attributes: Attributes = NO_ATTRIBUTES


class Check(NamedTuple):
    """Result of one check.

    Attributes
    ----------
    name : str
        ``"scale"``, ``"drift"``, ``"fit"``, ``"missing"``, ``"outliers"``, ``"estimates"``,
        ``"traffic"`` or ``"delays"``.
    passed : bool or None
        Whether the p-value is above the level; None if the check cannot be made.
    p_value : float
        Valid at all times: the probability that it ever falls to the level, while nothing is wrong,
        is at most the level.  nan if the check cannot be made.
    level : float
        Level of the check; those of all checks add up to 1 %.
    sentence : str
        What was found, or why the check cannot be made.
    options : tuple of str
        Labels of the options that it concerns, if it failed.
    """

    name: str
    passed: bool | None
    p_value: float
    level: float
    sentence: str
    options: tuple[str, ...] = ()


def doubt_in(checks: Sequence[Check]) -> str:
    """Sentences of failed checks that contradict what estimates assume; usually empty."""
    return " ".join(one.sentence for one in checks if one.name in DOUBTS and one.passed is False)


def advice_in(checks: Sequence[Check]) -> str:
    """Sentences of all failed checks; usually empty."""
    return " ".join(one.sentence for one in checks if one.passed is False)


@dataclass(frozen=True)
class Status:
    """State of an experiment.

    Attributes
    ----------
    best : str, int or None
        Name of the empirically best option, or its row where options have no names; in a duel, the
        best item.  None if the policy does not report one, with contexts, and in a stream.
    settled : bool or None
        Whether ``evidence >= threshold``: at the confidence level 1 / (t log t) of the current
        round t, or ``delta`` if the policy's ``LogDet`` has a number there, no plausible parameter
        has another best arm, in any context.  None if the policy has no such test.  False while
        the data contradict an assumption about the rewards, or the check ``"scale"``, ``"drift"``
        or ``"fit"`` has failed; then ``advice`` says which.
    evidence, threshold : float
        m_s and beta_{s, t log t} / 2; with contexts, those of the context with the least evidence.
        nan in a stream, where future options are unknown.
    round : int
        Number of the next decision.
    next_exploration : int or None
        First round in which the policy learns again if no more rewards come; None if never, or
        after round 10^4000.  In a stream, the next round.
    explorations : int
        Number of rewards learned from.
    pending : int
        Number of decisions without a reward.
    waiting : int
        Number of rewards that wait for their window to close before they enter the estimate.
    waiting_until : float or None
        When the last of them enters: in seconds since 1970, or as a round if the window is
        measured in rounds; None if no reward waits.
    told, expired, given_up : int
        Number of decisions closed by a reward, by the end of the reward window, by ``give_up``.
    late : int
        Number of rewards refused because their window was over.
    expected_loss : float
        Expected loss per decision of stopping now and always playing the best arm; nan if the
        policy does not say, with contexts, and in a stream.
    price : float
        Cost, in rewards, of reducing this loss by the factor e.
    bests : mapping of str to str or int
        Empirically best option of every context, as in ``best``, by the name of the context;
        empty without contexts, or if the policy does not report any.
    advice : str
        Sentences on failed checks and on how to improve the experiment; usually empty.
    checks : tuple of Check
        Results of the checks of :meth:`Session.checks`.
    unit : str
        Unit of ``expected_loss`` and ``price``: ``"clicks"`` for Bernoulli rewards, ``"events"``
        for Poisson rewards, otherwise ``"reward"``.
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
    checks: tuple[Check, ...] = ()

    def at_stake(self, decisions: int) -> str:
        """Say in words whether continuing to explore is worthwhile.

        With a loss L per decision and a cost C for every factor of e, exploring pays until the
        remaining loss is as large as the cost of one more factor.  That assumes that rewards stay
        as they are and agree with the model; if a check of this has failed, the sentence says so.

        Parameters
        ----------
        decisions : int
            Number of decisions still to come.
        """
        count = integer("decisions", decisions, at_least=1)
        if math.isnan(self.expected_loss):
            return "This policy does not say what is at stake."
        doubt = doubt_in(self.checks)
        if doubt:
            return f"What is at stake is not known. {doubt}"
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
    """Format a total of rewards with its unit, to two digits."""
    digits = f"{value:.2g}" if value < 99.5 else f"{value:,.0f}"
    if unit == "reward":
        return f"about {digits} in reward"
    return f"about {digits} {unit.removesuffix('s') if digits == '1' else unit}"


class DecisionError(KeyError):
    """A reward was refused; nothing has changed."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError shows its key in quotes


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
        By the id of the decision, the error of telling its reward alone.
    """

    def __init__(self, refused: Mapping[str, Exception], count: int) -> None:
        self.refused = dict(refused)
        reasons = "; ".join(f"{id_}: {error}" for id_, error in islice(refused.items(), _REASONS))
        more = "; ..." if len(refused) > _REASONS else ""
        others = "the others were told" if count > len(refused) else "there were no others"
        super().__init__(f"{len(refused)} of {count} rewards refused, {others}: {reasons}{more}")


class Closing(NamedTuple):
    """How a decision was closed."""

    decision: Pending
    ending: Ending
    reward: Told  # the reward, or the one assumed in its place; nan if there is none
    when: float  # time in seconds since 1970


class Received(NamedTuple):
    """A reward that waits for the window of its decision to close."""

    reward: Told
    when: float


class Window(NamedTuple):
    """How long to wait for rewards, and when they enter the estimate."""

    seconds: float | None = None  # length in seconds
    rounds: int | None = None  # length in rounds
    reward: float | None = None  # reward to assume after that; None to learn nothing
    # Whether a reward enters the estimate when it is told.  Otherwise all rewards wait until their
    # window closes.  Early successes would count before the failures of the same time, which only
    # silence reveals.
    early: bool = False

    @property
    def holds(self) -> bool:
        """Whether rewards wait until their window closes."""
        return not (self.early or (self.seconds is None and self.rounds is None))

    def is_over(self, decision: Pending, now: float, round_: int) -> bool:
        """Whether the window of a decision is over."""
        late = self.seconds is not None and now - decision.made > self.seconds
        return late or (self.rounds is not None and round_ - decision.round > self.rounds)


def window(
    options: Options, reward_window: object, on_timeout: object, early_rewards: object
) -> Window:
    """Validate the arguments of a session about its window."""
    early = flag("early_rewards", early_rewards)
    if on_timeout == "ignore":
        reward = None
    elif isinstance(on_timeout, str):
        raise ValueError(f"on_timeout must be 'ignore' or a reward such as 0, got {on_timeout!r}")
    else:
        reward = reward_value("on_timeout", on_timeout)
    if reward_window is None and reward is not None:
        raise ValueError(f"on_timeout={reward:g} needs a reward_window such as '2 hours'")
    if isinstance(reward_window, timedelta):
        reward_window = reward_window.total_seconds()
    if not isinstance(reward_window, str):
        return valid_window(options, reward_window, None, reward, early)
    match = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]+?)s?\s*", reward_window)
    if match is None or (match[2] != "round" and match[2] not in _WINDOW_UNITS):
        raise ValueError(
            "reward_window must be seconds, a timedelta, or a text such as '2 hours' or "
            f"'500 rounds', got {reward_window!r}"
        )
    try:
        if match[2] == "round":
            seconds, rounds = None, int(match[1])
        else:
            seconds, rounds = float(match[1]) * _WINDOW_UNITS[match[2]], None
    except ValueError:
        raise ValueError(f"reward_window has no valid number: {reward_window!r}") from None
    return valid_window(options, seconds, rounds, reward, early)


def valid_window(
    options: Options, seconds: object, rounds: object, reward: object, early: object
) -> Window:
    """Validate the fields of a window."""
    name = "reward_window"
    limits = Window(
        None if seconds is None else number(name, seconds, above=0, at_most=MOST_SECONDS),
        None if rounds is None else integer(name, rounds, at_least=1, at_most=MOST_ROUNDS),
        None if reward is None else reward_value("on_timeout", reward),
        flag("early_rewards", early),
    )
    if limits.early and limits.reward is not None:
        raise ValueError(
            f"early_rewards=True needs on_timeout='ignore', got {limits.reward:g}: rewards that "
            "are told would enter the estimate before those that are known by silence"
        )
    if limits.early and limits.seconds is None and limits.rounds is None:
        raise ValueError("early_rewards=True needs a reward_window such as '2 hours'")
    if limits.reward is not None and options.per_arm > 1:
        raise ValueError(
            f"on_timeout must be 'ignore' where options show {options.per_arm} numbers, got "
            f"{limits.reward:g}"
        )
    return limits


def reward_value(name: str, reward: object) -> float:
    """Return a reward of a size that can be squared."""
    if type(reward) is float and -LARGEST <= reward <= LARGEST:
        return reward  # the usual case
    value = number(name, reward)
    if abs(value) > LARGEST:
        raise ValueError(f"{name} must not exceed {LARGEST:g}, got {value:g}")
    return value


def several_numbers(told: object, p: int) -> tuple[float, ...]:
    """Return an outcome of p numbers, of a size that can be squared."""
    hint = f", the {p} numbers that an option shows"
    numbers = finite_array("outcome", told, (p,), hint=hint, booleans=False)  # type: ignore[arg-type]
    return tuple(reward_value("outcome", value) for value in numbers.tolist())


def outcome_value(name: str, told: object, options: Options, arm: int | None = None) -> float:
    """Return the number to learn from an outcome; in a duel, 1, -1 or a number between them."""
    if options.pairs is None:
        return reward_value(name, told)
    first, second = ("the first", "the second") if arm is None else options.pairs[arm]
    if isinstance(told, str) and told in (first, second):
        return 0.0 if first == second else 1.0 if told == first else -1.0
    try:
        value = number(name, told)
    except ValueError:
        value = math.nan
    if value == -1.0:
        return value
    if 0.0 <= value <= 1.0:
        return 2.0 * value - 1.0
    raise ValueError(
        f"{name} must be {first!r} or {second!r}, 1 or -1 for these, or the probability that "
        f"{first!r} is better, got {shown(told)}"
    )


def is_missing(told: Told) -> bool:
    """Whether there is no reward."""
    return isinstance(told, float) and math.isnan(told)


def numbers_told(told: Any) -> tuple[float, ...]:
    """Numbers of a reward or outcome."""
    return (told,) if isinstance(told, float) else tuple(told)


def new_ids(count: int) -> list[str]:
    """Make unguessable, globally unique ids of 96 random bits each."""
    text = b2a_base64(os.urandom(12 * count), newline=False)  # four letters per three bytes
    letters = text.translate(_URL_SAFE).decode()
    return [letters[i : i + 16] for i in range(0, 16 * count, 16)]


def date_of(seconds: float) -> str:
    """Format a time in seconds since 1970."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(sep=" ", timespec="seconds")


class ClosingCounts(NamedTuple):
    """Number of decisions closed in each way, and of rewards that came too late."""

    told: int = 0
    expired: int = 0
    given_up: int = 0
    late: int = 0

    @property
    def closed(self) -> int:
        """Number of closed decisions."""
        return self.told + self.expired + self.given_up

    def after(self, closings: list[Closing], late: int = 0) -> ClosingCounts:
        """Add further closings and late rewards."""
        if not (closings or late):
            return self
        endings = [closing.ending for closing in closings]
        return ClosingCounts(
            told=self.told + endings.count("told"),
            expired=self.expired + endings.count("expired"),
            given_up=self.given_up + endings.count("given up"),
            late=self.late + late,
        )


class Decisions:
    """Open decisions, the latest closed ones, and counts of all closed ones."""

    def __init__(self, window_: Window) -> None:
        self.window = window_
        # OrderedDict: it finds its first entry at once, however many were removed before
        self.open: OrderedDict[str, Pending] = OrderedDict()  # the oldest first
        self.closed: OrderedDict[str, Closing] = OrderedDict()  # in the order of closing
        self.received: dict[str, Received] = {}  # rewards that wait for their window to close
        self.counts = ClosingCounts()
        #: Types of the attributes of all decisions, by name, in the order of their first use.
        self.attributes: dict[str, str] = {}

    def due(self, now: float, round_: int, most: int | None = None) -> list[Closing]:
        """Find the decisions whose window is over: the oldest ``most`` of them."""
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
                break  # later decisions are not over either
            # otherwise the clock was set back, and this says nothing about later decisions
        return over

    def waiting_until(self) -> float | None:
        """When the last waiting reward enters the estimate; None if no reward waits.

        In seconds since 1970, or as a round, as the window is measured.
        """
        if not self.received:
            return None
        newest = self.open[next(id_ for id_ in reversed(self.open) if id_ in self.received)]
        if self.window.rounds is not None:
            return float(newest.round + self.window.rounds + 1)
        assert self.window.seconds is not None
        return newest.made + self.window.seconds

    def enter(
        self,
        closings: Iterable[Closing],
        made: Iterable[Pending],
        counts: ClosingCounts,
        received: Mapping[str, Received],
    ) -> None:
        """Enter an operation and the counts after it; repeating it changes nothing."""
        self.received.update(received)
        for closing in closings:
            decision = closing.decision
            self.received.pop(decision.id, None)
            if decision.features is not None or decision.attributes:  # only open ones need them
                bare = decision._replace(features=None, attributes=NO_ATTRIBUTES)
                closing = closing._replace(decision=bare)
            self.closed[decision.id] = closing
            self.open.pop(decision.id, None)
        for decision in made:
            self.open[decision.id] = decision
            if decision.attributes:
                note_kinds(self.attributes, decision.attributes)
        while len(self.closed) > REMEMBERED:
            self.closed.popitem(last=False)
        self.counts = counts

    def amend(self, id_: str, reward: Told | list[float]) -> None:
        """Replace the reward of a closed decision, if it is still in memory."""
        closing = self.closed.get(id_)
        if closing is not None:
            told = tuple(reward) if isinstance(reward, list) else reward
            self.closed[id_] = closing._replace(reward=told)


def unknown(id_: str) -> UnknownDecisionError:
    """Error for an unknown id."""
    return UnknownDecisionError(
        f"no decision has the id {shown(id_)}: it was made by another session, or after the "
        f"state that this session was loaded from, or closed more than {REMEMBERED} rewards ago"
    )


def refusal(id_: str, closing: Closing | None, reward: Told) -> DecisionError:
    """Error for a reward of a decision that is not open."""
    if closing is None:
        return unknown(id_)
    when = date_of(closing.when)
    if closing.ending == "expired":
        return ExpiredDecisionError(f"the window of decision {id_} ended: {when}")
    if closing.ending == "given up":
        return ClosedDecisionError(f"decision {id_} was given up at {when}")
    return ClosedDecisionError(
        f"decision {id_} was told before: {closing.reward!r} at {when}, now {reward!r}"
    )


_BITS = 1074  # the smallest float is 2^-1074
_ONE = 1 << _BITS
_ONE_SQUARED = 1 << 2 * _BITS
_LONGEST = 4 * _BITS  # bits of a sum in a file


class ExactSums(NamedTuple):
    """Exact sums of the rewards of one option; see the table above."""

    n: int = 0
    total: int = 0
    squares: int = 0

    def plus(self, reward: float, count: int = 1) -> ExactSums:
        """Add a reward, or subtract it (``count=-1``)."""
        numerator, denominator = reward.as_integer_ratio()
        shift = _BITS + 1 - denominator.bit_length()
        return ExactSums(
            self.n + count,
            self.total + (count * numerator << shift),
            self.squares + (count * numerator * numerator << 2 * shift),
        )

    def sum(self, origin: float = 0.0) -> float:
        """Sum of r - origin, correctly rounded."""
        return (self.total - self.n * _scaled(origin)) / _ONE

    def sum_of_squares(self, origin: float = 0.0) -> float:
        """Sum of (r - origin)^2, correctly rounded."""
        shift = _scaled(origin)
        squares = self.squares - 2 * shift * self.total + self.n * shift * shift
        return squares / _ONE_SQUARED

    def squared_deviations(self) -> float:
        """Sum of squared deviations from the mean, correctly rounded."""
        if self.n == 0:
            return 0.0
        return (self.n * self.squares - self.total**2) / (self.n * _ONE_SQUARED)


def _scaled(value: float) -> int:
    """Convert a float to units of the smallest one."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())


_NONE = ExactSums()

#: Decision whose reward determines the origin or the unit of rewards, and that reward.
Setter = tuple[str, float]
#: Row of a number that an option shows, and whether the policy has learned from it.
Place = tuple[int, bool]


class PlannedSums(NamedTuple):
    """Changes of :class:`RewardSums` by an operation."""

    first: Setter | None
    other: Setter | None
    sums: dict[Place, ExactSums]


class RewardSums:
    """Exact sums of all rewards, by option and by whether the policy has learned from them.

    ``per_arm`` is the number of numbers that an option shows.  With ``offset`` the first reward is
    the origin, which is 0 otherwise.
    """

    def __init__(self, per_arm: int, offset: bool) -> None:
        self.per_arm, self.offset = per_arm, offset
        self.first: Setter | None = None  # the first reward
        self.other: Setter | None = None  # the first one that differs from the origin
        self._sums: dict[Place, ExactSums] = {}

    def plan(self, closings: Iterable[Closing]) -> PlannedSums:
        """Compute what :meth:`enter` enters after the closings."""
        first, other = self.first, self.other
        sums: dict[Place, ExactSums] = {}
        for closing in closings:
            if is_missing(closing.reward):
                continue
            made, told = closing.decision, numbers_told(closing.reward)
            if first is None:
                first = made.id, told[0]
            if other is None and told[0] != (first[1] if self.offset else 0.0):
                other = made.id, told[0]
            for i, value in enumerate(told):
                place = made.arm * self.per_arm + i, made.exploring
                sums[place] = (sums.get(place) or self._sums.get(place, _NONE)).plus(value)
        return PlannedSums(first, other, sums)

    def enter(self, planned: PlannedSums) -> None:
        """Enter planned changes; repeating it changes nothing."""
        self.first, self.other = planned.first, planned.other
        self._sums.update(planned.sums)

    def amended(self, decision: str, arm: int, exploring: bool, was: Told, now: Told) -> RewardSums:
        """Copy with another reward of one decision."""
        copied = RewardSums(self.per_arm, self.offset)
        copied._sums = dict(self._sums)
        before, after = numbers_told(was), numbers_told(now)
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            place = arm * self.per_arm + i, exploring
            copied._sums[place] = self._sums[place].plus(old, -1).plus(new)
        copied.first, copied.other = (
            (decision, after[0]) if setter is not None and setter[0] == decision else setter
            for setter in (self.first, self.other)
        )
        return copied

    def learned(self, place: int) -> ExactSums:
        """Return sums of the rewards that the policy has learned from."""
        return self._sums.get((place, True), _NONE)

    def all(self, place: int) -> ExactSums:
        """Return sums of all rewards."""
        pair = self.learned(place), self._sums.get((place, False), _NONE)
        return ExactSums(*map(sum, zip(*pair, strict=True)))

    def totals(self, places: int, origin: float = 0.0) -> list[float]:
        """Return sums of all rewards less an origin, by the number that is shown."""
        return [self.all(place).sum(origin) for place in range(places)]

    def squared_deviations(self, scales: NDArray[np.float64]) -> float:
        """Sum of squared deviations of all rewards from the means of their options, scaled."""
        squares = (self.all(place).squared_deviations() for place in range(len(scales)))
        return math.fsum(square * s * s for square, s in zip(squares, scales.tolist(), strict=True))

    def origin(self) -> float:
        """Origin of rewards; nan before the first."""
        if not self.offset:
            return 0.0
        return math.nan if self.first is None else self.first[1]

    def unit(self) -> float:
        """Distance of the first other reward from the origin; nan while there is none.

        If that reward was amended to the origin, the root mean square distance takes its place.
        """
        origin = self.origin()
        distance = 0.0 if self.other is None else abs(self.other[1] - origin)
        if distance == 0.0 and self._sums:
            n = sum(sums.n for sums in self._sums.values())
            squares = (sums.sum_of_squares(origin) for sums in self._sums.values())
            distance = math.sqrt(math.fsum(squares) / n)
        return distance or math.nan

    def describe(self) -> dict[str, Any]:
        """Plain values, for a file."""
        return {
            "first": self.first,
            "other": self.other,
            "sums": [
                [place, learned, sums.n, _text(sums.total), _text(sums.squares)]
                for (place, learned), sums in sorted(self._sums.items())
            ],
        }

    def fill(self, described: Mapping[str, Any], places: int) -> None:
        """Inverse of :meth:`describe`, for this many numbers."""
        self.first, self.other = (_setter(described[name]) for name in ("first", "other"))
        for place, learned, count, total, squares in described["sums"]:
            row = integer("place", place, at_least=0, at_most=places - 1)
            n = integer("count", count, at_least=0)
            sums = ExactSums(n, _integer(total), _integer(squares))
            self._sums[row, flag("learned", learned)] = sums


def _text(value: int) -> str:
    """Write an integer as a hexadecimal mantissa and its number of trailing zero bits."""
    zeros = (value & -value).bit_length() - 1 if value else 0
    return f"{value >> zeros:x}p{zeros}"


def _integer(text: object) -> int:
    """Inverse of :func:`_text`."""
    mantissa, _, zeros = str(text).partition("p")
    if len(mantissa) > _LONGEST // 4 or len(zeros) > 4:
        raise ValueError("a sum of rewards has too many digits")
    return int(mantissa, 16) << int(zeros)


def _setter(value: Any) -> Setter | None:
    if value is None:
        return None
    id_, reward = value
    return str(id_), number("reward", reward, at_least=-LARGEST, at_most=LARGEST)


#: Columns of decisions in a file, the first fields of :class:`Pending`.
_COLUMNS: dict[str, Any] = {
    "id": "S",
    "arm": np.int64,
    "exploring": np.bool_,
    "round": np.int64,
    "probability": np.float64,
    "made": np.float64,
}


def decision_arrays(decisions: Decisions, options: Options) -> Arrays:
    """Arrays of all decisions in memory, which are written faster than JSON.

    Open decisions of a stream have the features of their arms.
    """
    p = options.per_arm
    closings, pending = list(decisions.closed.values()), list(decisions.open.values())
    nothing = Received(math.nan, math.nan)
    received = [decisions.received.get(one.id, nothing) for one in pending]
    features: Arrays = {}
    if options.stream:
        rows = np.array([one.features for one in pending], dtype=np.float64)
        features["open.features"] = rows.reshape(-1, options.features.shape[1])
    return {
        **_columns(pending, "open"),
        **features,
        "open.attributes": _lines_of([one.attributes for one in pending]),
        "open.reward": _rewards(received, p),
        "open.received": np.array([one.when for one in received], dtype=np.float64),
        **_columns([closing.decision for closing in closings], "closed"),
        "closed.ending": np.array([_ENDINGS.index(one.ending) for one in closings], dtype=np.int64),
        "closed.reward": _rewards(closings, p),
        "closed.when": np.array([one.when for one in closings], dtype=np.float64),
    }


def _columns(decisions: list[Pending], prefix: str) -> Arrays:
    columns = {
        f"{prefix}.{name}": np.array([decision[i] for decision in decisions], dtype=kind)
        for i, (name, kind) in enumerate(_COLUMNS.items())
        if i > 0
    }
    ids = [decision.id for decision in decisions]
    if len(set(map(len, ids))) == 1:  # ten times as fast
        column = np.frombuffer("".join(ids).encode(), dtype=f"S{len(ids[0])}")
    else:
        column = np.array(ids, dtype="S")
    return {f"{prefix}.id": column, **columns}


def _lines_of(rows: list[Attributes]) -> NDArray[np.uint8]:
    """Bytes of one line per decision: its attributes as JSON, or nothing."""
    lines = [attributes_to_text(row) if row else "" for row in rows]
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def _attributes_in_lines(content: NDArray[Any], count: int) -> list[Attributes]:
    """Inverse of :func:`_lines_of`."""
    if content.dtype != np.uint8 or content.ndim != 1:
        raise ValueError("its column open.attributes is of another kind")
    lines = content.tobytes().decode().split("\n") if count else []
    if len(lines) != count:
        raise ValueError(f"its column open.attributes has {len(lines)} lines")
    return [valid_attributes(attributes_in(line)) if line else NO_ATTRIBUTES for line in lines]


def _rewards(closings: Sequence[Closing | Received], p: int) -> NDArray[np.float64]:
    """Rewards of decisions, p numbers each."""
    if p == 1:
        return np.array([one.reward for one in closings], dtype=np.float64)
    rows = [(math.nan,) * p if is_missing(one.reward) else one.reward for one in closings]
    return np.array(rows, dtype=np.float64).reshape(-1, p)


def fill_decisions(decisions: Decisions, snapshot: Snapshot, options: Options, t: int) -> None:
    """Inverse of :func:`decision_arrays`, at round t."""
    k, p = len(options), options.per_arm
    arrays, counts = snapshot.arrays, snapshot.header["counts"]
    if len(counts) != len(ClosingCounts._fields):
        raise ValueError(f"its counts are {len(counts)} numbers")
    decisions.counts = ClosingCounts(*(integer("counts", one, at_least=0) for one in counts))
    pending = _decisions_in(arrays, "open", k, t)
    if options.stream:
        table, d = arrays["open.features"], options.features.shape[1]
        if table.shape != (len(pending), d) or table.dtype != np.float64:
            raise ValueError("its column open.features is of another kind")
        within("open.features", table, -LARGEST, LARGEST)
        rows = map(tuple, table.tolist())
        pending = [one._replace(features=row) for one, row in zip(pending, rows, strict=True)]
    decisions.attributes = valid_kinds(snapshot.header["attributes"])
    recorded = _attributes_in_lines(arrays["open.attributes"], len(pending))
    pending = [
        one._replace(attributes=row) if row else one
        for one, row in zip(pending, recorded, strict=True)
    ]
    decisions.open = OrderedDict((one.id, one) for one in pending)
    told, times = _rewards_in(arrays["open.reward"], p), arrays["open.received"].tolist()
    decisions.received = {
        one.id: Received(reward, when)
        for one, reward, when in zip(pending, told, times, strict=True)
        if not is_missing(reward)
    }
    if decisions.received and not decisions.window.holds:
        raise ValueError("it has rewards that wait, and no window that they wait for")
    closed = _decisions_in(arrays, "closed", k, t)
    endings, times = (arrays[f"closed.{name}"].tolist() for name in ("ending", "when"))
    ends = zip(closed, endings, _rewards_in(arrays["closed.reward"], p), times, strict=True)
    decisions.closed = OrderedDict(
        (decision.id, Closing(decision, _ENDINGS[int(ending)], reward, when))
        for decision, ending, reward, when in ends
    )


def _decisions_in(arrays: Arrays, prefix: str, k: int, t: int) -> list[Pending]:
    """Read decisions; refuse impossible ones."""
    columns = []
    for name, dtype in _COLUMNS.items():
        column, kind = arrays[f"{prefix}.{name}"], np.dtype(dtype).kind
        if column.ndim != 1 or column.dtype.kind != kind:
            raise ValueError(f"its column {prefix}.{name} is of another kind")
        values = column.tolist()
        columns.append([one.decode() for one in values] if kind == "S" else values)
    decisions = [Pending(*row) for row in zip(*columns, strict=True)]
    for decision in decisions:
        if not (0 <= decision.arm < k and 1 <= decision.round < t and math.isfinite(decision.made)):
            raise ValueError(f"its decision {decision.id!r} is impossible")
    if len({decision.id for decision in decisions}) < len(decisions):
        raise ValueError("two of its decisions have the same id")
    return decisions


def _rewards_in(column: NDArray[Any], p: int) -> list[Told]:
    """Inverse of :func:`_rewards`."""
    if column.dtype != np.float64 or column.shape[1:] != (() if p == 1 else (p,)):
        raise ValueError("its columns of rewards are of another kind")
    if p == 1:
        return list(column.tolist())
    return [math.nan if math.isnan(row[0]) else tuple(row) for row in column.tolist()]
