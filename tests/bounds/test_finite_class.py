"""c* and V(n) over finite classes: against naive programs, closed forms and arithmetic."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import sightline as sl
from sightline.bounds.oracle import CoveringProgram, online_allocation
from sightline.problems import FiniteClass
from tests import naive_finite as naive

NAMED = {
    "linear": sl.problems.linear_class(8, 2, 11),
    "linear, three dimensions": sl.problems.linear_class(10, 3, 7, 5, 2.0),
    "unimodal": sl.problems.unimodal_class(4, 7, 1),
    "lipschitz": sl.problems.lipschitz_class(5, 6),
    "cheating": sl.problems.cheating_class(8, noise_variance=0.25),
    "revealing": sl.problems.revealing_pair(),
    "hiding": sl.problems.revealing_pair(true=0),
}


@pytest.mark.parametrize("seed", range(60))
def test_c_star_and_horizons_are_those_of_the_naive_programs(seed: int) -> None:
    models, true, noise = naive.random_class(seed)
    problem = FiniteClass(models, true, noise)
    bound = sl.lower_bound(problem)
    expected = naive.c_star(models, models[true], noise)
    assert bound.lower == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert bound.upper == pytest.approx(expected, rel=1e-7, abs=1e-12)
    assert (bound.lower, bound.upper) == bound.verify()
    assert bound.converged
    for n in (2, 30, 1000, 10**6):
        at = bound.at(n)
        expected = naive.value_at(models, models[true], noise, n)
        assert at.lower == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert at.upper == pytest.approx(expected, rel=1e-6, abs=1e-9)
        assert (at.lower, at.upper) == at.verify()


@pytest.mark.parametrize("name", NAMED)
def test_named_classes_agree_with_the_naive_programs(name: str) -> None:
    problem = NAMED[name]
    noise = np.full(problem.k, problem.noise_std)
    bound = sl.lower_bound(problem)
    expected = naive.c_star(problem.models, problem.means, noise)
    assert bound.value == pytest.approx(expected, rel=1e-8, abs=1e-12)
    for n in (100, 10**5):
        expected = naive.value_at(problem.models, problem.means, noise, n)
        assert bound.at(n).value == pytest.approx(expected, rel=1e-6, abs=1e-9)
    far = bound.at(10**1000)
    assert far.converged
    assert far.value == pytest.approx(bound.value, rel=1e-7)


@pytest.mark.parametrize("variance", [0.1, 1.0, 4.0])
@pytest.mark.parametrize(("levels", "step"), [(7, 2), (21, 4), (61, 12)])
def test_a_unimodal_class_explores_the_neighbours_only(
    levels: int, step: int, variance: float
) -> None:
    problem = sl.problems.unimodal_class(3, levels, step, variance)
    bound, gap, excess = sl.lower_bound(problem), step / (levels - 1), 1 / (levels - 1)
    assert bound.value == pytest.approx(2 * 2 * variance * gap / (gap + excess) ** 2)
    assert bound.allocation[[0, 2]] == pytest.approx(2 * variance / (gap + excess) ** 2)
    assert bound.allocation[1] == math.inf


def test_arms_beyond_the_neighbours_need_no_pulls() -> None:
    bound = sl.lower_bound(sl.problems.unimodal_class(5, 9, 2))
    assert bound.allocation[[0, 4]] == pytest.approx(0.0, abs=1e-9)
    assert (bound.allocation[[1, 3]] > 1).all()


@pytest.mark.parametrize("slope", [1, 2])
def test_a_lipschitz_class_needs_the_nearest_models_only(slope: int) -> None:
    """One model per arm: this arm just beats the best, others rise as little as they must."""
    levels = 8
    problem = sl.problems.lipschitz_class(6, levels, slope)
    heights = np.rint(problem.means * (levels - 1))
    arms, best = np.arange(6), problem.best
    nearest = []
    for arm in np.delete(arms, best):
        cone = heights[best] + 1 - slope * np.abs(arms - arm)
        model = np.maximum(heights, cone)
        if model[best] == heights[best]:  # else playing the best arm refutes it
            nearest.append(model / (levels - 1))
    few = FiniteClass([problem.means, *nearest], 0)
    assert sl.lower_bound(few).value == pytest.approx(sl.lower_bound(problem).value, rel=1e-9)


def test_cheating_arms_are_worth_their_cost_if_options_are_many_or_gaps_small() -> None:
    for options, gap, cost in [(16, 0.1, 1.0), (64, 0.05, 2.0)]:
        bits = options.bit_length() - 1
        bound = sl.lower_bound(sl.problems.cheating_class(options, gap, cost))
        assert bound.value <= 2 * bits * cost + 1e-9
        assert bound.value < (options - 1) / (2 * gap)
        assert (bound.allocation[options:] > 0).all()
    dear = sl.lower_bound(sl.problems.cheating_class(4, 0.5, 100.0))
    assert dear.value == pytest.approx(3 / (2 * 0.5))
    assert dear.allocation[4:] == pytest.approx(0.0, abs=1e-9)


def test_a_pair_that_its_best_arm_tells_apart_has_bounded_regret() -> None:
    bound = sl.lower_bound(sl.problems.revealing_pair(0.2))
    assert (bound.lower, bound.upper) == (0.0, 0.0)
    assert bound.reason is not None
    assert "playing optimal arms refutes the others" in bound.reason
    other = sl.lower_bound(sl.problems.revealing_pair(0.2, true=0, noise_variance=0.3))
    assert other.value == pytest.approx(0.3 / (2 * 0.2))
    assert other.reason is None


def test_a_grid_of_linear_models_tends_to_the_linear_bound() -> None:
    linear = sl.lower_bound(sl.problems.unit_sphere(20, 2, 1.0)).value
    values = [
        sl.lower_bound(sl.problems.linear_class(points=points, along=3, radius=0.5)).value
        for points in (101, 1001, 10001)
    ]
    assert all(value <= linear * (1 + 1e-9) for value in values)
    assert values == sorted(values)
    assert values[-1] == pytest.approx(linear, rel=2e-3)


# --- ties, duplicates and near agreement ----------------------------------------------------------


def test_duplicates_change_nothing() -> None:
    models, true, noise = naive.random_class(4)
    once, twice = (FiniteClass(m, true, noise) for m in (models, np.vstack([models, models])))
    assert sl.lower_bound(once).value == sl.lower_bound(twice).value
    assert sl.lower_bound(once).at(100).value == sl.lower_bound(twice).at(100).value


def test_a_tie_of_best_arms_is_no_alternative() -> None:
    """Under the other model the best arm is still one of the best."""
    bound = sl.lower_bound(FiniteClass([[0.5, 0.2], [0.5, 0.5]], 0))
    assert bound.value == 0.0
    assert sl.lower_bound(FiniteClass([[0.5, 0.2], [0.5, 0.5 + 1e-9]], 0)).value > 1.0


def test_several_optimal_arms_are_all_free() -> None:
    models = [[0.5, 0.5, 0.1], [0.5, 0.4, 0.1], [0.5, 0.5, 0.6], [0.5, 0.3, 0.9]]
    bound = sl.lower_bound(FiniteClass(models, 0))
    assert bound.optimal_arms.tolist() == [0, 1]
    # model 1 keeps arm 0, and arm 1 refutes model 3
    assert bound.value == pytest.approx(0.4 * 2 / 0.5**2)
    assert bound.allocation.tolist() == [math.inf, math.inf, pytest.approx(8.0)]


def test_every_arm_optimal() -> None:
    bound = sl.lower_bound(FiniteClass([[0.5, 0.5], [0.5, 0.6]], 0))
    assert bound.value == 0.0
    assert bound.reason is not None
    assert "Every arm is optimal" in bound.reason
    assert sl.lower_bound(FiniteClass([[0.5]], 0)).at(10).value == 0.0


def test_near_confusing_models_matter_within_n_rounds() -> None:
    """The best arm tells 1e-3 from 0: that takes 2 10^6 log n pulls, and one arm takes fewer."""
    near = FiniteClass([[0.5, 0.2], [0.501, 0.8]], 0)
    bound = sl.lower_bound(near)
    assert bound.value == 0.0
    dear = 0.3 * 2 / 0.6**2
    assert bound.at(10**4).value == pytest.approx(dear, rel=0.01)
    assert bound.at(10**9).value == 0.0
    with_optimal = sl.lower_bound(FiniteClass([[0.5, 0.2], [0.5, 0.8]], 0))
    assert with_optimal.value == pytest.approx(dear)


# --- certificates ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["unimodal", "lipschitz", "cheating", "hiding"])
def test_the_certificate_holds_by_hand(name: str) -> None:
    problem = NAMED[name]
    bound = sl.lower_bound(problem)
    total = np.zeros(problem.k)
    for model, multiplier in zip(bound.alternatives, bound.multipliers, strict=True):
        assert model.tolist() in problem.models.tolist()
        assert naive.is_confusing(problem.means, model)
        assert multiplier > 0
        for arm in range(problem.k):
            noise = np.full(problem.k, problem.noise_std)
            total[arm] += multiplier * naive.divergence(problem.means, model, noise, arm)
    assert (total <= problem.gaps * (1 + 1e-7) + 1e-12).all()
    assert bound.multipliers.sum() == pytest.approx(bound.lower, rel=1e-7)
    run = online_allocation(CoveringProgram.of(bound), [1000.0])
    assert run.cost[0] == pytest.approx(bound.lower * 1000.0, rel=0.02)


@pytest.mark.parametrize("seed", range(10))
def test_corrupted_certificates_prove_wider_brackets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bound = sl.lower_bound(NAMED["lipschitz"])
    at = bound.at(10**4)
    for exact in (bound, at):
        wrong = dataclasses.replace(
            exact,
            allocation=exact.allocation * rng.uniform(0.5, 1.5, len(exact.allocation)),
            multipliers=exact.multipliers * rng.uniform(0.0, 2.0, len(exact.multipliers)),
        )
        sides = wrong.verify()
        assert sides.lower <= exact.value * (1 + 1e-7)
        assert sides.upper >= exact.value * (1 - 1e-7)
    foreign = dataclasses.replace(bound, alternatives=bound.alternatives + 1e-3)
    assert foreign.verify().lower == 0.0
    nothing = dataclasses.replace(bound, allocation=np.full(5, math.nan))
    assert nothing.verify().upper == math.inf


def test_row_generation_handles_many_models() -> None:
    rng = np.random.default_rng(0)
    models = rng.standard_normal((100_000, 20))
    models[1:50_000, 3] = models[0, 3] = 1.0
    models[0, np.arange(20) != 3] = rng.uniform(-1.0, 0.5, 19)
    bound = sl.lower_bound(FiniteClass(models, 0))
    assert bound.converged
    assert bound.value > 1.0
    assert len(bound.alternatives) <= 20


def test_differences_of_all_sizes() -> None:
    """Models that differ from the true one by 1e-3 to 1e6 on different arms."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        f = np.array([1.0, 0.9, 0.5, -3.0, 0.99])
        models = np.tile(f, (40, 1))
        for g in models:
            g[rng.integers(1, 5)] = 1.0 + 10.0 ** rng.uniform(-3, 6)
            g[rng.integers(1, 5)] = 1.0 + 10.0 ** rng.uniform(-3, 6)
        bound = sl.lower_bound(FiniteClass(np.vstack([f, models]), 0))
        assert bound.gap < 1e-8
        far = bound.at(10**12)
        assert far.gap < 1e-7


def test_what_does_not_apply_is_refused() -> None:
    with pytest.raises(ValueError, match="parameter_set must be None for a finite class"):
        sl.lower_bound(NAMED["lipschitz"], sl.problems.Polytope.box([0] * 5, [1] * 5))
