"""Attributes of decisions over HTTP: recorded, returned, exported, and never used to decide."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sightline as sl
from sightline.report.audit import audit
from sightline.service import events
from tests.marks import without_compilation
from tests.service.running import running

pytestmark = without_compilation

PAGE = "/v1/experiments/page"
DECIDE = f"{PAGE}/decisions"
SPECIFICATION: dict[str, Any] = {
    "options": {"a": [1.0, 0.0], "b": [0.9, 0.3], "c": [0.0, 1.0]},
    "policy": {"type": "EpsilonGreedy", "epsilon": 0.5},
    "noise_std": 0.3,
    "seed": 1,
}
GERMAN = {"country": "DE", "visits": 3, "vip": True, "spent": 0.5}


def test_a_decision_keeps_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In repeated responses, lists, events, exports, and after a restart."""
    monkeypatch.setattr(events, "PAGE_SIZE", 2)  # their columns are known before the first page
    database = f"sqlite:///{tmp_path}/x.db"
    with running(database) as service:
        service("PUT", PAGE, SPECIFICATION)
        plain = service("POST", DECIDE, {}).body
        assert plain["attributes"] == {}
        made = service("POST", DECIDE, {"unit": "u", "attributes": GERMAN}, "k").body
        assert made["attributes"] == GERMAN
        again = service("POST", DECIDE, {"unit": "u", "attributes": GERMAN}, "k")
        assert (again.status, again.body) == (200, made)
        other = service("POST", DECIDE, {"unit": "u", "attributes": {"country": "FR"}}, "k")
        assert other.status == 422
        assert other.body["type"].endswith("other-request")
        # the unit has its decision, as with another context
        assert service("POST", DECIDE, {"unit": "u", "attributes": {"new": 1}}).body == made
        both = [{"country": "FR"}, {"visits": "many"}]
        batch = service("POST", DECIDE, {"count": 2, "attributes": both}).body["decisions"]
        assert [one["attributes"] for one in batch] == both
        same = service("POST", DECIDE, {"count": 2, "attributes": {"vip": False}}).body["decisions"]
        assert [one["attributes"] for one in same] == [{"vip": False}] * 2
        service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
    with running(database) as service:
        pending = service("GET", f"{PAGE}/pending").body["decisions"]
        assert [one["attributes"] for one in pending] == [{}, *both, {"vip": False}, {"vip": False}]
        log = service("GET", f"{PAGE}/events").body["events"]
        assert [one.get("attributes") for one in log if one["kind"] == "asked"][:2] == [
            None,
            GERMAN,
        ]
        path = tmp_path / "x.parquet"
        path.write_bytes(service("GET", f"{PAGE}/export.parquet").body)
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    assert frame["attribute:country"].fillna("-").tolist() == ["-", "DE", "FR", "-", "-", "-"]
    assert frame["attribute:visits"].dropna().tolist() == ["3", "many"]
    assert frame["attribute:vip"].dropna().tolist() == [True, False, False]
    assert "attribute:new" not in frame
    assert audit(path).well


def test_they_change_no_decision(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        found: list[list[Any]] = []
        for name, attributes in (("plain", None), ("recorded", GERMAN)):
            path = f"/v1/experiments/{name}"
            service("PUT", path, SPECIFICATION)
            found.append([])
            for i in range(20):
                made = service("POST", f"{path}/decisions", {"attributes": attributes}).body
                service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": i % 3})
                found[-1].append([made[x] for x in ("arm", "probability", "probabilities")])
        assert found[0] == found[1]
        assert len({one[0] for one in found[0]}) > 1


def test_the_client_sends_them(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service, sl.Client(service.url) as client:
        client.create("page", **SPECIFICATION)
        assert client.ask("page", attributes=GERMAN).attributes == GERMAN
        two = client.ask("page", 2, attributes=iter([{}, GERMAN]))
        assert [one.attributes for one in two] == [{}, GERMAN]
        assert [one.attributes for one in client.pending("page")] == [GERMAN, {}, GERMAN]


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"attributes": 5}, "body.attributes: "),
    ({"attributes": {"x": [1]}}, "body.attributes.x"),
    ({"attributes": {"x": None}}, "body.attributes.x"),
    ({"attributes": [{"x": 1}]}, "attributes must be a mapping"),
    ({"count": 2, "attributes": [{"x": 1}]}, "attributes must be 2 mappings"),
    ({"attributes": {f"x{i}": 1 for i in range(21)}}, "attributes must be at most 20, got 21"),
    ({"attributes": {"x": "y" * 1000}}, "attributes must take at most 1000 bytes"),
    ({"attributes": {"x": 2**63}}, "attribute 'x' must be"),
    ({"attributes": {"x": "\ud800"}}, "attribute"),
]


def test_others_are_refused_and_nothing_happens(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", PAGE, SPECIFICATION)
        for body, message in REFUSED:
            answer = service("POST", DECIDE, body)
            assert (answer.status, message in answer.body["detail"]) == (422, True), answer.body
        assert service("GET", f"{PAGE}/status").body["round"] == 1
