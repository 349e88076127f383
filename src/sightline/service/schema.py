"""Tables of the database.

| table     | contents                                                                     |
|-----------|------------------------------------------------------------------------------|
| events    | every change of every experiment, numbered from 1 in each: the source of truth |
| snapshots | states after some events, to load quickly; the first one is kept permanently |
| history   | evidence and rewards at some moments, for figures over time; may be lost     |
| tokens    | hashes of tokens, with roles                                                 |
| heartbeat | one row, written to check whether the database accepts writes                |
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)

VERSION = 1
_METADATA = MetaData()

EVENTS = Table(
    "events",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("decision", Text),
    Column("key", Text),
    Column("unit", Text),
    Column("payload", Text, nullable=False),
    Column("created", Double, nullable=False),
    sqlite_with_rowid=False,
)
SNAPSHOTS = Table(
    "snapshots",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("content", LargeBinary, nullable=False),
    Column("lifecycle", Text, nullable=False),
)
HISTORY = Table(
    "history",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("content", Text, nullable=False),
)
TOKENS = Table(
    "tokens",
    _METADATA,
    Column("name", Text, primary_key=True),
    Column("hash", Text, nullable=False, unique=True),
    Column("role", Text, nullable=False),
    Column("created", Double, nullable=False),
    Column("revoked", Double),
)
HEARTBEAT = Table(
    "heartbeat",
    _METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("beat", Double, nullable=False),
)
_VERSIONS = Table("sightline_version", _METADATA, Column("version", Integer, nullable=False))


def _index(name: str, columns: tuple[str, ...], where: str, *, unique: bool = False) -> None:
    """Add an index over some rows of the events."""
    fields = (EVENTS.c[column] for column in columns)
    Index(name, *fields, unique=unique, sqlite_where=text(where), postgresql_where=text(where))


_index("events_by_key", ("experiment", "key"), "key IS NOT NULL", unique=True)
_index("events_by_unit", ("experiment", "unit"), "unit IS NOT NULL", unique=True)
_index("events_by_decision", ("decision",), "decision IS NOT NULL")
# without it, a list of experiments would read all events
_index("events_first", ("created", "experiment"), "sequence = 1")


def refuse_foreign(tables: set[str]) -> None:
    """Raise ValueError if these are the tables of another program."""
    if "events" in tables and "sightline_version" not in tables:
        raise ValueError(
            "the database has a table 'events' that is not of this service: name another one"
        )


def create_tables(connection: Connection) -> None:
    """Create the tables, or check their version, within an exclusive transaction.

    ValueError if the database belongs to another program or has another version.
    """
    tables = set(inspect(connection).get_table_names())
    refuse_foreign(tables)
    if "sightline_version" not in tables:
        _METADATA.create_all(connection)
        connection.execute(_VERSIONS.insert().values(version=VERSION))
        connection.execute(HEARTBEAT.insert().values(id=1, beat=0.0))
        return
    found = int(connection.execute(_VERSIONS.select()).scalar_one())
    if found > VERSION:
        raise ValueError(
            f"the database has version {found}, later than {VERSION}: upgrade sightline"
        )
    if found < VERSION:
        raise ValueError(f"the database has version {found}; this release reads {VERSION} only")
