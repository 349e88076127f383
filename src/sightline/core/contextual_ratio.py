"""Contexts."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sightline.core.linalg import Array, Ints
from sightline.core.persistence import persists
from sightline.core.ratio import Mixture
from sightline.jit import compiled


@persists()
class Marginal(NamedTuple):
    """Current edge of every context during a walk; see the table above."""

    arms: Ints
    following: Ints  # -1 at the end of a chain
    slopes: Array  # (C,): of the edge between them


def marginal(contexts: int) -> Marginal:
    """Arrays for a number of contexts."""
    arms, following = (np.zeros(contexts, dtype=np.int64) for _ in range(2))
    return Marginal(arms, following, np.zeros(contexts))


class Walk(NamedTuple):
    """End of a walk.

    Attributes
    ----------
    context : int
        Context that randomises; -1 if none does.
    probability : float
        Probability with which it plays its following arm.
    gap, gain : float
        Expected gap and expected gain over all contexts.
    """

    context: int
    probability: float
    gap: float
    gain: float


@compiled
def _find_edge(chain: Marginal, c: int, start: int, stop: int, gaps: Array, gains: Array) -> None:
    """Find the next arm of a chain: the least slope to a larger gain, the farthest among equals."""
    here = chain.arms[c]
    chain.following[c], chain.slopes[c] = -1, math.inf
    for x in range(start, stop):
        if gains[x] > gains[here]:
            slope = (gaps[x] - gaps[here]) / (gains[x] - gains[here])
            farther = slope == chain.slopes[c] and gains[x] > gains[chain.following[c]]
            if slope < chain.slopes[c] or farther:
                chain.following[c], chain.slopes[c] = x, slope


@compiled
def walk_chains(
    chain: Marginal, starts: Ints, probabilities: Array, gaps: Array, gains: Array
) -> Walk:
    """Minimise the ratio of all contexts; the arms of each are left in the chain."""
    contexts = probabilities.shape[0]
    gap, gain = 0.0, 0.0
    for c in range(contexts):
        best = starts[c]
        for x in range(starts[c] + 1, starts[c + 1]):
            if gaps[x] < gaps[best] or (gaps[x] == gaps[best] and gains[x] > gains[best]):
                best = x
        chain.arms[c] = best
        _find_edge(chain, c, starts[c], starts[c + 1], gaps, gains)
        gap += probabilities[c] * gaps[best]
        gain += probabilities[c] * gains[best]
    while True:
        c = 0
        for i in range(1, contexts):
            if chain.slopes[i] < chain.slopes[c]:
                c = i
        if chain.following[c] < 0:
            return Walk(-1, 0.0, gap, gain)
        here, there = chain.arms[c], chain.following[c]
        more_gap = probabilities[c] * (gaps[there] - gaps[here])
        more_gain = probabilities[c] * (gains[there] - gains[here])
        q = gap / more_gap - 2.0 * gain / more_gain if more_gap > 0.0 else 1.0
        if gap <= 0.0:
            # Psi is zero without any exploration, as in _price_mixture: the cheapest edge is next
            return Walk(c, 1.0, more_gap, more_gain)
        if q <= 0.0:
            return Walk(-1, 0.0, gap, gain)
        if q < 1.0:
            return Walk(c, q, gap + q * more_gap, gain + q * more_gain)
        chain.arms[c] = there
        _find_edge(chain, c, starts[c], starts[c + 1], gaps, gains)
        gap += more_gap
        gain += more_gain


@compiled
def of_context(chain: Marginal, walk: Walk, context: int) -> Mixture:
    """Distribution of one context, with the ratio over all of them."""
    ratio = walk.gap * walk.gap / walk.gain if walk.gain > 0.0 else math.inf
    arm = chain.arms[context]
    if context != walk.context:
        return Mixture(arm, arm, 0.0, ratio)
    return Mixture(arm, chain.following[context], walk.probability, ratio)
