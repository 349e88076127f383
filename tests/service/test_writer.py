"""The writer: many requests per transaction, in fair order, all or nothing."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from sightline.jit import NotKeptError
from sightline.report import standing
from sightline.service import experiment, responses, writer
from sightline.service.client import Client
from sightline.service.errors import ApiError
from sightline.service.experiment import ExperimentWriter, ServiceSession
from sightline.service.loading import load_experiment
from sightline.service.metrics import Metrics
from sightline.service.runtime import Runtime
from sightline.service.schema import SNAPSHOTS
from sightline.service.schemas import Specification
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command, FairQueue, Writer
from tests.service.running import Service, running
from tests.stress.program import ROOT

PAGE, OTHER = "/v1/experiments/page", "/v1/experiments/other"
SMALL = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 1.0, "policy": "LinUCB"}


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Writer]:
    """One that carries out nothing."""
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        yield Writer(store, Settings(batch=8), Metrics(), lambda commands: None)


def submit(one: Writer, count: int) -> None:
    for _ in range(count):
        one.submit(Command(ExperimentWriter.describe))


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
    threading.Timer(0.05, idle.stop).start()
    assert len(idle._next_batch()) == 1
    assert idle._next_batch() == []


def test_a_transaction_has_a_size(idle: Writer) -> None:
    submit(idle, 20)
    assert [len(idle._next_batch()) for _ in range(3)] == [8, 8, 4]


def test_who_has_had_little_comes_first() -> None:
    turns: FairQueue[str] = FairQueue()

    def cost(name: str | None) -> float:
        return 0.03 if name == "dear" else 0.0

    for i in range(5):
        turns.add("dear", f"dear {i}")
    assert turns.take(9, 0.02, cost) == ["dear 0"]  # however long it takes
    turns.spend("dear", 0.03)
    turns.add("cheap", "cheap 0")
    turns.add("cheap", "cheap 1")
    assert turns.take(9, 0.02, cost) == ["cheap 0", "cheap 1"]  # which do not wait for it
    assert turns.take(9, 0.02, cost) == ["dear 1"]
    turns.put_back([("dear", "dear 1")])
    assert [turns.take(1, 0.02, cost) for _ in range(4)] == [[f"dear {i}"] for i in range(1, 5)]
    assert (len(turns), turns.take(1, 0.02, cost)) == (0, [])


def test_nobody_saves_up_turns() -> None:
    turns: FairQueue[str] = FairQueue()
    for i in range(100):
        turns.add("busy", f"busy {i}")
        turns.take(1, 1.0, lambda _: 0.01)
        turns.spend("busy", 0.01)
    for i in range(3):
        turns.add("busy", f"busy {i}")
        turns.add("new", f"new {i}")
    found = turns.take(6, 1.0, lambda _: 0.01)
    assert found in (
        ["new 0", "busy 0", "new 1", "busy 1", "new 2", "busy 2"],
        ["new 0", "new 1", "busy 0", "new 2", "busy 1", "busy 2"],
    )


def test_turns_that_nobody_waits_for_are_forgotten() -> None:
    turns: FairQueue[str] = FairQueue()
    for i in range(100):
        turns.add(f"{i}", "")
        turns.take(1, 1.0, lambda _: 0.01)
        turns.spend(f"{i}", 0.01)
    assert len(turns._used) == 1


def test_the_writer_computes_nothing_of_a_new_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decomposition of 10,000 options, or their snapshot, would keep all others waiting."""
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        runtime = Runtime(store, Settings())
        make = runtime._build("page", Specification.model_validate(SMALL))
        monkeypatch.setattr(standing, "basis_of_differences", None)
        monkeypatch.setattr(ServiceSession, "snapshot", None)
        runtime._writer._execute([command := Command(ExperimentWriter.expire, "page", make=make)])
        assert isinstance(command.answer, tuple)
        monkeypatch.undo()
        with store.reading() as connection:
            loaded = load_experiment(connection, "page", Settings(), lambda: 0.0)
            kept = connection.execute(select(SNAPSHOTS.c.content)).scalar_one()
    assert loaded is not None
    assert loaded.wanted == Specification.model_validate(SMALL)
    assert not kept.startswith(b"PK"), "it was not compressed"


def test_a_queue_of_one_experiment_delays_no_other(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page in (PAGE, OTHER):
        service("PUT", page, SMALL)
    done = []
    begun = threading.Event()

    def dear(_: ExperimentWriter) -> dict[str, Any]:
        begun.set()
        time.sleep(0.03)
        done.append("dear")
        return {}

    one = service.runtime._writer
    for _ in range(100):
        one.submit(Command(dear, "page"))
    begun.wait(10.0)
    assert service("POST", f"{OTHER}/decisions", {}).status == 200
    assert len(done) < 20


def test_a_refusal_after_writing_leaves_nothing_behind(
    database: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The answer cannot be made though the decision was: neither is there then."""
    with running(database) as service:
        for page in (PAGE, OTHER):
            service("PUT", page, SMALL)
        first = service("POST", f"{PAGE}/decisions", {}).body

        def out_of_range(seconds: float) -> str:
            raise ValueError(f"{seconds} is out of range")

        monkeypatch.setattr(responses, "timestamp", out_of_range)
        refused = service("POST", f"{PAGE}/decisions", {"count": 3}, "key")
        assert (refused.status, refused.body["type"][22:]) == (500, "defect")
        assert "is out of range" in caplog.text
        refused = service("PUT", f"/v1/decisions/{first['id']}/reward", {"reward": 1.0})
        assert refused.status == 500
        monkeypatch.undo()
        assert service("GET", f"{PAGE}/events").body["events"][-1]["decision"] == first["id"]
        assert service("GET", f"{PAGE}/status").body["round"] == 2
        made = service("POST", f"{PAGE}/decisions", {"count": 3}, "key").body["decisions"]
        assert [one["round"] for one in made] == [2, 3, 4]
        told = service("PUT", f"/v1/decisions/{first['id']}/reward", {"reward": 1.0})
        assert told.body["outcome"] == "observed"


def test_many_windows_end_in_several_transactions(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiment, "_MAX_CLOSED", 7)
    sizes: list[int] = []
    write = Writer._write

    def counted(self: Writer, connection: Any, desks: dict[str, ExperimentWriter]) -> int:
        sizes.append(sum(len(one.log.uncommitted) for one in desks.values()))
        return write(self, connection, desks)

    with running(database, sweep=0.0) as service:
        service("PUT", PAGE, {**SMALL, "reward_deadline": "1 rounds"})
        service("POST", f"{PAGE}/decisions", {"count": 50})
        monkeypatch.setattr(Writer, "_write", counted)
        made = service("POST", f"{PAGE}/decisions", {}).body
        assert made["round"] == 51
        assert sum(sizes) == 50  # those that are over, and one more
        assert max(sizes) <= 8
        status = service("GET", f"{PAGE}/status").body
        assert (status["pending"], status["expired"]) == (2, 49)


def test_what_is_not_in_memory_is_read_by_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it was dropped after a request has found it in memory."""
    service("PUT", PAGE, SMALL)
    made = service("POST", f"{PAGE}/decisions", {}).body
    one = service.runtime._writer
    one._forget("page")
    threads = []
    prepare = Writer.prepare

    def noted(self: Writer, experiment: str) -> None:
        threads.append(threading.current_thread().name)
        prepare(self, experiment)

    monkeypatch.setattr(Writer, "prepare", noted)
    one._experiments.clear()  # so that only the writer finds out which experiment it is
    told = service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 1.0})
    assert told.status == 200
    assert [name.rpartition("_")[0] for name in threads] == ["sightline-loader"]


def test_code_is_compiled_elsewhere(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Until then one experiment waits, and no other one."""
    for page in (PAGE, OTHER):
        service("PUT", page, SMALL)
    compiling, compiled = threading.Event(), threading.Event()

    def compile_in_process(wanted: Specification, everything: bool, started: Any) -> None:
        assert everything
        assert wanted.policy == "LinUCB"
        compiling.set()
        compiled.wait(10.0)

    ask = ExperimentWriter.ask

    def needs_kernel(self: ExperimentWriter, *arguments: Any) -> dict[str, Any]:
        answer = ask(self, *arguments)  # it may be needed in the middle
        if self.id == "page" and not compiled.is_set():
            raise NotKeptError
        return answer

    monkeypatch.setattr("sightline.service.runtime.compile_in_process", compile_in_process)
    monkeypatch.setattr(ExperimentWriter, "ask", needs_kernel)
    refused = service.once("POST", f"{PAGE}/decisions", {})
    assert (refused.status, refused.body["type"][22:]) == (503, "compiling")
    assert int(refused.headers["retry-after"]) >= 1
    assert compiling.wait(10.0)
    assert service.once("POST", f"{OTHER}/decisions", {}).status == 200
    assert service.once("POST", f"{PAGE}/decisions", {}).status == 503
    assert "page" not in service.runtime._writer.compiles
    compiled.set()
    assert service("POST", f"{PAGE}/decisions", {}).body["round"] == 1


def test_all_who_wait_for_code_are_told_so(tmp_path: Path) -> None:
    """Also those whose request was carried out beside one that has found it missing."""

    def needs_kernel(_: ExperimentWriter) -> dict[str, Any]:
        raise NotKeptError

    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        runtime = Runtime(store, Settings())
        writer = runtime._writer
        make = runtime._build("page", Specification.model_validate(SMALL))
        writer._execute([Command(ExperimentWriter.expire, "page", make=make)])
        verbs = (ExperimentWriter.expire, needs_kernel, ExperimentWriter.expire)
        commands = [Command(verb, "page") for verb in verbs]
        writer._execute(commands)
    answers = [command.answer for command in commands]
    assert [one.kind for one in answers if isinstance(one, ApiError)] == ["compiling"] * 3


def test_an_experiment_is_begun_when_its_code_is_compiled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []

    def compile_in_process(wanted: Specification, everything: bool, started: Any) -> None:
        assert not everything
        compiled.append(wanted)

    def needs_kernel(*_: Any) -> None:
        if not compiled:
            raise NotKeptError

    monkeypatch.setattr("sightline.service.runtime.compile_in_process", compile_in_process)
    monkeypatch.setattr("sightline.service.runtime.warm_up", needs_kernel)
    assert service("PUT", PAGE, SMALL).status == 201
    assert len(compiled) == 1


#: A service in which a decision takes a minute.
SLOW = """
import sys, time
from sightline.service.experiment import ExperimentWriter
from sightline.service.runtime import Runtime
from sightline.service.server import serve
ExperimentWriter.ask = lambda *_: time.sleep(60.0)
serve(sys.argv[1], port=int(sys.argv[2]))
"""


def test_it_ends_soon_whatever_is_under_way(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    path = os.pathsep.join([str(ROOT / "src"), *sys.path])
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, f"sqlite:///{tmp_path}/x.db", str(port)],
        env=os.environ | {"PYTHONPATH": path, "NUMBA_DISABLE_JIT": "1"},
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60.0
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        with Client(f"http://127.0.0.1:{port}") as client:
            client.create("page", **SMALL)
        asking = threading.Thread(target=_ask_in_vain, args=(port,))
        asking.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        process.wait(10.0)
        asking.join()
    finally:
        process.kill()
        process.wait()


def _ask_in_vain(port: int) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30.0)
    with contextlib.suppress(OSError, http.client.HTTPException):
        connection.request("POST", f"{PAGE}/decisions", "{}", {"Content-Type": "application/json"})
        connection.getresponse()
    connection.close()
