"""The program behind c* within a polytope M: a covering program with alternatives made on demand.

Symbols as in :mod:`sightline.core.allocation.program`; in addition

| symbol                                  | here       | shape  |
|-----------------------------------------|------------|--------|
| M around theta: R e <= o                | ``rows``, ``slack`` | (m, d), (m,) |
| c_j, alternative theta + e in the coordinates of the points | ``shifts`` | (cuts, d) |
| (u_x . c_j)^2                           | ``cuts``   | (cuts, k) |

Evidence against one alternative is linear in the shares, so the program over finitely many
alternatives is linear: minimise sum a subject to cuts @ a >= 1.  Its value is a lower bound, with
multipliers as proof.  For given shares, the nearest alternative for each arm is a quadratic
program; those that are too near become new cuts, and scaling the shares until none is too near
gives an upper bound.  The shares to be tried next lie between the best ones and the solution of
the linear program: there every direction keeps some weight, and the search does not swing.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sightline.core.projections import INFEASIBLE, project_rows, projection

__all__ = ["cover", "cutting_planes", "solve_within"]

Array = NDArray[np.float64]

_MOST_ROUNDS = 400
# The best allocation comes nearer by half in every round; after so many without, by rounding.
_PATIENCE = 10
# Alternatives this much farther than the nearest one become cuts as well: they bind soon.
_NEAR = 1.5


def solve_within(
    points: Array, levels: Array, rows: Array, slack: Array, tolerance: float
) -> tuple[Array, Array, Array]:
    """Shares, alternatives in the coordinates of the points, and multipliers, within M."""

    def nearest(shares: Array) -> tuple[Array, Array]:
        return _nearest(points, levels, rows, slack, shares)

    k, d = points.shape
    return cutting_planes(k, d, nearest, lambda e: np.square(e @ points.T), tolerance)


def cutting_planes(
    k: int,
    d: int,
    nearest: Callable[[Array], tuple[Array, Array]],
    evidence: Callable[[Array], Array],
    tolerance: float,
) -> tuple[Array, Array, Array]:
    """Shares, alternatives and multipliers, for whatever finds alternatives.

    Parameters
    ----------
    k, d : int
        Number of arms and dimension of the alternatives.
    nearest : callable
        For given shares, near alternatives and their squared distances, inf where there is none.
    evidence : callable
        What one share of every arm tells against alternatives: an array of shape (cuts, k).
    tolerance : float
        Relative distance of the two bounds at which to stop.
    """
    shifts, multipliers, used = np.zeros((0, d)), np.zeros(0), np.zeros((0, d))
    upper, lower, patience = math.inf, 0.0, _PATIENCE
    best = query = np.ones(k)
    for _ in range(_MOST_ROUNDS if k else 0):
        found, distances = nearest(query)
        if not np.isfinite(distances).any():
            return np.zeros(k), used, multipliers  # no other arm is best anywhere in M
        least, before = distances.min(), upper - lower
        if query.sum() / least < upper:
            upper, best = query.sum() / least, query / least
        shifts = np.vstack([shifts, found[distances <= _NEAR * least]])
        solution, dual = cover(evidence(shifts))
        if dual.sum() > lower:
            lower, used, multipliers = dual.sum(), shifts, dual
        patience = _PATIENCE if upper - lower < 0.9 * before else patience - 1
        if upper - lower <= 0.5 * tolerance * upper or patience == 0:
            break
        query = 0.5 * (best + solution)
    return best, used, multipliers


def _nearest(
    points: Array, levels: Array, rows: Array, slack: Array, shares: Array
) -> tuple[Array, Array]:
    """Nearest alternative for each arm and its squared distance, inf where M has none."""
    k, d = points.shape
    factor = np.linalg.qr(np.sqrt(shares)[:, None] * points)[1]
    whitened = np.linalg.solve(factor.T, np.vstack([rows, points]).T).T
    system, offsets = whitened[: len(rows) + 1].copy(), np.append(slack, 0.0)
    work, found, distances = projection(k, d), np.zeros((k, d)), np.full(k, math.inf)
    for z in range(k):
        system[-1], offsets[-1] = -whitened[len(rows) + z], -math.sqrt(levels[z])
        distance = project_rows(work, system, offsets, z, found[z])
        if work.status[0] != INFEASIBLE:
            distances[z] = distance
    return np.linalg.solve(factor, found.T).T, distances


def cover(cuts: Array) -> tuple[Array, Array]:
    """Minimise sum a subject to cuts @ a >= 1, each row with a positive entry.

    The multipliers are scaled so that they are feasible beyond doubt.
    """
    from scipy.optimize import linprog

    scale = cuts.max(axis=1)
    unit = scale.min()  # with a right-hand side of at most 1 the solver's tolerances are relative
    result = linprog(
        np.ones(cuts.shape[1]),
        A_ub=-cuts / scale[:, None],
        b_ub=-unit / scale,
        method="highs",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    if result.x is None:  # rounding errors are too large: the last answers stand
        return np.ones(cuts.shape[1]), np.zeros(len(cuts))
    dual = np.maximum(-result.ineqlin.marginals, 0.0) / scale
    return result.x / unit, dual / (dual @ cuts).max()
