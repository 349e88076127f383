"""Sessions without a given noise level or bound on the parameter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from sightline.sessions.estimates import Estimates
from tests.marks import thorough, without_compilation

UNKNOWN = sl.Gaussian(std=None)
OPTIONS = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
MEANS = 1000.0 * OPTIONS.features @ np.array([0.5, 0.2, -0.1])


def run(session: sl.Session, rounds: int, seed: int = 0, sigma: float = 200.0) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        decision = session.ask()
        noise = sigma * float(rng.standard_normal())
        session.tell(decision.id, float(MEANS[decision.arm]) + noise)


def estimates(session: sl.Session) -> Estimates:
    found = session.estimates()
    assert found is not None
    return found


@without_compilation
@pytest.mark.parametrize("policy", [None, sl.IDS(), sl.IDS(confidence=sl.LogDet(norm_bound=None))])
def test_neither_number_is_needed(policy: sl.extend.Policy | None) -> None:
    session = sl.Session(OPTIONS, policy, rewards=UNKNOWN, seed=1, units="given")
    run(session, 150)
    status = session.status()
    assert np.isfinite(status.threshold)
    assert status.threshold > 0.0
    assert "rewards=Gaussian(std=None, guess=1.0)" in repr(session)
    errors = np.abs(estimates(session).means - MEANS) / estimates(session).standard_errors
    assert errors.max() < 5.0
    assert 5.0 < estimates(session).standard_errors.min() < 100.0  # of noise 200


@without_compilation
def test_effects_hold_without_either() -> None:
    session = sl.Session(OPTIONS, rewards=UNKNOWN, seed=1, units="given")
    run(session, 300)
    found = session.effects().set_index(["term", "level"])
    truth = {("picture", "large"): 200.0, ("picture", "small"): -200.0, ("text", "long"): 100.0}
    for name, value in truth.items():
        assert found.loc[name, "lower"] <= value <= found.loc[name, "upper"]
        assert found.loc[name, "upper"] - found.loc[name, "lower"] < 5000.0
    told = session.effects(norm_bound=1000.0).set_index(["term", "level"])
    assert (told["upper"] - told["lower"] < 2.0 * (found["upper"] - found["lower"])).all()


@thorough
def test_files_keep_what_was_learned(tmp_path: Path) -> None:
    session = sl.Session(OPTIONS, rewards=UNKNOWN, seed=1, units="given")
    run(session, 80)
    session.save(tmp_path / "a.npz")
    again = sl.Session.load(tmp_path / "a.npz")
    assert again.status() == session.status()
    run(session, 40, seed=2)
    run(again, 40, seed=2)
    assert again.status() == session.status()
    np.testing.assert_array_equal(
        estimates(again).standard_errors, estimates(session).standard_errors
    )


@without_compilation
def test_levels_are_ratios(tmp_path: Path) -> None:
    """Levels are relative: doubling them has no effect, and the policy learns the common factor."""
    sessions = [
        sl.Session(OPTIONS, noise_std=[c, c, 2 * c, c], rewards=UNKNOWN, seed=1) for c in (1.0, 8.0)
    ]
    for session in sessions:
        run(session, 100)
    first, second = (estimates(session) for session in sessions)
    np.testing.assert_array_equal(first.means, second.means)
    np.testing.assert_array_equal(first.standard_errors, second.standard_errors)
    sessions[0].save(tmp_path / "b.npz")
    assert sl.Session.load(tmp_path / "b.npz").status() == sessions[0].status()


@without_compilation
def test_options_that_come_keep_the_level() -> None:
    session = sl.Session(
        np.eye(3), sl.IDS(), [1.0, 1.0, 0.5], rewards=UNKNOWN, seed=1, units="given"
    )
    rng = np.random.default_rng(0)
    for _ in range(60):
        decision = session.ask()
        session.tell(decision.id, rng.standard_normal() * 50.0)
    before = estimates(session)
    session.add("new", [1.0, 1.0, 0.0], noise_std=4.0)  # noisier than all others: units change
    after = estimates(session)
    np.testing.assert_allclose(after.means[:3], before.means, rtol=0.2)
    np.testing.assert_allclose(after.standard_errors[:3], before.standard_errors, rtol=0.2)
    assert np.isfinite(session.status().threshold)


@without_compilation
def test_streams_learn_the_level_too() -> None:
    session = sl.Session(sl.stream(2, max_arms=3), sl.LinUCB(), rewards=UNKNOWN, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.standard_normal((3, 2))
        decision = session.ask(options=actions)
        mean = float(actions[decision.arm] @ [3.0, 1.0])
        session.tell(decision.id, mean + 0.5 * rng.standard_normal())
    found = session.effects()
    assert (found["lower"] < found["upper"]).all()
    assert estimates(session).standard_errors.max() < 0.5


def test_a_level_beside_one_that_is_known_is_refused() -> None:
    with pytest.raises(ValueError, match="give noise_std or rewards, not both"):
        sl.Session(OPTIONS, noise_std=0.3, rewards=sl.Gaussian(0.3))
    with pytest.raises(ValueError, match="OSSB needs to know the noise level"):
        sl.Session(OPTIONS, sl.OSSB(), rewards=UNKNOWN)


@without_compilation
def test_a_plan_takes_a_policy_without_a_bound() -> None:
    plan = sl.plan(
        OPTIONS,
        means=MEANS / 1000.0,
        noise_std=0.1,
        traffic_per_day=200,
        policy=sl.IDS(confidence=sl.LogDet(norm_bound=None)),
        horizon=300,
        replications=2,
    )
    assert 0 < plan.equal_split_visitors < 10_000


@pytest.mark.parametrize("noise_std", [None, 1.0])
def test_a_parameter_set_is_in_units_of_the_reward(noise_std: float | None) -> None:
    policy = sl.IDS(parameter_set=sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0]))
    assert policy.tells_scale
    session = sl.Session({"A": [1.0, 0.0], "B": [0.0, 1.0]}, policy, noise_std)
    session.tell(session.ask(), 0.5)
    estimates = session.estimates()
    assert estimates is not None
    assert np.isfinite(estimates.means).all()
