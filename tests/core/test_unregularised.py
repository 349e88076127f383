"""Unregularised estimates against the normal equations, in any units of the features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.estimation.least_squares import observe
from sightline.core.estimation.unregularised import first_unplayed, forget, unregularised
from tests import naive
from tests.core.helpers import flat_arms
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)


def check(actions: Array, seed: int) -> None:
    """The regulariser changes V >= I by 1e-8, and coordinates are at most 2."""
    rng = np.random.default_rng(seed)
    estimate, members = unregularised(actions)
    basis = naive.spanning(actions, np.zeros(actions.shape[1]))[0]
    played = [int(x) for x in members] + rng.integers(len(actions), size=20).tolist()
    rewards = rng.standard_normal(len(played))
    for arm, reward in zip(played, rewards.tolist(), strict=True):
        observe(estimate, arm, reward)
    xs = basis[played]
    G = xs.T @ xs
    np.testing.assert_allclose(
        estimate.means, basis @ naive.solve(G, xs.T @ rewards), rtol=1e-6, atol=1e-6
    )
    widths = [naive.squared_norm(x, G) for x in basis]
    np.testing.assert_allclose(estimate.squared_widths, widths, rtol=1e-6)


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
    one, members = unregularised(actions)
    other, same = unregularised(actions * [unit, 1.0, 1.0])
    np.testing.assert_array_equal(members, same)
    np.testing.assert_allclose(one.actions, other.actions, rtol=1e-12, atol=1e-15)


@settings(deadline=None)  # the first example compiles
@given(seeds)
def test_estimates_before_and_after_arms_span_the_space(seed: int) -> None:
    """Arms that are no members of the spanner mix its directions, known and unknown."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((9, 4))
    estimate, members = unregularised(actions)
    played = [x for x in range(9) if x not in members] * 3
    rewards = rng.standard_normal(len(played))
    for arm, reward in zip(sorted(played), rewards.tolist(), strict=True):
        observe(estimate, arm, reward)
    xs = actions[sorted(played)]
    expected = actions @ naive.solve(xs.T @ xs, xs.T @ rewards)
    condition = np.linalg.cond(estimate.actions[sorted(played)]) ** 2
    np.testing.assert_allclose(estimate.means, expected, atol=1e-6 * condition)


def test_zero_arms() -> None:
    estimate, members = unregularised(np.zeros((3, 2)))
    assert members.size == 0
    observe(estimate, 0, 1.0)
    assert estimate.means.tolist() == estimate.squared_widths.tolist() == [0.0, 0.0, 0.0]


def test_what_is_still_to_be_played() -> None:
    estimate, members = unregularised(np.eye(2))
    first, second = members.tolist()
    assert first_unplayed(estimate, members, 1.0) == first
    observe(estimate, first, 0.0)
    assert first_unplayed(estimate, members, 1.0) == second
    observe(estimate, second, 0.0)
    assert first_unplayed(estimate, members, 1.0) == -1
    assert first_unplayed(estimate, members, 2.0) == first


def test_forgetting_leaves_nothing() -> None:
    estimate, _ = unregularised(np.eye(3))
    fresh, _ = unregularised(np.eye(3))
    for arm in (0, 1, 2, 1):
        observe(estimate, arm, 1.0)
    forget(estimate)
    for name in ("pulls", "rewards", "means", "squared_widths", "gram_inverse", "log_det"):
        np.testing.assert_array_equal(getattr(estimate, name), getattr(fresh, name))
    assert estimate.counts.tolist() == [0, 0]
