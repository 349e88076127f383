"""Questions to the database and what is written to it, within a transaction of the caller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, Select, bindparam, delete, func, insert, select, update

from sightline.service.entries import Entry, entry_of, row_of
from sightline.service.schema import EVENTS, LOOKS, PULSE, SNAPSHOTS

__all__ = [
    "Kept",
    "beat",
    "beginnings",
    "entries_after",
    "entries_of",
    "experiments_of",
    "kept",
    "known_requests",
    "last_asked",
    "last_of",
    "looks_of",
    "write_entries",
    "write_look",
    "write_snapshot",
]

_E = EVENTS.c
# Statements are made once: composing one takes longer than SQLite needs to answer it.
_AFTER = (
    select(EVENTS)
    .where(_E.experiment == bindparam("experiment"), _E.sequence > bindparam("after"))
    .order_by(_E.sequence)
)
_PAGE = _AFTER.limit(bindparam("most"))
_OF_DECISION = (
    select(EVENTS)
    .where(_E.decision == bindparam("decision"), _E.experiment == bindparam("experiment"))
    .order_by(_E.sequence)
)
_WHERE = select(_E.decision, _E.experiment).where(
    _E.decision.in_(bindparam("decisions", expanding=True)), _E.kind == "asked"
)
_BY_KEY = select(EVENTS).where(
    _E.experiment == bindparam("experiment"), _E.key.in_(bindparam("keys", expanding=True))
)
_BY_UNIT = select(EVENTS).where(
    _E.experiment == bindparam("experiment"), _E.unit.in_(bindparam("units", expanding=True))
)
_LAST = select(func.max(_E.sequence)).where(_E.experiment == bindparam("experiment"))
_ASKED = (
    select(_E.created)
    .where(_E.experiment == bindparam("experiment"), _E.kind == "asked")
    .order_by(_E.sequence.desc())
    .limit(1)
)
_INSERT = insert(EVENTS)


class Kept(NamedTuple):
    """A snapshot, with the number of the event it was taken after and the service's own notes."""

    sequence: int
    content: bytes
    notes: str


def entries_after(
    connection: Connection, experiment: str, after: int = 0, most: int | None = None
) -> list[Entry]:
    """Entries of an experiment with higher numbers, in their order."""
    values: dict[str, Any] = {"experiment": experiment, "after": after}
    query: Select[Any] = _AFTER
    if most is not None:
        query, values["most"] = _PAGE, most
    return [entry_of(row) for row in connection.execute(query, values)]


def last_of(connection: Connection, experiment: str) -> int:
    """Find the number of the last entry of an experiment; 0 if there is none."""
    return int(connection.execute(_LAST, {"experiment": experiment}).scalar_one() or 0)


def last_asked(connection: Connection, experiment: str) -> float | None:
    """Find when the last decision was made, in seconds since 1970; None if there is none."""
    found = connection.execute(_ASKED, {"experiment": experiment}).scalar_one_or_none()
    return None if found is None else float(found)


def entries_of(connection: Connection, experiment: str, decision: str) -> list[Entry]:
    """Entries about a decision, in their order."""
    values = {"experiment": experiment, "decision": decision}
    return [entry_of(row) for row in connection.execute(_OF_DECISION, values)]


def experiments_of(connection: Connection, decisions: Sequence[str]) -> dict[str, str]:
    """Find the experiments that decisions belong to; those that nobody has made are left out."""
    if not decisions:
        return {}
    found = connection.execute(_WHERE, {"decisions": list(decisions)})
    return {row.decision: row.experiment for row in found}


def known_requests(
    connection: Connection, experiment: str, keys: Sequence[str], units: Sequence[str]
) -> list[Entry]:
    """First entries of requests that came with these keys, or for these units."""
    found: list[Entry] = []
    if keys:
        values = {"experiment": experiment, "keys": list(keys)}
        found += [entry_of(row) for row in connection.execute(_BY_KEY, values)]
    if units:
        values = {"experiment": experiment, "units": list(units)}
        found += [entry_of(row) for row in connection.execute(_BY_UNIT, values)]
    return found


def beginnings(connection: Connection) -> list[tuple[str, Entry]]:
    """List the first entry of every experiment, which says how it was begun."""
    query = select(EVENTS).where(_E.sequence == 1).order_by(_E.created, _E.experiment)
    return [(row.experiment, entry_of(row)) for row in connection.execute(query)]


def write_entries(connection: Connection, entries: Iterable[tuple[str, Entry]]) -> int:
    """Append to the logs of experiments, and say how many entries there were."""
    rows = [row_of(experiment, entry) for experiment, entry in entries]
    if rows:
        connection.execute(_INSERT, rows)
    return len(rows)


def kept(connection: Connection, experiment: str, *, first: bool = False) -> Kept | None:
    """Read the last snapshot of an experiment, or the first."""
    column = SNAPSHOTS.c.sequence
    query = (
        select(column, SNAPSHOTS.c.content, SNAPSHOTS.c.notes)
        .where(SNAPSHOTS.c.experiment == experiment)
        .order_by(column if first else column.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else Kept(int(row[0]), bytes(row[1]), row[2])


def write_snapshot(connection: Connection, experiment: str, snapshot: Kept) -> None:
    """Keep a snapshot, and forget all but it and the first."""
    mine = SNAPSHOTS.c.experiment == experiment
    first = select(func.min(SNAPSHOTS.c.sequence)).where(mine).scalar_subquery()
    connection.execute(insert(SNAPSHOTS).values(experiment=experiment, **snapshot._asdict()))
    older = SNAPSHOTS.c.sequence < snapshot.sequence
    connection.execute(delete(SNAPSHOTS).where(mine, older, SNAPSHOTS.c.sequence > first))


def write_look(connection: Connection, experiment: str, sequence: int, content: str) -> None:
    """Keep what was known after an event."""
    values = {"experiment": experiment, "sequence": sequence, "content": content}
    connection.execute(insert(LOOKS).values(values))


def looks_of(connection: Connection, experiment: str) -> list[str]:
    """Read what was known at every look, in their order."""
    query = (
        select(LOOKS.c.content).where(LOOKS.c.experiment == experiment).order_by(LOOKS.c.sequence)
    )
    return list(connection.execute(query).scalars())


def beat(connection: Connection, now: float) -> None:
    """Write something, to find out whether that is possible."""
    connection.execute(update(PULSE).values(beat=now))
