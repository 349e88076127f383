"""What playing an arm shows: its reward, one other number, or several.

| symbol                       | here         | shape    |
|------------------------------|--------------|----------|
| rows of Y_x, for all arms x  | ``rows``     | (k p, d) |
| p                            | ``per_arm``  | int      |

Kernels dispatch on the class, so that a bandit, where Y is X, pays for nothing else.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood.laws import divergence, mean_of
from sightline.core.linalg.vectors import inner_products, triangle_products
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = [
    "SeesLaw",
    "SeesLawStream",
    "SeesRewards",
    "SeesRow",
    "SeesRows",
    "SeesStream",
    "apart",
    "factorise_seen",
    "inner",
    "is_silent",
    "quadratic_forms",
    "reward_of",
    "seen_along",
    "seen_by_arm",
    "whiten_seen",
]

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@persists()
class SeesRewards(NamedTuple):
    """An outcome is the reward of the arm: Y is X."""

    code: int = 0


@persists("factor", "target")
class SeesStream(NamedTuple):
    """An outcome is the reward of the arm, and arms are new in every round.

    There are no counts per arm: all data are in R and R^-T sum x r, where V = R^T R.
    """

    factor: Array  # (d, d)
    target: Array  # (d,)


@persists("roots")
class SeesLaw(NamedTuple):
    """An outcome is the reward of the arm, a click or a count.

    Near theta-hat it tells as much about <x, theta> as a normal outcome along roots_x x.
    """

    law: Any
    roots: Array  # (k,): of the Fisher information at theta-hat
    predictors: Array  # (k,): scratch
    gradient: Array  # (d,): scratch
    hessian: Array  # (d, d): scratch


@persists("factor", "target")
class SeesLawStream(NamedTuple):
    """An outcome is a click or a count of an arm, and arms are new in every round.

    All data are in R and R^-T sum x r, as if every outcome had been a normal one when it came.
    """

    law: Any
    roots: Array  # (k,): of the Fisher information at theta-hat, of arms when they were shown
    factor: Array  # (d, d)
    target: Array  # (d,)
    scaled: Array  # (d,): scratch


@persists()
class SeesRow(NamedTuple):
    """An outcome is one number, with a row of its own for each arm."""

    rows: Array  # (k, d)
    columns: Array  # (d, k)
    products: Array  # (k,): scratch
    silent: Bools  # (k,): arms that show nothing
    per_arm: int = 1


@persists()
class SeesRows(NamedTuple):
    """An outcome is an array of p numbers, with as many rows for each arm, one after the other."""

    rows: Array  # (k p, d)
    columns: Array  # (d, k p)
    products: Array  # (k p,): scratch
    silent: Bools  # (k,): arms that show nothing
    per_arm: int  # p
    blank: Bools  # (k p,): rows of zeros
    directions: Array  # (p, d): scratch
    widths: Array  # (k p,): scratch
    slots: Array  # (d, p k): columns of the first row of every arm, then of the second, and so on
    images: Array  # (p k,): scratch
    factors: Array  # (p, p, k): scratch


@generic
def is_silent(seen: Any, arm: int) -> bool:
    """Whether an arm shows nothing, so that playing it teaches nothing."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@is_silent.register(SeesRewards)
@is_silent.register(SeesStream)
@is_silent.register(SeesLaw)
@is_silent.register(SeesLawStream)
@compiled
def _shows_reward(seen: Any, arm: int) -> bool:
    return False


@is_silent.register(SeesRow)
@is_silent.register(SeesRows)
@compiled
def _shows_no_row(seen: Any, arm: int) -> bool:
    silent: bool = seen.silent[arm]
    return silent


@generic
def seen_along(seen: Any, arms: Any, vector: Array, out: Array) -> None:
    """Write |Y_x vector| for all arms x; where p = 1, up to its sign."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@seen_along.register(SeesRewards)
@seen_along.register(SeesStream)
@compiled
def _rewards_along(seen: Any, arms: Any, vector: Array, out: Array) -> None:
    inner_products(arms.columns, vector, out)


@seen_along.register(SeesRow)
@compiled
def _row_along(seen: SeesRow, arms: Any, vector: Array, out: Array) -> None:
    inner_products(seen.columns, vector, out)


@seen_along.register(SeesRows)
@compiled
def _rows_along(seen: SeesRows, arms: Any, vector: Array, out: Array) -> None:
    inner_products(seen.columns, vector, seen.products)
    for x in range(out.shape[0]):
        total = 0.0
        for n in range(x * seen.per_arm, (x + 1) * seen.per_arm):
            total += seen.products[n] * seen.products[n]
        out[x] = math.sqrt(total)


@seen_along.register(SeesLaw)
@seen_along.register(SeesLawStream)
@compiled
def _law_along(seen: Any, arms: Any, vector: Array, out: Array) -> None:
    inner_products(arms.columns, vector, out)
    for x in range(out.shape[0]):
        out[x] *= seen.roots[x]


@generic
def apart(seen: Any, arms: Any, shift: Array, out: Array) -> None:
    """Write how far apart theta-hat and theta-hat + shift are in what each arm shows.

    The root of twice the divergence of the two laws, in units of the noise.  For normal outcomes
    |Y_x shift|, where p = 1 up to its sign.
    """
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


apart.register(SeesRewards)(_rewards_along)
apart.register(SeesStream)(_rewards_along)
apart.register(SeesRow)(_row_along)
apart.register(SeesRows)(_rows_along)


@apart.register(SeesLaw)
@apart.register(SeesLawStream)
@compiled
def _laws_apart(seen: Any, arms: Any, shift: Array, out: Array) -> None:
    inner_products(arms.columns, shift, out)
    for x in range(out.shape[0]):
        out[x] = math.sqrt(2.0 * divergence(seen.law, arms.means[x], out[x]))


@generic
def reward_of(seen: Any, predictor: float) -> float:
    """Mean reward of an arm x from <x, theta>."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@reward_of.register(SeesRewards)
@reward_of.register(SeesStream)
@reward_of.register(SeesRow)
@reward_of.register(SeesRows)
@compiled
def _reward_itself(seen: Any, predictor: float) -> float:
    return predictor


@reward_of.register(SeesLaw)
@reward_of.register(SeesLawStream)
@compiled
def _reward_by_law(seen: Any, predictor: float) -> float:
    reward: float = mean_of(seen.law, predictor)
    return reward


@generic
def seen_by_arm(seen: Any, arms: Any, arm: int, vector: Array) -> float:
    """|Y_x vector| for one arm x; where p = 1, up to its sign."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def inner(rows: Array, n: int, vector: Array) -> float:
    """Inner product of one row and a vector."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += rows[n, i] * vector[i]
    return total


@seen_by_arm.register(SeesRewards)
@seen_by_arm.register(SeesStream)
@compiled
def _reward_by_arm(seen: Any, arms: Any, arm: int, vector: Array) -> float:
    return inner(arms.rewards, arm, vector)


@seen_by_arm.register(SeesRow)
@compiled
def _row_by_arm(seen: SeesRow, arms: Any, arm: int, vector: Array) -> float:
    return inner(seen.rows, arm, vector)


@seen_by_arm.register(SeesLaw)
@seen_by_arm.register(SeesLawStream)
@compiled
def _law_by_arm(seen: Any, arms: Any, arm: int, vector: Array) -> float:
    root: float = seen.roots[arm]
    return root * inner(arms.rewards, arm, vector)


@seen_by_arm.register(SeesRows)
@compiled
def _rows_by_arm(seen: SeesRows, arms: Any, arm: int, vector: Array) -> float:
    total = 0.0
    for n in range(arm * seen.per_arm, (arm + 1) * seen.per_arm):
        value = inner(seen.rows, n, vector)
        total += value * value
    return math.sqrt(total)


@compiled
def factorise_seen(seen: SeesRows, inverse: Array) -> None:
    """Write the Cholesky factors of I + Y_x V^-1 Y_x^T: O(p d^2 + p^2 d + p^3) for each arm x.

    Inner loops run over arms: the matrices are too small to be worth one.
    """
    factors, d = seen.factors, seen.slots.shape[0]
    p, _, k = factors.shape
    for a in range(p):
        for b in range(a, p):
            for x in range(k):
                factors[a, b, x] = 1.0 if a == b else 0.0
    # with one index per axis: of sums of indices compilers make no vector instructions
    left, right = seen.slots.reshape((d, p, k)), seen.images.reshape((p, k))
    for i in range(d):
        triangle_products(seen.slots, inverse, i, 0, p * k, seen.images)
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
def whiten_seen(seen: SeesRows, vector: Array) -> None:
    """Write R^-T Y_x vector into ``images`` for all arms x, R the factor of each: O(p d + p^2)."""
    factors, images = seen.factors, seen.images
    p, _, k = factors.shape
    inner_products(seen.slots, vector, images)
    for a in range(p):
        for m in range(a):
            for x in range(k):
                images[a * k + x] -= factors[m, a, x] * images[m * k + x]
        for x in range(k):
            images[a * k + x] /= factors[a, a, x]


@generic
def quadratic_forms(seen: Any, arms: Any, form: Array, products: Array, out: Array) -> None:
    """Write half the sum of y^T W y over the rows y of Y_x for all arms x: O(k p d^2)."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def _add_forms(columns: Array, form: Array, products: Array, out: Array) -> None:
    for n in range(out.shape[0]):
        out[n] = 0.0
    for i in range(form.shape[0]):
        inner_products(columns, form[i], products)
        for n in range(out.shape[0]):
            out[n] += 0.5 * columns[i, n] * products[n]


@quadratic_forms.register(SeesRewards)
@quadratic_forms.register(SeesStream)
@compiled
def _reward_forms(seen: Any, arms: Any, form: Array, products: Array, out: Array) -> None:
    _add_forms(arms.columns, form, products, out)


@quadratic_forms.register(SeesRow)
@compiled
def _row_forms(seen: SeesRow, arms: Any, form: Array, products: Array, out: Array) -> None:
    _add_forms(seen.columns, form, products, out)


@quadratic_forms.register(SeesLaw)
@quadratic_forms.register(SeesLawStream)
@compiled
def _law_forms(seen: Any, arms: Any, form: Array, products: Array, out: Array) -> None:
    _add_forms(arms.columns, form, products, out)
    for x in range(out.shape[0]):
        out[x] *= seen.roots[x] * seen.roots[x]


@quadratic_forms.register(SeesRows)
@compiled
def _rows_forms(seen: SeesRows, arms: Any, form: Array, products: Array, out: Array) -> None:
    for x in range(out.shape[0]):
        out[x] = 0.0
        for n in range(x * seen.per_arm, (x + 1) * seen.per_arm):
            for i in range(form.shape[0]):
                out[x] += 0.5 * seen.rows[n, i] * inner(form, i, seen.rows[n])
