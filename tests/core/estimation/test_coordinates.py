"""Arms in a basis of their span: as many coordinates as the rank, and the same inner products."""

import numpy as np
import pytest

from sightline.core.estimate import _distinct_rows, spanning_coordinates


@pytest.mark.parametrize("scale", [1e-100, 1.0, 1e100])
@pytest.mark.parametrize(
    ("k", "d", "rank"), [(1, 3, 1), (4, 3, 2), (9, 3, 3), (40, 6, 6), (5, 7, 5)]
)
def test_coordinates_are_as_many_as_the_rank(k: int, d: int, rank: int, scale: float) -> None:
    rng = np.random.default_rng(k)
    actions = scale * rng.standard_normal((k, rank)) @ rng.standard_normal((rank, d))
    coordinates = spanning_coordinates(actions)
    assert coordinates.shape == (k, rank)
    products = actions @ actions.T
    np.testing.assert_allclose(coordinates @ coordinates.T / scale**2, products / scale**2)
    assert spanning_coordinates(np.zeros((k, d))).shape == (k, 1)


@pytest.mark.parametrize("tilt", [1e-3, 1e-12, 1e-20])
def test_arms_that_hardly_span_the_space(tilt: float) -> None:
    actions = np.array([[1.0, 0.0], [1.0, tilt]])
    assert spanning_coordinates(actions).shape == (2, 1 if tilt < 1e-16 else 2)


@pytest.mark.parametrize(("k", "d"), [(1, 1), (7, 1), (50, 3), (300, 8)])
def test_distinct_rows_are_those_of_numpy(k: int, d: int) -> None:
    rows = np.random.default_rng(k).integers(-1, 2, (k, d)).astype(np.float64)
    expected, which = np.unique(rows, axis=0, return_inverse=True)
    found, where = _distinct_rows(rows)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(where, which.ravel())
