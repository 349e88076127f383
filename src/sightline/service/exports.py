"""The log of an experiment for other programs: page by page, or as a file."""

from __future__ import annotations

import io
from typing import Any

# here, and not where they are needed: importing them takes a second, in which nothing is decided
import pandas as pd
import pyarrow.parquet  # noqa: F401

from sightline.report.decision_frame import WRITERS, decision_frame
from sightline.report.standing import Record, view_of
from sightline.service.answers import moment
from sightline.service.entries import ENGINE_KINDS, Entry
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
    """All decisions as a Parquet file: that of a session, and what the service knows beyond."""
    with readers.following(experiment) as (follower, _):
        view, last = view_of(follower.session.live), follower.last
    first, entries = readers.everything(experiment)
    entries = [entry for entry in entries if entry.event.sequence <= last]
    events = [entry.event for entry in entries if entry.event.kind in ENGINE_KINDS]
    asked = [entry for entry in entries if entry.event.kind == "asked"]
    frame = decision_frame(events, view, [one.support for one in asked])
    used = {one.event.decision: one.event.time for one in entries if one.event.kind == "activated"}
    times = [
        used.get(one.event.decision) if one.extra.get("active") is False else one.event.time
        for one in asked
    ]
    frame["unit"] = pd.Series([one.unit for one in asked], dtype=object)
    frame["model_version"] = [one.extra.get("version", 0) for one in asked]
    frame["activated_at"] = pd.to_datetime(pd.Series(times, dtype=float), unit="s", utc=True)
    content = io.BytesIO()
    WRITERS[".parquet"](frame, Record(first.content, events), content)
    return content.getvalue()
