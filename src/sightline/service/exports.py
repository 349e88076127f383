"""The log of an experiment for other programs: page by page, or as a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

# here, and not where they are needed: importing them takes a second, in which nothing is decided
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from sightline.report.decision_frame import ENDINGS, Offers, decision_frame, parquet_pieces, times
from sightline.service import rows
from sightline.service.answers import moment
from sightline.service.entries import ENGINE_KINDS, Entry
from sightline.service.readers import Readers
from sightline.sessions.journal import CHANGES, Event
from sightline.sessions.view import JournalContents, SessionView, view_of

__all__ = ["events_view", "export_parquet"]

_FIELDS = ("decision", "round", "arm", "probability", "exploring", "reward", "context", "body")
_TEXT = pd.ArrowDtype(pa.string())  # also where no decision of a page has any
_LATER = (*ENDINGS, "received", "amended", "activated")  # what becomes of a decision


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


def export_parquet(readers: Readers, experiment: str) -> Iterator[bytes]:
    """All decisions as a Parquet file: that of a session, and what the service knows beyond.

    Returns its bytes piece by piece; some thousand entries are in memory at once, and no
    transaction lasts longer than a page: entries up to the last one never change.
    """
    with readers.following(experiment) as (follower, connection):
        view, last = view_of(follower.session.live), follower.last
        first = rows.kept(connection, experiment, first=True)
        assert first is not None
        changes = rows.entries_of_kinds(connection, experiment, tuple(CHANGES), last)
    record = JournalContents(first.content, [entry.event for entry in changes])
    return parquet_pieces(_frames(readers, experiment, view, record, last), record)


def _frames(
    readers: Readers, experiment: str, view: SessionView, record: JournalContents, last: int
) -> Iterator[pd.DataFrame]:
    """Decisions of one page of the log after another; an empty frame only if there is none."""
    offers = Offers(len(view.options), record.events, view.options.contexts)
    after, empty = 0, True
    while after < last:
        with readers.reading() as connection:
            page = rows.entries_after(connection, experiment, after, rows.PAGE_SIZE)
            entries = [entry for entry in page if entry.event.sequence <= last]
            after = entries[-1].event.sequence
            asked = [entry for entry in entries if entry.event.kind == "asked"]
            later: list[Entry] = []
            if asked:
                ends = (asked[0].event.sequence, after)
                later = rows.entries_about(connection, experiment, ends, _LATER, last)
        if asked:
            empty = False
            yield _frame(entries, asked, [entry.event for entry in later], view, offers)
        else:
            for entry in entries:
                offers.follow(entry.event)
    if empty:
        yield _frame([], [], [], view, offers)


def _frame(
    entries: list[Entry], asked: list[Entry], later: list[Event], view: SessionView, offers: Offers
) -> pd.DataFrame:
    used = {event.decision: event.time for event in later if event.kind == "activated"}
    events = [entry.event for entry in entries if entry.event.kind in ENGINE_KINDS]
    supports = [one.support for one in asked]
    frame = decision_frame(events, view, supports, offers, later)
    used_at = [
        used.get(one.event.decision) if one.extra.get("active") is False else one.event.time
        for one in asked
    ]
    frame["unit"] = pd.Series([one.unit for one in asked], dtype=_TEXT)
    frame["model_version"] = np.array([one.extra.get("version", 0) for one in asked], np.int64)
    frame["activated_at"] = times(used_at)
    return frame
