"""Maximum information: learn most about the widest difference to the best arm, until it is settled.

The rule "maximum informative pair" for dueling bandits (Saha, NeurIPS 2021), for bandits and for
all games, with the exploitation of IDS.  An arm z is plausible while it may be better than x-hat:

    <z, theta-hat> + sqrt(beta) |x-hat - z| >= <x-hat, theta-hat>,    norms in V^-1.

Of all plausible arms z the policy takes the one with the widest x-hat - z.  It plays the arm that
reduces the width of that difference most (the directed gain of Kirschner, Lattimore,
Krause, COLT 2020), whatever its reward.  If no arm informs about the difference, it plays the arm
of largest log-det gain, and x-hat if no arm shows anything.  While
x-hat alone is plausible at the level beta_{s, t log t}, the policy commits to it.

Guarantees: commitments are as certain as those of IDS, and exploration ends in a game in which all
differences can be seen.  Regret is then O(log n), with a constant that counts rounds and not what
they cost, and grows linearly until x-hat is settled.

Cost per exploration round: O(k d + d^2) where arms show one number, O(k p d^2) where they show p.
A stretch of exploitation costs one test.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.alternatives import HalfSpaces, half_spaces
from sightline.core.clock import Clock, is_before, log_round
from sightline.core.confidence import ConfidenceRule, acting_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.gains import gains_along, log_det_gains, write_widest
from sightline.core.linalg import Array, first_largest
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    Supports,
    begin,
    compare_to_best,
    learn,
    register_policy,
    report_commitment,
    settled_before,
)

# A gain after n rounds is of order 1 / n; what rounding makes of none is of order 1e-32.
_NOTHING = 1e-20


@dataclass(frozen=True)
class MaximumInformation(Policy):
    """Learn about the difference to the best arm that is known least, until the best is settled.

    Parameters
    ----------
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient, used at delta = 1/(t log t) for plausible arms and, which is the
        same, for the exploitation test.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    """

    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = 1.0

    supports = Supports(games=True, noise_per_arm=True, unknown_noise=True, delays=True)
    commits = True
    randomises = False

    def __post_init__(self) -> None:
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> MaximumInformationState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        k, d = estimate.arms.rewards.shape
        return MaximumInformationState(
            estimate=estimate,
            confidence=confidence,
            alternatives=half_spaces(k),
            direction=np.zeros(d),
            gains=np.zeros(k),
        )


@persists()
class MaximumInformationState(NamedTuple):
    """Estimates from exploration rounds."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces
    direction: Array  # scratch (d,)
    gains: Array  # scratch (k,)


@compiled
def _choose(state: MaximumInformationState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else learn most."""
    comparison = compare_to_best(state, offer)
    wake = settled_before(state, comparison, clock)
    if is_before(clock, wake):
        return Choice(comparison.best, 1.0, wake)
    # the widest difference x-hat - z to a plausible arm, and the arm that informs most about it
    estimate, gains = state.estimate, state.gains
    beta = acting_beta(state.confidence, estimate.learned.log_det[0], log_round(clock))
    write_widest(estimate, state.alternatives, comparison, beta, state.direction)
    gains_along(estimate, state.direction, gains)
    arm = first_largest(gains)
    if gains[arm] <= _NOTHING:
        log_det_gains(estimate, gains)
        arm = first_largest(gains)
    if gains[arm] <= _NOTHING:
        arm = comparison.best
    return Choice(arm, 1.0, clock)


register_policy(MaximumInformationState, choose=_choose, update=learn, inspect=report_commitment)
