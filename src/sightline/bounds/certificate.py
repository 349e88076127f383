"""Both sides of a bracket around c*, recomputed by plain arithmetic from a certificate.

| symbol                                        | here              | shape   |
|-----------------------------------------------|-------------------|---------|
| alpha                                         | ``allocation``    | (k,)    |
| nu_j                                          | ``alternatives``  | (m, d)  |
| lambda_j >= 0                                 | ``multipliers``   | (m,)    |
| M = {nu : A nu <= b}                          | ``parameter_set`` |         |
| x - x*_c, for arms x that cost something      | ``differences``   | (k', d) |
| orthonormal e that vanish at the optimal arms | ``basis``         | (d, r)  |
| p_x: their values at x                        | ``points``        | (k', r) |

Upper side: alpha, scaled until it collects enough evidence against every alternative, costs at
least c*.  Lower side: if sum_j lambda_j <nu_j - theta, x>^2 / (2 sigma_x^2) <= Delta(x) for all
arms, then every allocation that refutes all nu_j costs at least sum_j lambda_j; the lambda_j are
scaled until that holds, and nu_j - theta is made orthogonal to the optimal arms and scaled until it
just makes another arm as good.  Any numbers give true bounds, then, and good ones give close
bounds.  Nothing here uses a solver of the product.

With contexts c, x* is the best arm of the context of x, and the optimal arms of all contexts are
free.  How often a context comes does not matter.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.parameter_set import Polytope
from sightline.problems.table import TableProblem

__all__ = ["Bracket", "Scaled", "bracket", "optimal_arms", "scaled"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
# What may be the violation of a constraint of M, relative to the terms of the sum.
_ROUNDING = 1e-9


class Bracket(NamedTuple):
    """Numbers between which c* lies."""

    lower: float
    upper: float


class Scaled(NamedTuple):
    """A problem in units of its own, powers of two: features, gaps and 2 sigma^2 are about 1."""

    actions: Array
    gaps: Array
    precisions: Array  # (k,): rho^2, how much an observation of each arm weighs
    units: Array  # (d,): of the features
    unit: float  # of the gaps
    price: float  # c* of the problem is so many times c* in these units


def optimal_arms(problem: TableProblem) -> Mask:
    """Arms whose gap is zero up to rounding: means are known to roundings of |x| |theta|."""
    sizes = np.abs(problem.actions) @ np.abs(problem.theta)
    optimal: Mask = problem.gaps <= 4 * _EPS * (sizes + sizes[problem.best_rows])
    return optimal


def scaled(problem: TableProblem) -> Scaled:
    """Change units such that no square over- or underflows."""
    units = _power_of_two(np.abs(problem.actions).max(axis=0))
    unit = float(_power_of_two(problem.gaps.max()))
    sigma, weights = problem.model.noise_std, problem.model.needs_weights("lower_bound")
    price = 2.0 * sigma / unit * sigma
    if not 1e-250 < price < 1e250 or not 1e-250 < price / unit < 1e250:
        raise ValueError(
            "(noise_std / gap)^2 must be between 1e-250 and 1e250, got a noise_std of "
            f"{sigma:g} and gaps up to {problem.gaps.max():g}"
        )
    return Scaled(problem.actions / units, problem.gaps / unit, weights**2, units, unit, price)


def _power_of_two(size: NDArray[np.floating] | float) -> Array:
    _, exponents = np.frexp(np.maximum(size, 1e-300))
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponents), 1.0)


def bracket(
    problem: TableProblem,
    allocation: Array,
    alternatives: Array,
    multipliers: Array,
    parameter_set: Polytope | None,
) -> Bracket:
    """Recompute what an allocation and a set of alternatives prove about c*."""
    view = _view(problem, parameter_set)
    if not view.refutable.any():
        return Bracket(0.0, 0.0)
    price = scaled(problem).price
    lower = _lower(problem, view, alternatives, multipliers)
    return Bracket(price * lower, price * _upper(view, allocation))


class _View(NamedTuple):
    """What the arms that cost something look like to parameters that agree on the others."""

    costly: Mask  # (k,)
    differences: Array
    points: Array
    gaps: Array
    precisions: Array
    refutable: Mask  # (k',): arms that some alternative makes best
    basis: Array  # (d, r)
    rows: Array  # (m, d): of M around theta, no rows for all of R^d
    slack: Array  # (m,)
    rounding: Array  # (m,): of the slack


def _view(problem: TableProblem, parameter_set: Polytope | None) -> _View:
    own = scaled(problem)
    optimal = optimal_arms(problem)
    costly = ~optimal
    differences = own.actions[costly] - own.actions[problem.best_rows[costly]]
    basis = _complement(own.actions[optimal])
    points = differences @ basis
    # what is left of an arm after cancellation, below the rounding of what was subtracted
    sizes = np.maximum(np.abs(own.actions[costly]), np.abs(differences))
    noise = 4 * problem.d * _EPS * sizes @ np.abs(basis)
    refutable = (np.abs(points) > noise).any(axis=1)
    if refutable.any():  # directions in which no arm differs matter to no arm
        _, singular, directions = np.linalg.svd(points[refutable], full_matrices=False)
        smallest = max(points.shape) * _EPS * singular[0]
        basis = basis @ directions[singular > smallest].T
        points = differences @ basis
    rows, slack, rounding = np.zeros((0, problem.d)), np.zeros(0), np.zeros(0)
    if parameter_set is not None:
        normals, offsets = parameter_set.arrays(problem.d)
        rows, slack = normals / own.units, (offsets - normals @ problem.theta) / own.unit
        sizes = np.abs(normals) @ np.abs(problem.theta) + np.abs(offsets)
        rounding = 4 * _EPS * sizes / own.unit
        slack = np.maximum(slack, 0.0)
    view = _View(
        costly,
        differences,
        points,
        own.gaps[costly],
        own.precisions[costly],
        refutable,
        basis,
        rows,
        slack,
        rounding,
    )
    if len(rows) and refutable.any():
        refutable[refutable] = _reachable(view)
    return view


def _complement(vectors: Array) -> Array:
    """Orthonormal basis of what is orthogonal to all of these vectors: (d, r)."""
    _, singular, basis = np.linalg.svd(vectors)
    smallest = singular[0] * max(vectors.shape) * _EPS
    return np.ascontiguousarray(basis[int((singular > smallest).sum()) :].T)


def _lower(problem: TableProblem, view: _View, alternatives: Array, multipliers: Array) -> float:
    own = scaled(problem)
    finite = np.isfinite(alternatives).all(axis=1) & np.isfinite(multipliers)
    used = finite & (multipliers > 0)
    shifts = (alternatives[used] - problem.theta) * own.units / own.unit
    shifts = (shifts @ view.basis) @ view.basis.T
    values = shifts @ view.differences.T
    noise = 4 * problem.d * _EPS * np.abs(shifts) @ np.abs(view.differences.T)
    # theta + e makes z as good as x* where <e, z> reaches Delta(z): e is scaled to do so exactly
    reach = np.where((values > noise) & view.refutable, values / view.gaps, 0.0).max(axis=1)
    valid = reach > 0
    if len(view.rows):  # M is convex: e may be shortened, not lengthened
        changes = shifts @ view.rows.T
        size = np.abs(shifts) @ np.abs(view.rows.T) + view.slack
        inside = changes - view.slack <= _ROUNDING * size + view.rounding
        valid &= inside.all(axis=1) & (reach > 1 - _ROUNDING)
    if not valid.any():
        return 0.0
    weights = multipliers[used][valid]
    weights = weights / weights.max()
    covered = (values[valid] / reach[valid, None]) ** 2 * view.precisions
    spent = weights @ covered / view.gaps
    return float(weights.sum() / spent.max())


def _upper(view: _View, allocation: Array) -> float:
    shares = allocation[view.costly]
    if not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any():
        return math.inf
    shares = shares / shares.max()
    least = _evidence(np.sqrt(shares * view.precisions)[:, None] * view.points, view).min()
    return float(shares @ view.gaps / least) if least > 0 else math.inf


def _evidence(weighted: Array, view: _View) -> Array:
    """Squared distance to the nearest alternative for each arm that has one.

    Without M it is Delta^2 / |p|^2 in V^-1, through an orthogonal factor of the weighted arms: V
    itself would have the squared condition number.  Zero if weight is missing in a direction.
    """
    points, gaps = view.points[view.refutable], view.gaps[view.refutable]
    zero = np.zeros(len(points))
    # columns are scaled first: the shares of the directions may be of different size
    units = np.abs(weighted).max(axis=0)
    if not (units > 0).all() or len(weighted) < len(units):
        return zero
    factor = np.linalg.qr(weighted / units)[1]
    if not (np.abs(np.diag(factor)) > 0).all():
        return zero
    whitened = np.linalg.solve(factor.T, (points / units).T).T
    rows = np.linalg.solve(factor.T, (view.rows @ view.basis / units).T).T
    distances: Array = gaps**2 / (whitened**2).sum(axis=1)
    if len(rows) == 0:
        return distances
    within = [_distance_within(rows, view.slack, p, g) for p, g in zip(whitened, gaps, strict=True)]
    return np.maximum(distances, within)


def _distance_within(rows: Array, slack: Array, point: Array, gap: float) -> float:
    """Lower bound on the squared distance within M, by the dual of the quadratic program.

    For any u >= 0, a y with R y <= o has |R^T u| |y| >= -<u, o>.  The u come from non-negative
    least squares (Lawson, Hanson: least distance programming), and only that inequality is
    trusted.  Where no alternative exists, R^T u vanishes and the bound is enormous.
    """
    from scipy.optimize import nnls

    constraints, offsets = np.vstack([rows, -point]), np.append(slack, -gap)
    lengths = np.linalg.norm(constraints, axis=1) + np.abs(offsets)
    used = lengths > 0
    constraints = constraints[used] / lengths[used, None]
    offsets = offsets[used] / lengths[used]
    distance = gap / np.linalg.norm(point)  # without M, for the scale
    system = -np.vstack([constraints.T * distance, offsets])
    try:
        u = nnls(system, np.append(np.zeros(constraints.shape[1]), 1.0))[0]
    except RuntimeError:  # no answer after as many steps as it allows
        return 0.0
    against, combined = -(u @ offsets), constraints.T @ u
    if not against > 0:
        return 0.0
    squared = max(combined @ combined, (_EPS * np.abs(u).sum()) ** 2)
    return float(against**2 / squared)


def _reachable(view: _View) -> Mask:
    """Which arms are best somewhere in M: at a distance that M contains, for equal shares."""
    from scipy.optimize import linprog

    distances = _evidence(view.points, view)
    factor = np.linalg.qr(view.points)[1]
    rows = np.linalg.solve(factor.T, (view.rows @ view.basis).T).T
    farthest = 0.0
    for axis in np.eye(rows.shape[1]):
        ends = [
            linprog(sign * axis, rows, view.slack, bounds=(None, None)).fun for sign in (1.0, -1.0)
        ]
        farthest += min(ends) ** 2
    reachable: Mask = distances <= (1 + 1e-6) * farthest
    return reachable
