"""How sure one will be: V^-1 and widths as if arms had been played more often than they were.

What will be observed is not known, but how much it will tell is: V depends on the arms played and
not on their outcomes.  Means stay what they are.

| symbol                     | here                    | shape  |
|----------------------------|-------------------------|--------|
| (V + sum of n_x Y_x^T Y_x)^-1 | ``gram_inverse``     | (d, d) |
| squared norms in it        | ``squared_widths``, ``seen_widths`` | (k,) |

n_x may be infinite: then what x shows is known perfectly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.least_squares import note_worth
from sightline.core.estimation.seen import (
    SeesLaw,
    SeesLawStream,
    SeesRewards,
    SeesRow,
    SeesRows,
    SeesStream,
)
from sightline.core.linalg.cholesky import factorise, solve, solve_transposed
from sightline.core.linalg.vectors import inner_products, multiply
from sightline.core.persistence import computed
from sightline.jit import compiled, generic

__all__ = ["Foreseen", "begin_now", "foresee", "foresee_gram", "foreseen"]

Array = NDArray[np.float64]

# Information that stands for all there is, where a likelihood has to be computed with it.
_PERFECT = 1e9


@computed
class Foreseen(NamedTuple):
    """An estimate with V^-1 and widths of its own; means and data are those of another."""

    estimate: LeastSquares


def foreseen(estimate: LeastSquares) -> Foreseen:
    """View of an estimate, to be filled by :func:`begin_now`; every kernel can read it."""
    arms = estimate.arms
    widths = np.zeros_like(arms.squared_widths)
    by_law = isinstance(arms.seen, SeesLaw)  # whose likelihood needs the data themselves
    shared = arms.seen_widths is arms.squared_widths
    return Foreseen(
        estimate._replace(
            learned=estimate.learned._replace(
                gram_inverse=np.zeros_like(estimate.learned.gram_inverse)
            ),
            arms=arms._replace(
                squared_widths=widths,
                seen_widths=widths if shared else np.zeros_like(widths),
                pulls=np.zeros_like(widths) if by_law else arms.pulls,
            ),
        )
    )


@compiled
def begin_now(view: LeastSquares, estimate: LeastSquares) -> None:
    """Make a view as sure as an estimate is: O(k + d^2)."""
    inverse, known = view.learned.gram_inverse, estimate.learned.gram_inverse
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[0]):
            inverse[i, j] = known[i, j]
    for x in range(view.arms.squared_widths.shape[0]):
        view.arms.squared_widths[x] = estimate.arms.squared_widths[x]
        view.arms.seen_widths[x] = estimate.arms.seen_widths[x]
    _begin_data(view.arms.seen, view, estimate)


@generic
def _begin_data(seen: Any, view: LeastSquares, estimate: LeastSquares) -> None:
    """Let a view have the data of an estimate, where it has its own."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@_begin_data.register(SeesRewards)
@_begin_data.register(SeesStream)
@_begin_data.register(SeesLawStream)
@_begin_data.register(SeesRow)
@_begin_data.register(SeesRows)
@compiled
def _data_are_shared(seen: Any, view: LeastSquares, estimate: LeastSquares) -> None:
    pass


@_begin_data.register(SeesLaw)
@compiled
def _copy_pulls(seen: SeesLaw, view: LeastSquares, estimate: LeastSquares) -> None:
    for x in range(view.arms.pulls.shape[0]):
        view.arms.pulls[x] = estimate.arms.pulls[x]


@generic
def _foresee(seen: Any, view: LeastSquares, arm: int, count: float) -> None:
    """Foresee all rows that an arm shows."""
    raise TypeError(f"nothing is seen by a {type(seen).__name__}")


@compiled
def foresee(view: LeastSquares, arm: int, count: float) -> None:
    """Change a view as if an arm had been played ``count`` times more: O(p (k d + d^2))."""
    _foresee(view.arms.seen, view, arm, count)


@compiled
def foresee_gram(view: LeastSquares, factor: Array, gram: Array, worth: float = 1.0) -> None:
    """Change a view as if V = R^T R had grown by a matrix, times a number: O(d^3 + k d^2).

    For streams, whose rows in flight are in no table.
    """
    inverse, arms, w = view.learned.gram_inverse, view.arms, view.scratch.direction
    total = view.scratch.factor
    d = w.shape[0]
    for i in range(d):
        for j in range(d):
            entry = worth * gram[i, j]
            for m in range(min(i, j) + 1):
                entry += factor[m, i] * factor[m, j]
            inverse[i, j] = entry
    factorise(inverse, total)
    for i in range(d):
        for j in range(d):
            w[j] = 1.0 if i == j else 0.0
        solve_transposed(total, w)
        solve(total, w)
        for j in range(d):
            inverse[i, j] = w[j]
    for x in range(arms.squared_widths.shape[0]):
        arms.squared_widths[x] = multiply(inverse, arms.rewards[x], w, 0.0)
    note_worth(arms.seen, view, 0, arms.squared_widths.shape[0])


@compiled
def _shrink(view: LeastSquares, row: Array, count: float) -> float:
    """Change V^-1 and the widths of rewards by observations of a row; return by what factor."""
    inverse, widths = view.learned.gram_inverse, view.arms.squared_widths
    w, products = view.scratch.direction, view.scratch.products
    squared_width = multiply(inverse, row, w, 0.0)
    if squared_width <= 0.0:  # it shows nothing that is not known
        return 0.0
    factor = 1.0 / (1.0 / count + squared_width)
    for i in range(w.shape[0]):
        for j in range(w.shape[0]):
            inverse[i, j] -= factor * (w[i] * w[j])
    inner_products(view.arms.columns, w, products)
    for x in range(widths.shape[0]):
        widths[x] = max(widths[x] - factor * (products[x] * products[x]), 0.0)
    return factor


@_foresee.register(SeesRewards)
@_foresee.register(SeesStream)
@compiled
def _foresee_reward(seen: Any, view: LeastSquares, arm: int, count: float) -> None:
    _shrink(view, view.arms.rewards[arm], count)


@_foresee.register(SeesLaw)
@compiled
def _foresee_law(seen: SeesLaw, view: LeastSquares, arm: int, count: float) -> None:
    """Count what a reward tells near theta-hat."""
    _foresee_new_law(seen, view, arm, count)
    view.arms.pulls[arm] += min(count, _PERFECT / (seen.roots[arm] * seen.roots[arm]))


@_foresee.register(SeesLawStream)
@compiled
def _foresee_new_law(seen: Any, view: LeastSquares, arm: int, count: float) -> None:
    """Do the same for an arm that does not stay, and of which nothing is counted."""
    arms, worth = view.arms, seen.roots[arm] * seen.roots[arm]
    _shrink(view, arms.rewards[arm], count * worth)
    for x in range(arms.seen_widths.shape[0]):
        arms.seen_widths[x] = seen.roots[x] * seen.roots[x] * arms.squared_widths[x]


@_foresee.register(SeesRow)
@_foresee.register(SeesRows)
@compiled
def _foresee_rows(seen: Any, view: LeastSquares, arm: int, count: float) -> None:
    widths, p = view.arms.seen_widths, seen.per_arm
    for n in range(arm * p, arm * p + p):
        factor = _shrink(view, seen.rows[n], count)
        if factor > 0.0:
            inner_products(seen.columns, view.scratch.direction, seen.products)
            for z in range(widths.shape[0]):
                for i in range(z * p, z * p + p):
                    widths[z] -= factor * (seen.products[i] * seen.products[i])
                widths[z] = max(widths[z], 0.0)
