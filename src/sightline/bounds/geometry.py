"""Geometry of a problem: alternatives to refute, and what each arm shows about them.

| symbol                                              | here              | shape      |
|-----------------------------------------------------|-------------------|------------|
| x - x*_c, for suboptimal arms x                     | ``differences``   | (k', d)    |
| Y_x of these arms, up to a factor in ``precisions`` | ``shown``         | (k', p, d) |
| x - x* for optimal x, if no optimal arm shows it    | ``ties``          | (f, d)     |
| orthonormal e orthogonal to all Y of optimal arms   | ``basis``         | (d, r)     |
| p_x: x - x*_c in this basis                         | ``points``        | (k', r)    |
| Y_x in this basis                                   | ``seen``          | (k', p, r) |

In a bandit an arm shows what it pays: up to what x* shows, x is x - x*, and ``seen`` is ``points``.
In a game (partial monitoring) they differ, with three consequences:

- No arm shows a part of x - x*.  That part, times any number, is a change of theta that makes x
  best and that no observation reveals.
- Optimal arms pay the same and do not show it.  An alternative must then beat each of them.
- Arms show directions in which no x - x* lies.  These stay: an alternative may move along them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.linalg import Array, Bools
from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem

_EPS = float(np.finfo(np.float64).eps)
# Relative size below which what is left of a row, without its part in the span of others, counts as
# rounding of the input: to learn from it would cost the square of the inverse.
_FAINT = 1e-12
_UNSEEN = 1e-9  # relative size above which the part of a difference that no arm shows is real


class ScaledProblem(NamedTuple):
    """A problem in units that are powers of two: features, gaps and 2 sigma^2 are about 1."""

    actions: Array
    shown: Array  # (k, p, d): Y, in a bandit without rho
    gaps: Array
    precisions: Array  # (k,): weight of an observation of each arm: rho^2, in a game 1
    units: Array  # (d,): of the features
    unit: float  # of the gaps
    price: float  # c* of the problem over c* in these units


def leads(problem: TableProblem) -> Array:
    """<x*_c - x, theta> of every arm: the gaps, unless the mean is not linear."""
    if problem.model.likelihood is None:
        return problem.gaps
    predictors = problem.actions @ problem.theta
    lead: Array = predictors[problem.best_rows] - predictors
    return lead


def optimal_arms(problem: TableProblem) -> Bools:
    """Arms with a lead of zero, up to rounding errors of |x| |theta|."""
    sizes = np.abs(problem.actions) @ np.abs(problem.theta)
    optimal: Bools = leads(problem) <= 4 * _EPS * (sizes + sizes[problem.best_rows])
    return optimal


def scale_problem(problem: TableProblem) -> ScaledProblem:
    """Change units such that no square over- or underflows."""
    model, sizes = problem.model, np.abs(problem.actions).max(axis=0)
    if model.weights is not None:
        shown, precisions = problem.actions[:, None, :], model.weights**2
        units, signal = _power_of_two(sizes), 1.0
    else:
        shown, precisions = model.observations, np.ones(problem.k)
        units = _power_of_two(_common_sizes(sizes, np.abs(shown).max(axis=(0, 1))))
        signal = float(_power_of_two(np.abs(shown / units).max()))
    unit = float(_power_of_two(problem.gaps.max()))
    sigma = model.noise_std / signal
    price = 2.0 * sigma / unit * sigma
    if not 1e-250 < price < 1e250 or not 1e-250 < price / unit < 1e250:
        relative = "" if model.weights is not None else " relative to what is shown"
        raise ValueError(
            "(noise_std / gap)^2 must be between 1e-250 and 1e250, got a noise_std of "
            f"{sigma:g}{relative} and gaps up to {problem.gaps.max():g}"
        )
    actions, shown = problem.actions / units, shown / units / signal
    return ScaledProblem(actions, shown, problem.gaps / unit, precisions, units, unit, price)


def _common_sizes(paid: Array, seen: Array) -> Array:
    """Sizes of the features, which may be large in rewards or in observations."""
    largest, most = paid.max(), seen.max()
    if not largest > 0 or not most > 0:
        return np.maximum(paid, seen)
    return np.asarray(largest * np.maximum(paid / largest, seen / most))


def _power_of_two(size: NDArray[np.floating] | float) -> Array:
    _, exponents = np.frexp(np.maximum(size, 1e-300))
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponents), 1.0)


class ProblemView(NamedTuple):
    """Suboptimal arms in directions in which parameters that agree on the optimal ones differ."""

    costly: Bools  # (k,)
    differences: Array
    shown: Array
    ties: Array
    points: Array
    seen: Array
    gaps: Array
    precisions: Array
    refutable: Bools  # (k',): arms that some alternative makes best
    unseen: Array  # (k', d): the part of each difference that no arm shows
    basis: Array  # (d, r)
    rows: Array  # (m, d): of M around theta, no rows for all of R^d
    slack: Array  # (m,)
    rounding: Array  # (m,): of the slack


def view_of(problem: TableProblem, parameter_set: Polytope | None = None) -> ProblemView:
    """Remove what the optimal arms show, and directions that matter to no arm."""
    scaled, optimal = scale_problem(problem), optimal_arms(problem)
    costly = ~optimal
    differences = scaled.actions[costly] - scaled.actions[problem.best_rows[costly]]
    # after cancellation, what is left of an arm may be rounding of these sizes
    sizes = np.maximum(np.abs(scaled.actions[costly]), np.abs(differences))
    ties, unseen = np.zeros((0, problem.d)), np.zeros_like(differences)
    refutable: Bools
    if problem.model.weights is not None:
        _, basis = _split(scaled.actions[optimal])
        refutable = np.asarray(_values(differences, sizes, basis).any(axis=1))
        if refutable.any():  # directions in which no arm differs matter to no arm
            basis = basis @ _split((differences @ basis)[refutable])[0]
        shown, points = differences[:, None, :], differences @ basis
        seen = points[:, None, :]
    else:
        shown = scaled.shown[costly]
        _, basis = _split(_unit_rows(scaled.shown[optimal]), _FAINT)
        left = _clear(_values(differences, sizes, basis), differences)
        refutable = np.asarray(left.any(axis=1))
        seen = _clear(_values(shown, np.abs(shown), basis), shown)
        towards, away = _split(_unit_rows(seen), _FAINT)
        seen, hidden, basis = seen @ towards, basis @ away, basis @ towards
        points, unseen = differences @ basis, _beyond(differences, hidden)
        ties = scaled.actions[optimal] - scaled.actions[problem.best]
        if _beyond(ties, hidden).any():
            raise ValueError(
                "several arms are best, and no arm shows the difference between two of them: "
                "change theta a little, such that one is best"
            )
        left = _clear(_values(ties, np.abs(scaled.actions[optimal]), basis), ties)
        ties = ties[left.any(axis=1)]
        if len(ties):
            beatable = [_separable(np.vstack([z, z - ties]) @ basis) for z in differences]
            refutable = np.logical_and(refutable, beatable)
    rows, slack, rounding = np.zeros((0, problem.d)), np.zeros(0), np.zeros(0)
    if parameter_set is not None:
        normals, offsets = parameter_set.arrays(problem.d)
        rows, slack = normals / scaled.units, (offsets - normals @ problem.theta) / scaled.unit
        sizes = np.abs(normals) @ np.abs(problem.theta) + np.abs(offsets)
        rounding = 4 * _EPS * sizes / scaled.unit
        slack = np.maximum(slack, 0.0)
    return ProblemView(
        costly,
        differences,
        shown,
        ties,
        points,
        seen,
        scaled.gaps[costly],
        scaled.precisions[costly],
        refutable,
        unseen,
        basis,
        rows,
        slack,
        rounding,
    )


def _values(vectors: Array, sizes: Array, basis: Array) -> Array:
    """Coordinates of vectors in a basis, zero where they are rounding of terms of given sizes."""
    values = vectors @ basis
    noise = 4 * len(basis) * _EPS * sizes @ np.abs(basis)
    return np.where(np.abs(values) > noise, values, 0.0)


def _clear(values: Array, vectors: Array) -> Array:
    """Set to zero vectors of which only rounding of the input is left."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    whole = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(lengths > _FAINT * whole, values, 0.0)


def _unit_rows(vectors: Array) -> Array:
    """Nonzero rows, scaled to length 1: a small one spans as much as a large one."""
    rows = vectors.reshape(math.prod(vectors.shape[:-1]), vectors.shape[-1])
    lengths = np.linalg.norm(rows, axis=1)
    units: Array = rows[lengths > 0] / lengths[lengths > 0, None]
    return units


def _split(vectors: Array, least: float = 0.0) -> tuple[Array, Array]:
    """Orthonormal bases of the span of vectors, (d, r), and of its orthogonal complement."""
    _, singular, directions = np.linalg.svd(vectors)
    smallest = max(vectors.shape) * _EPS
    rank = int((singular > max(smallest, least) * singular.max(initial=0.0)).sum())
    return np.ascontiguousarray(directions[:rank].T), np.ascontiguousarray(directions[rank:].T)


def _beyond(vectors: Array, hidden: Array) -> Array:
    """Parts of vectors in hidden directions, zero where they are rounding."""
    parts = (vectors @ hidden) @ hidden.T
    lengths = np.linalg.norm(parts, axis=1)
    real = lengths > _UNSEEN * np.linalg.norm(vectors, axis=1)
    return np.where(real[:, None], parts, 0.0)


def _separable(vectors: Array) -> bool:
    """Whether some e has positive values at all vectors: no convex combination is zero."""
    from scipy.optimize import nnls

    system = np.vstack([vectors.T / np.abs(vectors).max(initial=1e-300), np.ones(len(vectors))])
    _, distance = nnls(system, np.append(np.zeros(vectors.shape[1]), 1.0))
    return bool(distance > _UNSEEN)


def whitened(weighted: Array, vectors: Array) -> Array | None:
    """R^-T v in rows, with R^T R = W^T W for weighted arms W; None if a direction has no weight.

    The orthogonal factor avoids the squared condition number of W^T W.  Columns are scaled first,
    as the weights of directions may be of different size.
    """
    units = np.abs(weighted).max(axis=0)
    if not (units > 0).all() or len(weighted) < len(units):
        return None
    factor = np.linalg.qr(weighted / units)[1]
    if not (np.abs(np.diag(factor)) > 0).all():
        return None
    solved: Array = np.linalg.solve(factor.T, (vectors / units).T).T
    return solved


def favoured_arm(problem: TableProblem, witness: Array) -> int | None:
    """Arm that beats all optimal ones under a parameter that shows the same as theta.

    None if the parameter shows something else, or if an optimal arm is best under it.
    """
    if not np.isfinite(witness).all():
        return None
    scaled, optimal = scale_problem(problem), optimal_arms(problem)
    theta, nu = problem.theta * scaled.units / scaled.unit, witness * scaled.units / scaled.unit
    rounding = 8 * problem.d * _EPS * (np.abs(theta) + np.abs(nu))
    rows = scaled.shown.reshape(-1, problem.d)
    faint = 2.0 * math.sqrt(len(rows)) * _FAINT * np.linalg.norm(nu - theta)
    sizes = np.abs(rows) @ rounding + faint * np.linalg.norm(rows, axis=1)
    if (np.abs(rows @ (nu - theta)) > sizes).any():
        return None
    lead = scaled.actions @ nu - (scaled.actions[optimal] @ nu).max()
    arm = int(lead.argmax())
    return arm if lead[arm] > np.abs(scaled.actions[arm]) @ rounding else None
