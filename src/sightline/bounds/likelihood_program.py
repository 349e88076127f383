"""The cheapest allocation that refutes every alternative, for clicks and counts: the solver.

| symbol                                                   | here              | shape    |
|----------------------------------------------------------|-------------------|----------|
| a_x = alpha_x Delta(x)                                   | ``shares``        | (k',)    |
| g_z(a), evidence against the nearest alternative for z   | ``evidence``      | (m,)     |
| dg_z / da_x = d_x(<y_z, p_x>) / Delta(x)                 | ``gradients``     | (m, k')  |
| l_z, multiplier of g_z >= 1                              | ``multipliers``   | (m,)     |
| s_x = 1 - sum_z l_z dg_z / da_x                          | ``costs``         | (k',)    |
| t_z = g_z - 1                                            | ``excess``        | (m,)     |

The others are in :mod:`sightline.bounds.likelihood_certificate` and
:mod:`sightline.bounds.likelihood_nearest`.  The program is

    minimise sum_x a_x   subject to   g_z(a) >= 1 for all z,  a >= 0.

g_z is a minimum of functions linear in a, hence concave, and linear along rays.  Its gradient is
the evidence of each arm at the minimum, and its second derivatives follow from those of the
evidence there: -(s_x p_x)^T K_z (s_y p_y), with slopes s of d and the inverse Hessian K_z within
the plane <y, p_z> = D_z.

The method is Mehrotra's predictor-corrector for the conditions a s = l t = 0, and t is an unknown
of its own: an allocation that must refute everything at every step would creep along a curved
boundary.  Unlike for normal rewards the gradient may grow without limit as a share vanishes, and
then full steps swing.  So a step must lower the cost with its barriers and a price on evidence that
is missing (an exact penalty); the predictor is tried first, and steps to the centre if it fails.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.likelihood_certificate import LikelihoodView, evidence_bounds
from sightline.bounds.likelihood_nearest import Nearest, nearest
from sightline.bounds.within_budgets import longest_step

__all__ = ["Best", "LikelihoodProgram", "follow_path"]

Array = NDArray[np.float64]

_MOST_STEPS = 100
# How far a step may go towards the boundary of what must stay positive.
_REACH = 0.99
# Steps that still move; shorter ones end the search.
_SHORTEST = 1e-8
# Steps without a narrower bracket after which rounding errors allow no more.
_PATIENCE = 15
# A step that is still too long after so many halvings is given up for a more central one.
_MOST_HALVINGS = 6
# Products may fall below the others by this factor: smaller ones shorten all steps that follow.
_SPREAD = 1e3
# By which sums of costs and barriers may differ through rounding.
_ROUNDING = 1e-13


class LikelihoodProgram(NamedTuple):
    """A view in coordinates in which equal shares weigh all directions alike."""

    view: LikelihoodView
    rivals: NDArray[np.int64]  # (m,): arms that some alternative makes best
    leads: Array  # (m,): by how much they must become better, at most
    reached: NDArray[np.bool_]  # (m,): where that is D_z, and not less


class _Iterate(NamedTuple):
    """What must stay positive, and multipliers."""

    shares: Array
    excess: Array
    costs: Array
    multipliers: Array

    @property
    def products(self) -> Array:
        return np.concatenate([self.shares * self.costs, self.excess * self.multipliers])


class _Missed(NamedTuple):
    """By how much the costs and the excess differ from what shares and multipliers give."""

    costs: Array
    evidence: Array


class Best(NamedTuple):
    """The best of each side so far."""

    upper: float
    amounts: Array  # (k',): alpha
    slopes: Array  # (m, k')
    lower: float
    shifts: Array  # (m, r)
    multipliers: Array  # (m,)


def _at(program: LikelihoodProgram, shares: Array, start: Array) -> Nearest:
    view, rivals = program.view, program.rivals
    return nearest(
        view.terms.softened(),
        view.points,
        view.points[rivals],
        program.leads,
        shares / view.gaps,
        start,
    )


def follow_path(program: LikelihoodProgram, start: Array, tolerance: float) -> Best:
    """Follow the central path from equal shares to a relative gap, or as far as rounding allows."""
    k, m = len(program.view.arms), len(program.rivals)
    best = Best(math.inf, np.zeros(k), np.zeros((m, k)), 0.0, start, np.zeros(m))
    patience = _PATIENCE
    try:
        point = _at(program, np.ones(k), start)
        shares = np.full(k, 2.0 / point.evidence.min())
        point = _at(program, shares, point.shifts)
    except np.linalg.LinAlgError:
        return best
    iterate = _start(program, shares, point)
    for _ in range(_MOST_STEPS):
        before = best.upper - best.lower
        best = _improved(program, best, iterate, point)
        patience = _PATIENCE if best.upper - best.lower < 0.9 * before else patience - 1
        if best.upper - best.lower <= 0.5 * tolerance * best.upper or patience == 0:
            break
        advanced = _advance(program, iterate, point)
        if advanced is None:
            break
        iterate, point = advanced
    return best


def _start(program: LikelihoodProgram, shares: Array, point: Nearest) -> _Iterate:
    gradients = point.covered / program.view.gaps
    steepest = gradients.sum(axis=0).max()
    multipliers = np.full(len(program.rivals), 0.5 / steepest)
    return _Iterate(shares, point.evidence - 1.0, 1.0 - multipliers @ gradients, multipliers)


def _improved(program: LikelihoodProgram, best: Best, iterate: _Iterate, point: Nearest) -> Best:
    """Both sides as the certificate will find them."""
    view = program.view
    amounts = iterate.shares / view.gaps
    slopes = amounts * point.slopes
    least = float(evidence_bounds(view, amounts, slopes, program.rivals).min())
    if least > 0 and iterate.shares.sum() / least < best.upper:
        upper = float(iterate.shares.sum() / least)
        best = best._replace(upper=upper, amounts=amounts / least, slopes=slopes / least)
    multipliers = np.where(program.reached, iterate.multipliers, 0.0)
    multipliers = multipliers / (multipliers @ point.covered / view.gaps).max()
    if multipliers.sum() > best.lower:
        lower = float(multipliers.sum())
        best = best._replace(lower=lower, shifts=point.shifts, multipliers=multipliers)
    return best


def _advance(
    program: LikelihoodProgram, iterate: _Iterate, point: Nearest
) -> tuple[_Iterate, Nearest] | None:
    """Predict, correct, step; None if there is no step worth taking."""
    gradients = point.covered / program.view.gaps
    now = iterate.products
    missed = _Missed(
        1.0 - iterate.costs - iterate.multipliers @ gradients,
        point.evidence - 1.0 - iterate.excess,
    )
    try:
        matrix = _matrix(program, iterate, point, gradients)
        predicted = _direction(matrix, gradients, iterate, missed, -now)
        ahead = _step(iterate, predicted, *_lengths(iterate, predicted, 1.0)).products.mean()
        centre = now.mean() * min(ahead / now.mean(), 1.0) ** 3
        plan = [
            (centre, predicted.products),
            (max(centre, 0.1 * now.mean()), 0.0),
            (now.mean(), 0.0),
        ]
        off = iterate.shares @ np.abs(missed.costs) + iterate.multipliers @ np.abs(missed.evidence)
        if off > now.sum():  # first come nearer to the path
            plan = plan[2:]
        for aim, second in plan:
            changed = _direction(matrix, gradients, iterate, missed, aim - now - second)
            found = _walk(program, iterate, point, changed, aim)
            if found is not None:
                return found
    except np.linalg.LinAlgError:
        pass
    return None


def _walk(
    program: LikelihoodProgram, iterate: _Iterate, point: Nearest, change: _Iterate, aim: float
) -> tuple[_Iterate, Nearest] | None:
    """Go along a direction while the barrier function of the aim falls."""
    if not all(np.isfinite(part).all() for part in change):
        return None
    primal, dual = _lengths(iterate, change, _REACH)
    prices = 2.0 * np.maximum(iterate.multipliers, iterate.multipliers + change.multipliers)
    before = _merit(iterate.shares, iterate.excess, point.evidence, aim, prices)
    for _ in range(_MOST_HALVINGS):
        if primal < _SHORTEST:
            return None
        shares = iterate.shares + primal * change.shares
        after = _at(program, shares, point.shifts)
        excess = np.maximum(iterate.excess + primal * change.excess, after.evidence - 1.0)
        if _merit(shares, excess, after.evidence, aim, prices) <= before + _ROUNDING * abs(before):
            costs = np.maximum(iterate.costs + dual * change.costs, aim / _SPREAD / shares)
            multipliers = iterate.multipliers + dual * change.multipliers
            multipliers = np.maximum(multipliers, aim / _SPREAD / excess)
            return _Iterate(shares, excess, costs, multipliers), after
        primal *= 0.5
    return None


def _merit(shares: Array, excess: Array, evidence: Array, aim: float, prices: Array) -> float:
    """Cost, barriers, and a price for evidence that is less than the excess says."""
    if not np.isfinite(evidence).all():
        return math.nan
    barriers = np.log(shares).sum() + np.log(excess).sum()
    return float(shares.sum() - aim * barriers + prices @ np.abs(evidence - 1.0 - excess))


def _matrix(
    program: LikelihoodProgram, iterate: _Iterate, point: Nearest, gradients: Array
) -> Array:
    """Newton's equations for relative changes of shares and multipliers."""
    view, n = program.view, len(iterate.shares)
    tilted = point.slopes[:, :, None] * (view.points / view.gaps[:, None])
    curvature = np.einsum(
        "z,zxi,zyi->xy", iterate.multipliers, tilted @ point.inverses, tilted, optimize=True
    )
    a, m = iterate.shares, iterate.multipliers
    matrix = np.diag(iterate.products)
    matrix[:n, :n] += a[:, None] * curvature * a
    matrix[:n, n:] = -a[:, None] * gradients.T * m
    matrix[n:, :n] = -matrix[:n, n:].T
    return matrix


def _direction(
    matrix: Array, gradients: Array, iterate: _Iterate, missed: _Missed, targets: Array
) -> _Iterate:
    """Solve for the change after which the products have changed by the targets."""
    a, m, n = iterate.shares, iterate.multipliers, len(iterate.shares)
    right = targets - np.concatenate([a * missed.costs, m * missed.evidence])
    relative = np.linalg.solve(matrix, right)
    shares = a * relative[:n]
    return _Iterate(
        shares=shares,
        excess=gradients @ shares + missed.evidence,
        costs=(targets[:n] - iterate.costs * shares) / a,
        multipliers=m * relative[n:],
    )


def _lengths(iterate: _Iterate, change: _Iterate, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step, at most 1, that keep everything positive."""
    return (
        longest_step(iterate[:2], change[:2], reach),
        longest_step(iterate[2:], change[2:], reach),
    )


def _step(iterate: _Iterate, change: _Iterate, primal: float, dual: float) -> _Iterate:
    return _Iterate(
        iterate.shares + primal * change.shares,
        iterate.excess + primal * change.excess,
        iterate.costs + dual * change.costs,
        iterate.multipliers + dual * change.multipliers,
    )
