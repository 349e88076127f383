"""The log of an experiment for other programs: page by page, or as a file."""

from __future__ import annotations

from typing import Any

from sightline.service.answers import moment
from sightline.service.entries import Entry
from sightline.service.readers import Readers

__all__ = ["events_view", "export_parquet"]

_FIELDS = ("decision", "round", "arm", "probability", "exploring", "reward", "context", "body")


def events_view(readers: Readers, experiment: str, after: int, most: int) -> dict[str, Any]:
    """Entries with higher numbers, and the number after which to go on."""
    found = readers.page(experiment, after, most)
    last = found[-1].event.sequence if found else after
    return {"id": experiment, "events": [_plain(entry) for entry in found], "next": last}


def _plain(entry: Entry) -> dict[str, Any]:
    event = entry.event
    fields = {name: getattr(event, name) for name in _FIELDS}
    known = {name: value for name, value in fields.items() if value is not None}
    if entry.unit is not None:
        known["unit"] = entry.unit
    return {"sequence": event.sequence, "kind": event.kind, "at": moment(event.time), **known}


def export_parquet(readers: Readers, experiment: str) -> bytes:
    """All decisions as a Parquet file."""
    raise NotImplementedError
