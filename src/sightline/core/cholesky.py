"""Cholesky factors of small dense matrices: V = L L^T with L lower triangular (d x d).

Written out instead of calling LAPACK: at the dimensions of linear bandits the call costs more
than the work, and these loops allocate nothing.  Only the lower triangles are read or written.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled

__all__ = ["factorise", "rank_one_update", "solve_lower", "solve_upper"]

Array = NDArray[np.float64]


@compiled
def factorise(matrix: Array, factor: Array) -> None:
    """Write the Cholesky factor of a symmetric positive definite matrix into ``factor``."""
    d = matrix.shape[0]
    for i in range(d):
        for j in range(i + 1):
            total = matrix[i, j]
            for m in range(j):
                total -= factor[i, m] * factor[j, m]
            factor[i, j] = math.sqrt(total) if i == j else total / factor[j, j]


@compiled
def solve_lower(factor: Array, vector: Array) -> None:
    """Replace ``vector`` by L^-1 vector."""
    for i in range(factor.shape[0]):
        total = vector[i]
        for j in range(i):
            total -= factor[i, j] * vector[j]
        vector[i] = total / factor[i, i]


@compiled
def solve_upper(factor: Array, vector: Array) -> None:
    """Replace ``vector`` by L^-T vector."""
    for i in range(factor.shape[0] - 1, -1, -1):
        value = vector[i] / factor[i, i]
        vector[i] = value
        for j in range(i):
            vector[j] -= factor[i, j] * value


@compiled
def rank_one_update(factor: Array, vector: Array) -> None:
    """Turn the factor of V into that of V + x x^T; ``vector`` = x is used up."""
    d = factor.shape[0]
    for i in range(d):
        diagonal = factor[i, i]
        # sqrt of a sum of squares is safe here: entries of V stay far from over- and underflow
        radius = math.sqrt(diagonal * diagonal + vector[i] * vector[i])
        cosine = radius / diagonal
        sine = vector[i] / diagonal
        factor[i, i] = radius
        for j in range(i + 1, d):
            factor[j, i] = (factor[j, i] + sine * vector[j]) / cosine
            vector[j] = cosine * vector[j] - sine * factor[j, i]
