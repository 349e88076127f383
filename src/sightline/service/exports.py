"""The log of an experiment for other programs, by pages or as a Parquet file, and its report."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

# at module level: importing them takes a second, which no request should wait for
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet

from sightline.report.decision_frame import ENDINGS, Offers, decision_frame, parquet_pieces, times
from sightline.report.experiment_analysis import facts_of
from sightline.report.experiment_report import Report, experiment_report
from sightline.service import events
from sightline.service.errors import unknown
from sightline.service.events import SESSION_KINDS, Entry
from sightline.service.experiment import test_level
from sightline.service.loading import control_rows
from sightline.service.readers import Readers
from sightline.service.responses import timestamp
from sightline.sessions.attributes import attributes_in
from sightline.sessions.journal import CHANGES, Event
from sightline.sessions.view import JournalContents, SessionView, view_of

_FIELDS = ("decision", "round", "arm", "probability", "exploring", "reward", "context", "body")
_TEXT = pd.ArrowDtype(pa.string())  # also if no decision of a page has a text
_UNUSED = ["features", "shows", "actions", "available", "questions", "unit"]  # by reports
_OUTCOMES = (*ENDINGS, "received", "amended", "activated")


def events_view(readers: Readers, experiment: str, after: int, limit: int) -> dict[str, Any]:
    """Return entries with higher numbers, and the number after which the next page begins."""
    with readers.store.reading() as connection:
        found = events.entries_after(connection, experiment, after, limit)
        if not found and events.last_sequence(connection, experiment) == 0:
            raise unknown("experiment", experiment)
    last = found[-1].event.sequence if found else after
    return {"id": experiment, "events": [_fields(entry) for entry in found], "next": last}


def _fields(entry: Entry) -> dict[str, Any]:
    event = entry.event
    fields = {name: getattr(event, name) for name in _FIELDS} | {"unit": entry.unit}
    if event.attributes is not None:
        fields["attributes"] = attributes_in(event.attributes)
    known = {name: value for name, value in fields.items() if value is not None}
    return {"sequence": event.sequence, "kind": event.kind, "at": timestamp(event.time), **known}


def export_parquet(readers: Readers, experiment: str) -> Iterator[bytes]:
    """Yield a Parquet file with all decisions, piece by piece.

    One page of entries is in memory at a time, and no transaction lasts longer than a page: entries
    never change.
    """
    with readers.replica(experiment) as (replica, connection):
        view, last = view_of(replica.session.live), replica.last
        first = events.read_snapshot(connection, experiment, first=True)
        assert first is not None
        changes = events.entries_of_kinds(connection, experiment, tuple(CHANGES), last)
    record = JournalContents(first.content, [entry.event for entry in changes])
    return parquet_pieces(_frames(readers, experiment, view, record, last), record)


def report(readers: Readers, experiment: str, delta: float | None, most: int) -> Report:
    """Make the report on an experiment; without its log, if this has more decisions than allowed.

    By default at the level of its stop rule, or at the level of the pages without one.
    It reads the log page by page, like an export, and keeps the columns that a report needs.
    """
    with readers.replica(experiment) as (replica, connection):
        session, last = replica.session, replica.last
        facts = facts_of(session.live, session.status(), experiment)
        first = events.read_snapshot(connection, experiment, first=True)
        assert first is not None
        changes = events.entries_of_kinds(connection, experiment, tuple(CHANGES), last)
        control = control_rows(replica.wanted, session.options)
        facts = dataclasses.replace(facts, control=control, description=replica.wanted.description)
    if delta is None:
        delta = test_level(replica.wanted.stop)
    made = round(float(facts.view.asked.sum()))
    if made > most:
        why = (
            f"there are more than {most:,} decisions, and pages read no more; sl.evaluate reads an "
            "export of any size"
        )
        return experiment_report(dataclasses.replace(facts, why_none=why), delta)
    record = JournalContents(first.content, [entry.event for entry in changes])
    frames = [
        frame.drop(columns=_UNUSED, errors="ignore")
        for frame in _frames(readers, experiment, facts.view, record, last)
    ]
    decisions = pd.concat(frames, ignore_index=True)
    return experiment_report(dataclasses.replace(facts, decisions=decisions), delta)


def _frames(
    readers: Readers, experiment: str, view: SessionView, record: JournalContents, last: int
) -> Iterator[pd.DataFrame]:
    """Yield the decisions of one page of the log after another; at least one frame."""
    offers = Offers(len(view.options), record.events, view.options.contexts)
    after, empty = 0, True
    while after < last:
        with readers.store.reading() as connection:
            page = events.entries_after(connection, experiment, after, events.PAGE_SIZE)
            entries = [entry for entry in page if entry.event.sequence <= last]
            after = entries[-1].event.sequence
            asked = [entry for entry in entries if entry.event.kind == "asked"]
            later: list[Entry] = []
            if asked:
                ends = (asked[0].event.sequence, after)
                later = events.entries_about(connection, experiment, ends, _OUTCOMES, last)
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
    activated = {event.decision: event.time for event in later if event.kind == "activated"}
    session_events = [entry.event for entry in entries if entry.event.kind in SESSION_KINDS]
    frame = decision_frame(session_events, view, offers, later)
    used_at = [
        activated.get(one.event.decision) if one.extra.get("active") is False else one.event.time
        for one in asked
    ]
    frame["unit"] = pd.Series([one.unit for one in asked], dtype=_TEXT)
    frame["model_version"] = np.array([one.extra.get("version", 0) for one in asked], np.int64)
    frame["activated_at"] = times(used_at)
    return frame
