"""Regularised least squares over a table of arms, updated one observation at a time.

An update costs O(k d + d^2) per observation: with w = V^-1 y and q = 1 + <y, w>, the
Sherman-Morrison formula moves the mean of arm z by <z, w> r / q and its squared width by
-<z, w>^2 / q, in one pass.  Symbols: :mod:`sightline.core.estimation.estimate`.

The data themselves are kept as counts and sums per arm, which never drift; now and then every
estimate is recomputed from them (:mod:`sightline.core.estimation.recomputation`).

Where arms are new in every round (:func:`show_arms`) the data are kept in a factor of V, an update
costs O(d^2), and means and widths are those of the arms shown last.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.estimate import Learned, LeastSquares, Scratch
from sightline.core.estimation.noise import Noise, known_noise, note_error, weak_guess
from sightline.core.estimation.recomputation import refresh
from sightline.core.estimation.seen import (
    SeesLawStream,
    SeesRewards,
    SeesRow,
    SeesRows,
    SeesStream,
    inner,
    is_silent,
)
from sightline.core.estimation.table import Arms, rows_seen, table_of_arms
from sightline.core.linalg.cholesky import rank_one_update
from sightline.core.linalg.vectors import (
    first_largest,
    inner_products,
    multiply_symmetric,
    squared_norms,
)
from sightline.core.model import Model, check_signal
from sightline.jit import callable_for, compiled, generic

__all__ = [
    "REFRESH_AFTER_UPDATES",
    "absorb",
    "best_arm",
    "learn_new",
    "least_squares",
    "note_worth",
    "observe",
    "show_arms",
]

Array = NDArray[np.float64]

# Subtracting c^2/q loses digits in proportion to how far widths have fallen, and rounding errors
# add up with the number of updates.  Either one triggers a recomputation.  It is enough to watch
# the arm just played: if the width of any direction falls by F, that of some arm that was played
# falls by F over the number of such arms.
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

    Parameters
    ----------
    model : Model
        Arms, what they show, and the noise.
    regulariser : float
        lambda.
    reduce : bool
        Whether arms that do not span R^d are expressed in a basis of their span.
    arms : Arms, optional
        Table in coordinates of one's own, in place of that of the model.
    noise : Noise, optional
        To learn the noise level from a guess of one's own; by default it is that of the model,
        or learned where the model does not say it.
    """
    table = arms or table_of_arms(model, reduce)
    check_signal(rows_seen(table), 1.0 / math.sqrt(regulariser), f"regulariser {regulariser:g}")
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
        noise=noise or _noise_of(model),
    )
    if isinstance(table.seen, SeesStream | SeesLawStream):
        np.fill_diagonal(table.seen.factor, math.sqrt(regulariser))
    callable_for(refresh, state)(state)
    return state


def _noise_of(model: Model) -> Noise:
    """Take sigma^2 from a model, or begin to learn it."""
    if model.noise_known:
        return known_noise(model.noise_std**2)
    if model.observations_per_round > 1:
        raise ValueError(
            "the noise level can be learned from outcomes of one number; this problem shows "
            f"{model.observations_per_round}: say noise_std"
        )
    return weak_guess(model.noise_std)


@compiled
def observe(state: LeastSquares, arm: int, outcome: Any) -> None:
    """Learn from what one play of one arm has shown: a number, or an array of p.

    Nothing changes, not even the local time, where the arm shows nothing.
    """
    arms, learned = state.arms, state.learned
    if is_silent(arms.seen, arm):
        return
    absorb(arms.seen, state, arm, outcome)
    arms.pulls[arm] += 1.0
    learned.rounds[0] += 1
    learned.since_refresh[0] += 1
    if (
        learned.since_refresh[0] >= REFRESH_AFTER_UPDATES
        or arms.seen_widths[arm] < REFRESH_AFTER_FALL * arms.refreshed_widths[arm]
    ):
        refresh(state)


@generic
def absorb(seen: Any, state: LeastSquares, arm: int, outcome: Any) -> None:
    """Move every estimate by one outcome."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def _move(state: LeastSquares, row: Array, mean: float, value: float) -> float:
    """Move what has been learned, means and widths by one observed value; return 1 / q."""
    arms, products = state.arms, state.scratch.products
    shrink, step = _learn(state, row, mean, value)
    inner_products(arms.columns, state.scratch.direction, products)
    for z in range(products.shape[0]):
        arms.means[z] += products[z] * step
        arms.squared_widths[z] -= products[z] * products[z] * shrink
    return shrink


@compiled
def _learn(state: LeastSquares, row: Array, mean: float, value: float) -> tuple[float, float]:
    """Move what has been learned; return 1 / q, and the error of the mean over q."""
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


@absorb.register(SeesRewards)
@compiled
def _absorb_reward(seen: SeesRewards, state: LeastSquares, arm: int, outcome: float) -> None:
    arms = state.arms
    _move(state, arms.rewards[arm], arms.means[arm], outcome)
    arms.sums[arm] += outcome


@absorb.register(SeesStream)
@compiled
def _absorb_new(seen: SeesStream, state: LeastSquares, arm: int, outcome: float) -> None:
    """Learn from one arm of a round; other arms of the table are not moved, new ones will come."""
    arms = state.arms
    arms.squared_widths[arm] = learn_new(seen, state, arms.rewards[arm], outcome)


@compiled
def learn_new(seen: Any, state: LeastSquares, row: Array, value: float) -> float:
    """Learn from a row that is in no table to stay; return its squared width after that."""
    w = state.scratch.direction
    mean = 0.0
    for i in range(w.shape[0]):
        mean += row[i] * state.learned.theta[i]
    shrink, _ = _learn(state, row, mean, value)
    for i in range(w.shape[0]):
        w[i] = row[i]
    rank_one_update(seen.factor, w, seen.target, value)
    return 1.0 - shrink  # (q - 1) / q


@absorb.register(SeesRow)
@compiled
def _absorb_number(seen: SeesRow, state: LeastSquares, arm: int, outcome: float) -> None:
    arms, products = state.arms, seen.products
    shrink = _move(state, seen.rows[arm], inner(seen.rows, arm, state.learned.theta), outcome)
    arms.sums[arm] += outcome
    inner_products(seen.columns, state.scratch.direction, products)
    for z in range(products.shape[0]):
        arms.seen_widths[z] -= products[z] * products[z] * shrink


@absorb.register(SeesRows)
@compiled
def _absorb_array(seen: SeesRows, state: LeastSquares, arm: int, outcome: Array) -> None:
    """Learn row by row, then move all arms at once; rows of zeros show nothing."""
    arms, learned, w = state.arms, state.learned, state.scratch.direction
    count, width = 0, 0.0
    for n in range(arm * seen.per_arm, (arm + 1) * seen.per_arm):
        if seen.blank[n]:
            continue
        value = outcome[n - arm * seen.per_arm]
        shrink, _ = _learn(state, seen.rows[n], inner(seen.rows, n, learned.theta), value)
        arms.sums[n] += value
        width += 1.0 - shrink  # (q - 1) / q, which the rows to come can only reduce
        root = math.sqrt(shrink)
        for i in range(w.shape[0]):
            seen.directions[count, i] = root * w[i]
        count += 1
    inner_products(arms.columns, learned.theta, arms.means)
    products = state.scratch.products
    for m in range(count):
        inner_products(arms.columns, seen.directions[m], products)
        for z in range(products.shape[0]):
            arms.squared_widths[z] -= products[z] * products[z]
    arms.seen_widths[arm] = width


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
    _widths_of_new(state, start, stop)
    note_worth(arms.seen, state, start, stop)
    for z in range(start, stop):
        arms.refreshed_widths[z] = arms.seen_widths[z]


@generic
def note_worth(seen: Any, state: LeastSquares, start: int, stop: int) -> None:
    """Take note of what outcomes of new arms are worth, where it is not the same for all."""
    raise TypeError(f"no new arms are seen by a {type(seen).__name__}")


@note_worth.register(SeesStream)
@compiled
def _worth_the_same(seen: SeesStream, state: LeastSquares, start: int, stop: int) -> None:
    pass


@compiled
def _widths_of_new(state: LeastSquares, start: int, stop: int) -> None:
    """Write x^T V^-1 x, for a few arms one by one and otherwise side by side."""
    arms, inverse, products = state.arms, state.learned.gram_inverse, state.scratch.products
    if stop - start >= _SIDE_BY_SIDE:
        squared_norms(arms.columns, inverse, start, stop, products, arms.squared_widths)
        return
    for z in range(start, stop):
        width = multiply_symmetric(inverse, arms.rewards[z], state.scratch.direction, 0.0)
        arms.squared_widths[z] = width


@compiled
def best_arm(state: LeastSquares) -> int:
    """Empirically best arm x-hat; the first one among equals."""
    return first_largest(state.arms.means)
