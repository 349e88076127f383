"""Least squares from outcomes that are not rewards: one number or several, along other rows."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.estimate import table_of_arms, weighted_table
from sightline.core.least_squares import (
    REFRESH_AFTER_FALL,
    REFRESH_AFTER_UPDATES,
    least_squares,
    noise_variance,
    refresh,
    update_seen_widths,
)
from sightline.core.model import Model, bandit_model
from tests import naive, naive_observations
from tests.core.helpers import observe_all
from tests.core.observations import Told, random_model, random_outcomes, random_told, told
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
both_kinds = pytest.mark.parametrize("per_arm", [1, 2])


def assert_close(ours: Array, truth: Array, tolerance: float) -> None:
    """Compare arrays whose entries may cancel: they are judged by the size of the largest."""
    np.testing.assert_allclose(ours, truth, rtol=0.0, atol=tolerance * np.abs(truth).max())


def assert_agrees(case: Told, tolerance: float) -> None:
    estimate, observations, theta, V = case
    learned, arms = estimate.learned, estimate.arms
    assert_close(learned.theta, theta, tolerance)
    assert_close(learned.gram_inverse, naive.inverse(V), tolerance)
    assert_close(arms.means, arms.rewards @ theta, tolerance)
    widths = np.array([naive.squared_norm(x, V) for x in arms.rewards])
    np.testing.assert_allclose(arms.squared_widths, widths, rtol=tolerance)
    update_seen_widths(estimate)
    seen = naive_observations.seen_widths(observations, V)
    np.testing.assert_allclose(arms.seen_widths, seen, rtol=tolerance)
    log_det = naive.log_det_ratio(V, estimate.regulariser)
    assert learned.log_det[0] == pytest.approx(log_det, rel=tolerance)


@both_kinds
@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    k=st.integers(1, 8),
    d=st.integers(1, 5),
    n=st.integers(1, 60),
    regulariser=st.sampled_from([1e-2, 0.3, 1.0, 3.0, 50.0]),
)
def test_agrees_with_all_data_at_once(
    per_arm: int, seed: int, k: int, d: int, n: int, regulariser: float
) -> None:
    case = random_told(seed, max(k, 2), d, n, per_arm, regulariser)
    seen = case.estimate.arms.observations
    assert not seen.are_rewards
    assert (seen.several is None) == (per_arm == 1)
    # condition numbers stay below 1e6 here, which costs six of sixteen digits
    assert_agrees(case, 1e-9)


@both_kinds
def test_agrees_across_a_refresh_after_many_updates(per_arm: int) -> None:
    n = REFRESH_AFTER_UPDATES + 100
    # so large a regulariser that no width falls far
    case = random_told(7, 5, 3, n, per_arm, regulariser=1e4)
    assert case.estimate.learned.rounds[0] == n
    assert case.estimate.learned.since_refresh[0] == 100
    assert_agrees(case, 1e-10)


@both_kinds
def test_agrees_across_refreshes_after_a_fall(per_arm: int) -> None:
    """From 1 / lambda widths fall to about 1 with the first observations."""
    regulariser = 1e-8
    case = random_told(3, 5, 3, 200, per_arm, regulariser)
    assert regulariser < REFRESH_AFTER_FALL
    assert case.estimate.learned.since_refresh[0] < 200
    assert_agrees(case, 1e-9)


@pytest.mark.slow
@both_kinds
@pytest.mark.parametrize("regulariser", [1e-8, 1.0])
def test_agrees_after_ten_thousand_updates(per_arm: int, regulariser: float) -> None:
    assert_agrees(random_told(3, 7, 3, 10_000, per_arm, regulariser), 1e-10)


@both_kinds
def test_refresh_changes_nothing_but_rounding(per_arm: int) -> None:
    case = random_told(11, 6, 4, 1500, per_arm)
    estimate = case.estimate
    update_seen_widths(estimate)
    before = [estimate.learned.theta.copy(), estimate.arms.seen_widths.copy()]
    refresh(estimate)
    np.testing.assert_allclose(estimate.learned.theta, before[0], rtol=1e-10)
    np.testing.assert_allclose(estimate.arms.seen_widths, before[1], rtol=1e-10)
    np.testing.assert_array_equal(estimate.arms.refreshed_widths, estimate.arms.seen_widths)


@both_kinds
def test_rows_that_do_not_span_the_space(per_arm: int) -> None:
    """Rewards and observations in a plane of R^4: no inner product changes with the basis."""
    rng = np.random.default_rng(5)
    flat = random_model(rng, 5, 2, per_arm)
    basis = np.linalg.qr(rng.standard_normal((4, 4)))[0][:2]
    model = Model(flat.rewards @ basis, flat.observations @ basis, flat.noise_std, flat.weights)
    arms, outcomes = random_outcomes(rng, flat, 200)
    estimate = least_squares(model, 0.5)
    assert estimate.arms.rewards.shape == (5, 2)
    observe_all(estimate, arms, outcomes[:, 0].copy() if per_arm == 1 else outcomes)
    plain = told(flat, 0.5, arms, outcomes)
    np.testing.assert_allclose(estimate.arms.means, flat.rewards @ plain.theta, rtol=1e-10)
    widths = [naive.squared_norm(x, plain.V) for x in flat.rewards]
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=1e-10)
    update_seen_widths(estimate)
    seen = naive_observations.seen_widths(flat.observations, plain.V)
    np.testing.assert_allclose(estimate.arms.seen_widths, seen, rtol=1e-10)
    log_det = naive.log_det_ratio(plain.V, 0.5)
    assert estimate.learned.log_det[0] == pytest.approx(log_det, rel=1e-10)


def test_what_only_observations_span_is_kept() -> None:
    """The reward varies along one axis; what is seen varies along another as well."""
    rewards, seen = np.array([[1.0, 0.0], [2.0, 0.0]]), np.array([[[1.0, 1.0]], [[0.0, 1.0]]])
    model = Model(rewards, seen, 1.0, None)
    estimate = least_squares(model, 1.0)
    assert estimate.arms.rewards.shape == (2, 2)
    observe_all(estimate, np.array([0, 1]), np.array([3.0, 1.0]))
    theta, _ = naive_observations.truth(
        model.observations, np.array([0, 1]), np.array([[3.0], [1.0]]), 1.0
    )
    np.testing.assert_allclose(estimate.arms.means, model.rewards @ theta, rtol=1e-14)


def test_one_row_per_arm_is_the_case_p_1_of_several() -> None:
    """A second row of zeros shows nothing but noise, which changes no estimate."""
    rng = np.random.default_rng(2)
    one = random_model(rng, 4, 3, 1)
    arms, outcomes = random_outcomes(rng, one, 100)
    padded = np.concatenate([one.observations, np.zeros((4, 1, 3))], axis=1)
    both = Model(one.rewards, padded, one.noise_std, None)
    noise = rng.standard_normal((100, 1))
    single = told(one, 1.0, arms, outcomes).estimate
    several = told(both, 1.0, arms, np.hstack([outcomes, noise])).estimate
    np.testing.assert_allclose(several.learned.theta, single.learned.theta, rtol=1e-12)
    update_seen_widths(several)
    np.testing.assert_allclose(several.arms.seen_widths, single.arms.seen_widths, rtol=1e-12)
    assert several.learned.log_det[0] == pytest.approx(single.learned.log_det[0], rel=1e-12)


# --- tables of arms -----------------------------------------------------------------------------


@pytest.mark.parametrize("noise_std", [1.0, 0.3, [0.3, 0.3, 0.3]])
def test_arms_of_equal_noise_show_their_rewards(noise_std: float | list[float]) -> None:
    model = bandit_model(np.eye(3), noise_std)
    assert model.shows_rewards
    assert np.shares_memory(model.rewards, model.observations)
    table = table_of_arms(model)
    assert table.observations.are_rewards
    assert table.observations.rows is table.rewards
    assert table.seen_widths is table.squared_widths


def test_a_table_of_equal_weights_shows_rewards() -> None:
    table = weighted_table(np.eye(2), np.ones(2))
    assert table.observations.are_rewards
    assert table.observations.rows is table.rewards
    assert table.seen_widths is table.squared_widths


def test_a_table_of_weights_shows_weighted_rows() -> None:
    rewards, weights = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0.5, 2.0])
    table = weighted_table(rewards, weights)
    assert not table.observations.are_rewards
    assert not np.shares_memory(table.seen_widths, table.squared_widths)
    np.testing.assert_array_equal(table.rewards, rewards)
    np.testing.assert_array_equal(table.observations.rows, [[0.5, 1.0], [6.0, 8.0]])
    np.testing.assert_array_equal(table.observations.columns, table.observations.rows.T)


def test_a_weighted_table_is_that_of_the_model() -> None:
    model = bandit_model(np.random.default_rng(0).standard_normal((4, 2)), [0.5, 1.0, 2.0, 1.5])
    assert not model.shows_rewards
    assert model.weights is not None
    theirs, ours = table_of_arms(model), weighted_table(model.rewards, model.weights)
    assert not theirs.observations.are_rewards
    np.testing.assert_array_equal(theirs.observations.rows, ours.observations.rows)
    arms, outcomes = random_outcomes(np.random.default_rng(1), model, 50)
    one, other = least_squares(model, 1.0), least_squares(model, 1.0, arms=ours)
    for estimate in (one, other):
        observe_all(estimate, arms, outcomes[:, 0].copy())
    np.testing.assert_array_equal(one.learned.theta, other.learned.theta)
    np.testing.assert_array_equal(one.arms.seen_widths, other.arms.seen_widths)


def test_noise_levels_weigh_the_data_like_weighted_least_squares() -> None:
    """Theta minimises the sum of (r - <x, theta>)^2 / sigma_x^2 and a ridge."""
    rng = np.random.default_rng(4)
    actions, levels = rng.standard_normal((5, 3)), np.exp(rng.uniform(-1.0, 1.0, 5))
    model = bandit_model(actions, levels)
    assert model.weights is not None
    arms = rng.integers(5, size=80)
    rewards = rng.standard_normal(80)
    estimate = least_squares(model, 0.4)
    observe_all(estimate, arms, model.weights[arms] * rewards)
    precisions = (model.noise_std / levels[arms]) ** 2
    V = 0.4 * np.eye(3) + (actions[arms].T * precisions) @ actions[arms]
    theta = naive.solve(V, (actions[arms].T * precisions) @ rewards)
    np.testing.assert_allclose(estimate.learned.theta, theta, rtol=1e-11)
    np.testing.assert_allclose(
        np.sqrt(estimate.arms.seen_widths / estimate.arms.squared_widths),
        model.noise_std / levels,
        rtol=1e-12,
    )
    assert math.sqrt(noise_variance(estimate)) == pytest.approx(model.noise_std, rel=1e-15)
