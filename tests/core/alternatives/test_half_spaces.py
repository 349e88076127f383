"""Half-space alternatives: closed form against general solvers, and arms that nearly coincide."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from sightline.core.alternatives import compare, half_spaces, locate_alternatives
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares
from sightline.core.model import bandit_model
from tests import naive
from tests.core.helpers import compare_to_best, fed, flat_fed, observe_all, random_fed, shifts_of
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
sizes = {"k": st.integers(2, 9), "d": st.integers(1, 5), "n": st.integers(1, 80)}


def halfspaces(estimate: LeastSquares) -> tuple[int, Array, float, Array]:
    """Return x-hat, distances, the least of them, and nu(z) - theta for all z but x-hat."""
    alternatives = half_spaces(len(estimate.arms.rewards))
    comparison = compare_to_best(alternatives, estimate)
    best, least = comparison
    assert locate_alternatives(alternatives, estimate, comparison) == least
    return best, alternatives.distances, least, shifts_of(alternatives, estimate, comparison)


@settings(deadline=None)
@given(seed=seeds, **sizes)
def test_closed_form(seed: int, k: int, d: int, n: int) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    best, ours, least, shifts = halfspaces(estimate)
    truth_shifts, truth = naive.alternatives(estimate.arms.rewards, theta, V, best)
    scale = truth[np.isfinite(truth)].max()
    np.testing.assert_allclose(ours, truth, rtol=1e-9, atol=1e-12 * scale)
    np.testing.assert_allclose(shifts, truth_shifts, atol=1e-10 * np.abs(truth_shifts).max())
    assert least == ours.min()
    assert ours[best] == math.inf


@settings(deadline=None)
@given(seed=seeds, **sizes)
def test_optimality_conditions(seed: int, k: int, d: int, n: int) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    best, _, _, shifts = halfspaces(estimate)
    for z in set(range(k)) - {best}:
        nu = naive.alternative_kkt(theta, V, estimate.arms.rewards[best], estimate.arms.rewards[z])
        np.testing.assert_allclose(theta + shifts[z], nu, atol=1e-9 * (1.0 + np.abs(nu).max()))


@pytest.mark.parametrize("seed", range(6))
def test_general_minimiser_finds_no_closer_alternative(seed: int) -> None:
    estimate, theta, V = random_fed(seed, k=4, d=3, n=30)
    best, distances, _, shifts = halfspaces(estimate)
    for z in set(range(4)) - {best}:
        u = estimate.arms.rewards[z] - estimate.arms.rewards[best]
        found = minimize(
            lambda nu: (nu - theta) @ V @ (nu - theta),
            x0=theta + u,
            jac=lambda nu: 2.0 * V @ (nu - theta),
            constraints={"type": "ineq", "fun": lambda nu, u=u: nu @ u, "jac": lambda _, u=u: u},
            method="SLSQP",
            options={"ftol": 1e-9, "maxiter": 500},
        )
        assert found.success
        # at its optimum the quadratic is flat: half the digits of the value hold for the point
        assert distances[z] == pytest.approx(found.fun, rel=1e-6)
        np.testing.assert_allclose(theta + shifts[z], found.x, atol=1e-4)


@settings(deadline=None)
@given(seed=seeds, **sizes)
def test_both_arms_are_equally_good_at_the_alternative(seed: int, k: int, d: int, n: int) -> None:
    estimate = random_fed(seed, k, d, n).estimate
    best, distances, _, shifts = halfspaces(estimate)
    V = naive.inverse(estimate.learned.gram_inverse)
    for z in set(range(k)) - {best}:
        u = estimate.arms.rewards[z] - estimate.arms.rewards[best]
        nu = estimate.learned.theta + shifts[z]
        size = np.linalg.norm(u) * np.linalg.norm(estimate.learned.theta)
        # the norm of u may lose three digits before it is computed from u itself
        assert abs(nu @ u) <= 1e-10 * size
        assert shifts[z] @ V @ shifts[z] == pytest.approx(distances[z], rel=1e-8, abs=1e-12)


def test_an_arm_equal_to_the_best_is_no_alternative() -> None:
    actions = np.array([[0.3, 0.4], [1.0, -0.2], [1.0, -0.2], [0.0, 1.0]])
    rng = np.random.default_rng(0)
    arms = rng.integers(4, size=50)
    estimate = fed(actions, 1.0, arms, actions[arms] @ [1.0, 0.0]).estimate
    best, distances, least, _ = halfspaces(estimate)
    assert best == 1
    assert distances[2] == math.inf
    assert least == min(distances[0], distances[3]) < math.inf


def test_equal_arms_stay_equal_where_arms_do_not_span_the_space() -> None:
    """A last bit between twins would make any evidence of nothing."""
    for seed in range(300):
        rng = np.random.default_rng(seed)
        k, d = int(rng.integers(3, 14)), int(rng.integers(2, 9))
        rank = int(rng.integers(1, d))
        actions = rng.standard_normal((k, rank)) @ rng.standard_normal((rank, d))
        actions[-1] = actions[0]
        estimate = least_squares(bandit_model(actions), 1.0)
        alternatives = half_spaces(k)
        compare(alternatives, estimate, 0)
        assert alternatives.distances[-1] == math.inf, f"seed {seed}"


def test_one_arm_has_no_alternative() -> None:
    estimate = least_squares(bandit_model(np.array([[1.0, 2.0]])), 1.0)
    assert halfspaces(estimate)[2] == math.inf


@pytest.mark.parametrize("regulariser", [1e-4, 1.0])
def test_arms_that_do_not_span_the_space(regulariser: float) -> None:
    estimate, coordinates, theta, V = flat_fed(4, 500, regulariser)
    best, distances, _, _ = halfspaces(estimate)
    _, truth = naive.alternatives(coordinates, theta, V, best)
    np.testing.assert_allclose(distances, truth, rtol=1e-8)


@pytest.mark.parametrize("distance", [1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12, 1e-15])
@pytest.mark.parametrize("n", [20, 1500])
def test_arms_that_nearly_coincide(distance: float, n: int) -> None:
    # z = x-hat + distance e_2: r_z = theta_2^2 / (V^-1)_22 whatever the distance
    actions = np.array([[1.0, 0.0], [1.0, distance], [0.0, 1.0]])
    rng = np.random.default_rng(1)
    arms = rng.integers(3, size=n)
    rewards = actions[arms] @ [1.0, -0.3] + 0.1 * rng.standard_normal(n)
    estimate, theta, V = fed(actions, 1.0, arms, rewards)
    best, distances, _, shifts = halfspaces(estimate)
    assert best == 0
    assert distances[1] == pytest.approx(theta[1] ** 2 / naive.inverse(V)[1, 1], rel=1e-9)
    assert (theta + shifts[1])[1] == pytest.approx(0.0, abs=1e-9 * abs(theta[1]))


@settings(deadline=None)
@given(seed=seeds, d=st.integers(1, 4), n=st.integers(1, 50))
def test_the_zero_arm_as_the_best(seed: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((4, d))
    actions = np.vstack([np.zeros(d), directions * -np.sign(directions[:, :1])])
    arms = rng.integers(1, 5, size=n)
    estimate, theta, V = fed(actions, 1.0, arms, actions[arms] @ np.eye(d)[0])
    best, distances, least, _ = halfspaces(estimate)
    if best == 0:  # else some arm looks better than nothing, which the other tests cover
        truth = [(x @ theta) ** 2 / naive.squared_norm(x, V) for x in actions[1:]]
        np.testing.assert_allclose(distances[1:], truth, rtol=1e-9)
        assert distances[0] == math.inf
    assert least == distances.min() < math.inf


def test_no_shift_where_nothing_separates_the_arms() -> None:
    estimate = least_squares(bandit_model(np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])), 1.0)
    _, distances, least, shifts = halfspaces(estimate)
    assert distances.tolist() == [math.inf, 0.0, 0.0]
    assert least == 0.0
    np.testing.assert_array_equal(shifts, 0.0)


def test_observing_the_best_alone_leaves_its_rivals_apart() -> None:
    """A pure direction: only what was observed along u moves the distance to the half-space."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0]])
    estimate = least_squares(bandit_model(actions), 1.0)
    observe_all(estimate, np.zeros(9, dtype=np.int64), np.full(9, 2.0))
    _, distances, _, _ = halfspaces(estimate)
    # theta = (1.8, 0), V = diag(10, 1): r = 1.8^2 / (1/10 + 1)
    assert distances[1] == pytest.approx(1.8**2 / 1.1, rel=1e-14)


def test_the_best_arm_is_no_alternative_to_itself_however_small_the_regulariser() -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]])
    estimate = least_squares(bandit_model(actions), 1e-16)
    observe_all(estimate, np.array([2]), np.array([0.5]))
    alternatives = half_spaces(3)
    compare(alternatives, estimate, 2)
    assert (alternatives.separations[2], alternatives.shortfalls[2]) == (0.0, 0.0)
    assert alternatives.distances[2] == math.inf
