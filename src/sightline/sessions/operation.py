"""What one call changes in a session, written down before anything is changed.

A signal handler may raise between any two instructions of the interpreter.  An operation that was
begun is therefore kept until it has been carried out, and carrying it out again from any point
leads to the same end: kernels are told apart by their serial numbers, and entries may be repeated.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.decisions import Pending
from sightline.sessions.exact_data import Planned
from sightline.sessions.journal import Event, set_to_bytes, told_to_event
from sightline.sessions.ledger import Closing, Received, Tally, is_nothing
from sightline.sessions.turns import Answers

__all__ = ["Operation"]


@dataclass(slots=True)  # and not frozen, which takes two microseconds more to make
class Operation:
    """Decisions that are closed, then questions that are answered.

    Attributes
    ----------
    now : float
        When, in seconds since 1970.
    closings : list of Closing
        In this order.
    ids : list of str
        Of the decisions to be made.
    answers : Answers
        Where they will be written; the next operation may use the same space.
    available : tuple of int or None
        Arms that may be chosen this time; None: all that are not retired.
    context : int or None
        In which context; None where there are none.
    actions : ndarray, shape (n, d), or None
        Arms that came with the question; None where they are known.
    tally : Tally
        Of the ledger, after it.
    late : str
        Id of the decision whose reward came too late, if that is all that has happened.
    received : dict of str to Received
        Rewards that wait until the windows of their decisions close.
    first : int
        Serial number of its first kernel.
    sequence : int
        Number of its first entry in the journal.
    before : tuple or None
        Standing, state and generator, for a policy in plain Python, which may be interrupted
        half-way, and for rewards so large that learning from them may overflow.
    data : Planned or None
        Exact sums of rewards, after it.
    """

    now: float
    closings: list[Closing]
    ids: list[str]
    answers: Answers
    available: tuple[int, ...] | None
    context: int | None
    actions: NDArray[np.float64] | None
    tally: Tally
    late: str
    first: int
    sequence: int
    before: tuple[Any, ...] | None
    received: dict[str, Received]
    data: Planned | None = None
    _made: list[Pending] | None = None

    @property
    def last(self) -> int:
        """Serial number of its last kernel; less than the first if there is none."""
        outcomes = sum(map(_concerns_policy, self.closings)) if self.closings else 0
        return self.first - 1 + outcomes + bool(self.ids)

    def outcomes(self) -> Iterator[tuple[int, Closing]]:
        """List closings with a reward, or without one that was waited for, and serial numbers."""
        return enumerate(filter(_concerns_policy, self.closings), self.first)

    def events(self) -> list[Event]:
        """Entries for a journal."""
        numbers = itertools.count(self.sequence)
        events = [
            Event(next(numbers), one.ending, self.now, one.decision.id, **told_to_event(one.reward))
            for one in self.closings
        ]
        events += [
            Event(next(numbers), "received", self.now, id_, **told_to_event(one.reward))
            for id_, one in self.received.items()
        ]
        questions: int | None = len(self.ids)
        body = None if self.available is None else json.dumps(self.available)
        actions = None if self.actions is None else set_to_bytes(self.actions)
        for made in self.decisions():
            events.append(
                Event(
                    next(numbers),
                    "asked",
                    self.now,
                    made.id,
                    made.round,
                    made.arm,
                    _known(made.probability),
                    made.exploring,
                    questions=questions,
                    body=body,
                    context=self.context,
                    actions=actions,
                )
            )
            questions = body = actions = None  # in the entry of the first
        if self.late:
            events.append(Event(next(numbers), "late", self.now, self.late))
        return events

    def decisions(self) -> list[Pending]:
        """Decisions that were made, once they are."""
        if self._made is None:
            columns = [column.tolist() for column in self.answers[:4]]
            self._made = [
                Pending(id_, arm, exploring, round_, probability, self.now, self._features(arm))
                for id_, round_, arm, probability, exploring in zip(self.ids, *columns, strict=True)
            ]
        return self._made

    def _features(self, arm: int) -> tuple[float, ...] | None:
        return None if self.actions is None else tuple(self.actions[arm].tolist())


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value


def _concerns_policy(closing: Closing) -> bool:
    return closing.decision.exploring or not is_nothing(closing.reward)
