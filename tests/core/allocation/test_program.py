"""The interior-point method: Newton's equations by finite differences, its bounds by arithmetic."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.newton_step import (
    Program,
    direction,
    eliminate,
    newton_system,
    square_vectors,
)
from sightline.core.allocation.program import (
    MOST_STEPS,
    cheapest_allocation,
    costly_arms,
    optimal_game_shares,
    optimal_shares,
    reduced_points,
)
from tests import naive_bounds
from tests.naive import Array

seeds = st.integers(0, 10**6)


def optimal_allocation(
    actions: Array, best: int, gaps: Array, precisions: Array, tolerance: float, allocation: Array
) -> float:
    free = np.arange(len(gaps)) == best
    return cheapest_allocation(actions, free, gaps, precisions, tolerance, allocation)


def evidence(
    points: Array, gaps: Array, shares: Array, rows: Array | None = None
) -> tuple[Array, Array]:
    """h_z and the w_z of the table of symbols; rows (k, p, d) of the arms if this is a game."""
    rows = points[:, None, :] if rows is None else rows
    M = np.einsum("x,xpi,xpj->ij", shares, rows, rows)
    directions = np.linalg.solve(M, points.T).T
    squared = (points * directions).sum(axis=1)
    return gaps / squared, directions * (np.sqrt(gaps) / squared)[:, None]


def gradient(
    points: Array, gaps: Array, shares: Array, multipliers: Array, rows: Array | None = None
) -> Array:
    """Of sum_z y_z h_z in the shares."""
    rows = points[:, None, :] if rows is None else rows
    w = evidence(points, gaps, shares, rows)[1]
    slopes: Array = (np.einsum("xpi,zi->xzp", rows, w) ** 2).sum(axis=2) @ multipliers
    return slopes


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    k=st.integers(2, 9),
    d=st.integers(1, 3),
    spread=st.sampled_from([0.5, 6.0]),
    p=st.integers(0, 3),
)
def test_newton_direction_solves_the_linearised_conditions(
    seed: int, k: int, d: int, spread: float, p: int
) -> None:
    """Gradient and Hessian by finite differences; some arms are eliminated, some are kept.

    A bandit for p = 0, else a game of arms with p rows.
    """
    rng = np.random.default_rng(seed)
    raw, gaps = rng.standard_normal((max(k, d), d)), rng.random(max(k, d)) + 0.1
    m, k = len(gaps), len(gaps) if p == 0 else d + int(rng.integers(5))
    raw_rows = rng.standard_normal((k, p, d)) if p else raw[:, None, :]
    a, s = np.exp(rng.uniform(-spread, spread, (2, k)))
    y, t = np.exp(rng.uniform(-spread, spread, (2, m)))
    a = 0.5 + rng.random(k)  # else finite differences say nothing
    factor = np.linalg.cholesky(np.einsum("x,xpi,xpj->ij", a, raw_rows, raw_rows))
    points = np.asarray(np.linalg.solve(factor, raw.T).T.copy(), dtype=np.float64)
    flat = np.linalg.solve(factor, raw_rows.reshape(-1, d).T).T
    rows = np.asarray(flat.reshape(raw_rows.shape), dtype=np.float64)
    norms = (points**2).sum(axis=1)
    h = evidence(points, gaps, a, rows)[0]
    t *= np.maximum(np.abs(h - 1.0), 0.1)  # sizes as they occur on the way
    y /= gradient(points, gaps, a, y, rows).max()
    residuals = 1.0 - gradient(points, gaps, a, y, rows) - s, h - 1.0 - t
    program = Program(
        levels=gaps,
        vectors=np.vstack([points, rows.reshape(-1, d)]) if p else points,
        starts=m + p * np.arange(k + 1) if p else np.arange(k + 1),
        shares=np.array([a, s]),
        multipliers=np.array([y, t]),
        change_of_shares=np.zeros((2, k)),
        change_of_multipliers=np.zeros((2, m)),
        information=np.zeros((k, d * (d + 1) // 2)),
        squares=np.zeros((m, d * (d + 1) // 2)),
        norms=norms,
        slopes=gaps / norms**2,
        residual_costs=residuals[0],
        residual_surplus=residuals[1],
        target_shares=rng.random(k),
        target_multipliers=rng.random(m),
        game=p > 0,
    )
    square_vectors(program)
    system = newton_system(program)
    assert eliminate(system.factors, system.order)
    direction(program, system)
    (da, ds), (dy, dt) = program.change_of_shares, program.change_of_multipliers
    step = 1e-4 / max(np.abs(da).max(), 1.0)

    def moved(sign: float) -> tuple[Array, Array]:
        shares, multipliers = a + sign * step * da, y + sign * step * dy
        slopes = gradient(points, gaps, shares, multipliers, rows)
        return slopes, evidence(points, gaps, shares, rows)[0]

    (slopes_up, h_up), (slopes_down, h_down) = moved(1.0), moved(-1.0)
    by_slopes, by_h = (slopes_up - slopes_down) / (2 * step), (h_up - h_down) / (2 * step)
    size = 1.0 + max(np.abs(part).max() for part in (da, ds, dy, dt, *residuals))
    np.testing.assert_allclose(by_slopes + ds, residuals[0], atol=3e-6 * size)
    np.testing.assert_allclose(dt - by_h, residuals[1], atol=3e-6 * size)
    # relative to the terms: near the end, the products are small and their factors are not
    np.testing.assert_allclose(a * ds + s * da, program.target_shares - a * s, atol=1e-9 * size)
    largest = 1 + max(part.max() for part in (a, s, y, t))
    np.testing.assert_allclose(
        y * dt + t * dy, program.target_multipliers - y * t, atol=1e-9 * size * largest
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


@settings(max_examples=20, deadline=None)
@given(seed=seeds, steps=st.integers(1, 60), p=st.integers(1, 3))
def test_both_bounds_hold_at_every_step_of_a_game(seed: int, steps: int, p: int) -> None:
    rng = np.random.default_rng(seed)
    points, rows, levels = (
        rng.standard_normal((5, 3)),
        rng.standard_normal((6, p, 3)),
        rng.random(5),
    )
    starts = 5 + p * np.arange(7)
    vectors = np.vstack([points, rows.reshape(-1, 3)])
    shares, multipliers, base, upper, lower = optimal_game_shares(
        vectors, starts, levels, 1e-9, steps
    )
    assert evidence(points, levels, shares, rows)[0].min() == pytest.approx(1.0, rel=1e-6)
    assert shares.sum() == pytest.approx(upper, rel=1e-12)
    slopes = gradient(points, levels, base, multipliers, rows)
    assert slopes.max() == pytest.approx(1.0, rel=1e-6)
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
    cost = optimal_allocation(actions, best, gaps, np.ones(k), 1e-3, allocation)
    truth = naive_bounds.lower_bound(actions, theta, math.sqrt(0.5), tolerance=1e-5)
    assert truth.lower * (1 - 1e-9) <= cost <= truth.upper * (1 + 1.1e-3)
    assert allocation[best] == math.inf
    others = np.arange(k) != best
    assert allocation[others] @ gaps[others] == pytest.approx(cost)
    assert (allocation >= 0).all()


def test_nothing_to_allocate() -> None:
    allocation = np.full(1, np.nan)
    single, none = np.array([[1.0, 2.0]]), np.zeros(1)
    assert optimal_allocation(single, 0, none, np.ones(1), 1e-3, allocation) == 0.0
    assert allocation[0] == math.inf
    parallel = np.array([[1.0, 2.0], [0.5, 1.0], [0.0, 0.0]])
    allocation = np.full(3, np.nan)
    gaps = np.array([0.0, 0.5, 1.0])
    assert optimal_allocation(parallel, 0, gaps, np.ones(3), 1e-3, allocation) == 0.0
    assert (allocation == [math.inf, 0.0, 0.0]).all()


def test_duplicates_share_the_work() -> None:
    """Which of the twins is played does not matter to the cost."""
    actions = np.array([[1.0, 0.0], [0.99, 0.02], [0.0, 1.0], [0.0, 1.0]])
    allocation = np.zeros(4)
    gaps = np.array([0.0, 0.01, 1.0, 1.0])
    cost = optimal_allocation(actions, 0, gaps, np.ones(4), 1e-9, allocation)
    assert cost == pytest.approx(4.0)
    assert allocation[2] + allocation[3] == pytest.approx(4.0, rel=1e-6)


# --- a precision per arm ------------------------------------------------------------------------

END_OF_OPTIMISM = np.array([[1.0, 0.0], [0.99, 0.02], [0.0, 1.0]])
GAPS = np.array([0.0, 0.01, 1.0])


def on_a_grid(precisions: Array) -> float:
    """Cost at the end of optimism over a grid of mixtures of the two other arms.

    Alternatives are theta + (0, s), and one must be as far as s = 1/2 against the second arm: the
    evidence alpha_2 rho_2^2 0.02^2 s^2 + alpha_3 rho_3^2 s^2 has to reach 1.
    """
    share = np.linspace(0.0, 1.0, 10_001)  # of the cost, on the second arm
    evidence = 0.25 * (share / 0.01 * precisions[1] * 0.02**2 + (1.0 - share) / 1.0 * precisions[2])
    return float((1.0 / evidence).min())


@pytest.mark.parametrize(
    "precisions",
    [[1.0, 1.0, 1.0], [1.0, 30.0, 1.0], [1.0, 1.0, 0.01], [9.0, 2.0, 5.0], [0.1, 25.0, 1.0]],
)
def test_precisions_at_the_end_of_optimism(precisions: list[float]) -> None:
    rho = np.array(precisions)
    allocation = np.zeros(3)
    cost = optimal_allocation(END_OF_OPTIMISM, 0, GAPS, rho, 1e-10, allocation)
    assert cost == pytest.approx(on_a_grid(rho), rel=1e-8)
    assert allocation[1:] @ GAPS[1:] == pytest.approx(cost, rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.1, 10.0), st.floats(0.01, 100.0), st.floats(0.01, 100.0))
def test_two_arms_with_precisions(gap: float, own: float, other: float) -> None:
    """x* = e_1 and e_2: the second arm alone tells, alpha rho^2 gap^2 = 1 with <e, z> = gap."""
    allocation = np.zeros(2)
    precisions, gaps = np.array([own, other]), np.array([0.0, gap])
    cost = optimal_allocation(np.eye(2), 0, gaps, precisions, 1e-10, allocation)
    assert allocation[1] == pytest.approx(1.0 / (other * gap**2), rel=1e-8)
    assert cost == pytest.approx(1.0 / (other * gap), rel=1e-8)


def random_allocation(seed: int, factor: float) -> tuple[float, Array]:
    """Return cost and allocation of a random problem, all precisions times a factor."""
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((6, 3)), rng.standard_normal(3)
    precisions = np.exp(rng.uniform(-2.0, 2.0, 6))
    means = actions @ theta
    allocation = np.zeros(6)
    cost = optimal_allocation(
        actions, int(means.argmax()), means.max() - means, factor * precisions, 1e-10, allocation
    )
    return cost, allocation


@settings(max_examples=20, deadline=None)
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_cost_is_inverse_to_the_precisions(seed: int, factor: float) -> None:
    cost, allocation = random_allocation(seed, 1.0)
    scaled_cost, scaled = random_allocation(seed, factor)
    assert scaled_cost == pytest.approx(cost / factor, rel=1e-8)
    # optimal costs agree to the tolerance, optimal points to about its square root
    finite = np.isfinite(allocation)
    size = allocation[finite].max()
    np.testing.assert_allclose(factor * scaled[finite], allocation[finite], atol=1e-3 * size)


@pytest.mark.parametrize("seed", range(3))
def test_precisions_against_a_general_solver(seed: int) -> None:
    """At 2 sigma^2 = 1, so that |x* - z|^2 <= Delta^2 in the norm of the inverse."""
    rng = np.random.default_rng(seed)
    actions, theta, rho = (
        rng.standard_normal((3, 2)),
        rng.standard_normal(2),
        rng.uniform(0.3, 3.0, 3),
    )
    means = actions @ theta
    cost = optimal_allocation(
        actions, int(means.argmax()), means.max() - means, rho**2, 1e-10, np.zeros(3)
    )
    truth = naive_bounds.with_levels(actions, theta, math.sqrt(0.5) / rho)
    assert cost == pytest.approx(truth, rel=1e-6)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(4, 8), factor=st.floats(1e-3, 1e3))
def test_shares_in_other_units(seed: int, k: int, factor: float) -> None:
    """h = l / |u|^2 in M^-1, and M is linear in the shares: what l asks for, shares pay."""
    points, levels = random_points(seed, k, 3)
    _, _, _, upper, lower = optimal_shares(points, levels, 1e-9, MOST_STEPS)
    assert upper - lower <= 1e-9 * upper
    # with the points, M and |u|^2 keep their ratio: nothing changes
    assert optimal_shares(factor * points, levels, 1e-9, MOST_STEPS)[3] == pytest.approx(
        upper, rel=1e-8
    )
    assert optimal_shares(points, factor * levels, 1e-9, MOST_STEPS)[3] == pytest.approx(
        upper / factor, rel=1e-8
    )
