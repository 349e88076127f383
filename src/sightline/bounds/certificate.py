"""Both sides of a bracket around c*, recomputed by plain arithmetic from a certificate.

| symbol                           | here              | shape  |
|----------------------------------|-------------------|--------|
| alpha                            | ``allocation``    | (k,)   |
| nu_j                             | ``alternatives``  | (m, d) |
| lambda_j >= 0                    | ``multipliers``   | (m,)   |
| Delta(x) = 0: the optimal arms   | ``optimal``       | (k,)   |
| M = {nu : A nu <= b}             | ``parameter_set`` |        |

Upper side: an allocation that collects enough evidence against every alternative costs at least
c*.  Lower side: if sum_j lambda_j <nu_j - theta, x>^2 / (2 sigma^2) <= Delta(x) for all arms, then
every allocation that refutes all nu_j costs at least sum_j lambda_j.  Nothing here uses a solver
of the product: what a solver claims is checked, and a claim that fails costs the bound that
rested on it, not its truth.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.parameter_set import Polytope
from sightline.problems.bandit import LinearBandit

__all__ = ["Bracket", "bracket", "optimal_arms"]

Array = NDArray[np.float64]

# Means are known to a few roundings of |x| |theta|: arms closer than that are all optimal.
_TIE = 8 * np.finfo(np.float64).eps
# What counts as rounding, relative to the size of the terms of a sum.
_ROUNDING = 1e-9


class Bracket(NamedTuple):
    """Numbers between which c* lies."""

    lower: float
    upper: float


def optimal_arms(problem: LinearBandit) -> NDArray[np.bool_]:
    """Arms whose gap is zero up to rounding."""
    scale = (np.abs(problem.actions) @ np.abs(problem.theta)).max()
    optimal: NDArray[np.bool_] = problem.gaps <= _TIE * scale
    return optimal


def bracket(
    problem: LinearBandit,
    allocation: Array,
    alternatives: Array,
    multipliers: Array,
    parameter_set: Polytope | None,
) -> Bracket:
    """Recompute what an allocation and a set of alternatives prove about c*."""
    lower = _lower(problem, alternatives, multipliers, parameter_set)
    return Bracket(lower, _upper(problem, allocation, parameter_set))


def _lower(
    problem: LinearBandit,
    alternatives: Array,
    multipliers: Array,
    parameter_set: Polytope | None,
) -> float:
    if len(multipliers) == 0:
        return 0.0
    optimal = optimal_arms(problem)
    shifts = alternatives - problem.theta
    values = shifts @ problem.actions.T
    sizes = np.abs(shifts) @ np.abs(problem.actions.T)
    # theta + e makes z as good as x* where <e, z> reaches Delta(z): e is scaled to do so exactly
    reach = (values[:, ~optimal] / problem.gaps[~optimal]).max(axis=1)
    rounding = _ROUNDING * sizes[:, optimal] + _TIE * np.abs(problem.actions[optimal]).max()
    valid = (np.abs(values[:, optimal]) <= rounding).all(axis=1) & (reach > 0)
    if parameter_set is not None:
        normals, offsets = parameter_set.arrays(problem.d)
        excess = alternatives @ normals.T - offsets
        size = np.abs(alternatives) @ np.abs(normals.T) + np.abs(offsets)
        valid &= (excess <= _ROUNDING * size).all(axis=1) & (reach > 1 - _ROUNDING)
    valid &= multipliers >= 0
    if not valid.any():
        return 0.0
    weights = multipliers[valid] / (2.0 * problem.noise_std**2)
    scaled = values[valid][:, ~optimal] / reach[valid, None]
    spent = (weights @ scaled**2) / problem.gaps[~optimal]
    return float(multipliers[valid].sum() / spent.max())


def _upper(problem: LinearBandit, allocation: Array, parameter_set: Polytope | None) -> float:
    optimal = optimal_arms(problem)
    costly = ~optimal
    basis = _complement(problem.actions[optimal])
    points = problem.actions[costly] @ basis
    noise = 1e-12 * np.abs(problem.actions[costly]) @ np.abs(basis)
    refutable = (np.abs(points) > noise).any(axis=1)  # else no alternative has this arm best
    if not refutable.any():
        return 0.0
    if not (allocation[costly] >= 0).all():
        return math.inf
    gaps, shares = problem.gaps[costly], allocation[costly]
    evidence = _evidence(np.sqrt(shares)[:, None] * points, points[refutable], gaps[refutable])
    if parameter_set is not None:
        normals, offsets = parameter_set.arrays(problem.d)
        rows, room = normals @ basis, offsets - normals @ problem.theta
        evidence = _evidence_within(
            np.sqrt(shares)[:, None] * points, points[refutable], gaps[refutable], rows, room
        )
    least = evidence.min() / (2.0 * problem.noise_std**2)
    return float(shares @ gaps / least) if least > 0 else math.inf


def _complement(vectors: Array) -> Array:
    """Orthonormal basis of what is orthogonal to all of these vectors: (d, r)."""
    _, singular, basis = np.linalg.svd(vectors)
    smallest = singular[0] * max(vectors.shape) * np.finfo(np.float64).eps
    return np.ascontiguousarray(basis[int((singular > smallest).sum()) :].T)


def _evidence(weighted: Array, points: Array, gaps: Array) -> Array:
    """Squared distance to the nearest alternative for each arm: Delta^2 / |p|^2 in V^-1.

    Through an orthogonal factor of the weighted arms: V itself would have the squared condition
    number.  Zero for an arm in a direction that no weight supports.
    """
    # columns are scaled first, so that the units of the features do not matter
    units = np.abs(weighted).max(axis=0)
    if not (units > 0).all():
        return np.zeros(len(points))
    factor = np.linalg.qr(weighted / units)[1]
    try:
        whitened = np.linalg.solve(factor.T, (points / units).T)
    except np.linalg.LinAlgError:
        return np.zeros(len(points))
    distances: Array = gaps**2 / (whitened**2).sum(axis=0)
    return distances


def _evidence_within(
    weighted: Array, points: Array, gaps: Array, rows: Array, room: Array
) -> Array:
    """Lower bounds on the same distances within M, by the duals of the quadratic programs.

    For any u >= 0, a y with R y <= o has |R^T u| |y| >= -<u, o>.  The u come from non-negative
    least squares (Lawson, Hanson: least distance programming), and only that inequality is
    trusted.  Where no alternative exists, R^T u vanishes and the bound is enormous.
    """
    from scipy.optimize import nnls

    units = np.abs(weighted).max(axis=0)
    if not (units > 0).all():
        return np.zeros(len(points))
    factor = np.linalg.qr(weighted / units)[1]
    whitened_rows = np.linalg.solve(factor.T, (rows / units).T).T
    whitened_points = np.linalg.solve(factor.T, (points / units).T).T
    distances = np.zeros(len(points))
    for z, (point, gap) in enumerate(zip(whitened_points, gaps, strict=True)):
        constraints, offsets = np.vstack([whitened_rows, -point]), np.append(room, -gap)
        lengths = np.linalg.norm(constraints, axis=1) + np.abs(offsets)
        used = lengths > 0
        constraints = constraints[used] / lengths[used, None]
        offsets = offsets[used] / lengths[used]
        distance = gap / np.linalg.norm(point)  # without M, for the scale
        system = -np.vstack([constraints.T * distance, offsets])
        u = nnls(system, np.append(np.zeros(constraints.shape[1]), 1.0))[0]
        against, combined = -(u @ offsets), constraints.T @ u
        if against > 0:
            squared = combined @ combined
            distances[z] = against**2 / squared if squared > 0 else math.inf
    return distances
