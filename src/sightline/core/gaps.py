"""Gap estimates: upper bounds on how much worse than the best an arm may be.

| symbol            | here               | meaning                                          |
|-------------------|--------------------|--------------------------------------------------|
| Delta-hat_s(x)    | ``gaps[x]``        | gap estimate                                     |
| delta_s           | ``gaps[x-hat]``    | estimation error                                 |
| delta_s^+         | ``_lift``          | estimation error, at least sigma / sqrt(s)       |
| x_s^UCB           | ``optimistic_arm`` | arm with the largest upper confidence bound      |

The paper's estimate uses upper bounds on values.  Upper bounds on differences are tighter: once
every arm but x-hat is refuted at the level 1/s^2, delta_s is zero.  The information ratio is then
zero on x-hat alone, and IDS plays it, although the exploitation test, at the level 1/(t log t),
still needs information on the others.  Every such round raises s and with it the coefficient,
until x-hat is in doubt again, at the latest when s^2 exceeds t log t.  That takes of the order of
sqrt(n) exploration rounds, too many for far horizons.  Difference gaps are therefore lifted to
delta_s^+, as the paper proposes for best arms of norm zero: an informative arm then keeps a
probability of order 1/sqrt(s).  That is rare enough for x-hat to be known far better than this
arm, as the optimal allocation requires, and often enough for exploration to end.  The estimate
"difference-unlifted" is not lifted.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from sightline.core.action_set import ActionSet, first_largest_offered
from sightline.core.estimate import LeastSquares
from sightline.core.gains import Round, guard_weights
from sightline.core.least_squares import noise_variance, reward_of
from sightline.core.linalg import Array, inner_products, multiply_symmetric
from sightline.jit import compiled, generic

F = TypeVar("F", bound=Callable[..., Any])

# ``ratio.py`` takes a gap of zero for that of the zero vector.
_LEAST_GAP = 1e-100

#: Gap estimates of IDS, by name.
GAPS: dict[str, Any] = {}


@generic
def gap_estimates(rule: Any, round_: Round, gaps: Array) -> None:
    """Write the gap estimates of all arms."""
    raise TypeError(f"no gap estimates are registered for {type(rule).__name__}")


def register_gaps(name: str, rule: Any) -> Callable[[F], F]:
    """Add a gap estimate: ``IDS(gaps=name)`` uses the kernel that this decorates.

    Parameters
    ----------
    name : str
        Its name.
    rule : named tuple
        Its numbers, an instance of a new class (with one field at least).

    Returns
    -------
    callable
        Decorator of ``kernel(rule, round, gaps)``, compiled or plain, which writes one gap
        estimate >= 0 per arm; ``round`` is a :class:`~sightline.core.gains.Round`.
    """

    def register(kernel: F) -> F:
        gap_estimates.register(type(rule))(kernel)
        guard_weights(f"gap estimate {name!r}", rule, kernel)
        GAPS[name] = rule
        return kernel

    return register


@compiled
def upper_bound(estimate: LeastSquares, beta: float, arm: int) -> float:
    """Upper confidence bound on <x, theta> of one arm."""
    # max: a squared width may round to just below zero for an arm played very often
    optimism = math.sqrt(beta * max(estimate.arms.squared_widths[arm], 0.0))
    bound: float = estimate.arms.means[arm] + optimism
    return bound


@compiled
def optimistic_arm(estimate: LeastSquares, beta: float, offer: ActionSet) -> int:
    """Arm of an action set with the largest upper confidence bound; the first one among equals."""
    bounds = estimate.scratch.products
    for x in range(bounds.shape[0]):
        bounds[x] = upper_bound(estimate, beta, x)
    return first_largest_offered(offer, bounds)


@compiled
def _least_error(estimate: LeastSquares) -> float:
    """Return sigma / sqrt(s)."""
    return math.sqrt(noise_variance(estimate) / (estimate.learned.rounds[0] + 1))


@compiled
def _lift(round_: Round, gaps: Array) -> None:
    """Raise all gaps alike, so that delta_s is at least sigma / sqrt(s)."""
    missing = _least_error(round_.estimate) - gaps[round_.comparison.best]
    if missing > 0.0:
        for x in range(gaps.shape[0]):
            gaps[x] += missing


class GapBound(enum.IntEnum):
    """What a gap estimate bounds."""

    VALUE = 0  # values of all arms: the estimate of the paper
    DIFFERENCE_TO_BEST = 1  # differences to x-hat
    EMPIRICAL = 2  # nothing: the empirical gap
    FLOORED = 3  # nothing: the empirical gap, but at least sigma / sqrt(s)


class GapEstimate(NamedTuple):
    """A built-in gap estimate that takes O(k)."""

    bound: int  # a GapBound
    lifted: bool  # whether delta_s is at least sigma / sqrt(s)


# Not for IDS, which would play x-hat permanently: delta_s is zero, or negligible.
EMPIRICAL = GapEstimate(int(GapBound.EMPIRICAL), False)
FLOORED = GapEstimate(int(GapBound.FLOORED), False)


@register_gaps("value", GapEstimate(int(GapBound.VALUE), False))
@register_gaps("thresholded", GapEstimate(int(GapBound.VALUE), True))
@register_gaps("difference-to-best", GapEstimate(int(GapBound.DIFFERENCE_TO_BEST), True))
@compiled
def _gap_estimates(rule: GapEstimate, round_: Round, gaps: Array) -> None:
    if rule.bound == GapBound.VALUE:
        _value_gaps(round_, gaps)
    elif rule.bound == GapBound.DIFFERENCE_TO_BEST:
        _differences_to_best(round_, gaps)
    else:
        least = _least_error(round_.estimate) if rule.bound == GapBound.FLOORED else 0.0
        for x in range(gaps.shape[0]):
            gaps[x] = max(round_.alternatives.shortfalls[x], least)
    if rule.lifted:
        _lift(round_, gaps)


@compiled
def _value_gaps(round_: Round, gaps: Array) -> None:
    """max_z UCB(z) - <x, theta-hat>: O(k)."""
    estimate = round_.estimate
    fit = estimate.arms.observations.fit
    highest = reward_of(fit, upper_bound(estimate, round_.beta, round_.ucb_arm))
    for x in range(gaps.shape[0]):
        gaps[x] = highest - reward_of(fit, estimate.arms.means[x])


@compiled
def _differences_to_best(round_: Round, gaps: Array) -> None:
    """<x-hat - x, theta-hat> + delta_s, where delta_s bounds all differences to x-hat: O(k)."""
    separations, shortfalls = round_.alternatives.separations, round_.alternatives.shortfalls
    delta = 0.0
    for z in range(gaps.shape[0]):
        delta = max(delta, math.sqrt(round_.beta * separations[z]) - shortfalls[z])
    for x in range(gaps.shape[0]):
        gaps[x] = delta + shortfalls[x]


# A separate class: with this O(k^2 d) kernel as one more GapBound, and without the early test for
# a silent x-hat in ids.py, a first run of IDS took 33 s of processor time instead of 29 s.
class DifferenceGaps(NamedTuple):
    """Upper bounds on the differences of all pairs of arms: O(k^2 d)."""

    lifted: bool  # whether delta_s is at least sigma / sqrt(s)


@register_gaps("difference", DifferenceGaps(True))
@register_gaps("difference-unlifted", DifferenceGaps(False))
@compiled
def _difference_gaps(rule: DifferenceGaps, round_: Round, gaps: Array) -> None:
    """max_z <z - x, theta-hat> + sqrt(beta) |z - x|: O(k^2 d)."""
    estimate, beta = round_.estimate, round_.beta
    arms, scratch = estimate.arms, estimate.scratch
    k = gaps.shape[0]
    for x in range(k):
        multiply_symmetric(estimate.learned.gram_inverse, arms.rewards[x], scratch.direction, 0.0)
        gaps[x] = _LEAST_GAP
        inner_products(arms.columns, scratch.direction, scratch.products)
        for z in range(k):
            if z == x:  # its norm would be rounding, whose root is not small
                continue
            norm = arms.squared_widths[x] + arms.squared_widths[z] - 2.0 * scratch.products[z]
            bound = arms.means[z] - arms.means[x] + math.sqrt(beta * max(norm, 0.0))
            gaps[x] = max(gaps[x], bound)
    if rule.lifted:
        _lift(round_, gaps)
