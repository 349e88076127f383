"""The database: SQLite in one file, or PostgreSQL; who may write, and what is durable.

SQLite has one writing process, which holds a lock on a file beside the database, and one writing
thread; readers have connections of their own and never wait for it, nor it for them (write-ahead
log).  On PostgreSQL any number of processes write, one at a time to each experiment.  In both, a
transaction that has been committed survives a crash and a loss of power.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.pool import QueuePool

from sightline.engine.journal import FileLock
from sightline.service.outage import Outage
from sightline.service.schema import migrate
from sightline.validation import shown

__all__ = ["Store"]

_ALLOWED = "sqlite:///experiments.db or postgresql://user@host/name"
#: Seconds that a connection waits for another process, such as one that makes a token.
_PATIENCE = 60.0
#: Kibibytes of SQLite's file that are in memory at most: keys and ids are all over their indexes.
_CACHE = 65536
#: Pages of the write-ahead log after which they are copied to the file: many are the same.
_CHECKPOINT = 4000
#: Number of the lock under which tables are made; those of experiments are hashes.
_MIGRATION = 0x5149_4C4E


class Store:
    """A database that is open.

    Parameters
    ----------
    url : str
        ``sqlite:///experiments.db`` or ``postgresql://user@host/name``.
    serving : bool
        Whether experiments will be written: on SQLite by one process at a time.

    Attributes
    ----------
    alone : bool
        Whether nobody else writes to experiments, so that what is in memory is the newest.
    outage : Outage
        Whether the database is away, and when it is tried again.

    Raises
    ------
    BlockingIOError
        If another process serves the same file.
    ValueError
        If the address is not understood, or the database is not one of this service.
    """

    def __init__(self, url: str, *, serving: bool = True) -> None:
        try:
            parsed = make_url(url)
            kind = parsed.get_backend_name()
            if kind not in ("sqlite", "postgresql"):
                raise ArgumentError
        except (ArgumentError, NoSuchModuleError):
            raise ValueError(f"database must be {_ALLOWED}, got {shown(url)}") from None
        self.name = parsed.render_as_string(hide_password=True)
        self.alone = kind == "sqlite"
        self.outage = Outage()
        self._lock: FileLock | None = None
        if kind == "sqlite":
            if not parsed.database or parsed.database == ":memory:":
                raise ValueError(f"database must be a file, {_ALLOWED}, got {shown(url)}")
            path = Path(parsed.database).absolute()
            self._lock = FileLock(path) if serving else None
            self._writing = _sqlite(f"file:{quote(str(path))}?mode=rwc", "BEGIN IMMEDIATE")
            self._reading = _sqlite(f"file:{quote(str(path))}?mode=ro", "BEGIN")
        else:
            address = parsed.set(drivername="postgresql+psycopg")
            self._writing, self._reading = _postgresql(address, True), _postgresql(address, False)
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    def _prepare(self) -> None:
        try:
            with self.writing() as connection:
                if not self.alone:
                    connection.execute(text(f"SELECT pg_advisory_xact_lock({_MIGRATION})"))
                migrate(connection)
        except DBAPIError as error:
            raise OSError(f"cannot use {self.name}: {_reason(error)}") from None

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Begin a transaction, which is durable at the end; nothing of it stays after an error."""
        with self._connected(self._writing) as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Begin a transaction that only reads; it waits for nobody."""
        with self._connected(self._reading) as connection:
            yield connection

    @contextlib.contextmanager
    def _connected(self, engine: Engine) -> Iterator[Connection]:
        """Use a connection, and take note of a database that is away."""
        attempt = self.outage.begin()
        if self.outage.is_on:
            engine.dispose()  # connections from before say nothing
        try:
            connection = engine.connect()
        except DBAPIError as error:
            self.outage.failed(attempt, _reason(error))
            raise
        self.outage.over()
        try:
            with connection:
                yield connection
        except DBAPIError as error:
            if error.connection_invalidated:
                self.outage.failed(attempt, _reason(error))
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and let another process serve."""
        self._writing.dispose()
        self._reading.dispose()
        if self._lock is not None:
            self._lock.release()


def _reason(error: DBAPIError) -> str:
    said = str(error.orig).splitlines()
    return said[0] if said else "no connection"


def _sqlite(address: str, begin: str) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(
            address, uri=True, isolation_level=None, check_same_thread=False, timeout=_PATIENCE
        )
        if begin == "BEGIN IMMEDIATE":
            (mode,) = connection.execute("PRAGMA journal_mode=WAL").fetchone()
            if mode != "wal":
                raise OSError("SQLite cannot keep a log on this file system: use another")
            connection.execute(f"PRAGMA cache_size=-{_CACHE}")
            connection.execute(f"PRAGMA wal_autocheckpoint={_CHECKPOINT}")
        connection.execute("PRAGMA synchronous=FULL")
        return connection

    engine = create_engine(
        "sqlite://", creator=connect, poolclass=QueuePool, pool_size=4, max_overflow=16
    )
    # the driver's own beginning would come with the first change, and could then fail as locked
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _postgresql(address: Any, writes: bool) -> Engine:
    engine = create_engine(
        address,
        pool_size=4,
        max_overflow=16,
        pool_pre_ping=not writes,
        # readers see one moment, however many questions they ask
        isolation_level="READ COMMITTED" if writes else "REPEATABLE READ",
        # a machine that has vanished is noticed, in the midst of a question as well
        connect_args={
            "connect_timeout": 10,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
        },
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _: Any) -> None:
        connection.autocommit = True
        with connection.cursor() as cursor:
            (level,) = cursor.execute("SHOW synchronous_commit").fetchone()
            if level == "off":  # then an acknowledged transaction could be lost
                cursor.execute("SET synchronous_commit = on")
            if not writes:
                cursor.execute("SET default_transaction_read_only = on")
        connection.autocommit = False

    return engine
