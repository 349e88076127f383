"""Alternatives that need a quadratic program: cells, and any alternative within a polytope M.

| symbol                        | here           | shape  |
|-------------------------------|----------------|--------|
| V^-1 = R^T R                  | ``whitener`` = R | (d, d) |
| R x for every arm x           | ``arms``       | (k, d) |
| R^-T theta-hat                | ``centre``     | (d,)   |
| M = {nu : A nu <= b}          | ``normals``, ``bounds`` | (m, d), (m,) |
| A R^T, b - A theta-hat        | ``rows``, ``offsets`` | (m, d), (m,) |
| nu(z) = theta-hat + R^T y(z)  | ``points[z]`` = y(z) | (k, d) |

In the coordinates y the norm of V is Euclidean, so the nearest alternative is the projection of
the origin onto a polyhedron: of the constraint <nu, x-hat - z> <= 0 for a half-space, of all
<nu, x - z> <= 0 for the cell of z, and of the rows of M.  An alternative outside M is ruled out:
its distance is inf and its weight zero.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import (
    Comparison,
    Shifts,
    compare,
    compare_arms,
    locate_alternatives,
    write_shifts,
)
from sightline.core.alternatives.nearest_point import (
    Projection,
    project_cell,
    project_halfspace,
    projection,
)
from sightline.core.consistency import indices, invariant
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.linalg.cholesky import factorise, solve_transposed
from sightline.core.persistence import persists
from sightline.jit import compiled

__all__ = ["Projections", "projections"]

Array = NDArray[np.float64]


@persists()
class Projections(NamedTuple):
    """Half-space or cell alternatives within M; see the table above."""

    separations: Array  # (k,)
    shortfalls: Array  # (k,)
    distances: Array  # (k,)
    cells: bool
    normals: Array
    bounds: Array
    whitener: Array
    arms: Array
    centre: Array
    rows: Array
    offsets: Array
    points: Array
    halfspace_solver: Projection
    cell_solver: Projection


@invariant(Projections)
def _check(part: Projections, name: str) -> None:
    """Check that active constraints are arms, or rows of M."""
    constraints = len(part.arms) + len(part.normals)
    for field in ("halfspace_solver", "cell_solver"):
        indices(f"{name}.{field}.active", getattr(part, field).active, constraints)


def projections(k: int, d: int, cells: bool, normals: Array, bounds: Array) -> Projections:
    """Arrays for k arms in d dimensions; no rows in ``normals`` means M = R^d."""
    return Projections(
        separations=np.zeros(k),
        shortfalls=np.zeros(k),
        distances=np.zeros(k),
        cells=cells,
        normals=normals,
        bounds=bounds,
        whitener=np.zeros((d, d)),
        arms=np.zeros((k, d)),
        centre=np.zeros(d),
        rows=np.zeros_like(normals),
        offsets=np.zeros_like(bounds),
        points=np.zeros((k, d)),
        halfspace_solver=projection(k, d),
        cell_solver=projection(k, d),
    )


@compiled
def _apply(whitener: Array, vectors: Array, products: Array) -> None:
    """Write R v for every row v of ``vectors``."""
    d = whitener.shape[0]
    for z in range(vectors.shape[0]):
        for i in range(d):
            total = 0.0
            for j in range(i, d):
                total += whitener[i, j] * vectors[z, j]
            products[z, i] = total


@compiled
def _whiten(alternatives: Projections, estimate: LeastSquares) -> None:
    """Express arms and M in the coordinates y."""
    factorise(estimate.learned.gram_inverse, alternatives.whitener)
    _apply(alternatives.whitener, estimate.arms.rewards, alternatives.arms)
    _apply(alternatives.whitener, alternatives.normals, alternatives.rows)
    for i in range(estimate.learned.theta.shape[0]):
        alternatives.centre[i] = estimate.learned.theta[i]
    solve_transposed(alternatives.whitener, alternatives.centre)
    for m in range(alternatives.bounds.shape[0]):
        total = alternatives.bounds[m]
        for i in range(estimate.learned.theta.shape[0]):
            total -= alternatives.normals[m, i] * estimate.learned.theta[i]
        alternatives.offsets[m] = total


@compare.register(Projections)
@compiled
def _compare_projections(
    alternatives: Projections, estimate: LeastSquares, best: int
) -> Comparison:
    """Half-spaces suffice for the test, within M too: their union is that of the cells."""
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    compare_arms(estimate, best, separations, shortfalls)
    constrained = alternatives.bounds.shape[0] > 0
    if constrained:
        _whiten(alternatives, estimate)
    least = math.inf
    for z in range(separations.shape[0]):
        distance = math.inf
        if separations[z] > 0.0 and constrained:
            distance = project_halfspace(
                alternatives.halfspace_solver,
                alternatives.arms,
                alternatives.centre,
                best,
                z,
                alternatives.rows,
                alternatives.offsets,
                alternatives.points[z],
            )
        elif separations[z] > 0.0:
            distance = shortfalls[z] * shortfalls[z] / separations[z]
        alternatives.distances[z] = distance
        least = min(least, distance)
    return Comparison(best, least)


@locate_alternatives.register(Projections)
@compiled
def _locate_projections(
    alternatives: Projections, estimate: LeastSquares, comparison: Comparison
) -> float:
    """Project onto cells, if these are wanted; half-spaces within M have been located before."""
    if alternatives.cells and alternatives.bounds.shape[0] == 0:
        _whiten(alternatives, estimate)
    least = math.inf
    for z in range(alternatives.distances.shape[0]):
        if alternatives.cells and alternatives.separations[z] > 0.0:
            alternatives.distances[z] = project_cell(
                alternatives.cell_solver,
                alternatives.arms,
                alternatives.centre,
                z,
                alternatives.rows,
                alternatives.offsets,
                alternatives.points[z],
            )
        least = min(least, alternatives.distances[z])
    return least


@write_shifts.register(Projections)
@compiled
def _write_projection_shifts(
    alternatives: Projections,
    estimate: LeastSquares,
    comparison: Comparison,
    count: int,
    shifts: Shifts,
) -> None:
    whitener, points, columns = alternatives.whitener, alternatives.points, shifts.columns
    for j in range(columns.shape[0]):
        for n in range(count):
            total = 0.0
            for i in range(j + 1):
                total += whitener[i, j] * points[shifts.arms[n], i]
            columns[j, n] = total
