"""The contract of a policy.

A policy is a frozen configuration whose :meth:`Policy.start` makes a state, a ``NamedTuple`` of
arrays that is mutated in place, and two functions registered for the class of that state:

- ``choose(state, clock, rng)`` answers with a :class:`Choice`,
- ``update(state, arm, reward)`` learns.

A choice says until when it holds.  If ``wake`` is the current round, the policy explores: it
wants to see the reward.  If ``wake`` lies ahead, it commits to the arm until then, does not
learn from it, and need not be asked again before: whoever runs it may jump there.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock
from sightline.jit import generic

__all__ = ["Choice", "Evidence", "Policy", "choose", "inspect", "update"]


class Choice(NamedTuple):
    """An arm, the probability with which it was drawn (nan if unknown), and how long it holds."""

    arm: int
    probability: float
    wake: Clock


class Evidence(NamedTuple):
    """What a policy knows about its best arm.

    Attributes
    ----------
    best : int
        Empirically best arm.
    evidence : float
        m_s: half the squared distance to the nearest parameter with another best arm.
    threshold : float
        beta/2 at the current round; the best arm is settled where ``evidence >= threshold``.
        nan if the policy has no confidence level.
    wake : Clock
        First round at which the policy would not play the best arm as a matter of course.
    """

    best: int
    evidence: float
    threshold: float
    wake: Clock


class Policy(ABC):
    """Base of all policies; subclasses are frozen dataclasses."""

    #: Whether choices can reach ahead.  If not, a run costs every single round of its horizon.
    commits: ClassVar[bool] = False

    @abstractmethod
    def start(self, actions: NDArray[np.float64], noise_std: float) -> Any:
        """State before any data, for these arms (k, d) and this noise level."""


@generic
def choose(state: Any, clock: Clock, rng: np.random.Generator) -> Choice:
    """Choose an arm for the current round."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


@generic
def update(state: Any, arm: int, reward: float) -> None:
    """Learn from the reward of an exploration round."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


@generic
def inspect(state: Any, clock: Clock) -> Evidence:
    """Report on the best arm, without random numbers and without changing what is chosen next.

    Optional: a policy for which nothing is registered reports no best arm (-1).
    """
    return Evidence(-1, math.nan, math.nan, clock)
