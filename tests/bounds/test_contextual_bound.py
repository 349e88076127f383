"""c* with contexts, and the bound at horizons at which contexts may be rare."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline.bounds.certificate import bracket
from sightline.bounds.finite_horizon import finite_bracket
from sightline.bounds.oracle import CoveringProgram
from sightline.report.bound import bound_figure
from tests import naive_bounds, naive_bounds_contexts
from tests.naive import Array

# tests look at the gap themselves where it matters
pytestmark = pytest.mark.filterwarnings("ignore::sightline.types.ConvergenceWarning")

seeds = st.integers(0, 10**6)
CLOSE = 1e-7
ROUNDING = 1e-9  # far above that of a certificate, far below what corruption does
LAW = [0.7, 0.3]


def random_sets(seed: int, contexts: int, d: int) -> tuple[list[Array], Array]:
    """Arms that span all dimensions in every context, which spares the naive truth the others."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(d + 1, d + 4, contexts)
    return [rng.standard_normal((k, d)) for k in sizes], rng.standard_normal(d)


def checked(problem: sl.LinearBandit | sl.ContextualBandit) -> sl.types.LowerBound:
    bound = sl.lower_bound(problem)
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)
    return bound


def apart(first: Array, second: Array) -> list[Array]:
    """Arms of two contexts in coordinates of their own."""
    left = np.hstack([first, np.zeros((len(first), second.shape[1]))])
    right = np.hstack([np.zeros((len(second), first.shape[1])), second])
    return [left, right]


def budgets(n: float, probabilities: Any) -> Array:
    return np.asarray(n * np.asarray(probabilities) / math.log(n))


# --- c* -----------------------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), d=st.integers(2, 4))
def test_one_context_is_the_bandit(seed: int, k: int, d: int) -> None:
    """To the last bit: contexts are no other program."""
    rng = np.random.default_rng(seed)
    arms, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
    noise_std = rng.uniform(0.5, 2.0, k)
    plain = checked(sl.LinearBandit(arms, theta, noise_std))
    alone = checked(sl.ContextualBandit([arms], theta, noise_std=noise_std))
    assert (alone.lower, alone.upper) == (plain.lower, plain.upper)
    assert (alone.allocation == plain.allocation).all()
    assert (alone.alternatives == plain.alternatives).all()


@settings(max_examples=15, deadline=None)
@given(seed=seeds, contexts=st.integers(1, 3), d=st.integers(3, 5))
def test_cutting_planes_agree(seed: int, contexts: int, d: int) -> None:
    sets, theta = random_sets(seed, contexts, d)
    lower, upper = naive_bounds_contexts.lower_bound(sets, theta, 0.7)
    bound = checked(sl.ContextualBandit(sets, theta, noise_std=0.7))
    assert bound.lower <= upper * (1 + ROUNDING)
    assert bound.upper >= lower * (1 - ROUNDING)
    assert (bound.upper > 0) == (contexts < d)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, k=st.integers(3, 6))
def test_contexts_with_features_of_their_own_add_up(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((k, 2)), rng.standard_normal((4, 2))
    theta = rng.standard_normal(4)
    bound = checked(sl.ContextualBandit(apart(first, second), theta, LAW, 0.5))
    parts = [
        naive_bounds.in_the_plane(first, theta[:2], 0.5),
        naive_bounds.in_the_plane(second, theta[2:], 0.5),
    ]
    assert bound.value == pytest.approx(sum(parts), rel=CLOSE)
    costs = np.where(np.isfinite(bound.allocation), bound.allocation, 0.0) * bound.problem.gaps
    assert costs[:k].sum() == pytest.approx(parts[0], abs=1e-6 * sum(parts))


def test_a_context_that_teaches_for_nothing() -> None:
    """End of optimism, and a second context whose best arm shows the second coordinate.

    Alone it costs 8; with [[0, 1]] always on offer somewhere, nothing is left to pay for.
    """
    arms = sl.problems.end_of_optimism(noise_variance=1.0).actions
    assert checked(sl.ContextualBandit([arms], [1.0, 0.0])).value == pytest.approx(8.0)
    both = checked(sl.ContextualBandit([arms, [[0.0, 1.0]]], [1.0, 0.0], [0.999, 0.001]))
    assert (both.lower, both.upper) == (0.0, 0.0)
    same = checked(sl.ContextualBandit([arms, [[2.0, 0.0]]], [1.0, 0.0], [0.999, 0.001]))
    assert same.value == pytest.approx(8.0)


@settings(max_examples=15, deadline=None)
@given(seed=seeds, factor=st.floats(1e-3, 1e3))
def test_scales_and_frequencies(seed: int, factor: float) -> None:
    sets, theta = random_sets(seed, 2, 4)
    bound = checked(sl.ContextualBandit(sets, theta, LAW))
    other = checked(sl.ContextualBandit(sets, theta, [0.01, 0.99]))
    assert (other.lower, other.upper) == (bound.lower, bound.upper)
    # noise and gaps grow together: the same pulls, each at more cost
    larger = checked(sl.ContextualBandit(sets, factor * theta, LAW, factor))
    assert larger.value == pytest.approx(factor * bound.value, rel=CLOSE)
    swapped = checked(sl.ContextualBandit(sets[::-1], theta, LAW[::-1]))
    assert swapped.value == pytest.approx(bound.value, rel=CLOSE)


@settings(max_examples=10, deadline=None)
@given(seed=seeds)
def test_within_a_polytope(seed: int) -> None:
    """The two contexts are one program over all arms; within a large box it is that of R^d."""
    rng = np.random.default_rng(seed)
    first, second = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    theta = rng.standard_normal(4)
    problem = sl.ContextualBandit(apart(first, second), theta)
    size = rng.uniform(0.2, 2.0)
    within = sl.lower_bound(problem, sl.problems.Polytope.box(theta - size, theta + size))
    assert within.verify() == (within.lower, within.upper)
    parts = 0.0
    for arms, own in ((first, theta[:2]), (second, theta[2:])):
        best = arms[(arms @ own).argmax()]
        reach = size / np.abs(best[::-1]).max()  # along theta + s q
        parts += naive_bounds.in_the_plane(arms, own, 1.0, (-reach, reach))
    assert within.value == pytest.approx(parts, rel=1e-6)


def test_a_short_arm_that_is_parallel_to_the_best() -> None:
    """It is told from nothing by rounding: no alternative makes it best."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        theta = rng.standard_normal(3)
        bound = checked(sl.LinearBandit([theta, 1e-4 * theta], theta))
        assert (bound.lower, bound.upper) == (0.0, 0.0)


def test_ties_are_relative_to_the_context() -> None:
    """A huge best arm of another context does not make small gaps vanish."""
    sets = [[[1e9, 0.0]], [[1.0, 0.0], [1.0 - 1e-9, 1.0]]]
    bound = checked(sl.ContextualBandit(sets, [1.0, 0.0]))
    assert bound.optimal_arms.tolist() == [0, 1]
    alone = checked(sl.LinearBandit(sets[1], [1.0, 0.0]))
    assert bound.value == pytest.approx(alone.value, rel=CLOSE)


def test_an_arm_close_to_the_best_of_its_context() -> None:
    """It is known by the difference from that one, whatever the arms of other contexts are."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        best, other, e = np.linalg.qr(rng.standard_normal((3, 3)))[0]
        close = best + 1e-11 * (e - 0.5 * best)
        sets = [np.array([1e3 * other]), np.array([best, close, 0.3 * e])]
        bound = checked(sl.ContextualBandit(sets, best + 0.1 * other))
        # theta + s e makes it as good; the third arm, of gap 1, refutes that
        s = (best - close) @ bound.problem.theta / ((close - best) @ e)
        assert bound.value == pytest.approx(2.0 / (0.3 * s) ** 2, rel=1e-3)


@settings(max_examples=20, deadline=None)
@given(seed=seeds, size=st.sampled_from([1e-6, 1e-2, 1.0]))
def test_corruption_never_moves_a_side_beyond_the_truth(seed: int, size: float) -> None:
    sets, theta = random_sets(seed, 2, 3)
    bound = checked(sl.ContextualBandit(sets, theta))
    rng = np.random.default_rng(seed)
    allocation = bound.allocation * np.exp(size * rng.standard_normal(len(bound.allocation)))
    alternatives = bound.alternatives + size * rng.standard_normal(bound.alternatives.shape)
    multipliers = bound.multipliers * np.exp(size * rng.standard_normal(len(bound.multipliers)))
    lower, upper = bracket(bound.problem, allocation, alternatives, multipliers, None)
    assert lower <= bound.upper * (1 + ROUNDING)
    assert upper >= bound.lower * (1 - ROUNDING)


def test_the_covering_program_of_contexts() -> None:
    sets, theta = random_sets(3, 2, 4)
    bound = checked(sl.ContextualBandit(sets, theta))
    assert CoveringProgram.of(bound).solve()[0] == pytest.approx(bound.lower, rel=1e-6)


# --- why c* is zero -----------------------------------------------------------------------------


def test_reasons() -> None:
    eye = np.eye(2)
    spanning = sl.ContextualBandit([eye, [[0.0, 1.0], [0.0, 0.5]]], [1.0, 0.5])
    reason = sl.lower_bound(spanning).reason
    assert reason is not None
    assert "optimal arms of the contexts already reveal" in reason
    assert sl.lower_bound(sl.LinearBandit(eye, [1.0, 0.5])).reason is None
    parallel = sl.lower_bound(sl.LinearBandit([[1.0, 0.0], [0.5, 0.0]], [1.0, 0.0])).reason
    assert parallel is not None
    assert "contexts" not in parallel
    alike = sl.lower_bound(sl.ContextualBandit([[[1.0]], [[2.0]]], [1.0])).reason
    assert alike == "Every arm is optimal: there is nothing to learn."
    box = sl.problems.Polytope.box([0.9, 0.4], [1.1, 0.6])
    within = sl.lower_bound(sl.LinearBandit(eye, [1.0, 0.5]), box).reason
    assert within is not None
    assert "within the parameter set" in within


# --- at a horizon -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [2, 100, 150, 200, 1000, 10**6, 10**12])
def test_two_arms_in_closed_form(n: int) -> None:
    bound = sl.lower_bound(sl.LinearBandit(np.eye(2), [1.0, 0.5], 1.0))
    truth = naive_bounds_contexts.two_arms(0.5, 1.0, n / math.log(n))
    at = bound.at(n)
    assert at.verify() == (at.lower, at.upper)
    assert at.lower <= truth * (1 + 1e-7)  # the closed form cancels digits
    assert at.upper >= truth * (1 - 1e-7)
    assert at.gap <= 1e-7
    assert math.isinf(truth) == (n <= 150)


def test_the_first_horizon_that_is_enough() -> None:
    """One arm pays nothing and shows nothing: 8 pulls per log n of the other are needed."""
    bound = sl.lower_bound(sl.LinearBandit([[0.0], [0.5]], [-1.0], 1.0))
    few, enough = bound.at(26), bound.at(27)
    assert 26 / math.log(26) < 8.0 < 27 / math.log(27)
    assert (few.lower, few.upper, few.gap) == (math.inf, math.inf, 0.0)
    assert few.regret == math.inf
    assert enough.value == pytest.approx(4.0, rel=1e-7)
    assert enough.allocation == pytest.approx([27 / math.log(27) - 8.0, 8.0], rel=1e-6)
    assert enough.regret == pytest.approx(4.0 * math.log(27), rel=1e-7)


@pytest.mark.parametrize("n", [1000, 10**5, 10**9])
def test_rare_contexts_in_closed_form(n: int) -> None:
    """Contexts that say nothing of each other: each pays for itself, within its own rounds."""
    probabilities = [0.99, 0.01]
    problem = sl.ContextualBandit(
        apart(np.eye(2), np.eye(2)), [1.0, 0.5, 0.3, 1.0], probabilities, 0.5
    )
    shares = budgets(n, probabilities)
    truth = sum(
        naive_bounds_contexts.two_arms(gap, 0.5, share)
        for gap, share in zip((0.5, 0.7), shares, strict=True)
    )
    at = sl.lower_bound(problem).at(n)
    assert math.isinf(truth) == (n == 1000)
    if math.isinf(truth):
        assert at.lower == math.inf
    else:
        assert at.value == pytest.approx(truth, rel=1e-6)
        assert at.allocation[:2].sum() == pytest.approx(shares[0], rel=1e-12)
        assert at.allocation[2:].sum() == pytest.approx(shares[1], rel=1e-12)
        # with one more round per log n, the rare context gains more
        assert at.prices[1] < at.prices[0] <= 0.0


@settings(max_examples=10, deadline=None)
@given(
    seed=seeds,
    contexts=st.integers(1, 3),
    d=st.integers(2, 4),
    n=st.sampled_from([30, 300, 1000]),
)
def test_cutting_planes_at_a_horizon_agree(seed: int, contexts: int, d: int, n: int) -> None:
    sets, theta = random_sets(seed, contexts, d)
    rng = np.random.default_rng(seed)
    noise_std = 0.3 * rng.uniform(0.5, 2.0, sum(map(len, sets)))
    probabilities = rng.dirichlet(np.ones(contexts)) * 0.9 + 0.1 / contexts
    problem = sl.ContextualBandit(sets, theta, probabilities, noise_std)
    lower, upper = naive_bounds_contexts.at_horizon(
        sets, theta, noise_std, budgets(n, probabilities)
    )
    at = sl.lower_bound(problem).at(n)
    assert at.verify() == (at.lower, at.upper)
    assert at.gap <= 1e-5
    # the solver of linear programs has tolerances of its own
    assert at.lower <= upper * (1 + 1e-5)
    assert at.upper >= lower * (1 - 1e-5)
    if math.isfinite(upper):
        assert upper - lower < 0.05 * upper + 1e-6, "cutting planes know little"


@settings(max_examples=15, deadline=None)
@given(seed=seeds, contexts=st.integers(1, 4))
def test_the_curve_falls_to_the_limit(seed: int, contexts: int) -> None:
    sets, theta = random_sets(seed, contexts, 3)
    bound = checked(sl.ContextualBandit(sets, theta, noise_std=30.0))
    curve = [bound.at(10**e) for e in (1, 2, 3, 5, 8, 13, 30, 1000)]
    for sooner, later in itertools.pairwise(curve):
        assert later.lower <= sooner.upper * (1 + ROUNDING)
    for at in curve:
        assert at.upper >= bound.lower * (1 - ROUNDING)
    assert curve[-1].value == pytest.approx(bound.value, rel=1e-6, abs=1e-300)
    assert curve[0].lower == math.inf


def test_spanning_contexts_cost_nothing_once_they_came_often_enough() -> None:
    problem = sl.ContextualBandit([np.eye(2), [[0.0, 1.0]]], [1.0, 0.5], [0.9, 0.1], 1.0)
    bound = checked(problem)
    assert bound.upper == 0.0
    early, late = bound.at(300), bound.at(10**4)
    assert early.lower > 0.0
    assert (late.lower, late.upper) == (0.0, 0.0)
    assert late.allocation[1] == 0.0


def test_several_optimal_arms_that_are_enough_together() -> None:
    """The first one shows one coordinate, the second, as good, shows the other."""
    arms = [[1.0, 0.0], [0.0, 1.0], [0.5, 0.4]]
    late = checked(sl.LinearBandit(arms, [1.0, 1.0], 0.1)).at(1000)
    assert (late.lower, late.upper) == (0.0, 0.0)
    assert late.allocation[2] == 0.0
    assert late.allocation[1] > 0.0


@pytest.mark.parametrize("n", [10**20, 10**300, 10**1000, 10**4000])
def test_horizons_beyond_floats(n: int) -> None:
    bound = checked(sl.problems.end_of_optimism(noise_variance=1.0))
    at = bound.at(n)
    assert at.value == pytest.approx(8.0, rel=1e-7)
    assert at.gap <= 1e-7
    assert at.regret == pytest.approx(8.0 * math.log(n), rel=1e-7)
    assert math.isinf(at.allocation[0]) == (n > 10**308)


@settings(max_examples=10, deadline=None)
@given(seed=seeds, power=st.integers(-30, 30))
def test_units_at_a_horizon(seed: int, power: int) -> None:
    """Rewards, noise and parameter in another unit: the same pulls, and costs in that unit."""
    sets, theta = random_sets(seed, 2, 3)
    factor = 10.0**power
    plain = sl.lower_bound(sl.ContextualBandit(sets, theta, LAW, 0.1)).at(5000)
    other = sl.lower_bound(sl.ContextualBandit(sets, factor * theta, LAW, factor * 0.1)).at(5000)
    assert other.value == pytest.approx(factor * plain.value, rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_difficult_instances(part: int) -> None:
    """Near-duplicates, small gaps, features of any unit: narrow at nearly all horizons."""
    rng = np.random.default_rng([8, part])
    gaps = []
    for _ in range(20):
        k = int(rng.integers(4, 50))
        actions, theta, noise_std = naive_bounds.instance(rng, k, int(rng.integers(1, 10)))
        contexts = int(rng.integers(1, 5))
        cuts = np.sort(rng.choice(np.arange(1, k), contexts - 1, replace=False))
        probabilities = rng.dirichlet(np.ones(contexts)) * 0.99 + 0.01 / contexts
        bound = sl.lower_bound(
            sl.ContextualBandit(np.split(actions, cuts), theta, probabilities, noise_std)
        )
        for e in (1, 3, 5, 8, 12, 30, 1000):
            at = bound.at(10**e)
            assert at.verify() == (at.lower, at.upper)
            gaps.append(at.gap)
    assert np.mean(np.array(gaps) <= 1e-6) > 0.95


# --- the certificate at a horizon ---------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    seed=seeds,
    n=st.sampled_from([20, 300, 3000, 10**9]),
    what=st.integers(0, 4),
    size=st.sampled_from([1e-6, 1e-2, 1.0, 100.0]),
)
def test_a_corrupted_certificate_proves_less(seed: int, n: int, what: int, size: float) -> None:
    sets, theta = random_sets(seed, 2, 3)
    at = sl.lower_bound(sl.ContextualBandit(sets, theta, LAW, 0.3)).at(n)
    rng = np.random.default_rng(seed)
    allocation, prices = at.allocation.copy(), at.prices.copy()
    alternatives, multipliers = at.alternatives.copy(), at.multipliers.copy()
    if what in (0, 4):
        allocation *= np.exp(size * rng.standard_normal(len(allocation)))
        allocation[rng.integers(len(allocation))] = 0.0
    if what in (1, 4):
        alternatives += size * rng.standard_normal(alternatives.shape)
    if what in (2, 4):
        multipliers *= np.exp(size * rng.standard_normal(len(multipliers)))
    if what in (3, 4):
        prices += size * rng.standard_normal(len(prices))
    lower, upper = finite_bracket(
        at.bound.problem, n, allocation, alternatives, multipliers, prices
    )
    assert lower <= at.upper * (1 + ROUNDING)
    assert upper >= at.lower * (1 - ROUNDING)


def test_allocations_beyond_the_budget_prove_nothing() -> None:
    at = sl.lower_bound(sl.LinearBandit(np.eye(2), [1.0, 0.5], 1.0)).at(200)
    rest = (at.alternatives, at.multipliers, at.prices)
    problem = at.bound.problem
    assert finite_bracket(problem, 200, at.allocation, *rest).upper == at.upper
    # more of the dear arm only shifts the budget towards it, and costs more
    assert finite_bracket(problem, 200, at.allocation * [1.0, 1.1], *rest).upper > at.upper
    assert finite_bracket(problem, 200, at.allocation * [1.0, 0.9], *rest).upper == math.inf
    assert finite_bracket(problem, 200, at.allocation * [100.0, 1.0], *rest).upper == math.inf
    for bad in (math.nan, -1.0):
        assert finite_bracket(problem, 200, at.allocation * [1.0, bad], *rest).upper == math.inf


def test_prices_belong_to_the_proof() -> None:
    """Budgets at the limit are worth something: without their prices the proof fails."""
    at = sl.lower_bound(sl.LinearBandit(np.eye(2), [1.0, 0.5], 1.0)).at(200)
    problem = at.bound.problem
    proof = (at.allocation, at.alternatives, at.multipliers)
    assert finite_bracket(problem, 200, *proof, 3.0 * at.prices).lower < 0.9 * at.lower
    # what was proven with more rounds does not hold with fewer of them, nor the other way round
    assert finite_bracket(problem, 2000, *proof, at.prices).lower < at.lower


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("horizon", "message"),
    [
        (1, "horizon must be at least 2, got 1"),
        (-(10**30), r"horizon must be at least 2, got -10\*\*30"),
        (10.0, "horizon must be an integer"),
        (True, "horizon must be an integer"),
        ("1000", "horizon must be an integer"),
    ],
)
def test_bad_horizons(horizon: Any, message: str) -> None:
    bound = sl.lower_bound(sl.problems.large_gaps())
    with pytest.raises(ValueError, match=message):
        bound.at(horizon)


def test_more_arms_than_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    bound = sl.lower_bound(sl.problems.large_gaps())
    monkeypatch.setattr("sightline.validation._memory", lambda: 100)
    with pytest.raises(ValueError, match=r"a bound at a horizon for k = .* of memory"):
        bound.at(100)


def test_what_is_not_available() -> None:
    problem = sl.ContextualBandit([np.eye(2), -np.eye(2)], [1.0, 0.5])
    box = sl.lower_bound(problem, sl.problems.Polytope.box([-2.0, -2.0], [2.0, 2.0]))
    with pytest.raises(ValueError, match=r"a bound at a horizon is for all of R\^d"):
        box.at(100)
    with pytest.raises(ValueError, match="only problems without contexts can be drawn"):
        bound_figure(sl.lower_bound(problem))
    with pytest.raises(
        ValueError, match="a LinearBandit, a ContextualBandit or a LinearGame, got list"
    ):
        sl.lower_bound([problem])  # type: ignore[arg-type]
