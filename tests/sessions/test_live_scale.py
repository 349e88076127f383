"""Sessions that learn offset, scale and noise of rewards, compared with direct computation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.sessions.view import view_of

NOISE = 0.5


def told(session: sl.Session, mean: Any, rounds: int, seed: int = 0) -> list[tuple[int, float]]:
    """Play, and list arms and rewards."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(rounds):
        decision = session.ask()
        reward = float(mean(decision) + NOISE * rng.standard_normal())
        session.tell(decision, reward)
        found.append((decision.arm, reward))
    return found


def squares_of(session: sl.Session, rewards: list[tuple[int, float]]) -> float:
    """Squared deviations from the mean of each arm, in units of the noise of the policy."""
    live, total = session._live, 0.0
    for arm in {arm for arm, _ in rewards}:
        values = np.array([reward for other, reward in rewards if other == arm])
        scale = live.table.weights[arm, 0] / live.unit
        total += float((((values - values.mean()) * scale) ** 2).sum())
    return total


@pytest.mark.parametrize("reward", [0.1, -0.3, 1e-9, 7.7e12])
def test_equal_rewards_can_be_saved(reward: float, tmp_path: Path) -> None:
    """The mean of equal rewards differs from them by rounding, which must not count."""
    session = sl.Session(["a", "b"])
    for _ in range(60):
        session.tell(session.ask(), reward)
    assert session._live.counters.squares[0] == 0.0
    session.save(tmp_path / "session")
    loaded = sl.Session.load(tmp_path / "session")
    assert repr(loaded.status()) == repr(session.status())


def test_intervals_of_options_have_the_offset() -> None:
    """Means of options include the constant even where features do not span it."""
    session = sl.Session({"a": [1.0], "b": [2.0]})
    told(session, lambda decision: 100.0 + decision.features[0], 100)
    estimates, found = session.estimates(), view_of(session._live).intervals(0.05)
    assert estimates is not None
    assert found[0] == pytest.approx(estimates.means, rel=1e-6)
    assert (found[1] < [101.0, 102.0]).all()
    assert (found[2] > [101.0, 102.0]).all()


def test_differences_to_a_control_have_no_offset() -> None:
    """Differences are the same with and without a large number added to all rewards."""
    found = []
    for offset in (0.0, 2.0**40):
        session = sl.Session({"a": [1.0, 0.3], "b": [0.2, 1.0], "c": [0.7, 0.7]})
        told(session, lambda decision, offset=offset: offset + decision.arm, 60)
        found.append(view_of(session._live).differences([0], 0.05)[0])
    assert found[1] == pytest.approx(found[0], abs=1e-2)


@pytest.mark.parametrize("noise_std", [None, [1.0, 2.0]])
@pytest.mark.parametrize(
    "policy", [sl.Stakes(), sl.LinUCB(), sl.ThompsonSampling()], ids=lambda one: type(one).__name__
)
def test_a_noisier_option_changes_no_estimate(policy: sl.extend.Policy, noise_std: Any) -> None:
    """Its level becomes the unit in which all others are kept."""
    features = {"a": [1.0, 0.5], "b": [0.5, 1.0]}
    likelihood = None if noise_std is None else sl.Gaussian(std=None)
    session = sl.Session(features, policy, noise_std, rewards=likelihood)
    rewards = told(session, lambda decision: decision.arm, 60)
    before = session.estimates()
    session.add("c", [0.5, 0.5], noise_std=6.0)
    after = session.estimates()
    assert before is not None
    assert after is not None
    assert after.means[:2] == pytest.approx(before.means, abs=0.05)
    assert after.standard_errors[:2] == pytest.approx(before.standard_errors, rel=0.2)
    squares = session._live.counters.squares[0]
    assert squares == pytest.approx(squares_of(session, rewards))


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Poisson()], ids=repr)
@pytest.mark.parametrize(
    "policy", [sl.BayesianIDS(), sl.ThompsonSampling()], ids=lambda one: type(one).__name__
)
def test_a_longer_option_leaves_a_session_that_can_be_loaded(
    policy: sl.extend.Policy, rewards: Any, tmp_path: Path
) -> None:
    """It changes the prior, from which the fit and the posterior follow."""
    session = sl.Session({"a": [1.0, 0.5], "b": [0.5, 1.0]}, policy, rewards=rewards)
    for i in range(20):
        session.tell(session.ask(), i % 2)
    session.add("c", [5.0, 3.0])
    session.save(tmp_path / "session")
    assert repr(sl.Session.load(tmp_path / "session").status()) == repr(session.status())


def test_a_duel_has_intervals_and_a_threshold() -> None:
    """What all items have in common is never observed, and no comparison needs it."""
    session, rng = sl.Session(sl.duel(["a", "b", "c"])), np.random.default_rng(0)
    worth = {"a": 0.0, "b": 0.9, "c": -0.9}
    for _ in range(300):
        decision = session.ask()
        assert decision.pair is not None
        first, second = decision.pair
        wins = rng.random() < 0.5 + 0.25 * (worth[first] - worth[second])
        session.tell(decision, first if wins else second)
    assert math.isfinite(session.status().threshold)
    view = view_of(session._live)
    truth = 0.5 * (np.array([0.0, 0.9, -0.9]) - 0.9)
    values, lower, upper = view.intervals(0.05)
    assert math.isfinite(view.tested_at(0.05)[0].threshold)
    assert np.isfinite([values, lower, upper]).all()
    assert ((lower <= truth) & (truth <= upper)).all()


def test_a_game_that_hides_a_difference_settles_nothing() -> None:
    """The difference of two options is unbounded if no outcome shows it."""
    game = sl.game(np.eye(3), [[1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [2.0, -2.0, 0.0]])
    session = sl.Session(game, sl.LinUCB())
    for _ in range(40):
        session.tell(session.ask(), 1.0)
    assert session.status().threshold == math.inf
    assert view_of(session._live).tested_at(0.05)[0].threshold == math.inf


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_at_an_edge_have_intervals(rate: float) -> None:
    """30 failures and no success do not exclude a rate of 5 %: by likelihood, up to 10 %."""
    session = sl.Session(["a"], rewards=sl.Bernoulli(link="identity"))
    for _ in range(30):
        session.tell(session.ask(), rate)
    _, lower, upper = view_of(session._live).intervals(0.05)
    assert upper[0] - lower[0] > 0.1


def test_noise_levels_of_the_estimated_problem_differ() -> None:
    """As given, where the common factor was learned."""
    from sightline.sessions.view import estimated_problem

    likelihood = sl.Gaussian(std=None)
    session = sl.Session(
        {"a": [1.0, 0.0], "b": [0.0, 1.0]}, noise_std=[1.0, 4.0], rewards=likelihood
    )
    told(session, lambda decision: decision.arm, 60)
    levels: Any = estimated_problem(view_of(session._live)).noise_std
    assert levels[1] == pytest.approx(4.0 * levels[0])


@pytest.mark.parametrize("count", [20, 60, 1000])
def test_false_alarms_about_the_noise_are_rare(count: int) -> None:
    """The square of normal noise is skewed: five standard errors are not enough for few rewards."""
    from sightline.sessions.view import _largest_sum

    # the tail of chi-square, by the Wilson-Hilferty approximation
    limit = _largest_sum(count, 2.0 * count, 1.0)
    shrink = 2.0 / (9.0 * count)
    z = ((limit / count) ** (1.0 / 3.0) - 1.0 + shrink) / math.sqrt(shrink)
    assert 0.5 * math.erfc(z / math.sqrt(2.0)) < 1e-6


def test_too_little_noise_is_contradicted() -> None:
    """Half of the right noise level is noticed after 40 rewards."""
    session = sl.Session(["a", "b"], noise_std=NOISE / 2.0)
    told(session, lambda decision: decision.arm, 20)
    assert session.status().advice == ""
    told(session, lambda decision: decision.arm, 40, 1)
    assert session.status().advice.startswith("Rewards vary more than noise_std=0.25 allows")


def test_effects_keep_small_differences_between_large_rewards() -> None:
    found = []
    for offset in (0.0, 1e12):
        rng = np.random.default_rng(0)
        session = sl.Session(np.eye(3), sl.LinUCB(), seed=0)
        for _ in range(60):
            made = session.ask()
            session.tell(made, offset + 3.0 + made.arm + rng.standard_normal())
        found.append(session.effects()[["effect", "lower", "upper"]].to_numpy() - offset)
    assert found[1] == pytest.approx(found[0], abs=2e-3)  # rewards of 1e12 keep 1e-4
