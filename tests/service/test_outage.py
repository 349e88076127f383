"""An unavailable database: no request waits for it, and requests succeed when it is back."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from sqlalchemy import event

from sightline.service import events
from sightline.service.errors import CircuitOpenError
from sightline.service.store import CircuitBreaker
from tests.service.databases import OWN, Server, new_database
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running
from tests.service.test_replay import states

PAGE = "/v1/experiments/page"


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_pauses_double_up_to_a_limit() -> None:
    clock = Clock()
    outage = CircuitBreaker(first=0.1, longest=1.0, clock=clock)
    pauses = []
    for _ in range(6):
        outage.failed(outage.begin(), "gone")
        pauses.append(round(outage.seconds_left, 6))
        with pytest.raises(CircuitOpenError):
            outage.begin()
        clock.now += outage.seconds_left
    assert pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]
    outage.begin()
    outage.succeeded()
    assert outage.seconds_left == 0.0
    outage.failed(outage.begin(), "gone again")
    assert outage.seconds_left == pytest.approx(0.1)


def test_one_attempt_is_made_at_a_time() -> None:
    clock = Clock()
    outage = CircuitBreaker(first=0.1, longest=2.0, attempt=10.0, clock=clock)
    early = [outage.begin() for _ in range(5)]
    for attempt in early:  # all find the same
        outage.failed(attempt, "gone")
    assert outage.seconds_left == pytest.approx(0.1)
    clock.now = 0.2
    outage.begin()
    with pytest.raises(CircuitOpenError) as refused:
        outage.begin()
    assert refused.value.seconds == pytest.approx(2.0)
    clock.now = 10.1
    with pytest.raises(CircuitOpenError):
        outage.begin()
    clock.now = 10.3  # the outcome of the first is unknown
    outage.begin()


class Visitor(threading.Thread):
    """Asks and tells under keys, and sends again what was refused."""

    def __init__(self, service: Service, name: str, over: threading.Event) -> None:
        super().__init__(daemon=True)
        self._service, self._visitor, self._over = service, name, over
        self.answers: dict[str, Any] = {}
        self.told: dict[str, float] = {}
        self.refused: list[tuple[int, str | None, float]] = []

    def run(self) -> None:
        rng = random.Random(self._visitor)
        while not self._over.is_set():
            key = f"{self._visitor}-{len(self.answers)}"
            made = self._send("POST", f"{PAGE}/decisions", {}, key)
            self.answers[key] = made
            reward = rng.random()
            self._send("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward}, None)
            self.told[made["id"]] = reward

    def _send(self, method: str, path: str, body: Any, key: str | None) -> Any:
        while True:
            began = time.monotonic()
            answer = self._service(method, path, body, key)
            if answer.status == 200:
                return answer.body
            assert answer.status == 503, answer
            if self._over.is_set():
                raise SystemExit  # of this thread: the test has failed
            took = time.monotonic() - began
            self.refused.append((answer.status, answer.headers.get("retry-after"), took))
            time.sleep(0.05)


def healthy(service: Service, well: bool, seconds: float) -> Any:
    """Wait until the check of health says so."""
    deadline = time.monotonic() + seconds
    while True:
        answer = service("GET", "/v1/health")
        if (answer.status == 200) == well:
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


@pytest.mark.skipif(OWN is not None, reason="a server of your own is not stopped")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_service_goes_on_when_its_database_is_back(how: str, postgresql: Server) -> None:
    """Refused meanwhile, at once and with a time to wait; nothing is lost, nothing done twice."""
    with new_database(postgresql) as url, running(url) as service:
        assert service("PUT", PAGE, SPECIFICATION).status == 201
        over = threading.Event()
        visitors = [Visitor(service, f"visitor-{i}", over) for i in range(3)]
        for visitor in visitors:
            visitor.start()
        try:
            attempts: list[float] = []
            for engine in (service.store._writing, service.store._reading):
                event.listen(engine, "do_connect", lambda *_: attempts.append(time.monotonic()))
            deadline = time.monotonic() + 30.0
            while not all(visitor.told for visitor in visitors):
                assert time.monotonic() < deadline, "nothing is decided"
                time.sleep(0.01)
            getattr(postgresql, how)()
            try:
                refused = healthy(service, False, 3.0)
                assert refused.status == 503
                assert refused.headers["retry-after"] in ("1", "2")
                attempts.clear()
                time.sleep(2.5)
                # after 0.1, 0.2, 0.4 seconds and so on, and then every two: of two engines
                assert 1 <= len(attempts) <= 10
                assert service("GET", f"{PAGE}/status").status == 503
            finally:
                postgresql.start()  # for the tests to come
            healthy(service, True, 10.0)
            before = [len(visitor.told) for visitor in visitors]
            deadline = time.monotonic() + 10.0
            while any(len(one.told) <= had for one, had in zip(visitors, before, strict=True)):
                assert time.monotonic() < deadline, "they were not let in again"
                time.sleep(0.01)
        finally:
            over.set()
            for visitor in visitors:
                visitor.join()
        check_log(service, visitors)


def check_log(service: Service, visitors: list[Visitor]) -> None:
    """Everything that was acknowledged is in the log, once, and nothing else is."""
    refused = [one for visitor in visitors for one in visitor.refused]
    assert {(status, after) for status, after, _ in refused} <= {(503, "1"), (503, "2")}
    assert len(refused) > 10
    assert max(took for *_, took in refused) < 2.0
    with service.store.reading() as connection:
        entries = events.entries_after(connection, "page")
    assert [entry.event.sequence for entry in entries] == list(range(1, len(entries) + 1))
    asked = [entry for entry in entries if entry.event.kind == "asked"]
    answers = {key: made for visitor in visitors for key, made in visitor.answers.items()}
    assert sorted(entry.key or "" for entry in asked) == sorted(answers)
    assert all(answers[entry.key or ""]["id"] == entry.event.decision for entry in asked)
    told = [entry.event for entry in entries if entry.event.kind == "told"]
    rewards = {made: reward for visitor in visitors for made, reward in visitor.told.items()}
    assert sorted((one.decision or "", one.reward) for one in told) == sorted(rewards.items())
    one, other = states(service.store)
    assert one == other
