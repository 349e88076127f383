"""The HTTP API, on both databases."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.report.audit import audit
from tests.service.forked import SPECIFICATION
from tests.service.running import Answer, Service, running

PAGE = "/v1/experiments/page"


class Own(Service):
    """A service that many tests use, in which the page of each is an experiment of its own."""

    def __init__(self, service: Service, name: str) -> None:
        super().__init__(service.app, service.store, service.server)
        self._path = f"/v1/experiments/{name}"

    def __call__(self, method: str, path: str, *more: Any, **named: Any) -> Answer:
        """Send one request."""
        return super().__call__(method, path.replace(PAGE, self._path), *more, **named)


@pytest.fixture(scope="module")
def shared(shared_database: str) -> Iterator[Service]:
    with running(shared_database) as found:
        yield found


@pytest.fixture
def service(shared: Service, request: pytest.FixtureRequest) -> Service:
    found = Own(shared, request.function.__name__)
    assert found("PUT", PAGE, SPECIFICATION).status == 201
    return found


def ask(service: Service, body: Any = None, key: str | None = None) -> Any:
    answer = service("POST", f"{PAGE}/decisions", {} if body is None else body, key)
    assert answer.status == 200, answer
    return answer.body


def tell(service: Service, decision: str, reward: Any) -> Any:
    return service("PUT", f"/v1/decisions/{decision}/reward", {"reward": reward})


def test_an_experiment_is_begun_once(database: str) -> None:
    with running(database) as service:
        assert service("PUT", PAGE, SPECIFICATION).status == 201
        assert service("PUT", PAGE, SPECIFICATION).status == 200
        refused = service("PUT", PAGE, {**SPECIFICATION, "seed": 2})
        listed = service("GET", "/v1/experiments").body["experiments"]
    assert (refused.status, refused.headers["content-type"]) == (409, "application/problem+json")
    assert refused.body["type"] == "urn:sightline:problem:other-experiment"
    assert [one["id"] for one in listed] == ["page"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"options": None}, "give one of options, factors, contexts, duel, stream, got none"),
        ({"factors": {"a": ["x", "y"]}}, "got options and factors"),
        ({"policy": "Nothing"}, "type must be one of"),
        ({"policy": {"type": "IDS", "samples": 3}}, "field of IDS must be one of"),
        ({"policy": {"type": "LogDet"}}, "policy must be the name of a policy, got LogDet"),
        ({"noise_std": -1.0}, "noise_std must be"),
        ({"noise_std": "x"}, "noise_std"),
        ({"reward_deadline": "soon"}, "reward_window must be seconds"),
        ({"reward_deadline": 1e12}, "reward_window must be at most 1e+10, got 1000000000000.0"),
        ({"reward_deadline": -1.0}, "reward_window must be finite and > 0, got -1.0"),
        ({"reward_deadline": f"{400 * '9'} rounds"}, "reward_window must be at most 10**15"),
        ({"min_probability": 0.9}, "min_probability"),
        ({"reward": {"kind": "bernoulli"}}, "give reward or noise_std, not both"),
        ({"interactions": "pairs"}, "interactions and forbidden are for factors only"),
        ({"unknown": 1}, "Extra inputs are not permitted"),
        ({"options": {"a": [1.0], "b": [1.0, 2.0]}}, "equally many features"),
        ({"options": {"a\n": [1.0], "b": [1.0]}}, "printable text"),
    ],
    ids=str,
)
def test_what_cannot_be_begun_is_refused_in_a_sentence(
    change: dict[str, Any], said: str, nothing_begun: Service
) -> None:
    refused = nothing_begun("PUT", "/v1/experiments/other", SPECIFICATION | change)
    assert refused.status == 422
    assert said in refused.body["detail"]


def test_a_key_and_a_unit_get_the_same_answer(service: Service) -> None:
    first = ask(service, {}, "key")
    assert ask(service, {}, "key") == first
    assert ask(service, {}) != first
    refused = service("POST", f"{PAGE}/decisions", {"count": 2}, "key")
    assert (refused.status, refused.body["type"][22:]) == (422, "other-request")
    sticky = ask(service, {"unit": "visitor"})
    assert ask(service, {"unit": "visitor", "available": ["a"]}) == sticky
    assert ask(service, {"unit": "visitor"}, "another") == sticky
    assert ask(service, {"unit": "visitor"}, "another") == sticky
    assert service("POST", f"{PAGE}/decisions", {"unit": "else"}, "another").status == 422
    for unit in ("\x00", "a\x00b", "\ud800", "a\nb", "", "x" * 201):
        assert service("POST", f"{PAGE}/decisions", {"unit": unit}).status == 422
    many = ask(service, {"count": 3}, "many")
    assert len(many["decisions"]) == 3
    assert ask(service, {"count": 3}, "many") == many
    assert service("GET", f"{PAGE}/status").body["round"] == 7


def test_rewards_are_told_once(service: Service) -> None:
    made = ask(service)
    told = tell(service, made["id"], 0.5)
    assert (told.status, told.body["reward"], told.body["outcome"]) == (200, 0.5, "observed")
    assert tell(service, made["id"], 0.5).body == told.body
    assert tell(service, made["id"], 0.25).status == 409
    assert tell(service, "nobody", 0.5).status == 404
    assert tell(service, made["id"], "large").status == 422
    assert service("PUT", f"/v1/decisions/{made['id']}/give-up").status == 409
    gone = ask(service)["id"]
    missing = service("PUT", f"/v1/decisions/{gone}/give-up")
    assert (missing.status, missing.body["outcome"]) == (200, "given up")
    assert service("PUT", f"/v1/decisions/{gone}/give-up").body == missing.body
    assert tell(service, gone, 0.5).status == 409
    status = service("GET", f"{PAGE}/status").body
    assert (status["told"], status["given_up"], status["pending"]) == (1, 1, 0)


def test_late_rewards_are_refused_and_counted_once(service: Service) -> None:
    first = ask(service)["id"]
    for _ in range(5):
        service("POST", f"{PAGE}/decisions", {"count": 100})
    for _ in range(3):
        late = tell(service, first, 0.5)
        assert (late.status, late.body["type"][22:]) == (410, "expired-decision")
    status = service("GET", f"{PAGE}/status").body
    assert (status["late"], status["told"]) == (1, 0)


def test_nothing_is_learned_from_what_was_never_used(service: Service) -> None:
    spec = {**SPECIFICATION, "reward_deadline": "2 rounds", "on_timeout": 0.0}
    spec["early_rewards"] = False
    assert service("PUT", "/v1/experiments/short", spec).status == 201

    def made(activate: bool) -> str:
        body = {"activate": activate}
        return str(service("POST", "/v1/experiments/short/decisions", body).body["id"])

    used, unused, later = made(True), made(False), made(False)
    assert service("PUT", f"/v1/decisions/{later}/activation").body["activated"] is True
    assert service("PUT", f"/v1/decisions/{later}/activation").status == 200
    for _ in range(3):
        made(True)
    status = service("GET", "/v1/experiments/short/status").body
    assert (status["expired"], status["given_up"], status["inactive"]) == (2, 1, 0)
    assert service("PUT", f"/v1/decisions/{unused}/activation").status == 410
    ends = service("GET", "/v1/experiments/short/events").body["events"]
    closed = {
        one["decision"]: one["kind"]
        for one in ends
        if one["kind"] != "asked" and one.get("decision")
    }
    assert (closed[used], closed[unused], closed[later]) == ("expired", "given up", "expired")


def test_a_decision_whose_window_ends_with_its_activation_is_closed(tmp_path: Path) -> None:
    spec = {**SPECIFICATION, "reward_deadline": 0.2, "early_rewards": False}
    with running(f"sqlite:///{tmp_path}/x.db", sweep=0.0) as service:
        assert service("PUT", PAGE, spec).status == 201
        made = service("POST", f"{PAGE}/decisions", {"activate": False}).body["id"]
        time.sleep(0.3)
        for _ in range(2):
            assert service("PUT", f"/v1/decisions/{made}/activation").status == 410
        status = service("GET", f"{PAGE}/status").body
        assert (status["given_up"], status["inactive"]) == (1, 0)


def test_a_reward_that_cannot_be_learned_from_ends_with_its_window(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(state: Any, name: str = "state") -> None:
        if name == "state" and not state.estimate.arms.sums.max() < 1e50:
            raise ValueError("state.theta must be finite")

    monkeypatch.setattr("sightline.sessions.state.check_consistency", check)
    spec = {**SPECIFICATION, "policy": {"type": "LinUCB"}, "noise_std": 1.0}
    spec |= {"reward_deadline": "3 rounds", "early_rewards": False}
    assert service("PUT", "/v1/experiments/large", spec).status == 201
    ids = [service("POST", "/v1/experiments/large/decisions", {}).body["id"] for _ in range(3)]
    for id_, reward in zip(ids, (0.5, 0.7, 1e60), strict=True):
        assert service("PUT", f"/v1/decisions/{id_}/reward", {"reward": reward}).status == 200
    for _ in range(4):
        assert service("POST", "/v1/experiments/large/decisions", {}).status == 200
    status = service("GET", "/v1/experiments/large/status").body
    assert (status["told"], status["given_up"]) == (2, 1)


def test_options_come_and_go(service: Service) -> None:
    new = {"name": "d", "features": [0.5, 0.9]}
    added = service("POST", f"{PAGE}/options", new)
    assert (added.status, added.body["options"]) == (200, ["a", "b", "c", "d"])
    assert service("POST", f"{PAGE}/options", new).body == added.body
    assert service("POST", f"{PAGE}/options", {**new, "features": [1.0, 1.0]}).status == 409
    version = added.body["model_version"]
    assert ask(service)["model_version"] == version
    retired = service("POST", f"{PAGE}/options/a:retire")
    assert retired.body["model_version"] == version + 2
    assert service("POST", f"{PAGE}/options/a:retire").body == retired.body
    assert service("POST", f"{PAGE}/options/z:retire").status == 404
    assert all(ask(service)["option"] != "a" for _ in range(20))
    refused = service("POST", f"{PAGE}/decisions", {"available": ["a"]})
    assert refused.status == 422


def test_pause_resume_and_stop(service: Service) -> None:
    made = ask(service)["id"]
    for verb, phase in (("pause", "paused"), ("pause", "paused"), ("stop", "stopped")):
        assert service("POST", f"{PAGE}/{verb}").body["phase"] == phase
        refused = service("POST", f"{PAGE}/decisions", {})
        assert (refused.status, refused.body["type"][22:]) == (409, phase)
    assert service("POST", f"{PAGE}/resume").status == 409
    assert tell(service, made, 0.5).status == 200
    assert service("GET", f"{PAGE}/status").body["phase"] == "stopped"


def test_what_pages_need(service: Service) -> None:
    for i in range(30):
        tell(service, ask(service, {"unit": f"u{i}"})["id"], i / 30)
    waiting = ask(service)
    status = service("GET", f"{PAGE}/status").body
    assert status["next"]["text"]
    assert status["evidence"] >= 0.0 < status["threshold"]
    history = service("GET", f"{PAGE}/history").body
    last = history["points"][-1]
    assert (last["round"], last["told"], history["options"]) == (31, 30, ["a", "b", "c"])
    assert last["reward"] == pytest.approx(14.5)
    assert last["fixed_split"] is not None
    estimates = service("GET", f"{PAGE}/estimates").body["estimates"]
    assert sum(one["asked"] for one in estimates) == 31
    effects = service("GET", f"{PAGE}/effects?delta=0.1").body["effects"]
    assert [one["term"] for one in effects] == ["x0", "x1"]
    pending = service("GET", f"{PAGE}/pending").body
    assert (pending["count"], pending["decisions"]) == (1, [waiting])
    described = service("GET", PAGE).body
    assert described["specification"]["noise_std"] == 0.3
    assert b"sightline_events_total" in service("GET", "/metrics").body
    assert service("GET", "/v1/health").body == {"status": "ok"}


def test_events_have_a_cursor(service: Service) -> None:
    for _ in range(5):
        ask(service)
    found, after = [], 0
    while page := service("GET", f"{PAGE}/events?after={after}&limit=2").body["events"]:
        found += page
        after = page[-1]["sequence"]
    assert [one["sequence"] for one in found] == [1, 2, 3, 4, 5, 6]
    assert service("GET", "/v1/experiments/none/events").status == 404


def test_an_export_can_be_audited(service: Service, tmp_path: Path) -> None:
    for i in range(20):
        made = ask(service, {"available": ["a", "c"]} if i % 3 == 0 else {"count": 2})
        for one in made.get("decisions", [made]):
            tell(service, one["id"], 0.1 * i)
    service("POST", f"{PAGE}/options", {"name": "d", "features": [0.5, 0.9]})
    ask(service, {"unit": "me", "activate": False})
    path = tmp_path / "export.parquet"
    path.write_bytes(service("GET", f"{PAGE}/export.parquet").body)
    found = audit(path)
    assert found.well, found
    assert found.decisions == 7 + 2 * 13 + 1


def test_clicks(service: Service, tmp_path: Path) -> None:
    """Bernoulli rewards; every view responds."""
    spec = {"options": SPECIFICATION["options"], "reward": {"kind": "bernoulli"}, "policy": "IDS"}
    assert service("PUT", "/v1/experiments/clicks", spec).status == 201
    path = "/v1/experiments/clicks"
    for i in range(12):
        made = service("POST", f"{path}/decisions", {}).body["id"]
        assert tell(service, made, 0.5).status == 422
        assert tell(service, made, float(i % 3 == 0)).status == 200
    for view in ("status", "estimates", "effects", "history", "pending", "events"):
        assert service("GET", f"{path}/{view}").status == 200, view
    (tmp_path / "x.parquet").write_bytes(service("GET", f"{path}/export.parquet").body)
    assert audit(tmp_path / "x.parquet").well
    for reward in ({"kind": "poisson", "std": 1.0}, {"kind": "bernoulli", "low": 0.0}):
        refused = service("PUT", "/v1/experiments/no", {**spec, "reward": reward})
        assert "reward has no" in refused.body["detail"]


def test_items_of_a_duel_count_in_all_their_pairs(tmp_path: Path) -> None:
    """Those of a naive count, and not those of items that were shown alone."""
    path = "/v1/experiments/duel"
    items = {"A": [1.0, 0.0], "B": [0.0, 1.0], "C": [0.6, 0.6]}
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", path, {"duel": items, "policy": "IDS", "seed": 1, "control": "B"})
        asked, told, sums = (dict.fromkeys(items, 0) for _ in range(3))
        for i in range(30):
            made = service("POST", f"{path}/decisions", {}).body
            first, second = made["pair"]
            winner = sorted(made["pair"])[i % 3 == 0]
            for name in {first, second}:
                asked[name] += 1
                told[name] += i < 29
            if i < 29:
                assert tell(service, made["id"], winner).status == 200
                outcome = 0 if first == second else 1 if winner == first else -1
                sums[first] += outcome
                sums[second] -= outcome
        found = service("GET", f"{path}/estimates").body["estimates"]
        assert {one["option"]: one["asked"] for one in found} == asked
        assert {one["option"]: one["told"] for one in found} == told
        assert min(told.values()) > 0
        means = {one["option"]: one["mean_outcome"] for one in found}
        assert means == {name: sums[name] / told[name] for name in items}
        zero = {"estimate": 0.0, "lower": 0.0, "upper": 0.0}
        assert [one["difference"] == zero for one in found] == [False, True, False]
        page = service("GET", "/experiments/duel").body.decode()
        assert f'data-name="Decisions">{asked["A"]}</td>' in page
        assert "Mean outcome" in page


def test_options_that_come_with_the_question(tmp_path: Path) -> None:
    stream = {"features": ["price", "size"], "max_arms": 3}
    spec = {"stream": stream, "noise_std": 0.3, "seed": 1, "policy": "LinUCB"}
    path = "/v1/experiments/stream"
    rows = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        assert service("PUT", path, spec).status == 201
        for i in range(6):
            question = {"options": rows[: 2 + i % 2]}
            made = service("POST", f"{path}/decisions", question, f"key-{i}").body
            assert made["option"] == str(made["arm"])
            assert set(made["probabilities"]) <= {"0", "1", "2"}
            assert service("POST", f"{path}/decisions", question, f"key-{i}").body == made
            assert tell(service, made["id"], 0.5).status == 200
        other = service("POST", f"{path}/decisions", {"options": rows}, "key-0")
        assert (other.status, other.body["type"][22:]) == (422, "other-request")
        for wrong in (None, [[1.0]], rows * 2, []):
            assert service("POST", f"{path}/decisions", {"options": wrong}).status == 422
        many = service("POST", f"{path}/decisions", {"options": rows, "count": 2})
        assert "count must be left out" in many.body["detail"]
        assert service("POST", f"{PAGE}/decisions", {"options": rows}).status == 404
        for view in ("status", "estimates", "effects", "history", "pending", "events"):
            assert service("GET", f"{path}/{view}").status == 200, view
        effects = service("GET", f"{path}/effects").body["effects"]
        assert [one["term"] for one in effects] == ["price", "size"]
        status = service("GET", f"{path}/status").body
        assert (status["regret_spent"], status["bound"]) == (None, None)
        assert "new in every round" in status["bound_reason"]
        assert service("GET", "/experiments/stream").status == 200
        (tmp_path / "x.parquet").write_bytes(service("GET", f"{path}/export.parquet").body)
        found = audit(tmp_path / "x.parquet")
        assert found.well, found
        assert service("PUT", PAGE, SPECIFICATION).status == 201
        refused = service("POST", f"{PAGE}/decisions", {"options": rows})
        assert refused.status == 422


def test_contexts_and_duels(service: Service) -> None:
    contexts = {"m": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "d": {"x": [1.0, 0.5], "y": [0.5, 1.0]}}
    spec = {"contexts": contexts, "reward": {"kind": "bounded", "low": 0, "high": 1}}
    policy = {"policy": {"type": "LinUCB"}}
    assert service("PUT", "/v1/experiments/c", spec | policy).status == 201
    path = "/v1/experiments/c/decisions"
    made = service("POST", path, {"context": "d"}).body
    assert made["context"] == "d"
    assert service("POST", path, {}).status == 422
    assert tell(service, made["id"], 1.5).status == 422
    assert tell(service, made["id"], 1.0).status == 200
    items = {"duel": {"A": [1.0, 0.0], "B": [0.0, 1.0]}} | policy
    assert service("PUT", "/v1/experiments/d", items).status == 201
    pair = service("POST", "/v1/experiments/d/decisions", {}).body
    assert tell(service, pair["id"], pair["pair"][1]).status == 200
    assert service("GET", "/v1/experiments/c/status").status == 200
    assert service("GET", "/v1/experiments/d/estimates").status == 200


def test_the_type_of_the_content_is_named_if_it_is_wrong(service: Service) -> None:
    """The message names the content type, not the text that looks like a dictionary."""
    body = b'{"count": 1}'
    for sent in ("", "text/plain", "application/x-www-form-urlencoded"):
        refused = service("POST", f"{PAGE}/decisions", body, headers={"Content-Type": sent})
        got = f"'{sent}'" if sent else "none"
        assert refused.status == 422
        assert refused.body["detail"] == f"Content-Type must be application/json, got {got}"


def test_options_by_name_alone(service: Service) -> None:
    ways: dict[str, Any] = {
        "options": ["a", "b"],
        "duel": ["a", "b"],
        "contexts": {"m": ["a", "b"], "d": ["b", "c"]},
    }
    for name, given in ways.items():
        body = {name: given, "policy": "LinUCB"}
        made = service("PUT", f"/v1/experiments/by-name-{name}", body)
        assert made.status == 201, made
    path = "/v1/experiments/by-name-wrong"
    mistakes: list[tuple[Any, str]] = [
        ({"options": ["a", 3]}, "body.options.1: Input should be a valid string, got 3"),
        ({"options": {"a": "x"}}, "body.options.a: Input should be a valid list, got 'x'"),
        ({"options": ["a", "a"]}, "names must differ, got 'a' twice"),
        ({"options": []}, "body.options: List should have at least 1 item"),
    ]
    for wrong, said in mistakes:
        refused = service("PUT", path, wrong)
        assert refused.status == 422
        assert said in refused.body["detail"]


def test_truth_values_are_rewards(service: Service) -> None:
    made = ask(service)
    assert tell(service, made["id"], True).body["reward"] == 1.0
