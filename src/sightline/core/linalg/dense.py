"""Dense linear algebra in plain loops, for kernels.

Not BLAS: a library that picks its kernels and threads by what else runs would give a policy other
bits on another worker.  Inner loops run along rows without a reduction, so that the compiler
turns them into vector instructions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled_apart

__all__ = ["add_gram", "apply", "apply_transposed", "eliminate", "product", "substitute"]

Array = NDArray[np.float64]

# Rows that stay in the nearest cache while they are added to one row of a matrix after another.
_BLOCK = 16


@compiled_apart
def add_gram(rows: Array, weights: Array, out: Array) -> None:
    """Add sum_x weights[x] rows[x] rows[x]^T to a symmetric matrix."""
    k, d = rows.shape
    for start in range(0, k, _BLOCK):
        for i in range(d):
            for x in range(start, min(start + _BLOCK, k)):
                scale = weights[x] * rows[x, i]
                for j in range(i, d):
                    out[i, j] += scale * rows[x, j]
    for i in range(d):
        for j in range(i):
            out[i, j] = out[j, i]


@compiled_apart
def product(left: Array, right: Array, out: Array) -> None:
    """Write the matrix product."""
    for i in range(left.shape[0]):
        for j in range(right.shape[1]):
            out[i, j] = 0.0
        for m in range(left.shape[1]):
            scale = left[i, m]
            for j in range(right.shape[1]):
                out[i, j] += scale * right[m, j]


@compiled_apart
def apply(rows: Array, vector: Array, out: Array) -> None:
    """Write the inner product of every row with the first entries of ``vector``."""
    for x in range(rows.shape[0]):
        total = 0.0
        for j in range(rows.shape[1]):
            total += rows[x, j] * vector[j]
        out[x] = total


@compiled_apart
def apply_transposed(rows: Array, weights: Array, out: Array) -> None:
    """Write sum_x weights[x] rows[x]."""
    for j in range(out.shape[0]):
        out[j] = 0.0
    for x in range(rows.shape[0]):
        scale = weights[x]
        for j in range(out.shape[0]):
            out[j] += scale * rows[x, j]


@compiled_apart
def eliminate(matrix: Array, order: NDArray[np.int64]) -> bool:
    """Overwrite a square matrix with its triangular factors, rows exchanged as ``order`` says.

    False if it is singular, or holds what is not a number.
    """
    n = matrix.shape[0]
    for c in range(n):
        pivot = c
        for i in range(c + 1, n):
            if abs(matrix[i, c]) > abs(matrix[pivot, c]):
                pivot = i
        order[c] = pivot
        if not abs(matrix[pivot, c]) > 0.0:
            return False
        if pivot != c:
            for j in range(n):
                swap = matrix[c, j]
                matrix[c, j] = matrix[pivot, j]
                matrix[pivot, j] = swap
        inverse = 1.0 / matrix[c, c]
        for i in range(c + 1, n):
            factor = matrix[i, c] * inverse
            matrix[i, c] = factor
            if factor != 0.0:
                for j in range(c + 1, n):
                    matrix[i, j] -= factor * matrix[c, j]
    return True


@compiled_apart
def substitute(factors: Array, order: NDArray[np.int64], vector: Array) -> None:
    """Replace ``vector`` by the solution of the linear system whose matrix was eliminated."""
    n = factors.shape[0]
    for c in range(n):
        swap = vector[c]
        vector[c] = vector[order[c]]
        vector[order[c]] = swap
    for i in range(n):
        for j in range(i):
            vector[i] -= factors[i, j] * vector[j]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            vector[i] -= factors[i, j] * vector[j]
        vector[i] /= factors[i, i]
