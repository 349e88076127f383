"""``sl.Client``: requests take effect once, also over a bad connection."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import os
import random
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import sightline as sl
from sightline.report.audit import audit
from sightline.service.client import RemoteDecision, ServiceError
from sightline.service.store import Store
from sightline.service.tokens import create_token
from tests.service.running import Service, running

OPTIONS = {"a": [1.0, 0.0], "b": [0.9, 0.3], "c": [0.0, 1.0]}


def begun(client: sl.Client) -> sl.Client:
    limits = {"reward_deadline": "9 rounds", "early_rewards": True}
    client.create("page", options=OPTIONS, noise_std=0.3, policy="IDS", **limits)
    return client


def test_the_verbs_of_a_session(service: Service, tmp_path: Path) -> None:
    client = begun(sl.Client(service.url))
    decision = client.ask("page")
    assert isinstance(decision, RemoteDecision)
    assert decision.option in OPTIONS
    client.tell(decision, 0.7)
    client.tell(decision.id, 0.7)
    with pytest.raises(sl.types.ClosedDecisionError, match="was told before"):
        client.tell(decision, 0.8)
    with pytest.raises(sl.types.UnknownDecisionError):
        client.tell("nobody", 0.8)
    two = client.ask("page", 2, available=["a", "b"])
    assert [one.option in ("a", "b") for one in two] == [True, True]
    client.give_up(two[0])
    assert client.amend(decision, 0.9, key="once")["reward"] == 0.9
    assert client.amend(decision, 0.8)["amended"] is True
    assert client.amend(decision, 0.9, key="once")["reward"] == 0.9  # what it has led to then
    client.tell(decision, 0.8)
    assert decision.probabilities is not None
    assert decision.probabilities[decision.option] == decision.probability
    sticky = client.ask("page", unit="me", activate=False)
    assert client.ask("page", unit="me") == sticky
    client.activate(sticky)
    assert client.ask("page", key="k") == client.ask("page", key="k")
    client.add("page", "d", features=[0.5, 0.5])
    client.retire("page", "d")
    assert client.status("page")["told"] == 1
    assert len(client.estimates("page")) == 4
    assert len(client.effects("page", 0.1)) == 2
    assert sticky.id in [one.id for one in client.pending("page")]
    assert [one["sequence"] for one in client.events("page", after=2)][:2] == [3, 4]
    client.ask("page", 12)
    with pytest.raises(sl.types.ExpiredDecisionError):
        client.tell(two[1], 0.5)
    client.export("page", tmp_path / "export.parquet")
    assert audit(tmp_path / "export.parquet").well
    for verb, phase in ((client.pause, "paused"), (client.resume, "running")):
        assert verb("page")["phase"] == phase
    assert client.stop("page")["phase"] == "stopped"
    with pytest.raises(ServiceError, match="is stopped") as raised:
        client.ask("page")
    assert (raised.value.status, raised.value.kind) == (409, "stopped")
    with pytest.raises(ValueError, match="give one of options"):
        client.create("empty")
    assert [one["id"] for one in client.experiments()] == ["page"]
    client.close()


def test_controls_streams_and_tokens(service: Service) -> None:
    client = sl.Client(service.url)
    stop = {"delta": 0.1, "action": "commit"}
    client.create("page", options=OPTIONS, noise_std=0.3, policy="IDS", control="a", stop=stop)
    assert client.status("page")["stop"]["action"] == "commit"
    differences = [one["difference"]["upper"] for one in client.estimates("page", delta=0.2)]
    assert differences == [None] * 3, "nothing bounds them before any reward"
    client.create(
        "new", stream={"features": ["x", "y"], "max_arms": 2}, noise_std=0.3, policy="LinUCB"
    )
    chosen = client.ask("new", options=np.eye(2))
    assert chosen.option in ("0", "1")
    client.tell(chosen, 0.5)
    secret = client.create_token("ops", "admin")
    with pytest.raises(PermissionError):
        client.tokens()
    admin = sl.Client(service.url, secret)
    assert [one["name"] for one in admin.tokens()] == ["ops"]
    with pytest.raises(ServiceError, match="already: name another"):
        admin.create_token("ops", "admin")
    other = sl.Client(service.url, admin.create_token("web", "client"))
    with pytest.raises(PermissionError, match="role admin"):
        other.tokens()
    assert admin.revoke_token("web")["revoked_at"] is not None
    with pytest.raises(PermissionError, match="valid token"):
        other.status("page")
    for one in (client, admin, other):
        one.close()


def test_tokens_of_a_client(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        token = create_token(store, "reader", "reader")
    with running(url) as service:
        with (
            sl.Client(service.url) as stranger,
            pytest.raises(PermissionError, match="a valid token is needed"),
        ):
            stranger.experiments()
        client = sl.Client(service.url, token)
        assert client.experiments() == []
        with pytest.raises(PermissionError, match="the role client or higher"):
            client.ask("page")
        assert token not in repr(client)
        client.close()


class Flaky:
    """A proxy that loses a quarter of the requests, and a quarter of the answers."""

    def __init__(self, port: int) -> None:
        self._target, self._rng = port, random.Random(3)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self.lost = 0
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            with client:
                dice = self._rng.random()
                request = _whole(client)
                if dice < 1 / 4 or not request:
                    self.lost += 1
                    continue
                with socket.create_connection(("127.0.0.1", self._target)) as service:
                    service.sendall(request)
                    answer = _whole(service)
                    if dice < 1 / 2:  # it was executed, and the response is lost
                        self.lost += 1
                        continue
                    client.sendall(answer)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


def _whole(connection: socket.socket) -> bytes:
    """Read a request or an answer with all of its body; nothing if it has ended."""
    content = b""
    while True:
        head, end, body = content.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head.lower())
        if end and len(body) >= (int(length[1]) if length else 0):
            return content
        part = connection.recv(1 << 16)
        if not part:
            return b""
        content += part


def test_lost_requests_and_lost_answers_change_nothing(service: Service) -> None:
    begun(sl.Client(service.url)).close()
    proxy = Flaky(service.port)
    client = sl.Client(proxy.url, patience=60.0)
    rewards = []
    try:
        for i in range(12):
            decision = client.ask("page")
            rewards.append(i / 16)
            client.tell(decision, rewards[-1])
    finally:
        client.close()
        proxy.close()
    assert proxy.lost > 5
    with sl.Client(service.url) as client:
        status = client.status("page")
    assert (status["round"], status["told"], status["pending"]) == (13, 12, 0)
    assert status["reward"] == sum(rewards)


def test_patience_ends(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = sl.Client(f"http://127.0.0.1:{port}", patience=0.1)
    with pytest.raises(ServiceError, match="no service listens at http://127"):
        client.experiments()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = sl.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", patience=0.1, timeout=0.1)
        with pytest.raises(ServiceError, match="does not answer"):
            client.experiments()
    for url in ("127.0.0.1:8000", "ftp://x", ""):
        with pytest.raises(ValueError, match="url must be such as"):
            sl.Client(url)


def test_an_address_without_a_service_is_said_soon() -> None:
    """It was tried for all of the patience, 30 s, and 300 s to create an experiment."""
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    client = sl.Client(f"http://127.0.0.1:{port}")
    for verb in ("list", "create"):
        began = time.monotonic()
        with pytest.raises(ServiceError, match=r"no service listens .*: start one with sightline"):
            client.experiments() if verb == "list" else client.create("x", options=["a", "b"])
        assert time.monotonic() - began < 20.0  # 2 s on an idle machine


def test_a_service_that_was_reached_may_restart(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/service.db") as service:
        client = sl.Client(service.url, patience=0.1)
        client.experiments()
    with client, pytest.raises(ServiceError, match="does not answer"):
        client.experiments()


def test_many_rewards_of_which_some_are_refused(service: Service) -> None:
    client = sl.Client(service.url)
    client.create("names", options=["a", "b", "c"], reward={"kind": "bernoulli"}, policy="IDS")
    made = client.ask("names", 4)
    told = [(made[0], True), (made[1].id, 0), ("nobody", 1), (made[2], 0.5), (made[3], 1)]
    with pytest.raises(
        sl.types.RefusedRewardsError, match="2 of 5 rewards refused, the others"
    ) as some:
        client.tell_many(told)
    kinds = {id_: type(error) for id_, error in some.value.refused.items()}
    assert kinds == {"nobody": sl.types.UnknownDecisionError, made[2].id: ValueError}
    client.tell_many({made[2].id: 1})
    status = client.status("names")
    assert (status["told"], status["pending"], status["unit"]) == (4, 0, "clicks")
    assert [one["term"] for one in client.effects("names")] == ["a", "b", "c"]
    client.close()


def test_a_client_needs_nothing_but_the_standard_library() -> None:
    code = "import sys, sightline as sl; sl.Client('http://x'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"numpy", "numba", "fastapi", "sqlalchemy", "pydantic", "uvicorn"}


FORKS = """
import os, sys
import sightline as sl

client = sl.Client(sys.argv[1])

def wrong(who):
    units = [f"{who} {i}" for i in range(3)]
    return sum(client.ask("page", unit=unit).unit != unit for unit in units)

found = 0
for again in range(12):
    found += wrong(f"parent {again}")
    waiting, begin = os.pipe()
    children = [0] * 8
    for child in range(8):
        children[child] = os.fork()
        if children[child] == 0:
            os.close(begin)
            os.read(waiting, 1)  # until all are there
            os._exit(wrong(f"{child} {again}"))
    os.close(waiting)
    os.close(begin)
    found += sum(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children)
print(found)
"""


def test_a_forked_process_has_connections_of_its_own(service: Service) -> None:
    """34 of 288 asks got the decision of another process."""
    begun(sl.Client(service.url)).close()
    done = subprocess.run(
        [sys.executable, "-c", FORKS, service.url], capture_output=True, text=True, check=True
    )
    assert done.stdout == "0\n"


def test_a_fork_asks_on_a_connection_of_its_own_and_leaves_that_of_its_parent_open() -> None:
    with scripted([ECHO] * 3) as (url, requests):
        client = sl.Client(url, patience=0.0)
        client.experiments()
        child = os.fork()
        if child == 0:
            client.experiments()
            os._exit(0)
        os.waitpid(child, 0)
        client.experiments()
        client.close()
        assert [one.connection for one in requests] == [0, 1, 0]


class Heard(NamedTuple):
    connection: int
    head: bytes


ECHO = "echo"


@contextlib.contextmanager
def scripted(answers: list[str]) -> Iterator[tuple[str, list[Heard]]]:
    """A service that answers in turn: with an echo of the request, or with this header."""
    heard: list[Heard] = []
    server = socket.create_server(("127.0.0.1", 0))
    left = iter(answers)

    def answer(connection: socket.socket, number: int) -> None:
        with connection:
            while request := _whole(connection):
                heard.append(Heard(number, request))
                found = re.search(rb"sightline-request: (\w+)", request.lower())
                script = next(left)
                said = f"Sightline-Request: {found[1].decode() if found else ''}\r\n"
                body = '{"experiments": []}'
                head = f"HTTP/1.1 200 OK\r\n{said if script == ECHO else script}"
                head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                connection.sendall((head + body).encode())

    def run() -> None:
        threads = []
        for number in itertools.count():
            try:
                connection, _ = server.accept()
            except OSError:
                break
            threads.append(threading.Thread(target=answer, args=(connection, number)))
            threads[-1].start()
        for thread in threads:
            thread.join()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.getsockname()[1]}", heard
    finally:
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
        server.close()


@pytest.mark.parametrize("other", ["Sightline-Request: 0123\r\n", ""])
def test_an_answer_to_another_request_is_not_taken(other: str) -> None:
    with scripted([ECHO, other, ECHO]) as (url, requests), sl.Client(url) as client:
        client.experiments()
        client.experiments()
        assert [one.connection for one in requests] == [0, 0, 1]
    with (
        scripted([other]) as (url, _),
        sl.Client(url, patience=0.0) as client,
        pytest.raises(ServiceError, match="does not answer this request: it must name"),
    ):
        client.experiments()


def test_a_request_that_was_interrupted_leaves_no_answer_behind(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begun(sl.Client(service.url)) as client:
        read = http.client.HTTPResponse.read

        def interrupted(*_: object) -> bytes:
            monkeypatch.setattr(http.client.HTTPResponse, "read", read)
            raise KeyboardInterrupt

        monkeypatch.setattr(http.client.HTTPResponse, "read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            client.ask("page", unit="first")
        assert client._transport._own.connection is None
        assert client.ask("page", unit="second").unit == "second"


def test_only_plain_names_of_requests_are_sent_back(service: Service) -> None:
    def echoed(value: str) -> str | None:
        answer = service("GET", "/v1/health", headers={"Sightline-Request": value})
        return answer.headers.get("sightline-request")

    assert echoed("a-1") == "a-1"
    assert echoed("a" * 65) is None
    assert echoed("a b") is None
    refused = service("GET", "/v1/nothing", headers={"Sightline-Request": "x"})
    assert (refused.status, refused.headers.get("sightline-request")) == (404, "x")
