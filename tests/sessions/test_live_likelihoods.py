"""Sessions whose rewards are clicks or counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sightline as sl
from tests.marks import thorough, without_compilation


def pages() -> sl.types.Options:
    return sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})


def run(session: sl.Session, rounds: int, rates: Any, seed: int = 0) -> None:
    """Play rounds; an arm is clicked, or counted, by its rate."""
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        made = session.ask()
        session.tell(made.id, float(rng.random() < rates[made.arm]))


@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Bernoulli("identity"), sl.Poisson()])
@without_compilation
def test_a_session_learns_and_goes_on_from_a_file(
    rewards: sl.extend.Likelihood, tmp_path: Path
) -> None:
    session = sl.Session(pages(), rewards=rewards, seed=1)
    run(session, 300, [0.02, 0.3, 0.05, 0.1])
    assert session.status().best == session.options.names[1]
    estimates = session.estimates()
    assert estimates is not None
    assert ((estimates.means > 0.0) & (estimates.means < 1.0)).all()
    assert abs(estimates.means[1] - 0.3) < 4 * estimates.standard_errors[1] + 0.05
    session.save(tmp_path / "file")
    other = sl.Session.load(tmp_path / "file")
    assert repr(other) == repr(session)
    assert str(rewards) in repr(other)
    run(session, 20, [0.02, 0.3, 0.05, 0.1], seed=2)
    run(other, 20, [0.02, 0.3, 0.05, 0.1], seed=2)
    np.testing.assert_array_equal(session.estimates().means, other.estimates().means)  # type: ignore[union-attr]


@pytest.mark.parametrize("policy", [sl.LinUCB(), sl.ThompsonSampling(), sl.IDS(), sl.Stakes()])
@without_compilation
def test_an_option_that_begins_with_zeros_is_not_given_up(policy: sl.extend.Policy) -> None:
    """With effects on rates, the Fisher information of zeros alone has no bound."""
    for seed in range(4):
        session = sl.Session(["A", "B"], policy, rewards=sl.Bernoulli("identity"), seed=seed)
        run(session, 300, [0.05, 0.2], seed)
        assert sum(session.ask().option == "B" for _ in range(20)) > 0, seed


@without_compilation
def test_a_journal_is_replayed_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "experiment.db"
    with sl.Session.open(path, pages(), rewards=sl.Bernoulli(), seed=1) as session:
        run(session, 60, [0.1, 0.4, 0.2, 0.1])
        before = session.estimates()
        assert before is not None
    with sl.Session.open(path) as session:
        np.testing.assert_array_equal(before.means, session.estimates().means)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="was begun with another rewards"):
        sl.Session.open(path, pages(), rewards=sl.Poisson(), seed=1)


@without_compilation
@pytest.mark.parametrize(
    ("rewards", "told", "sentence"),
    [
        (sl.Bernoulli(), 0.5, "reward must be 0 or 1, as rewards are Bernoulli, got 0.5"),
        (sl.Bernoulli("identity"), 2, "reward must be 0 or 1"),
        (sl.Poisson(), -1, "reward must be a whole number from 0, as rewards are counts, got -1"),
        (sl.Poisson(), 0.5, "reward must be a whole number from 0"),
    ],
)
def test_rewards_that_cannot_be(rewards: sl.extend.Likelihood, told: float, sentence: str) -> None:
    session = sl.Session(np.eye(2), rewards=rewards)
    made = session.ask()
    with pytest.raises(ValueError, match=sentence):
        session.tell(made.id, told)
    session.tell(made.id, 1)
    assert session.status().told == 1


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: sl.Session(np.eye(2), noise_std=0.5, rewards=sl.Bernoulli()),
            "give noise_std or rewards, not both",
        ),
        (lambda: sl.Session(np.eye(2), rewards="clicks"), "rewards must be Bernoulli"),  # type: ignore[arg-type]
        (lambda: sl.Session(np.eye(2), sl.SOLID(), rewards=sl.Poisson()), "are clicks or counts"),
        (
            lambda: sl.Session(np.eye(2), rewards=sl.Bernoulli(), reward_window=60, on_timeout=0.3),
            "on_timeout must be 0 or 1",
        ),
        (
            lambda: sl.Session(sl.duel({"a": [1.0, 0.0], "b": [0.0, 1.0]}), rewards=sl.Bernoulli()),
            "those of a game",
        ),
        (lambda: sl.LinearBandit(np.eye(2), [2.0, 0.1], rewards=sl.Bernoulli("identity")), "means"),
        (
            lambda: sl.LinearBandit(np.eye(2), [0.5, 0.1], 0.3, rewards=sl.Bernoulli()),
            "give noise_std or rewards, not both",
        ),
    ],
)
def test_what_is_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make()


@without_compilation
def test_options_come_and_go() -> None:
    session = sl.Session(pages(), rewards=sl.Bernoulli(), seed=1)
    run(session, 100, [0.1, 0.4, 0.2, 0.1])
    before = session.estimates()
    assert before is not None
    session.retire("picture=large, text=short")
    plain = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, rewards=sl.Bernoulli(), seed=1)
    run(plain, 50, [0.2, 0.3])
    known = plain.estimates()
    plain.add("c", [0.5, 0.5])
    assert known is not None
    np.testing.assert_allclose(plain.estimates().means[:2], known.means, rtol=1e-6)  # type: ignore[union-attr]
    with pytest.raises(ValueError, match="noise_std must be left out"):
        plain.add("d", [0.1, 0.9], noise_std=0.3)


@without_compilation
def test_effects_are_on_the_log_odds() -> None:
    session = sl.Session(pages(), sl.LinUCB(), rewards=sl.Bernoulli(), seed=1)
    odds = np.array([-2.0, -1.0, -1.5, -0.5])
    run(session, 2000, 1.0 / (1.0 + np.exp(-odds)))
    effects = session.effects().set_index(["term", "level"])
    long = effects.loc[("text", "long")]
    assert long["lower"] < 0.5 < long["upper"]
    assert long["upper"] - long["lower"] < 2.0


@without_compilation
def test_rewards_that_look_like_clicks_are_pointed_out() -> None:
    session = sl.Session(np.eye(2), noise_std=0.5)
    run(session, 99, [0.1, 0.2])
    assert session.status().advice == ""
    run(session, 1, [0.1, 0.2])
    assert "rewards=Bernoulli()" in session.status().advice
    clicks = sl.Session(np.eye(2), rewards=sl.Bernoulli())
    run(clicks, 100, [0.1, 0.2])
    assert clicks.status().advice == ""
    numbers = sl.Session(np.eye(2), noise_std=0.5)
    for _ in range(100):
        numbers.tell(numbers.ask().id, 0.3)
    assert numbers.status().advice == ""


@thorough
@pytest.mark.slow
def test_compiled_sessions_learn_from_clicks() -> None:
    session = sl.Session(pages(), rewards=sl.Bernoulli(), seed=1)
    run(session, 2000, [0.02, 0.3, 0.05, 0.1])
    status = session.status()
    assert (status.best, status.told) == (session.options.names[1], 2000)
    assert 2.0 < status.evidence < status.threshold * 3.0
