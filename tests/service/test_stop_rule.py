"""Experiments with a stop rule report that they are settled, or commit."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from sightline.report.audit import audit
from tests.service.running import Service, running
from tests.service.test_replay import states
from tests.stress.actor import bits

PAGE = "/v1/experiments/page"
OPTIONS = {"a": [1.0, 0.0], "b": [0.0, 1.0]}


def begin(service: Service, **body: Any) -> None:
    whole = {"options": OPTIONS, "noise_std": 0.1, "policy": "IDS", "seed": 1, **body}
    made = service("PUT", PAGE, whole)
    assert made.status == 201, made


def play(service: Service, rounds: int, mean: float = 0.8, **question: Any) -> list[Any]:
    """Decide, and tell rewards: the last option is the best."""
    draws, all_ = random.Random(1), []
    for _ in range(rounds):
        made = service("POST", f"{PAGE}/decisions", question).body
        all_.append(made)
        reward = mean * made["arm"] + draws.gauss(0.0, 0.1)
        service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward})
    return all_


def kinds(service: Service) -> list[str]:
    return [one["kind"] for one in service("GET", f"{PAGE}/events").body["events"]]


def test_notify_says_so_once(service: Service) -> None:
    begin(service, stop={"delta": 0.05}, noise_std=0.25)
    play(service, 2)
    before = service("GET", f"{PAGE}/status").body["stop"]
    assert (before["settled"], before["best"], before["action"]) == (False, None, "notify")
    assert before["evidence"] < before["threshold"]
    play(service, 30)
    stop = service("GET", f"{PAGE}/status").body["stop"]
    assert (stop["settled"], stop["best"], stop["delta"]) == (True, "b", 0.05)
    assert stop["evidence"] >= stop["threshold"]
    assert stop["settled_at"] is not None
    assert kinds(service).count("settled") == 1
    page = service("GET", "/experiments/page").body.decode()
    assert "<bdi>b</bdi> is best. That is settled at level 0.05." in page
    assert '<span class="state settled">settled</span>' in page


def test_commit_plays_the_winner_for_ever(service: Service, tmp_path: Path) -> None:
    begin(service, stop={"delta": 0.01, "action": "commit"}, min_probability=0.2)
    play(service, 12)
    assert kinds(service).count("committed") == 1
    later = play(service, 6, 0.0)  # though it is not the best any more
    assert {one["option"] for one in later} == {"b"}
    assert {one["probability"] for one in later} == {1.0}
    assert not any(one["exploring"] for one in later)
    assert later[0]["probabilities"] == {"b": 1.0}
    batch = service("POST", f"{PAGE}/decisions", {"count": 3}).body["decisions"]
    assert {one["option"] for one in batch} == {"b"}
    other = service("POST", f"{PAGE}/decisions", {"available": ["a"]}).body
    assert other["option"] == "a"
    status = service("GET", f"{PAGE}/status").body
    assert status["next"]["text"] == "B is chosen from now on: the experiment is settled."
    assert (status["next_exploration"], status["stop"]["best"]) == (None, "b")
    one = service.runtime._writer._loaded["page"]
    known = {**bits(one.session.live), "lifecycle": one.session.lifecycle, "last": one.log.last}
    assert states(service.store) == [known, known]
    (tmp_path / "x.parquet").write_bytes(service("GET", f"{PAGE}/export.parquet").body)
    found = audit(tmp_path / "x.parquet")
    assert found.well, found


def test_a_restart_stays_committed_and_other_options_open_the_question(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with running(url) as service:
        begin(service, stop={"action": "commit"})
        play(service, 8)
        assert service("GET", f"{PAGE}/status").body["stop"]["settled"]
    with running(url) as service:
        assert play(service, 1)[0]["exploring"] is False
        service("POST", f"{PAGE}/options", {"name": "c", "features": [1.0, 1.0]})
        assert service("GET", f"{PAGE}/status").body["stop"]["settled"] is False
        again = play(service, 12)
        assert "c" in {one["option"] for one in again}
        assert kinds(service).count("committed") == 2
        told = next(
            one["decision"]
            for one in service("GET", f"{PAGE}/events").body["events"]
            if one["kind"] == "told"
        )
        service("PUT", f"/v1/decisions/{told}/reward?amend=1", {"reward": 1000.0})
        assert service("GET", f"{PAGE}/status").body["stop"]["best"] != "c"


def test_contexts_are_settled_together(service: Service) -> None:
    contexts = {"m": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "d": {"x": [1.0, 1.0], "y": [0.0, 2.0]}}
    body = {"options": None, "contexts": contexts, "policy": "LinUCB"}
    begin(service, **body, stop={"action": "commit"}, control="x")
    for _ in range(12):
        for context in ("m", "d"):
            made = service("POST", f"{PAGE}/decisions", {"context": context}).body
            mean = 0.9 if made["option"] == "y" else 0.1
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": mean})
    stop = service("GET", f"{PAGE}/status").body["stop"]
    assert stop["best"] == {"m": "y", "d": "y"}
    made = service("POST", f"{PAGE}/decisions", {"context": "d"}).body
    assert (made["option"], made["context"], made["exploring"]) == ("y", "d", False)
    estimates = service("GET", f"{PAGE}/estimates").body["estimates"]
    assert [one["option"] for one in estimates] == ["m: x", "m: y", "d: x", "d: y"]
    zero = {"estimate": 0.0, "lower": 0.0, "upper": 0.0}
    assert [one["difference"] == zero for one in estimates] == [True, False, True, False]


def test_differences_to_a_control(service: Service) -> None:
    factors = {"picture": ["large", "small"], "text": ["short", "long"]}
    control = {"picture": "small", "text": "long"}
    begin(service, options=None, factors=factors, control=control, min_probability=0.1)
    play(service, 20, 0.1)
    answer = service("GET", f"{PAGE}/estimates?delta=0.1").body
    assert (answer["control"], answer["delta"]) == (control, 0.1)
    differences = [one["difference"] for one in answer["estimates"]]
    assert differences[3] == {"estimate": 0.0, "lower": 0.0, "upper": 0.0}
    for i, one in enumerate(differences[:3]):
        assert one["lower"] < 0.1 * (i - 3) < one["upper"]
    wider = service("GET", f"{PAGE}/estimates?delta=0.001").body["estimates"][0]["difference"]
    assert wider["lower"] < differences[0]["lower"]
    page = service("GET", "/experiments/page").body.decode()
    assert "Difference to the control" in page


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"control": "z"}, "no option has the name 'z'"),
        ({"control": {"picture": "large"}}, "options of this experiment have no levels"),
        ({"stop": {"delta": 1.0}}, "less than 1"),
        ({"stop": {"action": "explode"}}, "'notify' or 'commit'"),
        ({"stop": {"level": 0.1}}, "Extra inputs are not permitted"),
        (
            {"options": None, "factors": {"p": ["x", "y"]}, "control": {"p": "z"}},
            "control must be one of the options",
        ),
        ({"options": None, "duel": OPTIONS, "control": "a vs b"}, "control must be one of"),
        (
            {"options": None, "contexts": {"m": OPTIONS, "d": {"a": [1.0, 1.0]}}, "control": "b"},
            "no option in context 'd' has the name 'b'",
        ),
        (
            {"options": None, "stream": {"features": ["x", "y"], "max_arms": 3}, "stop": {}},
            "stop needs options that last",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_begun_is_refused_in_a_sentence(
    nothing_begun: Service, change: dict[str, Any], said: str
) -> None:
    refused = nothing_begun("PUT", PAGE, {"options": OPTIONS, "noise_std": 0.1, **change})
    assert refused.status == 422
    assert said in refused.body["detail"]


def test_clicks_that_are_told_at_once_settle_nothing(service: Service) -> None:
    """Equal pages committed in 10 of 10 experiments while clicks entered before silence did."""
    limits = {"reward_deadline": "100 rounds", "on_timeout": 0.0}
    reward = {"kind": "bernoulli"}
    begin(
        service, noise_std=None, reward=reward, stop={"delta": 0.05, "action": "commit"}, **limits
    )
    draws = random.Random(1)
    for i in range(300):
        made = service("POST", f"{PAGE}/decisions", {}).body
        if draws.random() < 0.1:
            address = f"/v1/decisions/{made['id']}/reward"
            told = service("PUT", address, {"reward": 1.0}).body
            assert (told["outcome"], told["reward"], told["closed_at"]) == ("received", 1.0, None)
            again = service("PUT", address, {"reward": 1.0}).body
            assert again == told
        if i == 50:
            status = service("GET", f"{PAGE}/status").body
            assert (status["told"], status["expired"]) == (0, 0)
            assert status["waiting"] > 0
            assert status["waiting_until"] > 101
    assert "committed" not in kinds(service)
    status = service("GET", f"{PAGE}/status").body
    assert status["told"] + status["expired"] == 199
    assert not status["stop"]["settled"]


def test_rewards_of_any_scale(service: Service) -> None:
    """900 of 900 decisions were for the first option, and its estimate 3.3 instead of 40."""
    bounded = {"kind": "bounded", "low": 0.0, "high": 200.0}
    begin(service, noise_std=None, reward=bounded, policy=None, options=["a", "b"])
    draws, options = random.Random(1), []
    for _ in range(300):
        made = service("POST", f"{PAGE}/decisions", {}).body
        options.append(made["option"])
        reward = draws.uniform(20.0, 60.0) + 40.0 * (made["option"] == "b")
        service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward})
    assert options.count("b") > 200
    found = {one["option"]: one for one in service("GET", f"{PAGE}/estimates").body["estimates"]}
    assert found["b"]["mean"] == pytest.approx(80.0, abs=5.0)
