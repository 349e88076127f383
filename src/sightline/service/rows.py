"""Questions to the database and what is written to it, within a transaction of the caller."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    Connection,
    Select,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from sightline.service.entries import Entry, entry_of
from sightline.service.schema import EVENTS, LOOKS, PULSE, SNAPSHOTS

__all__ = [
    "PAGE_SIZE",
    "Kept",
    "beat",
    "beginnings",
    "entries_about",
    "entries_after",
    "entries_of",
    "entries_of_kinds",
    "experiments_of",
    "kept",
    "last_asked",
    "last_of",
    "later_entries",
    "looks_of",
    "newest",
    "pages",
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
_LAST = select(func.max(_E.sequence)).where(_E.experiment == bindparam("experiment"))
_ASKED = (
    select(_E.created)
    .where(_E.experiment == bindparam("experiment"), _E.kind == "asked")
    .order_by(_E.sequence.desc())
    .limit(1)
)
_ASKS = EVENTS.alias()
_ABOUT = (
    select(EVENTS)
    .join(_ASKS, (_E.decision == _ASKS.c.decision) & (_E.experiment == _ASKS.c.experiment))
    .where(
        _ASKS.c.experiment == bindparam("experiment"),
        _ASKS.c.kind == "asked",
        _ASKS.c.sequence.between(bindparam("first"), bindparam("last")),
        _E.kind.in_(bindparam("kinds", expanding=True)),
        _E.sequence <= bindparam("until"),
    )
    .order_by(_E.sequence)  # of several rewards of a decision the last one counts
)
_OF_KINDS = (
    select(EVENTS)
    .where(
        _E.experiment == bindparam("experiment"),
        _E.kind.in_(bindparam("kinds", expanding=True)),
        _E.sequence <= bindparam("until"),
    )
    .order_by(_E.sequence)
)
#: Written out: the index of first entries is of no use to a value that is given later.
_IS_FIRST = _E.sequence == literal_column("1")
_INSERT_LOOK = insert(LOOKS)
#: Entries that are in memory at once where a log is read as a whole.
PAGE_SIZE = 10_000


_ARCHIVE = b"PK"  # with which every file of zip begins


class Kept(NamedTuple):
    """A snapshot, with the number of the event it was taken after and the service's own notes.

    The content of the first one is compressed in the database: committing 28 MB of zeros would keep
    other experiments waiting.  Later snapshots are not, since compression takes longer.
    """

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


def pages(
    connection: Connection, experiment: str, after: int = 0, size: int | None = None
) -> Iterator[list[Entry]]:
    """Entries of an experiment with higher numbers, so many at a time."""
    size = size or PAGE_SIZE
    while found := entries_after(connection, experiment, after, size):
        yield found
        if len(found) < size:
            return
        after = found[-1].event.sequence


def later_entries(connection: Connection, experiment: str, after: int = 0) -> Iterator[Entry]:
    """Entries of an experiment with higher numbers, of which only some are in memory."""
    for page in pages(connection, experiment, after):
        yield from page


def entries_about(
    connection: Connection,
    experiment: str,
    asked: tuple[int, int],
    kinds: Sequence[str],
    until: int,
) -> list[Entry]:
    """Entries of some kinds about decisions made from one entry to another, in their order."""
    values = {
        "experiment": experiment,
        "first": asked[0],
        "last": asked[1],
        "kinds": list(kinds),
        "until": until,
    }
    return [entry_of(row) for row in connection.execute(_ABOUT, values)]


def entries_of_kinds(
    connection: Connection, experiment: str, kinds: Sequence[str], until: int
) -> list[Entry]:
    """Entries of some kinds up to a number, in their order."""
    values = {"experiment": experiment, "kinds": list(kinds), "until": until}
    return [entry_of(row) for row in connection.execute(_OF_KINDS, values)]


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


def beginnings(connection: Connection) -> list[tuple[str, Entry]]:
    """List the first entry of every experiment, which says how it was begun."""
    query = select(EVENTS).where(_IS_FIRST).order_by(_E.created, _E.experiment)
    return [(row.experiment, entry_of(row)) for row in connection.execute(query)]


def newest(connection: Connection, after: int, most: int) -> tuple[list[str], int]:
    """List experiments after the first so many, the newest first, and count all."""
    query = (
        select(_E.experiment)
        .where(_IS_FIRST)
        .order_by(_E.created.desc(), _E.experiment.desc())
        .offset(after)
        .limit(most)
    )
    total = connection.execute(select(func.count()).where(_IS_FIRST)).scalar_one()
    return list(connection.execute(query).scalars()), int(total)


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
    if row is None:
        return None
    content = bytes(row[1])
    if not content.startswith(_ARCHIVE):
        content = zlib.decompress(content)
    return Kept(int(row[0]), content, row[2])


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
    connection.execute(_INSERT_LOOK, values)


def looks_of(connection: Connection, experiment: str) -> list[str]:
    """Read what was known at every look, in their order."""
    query = (
        select(LOOKS.c.content).where(LOOKS.c.experiment == experiment).order_by(LOOKS.c.sequence)
    )
    return list(connection.execute(query).scalars())


def beat(connection: Connection, now: float) -> None:
    """Write something, to find out whether that is possible; not while another process does."""
    free = select(PULSE.c.id).with_for_update(skip_locked=True).scalar_subquery()
    connection.execute(update(PULSE).where(PULSE.c.id == free).values(beat=now))
