"""Regularised least squares over a table of arms, updated one observation at a time.

An update costs O(k d + d^2) per observation: with w = V^-1 y and q = 1 + <y, w>, the
Sherman-Morrison formula moves the mean of arm z by <z, w> r / q and its squared width by
-<z, w>^2 / q, in one pass.  Symbols: :mod:`sightline.core.estimate`.

The data themselves are kept as counts and sums per arm, which never drift.  Now and then
:func:`refresh` recomputes every estimate from them: it rotates them into a factor of V, from which
everything else follows.

Where arms are new in every round (:func:`show_arms`) the data are kept in a factor of V, an update
costs O(d^2), and means and widths are those of the arms shown last.

Clicks and counts are learned by :mod:`sightline.core.likelihood_fit`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.core.estimate import (
    Arms,
    Learned,
    LeastSquares,
    LikelihoodFit,
    Noise,
    Scratch,
    SeveralRows,
    StreamData,
    invert,
    known_noise,
    recompute_arms,
    squared_width,
    table_of_arms,
    weak_guess,
)
from sightline.core.likelihood import divergence, information, mean_of
from sightline.core.likelihood_fit import normal_equivalent, refit
from sightline.core.linalg import (
    Array,
    first_largest,
    inner,
    inner_product,
    inner_products,
    multiply,
    multiply_symmetric,
    rank_one_update,
    solve,
    squared_norms,
)
from sightline.core.model import Model, check_signal
from sightline.jit import callable_for, compiled, generic

# Subtracting c^2/q loses digits in proportion to how far widths have fallen, and rounding errors
# add up with the number of updates.  Either one triggers a recomputation.  Checking the arm just
# played suffices: if the width of any direction falls by F, that of some arm that was played falls
# by F over the number of such arms.
REFRESH_AFTER_UPDATES = 2048
REFRESH_AFTER_FALL = 1e-3
_SIDE_BY_SIDE = 4  # arms from which a loop over them pays


def least_squares(
    model: Model,
    regulariser: float,
    *,
    reduce: bool = True,
    arms: Arms | None = None,
    noise: Noise | None = None,
) -> LeastSquares:
    """Estimates before any data.

    Arms that do not span R^d are expressed in a basis of their span, unless ``reduce`` is False or
    ``arms`` is a table in other coordinates.  By default the noise level is that of the model, or a
    weak guess if it is unknown.
    """
    table = arms or table_of_arms(model, reduce)
    seen = table.observations
    check_signal(seen.rows, 1.0 / math.sqrt(regulariser), f"regulariser {regulariser:g}")
    if noise is None:
        model.needs_estimable_noise()
        known = model.noise_known
        noise = known_noise(model.noise_std**2) if known else weak_guess(model.noise_std)
    k, d = table.rewards.shape
    state = LeastSquares(
        learned=Learned(
            gram_inverse=np.empty((d, d)),
            theta=np.empty(d),
            log_det=np.empty(1),
            rounds=np.zeros(1, dtype=np.int64),
            since_refresh=np.zeros(1, dtype=np.int64),
        ),
        arms=table,
        scratch=Scratch(np.empty(d), np.empty(k), np.zeros((d, d))),
        regulariser=regulariser,
        noise=noise,
    )
    if seen.stream is not None:
        np.fill_diagonal(seen.stream.factor, math.sqrt(regulariser))
    callable_for(refresh, state)(state)
    return state


# --- learning from an outcome -------------------------------------------------------------------


@compiled
def variance_of(noise: Noise) -> float:
    """sigma^2, or its estimate."""
    if noise.known:
        return noise.variance
    estimate: float = (noise.prior_errors + noise.errors[0]) / (noise.prior_count + noise.weight[0])
    return estimate


@compiled
def noise_variance(estimate: Any) -> float:
    """sigma^2 of an estimate, or its estimate."""
    variance: float = variance_of(estimate.noise)
    return variance


@compiled
def note_error(noise: Noise, square: float, weight: float) -> None:
    """Add e^2 / (1 + w) of an outcome, and what it counts as, unless sigma is known."""
    if not noise.known:
        noise.errors[0] += square
        noise.weight[0] += weight


@compiled
def reward_of(fit: LikelihoodFit | None, predictor: float) -> float:
    """Mean reward of an arm x from <x, theta>."""
    if fit is None:
        return predictor
    reward: float = mean_of(fit.likelihood, predictor)
    return reward


@compiled
def apart(
    several: SeveralRows | None, fit: LikelihoodFit | None, arms: Arms, shift: Array, out: Array
) -> None:
    """Write the root of twice the divergence of each arm's outcomes at theta-hat and + shift.

    In units of the noise.  For normal outcomes it is |Y_x shift|, for p = 1 up to its sign.
    """
    seen = arms.observations
    if several is not None:
        inner_products(seen.columns, shift, several.products)
        for x in range(out.shape[0]):
            total = 0.0
            for n in range(x * seen.per_arm, (x + 1) * seen.per_arm):
                total += several.products[n] * several.products[n]
            out[x] = math.sqrt(total)
        return
    inner_products(seen.columns, shift, out)
    if fit is not None:
        for x in range(out.shape[0]):
            u = arms.means[x]
            out[x] = math.sqrt(2.0 * divergence(fit.likelihood, u, out[x]))


@compiled
def observe(state: LeastSquares, arm: int, outcome: Any) -> None:
    """Learn from the outcome of one play of an arm: a number, or an array of p.

    If the arm shows nothing, nothing changes, not even the local time.
    """
    arms, learned, seen = state.arms, state.learned, state.arms.observations
    if seen.silent[arm]:
        return
    _absorb(seen.several, seen.stream, seen.fit, state, arm, outcome)
    arms.pulls[arm] += 1.0
    learned.rounds[0] += 1
    learned.since_refresh[0] += 1
    if (
        learned.since_refresh[0] >= REFRESH_AFTER_UPDATES
        or arms.seen_widths[arm] < REFRESH_AFTER_FALL * arms.refreshed_widths[arm]
    ):
        refresh(state)


@compiled
def _absorb(
    several: SeveralRows | None,
    stream: StreamData | None,
    fit: LikelihoodFit | None,
    state: LeastSquares,
    arm: int,
    outcome: Any,
) -> None:
    """Move every estimate by one outcome."""
    if stream is not None:
        _absorb_new(stream, fit, state, arm, outcome)
    elif fit is not None:
        state.arms.sums[arm] += outcome
        state.learned.since_refresh[0] = REFRESH_AFTER_UPDATES  # a fit follows, once it is counted
    else:
        _absorb_normal(several, state, arm, outcome)


# Generic, since outcomes of one number and of several differ in type, and numba drops a branch only
# where the argument is None.
@generic
@compiled
def _absorb_normal(several: Any, state: LeastSquares, arm: int, outcome: float) -> None:
    """Move all arms by a normal outcome of one number."""
    arms, products, seen = state.arms, state.scratch.products, state.arms.observations
    mean = arms.means[arm] if seen.are_rewards else inner(seen.rows, arm, state.learned.theta)
    shrink, step = _learn(state, seen.rows[arm], mean, outcome)
    inner_products(arms.columns, state.scratch.direction, products)
    for z in range(products.shape[0]):
        arms.means[z] += products[z] * step
        arms.squared_widths[z] -= products[z] * products[z] * shrink
    arms.sums[arm] += outcome
    if not seen.are_rewards:  # otherwise the widths are the same memory
        inner_products(seen.columns, state.scratch.direction, products)
        for z in range(products.shape[0]):
            arms.seen_widths[z] -= products[z] * products[z] * shrink


@_absorb_normal.register(SeveralRows)
@compiled
def _absorb_array(several: SeveralRows, state: LeastSquares, arm: int, outcome: Array) -> None:
    """Learn row by row, then move all arms at once; rows of zeros show nothing."""
    arms, learned, w = state.arms, state.learned, state.scratch.direction
    rows, p = arms.observations.rows, arms.observations.per_arm
    count, width = 0, 0.0
    for n in range(arm * p, (arm + 1) * p):
        if several.blank[n]:
            continue
        value = outcome[n - arm * p]
        shrink, _ = _learn(state, rows[n], inner(rows, n, learned.theta), value)
        arms.sums[n] += value
        width += 1.0 - shrink  # (q - 1) / q, which the rows to come can only reduce
        root = math.sqrt(shrink)
        for i in range(w.shape[0]):
            several.directions[count, i] = root * w[i]
        count += 1
    inner_products(arms.columns, learned.theta, arms.means)
    products = state.scratch.products
    for m in range(count):
        inner_products(arms.columns, several.directions[m], products)
        for z in range(products.shape[0]):
            arms.squared_widths[z] -= products[z] * products[z]
    arms.seen_widths[arm] = width


@compiled
def _absorb_new(
    stream: StreamData, fit: LikelihoodFit | None, state: LeastSquares, arm: int, outcome: float
) -> None:
    """Learn from one arm of a round; new arms will replace the others, whose estimates stay."""
    arms, learned, row = state.arms, state.learned, state.arms.rewards[arm]
    if fit is None:
        arms.squared_widths[arm] = _learn_new(stream, state, row, outcome)
        return
    d = row.shape[0]
    width = multiply(learned.gram_inverse, row, state.scratch.direction, 0.0)
    u = inner_product(row, learned.theta, d)
    value, worth = normal_equivalent(fit.likelihood, outcome, u, max(width, 0.0))
    root, scaled = math.sqrt(worth), fit.gradient
    for i in range(d):
        scaled[i] = root * row[i]
    arms.seen_widths[arm] = _learn_new(stream, state, scaled, root * value)
    arms.squared_widths[arm] = arms.seen_widths[arm] / worth


@compiled
def _learn_new(stream: StreamData, state: LeastSquares, row: Array, value: float) -> float:
    """Learn from a row of a stream; return its squared width after that."""
    w = state.scratch.direction
    mean = 0.0
    for i in range(w.shape[0]):
        mean += row[i] * state.learned.theta[i]
    shrink, _ = _learn(state, row, mean, value)
    for i in range(w.shape[0]):
        w[i] = row[i]
    rank_one_update(stream.factor, w, stream.target, value)
    return 1.0 - shrink  # (q - 1) / q


@compiled
def _learn(state: LeastSquares, row: Array, mean: float, value: float) -> tuple[float, float]:
    """Update :class:`Learned` and the noise; return 1 / q, and the error of the mean over q."""
    learned, w = state.learned, state.scratch.direction
    d = w.shape[0]
    q = multiply_symmetric(learned.gram_inverse, row, w, 1.0)
    if q < 1.0:  # V^-1 has lost all digits along this row: recompute from the data
        q = 1.0
        learned.since_refresh[0] = REFRESH_AFTER_UPDATES
    shrink = 1.0 / q
    step = (value - mean) * shrink
    note_error(state.noise, (value - mean) * step, 1.0)
    for i in range(d):
        learned.theta[i] += w[i] * step
        for j in range(d):  # w_i w_j = w_j w_i: symmetric to the last bit
            learned.gram_inverse[i, j] -= w[i] * w[j] * shrink
    learned.log_det[0] += math.log(q)
    return shrink, step


# --- arms that are new in every round -----------------------------------------------------------


@compiled
def show_arms(state: LeastSquares, rows: Array, start: int, stop: int) -> None:
    """Put new arms into a part of the table, the first ones of ``rows``: O(d^2) for each."""
    arms, d = state.arms, state.scratch.direction.shape[0]
    for z in range(start, stop):
        mean = 0.0
        for i in range(d):
            value = rows[z - start, i]
            arms.rewards[z, i] = value
            arms.columns[i, z] = value
            mean += value * state.learned.theta[i]
        arms.means[z] = mean
    # a loop over arms side by side pays for more than a few of them
    if stop - start >= _SIDE_BY_SIDE:
        inverse, products = state.learned.gram_inverse, state.scratch.products
        squared_norms(arms.columns, inverse, start, stop, products, arms.squared_widths)
    else:
        for z in range(start, stop):
            arms.squared_widths[z] = multiply_symmetric(
                state.learned.gram_inverse, arms.rewards[z], state.scratch.direction, 0.0
            )
    note_information(arms.observations.fit, state, start, stop)
    for z in range(start, stop):
        arms.refreshed_widths[z] = arms.seen_widths[z]


@compiled
def note_information(fit: LikelihoodFit | None, state: LeastSquares, start: int, stop: int) -> None:
    """Write the information of outcomes of new arms; normal ones are all worth the same."""
    if fit is not None:
        arms = state.arms
        for z in range(start, stop):
            worth = information(fit.likelihood, arms.means[z])
            fit.roots[z] = math.sqrt(worth)
            arms.seen_widths[z] = worth * arms.squared_widths[z]


# --- estimates from the data as a whole ---------------------------------------------------------


@compiled
def refresh(state: LeastSquares) -> None:
    """Recompute every estimate from the data."""
    seen = state.arms.observations
    _recompute(seen.several, seen.stream, seen.fit, state)
    state.learned.since_refresh[0] = 0


@compiled
def _recompute(
    several: SeveralRows | None,
    stream: StreamData | None,
    fit: LikelihoodFit | None,
    state: LeastSquares,
) -> None:
    factor, theta = state.scratch.factor, state.learned.theta
    if stream is not None:
        for i in range(theta.shape[0]):
            theta[i] = stream.target[i]
            for j in range(theta.shape[0]):
                factor[i, j] = stream.factor[i, j]
        state.learned.log_det[0] = _solve(state)  # no means and widths: other arms will come
    elif fit is not None:
        refit(fit, state)
    else:
        _rotate_data(state)
        state.learned.log_det[0] = _solve(state)
        recompute_arms(state)
        arms, seen = state.arms, state.arms.observations
        if several is None and not seen.are_rewards:
            for z in range(arms.seen_widths.shape[0]):
                arms.seen_widths[z] = squared_width(state, seen.rows[z])
        _sum_widths(several, state)
        for z in range(arms.seen_widths.shape[0]):
            arms.refreshed_widths[z] = arms.seen_widths[z]


@compiled
def _solve(state: LeastSquares) -> float:
    """Solve R theta = R^-T sum y r, given in the place of theta; return log det(V / lambda)."""
    log_det = invert(state)
    solve(state.scratch.factor, state.learned.theta)
    return log_det


@compiled
def _rotate_data(state: LeastSquares) -> None:
    """Rotate all data into the factor R of V, and R^-T sum y r into the place of theta-hat.

    Rotating the rows into the factor, instead of factorising their sum, is a QR decomposition:
    it loses half as many digits where V is ill-conditioned.
    """
    arms, rows, p = state.arms, state.arms.observations.rows, state.arms.observations.per_arm
    theta, factor, w = state.learned.theta, state.scratch.factor, state.scratch.direction
    d, root = theta.shape[0], math.sqrt(state.regulariser)
    for i in range(d):
        theta[i] = 0.0
        for j in range(d):
            factor[i, j] = root if i == j else 0.0
    for n in range(rows.shape[0]):
        pulls = arms.pulls[n // p]
        if pulls > 0.0:
            weight = math.sqrt(pulls)
            for i in range(d):
                w[i] = weight * rows[n, i]
            rank_one_update(factor, w, theta, arms.sums[n] / weight)


@compiled
def update_seen_widths(state: LeastSquares) -> None:
    """Update the widths of observations: O(k p d^2) if arms show p > 1 numbers.

    An outcome moves them all where p = 1.  Otherwise that would cost O(k p^2 d), and most policies
    do not need them: an outcome only leaves an upper bound on the width of the arm played.
    """
    _sum_widths(state.arms.observations.several, state)


@compiled
def _sum_widths(several: SeveralRows | None, state: LeastSquares) -> None:
    if several is not None:
        arms, inverse, widths = state.arms, state.learned.gram_inverse, several.widths
        columns, p = arms.observations.columns, arms.observations.per_arm
        squared_norms(columns, inverse, 0, widths.shape[0], several.products, widths)
        for z in range(arms.seen_widths.shape[0]):
            width = 0.0
            for n in range(z * p, z * p + p):
                width += widths[n]
            arms.seen_widths[z] = width


@compiled
def best_arm(state: LeastSquares) -> int:
    """x-hat, the first one among equals."""
    return first_largest(state.arms.means)
