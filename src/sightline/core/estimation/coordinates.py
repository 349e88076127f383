"""Arms in a basis of their span.

No inner product of two arms changes, so no estimate does.  But V^-1 no longer holds 1 / lambda in
directions that matter to no arm, beside which the digits of all others drown.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.core.linalg import rank_one_update, solve
from sightline.jit import compiled

__all__ = ["basis_of_differences", "span_of", "spanning_coordinates"]

Array = NDArray[np.float64]

_NEGLIGIBLE = 1e-9


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
    distinct, which = _distinct_rows(actions)
    return np.ascontiguousarray((distinct @ basis[:rank].T)[which])


def _distinct_rows(rows: Array) -> tuple[Array, NDArray[np.intp]]:
    """Distinct rows in lexicographic order, and the index of each row among them.

    ``np.unique(rows, axis=0)`` gives the same, but it sorts while it holds the interpreter's lock,
    and a service decides nothing meanwhile.
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
    """Orthonormal basis, as columns, of all that comparing arms is about.

    It is that of the span of what arms show, if it has all differences of their rewards: a duel
    shows nothing of what all items have in common, and no comparison needs it.  Else it is that of
    the span of rewards and what is seen.
    """
    if seen.any():
        basis, differences = span_of(seen), rewards - rewards[0]
        outside = differences - (differences @ basis) @ basis.T
        if np.abs(outside).max() <= _NEGLIGIBLE * np.abs(rewards).max():
            return basis
    return span_of(np.vstack([rewards, seen]))
