"""Estimates of every arm, open decisions, and the text of a session."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from tests.own_policies import EpsilonGreedy

ACTIONS = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
NOISE_STD = 0.5


def told(policy: sl.extend.Policy) -> tuple[sl.Session, list[int], list[float]]:
    session = sl.Session(ACTIONS, policy, NOISE_STD, seed=1, units="given")
    arms, rewards = [], []
    for reward in (0.3, -0.2, 1.1, 0.4):
        decision = session.ask()
        assert decision.exploring
        session.tell(decision.id, reward)
        arms.append(decision.arm)
        rewards.append(reward)
    return session, arms, rewards


@pytest.mark.parametrize(
    ("policy", "regulariser"),
    [
        (sl.IDS(), 1.0),
        (sl.LinUCB(regulariser=2.0, switch_growth=1.0), 2.0),
        (sl.ThompsonSampling(prior_std=2.0), NOISE_STD**2 / 4.0),
    ],
    ids=str,
)
def test_estimates_are_those_of_ridge_regression(
    policy: sl.extend.Policy, regulariser: float
) -> None:
    session, arms, rewards = told(policy)
    estimates = session.estimates()
    assert estimates is not None
    X = ACTIONS[arms]
    gram = regulariser * np.eye(2) + X.T @ X
    assert estimates.means == pytest.approx(ACTIONS @ np.linalg.solve(gram, X.T @ rewards))
    squares = np.einsum("ki,ij,kj->k", ACTIONS, np.linalg.inv(gram), ACTIONS)
    assert estimates.standard_errors == pytest.approx(NOISE_STD * np.sqrt(squares))


def test_estimates_are_a_copy() -> None:
    session, _, _ = told(sl.IDS())
    first = session.estimates()
    assert first is not None
    first.means[:] = 7.0
    again = session.estimates()
    assert again is not None
    assert (again.means != 7.0).all()


def test_a_policy_without_least_squares_has_no_estimates() -> None:
    assert sl.Session(ACTIONS, sl.PhasedElimination(horizon=100), units="given").estimates() is None
    assert sl.Session(ACTIONS, EpsilonGreedy(), units="given").estimates() is None


def test_open_decisions_are_listed_also_after_a_restart(tmp_path: Path) -> None:
    session = sl.Session(ACTIONS, sl.IDS(), NOISE_STD, seed=1, units="given")
    decisions = [session.ask() for _ in range(3)]
    session.tell(decisions[1].id, 0.0)
    expected = [
        sl.types.Pending(d.id, d.arm, d.exploring, d.round, d.probability, d.made)
        for d in (decisions[0], decisions[2])
    ]
    assert session.pending() == expected
    session.save(tmp_path / "session.npz")
    assert sl.Session.load(tmp_path / "session.npz").pending() == expected


def test_a_session_describes_itself() -> None:
    session, _, _ = told(sl.IDS())
    session.ask()
    text = repr(session)
    for part in ("3 arms in 2 dimensions", "IDS(", "noise_std=0.5", "next round 6", "4 rewards"):
        assert part in text
    assert "1 decisions open" in text
