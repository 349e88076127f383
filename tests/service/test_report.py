"""Reports over HTTP: read from the committed log, for readers, under a strict policy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from sightline.service.client import Client
from sightline.service.tokens import create_token
from tests.service.running import Service, running

PAGE = "/v1/experiments/page"
SPECIFICATION: dict[str, Any] = {
    "options": ["short", "<b>long</b>"],
    "policy": {"type": "ThompsonSampling"},
    "reward": {"kind": "bernoulli"},
    "min_probability": 0.1,
    "control": "short",
    "description": "Which *page*?",
}


def play(service: Service, count: int) -> None:
    decisions = service("POST", f"{PAGE}/decisions", {"count": count}).body["decisions"]
    for i, made in enumerate(decisions):
        reward = float(made["option"] != "short" and i % 2 == 0)
        service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": reward})


def test_the_report_has_what_the_log_has(service: Service, tmp_path: Path) -> None:
    assert service("GET", f"{PAGE}/report").status == 404
    service("PUT", PAGE, SPECIFICATION)
    assert b"no reward has arrived" in service("GET", f"{PAGE}/report").body
    play(service, 12)
    answer = service("GET", f"{PAGE}/report")
    assert answer.status == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "style-src 'sha256-" in answer.headers["content-security-policy"]
    page = answer.body.decode()
    assert "12 decisions, 12 rewards" in page
    assert "Which *page*?" in page
    assert "<b>long" not in page
    assert "&lt;b&gt;long&lt;/b&gt;" in page
    assert "Difference to the control" in page
    assert "Decisions per minute" in page
    linked = service("GET", "/experiments/page", headers={"Accept": "text/html"}).body.decode()
    assert f'href="{PAGE}/report"' in linked
    with Client(service.url) as client:
        text = client.report("page")
        client.report("page", tmp_path / "report.html")
    assert text.startswith("# page\n\nWhich \\*page\\*?\n")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert service("GET", f"{PAGE}/report?format=pdf").status == 422


def test_readers_may_read_it_and_strangers_may_not(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", PAGE, SPECIFICATION)
        secret = create_token(service.store, "one", "reader")
        service.runtime.tokens.refresh()
        assert service("GET", f"{PAGE}/report", token=secret).status == 200
        assert service("GET", f"{PAGE}/report").status == 401


def test_a_long_log_is_not_read(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", most_reported=5) as service:
        service("PUT", PAGE, SPECIFICATION)
        play(service, 6)
        text = service("GET", f"{PAGE}/report?format=markdown").body.decode()
        assert "more than 5 decisions" in text
        assert "| <" not in text
        assert "6 decisions, 6 rewards" in text


def test_a_context_with_one_option_settles_nothing_for_others(service: Service) -> None:
    contexts = {"one": ["a"], "two": ["a", "b"]}
    service("PUT", PAGE, {"contexts": contexts, "reward": {"kind": "bernoulli"}})
    assert service("GET", f"{PAGE}/status").body["test"]["settled"] is False
    made = service("POST", f"{PAGE}/decisions", {"context": "two"}).body
    service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 1.0})
    assert service("GET", f"{PAGE}/status").body["test"]["settled"] is False
    text = service("GET", f"{PAGE}/report?format=markdown").body.decode()
    assert "settled in 0 of 2 contexts" in text  # of one, no reward tells


@pytest.mark.parametrize("stop", [None, {"delta": 0.2, "action": "notify"}])
def test_dashboard_and_report_show_one_statistic(service: Service, stop: Any) -> None:
    """Evidence and threshold are the same on both, at the level of the stop rule."""
    service("PUT", PAGE, {**SPECIFICATION, "stop": stop})
    play(service, 20)
    level = 0.05 if stop is None else stop["delta"]
    status = service("GET", f"{PAGE}/status").body
    assert status["test"]["delta"] == level
    if stop is not None:
        assert status["stop"]["threshold"] == status["test"]["threshold"]
    history = service("GET", f"{PAGE}/history").body["points"]
    assert history[-1]["evidence"] == pytest.approx(status["test"]["evidence"])
    assert history[-1]["threshold"] == pytest.approx(status["test"]["threshold"])
    shown = service("GET", "/experiments/page", headers={"Accept": "text/html"}).body.decode()
    text = service("GET", f"{PAGE}/report?format=markdown").body.decode()
    reported = re.search(r"The evidence is ([\d.]+) of ([\d.]+)\.", text)
    assert reported is not None
    assert f"evidence {reported[1]} of {reported[2]}" in shown
