"""Drawing an index from weights."""

import math
from typing import Any

import numpy as np
import pytest

from sightline.core.linalg import (
    draw_index,
    inner_products,
    multiply,
    multiply_symmetric,
    squared_norms,
)


def test_draws_have_the_given_frequencies() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.0, 0.2, 0.5, 0.0, 0.3, 0.0])
    n = 20_000
    counts = np.bincount([draw_index(weights, rng) for _ in range(n)], minlength=6)
    assert (counts[weights == 0.0] == 0).all()
    errors = np.sqrt(n * weights * (1.0 - weights))
    assert (np.abs(counts - n * weights) <= 4.0 * errors).all()


def test_rounding_never_draws_an_arm_without_weight() -> None:
    """Weights that add to less than the number drawn: the last arm that has any is taken."""

    class Highest:
        def random(self) -> float:
            return math.nextafter(1.0, 0.0)

    weights = np.array([0.5, 0.5 - 1e-12, 0.0])
    draw: Any = getattr(draw_index, "py_func", draw_index)
    assert draw(weights, Highest()) == 1


@pytest.mark.parametrize("d", [1, 2, 7, 8, 11, 12, 25])
def test_products_side_by_side_are_those_of_one_sum_each_to_the_last_bit(d: int) -> None:
    rng = np.random.default_rng(d)
    columns, vector = rng.standard_normal((d, 5)), rng.standard_normal(d)
    out = np.empty(5)
    inner_products(columns, vector, out)
    for x in range(5):
        total = columns[0, x] * vector[0]
        for i in range(1, d):
            total += columns[i, x] * vector[i]
        assert out[x] == total
    symmetric = rng.standard_normal((d, d))
    symmetric += symmetric.T.copy()
    one, other = np.empty(d), np.empty(d)
    value = multiply(symmetric, vector, one, 1.0)
    assert multiply_symmetric(symmetric, vector, other, 1.0) == value
    np.testing.assert_array_equal(one, other)
    norms, products = np.zeros(5), np.empty(5)
    squared_norms(columns, symmetric, 1, 4, products, norms)
    expected = ((columns.T @ symmetric) * columns.T).sum(axis=1)
    np.testing.assert_allclose(norms[1:4], expected[1:4], rtol=1e-10, atol=1e-12)
    assert norms[[0, 4]].tolist() == [0.0, 0.0]
