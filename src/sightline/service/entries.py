"""Events of experiments, as rows of the database.

An entry is an event of the engine, or one of the service's own, with what the service knows beyond:
the key and the unit it was asked for with, and further values in ``extra``.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sightline.sessions.journal import CHANGES, Event
from sightline.sessions.kernels import Support

__all__ = ["ENGINE_KINDS", "Entry", "entry_of", "request_digest", "row_of", "support_fields"]

#: Kinds that the engine's replay knows; all others are the service's own.
ENGINE_KINDS = CHANGES | {"asked", "received", "told", "expired", "given up", "late"}
#: Fields of an event that have no column of their own.
_FIELDS = ("round", "arm", "probability", "exploring", "reward", "questions", "body", "context")
_FIRST = Event._fields.index("round")
_LAST = _FIRST + len(_FIELDS)
assert Event._fields[_FIRST:_LAST] == _FIELDS


_written = json.JSONEncoder(separators=(",", ":")).encode  # made once


class Entry(NamedTuple):
    """One row of the log of an experiment.

    Attributes
    ----------
    event : Event
        As the engine knows it.
    key : str or None
        Idempotency key of the request, in the first entry that it led to.
    unit : str or None
        For whom it was asked, if they always get the same decision.
    extra : mapping
        ``active``, which is false if a decision must be activated; ``version`` of the options;
        ``request``, the hash of what was asked or amended; ``told``, what was amended without any
        change; ``many``, if a list is to be answered; ``law``,
        rows that a decision could have been and their probabilities, where it was not certain.
    """

    event: Event
    key: str | None = None
    unit: str | None = None
    extra: Mapping[str, Any] = {}

    @property
    def support(self) -> Support | None:
        """What a decision could have been; None if that is not known."""
        law = self.extra.get("law")
        if law is not None:
            return Support(*map(tuple, law))
        certain = self.event.probability == 1.0
        return Support((self.event.arm or 0,), (1.0,)) if certain else None


def support_fields(support: Support | None) -> dict[str, Any]:
    """Write what a decision could have been, for ``extra``; nothing where it was certain."""
    if support is None or len(support.arms) == 1:
        return {}
    return {"law": [support.arms, support.probabilities]}


_sorted = json.JSONEncoder(sort_keys=True).encode  # made once: every question needs it


def request_digest(asked: Mapping[str, Any]) -> str:
    """Tell requests apart: the same question has the same digest."""
    written = _sorted(asked)  # any text, also what UTF-8 has not
    return hashlib.sha256(written.encode()).hexdigest()[:32]


def row_of(experiment: str, entry: Entry) -> tuple[Any, ...]:
    """Write an entry as a row, in the order of columns: floats to the last bit, as JSON does."""
    event = entry.event
    values = event[_FIRST:_LAST]  # faster than by name, and every decision pays for it
    payload = {
        name: value for name, value in zip(_FIELDS, values, strict=True) if value is not None
    }
    payload.update(entry.extra)
    if event.actions is not None:
        payload["actions"] = base64.b64encode(event.actions).decode()
    return (
        experiment,
        event.sequence,
        event.kind,
        event.decision,
        entry.key,
        entry.unit,
        _written(payload),
        event.time,
    )


def entry_of(row: Sequence[Any]) -> Entry:
    """Read a row: inverse of :func:`row_of`."""
    _, sequence, kind, decision, key, unit, content, created = row
    payload = json.loads(content)
    fields = {name: payload.pop(name, None) for name in _FIELDS}
    actions = payload.pop("actions", None)
    event = Event(
        sequence,
        kind,
        created,
        decision,
        **fields,
        actions=None if actions is None else base64.b64decode(actions),
    )
    return Entry(event, key, unit, payload)
