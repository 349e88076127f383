"""Least squares without a regulariser, for methods that first play arms that span the space.

Unregularised estimates do not depend on the basis in which arms are written.  Here it is a
barycentric spanner: arms become vectors with entries in [-2, 2], whatever the units of the
features, and once every member has been played V >= I.  The regulariser that :class:`LeastSquares`
needs before is then a change of 1e-8, relatively, and of ever less as data come in.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.design import SPANNER_FACTOR
from sightline.core.allocation.spanner import barycentric_spanner, spanner
from sightline.core.estimation.least_squares import LeastSquares, least_squares, refresh
from sightline.core.estimation.table import weighted_table
from sightline.core.model import Model
from sightline.jit import compiled

__all__ = ["first_unplayed", "forget", "unregularised"]

# Far below the noise beside V >= I.  Not smaller: a direction that is not played yet has the width
# 1 / this, whose rounding errors reach all others until the next refresh.
_VANISHING = 1e-8


def unregularised(model: Model, policy: str) -> tuple[LeastSquares, NDArray[np.int64]]:
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
def first_unplayed(estimate: LeastSquares, arms: NDArray[np.int64], times: float) -> int:
    """First of some arms with fewer pulls than ``times``; -1 if there is none."""
    for i in range(arms.shape[0]):
        if estimate.arms.pulls[arms[i]] < times:
            return int(arms[i])
    return -1


@compiled
def forget(estimate: LeastSquares) -> None:
    """Discard all data."""
    for x in range(estimate.arms.pulls.shape[0]):
        estimate.arms.pulls[x] = 0.0
        estimate.arms.sums[x] = 0.0
    estimate.learned.rounds[0] = 0
    refresh(estimate)
