"""Certificates of c*: recompute both sides of a bracket by plain arithmetic.

| symbol                 | here              | shape  |
|------------------------|-------------------|--------|
| alpha                  | ``allocation``    | (k,)   |
| nu_j                   | ``alternatives``  | (m, d) |
| lambda_j >= 0          | ``multipliers``   | (m,)   |
| M = {nu : A nu <= b}   | ``parameter_set`` |        |
| nu with Y nu = Y theta | ``witness``       | (d,)   |

Upper side: alpha, scaled until it collects enough evidence against every alternative, costs at
least c*.  Lower side (weak duality): if sum_j lambda_j <nu_j - theta, x>^2 / (2 sigma_x^2) <=
Delta(x) for all arms, every allocation that refutes all nu_j costs at least sum_j lambda_j.  The
lambda_j are scaled until that holds.  nu_j - theta is made orthogonal to the optimal arms and
scaled until it just makes another arm as good.  So any numbers give valid bounds, and good numbers
give tight ones.  The module uses no solver of this library.

With contexts c, x* is the best arm of the context of x, and the optimal arms of all contexts are
free.  The probabilities of contexts do not matter.

In a game |Y_x (nu_j - theta)|^2 replaces <nu_j - theta, x>^2, and nu_j - theta is made orthogonal
to what the optimal arms show.  c* is infinite if a parameter that shows the same as theta makes
another arm best; that witness is the proof.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np

from sightline.bounds.geometry import (
    ProblemView,
    favoured_arm,
    scale_problem,
    view_of,
    whitened,
)
from sightline.core.linalg import Array, Bools
from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem

_EPS = float(np.finfo(np.float64).eps)
_ROUNDING = 1e-9  # tolerated violation of a constraint of M, relative to the terms of the sum


class ConvergenceWarning(UserWarning):
    """The two sides of a bound are farther apart than the tolerance."""


class Bracket(NamedTuple):
    """Lower and upper bound on c*."""

    lower: float
    upper: float

    @property
    def gap(self) -> float:
        """Width relative to the upper side."""
        return 0.0 if self.lower >= self.upper else 1.0 - self.lower / self.upper


class Certified:
    """Base of results with a lower and an upper side."""

    lower: float
    upper: float

    @property
    def value(self) -> float:
        """Middle of the bracket."""
        return 0.5 * (self.lower + self.upper)

    @property
    def gap(self) -> float:
        """Width of the bracket relative to its upper side."""
        return Bracket(self.lower, self.upper).gap


def warn_if_wide(symbol: str, sides: Bracket, tolerance: float) -> None:
    """Warn the caller of the calling public function if the gap is larger than the tolerance."""
    if not sides.gap <= tolerance:  # also if it is nan
        warnings.warn(
            f"the bracket of {symbol} has the relative width {sides.gap:.1e}, more than the "
            f"tolerance {tolerance:.1e}: {symbol} lies between {sides.lower:.10g} and "
            f"{sides.upper:.10g}",
            ConvergenceWarning,
            stacklevel=3,
        )


def bracket(
    problem: TableProblem,
    allocation: Array,
    alternatives: Array,
    multipliers: Array,
    parameter_set: Polytope | None,
    witness: Array | None = None,
) -> Bracket:
    """Recompute the bounds that an allocation and alternatives, or a witness, prove."""
    if witness is not None and favoured_arm(problem, witness) is not None:
        return Bracket(math.inf, math.inf)
    view = view_of(problem, parameter_set)
    if len(view.rows) and view.refutable.any():
        view.refutable[view.refutable] = _reachable(view)
    if not view.refutable.any():
        return Bracket(0.0, 0.0)
    price = scale_problem(problem).price
    lower = _lower(problem, view, alternatives, multipliers)
    upper = math.inf if view.unseen.any() else _upper(view, allocation)
    return Bracket(price * lower, price * upper)


def _lower(
    problem: TableProblem, view: ProblemView, alternatives: Array, multipliers: Array
) -> float:
    scaled = scale_problem(problem)
    finite = np.isfinite(alternatives).all(axis=1) & np.isfinite(multipliers)
    used = finite & (multipliers > 0)
    shifts = (alternatives[used] - problem.theta) * scaled.units / scaled.unit
    shifts = (shifts @ view.basis) @ view.basis.T
    values = shifts @ view.differences.T
    noise = 4 * problem.d * _EPS * np.abs(shifts) @ np.abs(view.differences.T)
    # theta + e makes z as good as x* where <e, z> reaches Delta(z): e is scaled to do so exactly
    if len(view.ties):  # z must be as good as each of the optimal arms
        values = values - np.maximum((shifts @ view.ties.T).max(axis=1), 0.0)[:, None]
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
    shown = shifts[valid] @ view.shown.reshape(-1, problem.d).T / reach[valid, None]
    covered = (shown**2).reshape(len(weights), *view.shown.shape[:2]).sum(axis=2) * view.precisions
    spent = weights @ covered / view.gaps
    return float(weights.sum() / spent.max())


def _upper(view: ProblemView, allocation: Array) -> float:
    shares = allocation[view.costly]
    if not (np.isfinite(shares) & (shares >= 0)).all() or not shares.any():
        return math.inf
    shares = shares / shares.max()
    weighted = np.sqrt(shares * view.precisions)[:, None, None] * view.seen
    least = _evidence(weighted.reshape(-1, view.basis.shape[1]), view).min()
    return float(shares @ view.gaps / least) if least > 0 else math.inf


def _evidence(weighted: Array, view: ProblemView) -> Array:
    """Squared distance to the nearest alternative for each arm that has one.

    Without M it is Delta^2 / |p|^2 in V^-1.  It is zero if a direction has no weight.
    """
    points, gaps = view.points[view.refutable], view.gaps[view.refutable]
    vectors = np.vstack([points, view.rows @ view.basis, view.ties @ view.basis])
    white = whitened(weighted, vectors)
    if white is None:
        return np.zeros(len(points))
    points, rows, ties = np.split(white, [len(points), len(points) + len(view.rows)])
    distances: Array = gaps**2 / (points**2).sum(axis=1)
    if len(view.rows) + len(view.ties) == 0:
        return distances
    within = []
    for point, gap in zip(points, gaps, strict=True):
        constraints = np.vstack([rows, ties - point])
        offsets = np.append(view.slack, np.full(len(ties), -gap))
        within.append(_distance_within(constraints, offsets, point, gap))
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
    distance = gap / np.linalg.norm(point)  # without M, sets the scale
    system = -np.vstack([constraints.T * distance, offsets])
    try:
        u = nnls(system, np.append(np.zeros(constraints.shape[1]), 1.0))[0]
    except RuntimeError:  # it reached its iteration limit
        return 0.0
    against, combined = -(u @ offsets), constraints.T @ u
    if not against > 0:
        return 0.0
    squared = max(combined @ combined, (_EPS * np.abs(u).sum()) ** 2)
    return float(against**2 / squared)


def _reachable(view: ProblemView) -> Bools:
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
    reachable: Bools = distances <= (1 + 1e-6) * farthest
    return reachable
