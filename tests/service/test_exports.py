"""Exports and copies read a log page by page."""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sightline.report.audit import audit
from sightline.service import events
from sightline.service.events import Entry, copy_log
from sightline.service.exports import export_parquet
from sightline.service.readers import Readers
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.sessions.journal import Event
from tests.service.forked import SPECIFICATION
from tests.service.long_log import fill
from tests.service.running import running

PAGE = "/v1/experiments/page"
LIMITS = ("reward_deadline", "early_rewards")
ENDLESS = {name: value for name, value in SPECIFICATION.items() if name not in LIMITS}


def exported(store: Store, path: Path) -> Any:
    with path.open("wb") as file:
        file.writelines(export_parquet(Readers(store, Settings()), "page"))
    return pq.read_table(path)


def test_pages_of_any_size_make_the_same_file(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Decisions may be closed, activated, and parts of a batch, on a later page."""
    with running(database) as service:
        service("PUT", PAGE, {**SPECIFICATION, "reward_deadline": "12 rounds"})
        assert exported(service.store, tmp_path / "empty.parquet").num_rows == 0
        made = []
        for i in range(12):
            body = {"count": 3} if i % 4 == 1 else {"activate": i % 3 > 0, "unit": f"unit {i}"}
            answer = service("POST", f"{PAGE}/decisions", body).body
            made += answer.get("decisions", [answer])
            if i == 5:
                service("POST", f"{PAGE}/options", {"name": "d", "features": [0.5, 0.9]})
            if i == 8:
                service("POST", f"{PAGE}/options/a:retire")
        service("PUT", f"/v1/decisions/{made[-1]['id']}/give-up")
        service("PUT", f"/v1/decisions/{made[-5]['id']}/activation")
        for one in made[-4:-1]:
            service("PUT", f"/v1/decisions/{one['id']}/reward", {"reward": 0.5})
        whole = exported(service.store, tmp_path / "whole.parquet")
        monkeypatch.setattr(events, "PAGE_SIZE", 2)
        pages = exported(service.store, tmp_path / "pages.parquet")
    assert pages.equals(whole, check_metadata=True)
    assert audit(tmp_path / "pages.parquet").well
    frame = pages.to_pandas()
    assert frame["decision_id"].tolist() == [one["id"] for one in made]
    assert set(frame["outcome"]) == {"observed", "expired", "given up", "open"}
    assert 0 < frame["activated_at"].notna().sum() < len(frame)
    assert frame["unit"].notna().sum() == 9


def peak(work: Callable[[], object]) -> int:
    """Largest memory that something takes, of Python and of Arrow."""
    pool = pa.system_memory_pool()
    default = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + int(pool.max_memory())
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(default)


def send(readers: Readers) -> None:
    for _ in export_parquet(readers, "page"):
        pass


def test_memory_does_not_grow_with_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAGE_SIZE", 400)
    exports, copies = [], []
    for count in (2_000, 10_000):
        url = f"sqlite:///{tmp_path}/{count}.db"
        with Store(url) as store, Store(f"{url}.copy", serving=False) as target:
            fill(store, "page", ENDLESS, count)
            readers = Readers(store, Settings())
            with readers.replica("page"):
                pass  # the session itself is not what is measured
            exports.append(peak(functools.partial(send, readers)))
            with store.writing() as connection:
                paused = Entry(Event(events.last_sequence(connection, "page") + 1, "paused", 0.0))
                events.append(connection, [("page", paused)])
            copies.append(peak(functools.partial(copy_log, store, target, "page")))
    assert exports[1] < 1.5 * exports[0], exports
    assert copies[1] < 1.5 * copies[0], copies
