"""The program behind c* for games, in which what arms pay and what they show are two things.

Symbols as in :mod:`sightline.bounds.geometry` and :mod:`sightline.core.allocation.program`.  The
interior-point method solves it, unless several optimal arms do not show that they are equally good.
Then alternatives are better than each of them, intersections of half-spaces, and cutting planes do.
They also take over where the interior point stops too early, as in one of some thousand games its
steps become too short.  That takes seconds.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.geometry import ProblemView
from sightline.bounds.within_polytope import cutting_planes
from sightline.core.allocation.program import MOST_STEPS, optimal_game_shares
from sightline.core.projections import INFEASIBLE, project_rows, projection

__all__ = ["solve_game"]

Array = NDArray[np.float64]

# Relative distance of the bounds that cutting planes would not improve on.
_ATTAINABLE = 5e-9


def solve_game(view: ProblemView, tolerance: float) -> tuple[Array, Array, Array]:
    """Shares of the arms that cost something, alternatives in the basis, and multipliers."""
    k, p, r = view.seen.shape
    shares = np.zeros(k)
    if not view.refutable.any():
        return shares, np.zeros((0, r)), np.zeros(0)
    rows = (view.seen / np.sqrt(view.gaps)[:, None, None]).reshape(-1, r)
    played = _first_of_equals(view.shown.reshape(k, -1), view.gaps)
    owners = np.repeat(np.arange(k), p)
    tells = rows.any(axis=1) & np.isin(owners, played)
    arms, starts = np.unique(owners[tells], return_index=True)  # silent arms are left out
    rows, starts = rows[tells], np.append(starts, tells.sum())
    # coordinates in which M = I at equal shares
    units = np.abs(rows).max(axis=0)
    factor = np.linalg.qr(rows / units)[1] * units
    refuted = _first_of_equals(view.differences, view.gaps)
    refuted = refuted[view.refutable[refuted]]
    rows, points, ties = (
        np.ascontiguousarray(np.linalg.solve(factor.T, vectors.T).T)
        for vectors in (rows, view.points[refuted], view.ties @ view.basis)
    )
    gaps = view.gaps[refuted]
    found = None
    if len(ties) == 0:
        found = _by_interior_point(rows, starts, points, gaps, tolerance)
    if found is None:
        found = _by_cutting_planes(rows, starts, points, gaps, ties, tolerance)
    shares[arms], shifts, multipliers = found
    return shares, np.linalg.solve(factor, shifts.T).T, multipliers


def _first_of_equals(rows: Array, gaps: Array) -> NDArray[np.int64]:
    """Choose one of all equal rows, that of the smallest gap."""
    order = np.argsort(gaps, kind="stable")
    _, first = np.unique(rows[order], axis=0, return_index=True)
    return np.sort(order[first])


def _by_interior_point(
    rows: Array, starts: NDArray[np.int64], points: Array, gaps: Array, tolerance: float
) -> tuple[Array, Array, Array] | None:
    """Solve with one half-space per arm, rows of an arm following each other; None if it stalls."""
    vectors = np.vstack([points, rows])
    # half the tolerance: rounding in the certificate must not cost the other half
    shares, multipliers, base, upper, lower = optimal_game_shares(
        vectors, len(points) + starts, gaps**2, 0.5 * tolerance, MOST_STEPS
    )
    if not upper - lower <= max(0.5 * tolerance, _ATTAINABLE) * upper:
        return None
    factor = _factor(rows, starts, base)
    whitened = np.linalg.solve(factor.T, points.T)
    directions = np.linalg.solve(factor, whitened)
    return shares, (directions * (gaps / (whitened**2).sum(axis=0))).T, multipliers


def _factor(rows: Array, starts: NDArray[np.int64], shares: Array) -> Array:
    """R with R^T R = M."""
    weights = np.repeat(shares, np.diff(starts))
    return np.asarray(np.linalg.qr(np.sqrt(weights)[:, None] * rows)[1])


def _by_cutting_planes(
    rows: Array,
    starts: NDArray[np.int64],
    points: Array,
    gaps: Array,
    ties: Array,
    tolerance: float,
) -> tuple[Array, Array, Array]:
    """Solve where an alternative must beat one best arm, or several that are equally good."""
    m, d = points.shape

    def nearest(shares: Array) -> tuple[Array, Array]:
        factor = _factor(rows, starts, shares)
        whitened, equal = (np.linalg.solve(factor.T, v.T).T for v in (points, ties))
        work, found, distances = projection(m, d), np.zeros((m, d)), np.full(m, math.inf)
        for z in range(m):
            system = np.ascontiguousarray(np.vstack([np.zeros(d), equal]) - whitened[z])
            offsets = np.full(len(system), -gaps[z])
            distance = project_rows(work, system, offsets, z, found[z])
            if work.status[0] != INFEASIBLE:
                distances[z] = distance
        return np.asarray(np.linalg.solve(factor, found.T).T), distances

    def evidence(shifts: Array) -> Array:
        return np.asarray(np.add.reduceat(np.square(shifts @ rows.T), starts[:-1], axis=1))

    return cutting_planes(len(starts) - 1, d, nearest, evidence, tolerance)
