"""Amended rewards: applied once, durable, and equal to correct rewards from the start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from sightline.report.audit import audit
from tests.service.forked import SPECIFICATION
from tests.service.running import Answer, Service, running
from tests.service.test_replay import states
from tests.stress.actor import bits

PAGE = "/v1/experiments/page"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    with running(f"sqlite:///{tmp_path}/x.db") as found:
        assert found("PUT", PAGE, SPECIFICATION).status == 201
        yield found


def amend(service: Service, decision: str, reward: Any, key: str | None = None) -> Answer:
    return service("PUT", f"/v1/decisions/{decision}/reward?amend=1", {"reward": reward}, key)


def tell(service: Service, decision: str, reward: Any) -> Answer:
    return service("PUT", f"/v1/decisions/{decision}/reward", {"reward": reward})


def kinds(service: Service) -> list[str]:
    return [one["kind"] for one in service("GET", f"{PAGE}/events").body["events"]]


def test_the_right_reward_takes_the_place_of_another(service: Service, tmp_path: Path) -> None:
    made = [
        one["id"] for one in service("POST", f"{PAGE}/decisions", {"count": 6}).body["decisions"]
    ]
    for one in made[:5]:
        tell(service, one, 0.5)
    answer = amend(service, made[0], 0.75)
    assert (answer.status, answer.body["reward"], answer.body["amended"]) == (200, 0.75, True)
    assert tell(service, made[0], 0.5).status == 409
    assert tell(service, made[0], 0.75).body == answer.body
    assert amend(service, made[0], 0.75).body == answer.body  # without a key as well
    assert kinds(service).count("amended") == 1
    opened = amend(service, made[5], 0.25)  # nothing had been told
    assert (opened.status, opened.body["amended"], kinds(service)[-1]) == (200, False, "told")
    status = service("GET", f"{PAGE}/status").body
    assert (status["told"], status["amended"], status["reward"]) == (6, 1, 3.0)
    one = service.runtime._writer._loaded["page"]
    known = {**bits(one.session.live), "lifecycle": one.session.lifecycle, "last": one.log.last}
    assert states(service.store) == [known, known]
    (tmp_path / "x.parquet").write_bytes(service("GET", f"{PAGE}/export.parquet").body)
    found = audit(tmp_path / "x.parquet")
    assert found.well, found
    frame = pd.read_parquet(tmp_path / "x.parquet").set_index("decision_id")
    assert frame.amended[made].tolist() == [True, False, False, False, False, False]
    assert frame.reward[made].tolist() == [0.75, 0.5, 0.5, 0.5, 0.5, 0.25]


def test_a_key_makes_an_amendment_happen_once(service: Service) -> None:
    made = service("POST", f"{PAGE}/decisions", {}).body["id"]
    tell(service, made, 0.5)
    first = amend(service, made, 0.75, "first")
    assert first.status == 200
    same = amend(service, made, 0.75, "same")  # changes nothing, and is remembered
    second = amend(service, made, 1.0, "second")
    before = service("GET", f"{PAGE}/status").body
    assert amend(service, made, 0.75, "first").body == first.body
    assert amend(service, made, 0.75, "same").body == same.body
    assert amend(service, made, 1.0, "second").body == second.body
    assert service("GET", f"{PAGE}/status").body == before
    assert before["reward"] == 1.0
    refused = amend(service, made, 0.25, "first")
    assert (refused.status, refused.body["type"][22:]) == (422, "other-request")
    assert service("POST", f"{PAGE}/decisions", {}, "first").status == 422
    with service.runtime.readers.replica("page") as (follower, _):
        one = service.runtime._writer._loaded["page"]
        assert bits(follower.session.live) == bits(one.session.live)


def test_what_cannot_be_amended_is_refused_in_a_sentence(service: Service) -> None:
    gone = service("POST", f"{PAGE}/decisions", {}).body["id"]
    service("PUT", f"/v1/decisions/{gone}/give-up")
    assert amend(service, gone, 0.5).status == 409
    assert amend(service, "nobody", 0.5).status == 404
    expired = service("POST", f"{PAGE}/decisions", {}).body["id"]
    for _ in range(5):
        service("POST", f"{PAGE}/decisions", {"count": 100})
    late = amend(service, expired, 0.5)
    assert (late.status, late.body["type"][22:]) == (410, "expired-decision")
    unit = {"kind": "bounded", "low": 0, "high": 1}
    bounded = {**SPECIFICATION, "noise_std": None, "reward": unit}
    assert service("PUT", "/v1/experiments/bounded", bounded).status == 201
    made = service("POST", "/v1/experiments/bounded/decisions", {}).body["id"]
    tell(service, made, 0.5)
    refused = amend(service, made, 2.0)
    assert (refused.status, refused.body["detail"]) == (422, "reward must be from 0 to 1, got 2")
    assert amend(service, made, "much").status == 422
    wrong = service("PUT", f"/v1/decisions/{made}/reward?amend=perhaps", {"reward": 0.5})
    assert (wrong.status, wrong.headers["content-type"]) == (422, "application/problem+json")
