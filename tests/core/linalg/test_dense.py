"""Plain loops against NumPy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.newton_step import (
    add_gram,
    apply,
    apply_transposed,
    eliminate,
    product,
    substitute,
)

seeds = st.integers(0, 10**6)
sizes = st.integers(1, 20)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(1, 40), d=sizes)
def test_products(seed: int, k: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights, vector = rng.standard_normal((k, d)), rng.standard_normal(k), rng.random(d + 2)
    gram = np.eye(d)
    add_gram(rows, weights, gram)
    np.testing.assert_allclose(gram, np.eye(d) + (rows.T * weights) @ rows, atol=1e-12)
    combined, values = np.full(d, np.nan), np.full(k, np.nan)
    apply_transposed(rows, weights, combined)
    np.testing.assert_allclose(combined, weights @ rows, atol=1e-12)
    apply(rows, vector, values)  # what is beyond the width of the rows is not read
    np.testing.assert_allclose(values, rows @ vector[:d], atol=1e-12)
    out = np.full((d + 1, k + 1), np.nan)
    other = rng.standard_normal((k, k))
    product(rows.T.copy(), other, out[:d, 1:])
    np.testing.assert_allclose(out[:d, 1:], rows.T @ other, atol=1e-11)
    assert np.isnan(out[d]).all()
    assert np.isnan(out[:, 0]).all()


@settings(max_examples=30, deadline=None)
@given(seed=seeds, n=sizes, spread=st.sampled_from([0.0, 6.0]))
def test_linear_systems(seed: int, n: int, spread: float) -> None:
    """Rows of any size: the solution is that of a nearby matrix."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((n, n)) * 10.0 ** rng.uniform(-spread, spread, (n, 1))
    solution = rng.standard_normal(n)
    factors, order, vector = matrix.copy(), np.zeros(n, dtype=np.int64), matrix @ solution
    right = vector.copy()
    assert eliminate(factors, order)
    substitute(factors, order, vector)
    size = np.abs(matrix) @ np.abs(vector)
    # pivots may cost a factor that grows with n; 1e-12 is 4500 roundings
    assert (np.abs(matrix @ vector - right) <= 1e-12 * max(size.max(), 1e-300)).all()


@pytest.mark.parametrize(
    "matrix", [[[0.0, 0.0], [1.0, 1.0]], [[1.0, 2.0], [2.0, 4.0]], [[np.nan, 1.0], [1.0, 1.0]]]
)
def test_singular_matrices_are_refused(matrix: list[list[float]]) -> None:
    assert not eliminate(np.array(matrix), np.zeros(2, dtype=np.int64))
