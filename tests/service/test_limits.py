"""Limits on what one experiment or request costs others."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from sightline.policies.catalogue import build
from sightline.service.errors import ApiError
from sightline.service.limits import Shape, shape_of, work_of
from sightline.service.loading import create_session
from sightline.service.schemas import DecisionRequest, Specification
from sightline.service.settings import Settings
from tests.service.running import Service, running

PAGE = "/v1/experiments/page"
SMALL = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 1.0, "policy": "LinUCB"}


def names(count: int) -> list[str]:
    return [str(i) for i in range(count)]


TOO_LARGE: dict[str, dict[str, Any]] = {
    "pairs of factors": {
        "factors": {name: ["0", "1"] for name in names(60)},
        "interactions": "pairs",
    },
    "interactions": {"factors": {"a": names(99), "b": names(99)}, "interactions": [["a", "b"]]},
    "levels": {"factors": {"a": names(999)}},
    "a duel": {"duel": names(9_999)},
    "names": {"options": names(9_999)},
    "contexts": {"contexts": {name: names(100) for name in names(90)}},
    "a stream": {"stream": {"features": names(1000), "max_arms": 10_000}},
    "samples": {**SMALL, "policy": {"type": "BayesianIDS", "samples": 10**9}},
    "samples of many": {"options": names(100), "policy": {"type": "BayesianIDS", "samples": 10**6}},
    "redraws": {**SMALL, "policy": {"type": "TopTwo", "redraws": 10**6}},
    "draws": {"options": names(120), "policy": "ThompsonSampling"},
    "programs": {
        "options": {name: [1.0] * 40 for name in names(100)},
        "policy": {"type": "OSSB"},
    },
}


@pytest.mark.parametrize("body", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_is_refused_before_it_is_made(body: dict[str, Any]) -> None:
    wanted = Specification.model_validate(body)
    tracemalloc.start()
    try:
        with pytest.raises(ApiError, match=r"\d.* (at most|allows [\d,]+:)") as found:
            create_session(wanted, Settings())
        assert found.value.status == 422
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "body",
    [
        {"factors": {name: ["0", "1"] for name in names(45_000)}},
        {"factors": {"a": [None] * 200_000}},
        {"factors": {"a": names(2)}, "forbidden": [0] * 200_000},
        {"factors": {"a": names(2)}, "interactions": [0] * 200_000},
        {"options": dict.fromkeys(names(50_000))},
        {"contexts": {"x": dict.fromkeys(names(50_000))}},
        dict.fromkeys(names(50_000)),
        {"options": ["a"], "noise_std": [None] * 200_000},
        {"options": ["a"], "control": dict.fromkeys(names(50_000))},
    ],
)
def test_only_the_first_mistakes_of_a_body_are_listed(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as found:  # a list of all takes seconds, and 100 MB
        Specification.model_validate(body)
    assert found.value.error_count() <= 4001


@pytest.mark.parametrize(
    "body",
    [
        {"available": [None] * 200_000},
        {"options": [[None] * 9] * 9_999},
        {"attributes": [None] * 200_000},
    ],
)
def test_only_the_first_mistakes_of_a_question_are_listed(body: dict[str, Any]) -> None:
    with pytest.raises(ValidationError) as found:
        DecisionRequest.model_validate(body)
    assert found.value.error_count() <= 2


@pytest.mark.parametrize(
    "body",
    [
        {"factors": {"a": names(3), "b": names(4), "c": names(2)}, "interactions": "pairs"},
        {"factors": {"a": names(3), "b": names(4)}, "interactions": [["b", "a"]]},
        {"contexts": {"x": names(3), "y": names(2)}},
        {"contexts": {"x": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "y": {"a": [1.0, 1.0]}}},
        {"duel": names(5)},
        {"duel": {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [1.0, 1.0]}},
        {"stream": {"features": ["x", "y"], "max_arms": 7}},
        {"options": names(4)},
        SMALL,
    ],
)
def test_the_shape_is_known_beforehand(body: dict[str, Any]) -> None:
    wanted = Specification.model_validate(body)
    options = create_session(wanted, Settings()).options
    k, d = options.features.shape
    assert shape_of(wanted) == Shape(k, d, options.stream)


def test_a_request_makes_as_many_decisions_as_others_can_wait_for(tmp_path: Path) -> None:
    each = work_of(Shape(2, 2), build({"type": "LinUCB"})).each
    with running(f"sqlite:///{tmp_path}/x.db", most_work=10 * each) as service:
        assert service("PUT", PAGE, SMALL).status == 201
        refused = service("POST", f"{PAGE}/decisions", {"count": 11})
        assert refused.status == 422
        assert "count must be 10 at most" in refused.body["detail"]
        made = service("POST", f"{PAGE}/decisions", {"count": 6})
        assert (made.status, len(made.body["decisions"])) == (200, 6)
        # the next batch begins with those that are open
        refused = service("POST", f"{PAGE}/decisions", {"count": 6})
        assert "count must be 4 at most" in refused.body["detail"]
        assert service("GET", f"{PAGE}/status").body["round"] == 7


def test_samples_take_work_however_few_options_there_are() -> None:
    """A decision among 4 options with 3 features took 16 ns for each of 10,000 samples."""
    few, many = (
        work_of(Shape(4, 3), build({"type": "BayesianIDS", "samples": samples})).each
        for samples in (1_000, 10_000)
    )
    assert many - few >= 9_000 * 16


def test_options_cannot_be_added_beyond_the_limits(tmp_path: Path) -> None:
    each = work_of(Shape(3, 2), build({"type": "LinUCB"})).each
    with running(f"sqlite:///{tmp_path}/x.db", most_work=each) as service:
        service("PUT", PAGE, SMALL)
        added = [
            service("POST", f"{PAGE}/options", {"name": name, "features": [1.0, 1.0]})
            for name in ("c", "d")
        ]
        assert [one.status for one in added] == [200, 422]
        assert f"this service allows {each:,}" in added[1].body["detail"]


def test_decisions_without_rewards_are_bounded(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", most_open=5) as service:
        service("PUT", PAGE, SMALL)
        made = service("POST", f"{PAGE}/decisions", {"count": 5}).body["decisions"]
        refused = service("POST", f"{PAGE}/decisions", {})
        assert (refused.status, refused.body["type"][22:]) == (429, "too-many-open")
        assert "5 decisions" in refused.body["detail"]
        assert "retry-after" in refused.headers
        service("PUT", f"/v1/decisions/{made[0]['id']}/reward", {"reward": 1.0})
        service("PUT", f"/v1/decisions/{made[1]['id']}/give-up")
        assert service("POST", f"{PAGE}/decisions", {"count": 3}).status == 429
        assert service("POST", f"{PAGE}/decisions", {"count": 2}).status == 200


def test_features_of_open_decisions_count(tmp_path: Path) -> None:
    body = {"stream": {"features": ["x"] * 1, "max_arms": 2}, "noise_std": 1.0, "policy": "LinUCB"}
    with running(f"sqlite:///{tmp_path}/x.db", experiment_memory=20_000) as service:
        assert service("PUT", PAGE, body).status == 201
        statuses = [
            service("POST", f"{PAGE}/decisions", {"options": [[1.0]]}).status for _ in range(40)
        ]
        assert statuses == [200] * 31 + [429] * 9


def test_attributes_of_open_decisions_count(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", experiment_memory=60_000) as service:
        assert service("PUT", PAGE, SMALL).status == 201
        body = {"attributes": {f"x{i}": i for i in range(20)}}
        statuses = [service("POST", f"{PAGE}/decisions", body).status for _ in range(20)]
        assert statuses == [200] * 11 + [429] * 9  # 600 + 1500 + 20 * 150 bytes each


def test_memory_is_shared_by_all_experiments(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", memory=5_000) as service:
        for name in ("a", "b", "c"):
            service("PUT", f"/v1/experiments/{name}", SMALL)
            service("GET", f"/v1/experiments/{name}/status")
        assert service.runtime._writer.loaded() == ["c"]
        assert list(service.runtime.readers._replicas) == ["c"]
        for name in ("a", "b", "c"):  # and all can be used
            made = service("POST", f"/v1/experiments/{name}/decisions", {})
            assert (made.status, made.body["round"]) == (200, 1)


def test_every_decision_of_a_batch_counts_for_the_rate(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", rate=10.0, burst=2.0) as service:
        service("PUT", PAGE, SMALL)
        assert service("POST", f"{PAGE}/decisions", {"count": 50}).status == 200
        assert service("GET", "/v1/experiments").status == 429


def test_experiments_are_begun_a_few_at_a_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.service.runtime._MAX_CREATIONS", 0)
    refused = service("PUT", PAGE, SMALL)
    assert (refused.status, refused.headers["retry-after"]) == (503, "2")
    monkeypatch.undo()
    assert service("PUT", PAGE, SMALL).status == 201
