"""Asymptotically optimal information-directed sampling (Algorithm 1 of the paper).

Guarantees: regret O(d sqrt(n) log n) in the worst case, O(d^3 log(n)^2 / Delta_min) given the
smallest gap, and c* log n + o(log n), the best possible, as n grows (Kirschner, Lattimore,
Vernade, Szepesvari, COLT 2021).

Cost per exploration round: O(p (k d + d^2)) for ``"halfspace"``, where p <= k is the number of
alternatives whose weight is not negligible, and O(k d^2) for ``"halfspace-ucb"``.  A whole
stretch of exploitation costs as much as one test, whatever its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives import halfspace_distances, mixing_weights
from sightline.core.clock import Clock, is_before, log_round
from sightline.core.confidence import (
    Confidence,
    ConfidenceRule,
    LogDet,
    global_beta,
    local_beta,
    next_exploration,
    valid_rule,
)
from sightline.core.gaps import value_gaps
from sightline.core.information import Workspace, halfspace_gain, halfspace_ucb_gain, workspace
from sightline.core.least_squares import LeastSquares, best_arm, least_squares, observe
from sightline.core.ratio import Mixture, exact_mixture, greedy_mixture
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, Policy, choose, inspect, update
from sightline.validation import number, one_of

__all__ = ["IDS", "IDSState", "ids_distribution"]

_INFORMATION = {"halfspace": 0, "halfspace-ucb": 1}
_HALFSPACE_UCB = _INFORMATION["halfspace-ucb"]
_SAMPLING = {"pair": 0, "exact": 1}
_EXACT = _SAMPLING["exact"]
# Exponent of q(z) in units of eta times the squared distance: the text has 1/2, Algorithm 1 has 1.
_LEARNING_RATE = {"paper": 0.5, "algorithm": 1.0}
# m_1 = 0 would make eta infinite: in units of the noise variance, m is taken as at least this.
_LEAST_M = 0.5


class IDSState(NamedTuple):
    """Estimates from exploration rounds, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Confidence
    information: int
    sampling: int
    rate: float  # eta / (noise variance) = rate / sqrt(largest m so far)
    largest_m: NDArray[np.float64]  # (1,), in units of the noise variance
    work: Workspace


@dataclass(frozen=True)
class IDS(Policy):
    """Information-directed sampling; the default is Algorithm 1 with M = R^d.

    Parameters
    ----------
    information : {"halfspace", "halfspace-ucb"}
        Information gain: with the optimistic term for all arms, or for the UCB arm only.
    sampling : {"pair", "exact"}
        Minimise the information ratio over pairs with the empirically best arm, or all pairs.
    confidence : LogDet, LogLog or FixedBeta
        Confidence coefficient beta.
    learning_rate : {"paper", "algorithm"}
        Weights q proportional to exp(-eta/2 distance) as in the text of the paper, or to
        exp(-eta distance) as printed in Algorithm 1.  Distances are in units of the noise.
    regulariser : float
        lambda of the least squares estimate.
    """

    information: str = "halfspace"
    sampling: str = "pair"
    confidence: ConfidenceRule = field(default_factory=LogDet)
    learning_rate: str = "paper"
    regulariser: float = 1.0
    commits: ClassVar[bool] = True

    def __post_init__(self) -> None:
        one_of("information", self.information, _INFORMATION)
        one_of("sampling", self.sampling, _SAMPLING)
        valid_rule(self.confidence)
        one_of("learning_rate", self.learning_rate, _LEARNING_RATE)
        number("regulariser", self.regulariser, above=0)

    def start(self, actions: NDArray[np.float64], noise_std: float) -> IDSState:
        """State before any data."""
        estimate = least_squares(actions, float(self.regulariser))
        k, d = estimate.actions.shape
        return IDSState(
            estimate=estimate,
            confidence=self.confidence.build(d, noise_std, self.regulariser),
            information=_INFORMATION[self.information],
            sampling=_SAMPLING[self.sampling],
            rate=_LEARNING_RATE[self.learning_rate] * math.log(k) / noise_std**2,
            largest_m=np.array([_LEAST_M]),
            work=workspace(k, d),
        )


@compiled
def ids_distribution(state: IDSState, best: int, least: float) -> Mixture:
    """Minimiser of the information ratio, given x-hat and the least of ``work.distances``."""
    estimate, work = state.estimate, state.work
    m = 0.5 * least / state.confidence.noise_variance
    state.largest_m[0] = max(state.largest_m[0], m)
    rate = state.rate / math.sqrt(state.largest_m[0])
    mixing_weights(work.distances, least, rate, work.weights)
    s = estimate.counts[0] + 1
    beta = local_beta(state.confidence, estimate.log_det[0], s)
    ucb_arm = value_gaps(estimate, beta, work.gaps)
    if state.information == _HALFSPACE_UCB:
        halfspace_ucb_gain(estimate, best, beta, ucb_arm, work)
    else:
        halfspace_gain(estimate, best, beta, work)
    if state.sampling == _EXACT:
        return exact_mixture(work.gaps, work.gains, best)
    return greedy_mixture(work.gaps, work.gains, best)


@choose.register(IDSState)
@compiled
def choose_ids(state: IDSState, clock: Clock, rng: np.random.Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else draw from the IDS distribution."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = halfspace_distances(estimate, best, state.work.distances)
    wake = next_exploration(state.confidence, estimate.log_det[0], least, clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, wake)
    mixture = ids_distribution(state, best, least)
    if rng.random() < mixture.probability:
        return Choice(mixture.second, mixture.probability, clock)
    return Choice(mixture.first, 1.0 - mixture.probability, clock)


@update.register(IDSState)
@compiled
def update_ids(state: IDSState, arm: int, reward: float) -> None:
    """Learn from an exploration round; exploitation rounds are never told."""
    observe(state.estimate, arm, reward)


@inspect.register(IDSState)
@compiled
def inspect_ids(state: IDSState, clock: Clock) -> Evidence:
    """m_s against beta_{s, t log t} / 2."""
    estimate = state.estimate
    best = best_arm(estimate)
    least = halfspace_distances(estimate, best, state.work.distances)
    log_det = estimate.log_det[0]
    beta = global_beta(state.confidence, log_det, log_round(clock))
    wake = next_exploration(state.confidence, log_det, least, clock)
    return Evidence(best, 0.5 * least, 0.5 * beta, wake)
