"""Responses do not depend on the physical order of rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from sqlalchemy import event, text

from sightline.report.audit import audit
from sightline.service.events import copy_log
from sightline.service.exports import export_parquet
from sightline.service.readers import Readers
from sightline.service.settings import Settings
from sightline.service.store import Store
from tests.service.running import Service, running
from tests.service.test_exports import ENDLESS

PAGE = "/v1/experiments/page"
VIEWS = ("", "/status", "/history", "/estimates", "/effects", "/pending", "/events")


def shuffle(store: Store) -> None:
    """Let rows come in another order wherever none is asked for."""
    if store.exclusive:
        for engine in (store._reading, store._writing):
            event.listen(
                engine,
                "connect",
                lambda connection, _: connection.execute("PRAGMA reverse_unordered_selects=ON"),
            )
            engine.dispose()
        return
    with store.writing() as connection:
        for table in ("events", "snapshots", "history", "tokens"):
            for statement in (
                f"CREATE TEMPORARY TABLE moved AS SELECT * FROM {table}",
                f"DELETE FROM {table}",
                f"INSERT INTO {table} SELECT * FROM moved ORDER BY random()",
                "DROP TABLE moved",
                f"ANALYZE {table}",
            ):
                connection.execute(text(statement))


def seen(service: Service) -> list[Any]:
    """Everything that readers get, loaded again."""
    service.runtime.readers._replicas.clear()
    paths = ["/v1/experiments", *(PAGE + view for view in VIEWS)]
    answers = [service("GET", path).body for path in paths]
    answers[paths.index(f"{PAGE}/history")]["points"].pop()  # which is of now
    return answers


def exported(store: Store, path: Path) -> Any:
    with path.open("wb") as file:
        file.writelines(export_parquet(Readers(store, Settings()), "page"))
    return pq.read_table(path)


def amend(service: Service) -> dict[str, float]:
    """Decide, tell, and amend four times; the last reward of every decision."""
    service("PUT", PAGE, ENDLESS)
    made = [service("POST", f"{PAGE}/decisions", {}).body["id"] for _ in range(40)]
    for step in range(5):
        for i, one in enumerate(made):
            path = f"/v1/decisions/{one}/reward?amend=1"
            assert service("PUT", path, {"reward": i / 10 + step}).status == 200
    return {one: i / 10 + 4 for i, one in enumerate(made)}


def test_no_answer_depends_on_where_rows_are(database: str, tmp_path: Path) -> None:
    """Exports had rewards that others had taken the place of, once the rows had moved."""
    with running(database) as service:
        last = amend(service)
        before = seen(service)
        shuffle(service.store)
        assert seen(service) == before
        table = exported(service.store, tmp_path / "shuffled.parquet")
        rewards = zip(table["decision_id"].to_pylist(), table["reward"].to_pylist(), strict=True)
        assert dict(rewards) == last
        assert audit(tmp_path / "shuffled.parquet").well
        service("POST", f"{PAGE}/pause")
        with Store(f"sqlite:///{tmp_path}/copy.db") as copy:
            copy_log(service.store, copy, "page")
            assert exported(copy, tmp_path / "copy.parquet").equals(table)
