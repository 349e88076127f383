"""What both forms of Stakes keep, and how they look at it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sightline.core.alternatives.half_spaces import HalfSpaces
from sightline.core.estimation.foreseen import Foreseen, begin_now, foresee
from sightline.core.estimation.least_squares import LeastSquares
from sightline.core.offers import first_largest_offered
from sightline.core.posterior.losses import Outlook, Prospect, expected_loss, loss_gains
from sightline.jit import compiled
from sightline.policies.stakes.flight import InFlight, see_all_landed

__all__ = ["KAPPA", "StakesState", "least_price", "look_ahead", "look_now"]

#: What is spent on exploration per round, over what exploitation is expected to lose.
KAPPA = 2.0


class StakesState(NamedTuple):
    """Estimates from all outcomes, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces  # those of ``now``; for reports
    noise: Any  # KnownNoise or EstimatedNoise
    rule: Any  # Randomised or Deterministic
    guard: float
    flight: InFlight
    now: Outlook
    ahead: Outlook
    space: Foreseen  # for ``ahead``


@compiled
def look_now(state: StakesState, offer: Any, guard: float) -> Prospect:
    """Losses and gains as things stand, all that is in flight included."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    see_all_landed(state.flight, state.estimate)
    view = state.flight.space.estimate
    prospect = expected_loss(state.now, view, state.noise, guard, best, offer)
    if prospect.log_loss > -math.inf:
        loss_gains(state.now, view, prospect, offer)
    return prospect


@compiled
def look_ahead(state: StakesState, best: int, count: float, offer: Any) -> Prospect:
    """Losses and gains after so many more rounds of x-hat, which may be infinitely many.

    From what :func:`look_now` has seen.
    """
    view = state.space.estimate
    begin_now(view, state.flight.space.estimate)
    foresee(view, best, count)
    prospect = expected_loss(state.ahead, view, state.noise, state.guard, best, offer)
    if prospect.log_loss > -math.inf:
        loss_gains(state.ahead, view, prospect, offer)
    return prospect


@compiled
def least_price(out: Outlook, best: int) -> tuple[int, float]:
    """Arm other than x-hat of least gap per gain, and this price; -1 and inf if none has a gain."""
    cheapest, price = -1, math.inf
    for x in range(out.gains.shape[0]):
        gap = out.alternatives.shortfalls[x]
        if x != best and out.gains[x] > 0.0 and gap < price * out.gains[x]:
            cheapest, price = x, gap / out.gains[x]
    return cheapest, price
