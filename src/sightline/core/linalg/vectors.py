"""Vectors, where a loop is cheaper than a call of NumPy."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled

__all__ = [
    "draw_index",
    "equal_rows",
    "first_above",
    "first_largest",
    "inner_product",
    "inner_products",
    "multiply",
    "multiply_symmetric",
    "norm",
    "squared_norms",
    "triangle_products",
]


_MANY = 8  # dimensions from which it pays to take several terms at a time


@compiled
def norm(vector: NDArray[np.float64]) -> float:
    """Euclidean norm."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += vector[i] * vector[i]
    return math.sqrt(total)


@compiled
def inner_product(a: NDArray[np.float64], b: NDArray[np.float64], count: int) -> float:
    """Inner product of the first few entries.

    Four sums side by side, since in one each addition waits for the last; in an order of our own
    and not of the compiler's: the same bits, whatever the compiler makes of the loop.
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
def inner_products(
    columns: NDArray[np.float64], vector: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
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
    columns: NDArray[np.float64],
    vector: NDArray[np.float64],
    i: int,
    start: int,
    stop: int,
    out: NDArray[np.float64],
) -> None:
    """Add the products of entry i and all that follow, for some columns.

    Four terms, one after the other, for each time that a sum is fetched and put back.
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
def multiply(
    matrix: NDArray[np.float64], vector: NDArray[np.float64], out: NDArray[np.float64], start: float
) -> float:
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
def multiply_symmetric(
    matrix: NDArray[np.float64], vector: NDArray[np.float64], out: NDArray[np.float64], start: float
) -> float:
    """Do as :func:`multiply`, with the same bits, for a matrix that is symmetric to the last bit.

    Its rows are its columns, so that all entries grow side by side: at d = 25 in less than half
    of the time.
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
    columns: NDArray[np.float64],
    matrix: NDArray[np.float64],
    i: int,
    start: int,
    stop: int,
    out: NDArray[np.float64],
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
    columns: NDArray[np.float64],
    matrix: NDArray[np.float64],
    start: int,
    stop: int,
    products: NDArray[np.float64],
    out: NDArray[np.float64],
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
def first_largest(values: NDArray[np.float64]) -> int:
    """Index of the largest value; the first one among equals."""
    first = 0
    largest = values[0]  # at hand: looking it up again would make every step wait for the last
    for x in range(1, values.shape[0]):
        if values[x] > largest:
            first, largest = x, values[x]
    return first


@compiled
def equal_rows(matrix: NDArray[np.float64], i: int, j: int) -> bool:
    """Whether two rows are equal to the last bit."""
    equal = True
    for column in range(matrix.shape[1]):
        equal = equal and matrix[i, column] == matrix[j, column]
    return equal


@compiled
def draw_index(weights: NDArray[np.float64], rng: np.random.Generator) -> int:
    """Draw an index from weights that add to 1."""
    left = rng.random()
    drawn = 0
    for x in range(weights.shape[0]):
        if weights[x] > 0.0:
            drawn = x  # rounding may leave a little after the last one: it is that one's
            left -= weights[x]
            if left < 0.0:
                break
    return drawn


@compiled
def first_above(values: NDArray[np.float64], level: float) -> int:
    """Index of the first of these increasing values that exceeds a level; the last one if none."""
    low, high = 0, values.shape[0] - 1
    while low < high:
        middle = (low + high) // 2
        if values[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low
