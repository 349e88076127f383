"""Several services on one PostgreSQL do not block each other."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterator

import psycopg
import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from sightline.service import events, store
from sightline.service.events import Lookup
from sightline.service.store import Store
from tests.service.databases import OWN, Server, new_database
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running
from tests.service.test_lookup import take_after_the_end
from tests.service.test_outage import healthy

PAGE, OTHER = "/v1/experiments/page", "/v1/experiments/other"


@contextlib.contextmanager
def with_setting(server: Server, name: str, value: int) -> Iterator[None]:
    """Change a setting of the server that needs a restart."""
    if OWN:
        pytest.skip("it needs a restart, and the server is not ours")

    def restart(statement: str) -> None:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(statement)
        server.stop()
        server.start()

    restart(f"ALTER SYSTEM SET {name} = {value}")
    try:
        yield
    finally:
        restart(f"ALTER SYSTEM RESET {name}")


@pytest.fixture
def narrow(postgresql: Server) -> Iterator[str]:
    """A database of a server with eight connections."""
    with with_setting(postgresql, "max_connections", 8), new_database(postgresql) as url:
        yield url


def hold(stores: list[Store], each: int) -> None:
    """Read with several connections of each store at once, as far as there are any."""
    with contextlib.ExitStack() as stack:
        for _ in range(each):
            for one in stores:
                with contextlib.suppress(DBAPIError):
                    stack.enter_context(one.reading()).execute(text("SELECT 1"))


def backends(server: Server) -> int:
    """Connections of services that are open."""
    with psycopg.connect(server.url) as connection:
        query = "SELECT count(*) FROM pg_stat_activity WHERE datname LIKE 'sightline_%'"
        row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def load(service: Service, over: threading.Event) -> None:
    """Ask for decisions and views, and ignore the responses."""
    while not over.is_set():
        service("POST", f"{PAGE}/decisions", {})
        service("GET", f"{PAGE}/status")


def test_services_recover_when_there_were_too_few_connections(
    narrow: str, postgresql: Server
) -> None:
    """Two stayed at 503, with the connections that one of their two pools each had kept."""
    over = threading.Event()
    with running(narrow) as one, running(narrow) as other:
        one("PUT", PAGE, SPECIFICATION)
        visitors = [
            threading.Thread(target=load, args=(service, over))
            for service in (one, other)
            for _ in range(8)
        ]
        for visitor in visitors:
            visitor.start()
        time.sleep(4.0)
        over.set()
        for visitor in visitors:
            visitor.join()
        for service in (one, other):
            healthy(service, True, 5.0)
        for service in (one, other):
            assert service("POST", f"{PAGE}/decisions", {}).status == 200
            assert service("GET", f"{PAGE}/status").status == 200
        assert backends(postgresql) <= 6


def test_a_store_keeps_few_connections(postgresql: Server) -> None:
    with new_database(postgresql) as url, Store(url) as found:
        before = backends(postgresql)
        hold([found], 8)
        with found.writing(), found.writing():
            pass
        until = time.monotonic() + 5.0  # the server ends closed connections a moment later
        while backends(postgresql) - before > 2 and time.monotonic() < until:
            time.sleep(0.05)
        assert backends(postgresql) - before <= 2


def test_an_outage_releases_all_connections(postgresql: Server) -> None:
    with new_database(postgresql) as url, Store(url) as found:
        hold([found], 2)
        before = backends(postgresql)
        with pytest.raises(DBAPIError):
            take_after_the_end(found)
        assert found.breaker.is_open
        deadline = time.monotonic() + 5.0  # PostgreSQL ends them a moment later
        while backends(postgresql) > before - 3:
            assert time.monotonic() < deadline, "connections are kept"
            time.sleep(0.01)


def test_few_connections_are_said_at_the_start(
    narrow: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING), Store(narrow):
        pass
    assert "PostgreSQL allows 8 connections, each service uses up to 10" in caplog.text


def test_too_few_connections_are_refused(
    postgresql: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with new_database(postgresql) as url, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("CREATE ROLE guest LOGIN CONNECTION LIMIT 1")
        try:
            (name,) = admin.execute("SELECT current_database()").fetchone() or ("",)
            admin.execute(f"GRANT ALL ON DATABASE {name} TO guest")
            admin.execute("GRANT ALL ON SCHEMA public TO guest")
            guest = url.replace("//postgres", "//guest")
            with pytest.raises(ValueError, match="allows 1 connections, a service needs 2"):
                Store(guest)
            admin.execute("ALTER ROLE guest CONNECTION LIMIT 2")
            with Store(guest) as found, found.writing(), found.reading():
                pass
            assert "allows 2 connections" in caplog.text
        finally:
            admin.execute("DROP OWNED BY guest")
            admin.execute("DROP ROLE guest")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_LOCK_TIMEOUT", 0.5)
    monkeypatch.setattr(store, "_IDLE_TIMEOUT", 3.0)


def timed(service: Service, path: str) -> tuple[int, float]:
    began = time.monotonic()
    status = service("POST", f"{path}/decisions", {}).status
    return status, time.monotonic() - began


def test_a_process_that_was_halted_stops_only_what_it_changes(
    postgresql: Server, impatient: None
) -> None:
    """And that for some seconds; its own transaction changes nothing then."""
    with new_database(postgresql) as url, running(url) as service, Store(url) as halted:
        for path in (PAGE, OTHER):
            service("PUT", path, SPECIFICATION)
            assert timed(service, path)[0] == 200
        with pytest.raises(DBAPIError), halted.writing() as connection:
            watch_others(connection, service)
        assert not service.runtime._writer._contested


def watch_others(connection: Connection, service: Service) -> None:
    """Change an experiment, and do nothing for as long as that is possible."""
    events.lock_and_look_up(connection, [Lookup("page", 0, [], [])])
    events.write_heartbeat(connection, 0.0)
    began = time.monotonic()
    answers: list[tuple[int, float]] = []
    waiting = threading.Thread(target=lambda: answers.append(timed(service, PAGE)))
    waiting.start()
    time.sleep(0.1)
    first = timed(service, OTHER)  # which waits for the transaction before
    waiting.join()
    assert (first[0], answers[0][0]) == (200, 503)
    assert max(first[1], answers[0][1]) < 1.5
    for _ in range(5):
        assert service("GET", "/v1/health").status == 200
        for path, expected in ((PAGE, 503), (OTHER, 200)):
            status, took = timed(service, path)
            assert status == expected
            assert took < 0.4
    assert time.monotonic() - began < 3.0
    while timed(service, PAGE)[0] != 200:
        assert time.monotonic() - began < 6.0, "it is never released"
        time.sleep(0.05)
    assert time.monotonic() - began > 2.5
    connection.execute(text("SELECT 1"))


def test_lock_and_idle_limits_are_those_of_the_documentation(postgresql: Server) -> None:
    with new_database(postgresql) as url, Store(url) as found, found.writing() as connection:
        for name, expected in (
            ("lock_timeout", "3s"),
            ("idle_in_transaction_session_timeout", "15s"),
        ):
            assert connection.execute(text(f"SHOW {name}")).scalar_one() == expected
