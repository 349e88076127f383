"""Tables of the database, and how each version of them is made of the one before.

| table     | holds                                                                   |
|-----------|-------------------------------------------------------------------------|
| events    | the truth: every change of every experiment, numbered from 1 in each    |
| snapshots | states after some events, to save time; the first is kept for ever      |
| looks     | what was known at some moments, for figures over time; can be left out  |
| tokens    | hashes of tokens, with roles                                            |
| pulse     | one row that is written to find out whether anything can be written     |
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    inspect,
    text,
)

__all__ = [
    "EVENTS",
    "LOOKS",
    "PULSE",
    "SNAPSHOTS",
    "TOKENS",
    "VERSION",
    "migrate",
    "refuse_foreign",
]

_METADATA = MetaData()

EVENTS = Table(
    "events",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("kind", Text),
    Column("decision", Text),
    Column("key", Text),
    Column("unit", Text),
    Column("payload", Text),
    Column("created", Float(53)),
)
SNAPSHOTS = Table(
    "snapshots",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("content", LargeBinary),
    Column("notes", Text),
)
LOOKS = Table(
    "looks",
    _METADATA,
    Column("experiment", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("content", Text),
)
TOKENS = Table(
    "tokens",
    _METADATA,
    Column("name", Text, primary_key=True),
    Column("hash", Text),
    Column("role", Text),
    Column("created", Float(53)),
    Column("revoked", Float(53)),
)
PULSE = Table(
    "pulse", _METADATA, Column("id", Integer, primary_key=True), Column("beat", Float(53))
)

#: Statements that lead to each version; what stands here once has been used, and never changes.
#: Numbers are of 8 bytes in both databases under these names.
_MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE events (
            experiment TEXT NOT NULL,
            sequence BIGINT NOT NULL,
            kind TEXT NOT NULL,
            decision TEXT,
            key TEXT,
            unit TEXT,
            payload TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            PRIMARY KEY (experiment, sequence)
        ) {clustered}""",
        "CREATE UNIQUE INDEX events_by_key ON events (experiment, key) WHERE key IS NOT NULL",
        "CREATE UNIQUE INDEX events_by_unit ON events (experiment, unit) WHERE unit IS NOT NULL",
        "CREATE INDEX events_by_decision ON events (decision) WHERE decision IS NOT NULL",
        """CREATE TABLE snapshots (
            experiment TEXT NOT NULL,
            sequence BIGINT NOT NULL,
            content {bytes} NOT NULL,
            notes TEXT NOT NULL,
            PRIMARY KEY (experiment, sequence)
        )""",
        """CREATE TABLE looks (
            experiment TEXT NOT NULL,
            sequence BIGINT NOT NULL,
            content TEXT NOT NULL,
            PRIMARY KEY (experiment, sequence)
        )""",
        """CREATE TABLE tokens (
            name TEXT PRIMARY KEY,
            hash TEXT NOT NULL UNIQUE,
            role TEXT NOT NULL,
            created DOUBLE PRECISION NOT NULL,
            revoked DOUBLE PRECISION
        )""",
        "CREATE TABLE pulse (id INTEGER PRIMARY KEY, beat DOUBLE PRECISION NOT NULL)",
        "INSERT INTO pulse VALUES (1, 0)",
    ),
    # lists of experiments would read all events otherwise
    ("CREATE INDEX events_first ON events (created, experiment) WHERE sequence = 1",),
)
VERSION = len(_MIGRATIONS)
_NAMES = {
    "sqlite": {"bytes": "BLOB", "clustered": "WITHOUT ROWID"},
    "postgresql": {"bytes": "BYTEA", "clustered": ""},
}


def refuse_foreign(tables: set[str]) -> None:
    """Refuse a database with these tables if it is that of something else."""
    if "events" in tables and "sightline_version" not in tables:
        raise ValueError(
            "the database has a table 'events' that is not of this service: name another one"
        )


def migrate(connection: Connection) -> None:
    """Bring the tables to the present version, within a transaction that nobody else is in."""
    names = _NAMES[connection.dialect.name]
    tables = set(inspect(connection).get_table_names())
    refuse_foreign(tables)
    if "sightline_version" not in tables:
        connection.execute(text("CREATE TABLE sightline_version (version INTEGER NOT NULL)"))
        connection.execute(text("INSERT INTO sightline_version VALUES (0)"))
    found = int(connection.execute(text("SELECT version FROM sightline_version")).scalar_one())
    if found > VERSION:
        raise ValueError(
            f"the database has version {found}, later than {VERSION}: upgrade sightline"
        )
    for statements in _MIGRATIONS[found:]:
        for statement in statements:
            connection.execute(text(statement.format(**names)))
    if found < VERSION:
        connection.execute(text(f"UPDATE sightline_version SET version = {VERSION}"))
