"""Requests that are carried out in one transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from sightline.service import writer
from sightline.service.desk import Desk
from sightline.service.metrics import Metrics
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command, Writer


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Writer]:
    """One that carries out nothing."""
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        yield Writer(store, Settings(batch=8), Metrics(), lambda commands: None)


def submit(one: Writer, count: int) -> None:
    for _ in range(count):
        one.submit(Command(Desk.described))


def test_as_many_requests_as_last_time_are_waited_for(
    idle: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", 60.0)
    submit(idle, 3)
    assert len(idle._next_batch()) == 3
    submit(idle, 1)
    others = threading.Timer(0.05, submit, (idle, 2))
    others.start()
    assert len(idle._next_batch()) == 3
    others.join()


def test_but_not_for_long(idle: Writer) -> None:
    for count in (4, 2, 1, 3):
        submit(idle, count)
        assert len(idle._next_batch()) == count


def test_the_end_is_not_kept_waiting(idle: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", 60.0)
    submit(idle, 4)
    idle._next_batch()
    submit(idle, 1)
    idle._queue.put(None)
    assert len(idle._next_batch()) == 2


def test_a_transaction_has_a_size(idle: Writer) -> None:
    submit(idle, 20)
    assert [len(idle._next_batch()) for _ in range(3)] == [8, 8, 4]
