"""c*: exact values, brackets verified by arithmetic, invariances and edge cases."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from tests import naive_bounds
from tests.naive import Array

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)
# c* is known to the tolerance of 1e-8, and moves with the rounding of the gaps
CLOSE = 1e-7


def unit(**options: Any) -> sl.LinearBandit:
    return sl.problems.end_of_optimism(noise_variance=1.0, **options)


def random_problem(seed: int, k: int, d: int) -> sl.LinearBandit:
    rng = np.random.default_rng(seed)
    return sl.LinearBandit(rng.standard_normal((k, d)), rng.standard_normal(d), 1.0)


def value(actions: Any, theta: Any, noise_std: float = 1.0) -> float:
    bound = sl.lower_bound(sl.LinearBandit(actions, theta, noise_std))
    assert bound.converged
    assert bound.lower <= bound.upper * (1 + 1e-13)
    return bound.value


# --- values -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("problem", "value"),
    [
        (unit(slope=2.0), 8.0),
        (unit(slope=4.0), 32.0),
        (unit(slope=8.0), 128.0),
        (unit(slope=4.0, epsilon=0.1), 20.0),
        (sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.2], 1.0), 6.5),
        (sl.problems.end_of_optimism(), 0.8),
        (sl.problems.end_of_optimism_family(4, noise_variance=1.0), 24.0),
    ],
    ids=str,
)
def test_exact_values(problem: sl.LinearBandit, value: float) -> None:
    bound = sl.lower_bound(problem)
    assert bound.lower <= value * (1 + 1e-13)
    assert bound.upper >= value * (1 - 1e-13)
    assert bound.gap <= 1e-8
    assert bound.verify() == (bound.lower, bound.upper)


def test_large_gaps() -> None:
    assert sl.lower_bound(sl.problems.large_gaps()).value == pytest.approx(2.2727, abs=5e-5)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), noise_std=st.floats(0.01, 100.0))
def test_closed_form_in_the_plane(seed: int, k: int, noise_std: float) -> None:
    problem = random_problem(seed, k, 2)
    truth = naive_bounds.in_the_plane(problem.actions, problem.theta, noise_std)
    assert value(problem.actions, problem.theta, noise_std) == pytest.approx(truth, rel=CLOSE)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, k=st.integers(3, 8), d=st.integers(2, 4))
def test_cutting_planes_agree(seed: int, k: int, d: int) -> None:
    problem = random_problem(seed, k, d)
    truth = naive_bounds.lower_bound(problem.actions, problem.theta, 1.0)
    bound = sl.lower_bound(problem)
    assert bound.lower <= truth.upper * (1 + 1e-9)
    assert bound.upper >= truth.lower * (1 - 1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_200_instances(part: int) -> None:
    """Near-duplicates, small gaps, features of any unit; every eighth against cutting planes."""
    rng = np.random.default_rng([7, part])
    for i in range(50):
        k = int(np.exp(rng.uniform(math.log(3), math.log(200))))
        instance = naive_bounds.instance(rng, k, int(rng.integers(2, 16)))
        bound = sl.lower_bound(sl.LinearBandit(*instance))
        assert 0.0 <= bound.gap <= 1e-6
        assert bound.verify() == (bound.lower, bound.upper)
        if i % 8 == 0 and len(instance.theta) < 8:
            truth = naive_bounds.lower_bound(*instance, tolerance=1e-4)
            assert bound.lower <= truth.upper * (1 + 1e-9)
            assert bound.upper >= truth.lower * (1 - 1e-9)


# --- invariances --------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(3, 8), d=st.integers(2, 4))
def test_any_linear_map_of_the_features(seed: int, k: int, d: int) -> None:
    problem = random_problem(seed, k, d)
    rng = np.random.default_rng(seed + 1)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    general = rotation * 10.0 ** rng.uniform(-4, 4, d) @ np.linalg.qr(rng.random((d, d)))[0]
    units = np.diag(2.0 ** rng.integers(-200, 200, d))
    expected = value(problem.actions, problem.theta)
    for change in (rotation, general, units):
        changed = value(problem.actions @ change, np.linalg.solve(change, problem.theta))
        # gaps are known to roundings of |x| |theta|, which the map may enlarge
        assert changed == pytest.approx(expected, rel=1e-5)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, k=st.integers(3, 7), factor=st.floats(1e-3, 1e3))
def test_relabelling_duplicates_and_scales(seed: int, k: int, factor: float) -> None:
    problem = random_problem(seed, k, 3)
    rng = np.random.default_rng(seed + 1)
    X, theta = problem.actions, problem.theta
    expected = value(X, theta)
    close = pytest.approx(expected, rel=CLOSE)
    assert value(X[rng.permutation(k)], theta) == close
    assert value(np.vstack([X, X[rng.integers(k, size=3)]]), theta) == close
    assert value(X, theta, factor) == pytest.approx(expected * factor**2, rel=CLOSE)
    assert value(X, factor * theta) == pytest.approx(expected / factor, rel=CLOSE)
    assert value(np.hstack([X, X @ rng.standard_normal((3, 2))]), [*theta, 0.0, 0.0]) == close


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(3, 7), shorter=st.floats(0.05, 1.0))
def test_another_arm(seed: int, k: int, shorter: float) -> None:
    """Evidence from it can only help; having to refute it can only hurt."""
    problem = random_problem(seed, k, 3)
    theta = problem.theta
    arm = shorter * np.random.default_rng(seed + 1).standard_normal(3)
    arm -= max(0.0, arm @ theta - problem.means.max() + 0.1) * theta / (theta @ theta)
    actions = np.vstack([problem.actions, arm])
    without, more = sl.lower_bound(problem), sl.lower_bound(sl.LinearBandit(actions, theta, 1.0))
    old = np.append(without.allocation, 0.0)
    arms, points, gaps, _ = naive_bounds.reduced(actions, theta)
    refuted = naive_bounds.evidence(points, gaps, old[arms] * gaps)[0].min() >= 2.0 * (1 - 1e-7)
    if refuted:  # the old allocation suffices
        assert more.value <= without.value * (1 + CLOSE)
    if not refuted and more.allocation[-1] * more.problem.gaps[-1] < 1e-8 * more.value:
        assert more.value >= without.value * (1 - CLOSE)  # the new one sufficed before
    docile = np.vstack([problem.actions, shorter * problem.actions[problem.best]])
    if problem.means[problem.best] > 0:
        assert value(docile, theta) == pytest.approx(without.value, rel=CLOSE)


# --- a noise level per arm ----------------------------------------------------------------------


def random_levels(seed: int, k: int, d: int) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    levels = np.exp(rng.uniform(-1.0, 1.0, k))
    return rng.standard_normal((k, d)), rng.standard_normal(d), levels


@pytest.mark.parametrize(("seed", "k", "d"), [(0, 4, 2), (1, 4, 2), (2, 5, 3), (3, 5, 3)])
def test_levels_against_a_general_solver(seed: int, k: int, d: int) -> None:
    actions, theta, levels = random_levels(seed, k, d)
    bound = sl.lower_bound(sl.LinearBandit(actions, theta, levels))
    truth = naive_bounds.with_levels(actions, theta, levels)
    assert bound.value == pytest.approx(truth, rel=1e-6)
    assert bound.lower <= truth * (1 + 1e-7)
    assert bound.upper >= truth * (1 - 1e-7)
    assert bound.gap <= 1e-8
    assert bound.verify() == (bound.lower, bound.upper)
    others = np.isfinite(bound.allocation)
    assert bound.allocation[others] @ bound.problem.gaps[others] == pytest.approx(bound.upper)


@pytest.mark.parametrize("seed", range(3))
def test_the_general_solver_agrees_for_equal_noise(seed: int) -> None:
    """So that it may be trusted where levels differ."""
    actions, theta, _ = random_levels(seed, 4, 2)
    truth = naive_bounds.in_the_plane(actions, theta, 0.5)
    assert naive_bounds.with_levels(actions, theta, np.full(4, 0.5)) == pytest.approx(
        truth, rel=1e-6
    )


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), d=st.integers(1, 4))
def test_equal_levels_are_the_same_as_one(seed: int, k: int, d: int) -> None:
    actions, theta, _ = random_levels(seed, k, d)
    one = sl.lower_bound(sl.LinearBandit(actions, theta, 0.3))
    several = sl.lower_bound(sl.LinearBandit(actions, theta, [0.3] * k))
    assert (one.lower, one.upper) == (several.lower, several.upper)
    np.testing.assert_array_equal(one.allocation, several.allocation)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), d=st.integers(2, 4))
def test_levels_nearly_equal_are_nearly_the_same_as_one(seed: int, k: int, d: int) -> None:
    """The same value by the arithmetic of levels that differ."""
    actions, theta, _ = random_levels(seed, k, d)
    levels = 0.3 * (1.0 + 1e-10 * np.arange(k))
    assert sl.lower_bound(sl.LinearBandit(actions, theta, levels)).value == pytest.approx(
        value(actions, theta, 0.3), rel=CLOSE
    )


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), d=st.integers(1, 4))
def test_c_grows_with_the_square_of_the_levels(seed: int, k: int, d: int) -> None:
    actions, theta, levels = random_levels(seed, k, d)
    one = sl.lower_bound(sl.LinearBandit(actions, theta, levels))
    three = sl.lower_bound(sl.LinearBandit(actions, theta, 3.0 * levels))
    assert one.verify() == (one.lower, one.upper)
    assert three.value == pytest.approx(9.0 * one.value, rel=CLOSE)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), d=st.integers(1, 4), factor=st.floats(1.0, 10.0))
def test_more_noise_on_one_arm_never_helps(seed: int, k: int, d: int, factor: float) -> None:
    actions, theta, levels = random_levels(seed, k, d)
    before = sl.lower_bound(sl.LinearBandit(actions, theta, levels))
    levels[seed % k] *= factor
    after = sl.lower_bound(sl.LinearBandit(actions, theta, levels))
    assert after.upper >= before.lower * (1 - 1e-12)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        # the third arm gives 1 / sigma_3^2 per cost, the second 0.01^2 slope^2 / (0.01 sigma_2^2)
        ([1.0, 1.0, 1.0], 2.0 * 4.0),
        ([5.0, 1.0, 1.0], 2.0 * 4.0),  # the best arm is free, whatever its noise
        ([1.0, 1.0, 0.5], 2.0 * 4.0 * 0.25),
        ([1.0, 1.0, 4.0], 2.0 * 4.0 * 16.0),
        ([1.0, 0.1, 1.0], 2.0 * 4.0 * 0.25),
    ],
)
def test_end_of_optimism_with_levels(levels: list[float], expected: float) -> None:
    problem = unit(slope=2.0)
    bound = sl.lower_bound(sl.LinearBandit(problem.actions, problem.theta, levels))
    assert bound.lower <= expected * (1 + 1e-13)
    assert bound.upper >= expected * (1 - 1e-13)
    assert bound.gap <= 1e-8
    assert bound.verify() == (bound.lower, bound.upper)


@pytest.mark.parametrize("seed", range(3))
def test_levels_within_a_set_that_constrains_nothing(seed: int) -> None:
    actions, theta, levels = random_levels(seed, 5, 2)
    problem = sl.LinearBandit(actions, theta, levels)
    free = sl.lower_bound(problem)
    within = sl.lower_bound(problem, sl.problems.Polytope.box([-1e4] * 2, [1e4] * 2))
    assert within.lower <= free.upper * (1 + 1e-9)
    assert within.upper >= free.lower * (1 - 1e-9)
    assert within.value == pytest.approx(free.value, rel=1e-6)
    assert within.verify() == (within.lower, within.upper)


# --- edges --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("actions", "theta", "expected"),
    [
        ([[1.0, 2.0]], [1.0, 0.0], 0.0),
        ([[1.0, 2.0]] * 3, [1.0, 0.0], 0.0),
        ([[0.0, 0.0]] * 2, [1.0, 0.5], 0.0),
        ([[1.0, 0.0], [0.0, 1.0]], [0.0, 0.0], 0.0),
        ([[1.0], [0.5], [-1.0]], [1.0], 0.0),
        ([[0.0], [0.5], [1.0]], [-1.0], 2.0),  # e = 1 for both; the longer arm is cheaper
        ([[0.0, 0.0], [-1.0, 0.0], [0.0, -1.0]], [1.0, 0.5], 6.0),  # 2 / 1 + 2 / 0.5
        ([[1.0, 0.0], [0.5, 0.0], [-1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], 2.0),  # two are docile
        ([[1.0, 0.3], [0.5, 0.15], [-1.0, -0.3]], [1.0, 0.0], 0.0),
        (np.hstack([np.eye(3), [[1.0], [2.0], [3.0]]]), [1.0, 0.5, 0.2, 0.0], 6.5),
        # ties: e vanishes at both optimal arms, so only the third coordinate is left
        (np.eye(3), [1.0, 1.0, 0.5], 4.0),
        # <e, z> = Delta has e_3 = 0.1 / 0.4; arms give 1 / 0.5 and 0.16 / 0.1 per cost
        ([[1.0, 0, 0], [1.0, 1, 0], [0, 0, 1], [0.5, 0.3, 0.4]], [1.0, 0, 0.5], 2.5**2 * 2 * 0.3),
        # tied up to rounding only: 0.1 + 0.2 > 0.3
        ([[0.1, 0.2, 0.0], [0.3, 0.0, 0.0], [0.0, 0.0, 1.0]], [1.0, 1.0, 0.1], 10.0),
    ],
)
def test_edges_with_an_exact_answer(actions: Any, theta: Any, expected: float) -> None:
    problem = sl.LinearBandit(actions, theta, 1.0)
    bound = sl.lower_bound(problem)
    if "0.4" in str(actions):
        gaps = problem.gaps[2:]
        expected = 2.0 * min(gaps[0], gaps[1] / 0.16) * max(1 / gaps[0], 0.4 / gaps[1]) ** 2
    assert bound.lower == pytest.approx(expected, rel=1e-8)
    assert bound.upper == pytest.approx(expected, rel=1e-8)
    assert bound.verify() == (bound.lower, bound.upper)
    assert np.isinf(bound.allocation[bound.optimal_arms]).all()
    assert np.isfinite(np.delete(bound.allocation, bound.optimal_arms)).all()


@pytest.mark.parametrize("epsilon", [1e-4, 1e-8, 1e-12, 1e-14])
@pytest.mark.parametrize("angle", [0.0, 0.7])
def test_tiny_gaps(epsilon: float, angle: float) -> None:
    """c* = 2 (p / Delta)^2 for the near-duplicate of the best arm, as rounding leaves it."""
    rotation = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    actions = np.array([[1.0, 0.0], [1 - epsilon, 4 * epsilon], [0.0, 1.0]]) @ rotation
    problem = sl.LinearBandit(actions, rotation.T @ [1.0, 0.0], 1.0)
    bound = sl.lower_bound(problem)
    p = (actions[1] - actions[0]) @ [-actions[0, 1], actions[0, 0]]
    expected = 2.0 * problem.gaps[2] * (p / problem.gaps[1]) ** 2
    assert bound.value == pytest.approx(expected, rel=1e-8)
    assert bound.converged


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-20, 1e20, 1e69])
def test_features_of_any_size(scale: float) -> None:
    problem = random_problem(3, 6, 3)
    expected = value(problem.actions, problem.theta)
    close = pytest.approx(expected, rel=1e-7)
    assert value(problem.actions * scale, problem.theta / scale) == close
    units = np.array([1.0, scale, 1.0])
    assert value(problem.actions * units, problem.theta / units) == close
    if 1e-70 <= scale <= 1e70:
        assert value(problem.actions, problem.theta, scale) == pytest.approx(
            expected * scale**2, rel=1e-7
        )
        assert value(problem.actions, problem.theta * scale) == pytest.approx(
            expected / scale, rel=1e-7
        )


@pytest.mark.parametrize(("noise_std", "gap"), [(1e-70, 1e70), (1e70, 1e-70), (1.0, 1e-200)])
def test_answers_beyond_floating_point_are_refused(noise_std: float, gap: float) -> None:
    with pytest.raises(ValueError, match=r"\(noise_std / gap\)\^2 must be between"):
        sl.lower_bound(sl.LinearBandit(np.eye(2), [gap, 0.0], noise_std))


@pytest.mark.parametrize("tolerance", [1e-300, 1e-15, 0.3, 1e300])
def test_any_tolerance_gives_a_true_bracket(tolerance: float) -> None:
    problem = random_problem(3, 6, 3)
    truth = sl.lower_bound(problem).value
    bound = sl.lower_bound(problem, tolerance=tolerance)
    assert bound.lower <= truth * (1 + 1e-8)
    assert bound.upper >= truth * (1 - 1e-8)
    assert bound.gap <= max(tolerance, 1e-12)


@pytest.mark.parametrize("tolerance", [0, -1.0, math.nan, math.inf, "1e-8", True, None])
def test_tolerances_that_make_no_sense(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="tolerance must be"):
        sl.lower_bound(unit(), tolerance=tolerance)


@pytest.mark.parametrize("problem", [None, np.eye(2), "end_of_optimism"])
def test_something_else_than_a_problem(problem: Any) -> None:
    with pytest.raises(
        ValueError, match="problem must be a LinearBandit, a ContextualBandit or a Lin"
    ):
        sl.lower_bound(problem)


def test_what_it_says() -> None:
    bound = sl.lower_bound(unit())
    assert "8 <= c* <= 8.0" in repr(bound)
    assert bound.multipliers.sum() == pytest.approx(bound.lower)
    assert bound.allocation[1:] @ bound.problem.gaps[1:] == pytest.approx(bound.upper)
    np.testing.assert_allclose(bound.allocation[1:], [0.0, 8.0], atol=1e-5)


@pytest.mark.slow
def test_pulls_of_ids_approach_the_allocation() -> None:
    """At n = 10^1000, suboptimal pulls per log n agree with alpha, the rest being of lower order.

    Pulls exceed alpha log n by a factor that falls like log^-1/2 n: at n = 10^1000 by some 11 %.
    """
    problem = sl.problems.end_of_optimism()
    bound = sl.lower_bound(problem)
    shares = {
        exponent: _pulls_per_log(problem, exponent, seeds=range(10)) for exponent in (100, 1000)
    }
    ratios = {e: s[:, 2] / bound.allocation[2] for e, s in shares.items()}
    excess = {e: r.mean() - 1.0 for e, r in ratios.items()}
    errors = {e: r.std(ddof=1) / math.sqrt(len(r)) for e, r in ratios.items()}
    assert excess[1000] + 3 * errors[1000] < excess[100] - 3 * errors[100]
    assert abs(excess[1000]) < 0.25
    # the near-duplicate has no part in the allocation: its pulls cost a vanishing fraction
    cost = shares[1000][:, 1:].mean(axis=0) * problem.gaps[1:]
    assert cost[0] < 0.1 * cost[1]


def _pulls_per_log(problem: sl.LinearBandit, exponent: int, seeds: range) -> Array:
    runs = [sl.simulate(problem, sl.IDS(), horizon=10**exponent, seed=seed) for seed in seeds]
    return np.array([run.pulls[-1] / (exponent * math.log(10)) for run in runs], dtype=np.float64)
