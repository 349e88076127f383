"""Databases for the tests of the service: SQLite, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.databases import Server, new_database


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One server for all tests of a process; its directory is short, as sockets need it."""
    return Server()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of an empty database of each kind."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/experiments.db"
    else:
        with new_database(request.getfixturevalue("postgresql")) as url:
            yield url
