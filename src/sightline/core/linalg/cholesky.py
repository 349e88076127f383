"""Cholesky factors of small dense matrices: V = R^T R with R upper triangular (d x d).

Written out instead of calling LAPACK: at the dimensions of linear bandits the call costs more
than the work, and these loops allocate nothing.  Only the upper triangle is read or written, row
by row as it lies in memory.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled

__all__ = ["factorise", "rank_one_update", "solve", "solve_transposed"]

Array = NDArray[np.float64]


# A pivot below this share of its diagonal entry consists of rounding errors.
_LEAST_PIVOT = 1e-15


@compiled
def factorise(matrix: Array, factor: Array) -> bool:
    """Write the factor of a symmetric positive definite matrix; its upper triangle is read.

    The factor is finite for every such matrix.  Return whether all pivots exceed rounding errors:
    if not, sum the matrix as rotations instead (:func:`rank_one_update`).
    """
    d, accurate = matrix.shape[0], True
    for i in range(d):
        for j in range(i, d):
            total = matrix[i, j]
            for m in range(i):
                total -= factor[m, i] * factor[m, j]
            if i != j:
                factor[i, j] = total / factor[i, i]
                continue
            least = _LEAST_PIVOT * matrix[i, i]
            if not total > least:
                total = least
                accurate = False
            factor[i, i] = math.sqrt(total)
    return accurate


@compiled
def solve(factor: Array, vector: Array) -> None:
    """Replace ``vector`` by R^-1 vector."""
    d = factor.shape[0]
    for i in range(d - 1, -1, -1):
        total = vector[i]
        for j in range(i + 1, d):
            total -= factor[i, j] * vector[j]
        vector[i] = total / factor[i, i]


@compiled
def solve_transposed(factor: Array, vector: Array) -> None:
    """Replace ``vector`` by R^-T vector."""
    d = factor.shape[0]
    for i in range(d):
        value = vector[i] / factor[i, i]
        vector[i] = value
        for j in range(i + 1, d):
            vector[j] -= factor[i, j] * value


@compiled
def rank_one_update(
    factor: Array, vector: Array, whitened: Array | None = None, value: float = 0.0
) -> float:
    """Turn the factor of V into that of V + x x^T; ``vector`` = x is used up.

    If given, ``whitened`` = R^-T b becomes what belongs to b + value x: least squares by QR.  What
    is left of the value is returned: its square is what the residual sum of squares grows by.
    """
    d = factor.shape[0]
    for i in range(d):
        diagonal = factor[i, i]
        # sqrt of a sum of squares is safe here: entries of V stay far from over- and underflow
        radius = math.sqrt(diagonal * diagonal + vector[i] * vector[i])
        cosine = diagonal / radius
        sine = vector[i] / radius
        factor[i, i] = radius
        for j in range(i + 1, d):
            entry = factor[i, j]
            factor[i, j] = cosine * entry + sine * vector[j]
            vector[j] = cosine * vector[j] - sine * entry
        if whitened is not None:
            entry = whitened[i]
            whitened[i] = cosine * entry + sine * value
            value = cosine * value - sine * entry
    return value
