"""Gap estimates: how much worse than the best an arm may be, given the confidence coefficient.

| symbol            | here               | meaning                                          |
|-------------------|--------------------|--------------------------------------------------|
| Delta-hat_s(x)    | ``gaps[x]``        | gap estimate                                     |
| delta_s           | ``gaps[x-hat]``    | estimation error                                 |
| delta_s^+         | ``_lift``          | estimation error, at least sigma / sqrt(s)       |
| x_s^UCB           | ``optimistic_arm`` | arm with the largest upper confidence bound      |

The paper's estimate uses upper bounds on values.  Upper bounds on differences are tighter: once
every arm but x-hat is refuted at the level 1/s^2, delta_s is zero.  The information ratio is then
zero on x-hat alone, and IDS plays it, although the exploitation test, at the level 1/(t log t),
still asks for information on the others.  Not for ever: every such round raises s and with it the
coefficient, until x-hat is in doubt again, at the latest when s^2 exceeds t log t.  But that
takes of the order of sqrt(n) exploration rounds, too many for far horizons.  Difference gaps are
therefore lifted to delta_s^+, the remedy that the paper proposes for best arms of norm zero: an
informative arm then keeps a probability of order 1/sqrt(s), rare enough for x-hat to be known far
better than it, as the optimal allocation wants, and often enough for exploration to end.
"difference-unlifted" leaves them as they are.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import first_largest_offered
from sightline.core.estimation.estimate import LeastSquares, reward_of
from sightline.core.estimation.noise import noise_variance
from sightline.core.information.round import Round
from sightline.core.linalg.vectors import inner_products, multiply_symmetric
from sightline.jit import compiled, generic, guarded, is_ours
from sightline.jit.guards import wrong_numbers

__all__ = [
    "GAPS",
    "EmpiricalGaps",
    "FlooredGaps",
    "ValueGaps",
    "check_weights",
    "gap_estimates",
    "guard_weights",
    "optimistic_arm",
    "register_gaps",
    "upper_bound",
]

Array = NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., Any])

# A gap that is zero would be taken for that of the zero vector (see ratio.py).
_LEAST_GAP = 1e-100

#: Gap estimates of IDS, by name.
GAPS: dict[str, Any] = {}


@generic
def gap_estimates(rule: Any, round_: Round, gaps: Array) -> None:
    """Write the gap estimates of all arms."""
    raise TypeError(f"no gap estimates are registered for {type(rule).__name__}")


@generic
@compiled
def check_weights(rule: Any, weights: Array) -> None:
    """Refuse gaps or gains of arms on offer that are none; those of the library are trusted."""


def guard_weights(what: str, rule: Any, kernel: Callable[..., Any]) -> None:
    """Have what a kernel writes checked, if it is not part of the library."""
    if is_ours(kernel):
        return
    nan, negative, infinite = wrong_numbers(f"{what} of an arm", 0.0, sys.float_info.max)

    def guard(kernel: Callable[..., Any], cls: type) -> Any:
        def check(rule: Any, weights: Array) -> None:
            for x in range(weights.shape[0]):
                if weights[x] < 0.0:
                    raise ValueError(negative)
                if weights[x] == math.inf:
                    raise ValueError(infinite)
                if math.isnan(weights[x]):
                    raise ValueError(nan)

        return check

    check_weights.register(type(rule))(guarded(kernel, type(rule), guard))


def register_gaps(name: str, rule: Any) -> Callable[[F], F]:
    """Add a gap estimate: ``IDS(gaps=name)`` will use the kernel that this decorates.

    Parameters
    ----------
    name : str
        How to call it.
    rule : named tuple
        Its numbers, an instance of a class of its own (with one field at least).

    Returns
    -------
    callable
        Decorator of ``kernel(rule, round, gaps)``, compiled or plain, which writes one gap
        estimate >= 0 per arm; ``round`` is a :class:`~sightline.core.information.round.Round`.
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
def optimistic_arm(estimate: LeastSquares, beta: float, offer: Any) -> int:
    """Arm on offer with the largest upper confidence bound; the first one among equals."""
    bounds = estimate.scratch.products
    for x in range(bounds.shape[0]):
        bounds[x] = upper_bound(estimate, beta, x)
    return first_largest_offered(offer, bounds)


@compiled
def _least_error(round_: Round) -> float:
    """Sigma / sqrt(s)."""
    estimate = round_.estimate
    return math.sqrt(noise_variance(estimate) / (estimate.learned.rounds[0] + 1))


@compiled
def _lift(round_: Round, gaps: Array) -> None:
    """Raise all gaps alike, so that delta_s is at least sigma / sqrt(s)."""
    missing = _least_error(round_) - gaps[round_.comparison.best]
    if missing > 0.0:
        for x in range(gaps.shape[0]):
            gaps[x] += missing


class ValueGaps(NamedTuple):
    """Upper bounds on values: max_z UCB(z) - <x, theta-hat>.  O(k)."""

    code: int = 0  # numba knows no empty named tuples


@register_gaps("value", ValueGaps())
@compiled
def _value_gaps(rule: ValueGaps, round_: Round, gaps: Array) -> None:
    estimate = round_.estimate
    likelihood = estimate.arms.observations.likelihood
    highest = reward_of(likelihood, upper_bound(estimate, round_.beta, round_.ucb_arm))
    for x in range(gaps.shape[0]):
        gaps[x] = highest - reward_of(likelihood, estimate.arms.means[x])


class ThresholdedGaps(NamedTuple):
    """Upper bounds on values, lifted."""

    values: ValueGaps = ValueGaps()


@register_gaps("thresholded", ThresholdedGaps())
@compiled
def _thresholded_gaps(rule: ThresholdedGaps, round_: Round, gaps: Array) -> None:
    _value_gaps(rule.values, round_, gaps)
    _lift(round_, gaps)


class UnliftedDifferenceGaps(NamedTuple):
    """Upper bounds on all differences: max_z <z - x, theta-hat> + sqrt(beta) |z - x|."""

    code: int = 0


@register_gaps("difference-unlifted", UnliftedDifferenceGaps())
@compiled
def _unlifted_difference_gaps(rule: UnliftedDifferenceGaps, round_: Round, gaps: Array) -> None:
    """O(k^2 d)."""
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


class DifferenceGaps(NamedTuple):
    """Upper bounds on all differences, lifted."""

    differences: UnliftedDifferenceGaps = UnliftedDifferenceGaps()


@register_gaps("difference", DifferenceGaps())
@compiled
def _difference_gaps(rule: DifferenceGaps, round_: Round, gaps: Array) -> None:
    _unlifted_difference_gaps(rule.differences, round_, gaps)
    _lift(round_, gaps)


class BestDifferenceGaps(NamedTuple):
    """Upper bounds on differences to x-hat, lifted: <x-hat - x, theta-hat> + delta_s."""

    code: int = 0


@register_gaps("difference-to-best", BestDifferenceGaps())
@compiled
def _best_difference_gaps(rule: BestDifferenceGaps, round_: Round, gaps: Array) -> None:
    """O(k); delta_s bounds all differences to x-hat."""
    separations, shortfalls = round_.alternatives.separations, round_.alternatives.shortfalls
    delta = 0.0
    for z in range(gaps.shape[0]):
        delta = max(delta, math.sqrt(round_.beta * separations[z]) - shortfalls[z])
    for x in range(gaps.shape[0]):
        gaps[x] = delta + shortfalls[x]
    _lift(round_, gaps)


# Not for IDS, which would play x-hat for ever: delta_s is zero, or as good as zero.
class EmpiricalGaps(NamedTuple):
    """<x-hat - x, theta-hat>."""

    code: int = 0


@gap_estimates.register(EmpiricalGaps)
@compiled
def _empirical_gaps(rule: EmpiricalGaps, round_: Round, gaps: Array) -> None:
    for x in range(gaps.shape[0]):
        gaps[x] = max(round_.alternatives.shortfalls[x], 0.0)


class FlooredGaps(NamedTuple):
    """<x-hat - x, theta-hat>, but at least sigma / sqrt(s)."""

    code: int = 0


@gap_estimates.register(FlooredGaps)
@compiled
def _floored_gaps(rule: FlooredGaps, round_: Round, gaps: Array) -> None:
    least = _least_error(round_)
    for x in range(gaps.shape[0]):
        gaps[x] = max(round_.alternatives.shortfalls[x], least)
