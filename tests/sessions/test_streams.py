"""Arms that are new in every round: estimates, runs and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import block
from sightline.core.clock import clock_at
from sightline.core.context_distribution import SETS_KEPT
from sightline.core.least_squares import (
    REFRESH_AFTER_UPDATES,
    least_squares,
    observe,
    show_arms,
)
from sightline.core.model import stream_model
from sightline.core.persistence import check_consistency
from sightline.policies.base import choose, decided, dropped, show, update
from sightline.policies.stakes import count_open
from sightline.problems.streams import SphereArms, StreamBandit, recorded_stream, sphere_stream
from tests import naive
from tests.marks import thorough
from tests.naive import Array

EVERY = [
    sl.LinUCB(),
    pytest.param(sl.ThompsonSampling(), marks=thorough),
    sl.IDS(contexts="conditional"),
    pytest.param(sl.IDS(contexts="conditional", gaps="thresholded"), marks=thorough),
    pytest.param(sl.EpsilonGreedy(0.0), marks=thorough),
]


def rounds_of(rng: np.random.Generator, n: int, k: int, d: int) -> Array:
    return rng.standard_normal((n, k, d))


@pytest.mark.parametrize("n", [0, 1, 7, 60])
def test_estimates_are_those_of_all_rounds(n: int) -> None:
    rng = np.random.default_rng(n)
    k, d, regulariser = 4, 3, 0.5
    state = least_squares(stream_model(k, d, 0.3), regulariser)
    xs, ys = np.zeros((n, d)), rng.standard_normal(n)
    for i, rows in enumerate(rounds_of(rng, n, k, d)):
        count = int(rng.integers(1, k + 1))
        show_arms(state, rows, 0, count)
        arm = int(rng.integers(count))
        xs[i] = rows[arm]
        observe(state, arm, ys[i])
    V, theta = naive.covariance(xs, regulariser), naive.ridge(xs, ys, regulariser)
    np.testing.assert_allclose(state.learned.gram_inverse, naive.inverse(V), atol=1e-12)
    np.testing.assert_allclose(state.learned.theta, theta, atol=1e-12)
    log_det = naive.log_det_ratio(V, regulariser)
    assert state.learned.log_det[0] == pytest.approx(log_det, abs=1e-10)
    rows = rng.standard_normal((k, d))
    show_arms(state, rows, 0, k)
    np.testing.assert_allclose(state.arms.means[:k], rows @ theta, atol=1e-12)
    widths = [naive.squared_norm(x, V) for x in rows]
    np.testing.assert_allclose(state.arms.squared_widths[:k], widths, atol=1e-12)
    check_consistency(state, "state")


@pytest.mark.slow
def test_estimates_do_not_drift() -> None:
    rng = np.random.default_rng(0)
    n, k, d = 3 * REFRESH_AFTER_UPDATES + 5, 2, 4
    state = least_squares(stream_model(k, d), 1.0)
    xs, ys = np.zeros((n, d)), rng.standard_normal(n)
    for i, rows in enumerate(rounds_of(rng, n, k, d) * [1.0, 1e-3, 1.0, 1e3]):
        show_arms(state, rows, 0, k)
        xs[i] = rows[i % k]
        observe(state, i % k, ys[i])
    V, theta = naive.covariance(xs, 1.0), naive.ridge(xs, ys, 1.0)
    np.testing.assert_allclose(state.learned.gram_inverse, naive.inverse(V), rtol=1e-7)
    np.testing.assert_allclose(state.learned.theta, theta, rtol=1e-6)
    check_consistency(state, "state")


def test_an_outcome_is_learned_through_the_last_row() -> None:
    """A late outcome counts as if it had been told at once, though other arms have come."""
    rng = np.random.default_rng(1)
    early, late = (least_squares(stream_model(3, 2), 1.0) for _ in range(2))
    first, second = rounds_of(rng, 2, 3, 2)
    show_arms(early, first, 0, 3)
    observe(early, 1, 0.7)
    show_arms(late, second, 0, 3)
    show_arms(late, first[1:], 3, 4)
    observe(late, 3, 0.7)
    np.testing.assert_array_equal(early.learned.theta, late.learned.theta)
    np.testing.assert_array_equal(early.learned.gram_inverse, late.learned.gram_inverse)
    np.testing.assert_array_equal(
        early.arms.observations.stream.factor, late.arms.observations.stream.factor
    )


@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: str(policy)[:45])
def test_the_same_set_in_every_round_is_a_bandit(policy: sl.extend.Policy) -> None:
    bandit = sl.problems.unit_sphere(5, 3, 0.1, seed=2)
    stream = recorded_stream(bandit.actions[None], bandit.means[None], float(bandit.noise_std))
    for seed in range(2):
        fixed = sl.simulate(bandit, policy, 150, seed, range(1, 151))
        new = sl.simulate(stream, policy, 150, seed, range(1, 151))
        if policy.commits:  # which streams do for one round at a time
            assert new.explorations[-1] <= 150
        np.testing.assert_array_equal(fixed.pulls, new.pulls[:, :-1])
        np.testing.assert_allclose(fixed.regret, new.regret, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("policy", EVERY, ids=lambda policy: str(policy)[:45])
def test_regret_on_a_stream_grows_slowly(policy: sl.extend.Policy) -> None:
    stream = sphere_stream(8, 3, 0.1)
    runs = [sl.simulate(stream, policy, 4000, seed, [1000, 4000]) for seed in range(10)]
    regret = np.mean([run.regret for run in runs], axis=0)
    assert 0 < regret[1] < 2.5 * regret[0]
    assert regret[0] < 0.1 * 1000  # playing at random loses about 0.6 per round


def test_every_round_of_a_data_set_comes_once_before_any_comes_again() -> None:
    actions = np.arange(5.0)[:, None, None] * np.ones((5, 2, 1))
    rewards = np.arange(10.0).reshape(5, 2)  # the second arm is better by 1
    stream = recorded_stream(actions, rewards, 1e-3)
    run = sl.simulate(stream, sl.LinUCB(), 15, 0, range(1, 16))
    assert run.regret[-1] == run.pulls[-1][0]
    again = sl.simulate(stream, sl.LinUCB(), 15, 0, range(1, 16))
    np.testing.assert_array_equal(run.pulls, again.pulls)


def test_what_is_refused() -> None:
    stream = sphere_stream(3, 2)
    for policy in (
        sl.OSSB(),
        sl.LinMED(),
        sl.Stakes(randomised=False),
        sl.IDS(information="cell"),
    ):
        with pytest.raises(ValueError, match="needs arms that come again"):
            sl.simulate(stream, policy, 10)
    with pytest.raises(ValueError, match="delay needs arms that stay"):
        sl.simulate(stream, sl.LinUCB(), 10, delay=3)
    with pytest.raises(ValueError, match="horizon must be at most"):
        sl.simulate(stream, sl.IDS(), 10**20)
    with pytest.raises(ValueError, match="max_arms must be at least 1"):
        StreamBandit(SphereArms(np.ones(2), 3), 0, 2)
    with pytest.raises(ValueError, match="rewards must have shape"):
        recorded_stream(np.zeros((2, 3, 1)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="actions must be finite"):
        recorded_stream([[[np.nan]]], [[0.0]])


def _sets_shown(policy: sl.extend.Policy, rounds: int, seed: int) -> tuple[Any, Array]:
    """Return the state after so many rounds whose arms are marked by the round, and the rows."""
    state = policy.start(stream_model(2, 2, 0.5))
    rng = np.random.default_rng(seed)
    for t in range(1, rounds + 1):
        rows = np.array([[float(t), 1.0], [1.0, float(t)]])
        show(state, rows, 0, 2)
        arm = choose(state, clock_at(t), block(0, 2, 0), rng).arm
        update(state, clock_at(t), arm, float(rng.standard_normal()))
    return state, rows


def test_a_reservoir_keeps_past_sets_with_equal_chances() -> None:
    kept = np.zeros(100)
    for seed in range(40):
        state, _ = _sets_shown(sl.IDS(), 100, seed)
        rounds = state.frequencies.sets[:, 0, 0].astype(int)
        assert len(set(rounds)) == SETS_KEPT
        kept[rounds - 1] += 1
    expected = 40 * SETS_KEPT / 100
    assert kept.sum() == 40 * SETS_KEPT
    # early, middle and late rounds alike
    for part in np.split(kept, 4):
        assert part.mean() == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize(
    "policy", [sl.IDS(), pytest.param(sl.Stakes(), marks=thorough)], ids=["IDS", "Stakes"]
)
def test_past_sets_are_contexts_beside_the_present_one(policy: sl.extend.Policy) -> None:
    state, rows = _sets_shown(policy, 5, seed=0)
    frequencies = state.frequencies if isinstance(policy, sl.IDS) else state.now.frequencies
    np.testing.assert_allclose(frequencies.probabilities[[0, 2, 3, 4, 5]], 0.2)
    assert frequencies.probabilities.sum() == pytest.approx(1.0)
    show(state, rows[:1], 0, 1)  # one arm only fills the places of missing ones
    arms = state.estimate.arms
    np.testing.assert_array_equal(arms.rewards[:2], rows[[0, 0]])
    np.testing.assert_array_equal(arms.rewards[3:7], frequencies.sets[:2].reshape(4, 2))
    theta, inverse = state.estimate.learned.theta, state.estimate.learned.gram_inverse
    np.testing.assert_allclose(arms.means, arms.rewards @ theta, atol=1e-12)
    widths = np.einsum("ki,ij,kj->k", arms.rewards, inverse, arms.rewards)
    np.testing.assert_allclose(arms.squared_widths, widths, atol=1e-12)


@thorough
def test_open_decisions_among_new_arms() -> None:
    state, rows = _sets_shown(sl.Stakes(), 6, seed=1)
    before = state.estimate.learned.gram_inverse.copy()
    decided(state, clock_at(7), 0)
    decided(state, clock_at(7), 1)
    view = state.expected.estimate
    count_open(state.open_decisions, state.estimate, view)
    truth = np.linalg.inv(np.linalg.inv(before) + rows.T @ rows)
    np.testing.assert_allclose(view.learned.gram_inverse, truth, rtol=1e-9)
    arms = state.estimate.arms.rewards
    widths = np.einsum("ki,ij,kj->k", arms, truth, arms)
    np.testing.assert_allclose(view.arms.squared_widths, widths, rtol=1e-8, atol=1e-14)
    # one comes late, when other arms are there: it is learned through the spare row
    show(state, -rows, 0, 2)
    show(state, rows[1:], 2, 3)
    update(state, clock_at(7), 2, 0.3)
    np.testing.assert_allclose(state.open_decisions.gram, np.outer(rows[0], rows[0]), atol=1e-12)
    show(state, rows[:1], 2, 3)
    dropped(state, clock_at(7), 2)
    assert state.open_decisions.total[0] == 0
    assert not state.open_decisions.gram.any()


@pytest.mark.slow
@pytest.mark.parametrize("policy", [sl.IDS(), sl.Stakes()], ids=["IDS", "Stakes"])
def test_looking_at_past_sets_does_no_harm(policy: sl.extend.Policy) -> None:
    stream = sphere_stream(8, 3, 0.1)
    runs = [sl.simulate(stream, policy, 4000, seed, [1000, 4000]) for seed in range(10)]
    regret = np.mean([run.regret for run in runs], axis=0)
    assert 0 < regret[1] < 2.5 * regret[0]
    assert regret[0] < 0.1 * 1000
