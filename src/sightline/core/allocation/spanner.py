"""Barycentric spanners: a few arms in which every other has small coordinates.

| symbol                         | here             | shape  |
|--------------------------------|------------------|--------|
| s(x) x, the arms               | ``actions``, ``scales`` | (k, d), (k,) |
| rank r of the arms             | ``rank[0]``      | int    |
| b_1, ..., b_r, the spanner     | ``members[:r]``  | (d,)   |
| c in s(x) x = sum_j c_j b_j    | ``coordinates[x, :r]`` | (k, d) |

Arms are chosen one by one, each with the largest |det| of those chosen so far and unit vectors
for the rest; then members are exchanged as long as that raises |det| by more than a factor C.
Exchanging b_j for x multiplies det by the coordinate c_j of x, so in the end all coordinates are
within [-C, C] (Awerbuch, Kleinberg, STOC 2004).  There are O(r log r) exchanges of O(k d) each.

Coordinates have no units: those of arms of size 1e70 and 1e-70 are equally good to compute with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import indices, invariant, within
from sightline.jit import compiled

__all__ = ["Spanner", "barycentric_spanner", "spanner"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

# What is left of an arm outside the span of others, below this fraction of the arm itself, is
# rounding: elimination leaves some ten units in the last place, 2e-15.
NEGLIGIBLE = 1e-12


class Spanner(NamedTuple):
    """Members and the coordinates of all arms in them; see the table above."""

    coordinates: Array
    members: Ints
    rank: Ints  # (1,)
    sizes: Array  # workspace (k,)


@invariant(Spanner)
def _check(work: Spanner, name: str) -> None:
    k, d = work.coordinates.shape
    within(f"{name}.coordinates", work.coordinates, ends=False)
    indices(f"{name}.members", work.members, k)
    indices(f"{name}.rank", work.rank, d + 1)


def spanner(k: int, d: int) -> Spanner:
    """Arrays for k arms in d dimensions."""
    return Spanner(
        coordinates=np.zeros((k, d)),
        members=np.zeros(d, dtype=np.int64),
        rank=np.zeros(1, dtype=np.int64),
        sizes=np.zeros(k),
    )


@compiled
def barycentric_spanner(work: Spanner, actions: Array, scales: Array, factor: float) -> None:
    """Write a spanner of the arms ``scales[x] actions[x]``, and their coordinates.

    Parameters
    ----------
    work : Spanner
        Where to write; entries of ``members`` and columns of ``coordinates`` from the rank on are
        meaningless and zero.
    actions, scales : ndarray, shapes (k, d) and (k,)
        Arms, and a factor >= 0 for each: 0 leaves it out, 1 and 0 make a mask.
    factor : float
        C > 1.
    """
    _write_in_units_of_features(work, actions, scales)
    c = work.coordinates
    k, d = c.shape
    r = 0
    while r < d:
        x, column = _largest(c, r, d)
        if c[x, column] == 0.0:
            break
        for z in range(k):
            c[z, r], c[z, column] = c[z, column], c[z, r]
        _exchange(c, x, r)
        work.members[r] = x
        r += 1
        _clear_roundings(work, r)
    work.rank[0] = r
    while r > 0:
        x, column = _largest(c, 0, r)
        if abs(c[x, column]) <= factor:
            break
        _exchange(c, x, column)
        work.members[column] = x


@compiled
def _write_in_units_of_features(work: Spanner, actions: Array, scales: Array) -> None:
    """Start from unit vectors, each as long as the largest feature, so that units do not matter."""
    k, d = actions.shape
    for z in range(k):
        work.sizes[z] = 0.0
    for i in range(d):
        unit = 0.0
        for z in range(k):
            unit = max(unit, abs(scales[z] * actions[z, i]))
        for z in range(k):
            entry = scales[z] * actions[z, i] / unit if unit > 0.0 else 0.0
            work.coordinates[z, i] = entry
            work.sizes[z] = max(work.sizes[z], abs(entry))
        work.members[i] = 0


@compiled
def _largest(c: Array, first: int, last: int) -> tuple[int, int]:
    """Arm and column of the coordinate of largest modulus; the first one among equals."""
    arm, column = 0, first
    largest = abs(c[0, first])
    for z in range(c.shape[0]):
        for i in range(first, last):
            if abs(c[z, i]) > largest:
                arm, column, largest = z, i, abs(c[z, i])
    return arm, column


@compiled
def _exchange(c: Array, x: int, column: int) -> None:
    """Put arm x in the place of a basis vector: the coordinates of all arms in the new basis."""
    k, d = c.shape
    pivot = c[x, column]
    for z in range(k):
        if z != x and c[z, column] != 0.0:
            share = c[z, column] / pivot  # 1 for twins of x, which thereby stay its twins
            for i in range(d):
                c[z, i] -= share * c[x, i]
            c[z, column] = share
    for i in range(d):
        c[x, i] = 1.0 if i == column else 0.0


@compiled
def _clear_roundings(work: Spanner, first: int) -> None:
    """Set to zero what elimination has left of an arm by rounding."""
    k, d = work.coordinates.shape
    for z in range(k):
        for i in range(first, d):
            if abs(work.coordinates[z, i]) <= NEGLIGIBLE * work.sizes[z]:
                work.coordinates[z, i] = 0.0
