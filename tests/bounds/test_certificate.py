"""Certificates: the bracket contains c* for any input."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.certificate import bracket
from sightline.bounds.geometry import optimal_arms, scale_problem
from tests import naive_bounds

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)
ROUNDING = 1e-9  # far above that of the certificate, far below what corruption does


def random_bound(seed: int, within: bool) -> sl.types.LowerBound:
    """Bound of a problem with c* > 0, known by cutting planes or in closed form to be right."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(3, 8)), int(rng.integers(2, 4))
    problem = sl.LinearBandit(rng.standard_normal((k, d)), rng.standard_normal(d), 1.0)
    box = None
    if within:
        size = problem.gaps.max() + 1.0
        box = sl.problems.Polytope.box(problem.theta - size * rng.random(d), problem.theta + size)
    return sl.lower_bound(problem, box)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, within=st.booleans(), size=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]))
def test_corruption_never_moves_a_side_beyond_the_truth(
    seed: int, within: bool, size: float
) -> None:
    bound = random_bound(seed, within)
    assert bound.converged
    rng = np.random.default_rng(seed)
    allocation, alternatives = bound.allocation.copy(), bound.alternatives.copy()
    multipliers = bound.multipliers.copy()
    what = rng.integers(4)
    if what in (0, 3):
        hit = rng.random(len(allocation)) < 0.5
        allocation[hit] *= np.exp(size * rng.standard_normal(hit.sum()))
        allocation[rng.integers(len(allocation))] = 0.0
    if what in (1, 3):
        alternatives += size * rng.standard_normal(alternatives.shape)
    if what in (2, 3):
        multipliers *= np.exp(size * rng.standard_normal(len(multipliers)))
    lower, upper = bracket(
        bound.problem, allocation, alternatives, multipliers, bound.parameter_set
    )
    assert lower <= bound.upper * (1 + ROUNDING)
    assert upper >= bound.lower * (1 - ROUNDING)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, distance=st.sampled_from([1e-3, 1e-6, 1e-9]))
def test_alternatives_that_differ_at_the_best_arm(seed: int, distance: float) -> None:
    """They are refuted for nothing; an arm close to the best tempts to accept them."""
    rng = np.random.default_rng(seed)
    best, theta = np.array([0.6, 0.8]), np.array([0.6, 0.8])
    close = best + distance * np.array([-0.8, 0.6]) - 0.1 * distance * best
    problem = sl.LinearBandit(np.array([best, close, [0.3, -0.2]]), theta, 1.0)
    truth = naive_bounds.in_the_plane(problem.actions, theta, 1.0)
    alternatives = theta + 10.0 * rng.standard_normal((3, 2))
    alternatives[0] = theta + 1.1 * distance * best
    lower, _ = bracket(problem, np.ones(3), alternatives, rng.random(3), None)
    assert lower <= truth * (1 + 1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_random_certificates(seed: int) -> None:
    """Random numbers give valid bounds as well, and not only trivial ones."""
    rng = np.random.default_rng(seed)
    problem = sl.LinearBandit(rng.standard_normal((6, 2)), rng.standard_normal(2), 1.0)
    truth = naive_bounds.in_the_plane(problem.actions, problem.theta, 1.0)
    nu = rng.standard_normal((4, 2))
    alternatives = np.vstack([nu, 2 * problem.theta - nu])  # of opposite ones, one favours some arm
    lower, upper = bracket(problem, rng.random(6), alternatives, rng.random(8), None)
    assert 0.0 < lower <= truth * (1 + ROUNDING)
    assert truth * (1 - ROUNDING) <= upper < math.inf


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, -1.0])
@pytest.mark.parametrize("within", [False, True])
def test_what_is_no_number_proves_nothing(bad: float, within: bool) -> None:
    problem = sl.problems.end_of_optimism(noise_variance=1.0)
    box = sl.problems.Polytope.box([-2.0, -2.0], [2.0, 2.0]) if within else None
    bound = sl.lower_bound(problem, box)
    allocation, multipliers = bound.allocation.copy(), bound.multipliers.copy()
    alternatives = bound.alternatives.copy()
    allocation[1], multipliers[:] = bad, bad
    assert bracket(problem, allocation, alternatives, multipliers, box) == (0.0, math.inf)
    if not math.isfinite(bad):
        alternatives[:] = bad
        assert bracket(problem, allocation, alternatives, bound.multipliers, box).lower == 0.0


def test_empty_certificates_prove_nothing() -> None:
    problem = sl.problems.end_of_optimism(noise_variance=1.0)
    assert bracket(problem, np.zeros(3), np.zeros((0, 2)), np.zeros(0), None) == (0.0, math.inf)
    # theta itself is no alternative, nor is one that favours the best arm
    away = np.array([[1.0, 0.0], [1.0, -1.0]])
    assert bracket(problem, np.zeros(3), away, np.ones(2), None).lower == 0.0


def test_weight_missing_in_a_direction() -> None:
    problem = sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.2], 1.0)
    one_sided = np.array([np.inf, 1.0, 0.0])
    assert bracket(problem, one_sided, np.zeros((0, 3)), np.zeros(0), None).upper == math.inf


def test_alternatives_outside_m_prove_nothing() -> None:
    problem = sl.problems.end_of_optimism(noise_variance=1.0)
    bound = sl.lower_bound(problem)
    certificate = (bound.allocation, bound.alternatives, bound.multipliers)
    narrow = sl.problems.Polytope.box([-1.0, -0.4], [1.0, 0.4])  # the alternative has 0.5
    assert bracket(problem, *certificate, narrow) == (0.0, 0.0)  # none is left
    # within a box that is tiny beside theta, tolerances are those of the box
    problem = sl.LinearBandit([[1.0, 0.0], [1.0, 1e-10], [0.0, 1.0]], [1.0, -1.0], 1.0)
    bound = sl.lower_bound(problem)
    tiny = sl.problems.Polytope.box([1.0 - 1e-9, -1.0 - 1e-9], [1.0 + 1e-9, -1.0 + 1e-9])
    assert bracket(problem, bound.allocation, bound.alternatives, bound.multipliers, tiny) == (0, 0)


@pytest.mark.parametrize("claimed", [[1.0, 0.5, 1.0], [1.0, 0.5, 0.75]])
def test_alternatives_that_m_does_not_allow(claimed: list[float]) -> None:
    """The first is outside M; the second is inside, but would have to be lengthened.

    With nu_3 - nu_2 <= 1/4, c* is 5.5 (see the cases by hand); either would prove 6.
    """
    problem = sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.0], 1.0)
    box = [*np.eye(3).tolist(), *(-np.eye(3)).tolist()]
    polytope = sl.problems.Polytope([*box, [0.0, -1.0, 1.0]], [2.0] * 6 + [0.25])
    alternatives = np.array([[1.0, 1.0, 0.0], claimed])
    multipliers = np.array([4.0, 2.0])
    allocation = np.array([np.inf, 8.0, 2.0])
    assert bracket(problem, allocation, alternatives, multipliers, None).lower == pytest.approx(6.0)
    within = bracket(problem, allocation, alternatives, multipliers, polytope)
    assert within.lower == pytest.approx(4.0)
    assert within.upper >= 5.5


def test_ties_are_relative_to_the_arm() -> None:
    """A huge arm elsewhere does not make small gaps vanish."""
    actions = np.array([[1.0, 0.0], [1.0 - 1e-9, 1.0], [-1e9, 1.0]])
    problem = sl.LinearBandit(actions, [1.0, 0.0], 1.0)
    assert optimal_arms(problem).tolist() == [True, False, False]


def test_units_are_powers_of_two() -> None:
    problem = sl.LinearBandit([[3e-30, 0.0, 1e40], [1e-30, 0.0, 2e40]], [1e30, 7.0, 1e-40], 1.0)
    own = scale_problem(problem)
    assert (np.frexp(own.units)[0] == 0.5).all()
    assert (own.actions * own.units == problem.actions).all()
    assert 0.25 <= np.abs(own.actions[:, [0, 2]]).max() <= 1.0
