"""The randomised form: exploration costs, per round, as much as exploitation is expected to lose.

Arms have the gaps Delta(x) = g_x + kappa L, and x-hat is mixed with the arm x at which
Delta^2 / I is least, with the probability p = kappa L / g_x - 2 I(x-hat) / (I(x) - I(x-hat)).

While x-hat teaches, it is learned from.  Once p < e^-2 the losses are compared with those if x-hat
were known perfectly.  Where knowing it better would not change them, the policy commits: it plays
x-hat for a time that is drawn in one step, geometric with the probability of an exploration, and
then explores.  At every round before, the probability of an exploration is the same: the law is
that of drawing anew in each of them, to 10^300 rounds and beyond.

Where x-hat itself tells everything, knowing it better always changes the losses.  It is then
learned from at longer and longer intervals: not before the expected number of explorations in as
many rounds as have passed exceeds e^-2 / m^2.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import FAR, Clock, first_after, is_before, later, log_round
from sightline.core.consistency import invariant, may_hold
from sightline.core.information.ratio import Mixture, Pairs, least_ratio
from sightline.core.offers import is_whole
from sightline.core.posterior.losses import Outlook, Prospect
from sightline.jit import compiled
from sightline.policies.base import Choice, choose_from
from sightline.policies.stakes.parts import (
    KAPPA,
    StakesState,
    least_price,
    look_ahead,
    look_now,
)

__all__ = ["Appointment", "Law", "Randomised", "choose_randomly", "randomised", "stakes_law"]

_LOG_KAPPA = math.log(KAPPA)
_RARE = math.exp(-2.0)  # probability of exploration below which a commitment is considered
_TEST_EVERY = 8  # outcomes: a test costs as much as a round
_SHARE, _ROOT_SHARE = 0.02, 0.5  # of m and sqrt(m), by how much x-hat may still lower log L
_LEAST_LOG_LOSS = -300.0  # below, gaps and ratios have no floats; x-hat is played


@may_hold(nan=("log_t",))
class Appointment(NamedTuple):
    """The next exploration of a commitment; arrays of length one.

    Attributes
    ----------
    t, log_t : ndarray
        When; ``t`` is 0 if there is none.
    best, arm : ndarray
        What is played until then, and what at that time.
    probability : ndarray
        That of the exploration, in each round.
    """

    t: NDArray[np.int64]
    log_t: NDArray[np.float64]
    best: NDArray[np.int64]
    arm: NDArray[np.int64]
    probability: NDArray[np.float64]


@invariant(Appointment)
def _check(due: Appointment, name: str) -> None:
    if not 0 <= due.t[0] <= FAR:
        raise ValueError(f"{name}.t must be a round, got {due.t[0]}")


class Randomised(NamedTuple):
    """The rule, and what it has drawn."""

    due: Appointment


def randomised() -> Randomised:
    """Rule without a commitment."""
    t, best, arm = (np.zeros(1, dtype=np.int64) for _ in range(3))
    return Randomised(Appointment(t, np.zeros(1), best, arm, np.zeros(1)))


class Law(NamedTuple):
    """Which arms are played and with what probabilities, as logarithms.

    Attributes
    ----------
    best : int
        x-hat, which has the rest.
    arm : int
        What explores; x-hat where nothing does.
    log_probability : float
        Its probability.
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
def _mixture(out: Outlook, prospect: Prospect) -> tuple[int, float]:
    """Arm to mix with x-hat, and its probability."""
    if prospect.log_loss < _LEAST_LOG_LOSS:
        return prospect.best, 0.0
    loss = KAPPA * math.exp(prospect.log_loss)
    for x in range(out.gaps.shape[0]):
        out.gaps[x] = out.alternatives.shortfalls[x] + loss
    mixture = least_ratio(Pairs(0), out.gaps, out.gains, prospect.best)
    return mixture.second, mixture.probability


@compiled
def _commitment(state: StakesState, now: Prospect, offer: Any, otherwise: Law) -> Law:
    """Law of a commitment, if knowing x-hat better would not change the losses."""
    limit = look_ahead(state, now.best, math.inf, offer)
    m = now.evidence
    if now.log_loss - limit.log_loss <= min(_SHARE * m, _ROOT_SHARE * math.sqrt(m)):
        arm, _ = least_price(state.ahead, now.best)
        if arm < 0:  # nothing that can be played tells more
            return _only(now.best, math.inf)
        gap = state.ahead.alternatives.shortfalls[arm]
        if gap <= 0.0:
            return otherwise
        log_probability = _LOG_KAPPA + limit.log_loss - math.log(gap)
        return Law(now.best, arm, log_probability, True, -math.inf)
    nearest = math.inf
    for z in range(state.now.log_losses.shape[0]):
        if state.now.log_losses[z] > -math.inf:
            nearest = min(nearest, state.now.alternatives.shortfalls[z])
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
    arm, probability = _mixture(state.now, now)
    log_probability = math.log(probability) if probability > 0.0 else -math.inf
    law = Law(now.best, arm, log_probability, False, -math.inf)
    if probability < _RARE and state.estimate.learned.rounds[0] % _TEST_EVERY == 0:
        return _commitment(state, now, offer, law)
    return law


@compiled
def _appoint(due: Appointment, law: Law, clock: Clock, rng: np.random.Generator) -> Choice:
    """Draw how long x-hat is played before the next exploration."""
    probability = min(math.exp(law.log_probability), 1.0)
    waiting = -math.log1p(-rng.random())  # exponential; over -log(1 - p), it is geometric
    # -log(1 - p) = p to the last bit where p is small, and p may be no float
    small = probability < 1e-9 or probability == 1.0
    log_rate = law.log_probability if small else math.log(-math.log1p(-probability))
    wake = later(clock, math.log(waiting) - log_rate if waiting > 0.0 else -math.inf)
    if probability == 1.0 or not is_before(clock, wake):
        return Choice(law.arm, probability, clock)
    due.t[0], due.log_t[0] = wake.t, wake.log_t
    due.best[0], due.arm[0] = law.best, law.arm
    due.probability[0] = probability
    return Choice(law.best, 1.0 - probability, wake)


@compiled
def choose_randomly(
    rule: Randomised, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    """Keep an appointment, or draw from the law."""
    due = rule.due
    if due.t[0] > 0 and is_whole(offer):
        wake = Clock(due.t[0], due.log_t[0])
        if is_before(clock, wake):
            return Choice(due.best[0], 1.0 - due.probability[0], wake)
        due.t[0] = 0
        return Choice(due.arm[0], due.probability[0], clock)
    law = stakes_law(state, offer)
    if is_whole(offer):
        if law.log_until == math.inf or log_round(clock) <= law.log_until:
            return Choice(law.best, 1.0, first_after(law.log_until, clock))
        if law.committed:
            return _appoint(due, law, clock, rng)
    probability = math.exp(law.log_probability)
    return choose_from(Mixture(law.best, law.arm, probability, 0.0), clock, rng)
