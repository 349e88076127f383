"""Lookups of the writer through the database drivers."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, IntegrityError, OperationalError

from sightline.service import events
from sightline.service.errors import is_outage
from sightline.service.events import Entry, Lookup
from sightline.service.store import Store
from sightline.sessions.journal import Event
from tests.service.databases import Server, new_database


def entry(sequence: int, key: str | None = None, unit: str | None = None) -> Entry:
    return Entry(Event(sequence, "asked", 0.1, f"decision {sequence}", arm=1), key, unit)


def test_what_is_needed_is_found(database: str) -> None:
    written = [entry(1, "a"), entry(2, "b", "é"), entry(3, None, '"u"'), entry(4)]
    with Store(database) as store:
        with store.writing() as connection:
            rows = [(name, one) for name in ("one", "other") for one in written]
            assert events.append(connection, rows) == 8
            assert events.append(connection, []) == 0
        needs = [
            Lookup("one", 2, ["b", "z"], ['"u"']),
            Lookup("other", None, [], ["é", "z"]),
            Lookup("nobody", 0, ["a"], ["é"]),
        ]
        with store.writing() as connection:
            found = events.lock_and_look_up(connection, needs)
    assert found[0] == (written[2:], [written[1], written[2]])
    assert found[1:] == [([], [written[1]]), ([], [])]


@pytest.mark.parametrize("column", ["key", "unit"])
@pytest.mark.parametrize("count", [1, 8, 64, 512])
def test_sqlite_reads_no_whole_log(column: str, count: int, tmp_path: Path) -> None:
    """By itself it does, from eight keys on."""
    names = [f"name {i}" for i in range(count)]
    need = Lookup("one", None, names, []) if column == "key" else Lookup("one", None, [], names)
    (question,) = events._statements(need, postgresql=False)[1]
    with Store(f"sqlite:///{tmp_path}/x.db") as store, store.reading() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {question[0]}", question[1]).all()
    assert f"events_by_{column} (experiment=? AND {column}=?)" in str(plan)


def test_one_transaction_sees_what_it_waited_for(postgresql: Server) -> None:
    """The lock is taken before the log is read, though all is sent at once."""
    taken, found = threading.Event(), []
    with new_database(postgresql) as url, Store(url) as one, Store(url) as other:

        def second() -> None:
            taken.wait()
            with other.writing() as connection:
                found.extend(events.lock_and_look_up(connection, [Lookup("one", 0, ["a"], [])]))

        waiting = threading.Thread(target=second)
        waiting.start()
        with one.writing() as connection:
            events.lock_and_look_up(connection, [Lookup("one", 0, [], [])])
            taken.set()
            time.sleep(0.3)
            assert not found
            events.append(connection, [("one", entry(1, "a"))])
        waiting.join()
    assert found == [([entry(1, "a")], [entry(1, "a")])]


def test_errors_of_drivers_are_those_of_the_store(database: str) -> None:
    with Store(database) as store:
        with pytest.raises(IntegrityError) as refused, store.writing() as connection:
            events.append(connection, [("one", entry(1)), ("one", entry(1))])
        assert not refused.value.connection_invalidated
        assert not is_outage(refused.value)
        with store.writing() as connection:
            assert events.lock_and_look_up(connection, [Lookup("one", 0, [], [])]) == [([], [])]


def test_a_disk_that_is_full_is_no_defect(tmp_path: Path) -> None:
    """Otherwise what may succeed later would not be sent again."""
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        with store.writing() as connection:
            connection.execute(text("PRAGMA max_page_count = 1"))  # of the one that is used again
        with pytest.raises(OperationalError) as refused, store.writing() as connection:
            events.append(connection, [("one", entry(i, "x" * 1000 + str(i))) for i in range(99)])
        assert is_outage(refused.value)


def test_a_transaction_waits_for_another_and_not_for_ever(
    postgresql: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.service.store._LOCK_TIMEOUT", 0.2)
    with new_database(postgresql) as url, Store(url) as one, Store(url) as other:
        with one.writing() as connection:
            events.lock(connection, "one")
            with pytest.raises(OperationalError) as refused, other.writing() as waiting:
                events.lock_and_look_up(
                    waiting, [Lookup("none", 0, [], []), Lookup("one", 0, ["a"], ["b"])]
                )
            assert events.was_locked(refused.value)
            assert is_outage(refused.value)
            assert not other.breaker.is_open
            with other.writing() as second:
                assert events.locked_elsewhere(second, ["none", "one"]) == {"one"}
        with other.writing() as second:
            assert events.locked_elsewhere(second, ["none", "one"]) == set()


def test_a_connection_that_was_ended_is_noticed(postgresql: Server) -> None:
    with new_database(postgresql) as url, Store(url) as store:
        with pytest.raises(DBAPIError) as refused:
            take_after_the_end(store)
        assert refused.value.connection_invalidated
        assert store.breaker.seconds_left > 0.0
        time.sleep(store.breaker.seconds_left)
        with store.writing() as connection:
            assert events.lock_and_look_up(connection, [Lookup("one", 0, [], [])]) == [([], [])]
        assert store.breaker.seconds_left == 0.0


def take_after_the_end(store: Store) -> None:
    with store.writing() as connection:
        (number,) = connection.execute(text("SELECT pg_backend_pid()")).one()
        with store.writing() as other:
            other.execute(text(f"SELECT pg_terminate_backend({number})"))
        events.lock_and_look_up(connection, [Lookup("one", 0, ["a"], [])])
