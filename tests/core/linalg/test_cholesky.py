"""Cholesky factors against LAPACK."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.linalg import rank_one_update, solve, solve_transposed
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
dimensions = st.integers(1, 8)


def positive_definite(rng: np.random.Generator, d: int, ridge: float = 1.0) -> Array:
    root = rng.standard_normal((d, d))
    matrix: Array = root @ root.T + ridge * np.eye(d)
    return matrix


def factor_of(matrix: Array) -> Array:
    """Return R with V = R^T R, upper triangular, as LAPACK finds it."""
    return np.asarray(np.linalg.cholesky(matrix).T.copy(), dtype=np.float64)


@settings(deadline=None)
@given(seeds, dimensions)
def test_triangular_solves_invert_the_factor(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    factor = factor_of(positive_definite(rng, d))
    vector = rng.standard_normal(d)
    upper, lower = vector.copy(), vector.copy()
    solve(factor, upper)
    solve_transposed(factor, lower)
    # ridge 1 keeps the condition number of V below about 1e3, so twelve digits are safe
    np.testing.assert_allclose(factor @ upper, vector, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(factor.T @ lower, vector, rtol=1e-12, atol=1e-12)


@settings(deadline=None)
@given(seeds, dimensions)
def test_rank_one_update_is_the_factor_of_the_sum(seed: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    matrix, x = positive_definite(rng, d), rng.standard_normal(d)
    factor = factor_of(matrix)
    rank_one_update(factor, x.copy())
    np.testing.assert_allclose(factor, factor_of(matrix + np.outer(x, x)), rtol=1e-11, atol=1e-12)


def test_only_the_upper_triangle_is_read_and_written() -> None:
    rng = np.random.default_rng(0)
    clean = factor_of(positive_definite(rng, 4))
    below = np.tril_indices(4, -1)
    dirty = clean.copy()
    dirty[below] = np.nan
    x = rng.standard_normal(4)
    for step in (solve, solve_transposed, rank_one_update):
        one, other = x.copy(), x.copy()
        step(clean, one)
        step(dirty, other)
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(np.triu(clean), np.triu(np.where(np.isnan(dirty), 0.0, dirty)))
    assert np.all(np.isnan(dirty[below]))


@pytest.mark.parametrize("regulariser", [1.0, 1e-4, 1e-8])
def test_rank_one_updates_keep_a_direction_never_seen(regulariser: float) -> None:
    # all vectors lie in a plane: along its normal V must stay lambda, however large it grows
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    coordinates = rng.standard_normal((2000, 2))
    factor = np.sqrt(regulariser) * np.eye(3)
    for x in coordinates @ basis[:2]:
        rank_one_update(factor, x.copy())
    log_det = 2.0 * np.log(np.diag(factor)).sum() - 3.0 * np.log(regulariser)
    seen = np.eye(2) + coordinates.T @ coordinates / regulariser
    assert log_det == pytest.approx(np.linalg.slogdet(seen)[1], rel=1e-10)
