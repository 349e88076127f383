"""Estimates from the data as a whole, where rounding errors of the updates are left behind.

Counts and sums per arm, which never drift, are rotated into a factor of V; everything else follows
from that factor.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.seen import (
    SeesLaw,
    SeesLawStream,
    SeesRewards,
    SeesRow,
    SeesRows,
    SeesStream,
)
from sightline.core.linalg.cholesky import rank_one_update, solve, solve_transposed
from sightline.core.linalg.vectors import squared_norms
from sightline.jit import compiled, generic

__all__ = ["invert", "recompute", "recompute_arms", "refresh", "update_seen_widths"]

Array = NDArray[np.float64]


@compiled
def refresh(state: LeastSquares) -> None:
    """Recompute every estimate from the data."""
    recompute(state.arms.seen, state)
    state.learned.since_refresh[0] = 0


@generic
def recompute(seen: Any, state: LeastSquares) -> None:
    """Recompute every estimate from what has been seen."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@recompute.register(SeesRewards)
@recompute.register(SeesStream)
@recompute.register(SeesLawStream)
@recompute.register(SeesRow)
@recompute.register(SeesRows)
@compiled
def _recompute_linear(seen: Any, state: LeastSquares) -> None:
    """Solve the normal equations, through a Cholesky factor of V."""
    learned, factor = state.learned, state.scratch.factor
    d = factor.shape[0]
    root = math.sqrt(state.regulariser)
    for i in range(d):
        learned.theta[i] = 0.0
        for j in range(d):
            factor[i, j] = root if i == j else 0.0
    _rotate_data(seen, state)
    log_det = invert(state)
    solve(factor, learned.theta)
    _refresh_arms(seen, state)
    learned.log_det[0] = log_det


@compiled
def invert(state: LeastSquares) -> float:
    """Write V^-1 from the factor of V in the scratch space; return log det(V / lambda)."""
    learned, factor, w = state.learned, state.scratch.factor, state.scratch.direction
    d = w.shape[0]
    root = math.sqrt(state.regulariser)
    log_det = 0.0
    for i in range(d):
        # rotations never shorten the diagonal: not a rounding below 0, and 0 before any data
        log_det += 2.0 * math.log(factor[i, i] / root)
        for j in range(d):
            w[j] = 1.0 if i == j else 0.0
        solve_transposed(factor, w)
        solve(factor, w)
        for j in range(i + 1):  # one triangle, mirrored: symmetric to the last bit
            learned.gram_inverse[i, j] = w[j]
            learned.gram_inverse[j, i] = w[j]
    return log_det


@generic
def _refresh_arms(seen: Any, state: LeastSquares) -> None:
    """Recompute means and widths of all arms, where these are there to stay."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@_refresh_arms.register(SeesStream)
@_refresh_arms.register(SeesLawStream)
@compiled
def _await_new_arms(seen: Any, state: LeastSquares) -> None:
    pass  # as in an update: others will come


@compiled
def recompute_arms(state: LeastSquares) -> None:
    """Write means and widths of all arms, from theta-hat and the factor of V."""
    arms, theta = state.arms, state.learned.theta
    for z in range(arms.rewards.shape[0]):
        mean = 0.0
        for i in range(theta.shape[0]):
            mean += arms.rewards[z, i] * theta[i]
        arms.means[z] = mean
        arms.squared_widths[z] = _squared_width(state, arms.rewards[z])


@_refresh_arms.register(SeesRewards)
@_refresh_arms.register(SeesRow)
@_refresh_arms.register(SeesRows)
@compiled
def _refresh_lasting_arms(seen: Any, state: LeastSquares) -> None:
    arms = state.arms
    recompute_arms(state)
    _refresh_seen_widths(seen, state)
    for z in range(arms.rewards.shape[0]):
        arms.refreshed_widths[z] = arms.seen_widths[z]


@compiled
def _squared_width(state: LeastSquares, row: Array) -> float:
    """Squared norm of a row in V^-1, from the factor of V."""
    w = state.scratch.direction
    for i in range(w.shape[0]):
        w[i] = row[i]
    solve_transposed(state.scratch.factor, w)
    width = 0.0
    for i in range(w.shape[0]):
        width += w[i] * w[i]
    return width


@generic
def _rotate_data(seen: Any, state: LeastSquares) -> None:
    """Rotate all data into the factor R of V, and R^-T sum y r into the place of theta-hat.

    Rotating the rows into the factor, instead of factorising their sum, is a QR decomposition:
    it loses half as many digits where V is ill-conditioned.
    """
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def _rotate_row(state: LeastSquares, row: Array, pulls: float, total: float) -> None:
    w = state.scratch.direction
    weight = math.sqrt(pulls)
    for i in range(w.shape[0]):
        w[i] = weight * row[i]
    rank_one_update(state.scratch.factor, w, state.learned.theta, total / weight)


@_rotate_data.register(SeesRewards)
@compiled
def _rotate_rewards(seen: SeesRewards, state: LeastSquares) -> None:
    arms = state.arms
    for z in range(arms.pulls.shape[0]):
        if arms.pulls[z] > 0.0:
            _rotate_row(state, arms.rewards[z], arms.pulls[z], arms.sums[z])


@_rotate_data.register(SeesStream)
@_rotate_data.register(SeesLawStream)
@compiled
def _copy_rotated(seen: Any, state: LeastSquares) -> None:
    factor, theta = state.scratch.factor, state.learned.theta
    for i in range(theta.shape[0]):
        theta[i] = seen.target[i]
        for j in range(theta.shape[0]):
            factor[i, j] = seen.factor[i, j]


@_rotate_data.register(SeesRow)
@_rotate_data.register(SeesRows)
@compiled
def _rotate_rows(seen: Any, state: LeastSquares) -> None:
    arms, p = state.arms, seen.per_arm
    for n in range(seen.rows.shape[0]):
        if arms.pulls[n // p] > 0.0:
            _rotate_row(state, seen.rows[n], arms.pulls[n // p], arms.sums[n])


@generic
def _refresh_seen_widths(seen: Any, state: LeastSquares) -> None:
    """Write the widths of what is seen, where these are not those of the rewards."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@_refresh_seen_widths.register(SeesRewards)
@compiled
def _refresh_nothing(seen: Any, state: LeastSquares) -> None:
    pass


@_refresh_seen_widths.register(SeesRow)
@compiled
def _refresh_rows(seen: SeesRow, state: LeastSquares) -> None:
    for z in range(seen.rows.shape[0]):
        state.arms.seen_widths[z] = _squared_width(state, seen.rows[z])


@_refresh_seen_widths.register(SeesRows)
@compiled
def _refresh_several_rows(seen: SeesRows, state: LeastSquares) -> None:
    update_seen_widths(state)


@compiled
def update_seen_widths(state: LeastSquares) -> None:
    """Bring the widths of what is seen up to date: O(k p d^2) where arms show p > 1 numbers.

    To follow every number would cost O(k p d) for each of p, and most policies do not need them;
    so after an update only that of the arm played is there, as an upper bound.
    """
    _update_seen_widths(state.arms.seen, state)


@generic
def _update_seen_widths(seen: Any, state: LeastSquares) -> None:
    """Do so for one way of seeing."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@_update_seen_widths.register(SeesRewards)
@_update_seen_widths.register(SeesStream)
@_update_seen_widths.register(SeesLaw)
@_update_seen_widths.register(SeesLawStream)
@_update_seen_widths.register(SeesRow)
@compiled
def _follow_data(seen: Any, state: LeastSquares) -> None:
    pass  # these follow every observation


@_update_seen_widths.register(SeesRows)
@compiled
def _sum_widths(seen: SeesRows, state: LeastSquares) -> None:
    p, inverse = seen.per_arm, state.learned.gram_inverse
    squared_norms(seen.columns, inverse, 0, seen.widths.shape[0], seen.products, seen.widths)
    for z in range(state.arms.seen_widths.shape[0]):
        width = 0.0
        for n in range(z * p, z * p + p):
            width += seen.widths[n]
        state.arms.seen_widths[z] = width
