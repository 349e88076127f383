"""Cells and alternatives within a polytope, against enumeration of active sets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.alternatives import Comparison, half_spaces, locate_alternatives
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import best_arm
from sightline.core.projections import Polytope, Projections, projections
from tests import naive
from tests.core.helpers import Fed, compare_to_best, fed, random_data, random_fed, shifts_of
from tests.marks import without_compilation
from tests.naive import Array
from tests.naive_projection import nearest_alternative

pytestmark = without_compilation

seeds = st.integers(0, 2**32 - 1)
FREE = (np.zeros((0, 2)), np.zeros(0))


def run(
    estimate: LeastSquares, cells: bool, normals: Array, bounds: Array
) -> tuple[Projections, Comparison, float]:
    """Return alternatives, the comparison of the test, and the least distance of those located."""
    k, d = estimate.arms.rewards.shape
    alternatives = projections(k, d, cells, normals.reshape(-1, d), bounds)
    comparison = compare_to_best(alternatives, estimate)
    return alternatives, comparison, locate_alternatives(alternatives, estimate, comparison)


def assert_agrees(fed: Fed, cells: bool, normals: Array, bounds: Array) -> Projections:
    estimate = fed.estimate
    k, best = len(estimate.arms.rewards), best_arm(estimate)
    alternatives, tested, least = run(estimate, cells, normals, bounds)
    shifts = shifts_of(alternatives, estimate, tested)
    for z in set(range(k)) - {best}:
        rivals = [i for i in range(k) if i != z] if cells else [best]
        expected = nearest_alternative(
            estimate.arms.rewards, fed.theta, fed.V, z, rivals, normals, bounds
        )
        if expected is None:
            assert alternatives.distances[z] == math.inf
            continue
        distance = expected @ fed.V @ expected
        assert alternatives.distances[z] == pytest.approx(distance, rel=1e-7, abs=1e-10)
        scale = 1.0 + np.abs(expected).max()
        np.testing.assert_allclose(shifts[z], expected, atol=1e-6 * scale)
    # half-spaces and cells are two ways to cut up the same set
    assert least == pytest.approx(tested.least, rel=1e-7, abs=1e-10)
    return alternatives


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 6), st.integers(1, 3), st.integers(1, 60))
def test_cells_without_constraints(seed: int, k: int, d: int, n: int) -> None:
    data = random_fed(seed, k, d, n)
    assert_agrees(data, True, np.zeros((0, data.theta.size)), np.zeros(0))


@settings(deadline=None, max_examples=40)
@given(seeds, st.integers(2, 5), st.integers(1, 60), st.booleans(), st.floats(0.2, 3.0))
def test_alternatives_in_a_box(seed: int, k: int, n: int, cells: bool, size: float) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, 2))
    data = fed(actions, 1.0, *random_data(rng, actions, n))
    # around a point near the estimate, which may lie in the box or outside
    centre = data.theta + 0.5 * rng.standard_normal(2)
    box = Polytope.box(centre - size, centre + size)
    assert_agrees(data, cells, *box.arrays(2))


def test_half_spaces_are_those_of_the_closed_form() -> None:
    estimate = random_fed(3, 6, 3, 40).estimate
    closed = half_spaces(6)
    compare_to_best(closed, estimate)
    # a box so large that it constrains nothing: the same half-spaces by quadratic programs
    alternatives, _, _ = run(estimate, False, *Polytope.box([-1e6] * 3, [1e6] * 3).arrays(3))
    np.testing.assert_allclose(alternatives.distances, closed.distances, rtol=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_three_arms_have_the_same_alternative_where_the_half_space_meets_the_cell(
    seed: int,
) -> None:
    data = random_fed(seed, 3, 2, 50)
    estimate = data.estimate
    closed = half_spaces(3)
    comparison = compare_to_best(closed, estimate)
    cells, tested, _ = run(estimate, True, *FREE)
    closed_shifts = shifts_of(closed, estimate, comparison)
    cell_shifts = shifts_of(cells, estimate, tested)
    for z in {0, 1, 2} - {comparison.best}:
        shift, cell_shift = closed_shifts[z], cell_shifts[z]
        means = estimate.arms.rewards @ (estimate.learned.theta + shift)
        if means[z] >= means.max() - 1e-12:  # z is best there: the alternative lies in its cell
            np.testing.assert_allclose(cell_shift, shift, atol=1e-9)
        else:
            assert cells.distances[z] > closed.distances[z]


def test_an_alternative_outside_the_set_is_ruled_out() -> None:
    actions = np.eye(2)
    data = fed(actions, 1.0, np.array([0, 1, 0, 1]), np.array([1.0, 0.2, 1.0, 0.2]))
    # nu_1 in [0.5, 1], nu_2 in [0, 0.4]: the first arm is best under every one of them
    box = Polytope.box([0.5, 0.0], [1.0, 0.4])
    for cells in (False, True):
        alternatives, tested, _ = run(data.estimate, cells, *box.arrays(2))
        assert tested.least == math.inf
        assert (alternatives.distances == math.inf).all()


def test_equal_arms_share_their_cell() -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    rng = np.random.default_rng(0)
    arms = rng.integers(4, size=40)
    data = fed(actions, 1.0, arms, actions[arms] @ [1.0, 0.2] + 0.1 * rng.standard_normal(40))
    alternatives, _, _ = run(data.estimate, True, *FREE)
    best = best_arm(data.estimate)
    assert alternatives.distances[best] == alternatives.distances[3 - best] == math.inf
    assert alternatives.distances[1] == pytest.approx(alternatives.distances[2], rel=1e-12)


def test_an_arm_that_is_never_best_has_a_cell_at_zero() -> None:
    # the third arm is the mean of the others: it is best only where all are equal
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    rng = np.random.default_rng(1)
    arms = rng.integers(3, size=40)
    data = fed(actions, 1.0, arms, actions[arms] @ [1.0, 0.2])
    alternatives, _, _ = run(data.estimate, True, *FREE)
    u = actions[0] - actions[1]
    on_the_line = (data.theta @ u) ** 2 / naive.squared_norm(u, data.V)
    assert alternatives.distances[2] == pytest.approx(on_the_line, rel=1e-9)
