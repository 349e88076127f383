"""Cells of the posterior: whitened arms against all data at once, and the arms that can be best."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.posterior.cells import (
    blank_cells,
    hull_around,
    hull_vertices,
    is_settled,
    measure_cells,
    whiten,
)
from tests import naive
from tests.core.posterior.helpers import posterior_of
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.integers(0, 30))
def test_whitened_arms(seed: int, k: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    actions, arms, rewards = (
        rng.standard_normal((k, d)),
        rng.integers(k, size=n),
        rng.normal(size=n),
    )
    posterior = posterior_of(actions, arms, rewards, noise_std=0.4)
    P, b = naive.posterior(actions[arms], rewards, 0.4, 1.5)
    cells = blank_cells(actions, hull_vertices(actions))
    leader = whiten(posterior, cells)
    theta = naive.solve(P, b)
    np.testing.assert_allclose(cells.means, actions @ theta, rtol=1e-9, atol=1e-9)
    products = cells.whitened @ cells.whitened.T
    np.testing.assert_allclose(products, actions @ naive.inverse(P) @ actions.T, atol=1e-9)
    best = cells.vertices[leader]
    assert cells.means[best] == cells.means[cells.vertices].max()
    lags = cells.means[best] - cells.means[cells.vertices]
    np.testing.assert_allclose(cells.lags, lags, atol=1e-9)
    edges = cells.whitened[cells.vertices] - cells.whitened[best]
    np.testing.assert_allclose(cells.edges, edges, atol=1e-9)


@pytest.mark.parametrize(
    ("actions", "vertices"),
    [
        ([[2.0]], [0]),
        ([[2.0], [2.0]], [0]),
        ([[1.0], [3.0], [-1.0], [3.0]], [1, 2]),
        ([[0.5, 0.5]], [0]),
        ([[0.0, 0.0], [0.0, 0.0]], [0]),
        ([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0, 1]),
        ([[0.5, 0.5], [1.0, 1.0], [-1.0, -1.0]], [1, 2]),
        ([[0.0, 1.0], [0.0, 0.0], [0.0, -2.0]], [0, 2]),
        ([[0.0, 0.0], [1.0, 0.0], [0.5, 0.0], [0.0, 1.0], [0.2, 0.2], [1.0, 1.0]], [0, 1, 3, 5]),
        ([[0.0, 0.0], [1.0, 0.0], [1.0, 1e-9], [0.0, 1.0]], [0, 1, 2, 3]),
        (np.vstack([np.eye(3), -np.eye(3), np.zeros((1, 3)), np.eye(3)]), [0, 1, 2, 3, 4, 5]),
        (np.column_stack([np.arange(6.0), np.arange(6.0) ** 2, np.zeros(6)]), list(range(6))),
        (np.eye(7), list(range(7))),
    ],
    ids=str,
)
def test_arms_that_can_be_best(actions: Array, vertices: list[int]) -> None:
    assert hull_vertices(np.array(actions)).tolist() == vertices


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(1, 12), st.integers(1, 4))
def test_the_best_arm_is_always_a_vertex(seed: int, k: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d)) * rng.random((k, 1))
    vertices = hull_vertices(actions)
    values = actions @ rng.standard_normal((d, 500))
    assert set(values.argmax(axis=0)) <= set(vertices)
    np.testing.assert_allclose(values[vertices].max(axis=0), values.max(axis=0))


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(3, 12))
def test_around_the_polygon_every_turn_is_to_the_left(seed: int, k: int) -> None:
    actions = np.random.default_rng(seed).standard_normal((k, 2))
    around = actions[hull_around(actions)]
    sides = np.roll(around, -1, axis=0) - around
    following = np.roll(sides, -1, axis=0)
    assert np.all(sides[:, 0] * following[:, 1] - sides[:, 1] * following[:, 0] > 0)
    angles = np.unwrap(np.arctan2(sides[:, 1], sides[:, 0]))
    assert angles[-1] - angles[0] < 2 * math.pi  # once around


def test_settled_means_that_no_other_cell_is_left() -> None:
    cells = blank_cells(np.eye(2), np.arange(2))
    cells.probabilities[:] = [1.0, 0.0]
    assert is_settled(cells, 0)
    assert not is_settled(cells, 1)


def test_a_source_must_be_registered() -> None:
    with pytest.raises(TypeError, match="no cells are known to a str"):
        measure_cells("samples", blank_cells(np.eye(2), np.arange(2)), 0)
