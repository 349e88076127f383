"""Allocations at estimated gaps: what they achieve, when they are found anew, ties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import ALL_ARMS, block
from sightline.core.allocation.target import (
    Target,
    fewest_pulls,
    find_allocation,
    follow,
    least_gap,
    target,
)
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import observe
from sightline.core.model import Contexts, bandit_model
from sightline.core.unregularised import unregularised
from tests import naive, naive_bounds_contexts
from tests.marks import without_compilation
from tests.naive import Array

pytestmark = without_compilation

seeds = st.integers(0, 2**32 - 1)


def told(actions: Array, theta: Array, noise_std: float = 0.0, seed: int = 0) -> LeastSquares:
    """Return estimates from two rewards of every arm."""
    rng = np.random.default_rng(seed)
    estimate, _ = unregularised(bandit_model(actions), "a policy")
    for arm in list(range(len(actions))) * 2:
        observe(estimate, arm, actions[arm] @ theta + noise_std * rng.standard_normal())
    return estimate


def aimed(estimate: LeastSquares) -> Target:
    goal = target(np.ones(len(estimate.arms.means)), 0.1)
    find_allocation(goal, estimate)
    return goal


def test_end_of_optimism_is_solved_by_the_informative_arm() -> None:
    """With gaps 0, 0.01, 1 and slope 2 the third arm alone refutes both: alpha = slope^2."""
    goal = aimed(told(np.array([[1.0, 0.0], [0.99, 0.02], [0.0, 1.0]]), np.array([1.0, 0.0])))
    assert goal.best[0] == 0
    assert goal.allocation[0] == math.inf
    cost = goal.allocation[1:] @ goal.gaps[1:]
    assert 4.0 * (1 - 1e-9) <= cost <= 4.0 * (1 + 1e-3)


@settings(deadline=None)
@given(seeds)
def test_every_alternative_is_refuted(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((6, 3))
    goal = aimed(told(actions, rng.standard_normal(3), 0.1, seed))
    best = goal.best[0]
    weights = np.where(np.isinf(goal.allocation), 1e9, goal.allocation)
    V = (actions.T * weights) @ actions
    for z in range(6):
        if z != best:
            assert naive.squared_norm(actions[best] - actions[z], V) <= goal.gaps[z] ** 2 * 1.001


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_every_alternative_is_refuted_by_observations_of_any_weight(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions, rho = rng.standard_normal((6, 3)), np.exp(rng.uniform(-1.0, 1.0, 6))
    estimate = told(actions, rng.standard_normal(3), 0.1, seed)
    goal = target(rho, 0.1)
    find_allocation(goal, estimate)
    best = goal.best[0]
    weights = np.where(np.isinf(goal.allocation), 1e9, goal.allocation) * rho**2
    V = (actions.T * weights) @ actions
    others = np.arange(6) != best
    squared = np.array([naive.squared_norm(actions[best] - z, V) for z in actions])
    assert np.all(squared[others] <= goal.gaps[others] ** 2 * 1.001)
    # and not by more than is needed
    assert (squared[others] / goal.gaps[others] ** 2).max() >= 0.999


def test_found_anew_when_the_determinant_has_grown_or_the_best_arm_has_changed() -> None:
    estimate = told(np.eye(2), np.array([1.0, 0.5]))
    goal = aimed(estimate)
    assert goal.growth == pytest.approx(math.log(1.1))
    goal.allocation[:] = -1.0  # to see whether it is written
    follow(goal, estimate, ALL_ARMS)
    assert (goal.allocation == -1.0).all()
    observe(estimate, 0, 1.0)  # det grows from 4 to 6
    follow(goal, estimate, ALL_ARMS)
    assert goal.allocation[1] > 0.0
    while estimate.arms.pulls[1] < 40:
        observe(estimate, 1, 0.5)
        follow(goal, estimate, ALL_ARMS)
    goal.allocation[:] = -1.0
    observe(estimate, 1, 50.0)  # det grows by 1/40, but the second arm is now the best
    follow(goal, estimate, ALL_ARMS)
    assert (goal.best[0], goal.allocation[1]) == (1, math.inf)


def test_ties_are_as_far_behind_as_the_second_best() -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    estimate = told(actions, np.array([1.0, 1.0]))
    gaps = np.zeros(3)
    estimate.arms.means[:] = [1.0, 1.0, 0.5]  # what two rewards of each arm give but for rounding
    assert least_gap(np.array([0, len(gaps)]), estimate, 0, gaps) == 0.5
    assert gaps.tolist() == [0.0, 0.0, 0.5]
    goal = aimed(estimate)
    assert goal.gaps[1] == 0.5
    assert goal.allocation[1] == pytest.approx(4.0, rel=1e-3)


def test_with_all_tied_all_allocations_are_infinite() -> None:
    estimate, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    assert least_gap(np.array([0, 3]), estimate, 0, np.zeros(3)) == 0.0
    assert np.isinf(aimed(estimate).allocation).all()
    twins = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with_twin, _ = unregularised(bandit_model(twins), "a policy")
    assert aimed(with_twin).allocation.tolist() == [math.inf, math.inf, 0.0]


def test_fewest_pulls_takes_the_first_among_equals() -> None:
    estimate, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    assert fewest_pulls(estimate, ALL_ARMS) == 0
    observe(estimate, 0, 0.0)
    assert fewest_pulls(estimate, ALL_ARMS) == 1
    observe(estimate, 1, 0.0)
    observe(estimate, 1, 0.0)
    assert fewest_pulls(estimate, block(0, 2, 1)) == 0
    assert fewest_pulls(estimate, block(1, 3, 1)) == 2


def in_contexts(sets: list[Array]) -> Target:
    """Return where to write the allocation of arms in these contexts."""
    contexts = Contexts(np.cumsum([0, *map(len, sets)]))
    return target(np.ones(sum(map(len, sets))), 0.1, contexts)


@settings(deadline=None, max_examples=30)
@given(seeds)
def test_with_contexts_the_best_arms_of_all_are_free(seed: int) -> None:
    """Against cutting planes on the estimated gaps, of their own making."""
    rng = np.random.default_rng(seed)
    sets = [rng.standard_normal((k, 3)) for k in (3, 4)]
    actions = np.vstack(sets)
    estimate = told(actions, rng.standard_normal(3), 0.1, seed)
    goal = in_contexts(sets)
    find_allocation(goal, estimate)
    theta = naive.solve(actions.T @ actions, actions.T @ estimate.arms.means)
    means = np.split(actions @ theta, [3])
    assert goal.best.tolist() == [means[0].argmax(), 3 + means[1].argmax()]
    assert np.flatnonzero(np.isinf(goal.allocation)).tolist() == goal.best.tolist()
    gaps = naive_bounds_contexts.gaps_of(sets, theta)
    others = np.isfinite(goal.allocation)
    cost = goal.allocation[others] @ gaps[others]
    lower, upper = naive_bounds_contexts.lower_bound(sets, theta, math.sqrt(0.5))
    assert lower * (1 - 1e-6) <= cost <= upper * (1 + 2e-3)
    V = (actions.T * np.where(others, goal.allocation, 1e9)) @ actions
    bests = naive_bounds_contexts.best_of(sets, theta)
    squared = np.array([naive.squared_norm(u, V) for u in bests - actions])
    assert np.all(squared <= gaps**2 * 1.001 + 1e-9)


def test_with_contexts_that_tie_and_twins_in_them() -> None:
    sets = [np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]), np.array([[0.0, 1.0], [1.0, 0.0]])]
    estimate, _ = unregularised(bandit_model(np.vstack(sets)), "a policy")
    goal = in_contexts(sets)
    assert least_gap(goal.starts, estimate, 3, goal.gaps) == 0.0
    find_allocation(goal, estimate)
    assert goal.allocation.tolist() == [math.inf, math.inf, 0.0, math.inf, math.inf]
    estimate.arms.means[:] = [1.0, 0.5, 1.0, 0.5, 1.0]
    assert least_gap(goal.starts, estimate, 3, goal.gaps) == 0.5
    assert goal.gaps.tolist() == [0.0, 0.5, 0.0, 0.5, 0.0]


def test_with_contexts_the_present_one_says_whether_the_best_arm_has_changed() -> None:
    sets = [np.eye(2), np.eye(2)[::-1]]
    estimate = told(np.vstack(sets), np.array([1.0, 0.5]))
    goal = in_contexts(sets)
    offers = [block(2 * c, 2 * c + 2, c) for c in range(2)]
    assert [follow(goal, estimate, offer) for offer in offers] == [0, 3]
    goal.allocation[:] = -1.0  # to see whether it is written
    estimate.arms.means[:] = [1.0, 0.5, 1.5, 1.0]
    assert follow(goal, estimate, offers[0]) == 0
    assert (goal.allocation == -1.0).all()
    assert follow(goal, estimate, offers[1]) == 2
    assert goal.best.tolist() == [0, 2]
    assert goal.allocation[2] == math.inf
