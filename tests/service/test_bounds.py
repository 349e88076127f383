"""c* and the estimated regret, computed by a worker process with a time limit."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import sightline as sl
from sightline.problems.descriptions import describe
from sightline.service import bounds
from sightline.service.bounds import BoundCache
from sightline.service.worker import bound_values
from sightline.sessions.view import estimated_problem, regret_spent, view_of
from tests.marks import without_compilation
from tests.service.running import running

ROWS = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.7, 0.7]}
PAGES = {"m": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "d": {"x": [0.5, 0.0], "y": [0.0, 1.0]}}
MEANS = np.array([0.2, 0.8])


def told(options: Any, rounds: int = 30, **settings: Any) -> sl.Session:
    """A session that has been told means; of clicks, their nearest."""
    session = sl.Session(options, seed=1, **settings)
    for i in range(rounds):
        blocks = session.options.contexts
        decision = session.ask(context=None if blocks is None else blocks.names[i % 2])
        reward = float(decision.features @ MEANS) + 0.1 * (-1) ** i
        session.tell(decision, float(reward > 0.5) if "rewards" in settings else reward)
    return session


def known(session: sl.Session) -> dict[str, Any]:
    """Answer of the process, by what is sent to it."""
    view = view_of(session._live)
    return bound_values(json.loads(json.dumps(describe(estimated_problem(view)))))


@without_compilation
def test_the_bound_is_that_of_the_estimated_problem() -> None:
    session = told(ROWS, noise_std=0.3, units="given")
    totals, counts = session._live.counters.totals, session._live.counters.told
    rows = np.array(list(ROWS.values()))
    gram = 0.09 * np.eye(2) + (rows * counts[:, None]).T @ rows
    theta = np.linalg.solve(gram, rows.T @ totals)
    expected = sl.lower_bound(sl.LinearBandit(rows, theta, 0.3))
    assert known(session)["value"] == pytest.approx(expected.value, rel=1e-6)
    means = rows @ theta
    spent = float((means.max() - means) @ session._live.counters.asked)
    assert regret_spent(view_of(session._live)) == pytest.approx(spent)
    session.retire("b")
    smaller = sl.lower_bound(sl.LinearBandit(rows[[0, 2]], theta, 0.3))
    assert known(session)["value"] == pytest.approx(smaller.value, rel=1e-6)
    assert regret_spent(view_of(session._live)) < spent


@without_compilation
@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (ROWS, {"rewards": sl.Bernoulli()}),
        (ROWS, {"noise_std": [0.1, 0.2, 0.3]}),
        (sl.contexts(PAGES), {"noise_std": 0.3}),
    ],
    ids=["clicks", "levels", "contexts"],
)
def test_all_kinds_of_experiments_have_one(options: Any, settings: dict[str, Any]) -> None:
    session = told(options, **settings)
    found = known(session)
    assert 0.0 < found["lower"] <= found["value"] <= found["upper"] < 1.001 * found["lower"]
    assert regret_spent(view_of(session._live)) >= 0.0


@without_compilation
def test_noise_that_is_learned_and_duels() -> None:
    session = sl.Session(ROWS, rewards=sl.Gaussian(std=None), seed=1)
    rng = np.random.default_rng(0)
    for _ in range(200):
        decision = session.ask()
        session.tell(decision, float(decision.features @ MEANS) + 0.5 * rng.standard_normal())
    problem = estimated_problem(view_of(session._live))
    assert problem.noise_std == pytest.approx(0.5, rel=0.2)
    assert known(session)["value"] > 0.0
    duel = sl.Session(sl.duel(ROWS), seed=1)
    for i in range(30):
        decision = duel.ask()
        assert decision.pair is not None
        duel.tell(decision, decision.pair[i % 3 == 0])
    assert known(duel)["value"] > 0.0


@without_compilation
def test_what_no_decision_shows_is_said_in_a_sentence() -> None:
    silent = sl.LinearGame(np.eye(2), np.zeros((2, 2)), [1.0, 0.5])
    assert "no decision shows" in bound_values(describe(silent))["reason"]


def wait_for(book: BoundCache, done: Any) -> bounds.BoundResult:
    until = time.monotonic() + 60.0
    while time.monotonic() < until:
        found = book.get("x", 10, 6, lambda: describe(sl.LinearBandit(np.eye(2), [1.0, 0.5], 0.5)))
        if done(found):
            return found
        time.sleep(0.02)
    raise AssertionError(found)


@without_compilation
def test_nobody_waits_and_what_takes_too_long_is_ended() -> None:
    book = BoundCache(30.0)
    first = book.get("x", 10, 6, lambda: describe(sl.LinearBandit(np.eye(2), [1.0, 0.5], 0.5)))
    assert first.reason == "it is being computed: ask again"
    found = wait_for(book, lambda one: one.values is not None)
    assert found.values is not None
    assert found.values["value"] == pytest.approx(2.0 * 0.25 / 0.5)
    assert (found.values["sequence"], found.again) == (10, 11)
    short = BoundCache(0.01)
    slow = wait_for(short, lambda one: one.again > 0)
    assert (slow.values, slow.again) == (None, 20)  # which is not tried soon again
    assert "longer than 0.01 seconds" in str(slow.reason)
    for book_ in (book, short):
        book_.close()
    assert "computes no bounds" in str(BoundCache(0.0).get("x", 1, 1, dict).reason)
    assert "more than" in str(book.get("x", 1, 10**6, dict).reason)


PARENT = """
import json, os, signal, sys, time
from sightline.service.bounds import BoundCache
book = BoundCache(300.0)
book.get("x", 10, 6, lambda: json.loads(sys.argv[1]))
while book._process is None:
    time.sleep(0.01)
print(book._process.pid, flush=True)
time.sleep(float(sys.argv[2]))
os.kill(os.getpid(), signal.SIGKILL)
"""


@without_compilation
@pytest.mark.parametrize("seconds", [6, 0])
def test_the_process_ends_with_a_service_that_is_killed(seconds: int) -> None:
    """While it computes, and before."""
    rows = np.random.default_rng(0).standard_normal((300, 12))  # which takes minutes
    problem = json.dumps(describe(sl.LinearBandit(rows, np.ones(12) / 12, 0.5)))
    command = [sys.executable, "-c", PARENT, problem, str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        time.sleep(0.5 * seconds)
        assert child.status() != psutil.STATUS_ZOMBIE
        parent.wait(30.0)
        alive = psutil.wait_procs([child], 10.0)[1]
    for one in alive:
        one.kill()
    assert not alive


def test_status_has_both(tmp_path: Path) -> None:
    path = "/v1/experiments/page"
    with running(f"sqlite:///{tmp_path}/x.db", bound_limit=60.0) as service:
        body = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 0.5, "policy": "IDS"}
        service("PUT", path, body)
        assert service("GET", f"{path}/status").body["bound_reason"] == "no reward has arrived yet"
        for _ in range(4):
            made = service("POST", f"{path}/decisions", {}).body
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": made["arm"] * 0.5})
        until = time.monotonic() + 120.0
        while (status := service("GET", f"{path}/status").body)["bound"] is None:
            assert time.monotonic() < until, status
            time.sleep(0.1)
        assert status["bound_reason"] is None
        assert status["bound"]["value"] > 0.0
        assert status["bound"]["sequence"] <= status["sequence"]
        assert status["regret_spent"] >= 0.0
        assert "Lower bound, c* log n" in service("GET", "/experiments/page").body.decode()
