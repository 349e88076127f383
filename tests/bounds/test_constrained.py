"""c* within a polytope M: a closed form in the plane, cutting planes, cases by hand, edge cases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.linear import cover
from tests import naive_bounds
from tests.naive import Array

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)


def unit(**options: Any) -> sl.LinearBandit:
    return sl.problems.end_of_optimism(noise_variance=1.0, **options)


def line_within(problem: sl.LinearBandit, low: Array, high: Array) -> tuple[float, float]:
    """Ends of theta + s q in a box, q orthogonal to the best arm, in the plane."""
    best = problem.actions[problem.best]
    q = np.array([-best[1], best[0]])
    ends = np.sort(np.array([(low - problem.theta) / q, (high - problem.theta) / q]), axis=0)
    return float(ends[0].max()), float(ends[1].min())


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 7), size=st.sampled_from([0.1, 1.0, 10.0]))
def test_closed_form_in_the_plane(seed: int, k: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    problem = sl.LinearBandit(rng.standard_normal((k, 2)), rng.standard_normal(2), 1.0)
    low, high = problem.theta - size * rng.random(2), problem.theta + size * rng.random(2)
    bound = sl.lower_bound(problem, sl.problems.Polytope.box(low, high))
    truth = naive_bounds.in_the_plane(
        problem.actions, problem.theta, 1.0, line_within(problem, low, high)
    )
    assert bound.value == pytest.approx(truth, rel=1e-7, abs=1e-12)
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)


@settings(max_examples=8, deadline=None)
@given(seed=seeds, k=st.integers(4, 6))
def test_cutting_planes_agree(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    problem = sl.LinearBandit(rng.standard_normal((k, 3)), rng.standard_normal(3), 1.0)
    low, high = problem.theta - 3 * rng.random(3), problem.theta + 3 * rng.random(3)
    box = sl.problems.Polytope.box(low, high)
    truth = naive_bounds.lower_bound_within(problem.actions, problem.theta, 1.0, *box.arrays(3))
    bound = sl.lower_bound(problem, box)
    assert bound.lower <= truth.upper * (1 + 1e-6)
    assert bound.upper >= truth.lower * (1 - 1e-6)
    assert bound.converged


@settings(max_examples=5, deadline=None)
@given(seed=seeds)
def test_a_smaller_set_has_a_smaller_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = sl.LinearBandit(rng.standard_normal((6, 3)), rng.standard_normal(3), 1.0)
    sides = rng.random((2, 3))
    values = [sl.lower_bound(problem).value]
    for size in (1e4, 10.0, 3.0, 1.0, 0.3):
        box = sl.problems.Polytope.box(
            problem.theta - size * sides[0], problem.theta + size * sides[1]
        )
        values.append(sl.lower_bound(problem, box).value)
    assert values[1] == pytest.approx(values[0], rel=1e-7)
    assert (np.diff(values) <= 1e-7 * values[0]).all()


@pytest.mark.parametrize(
    ("row", "offset", "expected"),
    [
        # nu = (1, 1, 0) and (1, 1/2, 1) are the nearest; each costs 2 / Delta
        ([0.0, 0.0, 1.0], 2.0, 6.0),
        # nu_3 < 1: the third arm is never best
        ([0.0, 0.0, 1.0], 0.9, 4.0),
        # nu_2 + nu_3 <= 1: the third arm is reached at (1, 0, 1), and the second arm, played 8
        # times, gives 8 (1/2)^2 / 2 = 1 against it
        ([0.0, 1.0, 1.0], 1.0, 4.0),
        # nu_3 - nu_2 <= 1/4: it is reached at (1, 3/4, 1), against which the second arm gives
        # 8 (1/4)^2 / 2 = 1/4; the third must give the rest of its 2
        ([0.0, -1.0, 1.0], 0.25, 5.5),
    ],
)
def test_sets_that_bind_by_hand(row: list[float], offset: float, expected: float) -> None:
    """Arms e_1, e_2, e_3 with theta = (1, 1/2, 0)."""
    problem = sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.0], 1.0)
    box = [*np.eye(3).tolist(), *(-np.eye(3)).tolist()]
    bound = sl.lower_bound(problem, sl.problems.Polytope([*box, row], [2.0] * 6 + [offset]))
    assert bound.value == pytest.approx(expected, rel=1e-7)


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0]), 8.0),  # theta is on the boundary
        (sl.problems.Polytope.box([-1.0, -0.51], [1.0, 0.51]), 8.0),
        (sl.problems.Polytope.box([-1.0, -0.49], [1.0, 0.49]), 0.0),
        (sl.problems.Polytope.box([0.9, -0.1], [1.1, 0.1]), 0.0),
        (sl.problems.Polytope.cross_polytope(2), 0.0),  # a corner: nothing agrees with theta on x*
        (sl.problems.Polytope.box([1.0, -1.0], [1.0, 1.0]), 8.0),  # flat
        (sl.problems.Polytope.box([-1e9, -1e9], [1e9, 1e9]), 8.0),
    ],
)
def test_end_of_optimism_within_a_box(box: sl.problems.Polytope, expected: float) -> None:
    """(1, 1/2) is the alternative that matters."""
    bound = sl.lower_bound(unit(), box)
    assert bound.lower == pytest.approx(expected, rel=1e-7)
    assert bound.upper == pytest.approx(expected, rel=1e-7)
    assert bound.converged
    assert np.isinf(bound.allocation[0])
    if expected == 0.0:
        assert (bound.allocation[1:] == 0.0).all()


def test_theta_on_a_face_up_to_rounding() -> None:
    """The sum of its entries may exceed 1 by a rounding."""
    rng = np.random.default_rng(0)
    polytope = sl.problems.Polytope.cross_polytope(3)
    outside = 0
    for theta in rng.dirichlet(np.ones(3), size=30):
        outside += int((np.array(polytope.normals) @ theta).max() > 1.0)
        problem = sl.LinearBandit(rng.standard_normal((4, 3)), theta, 1.0)
        assert sl.lower_bound(problem, polytope, tolerance=0.1).converged
    assert outside > 0


def test_units_do_not_matter_within_m() -> None:
    problem = sl.problems.unit_sphere(k=6, d=3, noise_variance=1.0, seed=3)
    units = np.array([1e-8, 1.0, 1e8])
    ones = np.ones(3)
    plain = sl.lower_bound(problem, sl.problems.Polytope.box(-2 * ones, 2 * ones))
    changed = sl.lower_bound(
        sl.LinearBandit(problem.actions * units, problem.theta / units, 1.0),
        sl.problems.Polytope.box(-2 / units, 2 / units),
    )
    assert changed.value == pytest.approx(plain.value, rel=1e-7)


@pytest.mark.parametrize("tolerance", [1e-300, 1e-14, 0.5, 1e300])
def test_any_tolerance_ends(tolerance: float) -> None:
    box = sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0])
    bound = sl.lower_bound(unit(slope=4.0), box, tolerance=tolerance)
    assert bound.lower <= 32.0 * (1 + 1e-12)
    assert bound.upper >= 32.0 * (1 - 1e-12)
    assert bound.gap <= max(tolerance, 1e-11)


@pytest.mark.parametrize(
    ("parameter_set", "message"),
    [
        (sl.problems.Polytope.box([2.0, 2.0], [3.0, 3.0]), "must contain theta, but constraint 3"),
        (
            sl.problems.Polytope.box([-1.0] * 3, [1.0] * 3),
            "must have the dimension of the actions, 2; got",
        ),
        ([[1.0, 0.0]], "parameter_set must be a Polytope or None, got"),
    ],
)
def test_sets_that_make_no_sense(parameter_set: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.lower_bound(unit(), parameter_set)


def test_arms_that_do_not_span_the_space_of_m() -> None:
    problem = sl.LinearBandit([[1.0, 0.0], [0.5, 0.0]], [1.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"must span all dimensions, got rank 1 in 2"):
        sl.lower_bound(problem, sl.problems.Polytope.box([-1.0, -1.0], [1.0, 1.0]))


@settings(max_examples=30, deadline=None)
@given(seed=seeds, m=st.integers(1, 6), k=st.integers(1, 6), spread=st.sampled_from([0.0, 20.0]))
def test_covering_programs_have_no_gap(seed: int, m: int, k: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    cuts = rng.random((m, k)) * 10.0 ** rng.uniform(-spread, spread)
    shares, multipliers = cover(cuts)
    assert (cuts @ shares >= 1 - 1e-8).all()
    assert (multipliers @ cuts <= 1 + 1e-12).all()
    assert multipliers.sum() == pytest.approx(shares.sum(), rel=1e-7)
