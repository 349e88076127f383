"""Arms as the alternatives see them: values of all parameters that vanish at the optimal arms.

| symbol                                             | here            | shape     |
|----------------------------------------------------|-----------------|-----------|
| a basis of all e with <e, x> = 0 for free arms x   | ``functionals`` | (d, rank) |
| u_x: its values at x divided by sqrt(Delta(x))     | ``points``      | (k, rank) |
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.jit import compiled_apart

__all__ = ["costly_arms", "reduced_points"]

Array = NDArray[np.float64]

# Relative error of a difference of two numbers that went through a few operations.
_ROUNDING = 1e-14
# Relative error of what is given.
_EPS = 4.0 * float(np.finfo(np.float64).eps)


@compiled_apart
def reduced_points(actions: Array, free: NDArray[np.bool_], gaps: Array) -> tuple[Array, Array]:
    """u_x for all arms, and the functionals e in which they are expressed.

    A column of ``actions`` holds the values of one functional at all arms.  Elimination leaves
    combinations of columns that vanish at the free arms; orthogonalising what is left makes
    M = I at equal shares.  Neither depends on the units of the features, and what remains of a
    column after cancellation counts as zero below its rounding error.  Arms at which nothing
    remains cannot be told from the free ones; they have u_x = 0.

    Returns
    -------
    points : ndarray, shape (k, rank)
    functionals : ndarray, shape (d, rank)
        points[x] = x @ functionals / sqrt(gaps[x]) for every arm that is not free.
    """
    k, d = actions.shape
    values, functionals, left = actions.copy(), np.eye(d), np.ones(d, dtype=np.bool_)
    for x in range(k):
        if free[x]:
            _eliminate_arm(values, functionals, left, x)
    for x in range(k):
        scale = 0.0 if free[x] else 1.0 / math.sqrt(gaps[x])
        for j in range(d):
            values[x, j] *= scale
    rank = _orthogonalise(values, functionals, left)
    return values[:, :rank].copy(), functionals[:, :rank].copy()


@compiled_apart
def _eliminate_arm(values: Array, functionals: Array, left: NDArray[np.bool_], arm: int) -> None:
    """Subtract one functional from all others such that these vanish at an arm; drop it."""
    k, d = values.shape
    pivot = -1
    largest = 0.0
    for j in range(d):
        norm = 0.0
        for x in range(k):
            norm = max(norm, abs(values[x, j]))
        if left[j] and abs(values[arm, j]) > largest * norm:
            pivot, largest = j, abs(values[arm, j]) / norm
    if pivot < 0:
        return
    left[pivot] = False
    for j in range(d):
        if left[j]:
            at_arm, at_pivot = values[arm, j], values[arm, pivot]
            factor = at_arm / at_pivot
            for i in range(d):
                functionals[i, j] -= factor * functionals[i, pivot]
            for x in range(k):
                # the functional vanishes at the arm: an x that nearly coincides with it is
                # known by the difference
                subtracted = factor * (values[x, pivot] - at_pivot)
                difference = values[x, j] - at_arm
                size = abs(values[x, j]) + abs(factor * values[x, pivot])
                noise = _ROUNDING * (abs(difference) + abs(subtracted)) + _EPS * size
                difference -= subtracted
                values[x, j] = 0.0 if abs(difference) <= noise else difference


@compiled_apart
def _orthogonalise(values: Array, functionals: Array, left: NDArray[np.bool_]) -> int:
    """Make the columns that are left orthonormal, and move them to the front; return the rank."""
    k, d = values.shape
    rank = 0
    for j in range(d):
        if not left[j]:
            continue
        before = _column_norm(values, j)
        for _ in range(2):  # the second pass removes what rounding left of the first
            for m in range(rank):
                inner = 0.0
                for x in range(k):
                    inner += values[x, m] * values[x, j]
                for x in range(k):
                    values[x, j] -= inner * values[x, m]
                for i in range(d):
                    functionals[i, j] -= inner * functionals[i, m]
        norm = _column_norm(values, j)
        if norm > d * _ROUNDING * before:
            for x in range(k):
                values[x, rank] = values[x, j] / norm
            for i in range(d):
                functionals[i, rank] = functionals[i, j] / norm
            rank += 1
    return rank


@compiled_apart
def _column_norm(values: Array, column: int) -> float:
    total = 0.0
    for x in range(values.shape[0]):
        total += values[x, column] * values[x, column]
    return math.sqrt(total)


@compiled_apart
def costly_arms(points: Array) -> NDArray[np.int64]:
    """Arms that are told from the free ones by an alternative."""
    costly = np.zeros(points.shape[0], dtype=np.bool_)
    for x in range(points.shape[0]):
        for j in range(points.shape[1]):
            if points[x, j] != 0.0:
                costly[x] = True
    return np.flatnonzero(costly)
