"""Databases for the tests of the service: SQLite, and a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.databases import Server, new_database
from tests.service.running import Service, running


@pytest.fixture(scope="session")
def postgresql(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """One server for all tests of a process; its directory is short, as sockets need it."""
    return Server()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Address of an empty database of each kind."""
    yield from _database(request, tmp_path)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_database(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Address of a database of each kind, for all tests of a file."""
    yield from _database(request, tmp_path_factory.mktemp("shared"))


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service of its own, on SQLite."""
    with running(f"sqlite:///{tmp_path}/x.db") as found:
        yield found


@pytest.fixture(scope="module")
def nothing_begun(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service for all tests of a file, in which nothing is begun."""
    with running(f"sqlite:///{tmp_path_factory.mktemp('refusing')}/x.db") as found:
        yield found


def _database(request: pytest.FixtureRequest, folder: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{folder}/experiments.db"
    else:
        with new_database(request.getfixturevalue("postgresql")) as url:
            yield url
