"""Regularised least squares over a table of arms, updated one observation at a time.

| symbol            | here                            | shape  |
|-------------------|---------------------------------|--------|
| V_s = lambda I + sum y y^T |                        | (d, d) |
| V_s^-1            | ``learned.gram_inverse``        | (d, d) |
| theta-hat_s       | ``learned.theta``               | (d,)   |
| log det(V_s / lambda) | ``learned.log_det[0]``      | (1,)   |
| s - 1             | ``learned.rounds[0]``           | (1,)   |
| <x, theta-hat_s>, widths, data | ``arms``, see :mod:`sightline.core.estimation.table` | |

A row y of Y_x is what an observation of arm x tells; in a bandit it is x itself.

An update costs O(k d + d^2) per observation: with w = V^-1 y and q = 1 + <y, w>, the
Sherman-Morrison formula moves the mean of arm z by <z, w> r / q and its squared width by
-<z, w>^2 / q, in one pass.

The data themselves are kept as counts and sums per arm, which never drift; now and then every
estimate is recomputed from them.

Where arms are new in every round (:func:`show_arms`) the data are kept in a factor of V, an update
costs O(d^2), and means and widths are those of the arms shown last.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, whole, within
from sightline.core.estimation.from_data import check_estimates
from sightline.core.estimation.noise import EstimatedNoise, note_error, weak_guess
from sightline.core.estimation.seen import (
    SeesLawStream,
    SeesRewards,
    SeesRow,
    SeesRows,
    SeesStream,
    is_silent,
)
from sightline.core.estimation.table import Arms, rows_seen, table_of_arms
from sightline.core.linalg.cholesky import rank_one_update, solve, solve_transposed
from sightline.core.linalg.vectors import first_largest, inner_products, multiply
from sightline.core.model import Model, check_signal
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "REFRESH_AFTER_UPDATES",
    "Learned",
    "LeastSquares",
    "absorb",
    "best_arm",
    "invert",
    "learn_new",
    "least_squares",
    "note_worth",
    "observe",
    "recompute",
    "recompute_arms",
    "refresh",
    "show_arms",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# Subtracting c^2/q loses digits in proportion to how far widths have fallen, and rounding errors
# add up with the number of updates.  Either one triggers a recomputation.  It is enough to watch
# the arm just played: if the width of any direction falls by F, that of some arm that was played
# falls by F over the number of such arms.
REFRESH_AFTER_UPDATES = 2048
REFRESH_AFTER_FALL = 1e-3
_SIDE_BY_SIDE = 4  # arms from which a loop over them pays


class Learned(NamedTuple):
    """What has been learned, whatever the arms are; see the table above."""

    gram_inverse: Array
    theta: Array
    log_det: Array  # (1,)
    rounds: Ints  # (1,): rounds learned from
    since_refresh: Ints  # (1,): of these, since the last refresh


@persists()
class Scratch(NamedTuple):
    """What a kernel may overwrite: nothing here lasts from one kernel to the next."""

    direction: Array  # (d,)
    products: Array  # (k,)
    factor: Array  # (d, d)


class LeastSquares(NamedTuple):
    """Estimates from all data so far."""

    learned: Learned
    arms: Arms
    scratch: Scratch
    regulariser: float  # lambda
    noise: Any  # sigma^2, or an EstimatedNoise


@invariant(LeastSquares)
def _check(part: LeastSquares, name: str) -> None:
    """Check that estimates follow from the data, of which there are as many as rounds."""
    learned, arms = part.learned, part.arms
    whole(f"{name}.learned.rounds", learned.rounds)
    whole(f"{name}.learned.since_refresh", learned.since_refresh, float(learned.rounds[0]) + 1.0)
    within(f"{name}.learned.log_det", learned.log_det, ends=False)
    if arms.pulls.sum() != learned.rounds[0]:
        raise ValueError(
            f"{name}.arms.pulls must sum to the {learned.rounds[0]} rounds learned from, got "
            f"{arms.pulls.sum():g}"
        )
    check_estimates(part, name)


def least_squares(
    model: Model,
    regulariser: float,
    *,
    reduce: bool = True,
    arms: Arms | None = None,
    noise: EstimatedNoise | None = None,
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
    noise : EstimatedNoise, optional
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
    refresh(state)
    return state


def _noise_of(model: Model) -> float | EstimatedNoise:
    """Take sigma^2 from a model, or begin to learn it."""
    if model.noise_known:
        return model.noise_std**2
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
    q = multiply(learned.gram_inverse, row, w, 1.0)
    if q < 1.0:  # V^-1 has lost all digits along this row: recompute from the data
        q = 1.0
        learned.since_refresh[0] = REFRESH_AFTER_UPDATES
    shrink = 1.0 / q
    step = (value - mean) * shrink
    note_error(state.noise, (value - mean) * step)
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


@compiled
def _absorb_row(seen: Any, state: LeastSquares, arm: int, n: int, value: float) -> None:
    """Learn from one value, seen along row n of one arm."""
    learned, arms, products = state.learned, state.arms, seen.products
    row, p = seen.rows[n], seen.per_arm
    mean = 0.0
    for j in range(row.shape[0]):
        mean += row[j] * learned.theta[j]
    shrink = _move(state, row, mean, value)
    arms.sums[n] += value
    inner_products(seen.columns, state.scratch.direction, products)
    for z in range(arms.seen_widths.shape[0]):
        for i in range(z * p, z * p + p):
            arms.seen_widths[z] -= products[i] * products[i] * shrink


@absorb.register(SeesRow)
@compiled
def _absorb_number(seen: SeesRow, state: LeastSquares, arm: int, outcome: float) -> None:
    _absorb_row(seen, state, arm, arm, outcome)


@absorb.register(SeesRows)
@compiled
def _absorb_array(seen: SeesRows, state: LeastSquares, arm: int, outcome: Array) -> None:
    for i in range(seen.per_arm):
        _absorb_row(seen, state, arm, arm * seen.per_arm + i, outcome[i])


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
@_refresh_seen_widths.register(SeesRows)
@compiled
def _refresh_rows(seen: Any, state: LeastSquares) -> None:
    arms, p = state.arms, seen.per_arm
    for z in range(arms.seen_widths.shape[0]):
        width = 0.0
        for i in range(p):
            width += _squared_width(state, seen.rows[z * p + i])
        arms.seen_widths[z] = width


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
    """Write x^T V^-1 x: by one triangle of V^-1, its diagonal halved, for all arms side by side.

    The inner loops run over arms and become vector code; a few arms are better off one by one.
    """
    arms, inverse, products = state.arms, state.learned.gram_inverse, state.scratch.products
    widths, columns, d = arms.squared_widths, arms.columns, inverse.shape[0]
    if stop - start < _SIDE_BY_SIDE:
        for z in range(start, stop):
            widths[z] = multiply(inverse, arms.rewards[z], state.scratch.direction, 0.0)
        return
    for z in range(start, stop):
        widths[z] = 0.0
    for i in range(d):
        half = 0.5 * inverse[i, i]
        for z in range(start, stop):
            products[z] = half * columns[i, z]
        for j in range(i + 1, d):
            factor = inverse[i, j]
            for z in range(start, stop):
                products[z] += factor * columns[j, z]
        for z in range(start, stop):
            widths[z] += 2.0 * columns[i, z] * products[z]


@compiled
def best_arm(state: LeastSquares) -> int:
    """Empirically best arm x-hat; the first one among equals."""
    return first_largest(state.arms.means)
