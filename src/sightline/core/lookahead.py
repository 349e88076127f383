"""Lookahead: V^-1 and widths of an estimate after further pulls, before their outcomes are known.

V depends on the arms played and not on their outcomes, so future precision is known; means do not
change.

| symbol                     | here                    | shape  |
|----------------------------|-------------------------|--------|
| (V + sum of n_x Y_x^T Y_x)^-1 | ``gram_inverse``     | (d, d) |
| squared norms in it        | ``squared_widths``, ``seen_widths`` | (k,) |

n_x may be infinite: then the observations of x are known perfectly.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sightline.core.estimate import LeastSquares, LikelihoodFit, SeveralRows, StreamData
from sightline.core.least_squares import note_information
from sightline.core.linalg import (
    Array,
    factorise,
    inner_products,
    multiply,
    solve,
    solve_transposed,
)
from sightline.core.persistence import computed
from sightline.jit import compiled

# Information of infinitely many pulls, where a likelihood is computed with their number.
_PERFECT = 1e9


@computed
class Lookahead(NamedTuple):
    """An estimate with other V^-1 and widths; it shares means and data with its source."""

    estimate: LeastSquares


def lookahead_of(estimate: LeastSquares) -> Lookahead:
    """View of an estimate, to be filled by :func:`begin_now`."""
    arms = estimate.arms
    widths = np.zeros_like(arms.squared_widths)
    seen = arms.observations
    # a fit to the likelihood needs the data themselves
    fitted = seen.fit is not None and seen.stream is None
    shared = arms.seen_widths is arms.squared_widths
    return Lookahead(
        estimate._replace(
            learned=estimate.learned._replace(
                gram_inverse=np.zeros_like(estimate.learned.gram_inverse)
            ),
            arms=arms._replace(
                squared_widths=widths,
                seen_widths=widths if shared else np.zeros_like(widths),
                pulls=np.zeros_like(widths) if fitted else arms.pulls,
            ),
        )
    )


@compiled
def begin_now(view: LeastSquares, estimate: LeastSquares) -> None:
    """Copy V^-1 and widths of an estimate into a view: O(k + d^2)."""
    inverse, known = view.learned.gram_inverse, estimate.learned.gram_inverse
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[0]):
            inverse[i, j] = known[i, j]
    for x in range(view.arms.squared_widths.shape[0]):
        view.arms.squared_widths[x] = estimate.arms.squared_widths[x]
        view.arms.seen_widths[x] = estimate.arms.seen_widths[x]
        view.arms.pulls[x] = estimate.arms.pulls[x]  # where these are not the same memory


@compiled
def add_pulls(view: LeastSquares, arm: int, count: float) -> None:
    """Add ``count`` pulls of an arm to a view: O(p (k d + d^2))."""
    seen = view.arms.observations
    if seen.are_rewards:
        _add_rewards(seen.stream, seen.fit, view, arm, count)
    else:
        _add_rows(seen.several, view, arm, count)


@compiled
def add_gram_matrix(view: LeastSquares, factor: Array, gram: Array, worth: float = 1.0) -> None:
    """Add ``worth`` times a matrix to V = R^T R in a view: O(d^3 + k d^2).

    For streams, whose table no longer has the rows of open decisions.
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
    note_information(arms.observations.fit, view, 0, arms.squared_widths.shape[0])


@compiled
def _shrink(view: LeastSquares, row: Array, count: float) -> float:
    """Change V^-1 and the widths of rewards by observations of a row; return the factor."""
    inverse, widths = view.learned.gram_inverse, view.arms.squared_widths
    w, products = view.scratch.direction, view.scratch.products
    squared_width = multiply(inverse, row, w, 0.0)
    if squared_width <= 0.0:  # everything about it is known
        return 0.0
    factor = 1.0 / (1.0 / count + squared_width)
    for i in range(w.shape[0]):
        for j in range(w.shape[0]):
            inverse[i, j] -= factor * (w[i] * w[j])
    inner_products(view.arms.columns, w, products)
    for x in range(widths.shape[0]):
        widths[x] = max(widths[x] - factor * (products[x] * products[x]), 0.0)
    return factor


@compiled
def _add_rewards(
    stream: StreamData | None, fit: LikelihoodFit | None, view: LeastSquares, arm: int, count: float
) -> None:
    """Add pulls with rewards as observations; for clicks and counts by their information."""
    arms = view.arms
    if fit is None:
        _shrink(view, arms.rewards[arm], count)
        return
    roots = fit.roots
    worth = roots[arm] * roots[arm]
    _shrink(view, arms.rewards[arm], count * worth)
    for x in range(arms.seen_widths.shape[0]):
        arms.seen_widths[x] = roots[x] * roots[x] * arms.squared_widths[x]
    if stream is None:
        arms.pulls[arm] += min(count, _PERFECT / worth)


@compiled
def _add_rows(several: SeveralRows | None, view: LeastSquares, arm: int, count: float) -> None:
    """Add pulls of all rows that an arm shows."""
    seen, widths, p = view.arms.observations, view.arms.seen_widths, view.arms.observations.per_arm
    products = view.scratch.products if several is None else several.products
    for n in range(arm * p, arm * p + p):
        factor = _shrink(view, seen.rows[n], count)
        if factor > 0.0:
            inner_products(seen.columns, view.scratch.direction, products)
            for z in range(widths.shape[0]):
                for i in range(z * p, z * p + p):
                    widths[z] -= factor * (products[i] * products[i])
                widths[z] = max(widths[z], 0.0)
