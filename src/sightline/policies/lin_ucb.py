"""LinUCB, also known as OFUL: play the arm with the largest upper confidence bound.

Guarantees: regret O(d sqrt(n) log n) in the worst case (Abbasi-Yadkori, Pal, Szepesvari,
NeurIPS 2011).  Not asymptotically optimal: on the end-of-optimism problem its regret per log n
exceeds c* without bound (Lattimore, Szepesvari, AISTATS 2017).

Cost per round: O(k d + d^2).  It learns from every round and never commits.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives import HalfSpaces, half_spaces, least_distance
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import (
    Confidence,
    ConfidenceRule,
    LogDet,
    global_beta,
    ridge,
    valid_regulariser,
    valid_rule,
)
from sightline.core.gaps import optimistic_arm
from sightline.core.least_squares import LeastSquares, best_arm, least_squares, observe
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update

__all__ = ["LinUCB", "LinUCBState"]


class LinUCBState(NamedTuple):
    """Estimates from all rounds."""

    estimate: LeastSquares
    confidence: Confidence
    alternatives: HalfSpaces  # for reports only


@dataclass(frozen=True)
class LinUCB(Policy):
    """Optimism in the face of uncertainty.

    Parameters
    ----------
    confidence : LogDet, LogLog or FixedBeta
        Confidence coefficient, used at delta = 1/(t log t): the level of the exploitation test
        of IDS, so that the two are compared at equal confidence.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    """

    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = 1.0

    def __post_init__(self) -> None:
        valid_rule(self.confidence)
        valid_regulariser(self.regulariser)

    def start(self, actions: NDArray[np.float64], noise_std: float) -> LinUCBState:
        """State before any data."""
        regulariser = ridge(self.regulariser, self.confidence, noise_std)
        estimate = least_squares(actions, regulariser)
        k, d = estimate.actions.shape
        return LinUCBState(
            estimate=estimate,
            confidence=self.confidence.build(d, noise_std, regulariser),
            alternatives=half_spaces(k),
        )


@choose.register(LinUCBState)
@compiled
def choose_lin_ucb(state: LinUCBState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Largest upper confidence bound."""
    estimate = state.estimate
    beta = global_beta(state.confidence, estimate.log_det[0], log_round(clock))
    return Choice(optimistic_arm(estimate, beta), 1.0, clock)


@update.register(LinUCBState)
@compiled
def update_lin_ucb(state: LinUCBState, arm: int, reward: float) -> None:
    """Learn from every round."""
    observe(state.estimate, arm, reward)


@inspect.register(LinUCBState)
@compiled
def inspect_lin_ucb(state: LinUCBState, clock: Clock) -> Evidence:
    """Report what IDS would on the same data; LinUCB itself never acts on it."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = least_distance(state.alternatives, estimate, best)
    beta = global_beta(state.confidence, estimate.log_det[0], log_round(clock))
    return Evidence(best, 0.5 * least, 0.5 * beta, clock)
