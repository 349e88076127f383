"""A problem as its alternatives see it: what is to be refuted, and which arms tell.

| symbol                                           | here              | shape      |
|--------------------------------------------------|-------------------|------------|
| x - x*_c, for arms x that cost something         | ``differences``   | (k', d)    |
| what these show: Y_x, up to a factor that is     |                   |            |
| among the precisions                             | ``shown``         | (k', p, d) |
| x - x* for optimal x, if no optimal arm shows it | ``ties``          | (f, d)     |
| orthonormal e that vanish at all that the        |                   |            |
| optimal arms show                                | ``basis``         | (d, r)     |
| p_x: their values at x - x*_c                    | ``points``        | (k', r)    |
| their values at the rows that x shows            | ``seen``          | (k', p, r) |

In a bandit an arm shows what it pays: up to what x* shows, x is x - x*, and ``seen`` is ``points``.
In a game both are tables of their own, and three things may happen that no bandit knows.  Nobody
sees a part of x - x*: that part, times any number, is a change of theta that makes x best and shows
nothing.  Optimal arms pay the same, and do not show it: an alternative must be better than each of
them.  Arms see directions in which no x - x* lies: these stay, as an alternative may move there.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem

__all__ = ["ProblemView", "Scaled", "favoured_arm", "leads", "optimal_arms", "scaled", "view_of"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_EPS = float(np.finfo(np.float64).eps)
# What of a row is left beyond others, relatively, is a rounding in what was given: to learn from it
# would cost the square of the inverse.
_FAINT = 1e-12
# A part of a difference beyond all that is shown that is larger than this, relatively, is no
# rounding.
_UNSEEN = 1e-9


class Scaled(NamedTuple):
    """A problem in units of its own, powers of two: features, gaps and 2 sigma^2 are about 1."""

    actions: Array
    shown: Array  # (k, p, d): Y, in a bandit without rho
    gaps: Array
    precisions: Array  # (k,): how much an observation of each arm weighs: rho^2, in a game 1
    units: Array  # (d,): of the features
    unit: float  # of the gaps
    price: float  # c* of the problem is so many times c* in these units


def leads(problem: TableProblem) -> Array:
    """<x*_c - x, theta> of every arm: gaps, unless the mean is another function of <x, theta>."""
    if problem.model.likelihood is None:
        return problem.gaps
    predictors = problem.actions @ problem.theta
    lead: Array = predictors[problem.best_rows] - predictors
    return lead


def optimal_arms(problem: TableProblem) -> Mask:
    """Arms whose lead is zero up to rounding: it is known to roundings of |x| |theta|."""
    sizes = np.abs(problem.actions) @ np.abs(problem.theta)
    optimal: Mask = leads(problem) <= 4 * _EPS * (sizes + sizes[problem.best_rows])
    return optimal


def scaled(problem: TableProblem) -> Scaled:
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
    return Scaled(actions, shown, problem.gaps / unit, precisions, units, unit, price)


def _common_sizes(paid: Array, seen: Array) -> Array:
    """Sizes of the features, which may be large in what is paid or in what is seen."""
    largest, most = paid.max(), seen.max()
    if not largest > 0 or not most > 0:
        return np.maximum(paid, seen)
    return np.asarray(largest * np.maximum(paid / largest, seen / most))


def _power_of_two(size: NDArray[np.floating] | float) -> Array:
    _, exponents = np.frexp(np.maximum(size, 1e-300))
    return np.where(np.asarray(size) > 0, np.ldexp(1.0, exponents), 1.0)


class ProblemView(NamedTuple):
    """What the arms that cost something look like to parameters that agree on the others."""

    costly: Mask  # (k,)
    differences: Array
    shown: Array
    ties: Array
    points: Array
    seen: Array
    gaps: Array
    precisions: Array
    refutable: Mask  # (k',): arms that some alternative makes best
    unseen: Array  # (k', d): the part of each difference that nobody sees
    basis: Array  # (d, r)
    rows: Array  # (m, d): of M around theta, no rows for all of R^d
    slack: Array  # (m,)
    rounding: Array  # (m,): of the slack


def view_of(problem: TableProblem, parameter_set: Polytope | None = None) -> ProblemView:
    """Leave out what the optimal arms show, and directions that matter to no arm."""
    own, optimal = scaled(problem), optimal_arms(problem)
    costly = ~optimal
    differences = own.actions[costly] - own.actions[problem.best_rows[costly]]
    # what is left of an arm after cancellation, below the rounding of what was subtracted
    sizes = np.maximum(np.abs(own.actions[costly]), np.abs(differences))
    ties, unseen = np.zeros((0, problem.d)), np.zeros_like(differences)
    refutable: Mask
    if problem.model.weights is not None:
        _, basis = _split(own.actions[optimal])
        refutable = np.asarray(_values(differences, sizes, basis).any(axis=1))
        if refutable.any():  # directions in which no arm differs matter to no arm
            basis = basis @ _split((differences @ basis)[refutable])[0]
        shown, points = differences[:, None, :], differences @ basis
        seen = points[:, None, :]
    else:
        shown = own.shown[costly]
        _, basis = _split(_unit_rows(own.shown[optimal]), _FAINT)
        left = _clear(_values(differences, sizes, basis), differences)
        refutable = np.asarray(left.any(axis=1))
        seen = _clear(_values(shown, np.abs(shown), basis), shown)
        towards, away = _split(_unit_rows(seen), _FAINT)
        seen, hidden, basis = seen @ towards, basis @ away, basis @ towards
        points, unseen = differences @ basis, _beyond(differences, hidden)
        ties = own.actions[optimal] - own.actions[problem.best]
        if _beyond(ties, hidden).any():
            raise ValueError(
                "several arms are best, and no arm shows the difference between two of them: "
                "change theta a little, such that one is best"
            )
        left = _clear(_values(ties, np.abs(own.actions[optimal]), basis), ties)
        ties = ties[left.any(axis=1)]
        if len(ties):
            beatable = [_separable(np.vstack([z, z - ties]) @ basis) for z in differences]
            refutable = np.logical_and(refutable, beatable)
    rows, slack, rounding = np.zeros((0, problem.d)), np.zeros(0), np.zeros(0)
    if parameter_set is not None:
        normals, offsets = parameter_set.arrays(problem.d)
        rows, slack = normals / own.units, (offsets - normals @ problem.theta) / own.unit
        sizes = np.abs(normals) @ np.abs(problem.theta) + np.abs(offsets)
        rounding = 4 * _EPS * sizes / own.unit
        slack = np.maximum(slack, 0.0)
    return ProblemView(
        costly,
        differences,
        shown,
        ties,
        points,
        seen,
        own.gaps[costly],
        own.precisions[costly],
        refutable,
        unseen,
        basis,
        rows,
        slack,
        rounding,
    )


def _values(vectors: Array, sizes: Array, basis: Array) -> Array:
    """Values of a basis at vectors, zero where they are roundings of terms of given sizes."""
    values = vectors @ basis
    noise = 4 * len(basis) * _EPS * sizes @ np.abs(basis)
    return np.where(np.abs(values) > noise, values, 0.0)


def _clear(values: Array, vectors: Array) -> Array:
    """Set to zero what is left of vectors by roundings in what was given."""
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    whole = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.where(lengths > _FAINT * whole, values, 0.0)


def _unit_rows(vectors: Array) -> Array:
    """Rows of length 1, without those that are zero: a small one spans as much as a large one."""
    rows = vectors.reshape(math.prod(vectors.shape[:-1]), vectors.shape[-1])
    lengths = np.linalg.norm(rows, axis=1)
    units: Array = rows[lengths > 0] / lengths[lengths > 0, None]
    return units


def _split(vectors: Array, least: float = 0.0) -> tuple[Array, Array]:
    """Orthonormal bases of the span of vectors, (d, r), and of all that is orthogonal to it."""
    _, singular, directions = np.linalg.svd(vectors)
    smallest = max(vectors.shape) * _EPS
    rank = int((singular > max(smallest, least) * singular.max(initial=0.0)).sum())
    return np.ascontiguousarray(directions[:rank].T), np.ascontiguousarray(directions[rank:].T)


def _beyond(vectors: Array, hidden: Array) -> Array:
    """Parts of vectors in hidden directions, zero where they are roundings."""
    parts = (vectors @ hidden) @ hidden.T
    lengths = np.linalg.norm(parts, axis=1)
    real = lengths > _UNSEEN * np.linalg.norm(vectors, axis=1)
    return np.where(real[:, None], parts, 0.0)


def _separable(vectors: Array) -> bool:
    """Whether some e has positive values at all vectors: no mixture of them is zero."""
    from scipy.optimize import nnls

    system = np.vstack([vectors.T / np.abs(vectors).max(initial=1e-300), np.ones(len(vectors))])
    _, distance = nnls(system, np.append(np.zeros(vectors.shape[1]), 1.0))
    return bool(distance > _UNSEEN)


def favoured_arm(problem: TableProblem, witness: Array) -> int | None:
    """Arm that is better than all optimal ones under a parameter that shows what theta shows.

    None if the parameter shows something else, or if an optimal arm is best under it.
    """
    if not np.isfinite(witness).all():
        return None
    own, optimal = scaled(problem), optimal_arms(problem)
    theta, nu = problem.theta * own.units / own.unit, witness * own.units / own.unit
    rounding = 8 * problem.d * _EPS * (np.abs(theta) + np.abs(nu))
    rows = own.shown.reshape(-1, problem.d)
    faint = 2.0 * math.sqrt(len(rows)) * _FAINT * np.linalg.norm(nu - theta)
    sizes = np.abs(rows) @ rounding + faint * np.linalg.norm(rows, axis=1)
    if (np.abs(rows @ (nu - theta)) > sizes).any():
        return None
    lead = own.actions @ nu - (own.actions[optimal] @ nu).max()
    arm = int(lead.argmax())
    return arm if lead[arm] > np.abs(own.actions[arm]) @ rounding else None
