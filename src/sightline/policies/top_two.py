"""Top-two Thompson sampling as the exploration of a policy that commits like IDS.

Top-two sampling (Russo, COLT 2016) identifies a best arm: draw a parameter, let its best arm I be
the leader and play it with probability p; else redraw until another arm J is best and play that
challenger.  Here the exploitation test and the handling of data are those of IDS: commit to x-hat
while m_s >= beta/2, and learn from exploration rounds only, which play leader or challenger.

Once the posterior is concentrated, redraws would rarely differ.  After ``redraws`` of them the
challenger is the arm of the nearest alternative: P(z is best) falls like exp(-distance(z) / 2), the
distance in units of the noise variance, so the distribution of J given J != I concentrates on that
arm.  No redraw is made where the bound k/2 exp(-distance/2) on the probability of another best arm
is below the resolution of random numbers.  If the leader is not x-hat, the fallback is x-hat, for
the same reason.

Guarantees: commitments are as certain as those of IDS, and exploration ends, because both arms of
the nearest comparison are played.  None on regret.  The challenger is played whatever its gap, in a
share 1 - p of all rounds until the test succeeds: regret grows linearly until then.  And it is
played even if a third arm tells the two apart better.  On the end-of-optimism problem the cost
per log n is 1 / (p epsilon slope^2) times c*: 50 times at p = 1/2, epsilon = 0.01, slope 2.

Clicks and counts: draws are from the Laplace approximation of the posterior, and the test, like
the nearest alternative, is that of their likelihood.

Cost per exploration round: O(k d + d^2) per draw.  A stretch of exploitation costs one test.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.alternatives import Comparison, HalfSpaces
from sightline.core.clock import Clock, is_before
from sightline.core.confidence import ConfidenceRule, adapt
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import noise_variance, observe
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.core.posterior.gaussian import (
    Posterior,
    absorb,
    best_under,
    draw_parameter,
    gaussian_posterior,
    posterior_of_fit,
)
from sightline.jit import compiled
from sightline.policies.base import (
    PROBABILITY_DRAWS,
    Choice,
    Policy,
    Supports,
    begin,
    compare_to_best,
    put_all_on,
    register_policy,
    report_commitment,
    settled_before,
    share_draws,
)
from sightline.validation import integer, scale

# Resolution of random numbers: redraws that differ less often are not made.
_NEVER = 2.0**-53
# More would take seconds, in which nothing can interrupt a kernel.
_MOST_REDRAWS = 10**6


@dataclass(frozen=True)
class TopTwo(Policy):
    """Top-two Thompson sampling, until the best arm is settled.

    Parameters
    ----------
    leader_probability : float
        p, in (0, 1): probability of playing the leader.  1/2 is the usual choice; more costs less
        regret and more rounds.
    redraws : int
        Most redraws for a challenger, from 1 to 10^6.  100 by default: of challengers that are
        rarer than one draw in a hundred, nearly all are the nearest alternative.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient of the exploitation test; the paper's, as for IDS.
    regulariser : float or "matched"
        lambda of the least squares estimate, which is the posterior mean under the prior
        N(0, sigma^2 / lambda I).  ``"matched"``, the default, is sigma^2 / S^2, and the prior
        N(0, S^2 I).
    """

    leader_probability: float = 0.5
    redraws: int = 100
    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = "matched"

    supports = Supports(masks=True, noise_per_arm=True, likelihoods=True, delays=True)
    commits = True
    probability_by_draws = True

    def __post_init__(self) -> None:
        if scale("leader_probability", self.leader_probability) >= 1.0:
            raise ValueError(
                f"leader_probability must be below 1, got {self.leader_probability!r}: the leader "
                "alone would be explored permanently"
            )
        integer("redraws", self.redraws, at_least=1, at_most=_MOST_REDRAWS)
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> TopTwoState:
        """State before any data."""
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        arms, sigma = estimate.arms, model.noise_std
        if model.likelihood is not None:
            posterior = posterior_of_fit(estimate)
        else:  # with the prior for which the posterior mean is theta-hat
            prior_std = sigma / math.sqrt(estimate.regulariser)
            posterior = gaussian_posterior(arms.rewards, arms.observations.rows, sigma, prior_std)
        return TopTwoState(
            estimate=estimate,
            confidence=confidence,
            alternatives=half_spaces_for(estimate),
            posterior=posterior,
            leader_probability=float(self.leader_probability),
            redraws=int(self.redraws),
            draw=np.zeros(arms.rewards.shape[1]),
        )


@persists()
class TopTwoState(NamedTuple):
    """Estimates from exploration rounds, and the posterior that goes with them."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces | LikelihoodHalfSpaces
    posterior: Posterior
    leader_probability: float
    redraws: int
    draw: Array  # scratch (d,)


@compiled
def _choose(state: TopTwoState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else play leader or challenger."""
    comparison = compare_to_best(state, offer)
    wake = settled_before(state, comparison, clock)
    if is_before(clock, wake):
        return Choice(comparison.best, 1.0, wake)
    return Choice(_leader_or_challenger(state, comparison, offer, rng), math.nan, clock)


@compiled
def _leader_or_challenger(
    state: TopTwoState, comparison: Comparison, offer: Any, rng: Generator
) -> int:
    """Return the leader or a challenger; all draws are in one loop, which is compiled once."""
    # P(another arm than x-hat is best) <= sum_z P(<x-hat - z, theta> < 0) <= k/2 exp(-least/2)
    best = comparison.best
    units = comparison.least / noise_variance(state.estimate)
    differ = 0.5 * state.estimate.arms.means.shape[0] * math.exp(-0.5 * units) * state.redraws
    leader = -1
    for _ in range(state.redraws + 1):
        draw_parameter(state.posterior, 1.0, state.draw, rng)
        arm = best_under(state.posterior, state.draw, offer)
        if leader < 0:
            leader = arm
            if rng.random() < state.leader_probability:
                return leader
            if leader == best and differ < _NEVER:
                break
        elif arm != leader:
            return arm
    if leader != best:
        return best
    nearest = 0  # arm of the nearest alternative, the first one among equals
    while state.alternatives.distances[nearest] > comparison.least:
        nearest += 1
    return nearest


@compiled
def _probabilities(
    state: TopTwoState, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    """Estimate the action probabilities by many draws, as ThompsonSampling does."""
    comparison = compare_to_best(state, offer)
    if is_before(clock, settled_before(state, comparison, clock)):
        put_all_on(comparison.best, probabilities)
        return
    for x in range(probabilities.shape[0]):
        probabilities[x] = 0.0
    for _ in range(PROBABILITY_DRAWS):
        probabilities[_leader_or_challenger(state, comparison, offer, rng)] += 1.0
    share_draws(offer, probabilities)


@compiled
def _update(state: TopTwoState, clock: Clock, arm: int, outcome: Any) -> None:
    _observe_if_apart(state.posterior.estimate, state, arm, outcome)
    absorb(state.posterior, arm, outcome)
    adapt(state.confidence, state.estimate)


@compiled
def _observe_if_apart(
    fit: LeastSquares | None, state: TopTwoState, arm: int, outcome: float
) -> None:
    """Update the estimate, unless it is the fit that the posterior updates."""
    if fit is None:
        observe(state.estimate, arm, outcome)


register_policy(
    TopTwoState,
    choose=_choose,
    update=_update,
    inspect=report_commitment,
    probabilities=_probabilities,
)
