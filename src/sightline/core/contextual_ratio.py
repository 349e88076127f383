"""The information ratio over all contexts together.

| symbol                               | here                     | shape |
|--------------------------------------|--------------------------|-------|
| p_c, probability of a context        | ``probabilities``        | (C,)  |
| Delta(c, a), I(c, a)                 | ``gaps``, ``gains``      | (k,)  |
| Psi = (sum_c p_c Delta(mu_c))^2 / sum_c p_c I(mu_c) |           |       |
| arm of a context, and the next one on its chain | ``arms``, ``following`` | (C,) |

The reachable pairs of expected gap and expected gain form the Minkowski sum of p_c times the convex
hull of the points of context c.  Its lower right boundary starts where every context plays its arm
of least gap.  It consists of the edges of the hulls, ordered by slope: on each edge one context
trades more gap for more gain.  Psi first falls along the boundary and then rises.  On an edge with
the increments dD and dI, Psi is least after the part

    q = D / dD - 2 I / dI,    (D, I) being the start of the edge,

so the walk continues while q >= 1 and ends within an edge: at most one context randomises, between
two arms.  At the end all contexts play argmin_a 2 Delta(c, a) - lambda I(c, a) with one lambda =
D / I.  An edge costs O(C + K), K arms in a context; few edges are walked.
"""

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
    """Current edge of every context during a walk."""

    arms: Ints
    following: Ints  # -1 at the end of a chain
    slopes: Array  # (C,): of the edge between them


def marginal(contexts: int) -> Marginal:
    """Arrays for a number of contexts."""
    arms, following = (np.zeros(contexts, dtype=np.int64) for _ in range(2))
    return Marginal(arms, following, np.zeros(contexts))


class Walk(NamedTuple):
    """End of a walk."""

    context: int  # that randomises; -1 if none does
    probability: float  # with which it plays its following arm
    gap: float  # expected over all contexts
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
    """Return the action probabilities of one context, with the ratio over all of them."""
    ratio = walk.gap * walk.gap / walk.gain if walk.gain > 0.0 else math.inf
    arm = chain.arms[context]
    if context != walk.context:
        return Mixture(arm, arm, 0.0, ratio)
    return Mixture(arm, chain.following[context], walk.probability, ratio)
