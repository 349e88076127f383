"""Lists of experiments do not read their logs."""

from __future__ import annotations

from typing import Any

from sqlalchemy import event, text

from sightline.service.pages.values import ExperimentList
from sightline.service.readers import Readers, experiments_view
from sightline.service.settings import Settings
from sightline.service.store import Store
from tests.service.running import running
from tests.service.test_exports import ENDLESS
from tests.service.test_order import amend

PAGE = "/v1/experiments/page"


def lengthen(store: Store, events: int) -> None:
    """Write a long log of another experiment, whose entries mean nothing."""
    first = "SELECT 1 AS i UNION ALL SELECT i + 1 FROM numbers"
    with store.writing() as connection:
        connection.execute(
            text(
                f"WITH RECURSIVE numbers AS ({first} WHERE i < {events}) INSERT INTO events "
                "SELECT 'long', i + 1, 'amended', 'd' || i, NULL, NULL, '{}', i FROM numbers"
            )
        )
    with store.writing() as connection:
        connection.execute(text("ANALYZE events"))


def plans(store: Store, work: Any) -> list[str]:
    """Say how a database finds what is asked for."""
    asked: list[tuple[str, Any]] = []

    def listen(_: Any, __: Any, statement: str, values: Any, *___: Any) -> None:
        asked.append((statement, values))

    event.listen(store._reading, "before_cursor_execute", listen)
    try:
        work()
    finally:
        event.remove(store._reading, "before_cursor_execute", listen)
    explain = "EXPLAIN QUERY PLAN" if store.exclusive else "EXPLAIN"
    with store.reading() as connection:
        return [
            str(connection.exec_driver_sql(f"{explain} {statement}", values).all())
            for statement, values in asked
            if " events" in statement
        ]


def test_no_list_reads_all_events(database: str) -> None:
    with running(database) as service:
        last = amend(service)
        lengthen(service.store, 30_000)
        readers, overview = Readers(service.store, Settings()), ExperimentList()

        def page() -> None:
            rows, total = overview.page(readers, 1, 50)
            assert (total, [row["id"] for row in rows]) == (1, ["page"])
            assert rows[0]["decisions"] == len(last)

        for work in (page, page, lambda: experiments_view(readers)):
            found = plans(service.store, work)
            assert any("events_first" in plan for plan in found)
            for plan in found:
                assert "Seq Scan on events" not in plan
                assert "SCAN events" not in plan or "events_first" in plan


def test_the_newest_comes_first_page_by_page(database: str) -> None:
    with running(database) as service:
        for i in range(5):
            service("PUT", f"/v1/experiments/x{i}", ENDLESS)
        readers = service.runtime.readers
        found = [readers.newest(after, 2) for after in (0, 2, 4, 6)]
    assert found == [(["x4", "x3"], 5), (["x2", "x1"], 5), (["x0"], 5), ([], 5)]


def test_the_list_knows_the_last_decision(database: str) -> None:
    """Also of decisions that were made after it was first shown, or after a snapshot."""
    with running(database) as service:
        readers, overview = service.runtime.readers, ExperimentList()

        def shown() -> Any:
            return overview.page(readers, 1, 50)[0][0]["asked"]

        service("PUT", PAGE, ENDLESS)
        assert shown() is None
        for _ in range(3):
            made = service("POST", f"{PAGE}/decisions", {}).body
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
            (asked,) = (
                one["at"]
                for one in service("GET", f"{PAGE}/events").body["events"]
                if one["kind"] == "asked" and one["decision"] == made["id"]
            )
            assert shown() == asked
        readers._replicas.clear()
        overview._known.clear()
        assert shown() == asked
