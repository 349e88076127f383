"""What both forms of Stakes keep, and how they look at it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.alternatives.comparison import Comparison
from sightline.core.alternatives.half_spaces import block_start, blocks_in, rival_of
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.foreseen import Foreseen, begin_now, foresee
from sightline.core.estimation.frequencies import Always, Counted, Told
from sightline.core.estimation.reservoir import Reservoir
from sightline.core.information.marginal import Marginal
from sightline.core.model import AllArms
from sightline.core.offers import first_largest_offered
from sightline.core.persistence import migration, state_version
from sightline.core.posterior.losses import Outlook, Prospect, expected_loss, loss_gains
from sightline.jit import compiled, generic
from sightline.policies.stakes.flight import see_all_landed

__all__ = ["KAPPA", "StakesState", "least_price", "look_ahead", "look_now"]

_TOLD = 1e-10  # part of a squared width that may be rounding

#: What is spent on exploration per round, over what exploitation is expected to lose.
KAPPA = 2.0


@state_version(2)
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


@migration(StakesState, 1)
def _errors_in_the_estimate(arrays: dict[str, Any]) -> dict[str, Any]:
    """Read a file in which Stakes kept what it had learned of the noise beside the estimate.

    It had no threshold then; the numbers of its coefficient are computed after loading.
    """
    if "state.noise.errors" not in arrays:
        return arrays
    moved = {"state.noise.errors": "state.estimate.noise.errors"}
    numbers = ("noise.outcomes", "noise.residual", "noise.level", "norm.length", "norm.share")
    return {moved.get(name, name): array for name, array in arrays.items()} | {
        f"state.confidence.{name}": np.zeros(1) for name in numbers
    }


@generic
def _look(
    frequencies: Any,
    out: Outlook,
    view: LeastSquares,
    guard: float,
    best: int,
    offer: Any,
) -> Prospect:
    """Losses and gains of a view: of arms on offer, or of those of all contexts."""
    raise TypeError(f"{type(frequencies).__name__} does not say how often contexts come")


@_look.register(Always)
@compiled
def _look_at_offer(
    frequencies: Always,
    out: Outlook,
    view: LeastSquares,
    guard: float,
    best: int,
    offer: Any,
) -> Prospect:
    prospect = expected_loss(out, view, guard, best, offer)
    if prospect.log_loss > -math.inf:
        loss_gains(out, view, prospect, offer)
    return prospect


@_look.register(Told)
@_look.register(Counted)
@_look.register(Reservoir)
@compiled
def _look_everywhere(
    frequencies: Any,
    out: Outlook,
    view: LeastSquares,
    guard: float,
    best: int,
    offer: Any,
) -> Prospect:
    return _look_at_offer(Always(0), out, view, guard, best, AllArms(0))


@compiled
def look_now(state: StakesState, offer: Any, guard: float) -> Prospect:
    """Losses and gains as things stand, all that is in flight included."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    see_all_landed(state.flight, state.estimate)
    view = state.flight.space.estimate
    out = state.now
    return _look(out.frequencies, out, view, guard, best, offer)


@compiled
def look_ahead(state: StakesState, best: int, count: float, offer: Any) -> Prospect:
    """Losses and gains after so many more rounds of x-hat, which may be infinitely many.

    From what :func:`look_now` has seen.  With contexts, each has its own x-hat.
    """
    view, known = state.space.estimate, state.flight.space.estimate
    begin_now(view, known)
    alternatives = state.now.alternatives
    for c in range(blocks_in(alternatives)):
        comparison = Comparison(best, 0.0)
        arm = rival_of(alternatives, comparison, block_start(alternatives, c))
        # what others have told of it is known up to rounding, and dividing by that tells nothing
        if view.arms.seen_widths[arm] > _TOLD * known.arms.seen_widths[arm]:
            foresee(view, arm, count)
    out = state.ahead
    return _look(out.frequencies, out, view, state.guard, best, offer)


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
