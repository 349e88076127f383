"""Least squares without a regulariser, for methods that first play arms that span the space.

Unregularised estimates do not depend on the basis in which arms are written.  Here it is a
barycentric spanner: arms become vectors with entries in [-2, 2], whatever the units of the
features, and once every member has been played V >= I.  The regulariser that :class:`LeastSquares`
needs before is then a change of 1e-8, relatively, and of ever less as data come in.

With contexts no order of arms can be planned.  Each round plays the arm of the action set that lies
farthest outside the span of those played so far (:class:`Span`), in the same coordinates: some
member of the spanner lies outside by 1 / sqrt(d) at least, but its context may be rare.  A
distance below the root of the regulariser counts as zero.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.action_set import nth_offered, number_offered
from sightline.core.allocation.design import SPANNER_FACTOR, barycentric_spanner, spanner
from sightline.core.estimate import LeastSquares, weighted_table
from sightline.core.least_squares import least_squares, refresh
from sightline.core.linalg import Array, Ints, inner, norm
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists, within
from sightline.jit import compiled

# Far below the noise beside V >= I.  Not smaller: a direction that is not played yet has the width
# 1 / this, whose rounding errors reach all others until the next refresh.
_VANISHING = 1e-8
# Distances within this factor are ties, of which the first arm is taken: rounding must not decide.
_MORE = 1.0 + 1e-9


def unregularised(model: Model, policy: str) -> tuple[LeastSquares, Ints]:
    """Estimates before any data, and the members of the spanner in which arms are written."""
    weights, actions = model.needs_weights(policy), model.rewards
    k, d = actions.shape
    work = spanner(k, d)
    barycentric_spanner(work, actions, np.ones(k), SPANNER_FACTOR)
    rank = int(work.rank[0])
    # with all arms zero there is one coordinate, which is zero
    coordinates = np.ascontiguousarray(work.coordinates[:, : max(rank, 1)])
    members = work.members[:rank].copy()
    # an observation of an arm adds its weight squared to V
    least = float(weights[members].min(initial=1.0))
    table = weighted_table(coordinates, weights)
    return least_squares(model, _VANISHING * least**2, arms=table), members


@compiled
def first_unplayed(estimate: LeastSquares, arms: Ints, times: float) -> int:
    """First of some arms with fewer pulls than ``times``; -1 if there is none."""
    for i in range(arms.shape[0]):
        if estimate.arms.pulls[arms[i]] < times:
            return int(arms[i])
    return -1


@persists("basis", "rank")
class Span(NamedTuple):
    """The arms to be played first: members of a spanner, or arms outside the span so far."""

    members: Ints  # (r,) if every round offers all arms, otherwise none
    basis: Array  # (d, d): the first ``rank`` rows are orthonormal
    rank: Ints  # (1,): of the arms played so far, if there are contexts
    most: int  # rank of all arms
    residual: Array  # scratch (d,)


@invariant(Span)
def _check(played: Span, name: str) -> None:
    indices(f"{name}.rank", played.rank, played.most + 1)
    within(f"{name}.basis", played.basis, -1.001, 1.001)
    rows = played.basis[: played.rank[0]]
    if np.abs(rows @ rows.T - np.eye(len(rows))).max(initial=0.0) > 1e-6:
        raise ValueError(f"{name}.basis must have orthonormal rows")


def span(d: int, most: int, members: Ints | None = None) -> Span:
    """Span of nothing, in d coordinates; of all arms it has the dimension ``most``.

    With ``members`` these are played first.
    """
    first = np.zeros(0, dtype=np.int64) if members is None else members
    return Span(first, np.zeros((d, d)), np.zeros(1, dtype=np.int64), most, np.zeros(d))


@compiled
def spans(played: Span) -> bool:
    """Whether every arm is in the span of those played, once no offered arm is outside."""
    return bool(played.members.shape[0] > 0 or played.rank[0] == played.most)


@compiled
def next_outside(played: Span, estimate: LeastSquares, offer: Any) -> int:
    """Arm of the action set outside of the span; -1 if there is none."""
    if played.members.shape[0] > 0:
        return first_unplayed(estimate, played.members, 1.0)
    farthest, largest = -1, math.sqrt(estimate.regulariser)
    if spans(played):
        return farthest
    for n in range(number_offered(offer, estimate.arms.means.shape[0])):
        x = nth_offered(offer, n)
        distance = _write_residual(played, estimate.arms.rewards[x])
        if distance > _MORE * largest:
            farthest, largest = x, distance
    return farthest


@compiled
def _write_residual(played: Span, row: Array) -> float:
    """Write the part of an arm outside the span; return its length."""
    residual = played.residual
    d = residual.shape[0]
    for i in range(d):
        residual[i] = row[i]
    for _ in range(2):  # the second pass removes what rounding left of the first
        for m in range(played.rank[0]):
            along = inner(played.basis, m, residual)
            for i in range(d):
                residual[i] -= along * played.basis[m, i]
    return norm(residual)


@compiled
def note_played(played: Span, estimate: LeastSquares, arm: int) -> None:
    """Extend the span by an arm that was played."""
    if spans(played):
        return
    length = _write_residual(played, estimate.arms.rewards[arm])
    if length > math.sqrt(estimate.regulariser):
        for i in range(played.residual.shape[0]):
            played.basis[played.rank[0], i] = played.residual[i] / length
        played.rank[0] += 1


@compiled
def forget(estimate: LeastSquares) -> None:
    """Discard all data."""
    for x in range(estimate.arms.pulls.shape[0]):
        estimate.arms.pulls[x] = 0.0
        estimate.arms.sums[x] = 0.0
    estimate.learned.rounds[0] = 0
    refresh(estimate)
