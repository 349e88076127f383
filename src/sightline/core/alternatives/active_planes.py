"""The active planes of a projection, factorised: the nearest point of q planes at a time.

| symbol                                     | here                  | shape        |
|--------------------------------------------|-----------------------|--------------|
| unit normals of the active constraints, N  |                       | (d, q)       |
| N = Q R: columns of Q as rows, and R       | ``basis``, ``factor`` | (d, d), (d, d + 1) |
| their offsets b and multipliers u          | ``bounds``, ``multipliers`` | (d,)   |
| w with R^T w = b, so that y = Q w          | ``coordinates``       | (d,)         |

Columns enter by Gram-Schmidt, twice, and leave by rotations; y and u are computed anew from the
factor after every change, so they do not drift.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import indices, invariant
from sightline.core.linalg.vectors import norm
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = [
    "DEPENDENT",
    "Projection",
    "aim",
    "append",
    "blocking",
    "orthogonalise",
    "place",
    "projection",
    "remove",
    "settle",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# So small a part of a unit normal outside the span of the active ones, or share of one of them
# in it relative to the largest, counts as none.
DEPENDENT = 1e-12


@persists("active", "counts")
class Projection(NamedTuple):
    """Workspace, and the active sets at which the next solves begin; see the table above."""

    active: Ints  # (k, d): the constraints active at the end of the last solve for each arm
    counts: Ints  # (k,): how many they are; 0 forgets them
    status: Ints  # (2,): of the last solve, SOLVED, INFEASIBLE or UNFINISHED; its steps
    members: Ints  # (d,): the active set
    multipliers: Array
    bounds: Array
    basis: Array
    factor: Array
    coordinates: Array
    targets: Array  # (d,): multipliers to move to, or a normal in terms of the active ones
    normal: Array  # (d,): the unit normal on its way in
    limits: Array  # (k,): right-hand sides of the constraints between arms
    zeros: Array  # (d,): never written


@invariant(Projection)
def _check(work: Projection, name: str) -> None:
    indices(f"{name}.counts", work.counts, work.active.shape[1] + 1)


def projection(k: int, d: int) -> Projection:
    """Workspace for k arms in d dimensions and any number of rows; every solve begins cold."""
    return Projection(
        active=np.zeros((k, d), dtype=np.int64),
        counts=np.zeros(k, dtype=np.int64),
        status=np.zeros(2, dtype=np.int64),
        members=np.zeros(d, dtype=np.int64),
        multipliers=np.zeros(d),
        bounds=np.zeros(d),
        basis=np.zeros((d, d)),
        factor=np.zeros((d, d + 1)),
        coordinates=np.zeros(d),
        targets=np.zeros(d),
        normal=np.zeros(d),
        limits=np.zeros(k),
        zeros=np.zeros(d),
    )


@compiled
def blocking(work: Projection, q: int) -> int:
    """Write r = R^-1 (column q of R) into ``targets``; the member of least u / r > 0, or -1."""
    largest = 0.0
    for i in range(q - 1, -1, -1):
        total = work.factor[i, q]
        for j in range(i + 1, q):
            total -= work.factor[i, j] * work.targets[j]
        work.targets[i] = total / work.factor[i, i]
        largest = max(largest, abs(work.targets[i]))
    leaving = -1
    least = math.inf
    for j in range(q):
        if work.targets[j] > DEPENDENT * largest:
            ratio = work.multipliers[j] / work.targets[j]
            if ratio < least:
                least = ratio
                leaving = j
    return leaving


@compiled
def settle(work: Projection, q: int) -> int:
    """Move the multipliers to the nearest point of the active planes; who reaches 0 leaves.

    Of several that reach it at once the one that would go furthest below leaves first: this
    repairs an active set of the past, whose multipliers begin at 0.
    """
    u, targets = work.multipliers, work.targets
    while True:
        aim(work.factor, work.bounds, work.coordinates, targets, q)
        leaving = -1
        share = 1.0
        for j in range(q):
            if targets[j] < 0.0:
                ratio = u[j] / (u[j] - targets[j])
                tied = leaving >= 0 and ratio == share and targets[j] < targets[leaving]
                if leaving < 0 or ratio < share or tied:
                    share = ratio
                    leaving = j
        for j in range(q):
            u[j] = targets[j] if leaving < 0 else max(u[j] + share * (targets[j] - u[j]), 0.0)
        if leaving < 0:
            return q
        q = remove(work, q, leaving)


@compiled
def aim(factor: Array, bounds: Array, w: Array, targets: Array, q: int) -> None:
    """Write w = R^-T b and u = -R^-1 w of the nearest point of the active planes."""
    for i in range(q):
        total = bounds[i]
        for j in range(i):
            total -= factor[j, i] * w[j]
        w[i] = total / factor[i, i]
    for i in range(q - 1, -1, -1):
        total = -w[i]
        for j in range(i + 1, q):
            total -= factor[i, j] * targets[j]
        targets[i] = total / factor[i, i]


@compiled
def place(basis: Array, w: Array, q: int, y: Array) -> float:
    """Write y = Q w; return |y|^2."""
    for j in range(y.shape[0]):
        y[j] = 0.0
    for i in range(q):
        for j in range(y.shape[0]):
            y[j] += basis[i, j] * w[i]
    squared = 0.0
    for j in range(y.shape[0]):
        squared += y[j] * y[j]
    return squared


@compiled
def orthogonalise(basis: Array, factor: Array, normal: Array, q: int) -> float:
    """Take the span of q columns of Q out of ``normal``, into column q of R; return what is left.

    Twice: once leaves a remainder as far from orthogonal as it is short.
    """
    d = normal.shape[0]
    for i in range(q):
        factor[i, q] = 0.0
    for _ in range(2):
        for i in range(q):
            along = 0.0
            for j in range(d):
                along += basis[i, j] * normal[j]
            factor[i, q] += along
            for j in range(d):
                normal[j] -= along * basis[i, j]
    return norm(normal)


@compiled
def append(work: Projection, q: int, i: int, bound: float, rest: float) -> None:
    """Add constraint i, just orthogonalised, as member q."""
    work.members[q] = i
    work.bounds[q] = bound
    work.factor[q, q] = rest
    for j in range(work.normal.shape[0]):
        work.basis[q, j] = work.normal[j] / rest


@compiled
def remove(work: Projection, q: int, leaving: int) -> int:
    """Take one member out; rotations make R triangular again.  Return the new size."""
    factor, basis = work.factor, work.basis
    for a in range(leaving, q - 1):
        work.members[a] = work.members[a + 1]
        work.bounds[a] = work.bounds[a + 1]
        work.multipliers[a] = work.multipliers[a + 1]
        for i in range(a + 2):
            factor[i, a] = factor[i, a + 1]
    for a in range(leaving, q - 1):
        radius = math.hypot(factor[a, a], factor[a + 1, a])
        cosine, sine = factor[a, a] / radius, factor[a + 1, a] / radius
        for j in range(a, q - 1):
            upper, lower = factor[a, j], factor[a + 1, j]
            factor[a, j] = cosine * upper + sine * lower
            factor[a + 1, j] = cosine * lower - sine * upper
        for j in range(basis.shape[1]):
            upper, lower = basis[a, j], basis[a + 1, j]
            basis[a, j] = cosine * upper + sine * lower
            basis[a + 1, j] = cosine * lower - sine * upper
    return q - 1
