"""The IDS distribution: minimise the information ratio (expected gap)^2 / (expected gain).

| symbol      | here                     | meaning                                      | shape |
|-------------|--------------------------|----------------------------------------------|-------|
| Delta-hat_s(x), I_s(x) | ``gaps``, ``gains`` | gap estimates and information gains      | (k,)  |
| Psi(mu)     | ``Mixture.ratio``        | information ratio                            | number |
| mu_s        | ``Mixture``              | its minimiser, on at most two arms           |       |
| p*          | ``Mixture.probability``  | probability of the second arm                | number |

Psi is convex in mu and some minimiser has two arms; on one pair p* is explicit (paper, lemma on
two actions).  For the ratio over contexts see :mod:`sightline.core.contextual_ratio`.
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

from sightline.core.linalg import Array
from sightline.jit import compiled


class Mixture(NamedTuple):
    """``second`` with the given probability, else ``first``."""

    first: int
    second: int
    probability: float
    ratio: float


class Sampling(enum.IntEnum):
    """Distributions over which the information ratio is minimised."""

    PAIR = 0  # mixtures of x-hat and one other arm
    EXACT = 1  # all distributions
    DETERMINISTIC = 2  # single arms


#: Ways to minimise the information ratio, by name; compiled code reads plain numbers.
SAMPLING: dict[str, int] = {kind.name.lower(): int(kind) for kind in Sampling}


@compiled
def least_ratio(sampling: int, gaps: Array, gains: Array, best: int) -> Mixture:
    """Minimise the information ratio; ``best`` is x-hat."""
    if sampling == Sampling.DETERMINISTIC:
        return single_arm(gaps, gains, best)
    mixture = pair_mixture(gaps, gains, best)
    if sampling == Sampling.EXACT:
        return _improve(mixture, gaps, gains)
    return mixture


@compiled
def pair_probability(gap_1: float, gain_1: float, gap_2: float, gain_2: float) -> float:
    """p* in [0, 1] for gap_1 <= gap_2: the weight of the second arm that minimises Psi."""
    if gain_1 >= gain_2:
        return 0.0
    if gap_1 >= gap_2:
        return 1.0
    p = gap_1 / (gap_2 - gap_1) - 2.0 * gain_1 / (gain_2 - gain_1)
    return min(max(p, 0.0), 1.0)


@compiled
def _mix(gap_1: float, gain_1: float, gap_2: float, gain_2: float) -> tuple[float, float]:
    """p* for gap_1 <= gap_2, and Psi there."""
    p = pair_probability(gap_1, gain_1, gap_2, gain_2)
    gap = (1.0 - p) * gap_1 + p * gap_2
    gain = (1.0 - p) * gain_1 + p * gain_2
    return p, gap * gap / gain if gain > 0.0 else math.inf


@compiled
def _pair(gaps: Array, gains: Array, x: int, z: int) -> Mixture:
    """Best mixture of two arms; the first is the one with the smaller gap."""
    first, second = (x, z) if gaps[x] <= gaps[z] else (z, x)
    p, ratio = _mix(gaps[first], gains[first], gaps[second], gains[second])
    return Mixture(first, second, p, ratio)


@compiled
def cheapest_arm(gaps: Array, gains: Array, otherwise: int) -> int:
    """Arm of least gap per gain among those with a gain, the first one among equals: O(k)."""
    cheapest = otherwise
    price = math.inf
    for x in range(gaps.shape[0]):
        if gains[x] > 0.0 and gaps[x] < price * gains[x]:
            cheapest, price = x, gaps[x] / gains[x]
    return cheapest


@compiled
def _price_mixture(gaps: Array, gains: Array, best: int) -> Mixture:
    """Limit of the IDS distribution as the gap of x-hat falls to zero.

    Psi is then zero on x-hat alone, which would be played permanently.  But x-hat has no gap only
    if it has no width: it is the zero vector, and playing it changes no estimate.  As delta_s -> 0
    the other arm of the mixture tends to the one of least gap per gain.  Playing that arm directly
    skips the rounds that change nothing.
    """
    return Mixture(best, cheapest_arm(gaps, gains, best), 1.0, 0.0)


@compiled
def pair_mixture(gaps: Array, gains: Array, best: int) -> Mixture:
    """Best mixture of x-hat and one other arm: O(k)."""
    if gaps[best] <= 0.0:
        return _price_mixture(gaps, gains, best)
    gap, gain = gaps[best], gains[best]
    result = _pair(gaps, gains, best, best)
    for x in range(gaps.shape[0]):
        if gaps[x] < gap:
            p, ratio = _mix(gaps[x], gains[x], gap, gain)
            if ratio < result.ratio:
                result = Mixture(x, best, p, ratio)
        elif gains[x] > gain:  # else p* = 0, which is x-hat alone
            p, ratio = _mix(gap, gain, gaps[x], gains[x])
            if ratio < result.ratio:
                result = Mixture(best, x, p, ratio)
    return result


@compiled
def exact_mixture(gaps: Array, gains: Array, best: int) -> Mixture:
    """Best distribution of all: a few passes of O(k)."""
    return _improve(pair_mixture(gaps, gains, best), gaps, gains)


@compiled
def _improve(mixture: Mixture, gaps: Array, gains: Array) -> Mixture:
    """Descend from a pair to the best distribution of all.

    At the minimiser, gap(x) - (Psi / (2 gap(mu))) gain(x) is least on the support (paper, lemma
    on the support).  While some arm is below, mixing it in lowers Psi; the minimiser over the two
    arms of the current pair and the new one is again a pair.  Psi falls each time, so no pair
    comes twice.
    """
    result = mixture
    if not 0.0 < result.ratio < math.inf:
        return result
    while True:
        p = result.probability
        gap = (1.0 - p) * gaps[result.first] + p * gaps[result.second]
        price = 0.5 * result.ratio / gap
        x = 0
        for z in range(1, gaps.shape[0]):
            if gaps[z] - price * gains[z] < gaps[x] - price * gains[x]:
                x = z
        better = _pair(gaps, gains, result.first, x)
        other = _pair(gaps, gains, result.second, x)
        if other.ratio < better.ratio:
            better = other
        if better.ratio >= result.ratio:
            return result
        result = better


@compiled
def single_arm(gaps: Array, gains: Array, best: int) -> Mixture:
    """Best single arm: the minimiser of gap^2 / gain, O(k)."""
    if gaps[best] <= 0.0:
        return _price_mixture(gaps, gains, best)
    result = _pair(gaps, gains, best, best)
    for x in range(gaps.shape[0]):
        candidate = _pair(gaps, gains, x, x)
        if candidate.ratio < result.ratio:
            result = candidate
    return result
