"""Comparison of a journal with the answers of its session."""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from sightline.sessions.journal import Event

__all__ = ["Deed", "Record", "asked", "judge", "left_over", "record"]


class Deed(NamedTuple):
    """Something done to a session; decisions are named by their rounds."""

    kind: str  # "ask", "tell", "late", "give up", "add", "retire", "save" or "look"
    argument: Any = None


#: An event as an actor notes it: kind, id, and arm, probability and round, or reward.
Record = tuple[Any, ...]

_KINDS = {
    "ask": "asked",
    "tell": "received",
    "give up": "given up",
    "late": "late",
    "add": "added",
    "retire": "retired",
}


def asked(
    id_: str | None, arm: int | None, probability: float | None, round_: int | None
) -> Record:
    """Write a decision; nan is not equal to itself."""
    unknown = probability is None or math.isnan(probability)
    return ("asked", id_, arm, None if unknown else probability, round_)


def record(event: Event) -> Record:
    """Write an event as an actor notes it."""
    if event.kind == "asked":
        return asked(event.decision, event.arm, event.probability, event.round)
    if event.kind == "received":
        return ("received", event.decision, event.reward)
    return (event.kind, event.decision)


def left_over(events: Iterable[Event], acknowledged: Iterable[Record]) -> list[Record]:
    """Events that no caller saw, apart from the ends of windows.

    Raises
    ------
    AssertionError
        If a caller saw something that is not in the journal.
    """
    counts = collections.Counter(map(record, events))
    counts.subtract(acknowledged)
    lost = [one for one, count in counts.items() if count < 0]
    if lost:
        raise AssertionError(f"acknowledged, but not in the journal: {lost}")
    return [one for one in counts.elements() if one[0] not in ("told", "expired")]


def judge(doing: Deed | None, left: list[Record]) -> str:
    """Find out from the events what a call that never returned has done.

    Raises
    ------
    AssertionError
        If it is half done.
    """
    if doing is None or doing.kind in ("look", "save"):
        if left:
            raise AssertionError(f"{doing} cannot have left {left}")
        return "between calls" if doing is None else doing.kind
    if not left:
        return f"{doing.kind}: before"
    size = 1
    if doing.kind == "ask":
        size = doing.argument[0]
    elif doing.kind in ("tell", "give up"):
        size = len(doing.argument if doing.kind == "tell" else left)
    if len(left) != size or {one[0] for one in left} != {_KINDS[doing.kind]}:
        raise AssertionError(f"{doing} is half done: {left}")
    return f"{doing.kind}: after"
