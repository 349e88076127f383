"""The randomised form: exploration costs, per round, as much as exploitation is expected to lose.

Arms have the gaps Delta(x) = g_x + kappa L, and x-hat is mixed with the arm x at which
Delta^2 / I is least, with the probability p = kappa L / g_x - 2 I(x-hat) / (I(x) - I(x-hat)).

While x-hat teaches, it is learned from.  Once p < e^-2 the losses are compared with those if x-hat
were known perfectly.  Where knowing it better would not change them, the policy commits: it plays
x-hat for a time that is drawn in one step, geometric with the probability of an exploration, and
then explores.  At every round before, the probability of an exploration is the same: the law is
that of drawing anew in each of them, to 10^300 rounds and beyond.

With contexts, x-hat is the best arm of each.  The ratio is that of what is expected over all of
them (:mod:`sightline.core.information.marginal`), so at most one context randomises.  While the
policy is committed it is the one in which exploration is cheapest, with a probability q of its own.
Rounds are marked with probability q, whatever their context; at a marked round the policy explores
if it is that context's, and else draws the next mark.

Where arms are new in every round, a sample of past sets stands for those to come
(:mod:`sightline.core.estimation.context_distribution`), and nothing can be committed to.

Where x-hat itself tells everything, knowing it better always changes the losses.  It is then
learned from at longer and longer intervals: not before the expected number of explorations in as
many rounds as have passed exceeds e^-2 / m^2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.action_set import ActionSet, first_largest_offered
from sightline.core.alternatives.half_spaces import context_of_arm
from sightline.core.clock import Clock, first_after, log_round
from sightline.core.estimation.context_distribution import SAMPLED, log_probability
from sightline.core.information.marginal import Marginal, of_context, walk_chains
from sightline.core.information.ratio import Mixture, Pairs, least_ratio
from sightline.core.posterior.losses import Outlook, Prospect
from sightline.jit import compiled
from sightline.policies.appointments import Appointment, appoint, keep, no_appointment
from sightline.policies.base import Choice, choose_from
from sightline.policies.stakes.parts import (
    KAPPA,
    StakesState,
    least_price,
    look_ahead,
    look_now,
)

__all__ = ["Law", "Randomised", "choose_randomly", "randomised", "stakes_law"]

_LOG_KAPPA = math.log(KAPPA)
_LOG_RARE = -2.0
_RARE = math.exp(_LOG_RARE)  # probability of exploration below which a commitment is considered
_TEST_EVERY = 8  # outcomes: a test costs as much as a round
_SHARE, _ROOT_SHARE = 0.02, 0.5  # of m and sqrt(m), by how much x-hat may still lower log L
_LEAST_LOG_LOSS = -300.0  # below, gaps and ratios have no floats; x-hat is played


class Randomised(NamedTuple):
    """The rule, and what it has drawn."""

    due: Appointment


def randomised() -> Randomised:
    """Rule without a commitment."""
    return Randomised(no_appointment())


class Law(NamedTuple):
    """Which arms are played and with what probabilities, as logarithms.

    Attributes
    ----------
    best : int
        x-hat, which has the rest.
    arm : int
        What explores; x-hat where nothing does.  Of a commitment it may be an arm of another
        context.
    log_probability : float
        Its probability, in a round in which it is on offer.
    committed : bool
        Whether x-hat is not learned from.
    log_until : float
        log t up to which x-hat is played for sure and not learned from; -inf if it is not.
    """

    best: int
    arm: int
    log_probability: float
    committed: bool
    log_until: float


@compiled
def _only(best: int, log_until: float) -> Law:
    return Law(best, best, -math.inf, log_until == math.inf, log_until)


@compiled
def _mixture(
    out: Outlook, chain: Marginal, prospect: Prospect, offer: Any
) -> tuple[int, int, float, float]:
    """Mix x-hat with another arm, as :func:`_least` says; with contexts it may be any two arms."""
    if prospect.log_loss < _LEAST_LOG_LOSS:
        return prospect.best, prospect.best, 0.0, 0.0
    loss = KAPPA * math.exp(prospect.log_loss)
    for x in range(out.gaps.shape[0]):
        out.gaps[x] = out.falls[x] + loss
    return _least(out, chain, prospect.best, offer)


@compiled
def _least(
    out: Outlook, chain: Marginal, best: int, offer: ActionSet
) -> tuple[int, int, float, float]:
    """Minimise the ratio; return two arms, the probability of the second, and the largest of any.

    The last one is the largest probability with which any context does not play its best arm.
    """
    starts, distribution = out.alternatives.starts, out.frequencies
    if starts.shape[0] == 2:
        pair = least_ratio(Pairs(0), out.gaps, out.gains, best)
        return best, pair.second, pair.probability, pair.probability
    walk = walk_chains(chain, starts, distribution.probabilities, out.gaps, out.gains)
    largest = walk.probability
    for c in range(chain.arms.shape[0]):
        if chain.arms[c] != out.alternatives.bests[starts[c]]:
            largest = 1.0
    mixture = of_context(chain, walk, offer.context)
    return mixture.first, mixture.second, mixture.probability, largest


@compiled
def _commitment(state: StakesState, now: Prospect, offer: Any, otherwise: Law) -> Law:
    """Law of a commitment, if knowing x-hat better would not change the losses."""
    limit = look_ahead(state, now.best, math.inf, offer)
    m = now.evidence
    if now.log_loss - limit.log_loss <= min(_SHARE * m, _ROOT_SHARE * math.sqrt(m)):
        arm, _ = least_price(state.ahead, now.best)
        if arm < 0:  # nothing that can be played tells more
            return _only(now.best, math.inf)
        gap = state.ahead.falls[arm]
        if gap <= 0.0:
            return otherwise
        context = context_of_arm(state.now.alternatives, arm)
        log_share = log_probability(state.now.frequencies, context)
        log_rate = _LOG_KAPPA + limit.log_loss - math.log(gap) - log_share
        if log_share < 0.0 and log_rate > _LOG_RARE:  # its context is too rare to wait for
            return otherwise
        return Law(now.best, arm, log_rate, True, -math.inf)
    nearest = math.inf
    for z in range(state.now.log_losses.shape[0]):
        if state.now.log_losses[z] > -math.inf:
            nearest = min(nearest, state.now.falls[z])
    if nearest <= 0.0:
        return otherwise
    log_rate = _LOG_KAPPA + now.log_loss - math.log(nearest)
    log_until = -2.0 - 2.0 * math.log(max(m, 1.0)) - log_rate
    return Law(now.best, otherwise.arm, otherwise.log_probability, False, log_until)


@compiled
def stakes_law(state: StakesState, offer: Any) -> Law:
    """Law of the next round, from what is known: O(k d^2)."""
    now = look_now(state, offer, state.guard)
    if now.log_loss == -math.inf:
        return _only(now.best, math.inf)
    first, arm, probability, largest = _mixture(state.now, state.chain, now, offer)
    log_probability = math.log(probability) if probability > 0.0 else -math.inf
    law = Law(first, arm, log_probability, False, -math.inf)
    estimate = state.estimate
    # no outcome of a silent arm would bring the next test
    silent = estimate.arms.observations.silent[now.best]
    lasting = state.now.frequencies.kind != SAMPLED  # of others nobody knows what comes
    often = estimate.learned.rounds[0] % _TEST_EVERY != 0 and not silent
    if largest < _RARE and not often and lasting:
        return _commitment(state, now, offer, law)
    return law


@compiled
def choose_randomly(
    rule: Randomised, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    """Keep an appointment, or draw from the law."""
    due = rule.due
    if due.t[0] > 0 and offer.mask.shape[0] == 0:
        best = first_largest_offered(offer, state.estimate.arms.means)
        choice = keep(due, best, clock, offer)
        if choice.arm >= 0:
            return choice
    law = stakes_law(state, offer)
    if offer.mask.shape[0] == 0:
        if law.log_until == math.inf or log_round(clock) <= law.log_until:
            return Choice(law.best, 1.0, first_after(law.log_until, clock))
        if law.committed:
            return appoint(due, law.best, law.arm, law.log_probability, clock, offer, rng)
    probability = math.exp(law.log_probability)
    return choose_from(Mixture(law.best, law.arm, probability, 0.0), clock, rng)
