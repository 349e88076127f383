"""Unregularised estimates against the normal equations, in any units of the features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import block
from sightline.core.least_squares import observe
from sightline.core.model import Model, bandit_model
from sightline.core.unregularised import (
    first_unplayed,
    forget,
    next_outside,
    note_played,
    span,
    spans,
    unregularised,
)
from tests import naive
from tests.core.helpers import flat_arms
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)


def check(actions: Array, seed: int) -> None:
    """The regulariser changes V >= I by 1e-8, and coordinates are at most 2."""
    rng = np.random.default_rng(seed)
    estimate, members = unregularised(bandit_model(actions), "a policy")
    basis = naive.spanning(actions, np.zeros(actions.shape[1]))[0]
    played = [int(x) for x in members] + rng.integers(len(actions), size=20).tolist()
    rewards = rng.standard_normal(len(played))
    for arm, reward in zip(played, rewards.tolist(), strict=True):
        observe(estimate, arm, reward)
    xs = basis[played]
    G = xs.T @ xs
    np.testing.assert_allclose(
        estimate.arms.means, basis @ naive.solve(G, xs.T @ rewards), rtol=1e-6, atol=1e-6
    )
    widths = [naive.squared_norm(x, G) for x in basis]
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=1e-6)


@settings(deadline=None)  # the first example compiles
@given(seeds)
def test_estimates_of_spanning_arms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    check(rng.standard_normal((rng.integers(3, 8), 3)), seed)


@settings(deadline=None)  # the first example compiles
@given(seeds)
def test_estimates_of_arms_in_a_plane(seed: int) -> None:
    check(flat_arms(seed, 5, 4, 2), seed)


@pytest.mark.parametrize("unit", [1e-60, 1e60])
def test_units_of_features_do_not_matter(unit: float) -> None:
    actions = np.random.default_rng(0).standard_normal((5, 3))
    one, members = unregularised(bandit_model(actions), "a policy")
    other, same = unregularised(bandit_model(actions * [unit, 1.0, 1.0]), "a policy")
    np.testing.assert_array_equal(members, same)
    np.testing.assert_allclose(one.arms.rewards, other.arms.rewards, rtol=1e-12, atol=1e-15)


@settings(deadline=None)  # the first example compiles
@given(seeds)
def test_estimates_before_and_after_arms_span_the_space(seed: int) -> None:
    """Arms that are no members of the spanner mix its directions, known and unknown."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((9, 4))
    estimate, members = unregularised(bandit_model(actions), "a policy")
    played = [x for x in range(9) if x not in members] * 3
    rewards = rng.standard_normal(len(played))
    for arm, reward in zip(sorted(played), rewards.tolist(), strict=True):
        observe(estimate, arm, reward)
    xs = actions[sorted(played)]
    expected = actions @ naive.solve(xs.T @ xs, xs.T @ rewards)
    condition = np.linalg.cond(estimate.arms.rewards[sorted(played)]) ** 2
    np.testing.assert_allclose(estimate.arms.means, expected, atol=1e-6 * condition)


@settings(deadline=None)  # the first example compiles
@given(seeds)
def test_estimates_from_noise_that_differs_between_arms(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions, levels = rng.standard_normal((6, 3)), np.exp(rng.uniform(-2.0, 2.0, 6))
    model = bandit_model(actions, levels)
    weights = model.needs_weights("a policy")
    estimate, members = unregularised(model, "a policy")
    played = [int(x) for x in members] + rng.integers(6, size=20).tolist()
    rewards = rng.standard_normal(len(played))
    for arm, reward in zip(played, rewards.tolist(), strict=True):
        observe(estimate, arm, weights[arm] * reward)
    xs = weights[played, None] * actions[played]
    G = xs.T @ xs
    theta = naive.solve(G, xs.T @ (weights[played] * rewards))
    np.testing.assert_allclose(estimate.arms.means, actions @ theta, rtol=1e-6, atol=1e-6)
    widths = [naive.squared_norm(x, G) for x in actions]
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=1e-6)
    np.testing.assert_allclose(estimate.arms.seen_widths, weights**2 * widths, rtol=1e-6)


@pytest.mark.parametrize("level", [1e-4, 1e4])
def test_an_arm_that_is_far_noisier_than_the_other_is_not_regularised(level: float) -> None:
    model = bandit_model(np.eye(2), [1.0, level])
    weights = model.needs_weights("a policy")
    estimate, _ = unregularised(model, "a policy")
    for arm, reward in enumerate((3.0, -2.0)):
        observe(estimate, arm, weights[arm] * reward)
    np.testing.assert_allclose(estimate.arms.means, [3.0, -2.0], rtol=1e-6)


def test_outcomes_that_are_no_rewards_are_refused() -> None:
    model = Model(np.eye(2), np.ones((2, 2, 2)), 1.0, None)
    with pytest.raises(ValueError, match="E4 needs outcomes that are noisy rewards"):
        unregularised(model, "E4")


def test_zero_arms() -> None:
    estimate, members = unregularised(bandit_model(np.zeros((3, 2))), "a policy")
    assert members.size == 0
    observe(estimate, 0, 1.0)
    assert estimate.arms.means.tolist() == estimate.arms.squared_widths.tolist() == [0.0, 0.0, 0.0]


def test_what_is_still_to_be_played() -> None:
    estimate, members = unregularised(bandit_model(np.eye(2)), "a policy")
    first, second = members.tolist()
    assert first_unplayed(estimate, members, 1.0) == first
    observe(estimate, first, 0.0)
    assert first_unplayed(estimate, members, 1.0) == second
    observe(estimate, second, 0.0)
    assert first_unplayed(estimate, members, 1.0) == -1
    assert first_unplayed(estimate, members, 2.0) == first


def test_forgetting_leaves_nothing() -> None:
    estimate, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    fresh, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    for arm in (0, 1, 2, 1):
        observe(estimate, arm, 1.0)
    forget(estimate)
    for name in ("pulls", "sums", "means", "squared_widths"):
        np.testing.assert_array_equal(getattr(estimate.arms, name), getattr(fresh.arms, name))
    for name in ("gram_inverse", "log_det"):
        np.testing.assert_array_equal(getattr(estimate.learned, name), getattr(fresh.learned, name))
    assert estimate.learned.rounds.tolist() == estimate.learned.since_refresh.tolist() == [0]


@settings(deadline=None, max_examples=30)
@given(seeds, st.booleans())
def test_arms_outside_the_span_in_contexts_that_come_as_they_like(seed: int, flat: bool) -> None:
    """Against residuals of a least-squares fit by the arms played."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((8, 4))
    actions[:3, 1:] = 0.0  # the first context is a line
    actions[3:5] = actions[0]
    if flat:
        actions[:, 3] = actions[:, 2]
    estimate, members = unregularised(bandit_model(actions), "a policy")
    rows, played = estimate.arms.rewards, span(estimate.arms.rewards.shape[1], len(members))
    offers = [block(0, 3, 0), block(3, 6, 1), block(6, 8, 2)]
    xs = np.zeros((0, rows.shape[1]))
    for _ in range(20):
        offer = offers[rng.integers(3)]
        fitted = xs.T @ np.linalg.lstsq(xs.T, rows.T, rcond=None)[0] if len(xs) else 0.0 * rows.T
        distances = np.linalg.norm(rows.T - fitted, axis=0)
        own = distances[offer.start : offer.stop]
        arm = next_outside(played, estimate, offer)
        if arm < 0:
            assert own.max() < 2e-4
            arm = int(rng.integers(offer.start, offer.stop))
        else:
            assert offer.start <= arm < offer.stop
            assert distances[arm] >= own.max() * (1 - 1e-8)
        observe(estimate, arm, 0.0)
        note_played(played, estimate, arm)
        xs = np.vstack([xs, rows[arm]])
        rank = np.linalg.matrix_rank(xs, tol=1e-6)
        assert played.rank[0] == rank
        assert spans(played) == (rank == len(members))


def test_a_table_of_zeros_is_spanned_by_nothing() -> None:
    estimate, members = unregularised(bandit_model(np.zeros((3, 2))), "a policy")
    played = span(1, len(members))
    assert spans(played)
    assert next_outside(played, estimate, block(0, 2, 0)) == -1


def test_what_is_not_seen_beside_the_regulariser_is_inside() -> None:
    actions = np.array([[1.0, 0.0], [1.0, 5e-5], [1.0, 2e-4], [0.0, 1.0]])
    estimate, members = unregularised(bandit_model(actions), "a policy")
    played = span(2, len(members))
    note_played(played, estimate, 0)
    assert next_outside(played, estimate, block(0, 2, 0)) == -1
    assert next_outside(played, estimate, block(0, 3, 0)) == 2
    note_played(played, estimate, 1)
    assert not spans(played)
