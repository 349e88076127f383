"""Gap estimates against the definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import ALL_ARMS
from sightline.core.gaps import (
    GAPS,
    gap_estimates,
    optimistic_arm,
    upper_bound,
)
from sightline.core.least_squares import best_arm, least_squares
from sightline.core.model import bandit_model
from tests import naive
from tests.core.helpers import random_fed, round_of

seeds = st.integers(0, 2**32 - 1)
sizes = {"k": st.integers(1, 9), "d": st.integers(1, 5), "n": st.integers(0, 80)}


@settings(deadline=None)
@given(seed=seeds, beta=st.floats(1e-3, 1e3), **sizes)
def test_gaps_and_optimism(seed: int, beta: float, k: int, d: int, n: int) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    scores = naive.ucb_scores(estimate.arms.rewards, theta, V, beta)
    truth = naive.value_gaps(estimate.arms.rewards, theta, V, beta)
    gaps = np.zeros(k)
    round_ = round_of(estimate, beta=beta)
    gap_estimates(GAPS["value"], round_, gaps)
    assert round_.ucb_arm == int(np.argmax(scores))
    ours = [upper_bound(estimate, beta, x) for x in range(k)]
    scale = np.abs(scores).max() + np.abs(truth).max()
    np.testing.assert_allclose(ours, scores, rtol=0.0, atol=1e-11 * scale)
    np.testing.assert_allclose(gaps, truth, rtol=0.0, atol=1e-11 * scale)


@settings(deadline=None)
@given(seed=seeds, beta=st.floats(1e-3, 1e3), **sizes)
def test_gap_is_distance_to_the_best_plus_estimation_error(
    seed: int, beta: float, k: int, d: int, n: int
) -> None:
    estimate = random_fed(seed, k, d, n).estimate
    gaps = np.zeros(k)
    gap_estimates(GAPS["value"], round_of(estimate, beta=beta), gaps)
    best = best_arm(estimate)
    assert gaps.min() == gaps[best] > 0.0
    behind = estimate.arms.means[best] - estimate.arms.means
    np.testing.assert_allclose(gaps, behind + gaps[best], rtol=1e-12)


def test_the_zero_arm_has_no_width() -> None:
    estimate = least_squares(bandit_model(np.array([[0.0, 0.0], [1.0, 2.0]])), 1.0)
    assert upper_bound(estimate, 9.0, 0) == 0.0
    assert upper_bound(estimate, 9.0, 1) == pytest.approx(3.0 * np.sqrt(5.0), rel=1e-15)


def test_a_width_that_rounds_below_zero_is_zero() -> None:
    estimate = least_squares(bandit_model(np.array([[1.0], [0.5]])), 1.0)
    estimate.arms.squared_widths[0] = -1e-18
    assert upper_bound(estimate, 9.0, 0) == 0.0


def test_first_among_equals() -> None:
    estimate = least_squares(bandit_model(np.array([[0.5, 0.0], [1.0, 0.0], [0.0, 1.0]])), 1.0)
    assert optimistic_arm(estimate, 1.0, ALL_ARMS) == 1
