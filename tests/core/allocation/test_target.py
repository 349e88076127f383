"""Allocations at estimated gaps: what they achieve, when they are found anew, ties."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.target import (
    Target,
    fewest_pulls,
    find_allocation,
    follow,
    least_gap,
    target,
)
from sightline.core.estimation.least_squares import LeastSquares, observe
from sightline.core.estimation.unregularised import unregularised
from sightline.core.model import bandit_model
from tests import naive
from tests.naive import Array

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
    follow(goal, estimate)
    assert (goal.allocation == -1.0).all()
    observe(estimate, 0, 1.0)  # det grows from 4 to 6
    follow(goal, estimate)
    assert goal.allocation[1] > 0.0
    while estimate.arms.pulls[1] < 40:
        observe(estimate, 1, 0.5)
        follow(goal, estimate)
    goal.allocation[:] = -1.0
    observe(estimate, 1, 50.0)  # det grows by 1/40, but the second arm is now the best
    follow(goal, estimate)
    assert (goal.best[0], goal.allocation[1]) == (1, math.inf)


def test_ties_are_as_far_behind_as_the_second_best() -> None:
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
    estimate = told(actions, np.array([1.0, 1.0]))
    gaps = np.zeros(3)
    estimate.arms.means[:] = [1.0, 1.0, 0.5]  # what two rewards of each arm give but for rounding
    assert least_gap(estimate, 0, gaps) == 0.5
    assert gaps.tolist() == [0.0, 0.0, 0.5]
    goal = aimed(estimate)
    assert goal.gaps[1] == 0.5
    assert goal.allocation[1] == pytest.approx(4.0, rel=1e-3)


def test_with_all_tied_all_allocations_are_infinite() -> None:
    estimate, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    assert least_gap(estimate, 0, np.zeros(3)) == 0.0
    assert np.isinf(aimed(estimate).allocation).all()
    twins = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with_twin, _ = unregularised(bandit_model(twins), "a policy")
    assert aimed(with_twin).allocation.tolist() == [math.inf, math.inf, 0.0]


def test_fewest_pulls_takes_the_first_among_equals() -> None:
    estimate, _ = unregularised(bandit_model(np.eye(3)), "a policy")
    assert fewest_pulls(estimate) == 0
    observe(estimate, 0, 0.0)
    assert fewest_pulls(estimate) == 1
