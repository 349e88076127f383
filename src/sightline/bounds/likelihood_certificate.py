"""Certificates of c* for generalised linear bandits (clicks and counts).

| symbol                                              | here              | shape   |
|-----------------------------------------------------|-------------------|---------|
| alpha                                               | ``allocation``    | (k,)    |
| nu_j                                                | ``alternatives``  | (m, d)  |
| lambda_j >= 0                                       | ``multipliers``   | (m,)    |
| sigma_zx                                            | ``slopes``        | (k, k)  |
| D_z = <x*_c - x_z, theta>, gap of predictors        | ``leads``         | (k',)   |
| p_x, arms in a basis orthogonal to the optimal ones | ``points``        | (k', r) |
| d_x(v), divergence of x if its predictor moves by v | ``divergences``   |         |

Alternatives agree with theta on the optimal arms, as for normal rewards.  Contexts need no special
treatment: the optimal arms of all contexts are free.

Lower side: nu_j = theta + e_j is an alternative once <e_j, p_z> >= D_z for some z.  If
sum_j lambda_j d_x(<e_j, p_x>) <= Delta(x) for all arms, every allocation that refutes all nu_j
costs at least sum_j lambda_j.  As for normal rewards, e_j is made orthogonal to the optimal arms
and scaled to reach its arm, and the lambda_j are scaled.

Upper side: evidence against z is the minimum of sum_x alpha_x d_x(<e, p_x>) over all e with
<e, p_z> >= D_z, a convex program.  Its Fenchel dual bounds it from below: if
sum_x sigma_zx p_x = l_z p_z with l_z >= 0, the evidence is at least

    l_z D_z - sum_x sup_v (sigma_zx v - alpha_x d_x(v)),

since sigma v <= alpha d(v) + sup, summed over the arms.  Any sigma is moved to the nearest one that
satisfies the equation, so any numbers give valid bounds up to rounding.  At the optimum sigma_zx is
the slope of alpha_x d_x at the nearest alternative.

Where the mean itself is linear (``Bernoulli("identity")``), an alternative must leave all means in
[0, 1].  The sup is over steps within these limits, which also hold for arms with alpha = 0.  If
sum_x sup_v sigma_zx v <= l_z D_z, no parameter within the limits makes z better, and there is
nothing to refute.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.bounds.certificate import Bracket
from sightline.bounds.divergences import Divergences, divergences_of
from sightline.bounds.geometry import leads, scale_problem, view_of
from sightline.core.linalg import Array, Ints
from sightline.problems.base import TableProblem

_EPS = float(np.finfo(np.float64).eps)
_ALIKE = 1e-5  # difference of means, relative to them, that loses few digits
_LEAST_GAP = 1e-250  # smaller ones are ties: their inverse could overflow
_BARELY = 1e-9  # relative lead of an arm within the limits that counts as none
# Cap on weights, which grow without bound for arms at their limits and would swamp the others.
_HEAVIEST = 1e6


class LikelihoodView(NamedTuple):
    """Suboptimal arms on which alternatives differ from theta."""

    arms: Ints  # (k',)
    points: Array  # (k', r)
    gaps: Array  # (k',): of mean rewards
    leads: Array  # (k',): of predictors
    divergences: Divergences
    basis: Array  # (d, r): e = basis @ y, in the units of the features
    units: Array  # (d,)


def likelihood_view(problem: TableProblem) -> LikelihoodView:
    """Remove the optimal arms, and those on which all alternatives agree with theta."""
    view = view_of(problem)
    arms = np.flatnonzero(view.costly)[view.refutable]
    lead = leads(problem)[arms]
    predictors = problem.actions[arms] @ problem.theta
    terms = divergences_of(problem.model.likelihood, predictors)
    gaps, best = problem.gaps[arms], np.abs(problem.means[problem.best_rows[arms]])
    # differences of means lose digits where these are alike, such as rates that round to 1
    gaps = np.where(gaps >= _ALIKE * best, gaps, terms.mean_changes(lead))
    if not (gaps >= _LEAST_GAP).all():
        arm = int(arms[gaps.argmin()])
        raise ValueError(
            f"the mean rewards of arm {arm} and of the best one are the same number, "
            f"{problem.means[arm]:g}, although <x, theta> differs: c* follows gaps of means"
        )
    return LikelihoodView(
        arms=arms,
        points=view.points[view.refutable],
        gaps=gaps,
        leads=lead,
        divergences=terms,
        basis=view.basis,
        units=scale_problem(problem).units,
    )


def likelihood_bracket(
    problem: TableProblem, allocation: Array, alternatives: Array, multipliers: Array, slopes: Array
) -> Bracket:
    """Recompute the bounds that an allocation with its slopes, and alternatives, prove."""
    view = likelihood_view(problem)
    if len(view.arms) == 0:
        return Bracket(0.0, 0.0)
    shifts = (alternatives - problem.theta) * view.units @ view.basis
    return Bracket(
        _lower(view, shifts, multipliers),
        _upper(view, allocation[view.arms], slopes[np.ix_(view.arms, view.arms)]),
    )


def _lower(view: LikelihoodView, shifts: Array, multipliers: Array) -> float:
    used = np.isfinite(shifts).all(axis=1) & np.isfinite(multipliers) & (multipliers > 0)
    steps = shifts[used] @ view.points.T
    sizes = np.linalg.norm(shifts[used], axis=1)[:, None] * np.linalg.norm(view.points, axis=1)
    steps = np.where(np.abs(steps) > 4 * _EPS * sizes, steps, 0.0)
    reach = (steps / view.leads).max(axis=1, initial=0.0)
    divergences = view.divergences.divergence(steps / np.where(reach > 0, reach, 1.0)[:, None])
    # parameters beyond the limits are no alternatives
    valid = (reach > 0) & np.isfinite(divergences).all(axis=1)
    if not valid.any():
        return 0.0
    weights = multipliers[used][valid]
    weights = weights / weights.max()
    spent = weights @ divergences[valid] / view.gaps
    return float(weights.sum() / spent.max())


def _upper(view: LikelihoodView, amounts: Array, slopes: Array) -> float:
    if not (np.isfinite(amounts) & (amounts >= 0)).all() or not np.isfinite(slopes).all():
        return math.inf
    least = evidence_bounds(view, amounts, slopes, np.arange(len(view.arms))).min()
    return float(amounts @ view.gaps / least) if least > 0 else math.inf


def evidence_bounds(view: LikelihoodView, amounts: Array, slopes: Array, rivals: Ints) -> Array:
    """Lower bounds on evidence against rivals z from slopes; inf where there is nothing to refute.

    ``amounts`` is alpha, shape (k',); ``slopes`` has one row of sigma per rival, and ``rivals`` are
    rows of the view.
    """
    lead = view.leads[rivals]
    points = whitened_points(view.points)[0]
    targets = points[rivals]
    terms = view.divergences
    low, high = terms.limits
    bounds = np.zeros(len(rivals))
    if np.isfinite(low).all():
        even, scale = _balanced(points, np.ones_like(slopes), targets, slopes)
        most = np.where(even > 0, even * high, even * low).sum(axis=1)
        hopeless = (scale > 0) & (most <= (1.0 + _BARELY) * scale * lead)
        bounds[hopeless] = math.inf
    else:  # arms that are not played prove nothing
        played = np.flatnonzero(amounts > 0)
        amounts, slopes, points = amounts[played], slopes[:, played], points[played]
        terms = terms.of(played)
    if len(amounts) == 0:
        return bounds
    heaviest = _HEAVIEST * (amounts * terms.information).max()
    weights = np.minimum(terms.stiffness(amounts, slopes), heaviest)
    balanced, scale = _balanced(points, weights, targets, slopes)
    # slopes that no step has are shortened; a factor for each row keeps it balanced
    least, most = terms.steepest
    with np.errstate(invalid="ignore"):
        fits = room(amounts * least, amounts * most, balanced)
    shorter = np.where(fits > 1.0, 1.0, (1.0 - 4 * _EPS) * fits)
    balanced, scale = balanced * shorter[:, None], scale * shorter
    spent = terms.conjugate(amounts, balanced).sum(axis=1)
    with np.errstate(invalid="ignore"):
        proven = np.where(scale > 0, scale * lead - spent, 0.0)
    return np.maximum(bounds, np.where(np.isfinite(proven), proven, 0.0))


def whitened_points(points: Array) -> tuple[Array, Array]:
    """Coordinates in which |y| is the root of the sum of <y, p_x>^2, and the map back."""
    inverse = np.eye(points.shape[1])
    for _ in range(2):  # the second pass removes what rounding left of the first
        units = np.abs(points).max(axis=0)
        change = np.linalg.inv(np.linalg.qr(points / units)[1]) / units[:, None]
        points, inverse = points @ change, inverse @ change
    return points, inverse


def room(low: Array, high: Array, moves: Array) -> Array:
    """Multiple of each row of moves at which some entry reaches a limit."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(moves > 0, high / moves, low / moves)
    multiples: Array = np.where(moves == 0, math.inf, fits).min(axis=1)
    return multiples


def _balanced(points: Array, weights: Array, targets: Array, slopes: Array) -> tuple[Array, Array]:
    """Move slopes to the nearest ones with sum_x sigma_x p_x = l p_z; return them and l.

    The change of every arm is measured relative to its weight for z; l is 0 if a direction has no
    weight.
    """
    roots = np.sqrt(weights)
    units = np.abs(roots[:, :, None] * points).max(axis=(0, 1), initial=0.0)
    if not (units > 0).all() or len(points) < len(units):
        return slopes, np.zeros(len(slopes))
    factors = np.linalg.qr(roots[:, :, None] * (points / units))[1]
    diagonals = np.abs(np.diagonal(factors, axis1=1, axis2=2))
    lost = ~(diagonals > 0).all(axis=1)
    factors[lost] = np.eye(len(units))
    transposed = factors.transpose(0, 2, 1)
    white = np.linalg.solve(
        transposed, np.broadcast_to((points / units).T, (len(slopes), *points.T.shape))
    )
    aims = np.linalg.solve(transposed, (targets / units)[:, :, None])[:, :, 0]
    for _ in range(2):  # the second pass removes what rounding left of the first
        found = (white @ slopes[:, :, None])[:, :, 0]
        scale = (found * aims).sum(axis=1) / (aims**2).sum(axis=1)
        excess = found - scale[:, None] * aims
        slopes = slopes - roots**2 * (excess[:, None, :] @ white)[:, 0, :]
    return slopes, np.where(lost, 0.0, scale)
