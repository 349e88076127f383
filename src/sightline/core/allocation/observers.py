"""A global observer set: a few arms that together show all that can be seen.

Rows of a barycentric spanner of everything that arms show name them; where arms show several rows,
those that the others make superfluous are left out.  A sweep plays every member once, and estimates
from n sweeps have the error covariance sigma^2 G^-1 / n, G the sum of Y_x^T Y_x over members.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.design import SPANNER_FACTOR, barycentric_spanner, spanner
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares
from sightline.core.model import Model
from sightline.jit import compiled

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def observer_set(observations: Array) -> Ints:
    """Arms whose rows span what all rows span; in the order of their numbers.

    Parameters
    ----------
    observations : ndarray, shape (k, p, d)
        Y.
    """
    spanning = _spanning_rows(observations)
    members: Ints = np.unique(spanning // observations.shape[1])
    if observations.shape[1] > 1:  # an arm may show what was named of another
        for arm in members.tolist():
            others = members[members != arm]
            if others.size and _spanning_rows(observations[others]).size == spanning.size:
                members = others
    return members


def _spanning_rows(observations: Array) -> Ints:
    """Rows of a barycentric spanner of all rows, counted through all arms."""
    rows = np.ascontiguousarray(observations.reshape(-1, observations.shape[2]))
    work = spanner(*rows.shape)
    barycentric_spanner(work, rows, np.ones(len(rows)), SPANNER_FACTOR)
    return work.members[: int(work.rank[0])]


def sweeping(model: Model, regulariser: float, policy: str) -> tuple[LeastSquares, Ints]:
    """Estimates before any data, and the arms of a sweep.

    Parameters
    ----------
    model : Model
        Arms, what they show, and the noise.
    regulariser : float
        lambda, in units of the largest squared row that a sweep shows: a number without units.
    policy : str
        Who asks, for the sentence where nothing can be seen.
    """
    members = observer_set(model.observations)
    if not members.size and (model.rewards != model.rewards[0]).any():
        raise ValueError(
            f"{policy} needs arms that show something; in this problem all observations are zero"
        )
    largest = float(np.square(model.observations[members]).sum(axis=2).max(initial=0.0))
    return least_squares(model, regulariser * (largest or 1.0)), members


@compiled
def next_of_sweep(estimate: LeastSquares, members: Ints) -> tuple[int, float]:
    """Find the first member that a sweep under way still lacks, and count whole sweeps.

    The arm is -1 between sweeps.  Members that have been played more often than others, as where
    outcomes come late, wait for these.
    """
    pulls = estimate.arms.pulls
    most, least = 0.0, np.inf
    for i in range(members.shape[0]):
        most = max(most, pulls[members[i]])
        least = min(least, pulls[members[i]])
    for i in range(members.shape[0]):
        if pulls[members[i]] < most:
            return int(members[i]), least
    return -1, most
