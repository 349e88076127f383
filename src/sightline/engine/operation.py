"""What one call changes in a session, written down before anything is changed.

A signal handler may raise between any two instructions of the interpreter.  An operation that was
begun is therefore kept until it has been carried out, and carrying it out again from any point
leads to the same end: kernels are told apart by their serial numbers, and entries may be repeated.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sightline.engine.decisions import Pending
from sightline.engine.journal import Event
from sightline.engine.ledger import Closing, Tally
from sightline.engine.turns import Answers

__all__ = ["Operation"]


@dataclass(frozen=True)
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
        Where they will be written.
    available : tuple of int or None
        Arms that may be chosen this time; None: all that are not retired.
    tally : Tally
        Of the ledger, after it.
    late : str
        Id of the decision whose reward came too late, if that is all that has happened.
    first : int
        Serial number of its first kernel.
    sequence : int
        Number of its first entry in the journal.
    before : tuple or None
        Standing, state and generator, for a policy in plain Python, which may be interrupted
        half-way.
    """

    now: float
    closings: list[Closing]
    ids: list[str]
    answers: Answers
    available: tuple[int, ...] | None
    tally: Tally
    late: str
    first: int
    sequence: int
    before: tuple[Any, ...] | None

    @property
    def last(self) -> int:
        """Serial number of its last kernel; less than the first if there is none."""
        return self.first - 1 + sum(map(_has_reward, self.closings)) + bool(self.ids)

    def rewards(self) -> Iterator[tuple[int, Closing]]:
        """List closings with a reward, with their serial numbers."""
        return enumerate(filter(_has_reward, self.closings), self.first)

    def events(self) -> list[Event]:
        """Entries for a journal."""
        kinds: list[dict[str, Any]] = [
            {"kind": one.ending, "decision": one.decision.id, "reward": _reward(one.reward)}
            for one in self.closings
        ]
        kinds += [
            {
                "kind": "asked",
                "decision": one.id,
                "round": one.round,
                "arm": one.arm,
                "probability": None if math.isnan(one.probability) else one.probability,
                "exploring": one.exploring,
                "questions": None if i else len(self.ids),
                "body": None if i or self.available is None else json.dumps(self.available),
            }
            for i, one in enumerate(self.decisions())
        ]
        if self.late:
            kinds.append({"kind": "late", "decision": self.late})
        return [
            Event(sequence=sequence, time=self.now, **fields)
            for sequence, fields in enumerate(kinds, self.sequence)
        ]

    def decisions(self) -> list[Pending]:
        """Decisions that were made."""
        rounds, arms, probabilities, exploring = (column.tolist() for column in self.answers)
        return [
            Pending(id_, arms[i], exploring[i], rounds[i], probabilities[i], self.now)
            for i, id_ in enumerate(self.ids)
        ]


def _reward(value: float) -> float | None:
    return None if math.isnan(value) else value


def _has_reward(closing: Closing) -> bool:
    return not math.isnan(closing.reward)
