"""Greedy and epsilon-greedy by least squares: baselines for every other policy.

With probability epsilon the policy plays any arm of the action set, with equal chances, and
otherwise the empirically best one:

    p(x) = epsilon_t / m + (1 - epsilon_t) 1{x = x-hat},

for an action set of m arms.  The probabilities are in closed form.  With epsilon = 0 it is
the greedy policy, which never explores on purpose.  Arms that tie for x-hat, as all do before any
data, share its probability: otherwise the order of the arms would decide.

Guarantees: with epsilon_t = min(1, epsilon / t), regret O(log n) on k independent arms, if epsilon
exceeds 5 k / Delta_min^2 (Auer, Cesa-Bianchi, Fischer, Machine Learning 2002): one must know the
smallest gap.  With a fixed epsilon > 0 regret grows as epsilon n times the mean gap.  Greedy can
settle on a wrong arm permanently; where contexts are diverse enough, so that the best arms show
everything, it is rate-optimal (Bastani, Bayati, Khosravi, Management Science 2021).

With clicks and counts the estimate is that of maximum likelihood.

Cost per round: O(k d + d^2).  It learns from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import number_offered, withhold
from sightline.core.alternatives import HalfSpaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.base import (
    EVERY_KIND,
    Choice,
    Policy,
    begin,
    best_on_offer,
    choose_among,
    learn,
    register_policy,
    report,
)
from sightline.validation import LARGEST, number, one_of, shown

_SCHEDULES = ("fixed", "1/t")


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """The empirically best arm, except for a share of rounds in which any arm is played.

    Parameters
    ----------
    epsilon : float
        Probability of such a round, in [0, 1]; 0 is the greedy policy.
    schedule : {"fixed", "1/t"}
        ``"1/t"`` lets the probability fall as min(1, epsilon / t): ``epsilon``, which may exceed 1,
        is then the expected number of such rounds per factor e of time.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient of reports about the best arm.  The policy never acts on it, but
        takes S from it if the regulariser is ``"matched"``.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"``, sigma^2 / S^2, is the mean of a
        Gaussian posterior with prior standard deviation S.
    """

    epsilon: float = 0.1
    schedule: str = "fixed"
    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = "matched"

    supports = replace(EVERY_KIND, masks_in_contexts=False)

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, at_least=0, at_most=LARGEST)
        if one_of("schedule", self.schedule, _SCHEDULES) == "fixed" and self.epsilon > 1:
            raise ValueError(
                f'epsilon must be at most 1, unless schedule="1/t", got {shown(self.epsilon)}'
            )
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> RidgeGreedyState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        return RidgeGreedyState(
            estimate=estimate,
            confidence=confidence,
            alternatives=half_spaces_for(estimate),
            epsilon=float(self.epsilon),
            falls=self.schedule == "1/t",
            probabilities=np.zeros(len(estimate.arms.rewards)),
        )


@persists()
class RidgeGreedyState(NamedTuple):
    """Estimates from all rounds, and the probabilities they imply."""

    estimate: LeastSquares
    confidence: Any  # for reports only
    alternatives: HalfSpaces | LikelihoodHalfSpaces  # for reports only
    epsilon: float
    falls: bool
    probabilities: Array  # scratch (k,)


@compiled
def _choose(state: RidgeGreedyState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    _probabilities(state, clock, offer, rng, state.probabilities)
    return choose_among(state.probabilities, clock, rng)


@compiled
def _probabilities(
    state: RidgeGreedyState, clock: Clock, offer: Any, rng: Generator, p: Array
) -> None:
    """Write the action probabilities of this round."""
    means, epsilon = state.estimate.arms.means, state.epsilon
    if state.falls:
        epsilon = min(1.0, epsilon * math.exp(-log_round(clock)))
    highest = means[best_on_offer(state, clock, offer)]
    for x in range(p.shape[0]):
        p[x] = 1.0 if means[x] == highest else 0.0
    withhold(offer, p, 0.0)
    ties = 0.0
    for x in range(p.shape[0]):
        ties += p[x]
    share = epsilon / number_offered(offer, p.shape[0])
    for x in range(p.shape[0]):
        p[x] = share + (1.0 - epsilon) * p[x] / ties
    withhold(offer, p, 0.0)


register_policy(
    RidgeGreedyState, choose=_choose, update=learn, inspect=report, probabilities=_probabilities
)
