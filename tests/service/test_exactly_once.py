"""Clients that duplicate, reorder and retry: every request takes effect once."""

from __future__ import annotations

import random
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tests.service.forked import SPECIFICATION
from tests.service.running import Answer, Service, running

PAGE = "/v1/experiments/page"
REWARDS = st.sampled_from([0.0, 0.25, 0.5])
KEYS = st.sampled_from(["k1", "k2", "k3", "k4", None])
UNITS = st.sampled_from(["u1", "u2", None])


class Sequential:
    """What a service must answer, from the definition of every verb."""

    def __init__(self) -> None:
        self.keys: dict[str, tuple[dict[str, Any], Any]] = {}
        self.units: dict[str, Any] = {}
        self.ends: dict[str, Any] = {}  # None while a decision is open
        self.phase = "running"

    def expected(self, body: dict[str, Any], key: str | None) -> tuple[int, Any]:
        """Answer to a question; None for a new decision."""
        if key in self.keys:
            before, answer = self.keys[key]
            return (200, answer) if before == body else (422, None)
        if body.get("unit") in self.units:
            return 200, self.units[body["unit"]]
        return (200, None) if self.phase == "running" else (409, None)

    def note(self, body: dict[str, Any], key: str | None, answer: Any) -> None:
        """Take note of what was answered."""
        if key is not None:
            self.keys[key] = body, answer
        if "unit" in body:
            self.units.setdefault(body["unit"], answer)
        for one in answer.get("decisions", [answer]):
            self.ends.setdefault(one["id"], None)


class Storm(RuleBasedStateMachine):
    """Requests in any order, each any number of times."""

    service: Service
    names = iter(range(10**9))

    @initialize()
    def begin(self) -> None:
        self.model = Sequential()
        self.path = f"/v1/experiments/storm-{next(self.names)}"
        assert self.service("PUT", self.path, SPECIFICATION).status == 201

    def _ask(self, body: dict[str, Any], key: str | None) -> None:
        status, known = self.model.expected(body, key)
        answer = self.service("POST", f"{self.path}/decisions", body, key)
        assert answer.status == status, answer
        if status == 200:
            if known is not None:
                assert answer.body == known
            else:
                ids = [one["id"] for one in answer.body.get("decisions", [answer.body])]
                assert not set(ids) & set(self.model.ends), "a decision was given out twice"
            self.model.note(body, key, answer.body)

    @rule(key=KEYS, unit=UNITS)
    def ask(self, key: str | None, unit: str | None) -> None:
        self._ask({} if unit is None else {"unit": unit}, key)

    @rule(key=KEYS, count=st.integers(1, 3))
    def ask_several(self, key: str | None, count: int) -> None:
        self._ask({"count": count}, key)

    @precondition(lambda self: self.model.ends)
    @rule(data=st.data(), reward=REWARDS, verb=st.sampled_from(["reward", "give-up"]))
    def close(self, data: st.DataObject, reward: float, verb: str) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.model.ends)))
        body = {"reward": reward} if verb == "reward" else None
        wanted: Any = (verb, reward if verb == "reward" else None)
        before = self.model.ends[id_]
        answer = self.service("PUT", f"/v1/decisions/{id_}/{verb}", body)
        if before is None:
            assert answer.status == 200, answer
            self.model.ends[id_] = (wanted, answer.body)
        elif before[0] == wanted:
            assert (answer.status, answer.body) == (200, before[1])
        else:
            assert answer.status == 409, answer

    @precondition(lambda self: self.model.ends)
    @rule(data=st.data(), reward=REWARDS, key=KEYS)
    def amend(self, data: st.DataObject, reward: float, key: str | None) -> None:
        id_ = data.draw(st.sampled_from(sorted(self.model.ends)))
        request = {"amend": id_, "reward": reward}
        path = f"/v1/decisions/{id_}/reward?amend=1"
        answer = self.service("PUT", path, {"reward": reward}, key)
        if key in self.model.keys:
            before, known = self.model.keys[key]
            assert answer.status == (200 if before == request else 422), answer
            assert answer.status == 422 or answer.body == known
            return
        end = self.model.ends[id_]
        if end is not None and end[0][0] == "give-up":
            assert answer.status == 409, answer
            return
        assert (answer.status, answer.body["reward"]) == (200, reward), answer
        if end is not None and end[0] == ("reward", reward):
            assert answer.body == end[1]
        else:
            assert answer.body["amended"] is (end is not None)
        self.model.ends[id_] = (("reward", reward), answer.body)
        if key is not None:
            self.model.keys[key] = request, answer.body

    @rule(verb=st.sampled_from(["pause", "resume"]))
    def change(self, verb: str) -> None:
        assert self.service("POST", f"{self.path}/{verb}").status == 200
        self.model.phase = {"pause": "paused", "resume": "running"}[verb]

    @invariant()
    def counts(self) -> None:
        if hasattr(self, "model"):
            status = self.service("GET", f"{self.path}/status").body
            ends = [end[0][0] for end in self.model.ends.values() if end is not None]
            assert status["round"] == len(self.model.ends) + 1
            assert status["told"] == ends.count("reward")
            assert status["given_up"] == ends.count("give-up")
            assert status["pending"] == len(self.model.ends) - len(ends)
            told = [end[0][1] for end in self.model.ends.values() if end and end[0][1] is not None]
            assert status["reward"] == sum(told)


def test_every_sequence_of_requests_is_as_in_the_model() -> None:
    with tempfile.TemporaryDirectory() as folder, running(f"sqlite:///{folder}/x.db") as service:
        Storm.service = service
        run_state_machine_as_test(
            Storm,
            settings=settings(
                max_examples=15,
                stateful_step_count=20,
                deadline=None,
                suppress_health_check=list(HealthCheck),
            ),
        )


def test_a_storm_of_copies_is_carried_out_once(database: str) -> None:
    """Every request is sent four times, by different threads, in any order."""
    rng = random.Random(0)
    with running(database) as service, ThreadPoolExecutor(16) as pool:
        assert service("PUT", PAGE, SPECIFICATION).status == 201
        asks = [({"count": 2} if i % 5 == 0 else {}, f"key-{i}") for i in range(40)]
        copies = asks * 4
        rng.shuffle(copies)
        answers = list(pool.map(lambda one: service("POST", f"{PAGE}/decisions", *one), copies))
        by_key: dict[str, list[Answer]] = {}
        for (_, key), answer in zip(copies, answers, strict=True):
            assert answer.status == 200, answer
            by_key.setdefault(key, []).append(answer)
        assert all(len({str(one.body) for one in same}) == 1 for same in by_key.values())
        ids = [
            one["id"]
            for same in by_key.values()
            for one in same[0].body.get("decisions", [same[0].body])
        ]
        assert len(set(ids)) == len(ids) == 48
        tells = [(id_, rng.choice([0.25, 0.5])) for id_ in ids] * 4
        rng.shuffle(tells)
        told = list(
            pool.map(
                lambda one: service("PUT", f"/v1/decisions/{one[0]}/reward", {"reward": one[1]}),
                tells,
            )
        )
        assert {answer.status for answer in told} == {200}
        status = service("GET", f"{PAGE}/status").body
    assert (status["round"], status["told"], status["pending"]) == (49, 48, 0)
    assert status["reward"] == sum(dict(tells).values())


def test_contradicting_rewards_are_told_once(database: str) -> None:
    with running(database) as service, ThreadPoolExecutor(8) as pool:
        service("PUT", PAGE, SPECIFICATION)
        id_ = service("POST", f"{PAGE}/decisions", {}).body["id"]
        barrier = threading.Barrier(8)

        def tell(reward: float) -> int:
            barrier.wait()
            return service("PUT", f"/v1/decisions/{id_}/reward", {"reward": reward}).status

        statuses = list(pool.map(tell, [i / 8 for i in range(8)]))
    assert sorted(statuses) == [200] + [409] * 7
