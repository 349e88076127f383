"""When runs settle: as an inspection of every round finds it, up to the spacing of inspections."""

from __future__ import annotations

import math
import threading

import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.experiments.settling import settle
from sightline.sessions.effects import ellipsoid_in, evidence_of
from sightline.simulation.loop import walk
from tests.marks import without_compilation
from tests.own_policies import EpsilonGreedy

EASY = sl.LinearBandit(
    sl.factorial({"a": ["x", "y"], "b": ["x", "y"]}).features, [0.2, 0.5, 0.3], 0.3, name="easy"
)
HORIZON = 300


def first_settled(policy: sl.extend.Policy, seed: int) -> float:
    """Test before every round, as a session does."""
    state = policy.start(EASY.model)
    for step in walk(EASY, state, seed):
        report = sl.extend.inspect(state, step.clock, ALL_ARMS)
        if math.isnan(report.threshold):
            ellipsoid = ellipsoid_in(state, EASY.actions, EASY.noise_std)
            assert ellipsoid is not None
            report = evidence_of(ellipsoid, EASY.actions, step.clock, sl.LogDet())
        if report.evidence >= report.threshold:
            return step.clock.t - 1
        if step.clock.t > HORIZON:
            return math.inf
    raise AssertionError


@without_compilation
@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(regulariser="matched"),
        sl.LinUCB(),
        sl.ThompsonSampling(),
        sl.BayesianIDS(samples=50),
        sl.IDS(confidence=sl.LogDet(norm_bound=40.0)),
    ],
    ids=["IDS", "LinUCB", "ThompsonSampling", "BayesianIDS", "never"],
)
def test_settled_as_a_look_at_every_round_finds_it(policy: sl.extend.Policy) -> None:
    for seed in range(4):
        found = settle(EASY, policy, [HORIZON], seed)
        truth = first_settled(policy, seed)
        assert truth <= found.rounds or truth == math.inf
        if found.rounds < math.inf:
            assert found.rounds <= max(1.05 * truth + 1.0, truth + 1.0)
            assert found.best == 0
        else:
            assert truth == math.inf or 1.05 * truth + 1.0 > HORIZON
        run = sl.simulate(EASY, policy, HORIZON, seed, [HORIZON])
        assert found.pulls.tolist() == [run.pulls[-1].tolist()]


@without_compilation
def test_a_policy_without_estimates_cannot_tell() -> None:
    found = settle(EASY, EpsilonGreedy(), [50], 0)
    assert math.isnan(found.rounds)
    assert found.best == -1
    assert found.pulls.sum() == 50


@without_compilation
def test_one_option_is_settled_from_the_start() -> None:
    problem = sl.LinearBandit([[1.0]], [0.5])
    for policy in (sl.IDS(), sl.ThompsonSampling()):
        found = settle(problem, policy, [20], 0)
        assert (found.rounds, found.best, found.pulls.tolist()) == (0.0, 0, [[20.0]])


@without_compilation
def test_a_run_can_be_stopped() -> None:
    stop = threading.Event()
    stop.set()
    with pytest.raises(KeyboardInterrupt):
        settle(EASY, sl.LinUCB(), [100], 0, stop)
