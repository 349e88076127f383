"""Nearest alternatives for clicks and counts: a convex program per arm, all of them at once.

| symbol                                                 | here          | shape    |
|--------------------------------------------------------|---------------|----------|
| y_z, coordinates of the nearest alternative for z      | ``shifts``    | (m, r)   |
| p_z                                                    | ``targets``   | (m, r)   |
| sum_x alpha_x d_x(<y_z, p_x>), minimised subject to <y_z, p_z> = D_z | | (m,)     |

The others are in :mod:`sightline.bounds.likelihood_certificate`.  Newton's method with one
multiplier and a line search, from any point within the limits of the likelihood.  Where the mean
itself is linear the divergences are barriers at these limits, and steps end before them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.likelihood_certificate import LikelihoodView
from sightline.bounds.likelihood_terms import Terms

__all__ = ["Nearest", "Start", "first_shifts", "nearest"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_MOST_STEPS = 100
# Squared length of a step, beside the evidence, that ends the search: steps square from there on.
_LAST_STEP = 1e-18
# Where steps are this short, the evidence after one differs from that before by rounding only.
_CERTAIN = 1e-9
# How far a step may go towards a limit, and by how much it is shortened if it does not help.
_REACH = 0.95
_SHORTER = 0.5
_LEAST_FRACTION = 1e-12
_DECREASE = 1e-4
# After steps that were shortened to less, chords take the place of curvatures.
_POOR = 0.3
# Strides from theta towards alternatives, and evidence beside the least at which that may end.
_MOST_STRIDES = 300
_FAR = 1e6
_ALIKE = 20
# Room within the limits, relative to that at theta, below which there is none.
_NO_ROOM = 1e-9


class Nearest(NamedTuple):
    """Nearest alternatives at an allocation, and how evidence depends on it."""

    shifts: Array  # (m, r)
    covered: Array  # (m, k'): d_x(<y_z, p_x>), the gradient of the evidence
    slopes: Array  # (m, k'): per unit of alpha
    inverses: Array  # (m, r, r): of the Hessian in y, on the vectors orthogonal to p_z
    evidence: Array  # (m,)


def nearest(
    terms: Terms, points: Array, targets: Array, lead: Array, amounts: Array, start: Array
) -> Nearest:
    """Nearest alternatives for several arms, from a start with <y_z, p_z> = D_z."""
    shifts = start.copy()
    open_, careful = np.arange(len(shifts)), np.zeros(len(shifts), dtype=bool)
    for _ in range(_MOST_STEPS):
        now, own = shifts[open_], careful[open_]
        changes, squared = _newton(terms, points, targets[open_], lead[open_], amounts, now, own)
        fractions, value = _search(terms, points, amounts, now, changes, squared)
        shifts[open_] = now + fractions[:, None] * changes
        done = np.where(own, fractions == 0.0, squared <= _LAST_STEP * value)
        careful[open_] = fractions < _POOR
        open_ = open_[~done]
        if len(open_) == 0:
            break
    steps = shifts @ points.T
    covered = terms.divergence(steps)
    inverses = _projected(_hessians(terms, points, amounts, steps), targets)
    return Nearest(shifts, covered, terms.slope(steps), inverses, covered @ amounts)


def _hessians(
    terms: Terms, points: Array, amounts: Array, steps: Array, careful: Mask | None = None
) -> Array:
    """Second derivatives in y; where careful, with chords, which do not vanish far from theta."""
    curvatures = terms.curvature(steps)
    if careful is not None and careful.any():
        with np.errstate(divide="ignore", invalid="ignore"):
            chords = np.where(steps == 0.0, 0.0, terms.slope(steps) / steps)
        curvatures = np.where(careful[:, None], np.maximum(curvatures, chords), curvatures)
    weights = amounts * curvatures
    hessians: Array = (points.T[None, :, :] * weights[:, None, :]) @ points
    return hessians


def _projected(hessians: Array, targets: Array) -> Array:
    """H^-1 without its part along p_z: K = H^-1 - H^-1 p p^T H^-1 / (p^T H^-1 p)."""
    inverses = np.linalg.inv(hessians)
    images = (inverses @ targets[:, :, None])[:, :, 0]
    along = (images * targets).sum(axis=1)
    projected: Array = inverses - images[:, :, None] * images[:, None, :] / along[:, None, None]
    return projected


def _newton(
    terms: Terms,
    points: Array,
    targets: Array,
    lead: Array,
    amounts: Array,
    shifts: Array,
    careful: Mask | None = None,
) -> tuple[Array, Array]:
    """Find steps to the minimum with <y, p_z> = D_z, and their squared lengths in H."""
    steps = shifts @ points.T
    gradients = (amounts * terms.slope(steps)) @ points
    hessians = _hessians(terms, points, amounts, steps, careful)
    solved = np.linalg.solve(hessians, np.stack([gradients, targets], axis=2))
    down, along = solved[:, :, 0], solved[:, :, 1]
    missing = lead - (shifts * targets).sum(axis=1)
    force = (missing + (down * targets).sum(axis=1)) / (along * targets).sum(axis=1)
    changes = force[:, None] * along - down
    squared = (changes * (hessians @ changes[:, :, None])[:, :, 0]).sum(axis=1)
    return changes, squared


def _search(
    terms: Terms, points: Array, amounts: Array, shifts: Array, changes: Array, squared: Array
) -> tuple[Array, Array]:
    """Find fractions of steps that lower the evidence, 0 if none does, and what it was before."""
    steps, moves = shifts @ points.T, changes @ points.T
    value = terms.divergence(steps) @ amounts
    fractions = np.minimum(1.0, _REACH * _room(terms, steps, moves))
    certain = squared <= _CERTAIN * value
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(60):
            after = terms.divergence(steps + fractions[:, None] * moves) @ amounts
            enough = after <= value - _DECREASE * fractions * squared
            short = ~(enough | (certain & np.isfinite(after)))
            if not short.any():
                break
            fractions = np.where(short, _SHORTER * fractions, fractions)
    return np.where(fractions > _LEAST_FRACTION, fractions, 0.0), value


def _room(terms: Terms, steps: Array, moves: Array) -> Array:
    """How often a move fits until some arm reaches a limit."""
    low, high = terms.limits
    with np.errstate(divide="ignore", invalid="ignore"):
        fits = np.where(moves > 0, (high - steps) / moves, (low - steps) / moves)
    room: Array = np.where(moves == 0, np.inf, fits).min(axis=1)
    return room


class Start(NamedTuple):
    """A point to begin from for every arm z, or the proof that none is needed."""

    shifts: Array  # (k', r)
    leads: Array  # (k',): D_z, or less where that is far beyond what matters
    hopeless: Mask  # (k',): no parameter within the limits makes the arm better
    slopes: Array  # (k', k'): proof of that; other rows are zero


def first_shifts(view: LikelihoodView, amounts: Array) -> Start:
    """Points with <y, p_z> = D_z for all arms, in coordinates in which directions are alike."""
    k = len(view.points)
    if not np.isfinite(view.terms.limits[0]).all():
        shifts, reached = _approach(view, amounts)
        return Start(shifts, reached, np.zeros(k, dtype=bool), np.zeros((k, k)))
    squares = (view.points**2).sum(axis=1)
    shifts, slopes = view.points * (view.leads / squares)[:, None], np.zeros((k, k))
    low, high = view.terms.limits
    steps = shifts @ view.points.T
    inside = ((steps > low * (1 - 1e-3)) & (steps < high * (1 - 1e-3))).all(axis=1)
    for z in np.flatnonzero(~inside):
        shifts[z], slopes[z] = _within(view, int(z))
    return Start(shifts, view.leads, np.isnan(shifts).any(axis=1), slopes)


def _approach(view: LikelihoodView, amounts: Array) -> tuple[Array, Array]:
    """Walk from theta to nearest alternatives, by strides over which curvatures do not vanish.

    From afar Newton's method would jump to where no arm has a curvature left.  Arms whose evidence
    grows far beyond that of others are not pursued to the end.
    """
    terms, points, lead = view.terms, view.points, view.leads
    shifts, value = np.zeros_like(points), np.zeros(len(points))
    open_ = np.arange(len(points))
    least = math.inf
    for count in range(_MOST_STRIDES):
        # longer ones later: evidence that is still small grows in proportion to the way
        stride = 0.5 * terms.stride * 2.0 ** (count // _ALIKE)
        now = shifts[open_]
        changes, _ = _newton(terms, points, points[open_], lead[open_], amounts, now)
        longest = np.abs(changes @ points.T).max(axis=1)
        fractions = np.minimum(1.0, stride / longest)
        shifts[open_] = now + fractions[:, None] * changes
        value[open_] = terms.divergence(shifts[open_] @ points.T) @ amounts
        there = fractions == 1.0
        least = min(least, value[open_][there].min(initial=math.inf))
        open_ = open_[~there & (value[open_] <= _FAR * least)]
        if len(open_) == 0:
            break
    return shifts, np.minimum(lead, (shifts * points).sum(axis=1))


def _within(view: LikelihoodView, z: int) -> tuple[Array, Array]:
    """Point well within the limits by linear programming, or slopes that prove there is none."""
    from scipy.optimize import linprog

    k, r = view.points.shape
    low, high = view.terms.limits
    # relative to the room at theta, where there is any
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
