"""What a session answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Decision", "Pending", "Status"]


@dataclass(frozen=True)
class Decision:
    """Answer to one question.

    Attributes
    ----------
    id : int
        Under which to tell the reward.
    arm : int
        Row of the actions.
    action : ndarray, shape (d,)
        Its features.
    probability : float
        With which this arm was drawn given all rewards told before; nan if unknown.
    exploring : bool
        Whether the policy will learn from the reward.
    round : int
        Number of the question, from 1.
    """

    id: int
    arm: int
    action: NDArray[np.float64]
    probability: float
    exploring: bool
    round: int


class Pending(NamedTuple):
    """A decision whose reward has not been told.

    Attributes
    ----------
    id : int
        Under which to tell the reward.
    arm : int
        Row of the actions.
    exploring : bool
        Whether the policy will learn from the reward.
    """

    id: int
    arm: int
    exploring: bool


@dataclass(frozen=True)
class Status:
    """Where an experiment stands.

    Attributes
    ----------
    best : int or None
        Empirically best arm; None if the policy does not report one.
    settled : bool or None
        Whether ``evidence >= threshold``: at the confidence level 1 / (t log t) of the current
        round t, no plausible parameter has another best arm.  None if the policy has no level.
    evidence, threshold : float
        m_s and beta_{s, t log t} / 2.
    round : int
        The next question.
    next_exploration : int or None
        First round at which the policy would learn again if nothing more is told; None: never.
    explorations : int
        Rewards learned from.
    pending : int
        Questions whose reward has not been told.
    """

    best: int | None
    settled: bool | None
    evidence: float
    threshold: float
    round: int
    next_exploration: int | None
    explorations: int
    pending: int
