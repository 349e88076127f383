"""Solver of the covering program behind c* for generalised linear bandits (clicks and counts).

| symbol                                                   | here              | shape    |
|----------------------------------------------------------|-------------------|----------|
| a_x = alpha_x Delta(x)                                   | ``shares``        | (k',)    |
| y_z, nearest alternative for z                           | ``shifts``        | (m, r)   |
| p_z                                                      | ``targets``       | (m, r)   |
| g_z(a) = min_y sum_x alpha_x d_x(<y, p_x>) subject to <y, p_z> = D_z | ``evidence`` | (m,) |
| dg_z / da_x = d_x(<y_z, p_x>) / Delta(x)                 | ``gradients``     | (m, k')  |
| l_z, multiplier of g_z >= 1                              | ``multipliers``   | (m,)     |
| s_x = 1 - sum_z l_z dg_z / da_x                          | ``costs``         | (k',)    |
| t_z = g_z - 1                                            | ``excess``        | (m,)     |

The other symbols are those of :mod:`sightline.bounds.likelihood_certificate`.  The program is

    minimise sum_x a_x   subject to   g_z(a) >= 1 for all z,  a >= 0.

g_z is a minimum of functions linear in a, hence concave, and linear along rays.  Its gradient is
the evidence of each arm at the minimum.  Its second derivatives follow from those of the evidence
there: -(s_x p_x)^T K_z (s_y p_y), with slopes s of d and the inverse Hessian K_z within the plane
<y, p_z> = D_z.

The method is Mehrotra's predictor-corrector for the conditions a s = l t = 0.  t is a separate
unknown: an allocation that had to refute everything at every step would creep along a curved
boundary.  Unlike for normal rewards the gradient may grow without bound as a share vanishes, and
full steps then oscillate.  So a step must lower the cost with its barriers and an exact penalty on
missing evidence.  The predictor is tried first, and more central steps if it fails.

Nearest alternatives solve a convex program per arm, all of them at once: Newton's method with one
multiplier and a line search, from any point within the limits of the likelihood.  Where the mean
itself is linear, divergences act as barriers at these limits, and steps end before them.  An arm
that no parameter within the limits makes best has no constraint; linear programming finds such
arms, and its multipliers prove it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from sightline.bounds.divergences import Divergences
from sightline.bounds.finite_horizon import longest_step
from sightline.bounds.geometry import optimal_arms
from sightline.bounds.likelihood_certificate import (
    LikelihoodView,
    evidence_bounds,
    likelihood_view,
    room,
)
from sightline.core.linalg import Array, Bools, Ints
from sightline.problems.base import TableProblem
from sightline.validation import affordable

# --- interior point method
_MOST_STEPS = 100
_REACH = 0.99  # fraction of the way to the boundary that a step may go
_SHORTEST = 1e-8  # shorter steps end the search
_PATIENCE = 15  # steps without a narrower bracket after which rounding errors allow no more
_MOST_HALVINGS = 6  # after so many halvings a step is replaced by a more central one
# Factor by which products may fall below the others: smaller ones shorten all steps that follow.
_SPREAD = 1e3
_MERIT_ROUNDING = 1e-13  # relative rounding of sums of costs and barriers
_LEAD_ROUNDING = 1e-12  # relative rounding of leads

# --- nearest alternatives
_MOST_NEWTON_STEPS = 100
# Squared length of a step, relative to the evidence, that ends the search: steps square after it.
_LAST_STEP = 1e-18
# Below this length of a step, the evidence before and after differs by rounding only.
_CERTAIN = 1e-9
# Fraction of the way to a limit that a step may go, and its reduction in the line search.
_REACH_OF_LIMIT = 0.95
_SHORTER = 0.5
_LEAST_FRACTION = 1e-12
_DECREASE = 1e-4
_POOR = 0.3  # after steps that were shortened to less, chords replace curvatures
# Strides from theta towards alternatives; evidence relative to the least at which they may end.
_MOST_STRIDES = 300
_FAR = 1e6
_ALIKE = 20
_NO_ROOM = 1e-9  # room within the limits, relative to that at theta, that counts as none


class LikelihoodSolution(NamedTuple):
    """Proof of both sides, for the arms of a view."""

    amounts: Array  # (k',): alpha
    slopes: Array  # (k', k')
    shifts: Array  # (m, r)
    multipliers: Array  # (m,)


def likelihood_certificate(
    problem: TableProblem, tolerance: float
) -> tuple[Array, Array, Array, Array]:
    """Allocation, alternatives, multipliers and slopes that prove both sides for a problem."""
    # the solver holds a matrix of arms for every arm, in each of r directions
    affordable(f"c* of clicks or counts for k = {problem.k} arms", 24 * problem.k**2 * problem.d)
    view = likelihood_view(problem)
    found = solve_likelihood(view, tolerance)
    allocation = np.where(optimal_arms(problem), math.inf, 0.0)
    allocation[view.arms] = found.amounts
    slopes = np.zeros((problem.k, problem.k))
    slopes[np.ix_(view.arms, view.arms)] = found.slopes
    alternatives = problem.theta + found.shifts @ view.basis.T / view.units
    return allocation, alternatives, found.multipliers, slopes


def solve_likelihood(view: LikelihoodView, tolerance: float) -> LikelihoodSolution:
    """Solve the program to a relative gap, or as far as rounding errors allow."""
    k, r = view.points.shape
    slopes = np.zeros((k, k))
    if k == 0:
        return LikelihoodSolution(np.zeros(0), slopes, np.zeros((0, r)), np.zeros(0))
    white, inverse = _whitened(view)
    start = _first_shifts(white, 1.0 / white.gaps)
    slopes, rivals = start.slopes, np.flatnonzero(~start.hopeless)
    _check_hopeless(white, slopes, np.flatnonzero(start.hopeless))
    if len(rivals) == 0:
        return LikelihoodSolution(np.zeros(k), slopes, np.zeros((0, r)), np.zeros(0))
    lead = start.leads[rivals]
    reached = lead >= white.leads[rivals] * (1 - _LEAD_ROUNDING)
    best = _follow_path(_Program(white, rivals, lead, reached), start.shifts[rivals], tolerance)
    slopes[rivals] = best.slopes
    return LikelihoodSolution(best.amounts, slopes, best.shifts @ inverse.T, best.multipliers)


def _whitened(view: LikelihoodView) -> tuple[LikelihoodView, Array]:
    """Change coordinates such that equal shares weigh all directions alike; return the inverse."""
    weights = np.sqrt(view.divergences.information / view.gaps)
    units = np.abs(weights[:, None] * view.points).max(axis=0)
    factor = np.linalg.qr(weights[:, None] * view.points / units)[1]
    inverse = np.linalg.inv(factor) / units[:, None]
    return view._replace(points=view.points @ inverse), inverse


def _check_hopeless(view: LikelihoodView, slopes: Array, arms: Ints) -> None:
    """Refuse problems with alternatives of which none has all means strictly within [0, 1]."""
    proven = evidence_bounds(view, np.zeros(len(view.arms)), slopes[arms], arms)
    if not np.isinf(proven).all():
        arm = int(view.arms[arms[np.isfinite(proven)][0]])
        raise ValueError(
            "means must leave some room: of the parameters with all means in [0, 1], those that "
            f"make arm {arm} as good as the best one give some arm a mean of exactly 0 or 1"
        )


# --- interior point method -----------------------------------------------------------------------


class _Program(NamedTuple):
    """A view in coordinates in which equal shares weigh all directions alike."""

    view: LikelihoodView
    rivals: Ints  # (m,): arms that some alternative makes best
    leads: Array  # (m,): by how much they must become better, at most
    reached: Bools  # (m,): where that is D_z, and not less


class _Iterate(NamedTuple):
    """Positive variables and their multipliers."""

    shares: Array
    excess: Array
    costs: Array
    multipliers: Array

    @property
    def products(self) -> Array:
        return np.concatenate([self.shares * self.costs, self.excess * self.multipliers])


class _Best(NamedTuple):
    """Best upper and lower side so far."""

    upper: float
    amounts: Array  # (k',): alpha
    slopes: Array  # (m, k')
    lower: float
    shifts: Array  # (m, r)
    multipliers: Array  # (m,)


def _at(program: _Program, shares: Array, start: Array) -> _Nearest:
    view = program.view
    evidence = _Evidence(view.divergences.softened(), view.points, shares / view.gaps)
    return evidence.nearest(view.points[program.rivals], program.leads, start)


def _follow_path(program: _Program, start: Array, tolerance: float) -> _Best:
    """Follow the central path from equal shares to a relative gap, or as far as rounding allows."""
    k, m = len(program.view.arms), len(program.rivals)
    best = _Best(math.inf, np.zeros(k), np.zeros((m, k)), 0.0, start, np.zeros(m))
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


def _start(program: _Program, shares: Array, point: _Nearest) -> _Iterate:
    gradients = point.covered / program.view.gaps
    steepest = gradients.sum(axis=0).max()
    multipliers = np.full(len(program.rivals), 0.5 / steepest)
    return _Iterate(shares, point.evidence - 1.0, 1.0 - multipliers @ gradients, multipliers)


def _improved(program: _Program, best: _Best, iterate: _Iterate, point: _Nearest) -> _Best:
    """Update both sides, as the certificate will compute them."""
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
    program: _Program, iterate: _Iterate, point: _Nearest
) -> tuple[_Iterate, _Nearest] | None:
    """Predict, correct, step; None if there is no step worth taking."""
    now = iterate.products
    solve, off = _newton(program, iterate, point)
    try:
        predicted = solve(-now)
        primal, dual = _lengths(iterate, predicted, 1.0)
        moves = zip(iterate, predicted, (primal, primal, dual, dual), strict=True)
        ahead = _Iterate(*(now + length * by for now, by, length in moves)).products.mean()
        centre = now.mean() * min(ahead / now.mean(), 1.0) ** 3
        plan = [(centre, predicted.products), (max(centre, 0.1 * now.mean()), 0.0)]
        if off > now.sum():  # return to the central path first
            plan = []
        for aim, second in [*plan, (now.mean(), 0.0)]:
            changed = solve(aim - now - second)
            found = _walk(program, iterate, point, changed, aim)
            if found is not None:
                return found
    except np.linalg.LinAlgError:
        pass
    return None


def _walk(
    program: _Program, iterate: _Iterate, point: _Nearest, change: _Iterate, aim: float
) -> tuple[_Iterate, _Nearest] | None:
    """Line search that lowers the barrier function of the aim."""
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
        if _merit(shares, excess, after.evidence, aim, prices) <= before + _MERIT_ROUNDING * abs(
            before
        ):
            costs = np.maximum(iterate.costs + dual * change.costs, aim / _SPREAD / shares)
            multipliers = iterate.multipliers + dual * change.multipliers
            multipliers = np.maximum(multipliers, aim / _SPREAD / excess)
            return _Iterate(shares, excess, costs, multipliers), after
        primal *= 0.5
    return None


def _merit(shares: Array, excess: Array, evidence: Array, aim: float, prices: Array) -> float:
    """Cost with barriers and an exact penalty on evidence below the excess."""
    if not np.isfinite(evidence).all():
        return math.nan
    barriers = np.log(shares).sum() + np.log(excess).sum()
    return float(shares.sum() - aim * barriers + prices @ np.abs(evidence - 1.0 - excess))


def _newton(
    program: _Program, iterate: _Iterate, point: _Nearest
) -> tuple[Callable[[Array], _Iterate], float]:
    """Newton's equations for relative changes of shares and multipliers.

    Return a function that solves for the change after which the products have changed by given
    targets, and the residual of the equations that are linear in the costs and the excess.
    """
    view, n = program.view, len(iterate.shares)
    gradients = point.covered / view.gaps
    tilted = point.slopes[:, :, None] * (view.points / view.gaps[:, None])
    curvature = np.einsum(
        "z,zxi,zyi->xy", iterate.multipliers, tilted @ point.inverses, tilted, optimize=True
    )
    a, m = iterate.shares, iterate.multipliers
    matrix = np.diag(iterate.products)
    matrix[:n, :n] += a[:, None] * curvature * a
    matrix[:n, n:] = -a[:, None] * gradients.T * m
    matrix[n:, :n] = -matrix[:n, n:].T
    costs = 1.0 - iterate.costs - m @ gradients  # missing: implied, minus those of the iterate
    evidence = point.evidence - 1.0 - iterate.excess

    def solve(targets: Array) -> _Iterate:
        right = targets - np.concatenate([a * costs, m * evidence])
        relative = np.linalg.solve(matrix, right)
        shares = a * relative[:n]
        return _Iterate(
            shares=shares,
            excess=gradients @ shares + evidence,
            costs=(targets[:n] - iterate.costs * shares) / a,
            multipliers=m * relative[n:],
        )

    return solve, float(a @ np.abs(costs) + m @ np.abs(evidence))


def _lengths(iterate: _Iterate, change: _Iterate, reach: float) -> tuple[float, float]:
    """Lengths of the primal and the dual step, at most 1, that keep all variables positive."""
    primal = longest_step(iterate[:2], change[:2], reach)
    return primal, longest_step(iterate[2:], change[2:], reach)


# --- nearest alternatives ------------------------------------------------------------------------


class _Nearest(NamedTuple):
    """Nearest alternatives at an allocation, and derivatives of the evidence."""

    shifts: Array  # (m, r)
    covered: Array  # (m, k'): d_x(<y_z, p_x>), the gradient of the evidence
    slopes: Array  # (m, k'): per unit of alpha
    inverses: Array  # (m, r, r): of the Hessian in y, on the vectors orthogonal to p_z
    evidence: Array  # (m,)


class _Evidence(NamedTuple):
    """The function sum_x alpha_x d_x(<y, p_x>) of y, for several y at once."""

    divergences: Divergences
    points: Array
    amounts: Array

    def nearest(self, targets: Array, lead: Array, start: Array) -> _Nearest:
        """Minimise subject to <y_z, p_z> = D_z for several z, from a start that satisfies it."""
        shifts = start.copy()
        open_, careful = np.arange(len(shifts)), np.zeros(len(shifts), dtype=bool)
        for _ in range(_MOST_NEWTON_STEPS):
            now, chords = shifts[open_], careful[open_]
            changes, squared = self.newton(targets[open_], lead[open_], now, chords)
            fractions, value = self._search(now, changes, squared)
            shifts[open_] = now + fractions[:, None] * changes
            done = np.where(chords, fractions == 0.0, squared <= _LAST_STEP * value)
            careful[open_] = fractions < _POOR
            open_ = open_[~done]
            if len(open_) == 0:
                break
        steps = shifts @ self.points.T
        covered = self.divergences.divergence(steps)
        inverses = _projected(self._hessians(steps), targets)
        slopes = self.divergences.slope(steps)
        return _Nearest(shifts, covered, slopes, inverses, covered @ self.amounts)

    def newton(
        self, targets: Array, lead: Array, shifts: Array, careful: Bools | None = None
    ) -> tuple[Array, Array]:
        """Find steps to the minimum with <y, p_z> = D_z, and their squared lengths in H."""
        steps = shifts @ self.points.T
        gradients = (self.amounts * self.divergences.slope(steps)) @ self.points
        hessians = self._hessians(steps, careful)
        solved = np.linalg.solve(hessians, np.stack([gradients, targets], axis=2))
        down, along = solved[:, :, 0], solved[:, :, 1]
        missing = lead - (shifts * targets).sum(axis=1)
        force = (missing + (down * targets).sum(axis=1)) / (along * targets).sum(axis=1)
        changes = force[:, None] * along - down
        squared = (changes * (hessians @ changes[:, :, None])[:, :, 0]).sum(axis=1)
        return changes, squared

    def _hessians(self, steps: Array, careful: Bools | None = None) -> Array:
        """Second derivatives in y, or chords where careful: these do not vanish far from theta."""
        curvatures = self.divergences.curvature(steps)
        if careful is not None and careful.any():
            with np.errstate(divide="ignore", invalid="ignore"):
                chords = np.where(steps == 0.0, 0.0, self.divergences.slope(steps) / steps)
            curvatures = np.where(careful[:, None], np.maximum(curvatures, chords), curvatures)
        weights = self.amounts * curvatures
        hessians: Array = (self.points.T[None, :, :] * weights[:, None, :]) @ self.points
        return hessians

    def _search(self, shifts: Array, changes: Array, squared: Array) -> tuple[Array, Array]:
        """Fractions of steps that lower the evidence, 0 if none does, and the evidence before."""
        steps, moves = shifts @ self.points.T, changes @ self.points.T
        value = self.divergences.divergence(steps) @ self.amounts
        low, high = self.divergences.limits
        fractions = np.minimum(1.0, _REACH_OF_LIMIT * room(low - steps, high - steps, moves))
        certain = squared <= _CERTAIN * value
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(60):
                ahead = steps + fractions[:, None] * moves
                after = self.divergences.divergence(ahead) @ self.amounts
                enough = after <= value - _DECREASE * fractions * squared
                short = ~(enough | (certain & np.isfinite(after)))
                if not short.any():
                    break
                fractions = np.where(short, _SHORTER * fractions, fractions)
        return np.where(fractions > _LEAST_FRACTION, fractions, 0.0), value


def _projected(hessians: Array, targets: Array) -> Array:
    """H^-1 without its part along p_z: K = H^-1 - H^-1 p p^T H^-1 / (p^T H^-1 p)."""
    inverses = np.linalg.inv(hessians)
    images = (inverses @ targets[:, :, None])[:, :, 0]
    along = (images * targets).sum(axis=1)
    projected: Array = inverses - images[:, :, None] * images[:, None, :] / along[:, None, None]
    return projected


class _Start(NamedTuple):
    """A starting point for every arm z, or a proof that none is needed."""

    shifts: Array  # (k', r)
    leads: Array  # (k',): D_z, or less where D_z is too far to matter
    hopeless: Bools  # (k',): no parameter within the limits makes the arm better
    slopes: Array  # (k', k'): proof that an arm is hopeless; other rows are zero


def _first_shifts(view: LikelihoodView, amounts: Array) -> _Start:
    """Points with <y, p_z> = D_z for all arms, in the coordinates of :func:`_whitened`."""
    k = len(view.points)
    if not np.isfinite(view.divergences.limits[0]).all():
        shifts, reached = _approach(view, amounts)
        return _Start(shifts, reached, np.zeros(k, dtype=bool), np.zeros((k, k)))
    squares = (view.points**2).sum(axis=1)
    shifts, slopes = view.points * (view.leads / squares)[:, None], np.zeros((k, k))
    low, high = view.divergences.limits
    steps = shifts @ view.points.T
    inside = ((steps > low * (1 - 1e-3)) & (steps < high * (1 - 1e-3))).all(axis=1)
    for z in np.flatnonzero(~inside):
        shifts[z], slopes[z] = _within(view, int(z))
    return _Start(shifts, view.leads, np.isnan(shifts).any(axis=1), slopes)


def _approach(view: LikelihoodView, amounts: Array) -> tuple[Array, Array]:
    """Walk from theta to nearest alternatives, by strides over which curvatures do not vanish.

    Newton's method from theta could jump to a point without curvature in any arm.  The walk stops
    early for arms with evidence far beyond that of others.
    """
    divergences, points, lead = view.divergences, view.points, view.leads
    evidence = _Evidence(divergences, points, amounts)
    shifts, value = np.zeros_like(points), np.zeros(len(points))
    open_ = np.arange(len(points))
    least = math.inf
    for count in range(_MOST_STRIDES):
        # strides grow: where evidence is still small, it is proportional to the distance
        stride = 0.5 * divergences.stride * 2.0 ** (count // _ALIKE)
        now = shifts[open_]
        changes, _ = evidence.newton(points[open_], lead[open_], now)
        longest = np.abs(changes @ points.T).max(axis=1)
        fractions = np.minimum(1.0, stride / longest)
        shifts[open_] = now + fractions[:, None] * changes
        value[open_] = divergences.divergence(shifts[open_] @ points.T) @ amounts
        there = fractions == 1.0
        least = min(least, value[open_][there].min(initial=math.inf))
        open_ = open_[~there & (value[open_] <= _FAR * least)]
        if len(open_) == 0:
            break
    return shifts, np.minimum(lead, (shifts * points).sum(axis=1))


def _within(view: LikelihoodView, z: int) -> tuple[Array, Array]:
    """Point strictly within the limits by linear programming, or nan and slopes as a proof."""
    from scipy.optimize import linprog

    k, r = view.points.shape
    low, high = view.divergences.limits
    # relative to the room at theta, if there is any
    below, above = np.maximum(-low, 1e-3 * (-low).max()), np.maximum(high, 1e-3 * high.max())
    rows = np.vstack([-view.points / below[:, None], view.points / above[:, None]])
    offsets = np.concatenate([-low / below, high / above])
    found = linprog(
        np.append(np.zeros(r), -1.0),
        np.hstack([rows, np.ones((2 * k, 1))]),
        offsets,
        np.append(view.points[z], 0.0)[None, :],
        view.leads[z],
        bounds=[(None, None)] * r + [(None, 1.0)],
    )
    if found.x is not None and found.x[-1] > _NO_ROOM:
        return found.x[:-1], np.zeros(k)
    farthest = linprog(-view.points[z], rows, offsets, bounds=(None, None))
    if farthest.x is None:
        return np.full(r, np.nan), np.zeros(k)
    forces = -farthest.ineqlin.marginals
    return np.full(r, np.nan), forces[k:] / above - forces[:k] / below
