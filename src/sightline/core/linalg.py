"""Dense linear algebra for kernels, in plain loops.

| operation                                  | here                                      |
|--------------------------------------------|-------------------------------------------|
| <a, b>; X v for many rows; V x             | ``inner_products``, ``multiply_symmetric`` |
| x^T V^-1 x of many rows                    | ``squared_norms``                         |
| index of the largest entry                 | ``first_largest``                         |
| V = R^T R with R upper triangular          | ``factorise``, ``rank_one_update``        |
| R^-1 x, R^-T x                             | ``solve``, ``solve_transposed``           |

The kernels do not call BLAS or LAPACK.  At the dimensions of linear bandits the call costs more
than the work, and a library that picks its kernels and threads by the load of the machine would
give different bits on another worker.  Inner loops run along rows without a reduction, so that the
compiler turns them into vector instructions.  Nothing here allocates.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sightline.jit import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

_MANY = 8  # dimensions from which several terms at a time are faster


@compiled
def norm(vector: Array) -> float:
    """Euclidean norm."""
    return math.sqrt(squared_length(vector))


@compiled
def squared_length(vector: Array) -> float:
    """Squared Euclidean norm."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += vector[i] * vector[i]
    return total


@compiled
def inner(rows: Array, n: int, vector: Array) -> float:
    """Inner product of one row and a vector."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += rows[n, i] * vector[i]
    return total


@compiled
def inner_product(a: Array, b: Array, count: int) -> float:
    """Inner product of the first few entries.

    Four sums side by side, since in one each addition waits for the last.  The order is fixed
    here, so the bits do not depend on the compiler.
    """
    s_0, s_1, s_2, s_3 = 0.0, 0.0, 0.0, 0.0
    last = count - count % 4
    for n in range(0, last, 4):
        s_0 += a[n] * b[n]
        s_1 += a[n + 1] * b[n + 1]
        s_2 += a[n + 2] * b[n + 2]
        s_3 += a[n + 3] * b[n + 3]
    for n in range(last, count):
        s_0 += a[n] * b[n]
    return (s_0 + s_1) + (s_2 + s_3)


@compiled
def inner_products(columns: Array, vector: Array, out: Array) -> None:
    """Write <x, vector> for all arms x, given by the columns of a (d, k) array.

    The inner loop runs over arms, not over the terms of one sum: it becomes vector instructions
    without changing the order in which anything is added.
    """
    first = vector[0]
    for x in range(columns.shape[1]):
        out[x] = columns[0, x] * first
    _add_multiples(columns, vector, 1, 0, columns.shape[1], out)


@compiled
def _add_multiples(
    columns: Array, vector: Array, i: int, start: int, stop: int, out: Array
) -> None:
    """Add the products of entry i and all that follow, for some columns.

    Every load and store of a sum adds four terms, one after the other.
    """
    d = vector.shape[0]
    while d >= _MANY and i + 3 < d:
        f_0, f_1, f_2, f_3 = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        for x in range(start, stop):
            total = out[x] + columns[i, x] * f_0
            total += columns[i + 1, x] * f_1
            total += columns[i + 2, x] * f_2
            out[x] = total + columns[i + 3, x] * f_3
        i += 4
    while i < d:
        factor = vector[i]
        for x in range(start, stop):
            out[x] += columns[i, x] * factor
        i += 1


@compiled
def multiply(matrix: Array, vector: Array, out: Array, start: float) -> float:
    """Write matrix @ vector into ``out``; return ``start`` + <vector, out>."""
    total = start
    for i in range(vector.shape[0]):
        entry = 0.0
        for j in range(vector.shape[0]):
            entry += matrix[i, j] * vector[j]
        out[i] = entry
        total += vector[i] * entry
    return total


@compiled
def multiply_symmetric(matrix: Array, vector: Array, out: Array, start: float) -> float:
    """Like :func:`multiply`, with the same bits, for a matrix that is symmetric to the last bit.

    Its rows are its columns, so all entries grow side by side: at d = 25 in less than half the
    time.
    """
    if vector.shape[0] < _MANY:
        return multiply(matrix, vector, out, start)
    inner_products(matrix, vector, out)
    total = start
    for i in range(vector.shape[0]):
        total += vector[i] * out[i]
    return total


@compiled
def triangle_products(
    columns: Array, matrix: Array, i: int, start: int, stop: int, out: Array
) -> None:
    """Write <u, x> for some columns x, u being row i of a triangle U with U + U^T = M.

    That is half of the work of M, which is symmetric: y^T M x is y^T U x + x^T U y.
    """
    half = 0.5 * matrix[i, i]
    for z in range(start, stop):
        out[z] = half * columns[i, z]
    _add_multiples(columns, matrix[i], i + 1, start, stop, out)


@compiled
def squared_norms(
    columns: Array, matrix: Array, start: int, stop: int, products: Array, out: Array
) -> None:
    """Write x^T M x for some columns x of an array, side by side; M is symmetric."""
    d = matrix.shape[0]
    for z in range(start, stop):
        out[z] = 0.0
    for i in range(d):
        triangle_products(columns, matrix, i, start, stop, products)
        for z in range(start, stop):
            out[z] += 2.0 * columns[i, z] * products[z]


@compiled
def first_largest(values: Array) -> int:
    """Index of the largest value; the first one among equals."""
    first = 0
    largest = values[0]  # a copy: reading it again would make every step wait for the last
    for x in range(1, values.shape[0]):
        if values[x] > largest:
            first, largest = x, values[x]
    return first


@compiled
def equal_rows(matrix: Array, i: int, j: int) -> bool:
    """Whether two rows are equal to the last bit."""
    equal = True
    for column in range(matrix.shape[1]):
        equal = equal and matrix[i, column] == matrix[j, column]
    return equal


@compiled
def draw_index(weights: Array, rng: Generator) -> int:
    """Draw an index from weights that add to 1."""
    left = rng.random()
    drawn = 0
    for x in range(weights.shape[0]):
        if weights[x] > 0.0:
            drawn = x  # rounding may leave a remainder after the last one, which then gets it
            left -= weights[x]
            if left < 0.0:
                break
    return drawn


@compiled
def first_above(values: Array, level: float) -> int:
    """Index of the first of these increasing values that exceeds a level; the last one if none."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


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
    """Replace ``vector`` by R^-1 vector; R may be a leading block of ``factor``."""
    d = vector.shape[0]
    for i in range(d - 1, -1, -1):
        total = vector[i]
        for j in range(i + 1, d):
            total -= factor[i, j] * vector[j]
        vector[i] = total / factor[i, i]


@compiled
def solve_transposed(factor: Array, vector: Array) -> None:
    """Replace ``vector`` by R^-T vector; R may be a leading block of ``factor``."""
    d = vector.shape[0]
    for i in range(d):
        value = vector[i] / factor[i, i]
        vector[i] = value
        for j in range(i + 1, d):
            vector[j] -= factor[i, j] * value


@compiled
def rank_one_update(
    factor: Array, vector: Array, whitened: Array | None = None, value: float = 0.0
) -> float:
    """Turn the factor of V into that of V + x x^T; ``vector`` = x is overwritten.

    If given, ``whitened`` = R^-T b becomes that of b + value x: least squares by QR.  The square of
    the returned remainder of the value is the growth of the residual sum of squares.
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
