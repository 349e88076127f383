"""Projection onto polyhedra: brute force, exact arithmetic, optimality, degenerate systems."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.projections import (
    INFEASIBLE,
    SOLVED,
    UNFINISHED,
    Projection,
    project_arm,
    project_rows,
    projection,
)
from tests.naive import Array
from tests.naive_projection import (
    KINDS,
    cell,
    degenerate_arms,
    kkt_residual,
    nearest,
    nearest_exactly,
    system,
)

seeds = st.integers(0, 2**32 - 1)
RESIDUAL = 1e-9


def project_cell(
    work: Projection, arms: Array, centre: Array, z: int, rows: Array, offsets: Array, point: Array
) -> float:
    return project_arm(work, arms, centre, z, 0, len(arms), rows, offsets, point)


def whole_space(d: int) -> tuple[Array, Array]:
    return np.zeros((0, d)), np.zeros(0)


def solved(rows: Array, offsets: Array) -> tuple[Array, float, Projection]:
    """Project from a cold start and check the optimality conditions."""
    d = rows.shape[1]
    work, point = projection(1, d), np.full(d, np.nan)
    distance = project_rows(work, rows, offsets, 0, point)
    if distance < math.inf:
        assert work.status[0] == SOLVED
        assert distance == pytest.approx(point @ point, rel=1e-14)
        assert residual(work, rows, offsets, point) <= RESIDUAL
    return point, distance, work


def residual(
    work: Projection, rows: Array, offsets: Array, point: Array, slot: int = 0, reach: float = 0.0
) -> float:
    q = work.counts[slot]
    return kkt_residual(rows, offsets, point, work.members[:q], work.multipliers[:q], reach)


@settings(deadline=None, max_examples=25)
@given(seed=seeds, d=st.integers(1, 6), m=st.integers(1, 9))
@pytest.mark.parametrize("kind", KINDS)
def test_brute_force(kind: str, seed: int, d: int, m: int) -> None:
    rows, offsets = system(kind, np.random.default_rng(seed), d, m)
    truth = nearest(rows, offsets)
    point, distance, work = solved(rows, offsets)
    if truth is None:
        assert distance == math.inf
        assert work.status[0] == INFEASIBLE
    else:
        np.testing.assert_allclose(point, truth, atol=1e-7 * (1.0 + np.abs(truth).max()))


@settings(deadline=None)
@given(seed=seeds, d=st.integers(1, 4), m=st.integers(1, 6))
def test_nearly_parallel_constraints(seed: int, d: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    twin = rng.integers(m, size=m)
    rows = rng.standard_normal((m, d))[twin] + 1e-8 * rng.standard_normal((m, d))
    offsets = rng.standard_normal(m)[twin] + rng.choice([0.0, 1e-8]) * rng.standard_normal(m)
    truth = nearest_exactly(rows, offsets)
    _, distance, _ = solved(rows, offsets)
    if truth is None:
        assert distance == math.inf
    else:
        # an angle of 1e-8 turns a rounding error of 1e-16 into one of 1e-8
        assert distance == pytest.approx(float(sum(y * y for y in truth)), rel=1e-6)


@pytest.mark.parametrize("margin", [1e-2, 1e-6, 1e-10])
@pytest.mark.parametrize("seed", range(10))
def test_barely_infeasible_and_barely_feasible(seed: int, margin: float) -> None:
    """The last row is minus a sum of the others: together they leave a slab of this width."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 7))
    rows = rng.standard_normal((d, d))
    weights = rng.random(d)
    rows = np.vstack([rows, -weights @ rows])
    offsets = rng.standard_normal(d)
    for sign in (1.0, -1.0):
        _, distance, _ = solved(rows, np.append(offsets, -weights @ offsets + sign * margin))
        assert (distance < math.inf) == (sign > 0.0)


def test_a_zero_row_is_void_or_contradicts() -> None:
    rows = np.array([[0.0, 0.0], [-2.0, 0.0]])
    assert solved(rows, np.array([0.0, -2.0]))[1] == 1.0
    assert solved(rows, np.array([-1e-300, -2.0]))[1] == math.inf


@settings(deadline=None)
@given(seed=seeds, d=st.integers(1, 6), m=st.integers(0, 40))
def test_the_origin_if_feasible_is_the_answer(seed: int, d: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    rows, offsets = rng.standard_normal((m, d)), rng.choice([0.0, 1.0], m)
    work, point = projection(1, d), np.zeros(d)
    project_rows(work, rows, offsets - 1.5, 0, point)  # leaves an active set behind
    assert project_rows(work, rows, offsets, 0, point) == 0.0
    assert not point.any()


def test_what_cannot_be_told_from_rounding_is_not_called_solved() -> None:
    # two nearly opposite planes meet at y_2 = -1, known to 1e-8; the third asks for 5e-8 more
    rows = np.array([[1.0, 0.0], [-1.0, 1e-8], [0.0, -1.0]])
    work, point = projection(1, 2), np.zeros(2)
    distance = project_rows(work, rows, np.array([-1.0, 1.0 - 1e-8, 1.0 - 5e-8]), 0, point)
    assert work.status[0] == UNFINISHED
    assert distance == pytest.approx(2.0, rel=1e-6)


@settings(deadline=None)
@given(seed=seeds, kind=st.sampled_from(KINDS), d=st.integers(1, 6), m=st.integers(1, 12))
def test_warm_start_agrees_with_cold_start(seed: int, kind: str, d: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    rows, offsets = system(kind, rng, d, m)
    work, warm = projection(1, rows.shape[1]), np.zeros(rows.shape[1])
    for size in (0.0, 1e-6, 1e-2, 1.0):
        rows = rows + size * rng.standard_normal(rows.shape)
        offsets = offsets + size * rng.standard_normal(offsets.shape)
        distance = project_rows(work, rows, offsets, 0, warm)
        cold, truth, _ = solved(rows, offsets)
        assert distance == pytest.approx(truth, rel=1e-8, abs=1e-20)
        if truth < math.inf:
            assert residual(work, rows, offsets, warm) <= RESIDUAL
            np.testing.assert_allclose(warm, cold, atol=1e-7 * (1.0 + np.abs(cold).max()))
            project_rows(work, rows, offsets, 0, warm)
            assert work.status.tolist() == [SOLVED, 0]  # nothing left to do


def whitened(rng: np.random.Generator, k: int, d: int, log_condition: float) -> tuple[Array, Array]:
    """Arms and centre for a V of given condition number, its axes at random."""
    arms, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    roots = 10.0 ** (0.5 * np.linspace(0.0, log_condition, d))
    return np.ascontiguousarray(arms @ axes / roots), axes.T @ theta * roots


@settings(deadline=None, max_examples=30)
@given(seed=seeds, k=st.integers(2, 6), d=st.integers(1, 3), power=st.integers(0, 10))
def test_ill_conditioned_whitening_in_exact_arithmetic(
    seed: int, k: int, d: int, power: int
) -> None:
    # integers, so that differences of arms and of means are exact, and so is the truth
    rng = np.random.default_rng(seed)
    stretch = 2.0 ** rng.integers(0, 1 + int(1.7 * power), d)  # condition number up to 10^power
    arms = rng.integers(-9, 10, (k, d)) * stretch
    centre = rng.integers(-9, 10, d).astype(float)
    work, point = projection(k, d), np.zeros(d)
    for z in range(k):
        rows, offsets = cell(arms, centre, z, *whole_space(d))
        truth = nearest_exactly(rows, offsets)
        assert truth is not None  # nu = 0 lies in every cell
        distance = project_cell(work, arms, centre, z, *whole_space(d), point)
        expected = np.array([float(y) for y in truth])
        np.testing.assert_allclose(
            point, expected, atol=1e-9 * (1.0 + float(np.linalg.norm(centre)))
        )
        assert distance == pytest.approx(float(sum(y * y for y in truth)), rel=1e-9, abs=1e-20)


@settings(deadline=None, max_examples=40)
@given(seed=seeds, k=st.integers(2, 12), d=st.integers(1, 6), power=st.integers(0, 10))
def test_union_of_cells_is_union_of_halfspaces(seed: int, k: int, d: int, power: int) -> None:
    arms, centre = whitened(np.random.default_rng(seed), k, d, power)
    best = int(np.argmax(arms @ centre))
    work, point = projection(k, d), np.zeros(d)
    cells, halfspaces = [], []
    for z in set(range(k)) - {best}:
        cells.append(project_cell(work, arms, centre, z, *whole_space(d), point))
        rows, offsets = cell(arms, centre, z, *whole_space(d))
        assert work.status[0] == SOLVED
        assert residual(work, rows, offsets, point, z, float(np.linalg.norm(centre))) <= RESIDUAL
        halfspaces.append(
            project_arm(work, arms, centre, z, best, best + 1, *whole_space(d), point)
        )
        u = arms[best] - arms[z]
        assert halfspaces[-1] == pytest.approx((u @ centre) ** 2 / (u @ u), rel=1e-9, abs=1e-20)
        assert cells[-1] >= halfspaces[-1] * (1.0 - 1e-9)
    assert min(cells) == pytest.approx(min(halfspaces), rel=1e-9, abs=1e-20)


@settings(deadline=None)
@given(seed=seeds, d=st.integers(2, 5))
def test_three_arms(seed: int, d: int) -> None:
    """Where the point of the half-space lies in the cell, it is also that of the cell."""
    arms, centre = whitened(np.random.default_rng(seed), 3, d, 2.0)
    order = np.argsort(arms @ centre)
    best, z, other = int(order[2]), int(order[0]), int(order[1])
    work, point, nearest_in_cell = projection(3, d), np.zeros(d), np.zeros(d)
    halfspace = project_arm(work, arms, centre, z, best, best + 1, *whole_space(d), point)
    distance = project_cell(work, arms, centre, z, *whole_space(d), nearest_in_cell)
    if (arms[other] - arms[z]) @ (point + centre) <= 0.0:
        np.testing.assert_allclose(
            nearest_in_cell, point, atol=1e-12 * float(np.linalg.norm(centre))
        )
    else:
        assert distance > halfspace


@settings(deadline=None, max_examples=40)
@given(seed=seeds, k=st.integers(2, 7), d=st.integers(1, 4), m=st.integers(1, 4))
def test_cells_and_halfspaces_in_a_polytope(seed: int, k: int, d: int, m: int) -> None:
    rng = np.random.default_rng(seed)
    arms, centre = whitened(rng, k, d, 1.0)
    rows, offsets = rng.standard_normal((m, d)), rng.standard_normal(m)
    best = int(np.argmax(arms @ centre))
    work, point = projection(k, d), np.zeros(d)
    for z in range(k):
        constraints = cell(arms, centre, z, rows, offsets)
        distance = project_cell(work, arms, centre, z, rows, offsets, point)
        truth = nearest(*constraints)
        assert distance == pytest.approx(math.inf if truth is None else truth @ truth, rel=1e-7)
        which = [best, *range(k, k + m)]
        distance = project_arm(work, arms, centre, z, best, best + 1, rows, offsets, point)
        truth = nearest(constraints[0][which], constraints[1][which])
        assert distance == pytest.approx(math.inf if truth is None else truth @ truth, rel=1e-7)


def test_equal_arms_are_no_rivals() -> None:
    arms = np.array([[0.1, 0.3], [1.0, 0.7], [0.1, 0.3], [0.1, 0.3]])
    work, point = projection(4, 2), np.zeros(2)
    distance = project_cell(work, arms, np.array([1.0, 0.0]), 0, *whole_space(2), point)
    assert distance == pytest.approx(0.9**2 / (0.9**2 + 0.4**2), rel=1e-14)
    assert project_cell(work, arms[:1], np.ones(2), 0, *whole_space(2), point) == 0.0


def check_every_cell(kind: str, seed: int, k: int, d: int) -> None:
    """Each is solved to the residual, and no further than the apex nu = 0, which is in all."""
    rng = np.random.default_rng(seed)
    arms = degenerate_arms(kind, rng, k, d)
    roots = 10.0 ** (0.5 * np.linspace(0.0, rng.choice([0.0, 2.0, 8.0, 10.0]), d))
    arms, centre = arms / roots, rng.standard_normal(d) * roots
    reach = float(np.linalg.norm(centre))
    work, point = projection(k, d), np.zeros(d)
    for z in range(k):
        for _ in range(2):  # cold and warm
            distance = project_cell(work, arms, centre, z, *whole_space(d), point)
            assert work.status[0] == SOLVED
            rows, offsets = cell(arms, centre, z, *whole_space(d))
            assert residual(work, rows, offsets, point, z, reach) <= RESIDUAL
            assert distance <= reach**2 * (1.0 + 1e-12)


@pytest.mark.parametrize("kind", ["grid", "cube", "nearly equal", "random"])
def test_cells_with_many_planes_through_the_apex(kind: str) -> None:
    for seed in range(4):
        check_every_cell(kind, seed, k=16, d=1 + seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grid", "cube", "nearly equal", "random"])
def test_large_cells(kind: str) -> None:
    for seed in range(18):
        check_every_cell(kind, seed, k=80, d=2 + seed)
