"""Least squares, one observation at a time, against all data at once."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.least_squares import best_arm, least_squares, refresh
from sightline.core.model import bandit_model
from tests import naive
from tests.core.helpers import (
    Fed,
    Flat,
    fed,
    flat_fed,
    observe_all,
    random_data,
    random_fed,
)
from tests.naive import Array, Ints


def assert_close(ours: Array, truth: Array, tolerance: float) -> None:
    """Compare arrays whose entries may cancel: they are judged by the size of the largest."""
    np.testing.assert_allclose(ours, truth, rtol=0.0, atol=tolerance * np.abs(truth).max())


def assert_agrees(both: Fed, tolerance: float) -> None:
    estimate, theta, V = both
    assert_close(estimate.learned.theta, theta, tolerance)
    assert_close(estimate.arms.means, estimate.arms.rewards @ theta, tolerance)
    assert_close(estimate.learned.gram_inverse, naive.inverse(V), tolerance)
    widths = np.array([naive.squared_norm(x, V) for x in estimate.arms.rewards])
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=tolerance)
    log_det = naive.log_det_ratio(V, estimate.regulariser)
    assert estimate.learned.log_det[0] == pytest.approx(log_det, rel=tolerance)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    k=st.integers(1, 8),
    d=st.integers(1, 5),
    n=st.integers(1, 60),
    regulariser=st.sampled_from([1e-2, 0.3, 1.0, 3.0, 50.0]),
)
def test_agrees_with_all_data_at_once(
    seed: int, k: int, d: int, n: int, regulariser: float
) -> None:
    # condition numbers stay below 1e5 here, which costs five of sixteen digits
    assert_agrees(random_fed(seed, k, d, n, regulariser), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("regulariser", [1e-8, 1e-3, 1.0, 100.0])
def test_agrees_after_ten_thousand_updates(regulariser: float) -> None:
    assert_agrees(random_fed(3, 7, 3, 10_000, regulariser), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("regulariser", [1e-8, 1.0])
def test_agrees_where_refreshes_are_rare(regulariser: float) -> None:
    """Many dimensions: directions fall one after the other, most of them between refreshes."""
    assert_agrees(random_fed(5, 200, 40, 3_000, regulariser), 1e-10)


@pytest.mark.parametrize("regulariser", [0.05, 0.3, 1e-8, 1.0, 3.0, 7.0, 11.0])
@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_nothing_is_known_before_any_data(regulariser: float, d: int) -> None:
    actions = np.random.default_rng(d).standard_normal((4, d))
    estimate = least_squares(bandit_model(actions), regulariser)
    assert estimate.learned.log_det[0] == 0.0  # V is lambda I: a logarithm just below 0 has no root
    np.testing.assert_array_equal(estimate.arms.means, 0.0)
    np.testing.assert_allclose(
        estimate.arms.squared_widths, (actions**2).sum(axis=1) / regulariser, rtol=1e-14
    )


def test_refresh_changes_nothing_but_rounding() -> None:
    both = random_fed(11, 6, 4, 1500)
    before = [both.estimate.learned.theta.copy(), both.estimate.arms.squared_widths.copy()]
    refresh(both.estimate)
    np.testing.assert_allclose(both.estimate.learned.theta, before[0], rtol=1e-10)
    np.testing.assert_allclose(both.estimate.arms.squared_widths, before[1], rtol=1e-10)
    assert both.estimate.learned.rounds.tolist() == [1500]
    assert both.estimate.learned.since_refresh.tolist() == [0]


def test_best_arm_is_the_first_among_equals() -> None:
    actions = np.array([[0.5, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    estimate = least_squares(bandit_model(actions), 1.0)
    assert best_arm(estimate) == 0
    observe_all(estimate, np.array([1]), np.array([2.0]))
    assert best_arm(estimate) == 1


def assert_flat_agrees(both: Flat, tolerance: float) -> None:
    estimate, coordinates, theta, V = both
    assert_close(estimate.arms.means, coordinates @ theta, tolerance)
    widths = [naive.squared_norm(x, V) for x in coordinates]
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=tolerance)
    # along the normal V / lambda is 1 and adds nothing to the logarithm
    log_det = naive.log_det_ratio(V, estimate.regulariser)
    assert estimate.learned.log_det[0] == pytest.approx(log_det, rel=tolerance)


@pytest.mark.parametrize("regulariser", [1e-8, 1e-4, 1.0])
def test_arms_that_do_not_span_the_space(regulariser: float) -> None:
    assert_flat_agrees(flat_fed(0, 1000, regulariser), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("regulariser", [1e-8, 1e-4, 1.0])
def test_arms_that_do_not_span_the_space_after_ten_thousand(regulariser: float) -> None:
    assert_flat_agrees(flat_fed(0, 10_000, regulariser), 1e-10)


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "regulariser"), [(2, 1e-8), (0, 1e-6), (3, 1e-4), (3, 1.0)])
def test_arms_that_do_not_span_the_space_after_three_million(seed: int, regulariser: float) -> None:
    both = flat_fed(seed, 3_000_000, regulariser)
    assert np.all(np.isfinite(both.estimate.learned.gram_inverse))
    assert np.linalg.eigvalsh(both.estimate.learned.gram_inverse).min() > 0.0
    # the truth itself is a sum of 3e6 terms, off by as many roundings at worst
    assert_flat_agrees(both, 1e-9)


def by_arm(actions: Array, arms: Ints, rewards: Array, regulariser: float) -> tuple[Array, Array]:
    """Return theta and V from exact sums per arm, free of the drift of long running sums."""
    counts = np.bincount(arms, minlength=len(actions)).astype(np.float64)
    totals = np.array([math.fsum(rewards[arms == z]) for z in range(len(actions))])
    V = regulariser * np.eye(actions.shape[1]) + (actions.T * counts) @ actions
    return naive.solve(V, actions.T @ totals), V


@pytest.mark.slow
@pytest.mark.parametrize(("n", "regulariser"), [(10**6, 1e-8), (10**6, 1.0), (10**7, 1.0)])
def test_drift_stays_bounded(n: int, regulariser: float) -> None:
    rng = np.random.default_rng(1)
    actions = rng.standard_normal((6, 3))
    arms, rewards = random_data(rng, actions, n)
    estimate = least_squares(bandit_model(actions), regulariser)
    observe_all(estimate, arms, rewards)
    np.testing.assert_array_equal(estimate.learned.gram_inverse, estimate.learned.gram_inverse.T)
    assert np.linalg.eigvalsh(estimate.learned.gram_inverse).min() > 0.0
    # rewards are noisy, so the roundings of their sums average out: sqrt(n) bits, 1e-12 at 1e7
    assert_agrees(Fed(estimate, *by_arm(actions, arms, rewards, regulariser)), 1e-10)


def test_data_are_never_read_twice() -> None:
    """The same data in another order give the same estimate: nothing but sums is kept."""
    rng = np.random.default_rng(8)
    actions = rng.standard_normal((4, 2))
    arms, rewards = random_data(rng, actions, 300)
    order = rng.permutation(300)
    one = fed(actions, 0.5, arms, rewards).estimate
    other = fed(actions, 0.5, arms[order], rewards[order]).estimate
    np.testing.assert_allclose(one.learned.theta, other.learned.theta, rtol=1e-11)
    assert one.learned.log_det[0] == pytest.approx(other.learned.log_det[0], rel=1e-12)


@pytest.mark.parametrize("size", [1e8, 1e10, 1e20])
def test_one_arm_over_and_over_where_the_inverse_has_lost_its_digits(size: float) -> None:
    """V^-1 keeps 1 / lambda in all other directions, beside which what is left here is rounding."""
    rng = np.random.default_rng(0)
    actions = size * rng.standard_normal((6, 4))
    estimate = least_squares(bandit_model(actions), 1.0)
    observe_all(estimate, np.zeros(40, dtype=np.int64), np.full(40, 3.0 * size))
    for array in (*estimate.learned[:3], estimate.arms.means, estimate.arms.squared_widths):
        assert np.isfinite(array).all()
    refresh(estimate)
    assert estimate.arms.means[0] == pytest.approx(3.0 * size, rel=1e-9)
    if size < 1e20:
        assert estimate.arms.squared_widths[0] == pytest.approx(1.0 / 40.0, rel=1e-6)
