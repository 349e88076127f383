"""Estimates of theta: the table of arms, what the data say, and the variance of the noise.

| symbol                                 | here                                | shape    |
|----------------------------------------|-------------------------------------|----------|
| X                                      | ``arms.rewards``, transposed ``.columns`` | (k, d) |
| Y: rows of Y_x, for all arms x         | ``observations.rows``, ``.columns`` | (k p, d) |
| p                                      | ``observations.per_arm``            | int      |
| V_s = lambda I + sum y y^T             |                                     | (d, d)   |
| V_s^-1                                 | ``learned.gram_inverse``            | (d, d)   |
| theta-hat_s                            | ``learned.theta``                   | (d,)     |
| log det(V_s / lambda)                  | ``learned.log_det[0]``              | (1,)     |
| s - 1                                  | ``learned.rounds[0]``               | (1,)     |
| <x, theta-hat_s>                       | ``arms.means``                      | (k,)     |
| norm of x in V_s^-1, squared           | ``arms.squared_widths``             | (k,)     |
| sum of the squared norms of the rows of Y_x in V_s^-1 | ``arms.seen_widths`` | (k,)     |
| pulls of x, sum of the outcomes of x   | ``arms.pulls``, ``arms.sums``       | (k,), (k p,) |
| sigma^2 if known, else the guess sigma_0^2 | ``noise.variance``              | number   |
| n_0, the outcomes that the guess counts as | ``noise.prior_count``           | number   |
| n_0 sigma_0^2                          | ``noise.prior_errors``              | number   |
| RSS = sum of e_i^2 / (1 + w_i)         | ``noise.errors``                    | (1,)     |
| n, the sum of what outcomes count as   | ``noise.weight``                    | (1,)     |

Playing x shows <y, theta> and noise for every row y of Y_x.  In a bandit the row is x itself: Y is
X and ``seen_widths`` are ``squared_widths``, the same memory, which an update changes once.

Arms that do not span R^d are written in a basis of their span.  This changes no inner product and
hence no estimate.  Otherwise V^-1 would hold 1 / lambda in directions that matter to no arm, and
the digits of all others could be lost beside it.

If sigma is unknown, its estimate is

    sigma^2 = (n_0 sigma_0^2 + RSS) / (n_0 + n).

An outcome with the error e and the predictive variance sigma^2 (1 + w) adds e^2 / (1 + w) to RSS.
For least squares the sum is the residual sum of squares of ridge regression, as a sum of positive
terms, and every outcome counts as one.  For the Gaussian posterior, whose prior may be wide, an
outcome counts as 1 / (1 + w): the first outcome of an arm says hardly anything about the noise.

Three parts of :class:`Observations` are None where a problem does not need them.  Kernels take
them as separate arguments, because numba drops the branches for an argument that is None.  So a
bandit neither compiles the other cases nor carries their arrays.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet
from sightline.core.linalg import (
    Array,
    Bools,
    Ints,
    inner,
    inner_products,
    rank_one_update,
    solve,
    solve_transposed,
    squared_length,
    triangle_products,
)
from sightline.core.model import Model
from sightline.core.persistence import invariant, persists, positive, whole, within
from sightline.jit import compiled

# A weak guess counts as a tenth of an outcome, at a hundredth of the level that was guessed.  A
# guess that is too small costs little, one that is too large a lot (see confidence_rules.py).
WEAK_COUNT, WEAK_SHARE = 0.1, 0.01


class Noise(NamedTuple):
    """The variance of the noise; if it is known, the arrays are empty and not saved."""

    known: bool
    variance: float
    prior_count: float
    prior_errors: float
    errors: Array  # (1,) or (0,)
    weight: Array  # (1,) or (0,)


@invariant(Noise)
def _check_noise(noise: Noise, name: str) -> None:
    within(f"{name}.errors", noise.errors, 0.0, ends=False)
    within(f"{name}.weight", noise.weight, 0.0, ends=False)


def known_noise(variance: float) -> Noise:
    """Noise of known variance."""
    return Noise(True, variance, 0.0, 0.0, np.zeros(0), np.zeros(0))


def estimated_noise(
    noise_std: float, prior_count: float, errors: float = 0.0, weight: float = 0.0
) -> Noise:
    """Noise to be estimated after a guess of sigma; by default before any outcome."""
    prior_errors = prior_count * noise_std * noise_std
    data = np.array([errors]), np.array([weight])
    return Noise(False, noise_std * noise_std, prior_count, prior_errors, *data)


def weak_guess(noise_std: float) -> Noise:
    """Noise to be estimated after a guess that is hardly believed."""
    return estimated_noise(WEAK_SHARE * noise_std, WEAK_COUNT)


# --- coordinates --------------------------------------------------------------------------------


@compiled
def _least_singular_value(actions: Array, factor: Array, w: Array) -> float:
    """Lower bound on the least singular value, which is 1 / |R^-1| for X = QR: O(k d^2).

    Not by LAPACK: on busy cores its threads wait for each other a hundred times longer than the
    decomposition takes.
    """
    k, d = actions.shape
    for i in range(d):
        factor[i, i] = 1e-150  # negligible, but a rotation is defined
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
    # equal arms must stay equal to the last bit, which a matrix product does not guarantee
    distinct, which = _distinct_rows(actions)
    return np.ascontiguousarray((distinct @ basis[:rank].T)[which])


def _distinct_rows(rows: Array) -> tuple[Array, NDArray[np.intp]]:
    """Distinct rows in lexicographic order, and the index of each row among them.

    ``np.unique(rows, axis=0)`` gives the same, but holds the interpreter's lock while it sorts,
    which blocks all decisions of a service.
    """
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    is_new = np.ones(len(rows), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    which = np.empty(len(rows), dtype=np.intp)
    which[order] = np.cumsum(is_new) - 1
    return ordered[is_new], which


def span_of(rows: Array) -> Array:
    """Orthonormal basis of the span of some rows, as columns."""
    _, singular, basis = np.linalg.svd(rows, full_matrices=False)
    negligible = max(rows.shape) * float(np.finfo(np.float64).eps)
    kept: Array = basis[singular > singular[0] * negligible].T
    return kept if kept.shape[1] < rows.shape[1] else np.eye(rows.shape[1])


def basis_of_differences(rewards: Array, seen: Array) -> Array:
    """Orthonormal basis, as columns, of the directions that comparisons of arms depend on.

    This is a basis of the span of Y if that contains all differences of rewards: a duel does not
    show what all items have in common, and no comparison needs it.  Otherwise it is a basis of the
    span of X and Y.
    """
    if seen.any():
        basis, differences = span_of(seen), rewards - rewards[0]
        outside = differences - (differences @ basis) @ basis.T
        if np.abs(outside).max() <= 1e-9 * np.abs(rewards).max():
            return basis
    return span_of(np.vstack([rewards, seen]))


# --- state --------------------------------------------------------------------------------------


@persists()
class SeveralRows(NamedTuple):
    """Scratch space for outcomes that are arrays of p > 1 numbers."""

    blank: Bools  # (k p,): rows of zeros
    products: Array  # (k p,)
    widths: Array  # (k p,)
    directions: Array  # (p, d)
    slots: Array  # (d, p k): columns of the first row of every arm, then of the second, and so on
    images: Array  # (p k,)
    factors: Array  # (p, p, k)


@persists("factor", "target")
class StreamData(NamedTuple):
    """All data, where arms are new in every round and there are no counts per arm.

    They are R and R^-T sum y z, where V = R^T R.
    """

    factor: Array  # (d, d)
    target: Array  # (d,)


@persists("roots")
class LikelihoodFit(NamedTuple):
    """The likelihood of rewards that are clicks or counts.

    Near theta-hat a reward tells as much about <x, theta> as a normal outcome along roots_x x.  In
    a stream ``roots`` are those at the time when an arm was shown.
    """

    likelihood: Any
    roots: Array  # (k,): of the Fisher information at theta-hat
    predictors: Array  # (k,): scratch
    gradient: Array  # (d,): scratch
    hessian: Array  # (d, d): scratch


@persists()
class Observations(NamedTuple):
    """What playing an arm shows: its reward, one other number, or several.

    Compiled code knows from their types whether the last three parts are None.  Without None, the
    state of every bandit would have ten more arrays.
    """

    rows: Array  # (k p, d): Y; X itself where an outcome is the reward
    columns: Array  # (d, k p)
    silent: Bools  # (k,): arms that show nothing
    are_rewards: bool  # Y is X, and the rows are the same memory
    per_arm: int  # p
    several: Any  # SeveralRows where p > 1, otherwise None
    stream: Any  # StreamData where arms are new in every round, otherwise None
    fit: Any  # LikelihoodFit where rewards are clicks or counts, otherwise None


@persists("means", "squared_widths", "seen_widths", "refreshed_widths", "pulls", "sums")
class Arms(NamedTuple):
    """The table of arms; for p > 1, ``update_seen_widths`` brings ``seen_widths`` up to date."""

    rewards: Array
    columns: Array
    observations: Observations
    means: Array
    squared_widths: Array
    seen_widths: Array
    refreshed_widths: Array  # (k,): seen widths at the last refresh
    pulls: Array
    sums: Array
    everything: ActionSet = ALL_ARMS


class Learned(NamedTuple):
    """Estimates that do not refer to an arm."""

    gram_inverse: Array
    theta: Array
    log_det: Array  # (1,)
    rounds: Ints  # (1,): rounds learned from
    since_refresh: Ints  # (1,): of these, since the last refresh


@persists()
class Scratch(NamedTuple):
    """Workspace of every kernel: nothing here lasts from one kernel to the next."""

    direction: Array  # (d,)
    products: Array  # (k,)
    factor: Array  # (d, d)


class LeastSquares(NamedTuple):
    """Estimates from all data so far."""

    learned: Learned
    arms: Arms
    scratch: Scratch
    regulariser: float  # lambda
    noise: Noise


@invariant(Arms)
def _check_arms(arms: Arms, name: str) -> None:
    """Check that pulls are counts, and widths not negative beyond rounding."""
    whole(f"{name}.pulls", arms.pulls)
    for field in ("means", "sums"):
        within(f"{name}.{field}", getattr(arms, field), ends=False)
    for field in ("squared_widths", "seen_widths", "refreshed_widths"):
        widths = getattr(arms, field)
        within(f"{name}.{field}", widths, -1e-6 * float(np.abs(widths).max()), ends=False)


@invariant(LeastSquares)
def _check(part: LeastSquares, name: str) -> None:
    """Check that all is finite, V^-1 positive on its diagonal, and data as many as rounds."""
    learned, arms = part.learned, part.arms
    whole(f"{name}.learned.rounds", learned.rounds)
    whole(f"{name}.learned.since_refresh", learned.since_refresh, float(learned.rounds[0]) + 1.0)
    within(f"{name}.learned.log_det", learned.log_det, ends=False)
    if arms.pulls.sum() != learned.rounds[0]:
        raise ValueError(
            f"{name}.arms.pulls must sum to the {learned.rounds[0]} rounds learned from, got "
            f"{arms.pulls.sum():g}"
        )
    within(f"{name}.learned.theta", learned.theta, ends=False)
    within(f"{name}.learned.gram_inverse", learned.gram_inverse, ends=False)
    # V is at least lambda I, whatever the data: a file with another regulariser does not fit
    diagonal = np.diag(learned.gram_inverse)
    positive(f"{name}.learned.gram_inverse, on its diagonal,", diagonal)
    within(
        f"{name}.learned.gram_inverse, on its diagonal,", diagonal, 0.0, 1.001 / part.regulariser
    )


# --- tables before any data ---------------------------------------------------------------------


def table_of_arms(model: Model, reduce: bool = True) -> Arms:
    """Table of all arms, in a basis of their span unless ``reduce`` is False."""
    rewards = model.rewards
    k, p, d = model.observations.shape
    if model.stream:
        return _table(
            rewards.copy(), None, 1, model.likelihood, StreamData(np.zeros((d, d)), np.zeros(d))
        )
    if model.shows_rewards:
        rewards = spanning_coordinates(rewards) if reduce else rewards
        return _table(rewards, None, 1, model.likelihood)
    rows = np.vstack([rewards, model.observations.reshape(k * p, d)])
    rows = spanning_coordinates(rows) if reduce else rows
    return _table(np.ascontiguousarray(rows[:k]), np.ascontiguousarray(rows[k:]), p)


def weighted_table(rewards: Array, weights: Array) -> Arms:
    """Table of arms, in given coordinates, whose outcomes are rewards times a weight."""
    return _table(rewards, None if (weights == 1.0).all() else weights[:, None] * rewards, 1)


def _table(
    rewards: Array,
    rows: Array | None,
    per_arm: int,
    likelihood: Any = None,
    stream: StreamData | None = None,
) -> Arms:
    """Table of arms that show ``rows``, or their rewards if these are None."""
    k, d = rewards.shape
    columns, widths = np.ascontiguousarray(rewards.T), np.zeros(k)
    silent = np.zeros(k, np.bool_)
    if rows is not None:
        silent[:] = ~rows.reshape(k, -1).any(axis=1)
    observations = Observations(
        rows=rewards if rows is None else rows,
        columns=columns if rows is None else np.ascontiguousarray(rows.T),
        silent=silent,
        are_rewards=rows is None,
        per_arm=per_arm,
        several=None if rows is None or per_arm == 1 else _several(rows, per_arm),
        stream=stream,
        fit=None
        if likelihood is None
        else LikelihoodFit(likelihood, np.zeros(k), np.zeros(k), np.zeros(d), np.zeros((d, d))),
    )
    return Arms(
        rewards=rewards,
        columns=columns,
        observations=observations,
        means=np.zeros(k),
        squared_widths=widths,
        seen_widths=widths if rows is None and likelihood is None else np.zeros(k),
        refreshed_widths=np.zeros(k),
        pulls=np.zeros(k),
        sums=np.zeros(k * per_arm),
    )


def _several(rows: Array, p: int) -> SeveralRows:
    k, d = len(rows) // p, rows.shape[1]
    return SeveralRows(
        blank=np.logical_not(rows.any(axis=1)),
        products=np.zeros(k * p),
        widths=np.zeros(k * p),
        directions=np.zeros((p, d)),
        slots=np.ascontiguousarray(rows.reshape(k, p, d).transpose(2, 1, 0)).reshape(d, -1),
        images=np.zeros(k * p),
        factors=np.zeros((p, p, k)),
    )


# --- what arms show -----------------------------------------------------------------------------


@compiled
def seen_by_arm(
    several: SeveralRows | None, fit: LikelihoodFit | None, arms: Arms, arm: int, vector: Array
) -> float:
    """|Y_x vector| for one arm x; where p = 1, up to its sign."""
    rows = arms.observations.rows
    if several is not None:
        p, total = arms.observations.per_arm, 0.0
        for n in range(arm * p, (arm + 1) * p):
            value = inner(rows, n, vector)
            total += value * value
        return math.sqrt(total)
    if fit is not None:
        root: float = fit.roots[arm]
        return root * inner(rows, arm, vector)
    return inner(rows, arm, vector)


@compiled
def quadratic_forms(
    several: SeveralRows | None,
    fit: LikelihoodFit | None,
    arms: Arms,
    form: Array,
    products: Array,
    out: Array,
) -> None:
    """Write half the sum of y^T W y over the rows y of Y_x for all arms x: O(k p d^2)."""
    seen = arms.observations
    if several is not None:
        for x in range(out.shape[0]):
            out[x] = 0.0
            for n in range(x * seen.per_arm, (x + 1) * seen.per_arm):
                for i in range(form.shape[0]):
                    out[x] += 0.5 * seen.rows[n, i] * inner(form, i, seen.rows[n])
        return
    for x in range(out.shape[0]):
        out[x] = 0.0
    for i in range(form.shape[0]):
        inner_products(seen.columns, form[i], products)
        for x in range(out.shape[0]):
            out[x] += 0.5 * seen.columns[i, x] * products[x]
    if fit is not None:
        for x in range(out.shape[0]):
            out[x] *= fit.roots[x] * fit.roots[x]


@compiled
def factorise_seen(several: SeveralRows, inverse: Array) -> None:
    """Write the Cholesky factors of I + Y_x V^-1 Y_x^T: O(p d^2 + p^2 d + p^3) for each arm x.

    Inner loops run over arms, because the matrices are small.
    """
    factors, d = several.factors, several.slots.shape[0]
    p, _, k = factors.shape
    for a in range(p):
        for b in range(a, p):
            for x in range(k):
                factors[a, b, x] = 1.0 if a == b else 0.0
    # with one index per axis: of sums of indices compilers make no vector instructions
    left, right = several.slots.reshape((d, p, k)), several.images.reshape((p, k))
    for i in range(d):
        triangle_products(several.slots, inverse, i, 0, p * k, several.images)
        for a in range(p):
            for b in range(a, p):
                for x in range(k):
                    factors[a, b, x] += left[i, a, x] * right[b, x] + left[i, b, x] * right[a, x]
    for a in range(p):
        for b in range(a, p):
            for m in range(a):
                for x in range(k):
                    factors[a, b, x] -= factors[m, a, x] * factors[m, b, x]
            if a == b:
                for x in range(k):  # at least 1, but for rounding
                    factors[a, a, x] = math.sqrt(max(factors[a, a, x], 1.0))
                continue
            for x in range(k):
                factors[a, b, x] /= factors[a, a, x]


@compiled
def whiten_seen(several: SeveralRows, vector: Array) -> None:
    """Write R^-T Y_x vector into ``images`` for all arms x, R the factor of each: O(p d + p^2)."""
    factors, images = several.factors, several.images
    p, _, k = factors.shape
    inner_products(several.slots, vector, images)
    for a in range(p):
        for m in range(a):
            for x in range(k):
                images[a * k + x] -= factors[m, a, x] * images[m * k + x]
        for x in range(k):
            images[a * k + x] /= factors[a, a, x]


# --- estimates from a factor of V ---------------------------------------------------------------


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


@compiled
def squared_width(state: LeastSquares, row: Array) -> float:
    """Squared norm of a row in V^-1, from the factor of V in the scratch space."""
    w = state.scratch.direction
    for i in range(w.shape[0]):
        w[i] = row[i]
    solve_transposed(state.scratch.factor, w)
    return squared_length(w)


@compiled
def recompute_arms(state: LeastSquares) -> None:
    """Write means and widths of all arms, from theta-hat and the factor of V."""
    arms, theta = state.arms, state.learned.theta
    for z in range(arms.rewards.shape[0]):
        arms.means[z] = inner(arms.rewards, z, theta)
        arms.squared_widths[z] = squared_width(state, arms.rewards[z])
