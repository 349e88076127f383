"""c* for clicks and counts: from a problem to the certificate of both sides.

The program is that of :mod:`sightline.bounds.likelihood_program`.  Alternatives agree with theta
on the optimal arms, as for normal rewards, and all that follows needs their values at the other
arms only.  Contexts need nothing else: the optimal arms of all of them are free.

Where the mean itself is linear (``Bernoulli("identity")``), parameters are those that leave the
means of all arms in [0, 1].  An arm that none of them makes best has no constraint; linear
programming finds that out, and its multipliers are the proof.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.geometry import optimal_arms
from sightline.bounds.likelihood_certificate import LikelihoodView, evidence_bounds, likelihood_view
from sightline.bounds.likelihood_nearest import first_shifts
from sightline.bounds.likelihood_program import LikelihoodProgram, follow_path
from sightline.problems.base import TableProblem
from sightline.validation import affordable

__all__ = ["LikelihoodSolution", "likelihood_certificate", "solve_likelihood"]

Array = NDArray[np.float64]

# By which a lead may differ from what it should be through rounding.
_ROUNDING = 1e-12


class LikelihoodSolution(NamedTuple):
    """What proves both sides, for the arms of a view."""

    amounts: Array  # (k',): alpha
    slopes: Array  # (k', k')
    shifts: Array  # (m, r)
    multipliers: Array  # (m,)


def likelihood_certificate(
    problem: TableProblem, tolerance: float
) -> tuple[Array, Array, Array, Array]:
    """Allocation, alternatives, multipliers and slopes that prove both sides for a problem."""
    # nearest alternatives hold a matrix of arms for every arm, in each of r directions
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
    start = first_shifts(white, 1.0 / white.gaps)
    slopes, rivals = start.slopes, np.flatnonzero(~start.hopeless)
    _check_hopeless(white, slopes, np.flatnonzero(start.hopeless))
    if len(rivals) == 0:
        return LikelihoodSolution(np.zeros(k), slopes, np.zeros((0, r)), np.zeros(0))
    lead = start.leads[rivals]
    reached = lead >= white.leads[rivals] * (1 - _ROUNDING)
    best = follow_path(
        LikelihoodProgram(white, rivals, lead, reached), start.shifts[rivals], tolerance
    )
    slopes[rivals] = best.slopes
    return LikelihoodSolution(best.amounts, slopes, best.shifts @ inverse.T, best.multipliers)


def _whitened(view: LikelihoodView) -> tuple[LikelihoodView, Array]:
    """Change coordinates such that equal shares weigh all directions alike; and the way back."""
    weights = np.sqrt(view.terms.information / view.gaps)
    units = np.abs(weights[:, None] * view.points).max(axis=0)
    factor = np.linalg.qr(weights[:, None] * view.points / units)[1]
    inverse = np.linalg.inv(factor) / units[:, None]
    return view._replace(points=view.points @ inverse), inverse


def _check_hopeless(view: LikelihoodView, slopes: Array, arms: NDArray[np.int64]) -> None:
    """Refuse problems in which alternatives exist, but none with means strictly within [0, 1]."""
    proven = evidence_bounds(view, np.zeros(len(view.arms)), slopes[arms], arms)
    if not np.isinf(proven).all():
        arm = int(view.arms[arms[np.isfinite(proven)][0]])
        raise ValueError(
            "means must leave some room: of the parameters with all means in [0, 1], those that "
            f"make arm {arm} as good as the best one give some arm a mean of exactly 0 or 1"
        )
