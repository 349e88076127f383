"""LinMED: draw every arm with a probability that falls with the evidence against it.

With f(x) = exp(-gap(x)^2 / (beta |x-hat - x|^2)), the norm taken in V^-1, and f = 1 for x-hat,

    p(x) is proportional to q(x) f(x),
    q = a_opt pi + (1 - a_emp - a_opt) / k + a_emp at x-hat,

where pi is an optimal design of the arms sqrt(f(x)) x.  Before any data x-hat is arbitrary, and its
share is spread over all arms.  The probabilities are in closed form and
never vanish, so the data of a run serve to evaluate other policies.

If only some arms can be played, as in a context, x-hat, f, the design and k are those of the action
set.

Guarantees: regret O(d sqrt(n) log n) in the worst case, and O((d^2 / Delta_min) log(n)^2 loglog(n))
given the smallest gap (Balagopalan, Jun, AISTATS 2025).  Not asymptotically optimal.

Cost per round: O(k d + d^2), and a design (some ten steps of O(k d) at d = 2, a hundred at d = 10)
whenever f or the action set has changed.  It learns from every round and never commits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import number_offered, withhold
from sightline.core.allocation.design import Design, design, optimal_design
from sightline.core.alternatives import HalfSpaces, half_spaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, global_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import invariant, persists, within
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    Supports,
    begin,
    choose_among,
    compare_to_best,
    learn,
    register_policy,
    report,
)
from sightline.validation import LARGEST, number

# Arms with f below e^-46 = 1e-20 are left out: less than the last bit of any probability.
LARGEST_EXPONENT = 46.0
# As much as the staleness allowed by default, so that neither is wasted on the other.
DESIGN_TOLERANCE = 0.05


@dataclass(frozen=True)
class LinMED(Policy):
    """Minimum empirical divergence for linear bandits.

    Parameters
    ----------
    empirical : float
        a_emp, the share of x-hat in q.  0.9 is the middle one of the authors' three settings: 0.99
        starts badly in one run of twenty, 0.5 explores for long (end of optimism, 20 seeds).
    design : float
        a_opt, the share of the optimal design; half of what ``empirical`` leaves, as theirs.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient, used at delta = 1/(t log t): the level of LinUCB and of the
        exploitation test of IDS.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"``, sigma^2 / S^2, is the authors'.
    staleness : float
        The design is computed again when some f(x) has changed by more than this fraction; its
        largest leverage is then at most (1 + staleness)^2 times what it was.  5 % makes designs
        rare, and 0 makes one in every round.  Another action set always needs another design.
    """

    empirical: float = 0.9
    design: float = 0.05
    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = "matched"
    staleness: float = 0.05

    supports = Supports(
        masks=True, contexts=True, noise_per_arm=True, unknown_noise=True, delays=True
    )

    def __post_init__(self) -> None:
        number("empirical", self.empirical, at_least=0, at_most=LARGEST)
        number("design", self.design, at_least=0, at_most=LARGEST)
        number("staleness", self.staleness, at_least=0, at_most=LARGEST)
        if self.empirical + self.design >= 1.0:
            raise ValueError(
                "empirical + design must be below 1, so that every arm has a share, "
                f"got {self.empirical} + {self.design}"
            )
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> LinMEDState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        k, d = estimate.arms.rewards.shape
        return LinMEDState(
            estimate=estimate,
            confidence=confidence,
            empirical=float(self.empirical),
            optimal=float(self.design),
            staleness=float(self.staleness),
            alternatives=half_spaces(k),
            exponents=np.zeros(k),
            designed_for=np.full(k, np.inf),
            probabilities=np.zeros(k),
            design=design(k, d),
            scales=np.zeros(k),
            weights=model.needs_weights("LinMED"),
        )


@persists("designed_for")
class LinMEDState(NamedTuple):
    """Estimates from all rounds, and the probabilities they imply."""

    estimate: LeastSquares
    confidence: Any
    empirical: float  # a_emp
    optimal: float  # a_opt
    staleness: float  # by how much f may change before the design does
    alternatives: HalfSpaces
    exponents: Array  # (k,) -log f(x), inf outside of the action set
    designed_for: Array  # (k,) the same when the design was made
    probabilities: Array  # (k,)
    design: Design
    scales: Array  # scratch (k,): sqrt(f(x)) of that time, times the weight of an observation
    weights: Array  # (k,) of an observation of each arm


@invariant(LinMEDState)
def _check(state: LinMEDState, name: str) -> None:
    within(f"{name}.designed_for", state.designed_for, 0.0)


@compiled
def _choose(state: LinMEDState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    _probabilities(state, clock, offer, rng, state.probabilities)
    return choose_among(state.probabilities, clock, rng)


@compiled
def _probabilities(state: LinMEDState, clock: Clock, offer: Any, rng: Generator, p: Array) -> None:
    """Write p, which is 0 for arms outside of the action set."""
    comparison = compare_to_best(state, offer)
    beta = global_beta(state.confidence, state.estimate.learned.log_det[0], log_round(clock))
    for x in range(p.shape[0]):  # -log f(x), limited to where f matters
        distance = state.alternatives.distances[x]
        exponent = distance / beta if distance < math.inf else 0.0  # x-hat and its twins
        state.exponents[x] = min(exponent, LARGEST_EXPONENT)
    withhold(offer, state.exponents, math.inf)  # f = 0: another action set needs another design
    _renew_design(state)
    optimal, k = state.optimal, number_offered(offer, p.shape[0])
    empirical = state.empirical if state.estimate.learned.rounds[0] > 0 else 0.0
    total = 0.0
    for x in range(p.shape[0]):
        q = optimal * state.design.weights[x]
        q += (1.0 - empirical - optimal) / k
        if x == comparison.best:
            q += empirical
        p[x] = q * _weight(state.exponents[x])
        total += p[x]
    for x in range(p.shape[0]):
        p[x] /= total


@compiled
def _weight(exponent: float) -> float:
    """f(x), or 0 where it does not matter."""
    return math.exp(-exponent) if exponent < LARGEST_EXPONENT else 0.0


@compiled
def _renew_design(state: LinMEDState) -> None:
    """Compute the design again if some f(x) or the action set has changed by too much."""
    allowed = math.log1p(state.staleness)
    stale = False
    for x in range(state.exponents.shape[0]):
        now, then = state.exponents[x], state.designed_for[x]
        stale = stale or (now != then and abs(now - then) > allowed)
    if stale:
        for x in range(state.exponents.shape[0]):
            state.designed_for[x] = state.exponents[x]
            state.scales[x] = state.weights[x] * math.sqrt(_weight(state.exponents[x]))
        optimal_design(state.design, state.estimate.arms.rewards, state.scales, DESIGN_TOLERANCE)


register_policy(
    LinMEDState, choose=_choose, update=learn, inspect=report, probabilities=_probabilities
)
