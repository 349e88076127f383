"""Regularised least squares over a fixed set of arms, updated one observation at a time.

| symbol            | here                   | shape  |
|-------------------|------------------------|--------|
| X                 | ``actions``, and transposed ``columns`` | (k, d) |
| V_s = lambda I + sum x x^T | ``pulls`` of every arm | (k,) |
| sum x y           | ``rewards`` of every arm, summed | (k,) |
| V_s^-1            | ``gram_inverse``       | (d, d) |
| theta-hat_s       | ``theta``              | (d,)   |
| <x, theta-hat_s>  | ``means``              | (k,)   |
| norm of x in V_s^-1, squared | ``squared_widths`` | (k,) |
| log det(V_s / lambda) | ``log_det[0]``     | (1,)   |
| s - 1             | ``counts[0]``          | (2,)   |

An update costs O(k d + d^2): with w = V^-1 x and q = 1 + <x, w>, the Sherman-Morrison formula
moves the mean of arm z by <z, w> r / q and its squared width by -<z, w>^2 / q, in one pass.

The data themselves are kept as counts and sums per arm, which never drift; now and then every
estimate is recomputed from them.

Arms that do not span R^d are expressed in a basis of their span, which changes no inner product:
otherwise V^-1 would hold 1 / lambda in directions that matter to no arm, beside which the digits
of all others drown.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.linalg.cholesky import rank_one_update, solve, solve_transposed
from sightline.core.linalg.vectors import first_largest, inner_products
from sightline.jit import compiled

__all__ = [
    "LeastSquares",
    "best_arm",
    "least_squares",
    "observe",
    "refresh",
    "spanning_coordinates",
]

Array = NDArray[np.float64]

# Subtracting c^2/q loses digits in proportion to how far widths have fallen, and rounding errors
# add up with the number of updates.  Either one triggers a recomputation.  It is enough to watch
# the arm just played: if the width of any direction falls by F, that of some arm that was played
# falls by F over the number of such arms.
REFRESH_AFTER_UPDATES = 2048
REFRESH_AFTER_FALL = 1e-3


class LeastSquares(NamedTuple):
    """Estimates from all data so far; see the table above."""

    actions: Array
    regulariser: float
    pulls: Array
    rewards: Array
    gram_inverse: Array
    theta: Array
    means: Array
    squared_widths: Array
    log_det: Array  # (1,)
    counts: NDArray[np.int64]  # observations, and of these since the last refresh
    refreshed_widths: Array  # (k,): squared widths at the last refresh
    columns: Array  # (d, k)
    direction: Array  # workspace (d,): w = V^-1 x
    products: Array  # workspace (k,): <z, w>
    factor: Array  # workspace (d, d): Cholesky factor of V


@compiled
def _least_singular_value(actions: Array, factor: Array, w: Array) -> float:
    """Lower bound on the least singular value, which is 1 / |R^-1| for X = QR: O(k d^2).

    A decomposition by LAPACK would do, were it not for its threads: on busy cores they wait for
    each other a hundred times longer than it takes.
    """
    k, d = actions.shape
    for i in range(d):
        factor[i, i] = 1e-150  # as good as zero, and yet a rotation is defined
    for z in range(k):
        for i in range(d):
            w[i] = actions[z, i]
        rank_one_update(factor, w)
    squared_norm = 0.0
    for i in range(d):
        for j in range(d):
            w[j] = 1.0 if i == j else 0.0
        solve(factor, w)
        for j in range(d):
            squared_norm += w[j] * w[j]
    return 1.0 / math.sqrt(squared_norm)


def spanning_coordinates(actions: Array) -> Array:
    """Arms in an orthonormal basis of their span, or as they are if they span the space."""
    d = actions.shape[1]
    negligible = max(actions.shape) * float(np.finfo(np.float64).eps)
    length = float(np.abs(actions).max()) * math.sqrt(actions.size)  # at least the largest
    if _least_singular_value(actions, np.zeros((d, d)), np.zeros(d)) > length * negligible > 0:
        return actions
    _, singular, basis = np.linalg.svd(actions, full_matrices=False)
    smallest = singular[0] * negligible
    rank = max(int((singular > smallest).sum()), 1)
    if rank == actions.shape[1]:
        return actions
    # equal arms must stay equal to the last bit, which a matrix product does not promise
    distinct, which = np.unique(actions, axis=0, return_inverse=True)
    return np.ascontiguousarray((distinct @ basis[:rank].T)[which])


def least_squares(actions: Array, regulariser: float, reduce: bool = True) -> LeastSquares:
    """Estimates before any data; in the given coordinates if they are not to be reduced."""
    if reduce:
        actions = spanning_coordinates(actions)
    k, d = actions.shape
    state = LeastSquares(
        actions=actions,
        regulariser=regulariser,
        pulls=np.zeros(k),
        rewards=np.zeros(k),
        gram_inverse=np.empty((d, d)),
        theta=np.empty(d),
        means=np.empty(k),
        squared_widths=np.empty(k),
        log_det=np.empty(1),
        counts=np.zeros(2, dtype=np.int64),
        refreshed_widths=np.empty(k),
        columns=np.ascontiguousarray(actions.T),
        direction=np.empty(d),
        products=np.empty(k),
        factor=np.zeros((d, d)),
    )
    refresh(state)
    return state


@compiled
def observe(state: LeastSquares, arm: int, reward: float) -> None:
    """Learn from one reward of one arm."""
    actions, w, products = state.actions, state.direction, state.products
    k, d = actions.shape
    x = actions[arm]
    q = 1.0
    for i in range(d):
        total = 0.0
        for j in range(d):
            total += state.gram_inverse[i, j] * x[j]
        w[i] = total
        q += x[i] * total
    shrink = 1.0 / q
    step = (reward - state.means[arm]) * shrink
    for i in range(d):
        state.theta[i] += w[i] * step
        for j in range(d):  # w_i w_j = w_j w_i: symmetric to the last bit
            state.gram_inverse[i, j] -= w[i] * w[j] * shrink
    inner_products(state.columns, w, products)
    for z in range(k):
        state.means[z] += products[z] * step
        state.squared_widths[z] -= products[z] * products[z] * shrink
    state.pulls[arm] += 1.0
    state.rewards[arm] += reward
    state.log_det[0] += math.log(q)
    state.counts[0] += 1
    state.counts[1] += 1
    if (
        state.counts[1] >= REFRESH_AFTER_UPDATES
        or state.squared_widths[arm] < REFRESH_AFTER_FALL * state.refreshed_widths[arm]
    ):
        refresh(state)


@compiled
def refresh(state: LeastSquares) -> None:
    """Recompute every estimate from the data, through a Cholesky factor of V."""
    _factorise(state)
    k, d = state.actions.shape
    factor, w = state.factor, state.direction
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
            state.gram_inverse[i, j] = w[j]
            state.gram_inverse[j, i] = w[j]
    solve(factor, state.theta)
    for z in range(k):
        mean = 0.0
        for i in range(d):
            mean += state.actions[z, i] * state.theta[i]
            w[i] = state.actions[z, i]
        state.means[z] = mean
        solve_transposed(factor, w)
        width = 0.0
        for i in range(d):
            width += w[i] * w[i]
        state.squared_widths[z] = width
        state.refreshed_widths[z] = width
    state.log_det[0] = log_det
    state.counts[1] = 0


@compiled
def _factorise(state: LeastSquares) -> None:
    """Write the Cholesky factor R of V, and R^-T sum x y in the place of theta-hat.

    Rotating the arms into the factor, instead of factorising their sum, is a QR decomposition:
    it loses half as many digits where V is ill-conditioned.
    """
    k, d = state.actions.shape
    factor, w = state.factor, state.direction
    for i in range(d):
        state.theta[i] = 0.0
        for j in range(d):
            factor[i, j] = math.sqrt(state.regulariser) if i == j else 0.0
    for z in range(k):
        if state.pulls[z] > 0.0:
            weight = math.sqrt(state.pulls[z])
            for i in range(d):
                w[i] = weight * state.actions[z, i]
            rank_one_update(factor, w, state.theta, state.rewards[z] / weight)


@compiled
def best_arm(state: LeastSquares) -> int:
    """Empirically best arm x-hat; the first one among equals."""
    return first_largest(state.means)
