"""Named problems with contexts, against their definitions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline import problems


def test_contextual_simple() -> None:
    problem = problems.contextual_simple(4, 5, 2, noise_variance=0.25, seed=3)
    assert [arms.shape for arms in problem.action_sets] == [(5, 2)] * 4
    assert problem.theta.tolist() == [1.0, 0.0]
    assert problem.probabilities.tolist() == [0.25] * 4
    assert problem.noise_std == 0.5
    assert problem != problems.contextual_simple(4, 5, 2, noise_variance=0.25, seed=4)
    many = problems.contextual_simple(50, 40, 3).actions
    assert many.mean(axis=0) == pytest.approx(np.zeros(3), abs=0.1)
    assert np.cov(many.T) == pytest.approx(np.eye(3), abs=0.15)
    unit = problems.contextual_simple(4, 5, 2, seed=3, normalised=True)
    lengths = np.linalg.norm(problem.actions, axis=1, keepdims=True)
    np.testing.assert_array_equal(unit.actions, problem.actions / lengths)


@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("short", [False, True])
def test_optimal_arms_span_or_are_one_short(d: int, short: bool) -> None:
    problem = problems.spanning_contexts(d, 0.2, 0.3, short)
    assert len(problem.action_sets) == d
    assert np.linalg.matrix_rank(problem.actions) == d
    optimal = problem.actions[problem.best]
    assert np.linalg.matrix_rank(optimal) == d - short
    others = np.delete(problem.gaps, problem.best)
    assert others == pytest.approx(np.full(len(others), 0.2)), "one optimal arm in every context"
    plain = problems.spanning_contexts(d, 0.2, 0.3)
    changed = (problem.actions != plain.actions).any(axis=1)
    assert changed.sum() == short, "neighbours differ in one arm"


def test_regret_is_bounded_where_optimal_arms_span() -> None:
    policy = sl.LinUCB(regulariser="matched")
    late = [
        np.mean(
            [np.diff(sl.simulate(problem, policy, 2000, s, [1000, 2000]).regret) for s in range(5)]
        )
        for problem in (problems.spanning_contexts(), problems.spanning_contexts(short=True))
    ]
    assert late[0] < 0.5
    assert late[1] > 2.0


def test_the_direction_that_is_short_costs_two_over_the_gap() -> None:
    """The only arm that shows theta_d must be played until no theta_d >= gap is left."""
    gap, variance = 0.2, 0.3
    problem = problems.spanning_contexts(4, gap, variance, short=True)
    known = problem.actions[problem.best]
    left = np.linalg.svd(known)[2][-1]  # orthogonal to what optimal arms show
    shows = problem.actions @ left
    (arm,) = np.flatnonzero(np.abs(shows) > 1e-12)
    needed = abs(problem.gaps[arm] / shows[arm])  # change of theta that makes it optimal
    pulls = 2.0 * variance / (needed * shows[arm]) ** 2
    assert pulls * problem.gaps[arm] == pytest.approx(2.0 * variance / gap)


def test_every_context_is_an_end_of_optimism() -> None:
    problem = problems.contextual_end_of_optimism(3, 0.05, 4.0, 0.1, noise_variance=0.2)
    plain = problems.end_of_optimism(0.05, 4.0, 0.2)
    assert problem.noise_std == plain.noise_std
    assert problem.probabilities == pytest.approx([0.45, 0.45, 0.1])
    for c, arms in enumerate(problem.action_sets):
        plane = [0, c + 1]
        np.testing.assert_array_equal(arms[:, plane], plain.actions)
        np.testing.assert_array_equal(problem.theta[plane], plain.theta)
        assert not np.delete(arms, plane, axis=1).any(), "nothing else is seen there"
        block = slice(problem.starts[c], problem.starts[c + 1])
        assert problem.gaps[block] == pytest.approx(plain.gaps)
    assert np.linalg.matrix_rank(problem.actions[problem.best]) == 1


def test_products_of_features() -> None:
    rng = np.random.default_rng(0)
    user, items, matrix = rng.random(3), rng.random((5, 2)), rng.random((3, 2))
    features = problems.product_features(user, items)
    assert features.shape == (5, 6)
    for item, row in zip(items, features, strict=True):
        assert row.tolist() == np.outer(user, item).ravel().tolist()
        assert row @ matrix.ravel() == pytest.approx(user @ matrix @ item)


def test_product_problem() -> None:
    problem = problems.product_problem(20, 6, 3, 2, noise_variance=0.04, seed=5)
    assert (problem.k, problem.d, len(problem.action_sets)) == (120, 6, 20)
    assert np.linalg.norm(problem.actions, axis=1) == pytest.approx(np.ones(120))
    assert np.linalg.norm(problem.theta) == pytest.approx(1.0)
    assert problem.noise_std == pytest.approx(0.2)
    for arms in problem.action_sets:
        matrices = arms.reshape(6, 3, 2)
        assert np.linalg.matrix_rank(matrices).tolist() == [1] * 6
        assert np.linalg.matrix_rank(matrices[:, 0]) <= 2, "one user, many items"
    big = problems.product_problem()
    assert (len(big.action_sets), big.k, big.d) == (1000, 10_000, 9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: problems.contextual_simple(0), "contexts must be at least 1, got 0"),
        (lambda: problems.contextual_simple(k=1.5), "k must be an integer"),  # type: ignore[arg-type]
        (lambda: problems.contextual_simple(normalised=1), "normalised must be True or False"),  # type: ignore[arg-type]
        (lambda: problems.contextual_simple(10**9, 10**9), "would take .* of memory"),
        (lambda: problems.contextual_simple(noise_variance=0.0), "noise_variance must be finite"),
        (lambda: problems.spanning_contexts(1), "d must be at least 2, got 1"),
        (lambda: problems.spanning_contexts(gap=1.0), "gap must be below 1, got 1.0"),
        (lambda: problems.spanning_contexts(short="yes"), "short must be True or False"),  # type: ignore[arg-type]
        (lambda: problems.contextual_end_of_optimism(1), "contexts must be at least 2, got 1"),
        (lambda: problems.contextual_end_of_optimism(rare=0.0), "rare must be finite and > 0"),
        (lambda: problems.contextual_end_of_optimism(rare=1.0), "rare must be below 1, got 1.0"),
        (lambda: problems.contextual_end_of_optimism(epsilon=1), "epsilon must be below 1, got 1"),
        (lambda: problems.product_problem(seed=-1), "seed must be at least 0, got -1"),
        (lambda: problems.product_problem(item_dimension=0), "item_dimension must be at least 1"),
        (lambda: problems.product_features([[1.0]], [[1.0]]), r"user must have shape \(any\), got"),
        (
            lambda: problems.product_features([1.0], [1.0]),
            "items must have shape .*one item per row",
        ),
        (lambda: problems.product_features([math.nan], [[1.0]]), "user must be finite, got nan"),
        (lambda: problems.product_features([1e50], [[1e50]]), "must not exceed 1e.70, got 1e.100"),
        (lambda: problems.product_features([1e308], [[1e308]]), "must not exceed 1e.70, got inf"),
    ],
)
def test_bad_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_a_user_in_a_session() -> None:
    """Features of one user and all items are what a session takes."""
    items = np.random.default_rng(1).standard_normal((4, 2))
    session = sl.Session(problems.product_features([1.0, 0.5], items), noise_std=0.3)
    assert session.ask().arm in range(4)
