"""What one exploration round knows before it weighs the arms, and the arrays that it fills."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives.comparison import Comparison, Shifts, shifts
from sightline.core.consistency import invariant, within
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.persistence import persists

__all__ = ["Round", "Weighing", "Workspace", "weighing", "workspace"]

Array = NDArray[np.float64]

# m_1 = 0 would make eta infinite: in units of the noise variance, m is taken as at least this.
LEAST_M = 0.5


@persists()
class Workspace(NamedTuple):
    """What one exploration round computes, kept so that no round allocates."""

    weights: Array  # (k,)
    gaps: Array  # (k,)
    gains: Array  # (k,)
    optimism: Array  # (k,)
    shift: Array  # (d,)
    form: Array  # (d, d)
    shifts: Shifts


def workspace(k: int, d: int) -> Workspace:
    """Arrays for k arms in d dimensions."""
    return Workspace(
        weights=np.zeros(k),
        gaps=np.zeros(k),
        gains=np.zeros(k),
        optimism=np.zeros(k),
        shift=np.zeros(d),
        form=np.zeros((d, d)),
        shifts=shifts(k, d),
    )


class Weighing(NamedTuple):
    """How alternatives are weighed: the rule for eta, and what it remembers."""

    learning_rate: Any
    largest_m: Array  # (1,): max m_l so far, in units of the noise variance


@invariant(Weighing)
def _check(part: Weighing, name: str) -> None:
    within(f"{name}.largest_m", part.largest_m, 0.0)


def weighing(learning_rate: Any) -> Weighing:
    """Weighing before any data."""
    return Weighing(learning_rate, np.array([LEAST_M]))


class Round(NamedTuple):
    """All that gap estimates and information gains may look at.

    Attributes
    ----------
    estimate : LeastSquares
        What the data say; ``estimate.arms`` is the table of arms.
    alternatives : HalfSpaces or Projections
        Distances to the parameters under which another arm is best.
    comparison : Comparison
        x-hat as ``best``, and the least of the distances.
    beta : float
        Confidence coefficient at local time s.
    ucb_arm : int
        Arm with the largest upper confidence bound.
    weighing : Weighing
        How alternatives are weighed.
    work : Workspace
        Arrays that a gain may overwrite, but for ``gaps``.
    """

    estimate: LeastSquares
    alternatives: Any
    comparison: Comparison
    beta: float
    ucb_arm: int
    weighing: Weighing
    work: Workspace
