"""Information gains against double loops over arms and alternatives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.alternatives.half_spaces import (
    BLOCK,
    HalfSpaces,
    half_spaces,
    least_distance,
    mixing_weights,
)
from sightline.core.estimation.least_squares import LeastSquares, best_arm, least_squares
from sightline.core.information.gains import (
    NEGLIGIBLE_WEIGHT,
    Workspace,
    optimistic_gain,
    quadratic_gain,
    workspace,
)
from sightline.core.information.gaps import optimistic_arm
from tests import naive
from tests.core.helpers import random_fed, shifts_of
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
sizes = {"k": st.integers(2, 9), "d": st.integers(1, 5), "n": st.integers(1, 80)}
both_gains = pytest.mark.parametrize("information", ["halfspace", "halfspace-ucb"])


def compiled_round(
    estimate: LeastSquares, beta: float, rate: float, information: str
) -> tuple[HalfSpaces, Workspace]:
    best = best_arm(estimate)
    work = workspace(*estimate.actions.shape)
    alternatives = half_spaces(len(estimate.actions))
    least = least_distance(alternatives, estimate, best)
    mixing_weights(alternatives.distances, least, rate, work.weights)
    if information == "halfspace":
        optimistic_gain(alternatives, estimate, best, beta, work)
    else:
        ucb = optimistic_arm(estimate, beta)
        optimism = math.sqrt(beta * max(estimate.squared_widths[ucb], 0.0))
        quadratic_gain(alternatives, estimate, best, ucb, optimism, work)
    return alternatives, work


def compiled_gains(estimate: LeastSquares, beta: float, rate: float, information: str) -> Array:
    return compiled_round(estimate, beta, rate, information)[1].gains


@both_gains
@settings(deadline=None)
@given(seed=seeds, beta=st.floats(0.01, 100.0), eta=st.floats(0.01, 10.0), **sizes)
def test_gain_is_the_double_sum(
    information: str, seed: int, beta: float, eta: float, k: int, d: int, n: int
) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    actions, xhat = estimate.actions, best_arm(estimate)
    shifts, distances = naive.alternatives(actions, theta, V, xhat)
    q = naive.mixing_weights(distances, eta, 1.0)
    optimism = naive.corrections(actions, theta, V, beta, information)
    truth = naive.information_gain(actions, shifts, q, optimism, xhat)
    ours = compiled_gains(estimate, beta, 0.5 * eta, information)
    # rounding of distances enters the weights multiplied by eta r <= 1e4
    np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=1e-10 * truth.max())


def unpruned(
    estimate: LeastSquares, alternatives: HalfSpaces, work: Workspace, optimism: Array
) -> Array:
    """Return the double sum with the kernel's own weights and shifts: no other rounding."""
    xhat = best_arm(estimate)
    shifts = shifts_of(alternatives, estimate)
    return naive.information_gain(estimate.actions, shifts, work.weights, optimism, xhat)


@both_gains
@settings(deadline=None, max_examples=30)
@given(seed=seeds, rate=st.floats(0.1, 3.0), k=st.integers(4, 12))
def test_dropping_alternatives_changes_nothing(
    information: str, seed: int, rate: float, k: int
) -> None:
    # low noise and many observations: distances in the hundreds, so most weights are negligible
    estimate = random_fed(seed, k, 3, 300).estimate
    beta = 5.0
    alternatives, work = compiled_round(estimate, beta, rate, information)
    optimism = np.sqrt(beta * np.maximum(estimate.squared_widths, 0.0))
    if information == "halfspace-ucb":
        optimism[np.arange(k) != optimistic_arm(estimate, beta)] = 0.0
    truth = unpruned(estimate, alternatives, work, optimism)
    np.testing.assert_allclose(work.gains, truth, rtol=1e-13, atol=1e-13 * truth.max())


def test_some_weights_are_negligible_above() -> None:
    """The test above would be empty if every weight mattered."""
    _, work = compiled_round(random_fed(0, 12, 3, 300).estimate, 5.0, 3.0, "halfspace")
    assert 0 < np.count_nonzero(work.weights < 1e-20) < 12


@both_gains
def test_before_any_data_only_optimism_informs(information: str) -> None:
    actions = np.array([[0.5, 0.0], [0.0, 2.0], [1.0, 0.0]])
    gains = compiled_gains(least_squares(actions, 1.0), 4.0, 1.0, information)
    # theta = 0: no shift at all; I = beta |x|^2 / 2, for the UCB arm alone or for all
    truth = [0.5, 8.0, 2.0] if information == "halfspace" else [0.0, 8.0, 0.0]
    np.testing.assert_allclose(gains, truth, rtol=1e-14)


@settings(deadline=None)
@given(seed=seeds, beta=st.floats(0.01, 100.0), **sizes)
def test_the_ucb_gain_is_the_smaller_and_equal_at_the_ucb_arm(
    seed: int, beta: float, k: int, d: int, n: int
) -> None:
    estimate = random_fed(seed, k, d, n).estimate
    everywhere = compiled_gains(estimate, beta, 0.5, "halfspace")
    at_ucb = compiled_gains(estimate, beta, 0.5, "halfspace-ucb")
    ucb = optimistic_arm(estimate, beta)
    assert at_ucb[ucb] == pytest.approx(everywhere[ucb], rel=1e-12)
    assert np.all(at_ucb <= everywhere * (1 + 1e-12))
    assert np.all(everywhere >= 0.5 * beta * estimate.squared_widths * (1 - 1e-12))


@pytest.mark.slow
@both_gains
def test_more_arms_than_are_weighed_at_once(information: str) -> None:
    estimate, theta, V = random_fed(4, 2 * BLOCK + 10, 3, 200)
    xhat, beta = best_arm(estimate), 3.0
    shifts, distances = naive.alternatives(estimate.actions, theta, V, xhat)
    q = naive.mixing_weights(distances, 0.02, 1.0)
    assert (q > NEGLIGIBLE_WEIGHT).sum() > BLOCK
    optimism = naive.corrections(estimate.actions, theta, V, beta, information)
    truth = naive.information_gain(estimate.actions, shifts, q, optimism, xhat)
    np.testing.assert_allclose(compiled_gains(estimate, beta, 0.01, information), truth, rtol=1e-8)
