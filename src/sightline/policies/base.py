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
import operator
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock
from sightline.core.information.ratio import Mixture
from sightline.jit import compiled, compiled_apart, generic

__all__ = [
    "Choice",
    "Evidence",
    "Policy",
    "choose",
    "choose_among",
    "choose_from",
    "inspect",
    "update",
]


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

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead.  If not, a run costs every round of its horizon."""
        return False

    @property
    def reaches_far(self) -> bool:
        """Whether commitments carry a run beyond 2^53 rounds; else such a run would never end."""
        return self.commits

    @abstractmethod
    def start(self, actions: NDArray[np.float64], noise_std: float) -> Any:
        """State before any data, for these arms (k, d) and this noise level."""


def _checked(choice: Any) -> Choice:
    """Choice of a policy in plain Python, or an error that says what is wrong with it."""
    try:
        arm, probability, wake = choice
        arm, (t, log_t) = operator.index(arm), wake
    except (TypeError, ValueError):
        raise ValueError(
            f"choose must return Choice(arm, probability, wake), wake being a Clock; got {choice!r}"
        ) from None
    if arm < 0:
        raise ValueError(f"choose must return an arm from 0, got {arm}")
    return Choice(arm, probability, Clock(t, log_t))


def _choose(state: Any, clock: Clock, rng: np.random.Generator) -> Choice:
    """Choose an arm for the current round."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


def _inspect(state: Any, clock: Clock) -> Evidence:
    """Report on the best arm, without random numbers and without changing what is chosen next.

    Optional: a policy for which nothing is registered reports no best arm (-1).
    """
    return Evidence(-1, math.nan, math.nan, clock)


@generic
def update(state: Any, arm: int, reward: float) -> None:
    """Learn from the reward of an exploration round."""
    raise TypeError(f"no policy is registered for a state of type {type(state).__name__}")


choose = generic(
    _choose,
    rebuild=lambda arm, p, t, log_t: Choice(arm, p, Clock(t, log_t)),
    check=_checked,
)
inspect = generic(
    _inspect,
    rebuild=lambda best, m, threshold, t, log_t: Evidence(best, m, threshold, Clock(t, log_t)),
)


@choose.returns_plainly
@compiled_apart
def _choose_plainly(
    state: Any, clock: Clock, rng: np.random.Generator
) -> tuple[int, float, int, float]:
    choice = choose(state, clock, rng)
    return choice.arm, choice.probability, choice.wake.t, choice.wake.log_t


@inspect.returns_plainly
@compiled_apart
def _inspect_plainly(state: Any, clock: Clock) -> tuple[int, float, float, int, float]:
    report = inspect(state, clock)
    return report.best, report.evidence, report.threshold, report.wake.t, report.wake.log_t


@compiled
def choose_from(mixture: Mixture, clock: Clock, rng: np.random.Generator) -> Choice:
    """Draw one of two arms, for the current round only."""
    if rng.random() < mixture.probability:
        return Choice(mixture.second, mixture.probability, clock)
    return Choice(mixture.first, 1.0 - mixture.probability, clock)


@compiled
def choose_among(
    probabilities: NDArray[np.float64], clock: Clock, rng: np.random.Generator
) -> Choice:
    """Draw one of all arms, for the current round only."""
    left = rng.random()
    arm = 0
    for x in range(probabilities.shape[0]):
        if probabilities[x] > 0.0:
            arm = x  # the last possible one, if the sum has been rounded to below 1
            left -= probabilities[x]
            if left < 0.0:
                break
    return Choice(arm, probabilities[arm], clock)
