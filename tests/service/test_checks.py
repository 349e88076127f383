"""Checks of experiments over HTTP: in the status, on the page and in the metrics."""

from __future__ import annotations

import random
from typing import Any

from tests.marks import without_compilation
from tests.service.running import Service, running

pytestmark = without_compilation

PAGE = "/v1/experiments/page"
FAILED = 'sightline_check_failed{check="drift",experiment="page"} 1.0'


def play(service: Service, rates: list[float], rounds: int, draws: random.Random) -> None:
    for _ in range(rounds):
        made = service("POST", f"{PAGE}/decisions", {}).body
        reward = float(draws.random() < rates[made["arm"]])
        assert (
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward}).status == 200
        )


def test_drift_is_shown_everywhere_until_the_experiment_is_forgotten(tmp_path: Any) -> None:
    draws = random.Random(0)
    with running(f"sqlite:///{tmp_path}/x.db", loaded=1) as service:
        body = {"options": {"A": [1.0, 0.0], "B": [0.0, 1.0]}, "policy": "ThompsonSampling"}
        body |= {"reward": {"kind": "bernoulli"}, "stop": {"delta": 0.05}}
        assert service("PUT", PAGE, body).status == 201
        play(service, [0.9, 0.3], 90, draws)
        quiet = service("GET", f"{PAGE}/status").body
        assert [one["passed"] for one in quiet["checks"]].count(False) == 0
        assert quiet["advice"] == ""
        assert "sightline_check_failed{" not in service("GET", "/metrics").body.decode()
        play(service, [0.1, 0.3], 60, draws)
        status = service("GET", f"{PAGE}/status").body
        (drift,) = [one for one in status["checks"] if one["name"] == "drift"]
        assert drift["passed"] is False
        assert 0.0 <= drift["p_value"] <= drift["level"]
        assert "A" in drift["options"]
        assert drift["sentence"] in status["advice"]
        assert status["stop"]["threshold"] is None  # infinite: nothing is settled
        page = service("GET", "/experiments/page").body.decode()
        assert "<strong>Drift.</strong> <bdi>Rewards have changed: " in page
        assert FAILED in service("GET", "/metrics").body.decode()
        other = {"options": {"C": [1.0], "D": [2.0]}, "noise_std": 1.0}
        assert service("PUT", "/v1/experiments/other", other).status == 201
        assert service("POST", "/v1/experiments/other/decisions", {}).status == 200
        assert FAILED not in service("GET", "/metrics").body.decode()
