"""Solver of the covering program behind c* for generalised linear bandits (clicks and counts).

| symbol                                                   | here              | shape    |
|----------------------------------------------------------|-------------------|----------|
| a_x = alpha_x Delta(x)                                   | ``shares``        | (k',)    |
| y_z, nearest alternative for z                           | ``shifts``        | (m, r)   |
| p_z                                                      | ``targets``       | (m, r)   |
| g_z(a) = min_y sum_x alpha_x d_x(<y, p_x>) subject to <y, p_z> = D_z | ``evidence`` | (m,) |
| dg_z / da_x = d_x(<y_z, p_x>) / Delta(x)                 | ``gradients``     | (m, k')  |

The other symbols are those of :mod:`sightline.bounds.likelihood_certificate`.  The program is

    minimise sum_x a_x   subject to   g_z(a) >= 1 for all z,  a >= 0.

Evidence against one alternative is linear in the shares, so cutting planes solve the program
(:mod:`sightline.bounds.linear`): a linear program over the alternatives found so far bounds c* from
below, and the nearest alternatives at the next shares become new cuts.  A method that follows
second derivatives of g_z does not work here: where means saturate, divergences are a slope beyond a
corner, g_z is nearly polyhedral, and its second derivatives span thirty orders of magnitude.

Nearest alternatives solve a convex program per arm, all of them at once: Newton's method within a
trust region.  Each arm z has coordinates t of the plane <y, p_z> = D_z.  The Hessian is A^T A for
A = diag(alpha d'')^(1/2) P, and a singular value decomposition of A resolves curvatures down to
the square of the rounding error, relative to the largest.  Parts of the gradient that may be
rounding are zero: along a direction without curvature they would predict a large decrease.

With many arms most are never played by a basic solution, and most alternatives are far.  The first
shares are then those of a few arms, and a round looks at all rivals only if those that have been
near leave a much narrower bracket.

Where the mean itself is linear, divergences act as barriers at its limits, so every arm keeps a
minimal share.  An arm that no parameter within the limits makes best has no constraint; linear
programming finds such arms, and its multipliers prove it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.bounds.geometry import optimal_arms
from sightline.bounds.likelihood_certificate import (
    LikelihoodView,
    evidence_bounds,
    likelihood_view,
    whitened_points,
)
from sightline.bounds.linear import cover
from sightline.core.linalg import Array, Ints
from sightline.problems.base import TableProblem
from sightline.validation import affordable

# --- cutting planes
_MOST_ROUNDS = 300
_PATIENCE = 20  # rounds without a narrower bracket after which rounding errors allow no more
_NEAR = 1.5  # alternatives up to this factor farther than the nearest one become cuts, too
_MOST_CUTS = 16  # of one round
_SLACK = 1.3  # evidence of the linear program beyond which a cut is dropped
# How far the next shares are from those of the linear program, towards the best ones so far.
_SAFE, _BOLD = 0.5, 0.02
_FEW = 24  # up to so many arms, all are rivals in every round and all are played at first
# Other rivals are looked at once these leave little more of the bracket than caution does.
_NARROWER = 0.2
# Part of the tolerance that arms of the first shares cost at least: all directions stay known.
_SPENT_ON_LEAST = 0.1

# --- proofs of the upper side
_MOST_RETREATS, _RETREAT = 60, 0.8  # from alternatives that are far
_UNPROVEN = 1e-9  # missing part of the evidence

# --- nearest alternatives
_MOST_NEWTON_STEPS = 200
_FIRST_RADIUS, _LEAST_RADIUS = 4.0, 1e-13
_GOOD, _POOR = 0.7, 0.1  # decrease over the predicted one: the radius grows, and shrinks
_DECREASE = 1e-2  # below this part of the predicted decrease, a step is not taken
_CERTAIN = 1e-13  # predicted decrease, relative to the evidence, that rounding may hide
_LAST_STEP = 1e-17  # predicted decrease, relative to the evidence, that ends the search
_ROUNDING = 8.0 * float(np.finfo(np.float64).eps)  # of a gradient, relative to its terms
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
    points, inverse = whitened_points(view.points)
    white = view._replace(points=points)
    shifts, slopes = _first_shifts(white)
    hopeless = np.isnan(shifts).any(axis=1)
    rivals = np.flatnonzero(~hopeless)
    _check_hopeless(white, slopes, np.flatnonzero(hopeless))
    if len(rivals) == 0:
        return LikelihoodSolution(np.zeros(k), slopes, np.zeros((0, r)), np.zeros(0))
    nearest = _Nearest(white, rivals, shifts[rivals])
    shares, cuts, multipliers = _cutting_planes(white, nearest, tolerance)
    amounts = shares / view.gaps
    slopes[rivals] = _proofs(view, nearest, rivals, amounts)
    return LikelihoodSolution(amounts, slopes, cuts @ inverse.T, multipliers)


def _check_hopeless(view: LikelihoodView, slopes: Array, arms: Ints) -> None:
    """Refuse problems with alternatives of which none has all means strictly within [0, 1]."""
    proven = evidence_bounds(view, np.zeros(len(view.arms)), slopes[arms], arms)
    if not np.isinf(proven).all():
        arm = int(view.arms[arms[np.isfinite(proven)][0]])
        raise ValueError(
            "means must leave some room: of the parameters with all means in [0, 1], those that "
            f"make arm {arm} as good as the best one give some arm a mean of exactly 0 or 1"
        )


# --- cutting planes ------------------------------------------------------------------------------


def _cutting_planes(
    view: LikelihoodView, nearest: _Nearest, tolerance: float
) -> tuple[Array, Array, Array]:
    """Shares, alternatives and multipliers; ``nearest`` is left at the shares."""
    m, r = nearest.shifts.shape
    near = np.ones(m, dtype=bool)
    query = _first_shares(view)
    kept = query > 0
    if m > _FEW and not nearest.limited:
        values = nearest.evidence_of(np.arange(m), query / view.gaps)
        near[np.argsort(values)[_FEW:]] = False
    shifts, cuts = np.zeros((0, r)), np.zeros((0, len(query)))
    best, best_shifts, upper = query, nearest.shifts, math.inf
    lower, used, multipliers = 0.0, shifts, np.zeros(0)
    most = m if nearest.limited else _MOST_CUTS
    caution, patience = _SAFE, _PATIENCE
    for _ in range(_MOST_ROUNDS):
        before, hoped = upper - lower, upper
        found = np.flatnonzero(near)
        evidence = nearest.update(found, query / view.gaps)
        reached = query.sum() / evidence.min()
        promising = reached - lower < (caution + _NARROWER) * (upper - lower)
        if promising or upper == math.inf or near.all():
            others = np.flatnonzero(~near)
            more = nearest.update(others, query / view.gaps, enough=evidence.min())
            found, evidence = np.append(found, others), np.append(evidence, more)
            reached = query.sum() / evidence.min()
            if reached < upper:
                upper, best, best_shifts = reached, query / evidence.min(), nearest.shifts.copy()
        near[found[evidence <= _NEAR * evidence.min()]] = True
        binding = found[np.argsort(evidence)[:most]]
        binding = binding[np.sort(evidence)[:most] <= _NEAR * evidence.min()]
        shifts = np.vstack([shifts, nearest.shifts[binding]])
        cuts = np.vstack([cuts, nearest.covered(binding) / view.gaps])
        solution, dual = cover(cuts, upper)
        if dual.sum() > lower:
            lower, used, multipliers = float(dual.sum()), shifts, dual
        useful = cuts @ solution <= _SLACK
        shifts, cuts = shifts[useful], cuts[useful]
        patience = _PATIENCE if upper - lower < 0.9 * before else patience - 1
        if upper - lower <= 0.5 * tolerance * upper or patience == 0:
            break
        # bold where the cuts foresaw what the query reached
        caution = max(0.25 * caution, _BOLD) if upper < hoped else min(2.0 * caution, _SAFE)
        query = solution + caution * (best - solution)
        least_share = _SPENT_ON_LEAST * tolerance * query.sum() / kept.sum()
        query[kept] = np.maximum(query[kept], least_share)
    nearest.shifts[:] = best_shifts
    return best, used, multipliers


def _proofs(view: LikelihoodView, nearest: _Nearest, rivals: Ints, amounts: Array) -> Array:
    """Slopes that prove that the evidence against all rivals is at least 1.

    Slopes at far alternatives are so large that arms with small shares may not balance their
    rounding.  Those at alternatives short of D_z also prove, since evidence is convex, at least the
    evidence there.
    """
    slopes = amounts * nearest.divergences.slope(nearest.shifts @ nearest.points.T)
    proven = evidence_bounds(view, amounts, slopes, rivals)
    rows = np.arange(len(rivals))
    for _ in range(_MOST_RETREATS):
        rows = rows[proven[rows] < 1.0 - _UNPROVEN]
        rows = rows[nearest.evidence_of(rows, amounts) > 1.0 + _UNPROVEN]
        if len(rows) == 0:
            break
        nearest.shifts[rows] *= _RETREAT
        nearest.update(rows, amounts)
        steps = nearest.shifts[rows] @ nearest.points.T
        tried = amounts * nearest.divergences.slope(steps)
        found = evidence_bounds(view, amounts, tried, rivals[rows])
        better = found > proven[rows]
        slopes[rows[better]], proven[rows[better]] = tried[better], found[better]
    return slopes


def _first_shares(view: LikelihoodView) -> Array:
    """Equal shares, of all arms or of a few that show all directions."""
    k, r = view.points.shape
    if k <= _FEW or math.isfinite(view.divergences.bounds[0]):
        return np.ones(k)
    from scipy.linalg import qr

    # arms that learn much about their own lead per unit of regret come first
    weights = np.sqrt(view.divergences.divergence(view.leads) / view.gaps) / view.leads
    order = qr((weights[:, None] * view.points).T, mode="r", pivoting=True)[1]
    shares = np.zeros(k)
    shares[order[: 2 * r]] = 1.0
    return shares


# --- nearest alternatives ------------------------------------------------------------------------


class _Nearest:
    """Nearest alternatives of all rivals at the latest shares; each search starts at the last."""

    def __init__(self, view: LikelihoodView, rivals: Ints, start: Array) -> None:
        targets = view.points[rivals]
        self.limited = math.isfinite(view.divergences.bounds[0])
        self.divergences = view.divergences.softened()
        self.points, self.shifts = view.points, start.copy()
        # r - 1 orthonormal vectors orthogonal to p_z: a reflection maps p_z to the first axis
        self.planes = np.linalg.qr(targets[:, :, None], mode="complete")[0][:, :, 1:]

    def evidence_of(self, rows: Ints, amounts: Array) -> Array:
        """Evidence against the present alternatives of some rivals."""
        return self.covered(rows) @ amounts

    def covered(self, rows: Ints) -> Array:
        """d_x(<y_z, p_x>) for all arms, the gradient of the evidence in alpha."""
        return self.divergences.divergence(self.shifts[rows] @ self.points.T)

    def update(self, rows: Ints, amounts: Array, enough: float = math.inf) -> Array:
        """Find the nearest alternatives of some rivals, and return the evidence against them.

        Searches end early where the evidence will exceed ``_NEAR`` times ``enough``.
        """
        if len(rows) == 0:
            return np.zeros(0)
        played = np.flatnonzero(amounts > 0)
        amounts, points = amounts[played], self.points[played]
        terms = self.divergences.of(played)
        steps = self.shifts[rows] @ points.T
        value = terms.divergence(steps) @ amounts
        radius, open_ = np.full(len(rows), _FIRST_RADIUS), np.arange(len(rows))
        for _ in range(_MOST_NEWTON_STEPS):
            now, planes = steps[open_], self.planes[rows[open_]]
            moves = points @ planes
            weights, forces = amounts * terms.curvature(now), amounts * terms.slope(now)
            _, roots, axes = np.linalg.svd(np.sqrt(weights)[:, :, None] * moves, False)
            along = moves @ axes.transpose(0, 2, 1)
            gradient = (forces[:, None, :] @ along)[:, 0, :]
            terms_of = (np.abs(forces)[:, None, :] @ np.abs(along))[:, 0, :]
            gradient = np.where(np.abs(gradient) > _ROUNDING * terms_of, gradient, 0.0)
            change, predicted = _within_radius(gradient, roots**2, radius[open_])
            step = (along @ change[:, :, None])[:, :, 0]
            after = terms.divergence(now + step) @ amounts
            before = value[open_]
            certain = predicted <= _CERTAIN * before
            ratio = (before - after) / np.maximum(predicted, 1e-300)
            taken = (ratio > _DECREASE) | (certain & (after <= before * (1 + 1e-12)))
            moved = open_[taken]
            shift = (planes @ (axes.transpose(0, 2, 1) @ change[:, :, None]))[:, :, 0]
            self.shifts[rows[moved]] += shift[taken]
            steps[moved] += step[taken]
            value[moved] = after[taken]
            length = np.linalg.norm(change, axis=1)
            radius[open_] = np.where(
                ratio > _GOOD,
                np.maximum(radius[open_], 2.0 * length),
                np.where(ratio >= _POOR, radius[open_], 0.3 * np.minimum(radius[open_], length)),
            )
            done = (predicted <= _LAST_STEP * before) | (certain & ~taken)
            done |= radius[open_] < _LEAST_RADIUS
            done |= before - 4.0 * predicted > 2.0 * _NEAR * enough
            open_ = open_[~done]
            if len(open_) == 0:
                break
        return value


def _within_radius(gradient: Array, curvature: Array, radius: Array) -> tuple[Array, Array]:
    """Minimise c t + h t^2 / 2 within |t| <= radius, for diagonal h; and the decrease."""
    curvature = np.maximum(curvature, 1e-300)
    shift = np.zeros(len(gradient))
    far = ~(np.linalg.norm(gradient / curvature, axis=1) <= radius)
    if far.any():
        c, h, size = gradient[far], curvature[far], radius[far]
        most = np.log(np.linalg.norm(c, axis=1) / size)  # of the multiplier of the radius
        least = np.maximum(most - 80.0, -690.0)
        for _ in range(24):
            middle = 0.5 * (least + most)
            over = np.linalg.norm(c / (h + np.exp(middle)[:, None]), axis=1) > size
            least, most = np.where(over, middle, least), np.where(over, most, middle)
        shift[far] = np.exp(most)
    change = -gradient / (curvature + shift[:, None])
    decrease = -(gradient * change).sum(axis=1) - 0.5 * (curvature * change**2).sum(axis=1)
    return change, decrease


def _first_shifts(view: LikelihoodView) -> tuple[Array, Array]:
    """Points with <y, p_z> = D_z for all arms z, within the limits; nan and slopes if none is."""
    squares = (view.points**2).sum(axis=1)
    shifts, slopes = view.points * (view.leads / squares)[:, None], np.zeros((len(squares),) * 2)
    if math.isinf(view.divergences.bounds[0]):
        return shifts, slopes
    low, high = view.divergences.limits
    steps = shifts @ view.points.T
    inside = ((steps > low * (1 - 1e-3)) & (steps < high * (1 - 1e-3))).all(axis=1)
    for z in np.flatnonzero(~inside):
        shifts[z], slopes[z] = _within(view, int(z))
    return shifts, slopes


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
