"""The interior-point method: Newton's equations by finite differences, its bounds by arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.newton_step import Program, direction, newton_system, square_points
from sightline.core.allocation.program import MOST_STEPS, optimal_allocation, optimal_shares
from sightline.core.allocation.reduced_points import costly_arms, reduced_points
from tests import naive_bounds
from tests.naive import Array

seeds = st.integers(0, 10**6)


def evidence(points: Array, gaps: Array, shares: Array) -> tuple[Array, Array]:
    """h_z and the w_z of the table of symbols."""
    M = (points.T * shares) @ points
    directions = np.linalg.solve(M, points.T).T
    squared = (points * directions).sum(axis=1)
    return gaps / squared, directions * (np.sqrt(gaps) / squared)[:, None]


def gradient(points: Array, gaps: Array, shares: Array, multipliers: Array) -> Array:
    """Of sum_z y_z h_z in the shares."""
    slopes: Array = multipliers @ (evidence(points, gaps, shares)[1] @ points.T) ** 2
    return slopes


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 9), d=st.integers(1, 3), spread=st.sampled_from([0.5, 6.0]))
def test_newton_direction_solves_the_linearised_conditions(
    seed: int, k: int, d: int, spread: float
) -> None:
    """Gradient and Hessian by finite differences; some arms are eliminated, some are kept."""
    rng = np.random.default_rng(seed)
    raw, gaps = rng.standard_normal((max(k, d), d)), rng.random(max(k, d)) + 0.1
    k = len(gaps)
    iterate = np.exp(rng.uniform(-spread, spread, (4, k)))
    iterate[0] = 0.5 + rng.random(k)  # else finite differences say nothing
    a, s, y, t = iterate
    factor = np.linalg.cholesky((raw.T * a) @ raw)
    points = np.asarray(np.linalg.solve(factor, raw.T).T.copy(), dtype=np.float64)
    norms = (points**2).sum(axis=1)
    h = evidence(points, gaps, a)[0]
    t *= np.maximum(np.abs(h - 1.0), 0.1)  # sizes as they occur on the way
    y /= gradient(points, gaps, a, y).max()
    residuals = np.array([1.0 - gradient(points, gaps, a, y) - s, h - 1.0 - t])
    program = Program(
        gaps=gaps,
        points=points,
        iterate=iterate,
        change=np.zeros((4, k)),
        squares=np.zeros((k, d * (d + 1) // 2)),
        norms=norms,
        slopes=gaps / norms**2,
        residuals=residuals,
        targets=rng.random((2, k)),
    )
    square_points(program)
    system = newton_system(program)
    assert system.regular
    direction(program, system)
    da, ds, dy, dt = program.change
    step = 1e-4 / max(np.abs(da).max(), 1.0)

    def moved(sign: float) -> tuple[Array, Array]:
        shares, multipliers = a + sign * step * da, y + sign * step * dy
        slopes = gradient(points, gaps, shares, multipliers)
        return slopes, evidence(points, gaps, shares)[0]

    (slopes_up, h_up), (slopes_down, h_down) = moved(1.0), moved(-1.0)
    by_slopes, by_h = (slopes_up - slopes_down) / (2 * step), (h_up - h_down) / (2 * step)
    size = 1.0 + np.abs(program.change).max() + np.abs(residuals).max()
    np.testing.assert_allclose(by_slopes + ds, residuals[0], atol=3e-6 * size)
    np.testing.assert_allclose(dt - by_h, residuals[1], atol=3e-6 * size)
    # relative to the terms: near the end, the products are small and their factors are not
    np.testing.assert_allclose(a * ds + s * da, program.targets[0] - a * s, atol=1e-9 * size)
    np.testing.assert_allclose(
        y * dt + t * dy, program.targets[1] - y * t, atol=1e-9 * size * (1 + iterate.max())
    )


def random_points(seed: int, k: int, d: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    actions, theta, _ = naive_bounds.instance(rng, k, d)
    means = actions @ theta
    gaps = means.max() - means
    points, _ = reduced_points(actions, gaps == 0, gaps)
    arms = costly_arms(points)
    return points[arms], gaps[arms]


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(4, 8), steps=st.integers(1, 60))
def test_both_bounds_hold_at_every_step(seed: int, k: int, steps: int) -> None:
    points, gaps = random_points(seed, k, 3)
    shares, multipliers, base, upper, lower = optimal_shares(points, gaps, 1e-9, steps)
    h = evidence(points, gaps, shares)[0]
    assert h.min() == pytest.approx(1.0, rel=1e-6)
    assert shares.sum() == pytest.approx(upper, rel=1e-12)
    assert gradient(points, gaps, base, multipliers).max() == pytest.approx(1.0, rel=1e-6)
    assert multipliers.sum() == pytest.approx(lower, rel=1e-12)
    assert lower <= upper * (1 + 1e-12)
    if steps == MOST_STEPS:
        assert upper - lower <= 1e-9 * upper


@settings(max_examples=15, deadline=None)
@given(seed=seeds, k=st.integers(3, 8), d=st.integers(2, 3))
def test_allocation_of_policies_costs_what_the_truth_does(seed: int, k: int, d: int) -> None:
    """At noise variance 1/2, with the tolerance that policies use."""
    actions, theta, _ = naive_bounds.instance(np.random.default_rng(seed), k, d)
    means = actions @ theta
    gaps, best = means.max() - means, int(means.argmax())
    allocation = np.full(k, np.nan)
    cost = optimal_allocation(actions, best, gaps, 1e-3, allocation)
    truth = naive_bounds.lower_bound(actions, theta, math.sqrt(0.5), tolerance=1e-5)
    assert truth.lower * (1 - 1e-9) <= cost <= truth.upper * (1 + 1.1e-3)
    assert allocation[best] == math.inf
    others = np.arange(k) != best
    assert allocation[others] @ gaps[others] == pytest.approx(cost)
    assert (allocation >= 0).all()


def test_nothing_to_allocate() -> None:
    allocation = np.full(1, np.nan)
    assert optimal_allocation(np.array([[1.0, 2.0]]), 0, np.zeros(1), 1e-3, allocation) == 0.0
    assert allocation[0] == math.inf
    parallel = np.array([[1.0, 2.0], [0.5, 1.0], [0.0, 0.0]])
    allocation = np.full(3, np.nan)
    gaps = np.array([0.0, 0.5, 1.0])
    assert optimal_allocation(parallel, 0, gaps, 1e-3, allocation) == 0.0
    assert (allocation == [math.inf, 0.0, 0.0]).all()


def test_duplicates_share_the_work() -> None:
    """Which of the twins is played does not matter to the cost."""
    actions = np.array([[1.0, 0.0], [0.99, 0.02], [0.0, 1.0], [0.0, 1.0]])
    allocation = np.zeros(4)
    gaps = np.array([0.0, 0.01, 1.0, 1.0])
    assert optimal_allocation(actions, 0, gaps, 1e-9, allocation) == pytest.approx(4.0)
    assert allocation[2] + allocation[3] == pytest.approx(4.0, rel=1e-6)
