"""What both forms of Stakes keep, and how they look at it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sightline.core.action_set import ActionSet, first_largest_offered
from sightline.core.alternatives.comparison import Comparison
from sightline.core.alternatives.half_spaces import rival_of
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.foreseen import Foreseen, begin_now, foresee
from sightline.core.persistence import state_version
from sightline.core.posterior.losses import Outlook, Prospect, expected_loss, loss_gains
from sightline.core.ratio import Marginal
from sightline.jit import compiled
from sightline.policies.stakes.flight import see_all_landed

__all__ = ["KAPPA", "StakesState", "least_price", "look_ahead", "look_now"]

_TOLD = 1e-10  # part of a squared width that may be rounding

#: What is spent on exploration per round, over what exploitation is expected to lose.
KAPPA = 2.0


@state_version(3)
class StakesState(NamedTuple):
    """Estimates from all outcomes, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Any
    alternatives: Any  # for reports: those of ``now``, or by the likelihood of the rewards
    rule: Any  # Randomised or Deterministic
    guard: float
    flight: Any  # InFlight or NewInFlight
    now: Outlook
    ahead: Outlook
    space: Foreseen  # for ``ahead``
    chain: Marginal  # of the contexts


@compiled
def _look(out: Outlook, view: LeastSquares, guard: float, best: int, offer: ActionSet) -> Prospect:
    """Losses and gains of a view: of arms on offer, or of those of all contexts."""
    if out.alternatives.starts.shape[0] > 2:
        offer = view.arms.everything
    prospect = expected_loss(out, view, guard, best, offer)
    if prospect.log_loss > -math.inf:
        loss_gains(out, view, prospect, offer)
    return prospect


@compiled
def look_now(state: StakesState, offer: Any, guard: float) -> Prospect:
    """Losses and gains as things stand, all that is in flight included."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    see_all_landed(state.flight, state.estimate)
    view = state.flight.space.estimate
    out = state.now
    return _look(out, view, guard, best, offer)


@compiled
def look_ahead(state: StakesState, best: int, count: float, offer: Any) -> Prospect:
    """Losses and gains after so many more rounds of x-hat, which may be infinitely many.

    From what :func:`look_now` has seen.  With contexts, each has its own x-hat.
    """
    view, known = state.space.estimate, state.flight.space.estimate
    begin_now(view, known)
    alternatives = state.now.alternatives
    for c in range(alternatives.starts.shape[0] - 1):
        comparison = Comparison(best, 0.0)
        arm = rival_of(alternatives, comparison, alternatives.starts[c])
        # what others have told of it is known up to rounding, and dividing by that tells nothing
        if view.arms.seen_widths[arm] > _TOLD * known.arms.seen_widths[arm]:
            foresee(view, arm, count)
    out = state.ahead
    return _look(out, view, state.guard, best, offer)


@compiled
def least_price(out: Outlook, best: int) -> tuple[int, float]:
    """Arm other than x-hat of least gap per gain, and this price; -1 and inf if none has a gain."""
    cheapest, price = -1, math.inf
    comparison = Comparison(best, 0.0)
    for x in range(out.gains.shape[0]):
        gap = out.falls[x]
        other = x != rival_of(out.alternatives, comparison, x)
        if other and out.gains[x] > 0.0 and gap < price * out.gains[x]:
            cheapest, price = x, gap / out.gains[x]
    return cheapest, price
