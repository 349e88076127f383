"""The deterministic form: explore where what is at stake is worth the price.

Stakes are H L with the horizon H = 3 t.  Arm x is worth exploring if H L I(x) - g_x exceeds
H L I(x-hat), now and also after t more rounds of x-hat: what x-hat will tell for free is not paid
for.  Among such arms with g / I at most 1 + 1/m times the least one, the one with the largest
H L I - g is played.

Otherwise x-hat is played.  With the price C = min g / I and the losses L' as if x-hat were known
perfectly, it is not learned from while H L' <= C and H L <= C exp(sqrt(log t) / 2) / 2.  Both can
be solved for log t: the policy commits to the round at which the first of them ends.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.clock import Clock, first_after, is_before, log_round
from sightline.core.posterior.losses import Outlook, Prospect
from sightline.jit import compiled
from sightline.policies.base import Choice
from sightline.policies.stakes.parts import StakesState, least_price, look_ahead, look_now

__all__ = ["Deterministic", "choose_surely"]

_LOG_HORIZONS = math.log(3.0)  # H / t
_LOG_HALF = math.log(0.5)
_LARGEST = 700.0  # exponent of a float


class Deterministic(NamedTuple):
    """The rule; it keeps nothing."""

    code: int = 0  # numba knows no empty named tuples


@compiled
def _stakes(prospect: Prospect, log_t: float) -> float:
    """H L."""
    return math.exp(min(_LOG_HORIZONS + log_t + prospect.log_loss, _LARGEST))


@compiled
def _worth(out: Outlook, prospect: Prospect, stakes: float, cap: float) -> tuple[int, float]:
    """Arm whose exploration is worth most among those of at most this price; by how much."""
    most, found = stakes * out.gains[prospect.best], -1
    for x in range(out.gains.shape[0]):
        gap, gain = out.falls[x], out.gains[x]
        if x != prospect.best and gain > 0.0 and gap <= cap * gain and stakes * gain - gap > most:
            most, found = stakes * gain - gap, x
    return found, most


@compiled
def _settled_until(now: Prospect, limit: Prospect, price: float) -> float:
    """Largest log t at which x-hat is neither learned from nor doubted."""
    if price <= 0.0:
        return -math.inf
    log_price = math.log(price) - _LOG_HORIZONS
    # log t + log L <= log(C / 3) + log(1/2) + sqrt(log t) / 2, a quadratic in sqrt(log t)
    free = log_price + _LOG_HALF - now.log_loss
    if free < 0.0:
        return -math.inf
    root = 0.25 + math.sqrt(0.0625 + free)
    return min(log_price - limit.log_loss, root * root)


@compiled
def choose_surely(
    rule: Deterministic, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    """Commit to x-hat, explore, or learn from x-hat."""
    now = look_now(state, offer, state.guard)
    best, log_t = now.best, log_round(clock)
    if now.log_loss == -math.inf:
        return Choice(best, 1.0, first_after(math.inf, clock))
    limit = look_ahead(state, best, math.inf, offer)
    _, price = least_price(state.ahead, best)
    wake = first_after(_settled_until(now, limit, price), clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, wake)
    arm, _ = _worth(state.now, now, _stakes(now, log_t), math.inf)
    if arm >= 0:
        count = math.exp(min(log_t, _LARGEST))
        later = look_ahead(state, best, count, offer)
        _, price = least_price(state.ahead, best)
        cap = price * (1.0 + 1.0 / max(later.evidence, 1e-300))
        arm, _ = _worth(state.ahead, later, _stakes(later, log_t), cap)
        if arm >= 0:
            return Choice(arm, 1.0, clock)
    return Choice(best, 1.0, clock)
