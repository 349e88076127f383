"""Bayesian gaps and information gains of clicks and counts, from the cells of the posterior.

| symbol                                        | here                  | shape  |
|-----------------------------------------------|-----------------------|--------|
| E[mu(<x, theta>); x* = z]                     | ``within[x, z]``      | (k, c) |
| E mu(<x, theta>)                              | ``averages[x]``       | (k,)   |
| Delta(x) = E max_z mu(<z, theta>) - E mu(<x, theta>) | ``gaps[x]``    | (k,)   |
| sum_z p(z) (E[mu(<x, theta>) | z] - E mu(<x, theta>))^2 / Var(x) | ``gains[x]`` | (k,) |

All expectations are those of the Laplace approximation, and Var(x) is the variance of a reward at
theta-hat: a reward tells the more, the less it varies.  At equal rates the gain is that of Russo
and Van Roy but for a constant.  Since the mean reward grows with <x, theta>, the best arm of a
sample is the one with the largest predictor, and cells are those of normal rewards.

The joint law of <x, theta> and the cell is put on an even grid, and mu is evaluated on the grid
only: a linear interpolation in steps of a 64th of the reach of the samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import first_largest_offered, is_offered
from sightline.core.likelihood.laws import mean_of, variance_of
from sightline.core.linalg import norm
from sightline.core.persistence import persists
from sightline.core.posterior.cells import Cells, is_settled
from sightline.core.posterior.gains import bayesian_gains, bayesian_gaps
from sightline.core.posterior.joint import joint_law
from sightline.jit import compiled

__all__ = ["LawVariance", "law_variance"]

Array = NDArray[np.float64]

_HALF = 64
_NODES = 2 * _HALF + 4  # with what rounding may add


@persists()
class LawVariance(NamedTuple):
    """Variance-based information gain about mean rewards; see the table above."""

    law: Any
    within: Array
    averages: Array
    table: Array  # (c, nodes): joint law of predictor and cell
    rewards: Array  # (nodes,): mean rewards on the grid


def law_variance(law: Any, k: int, vertices: int) -> LawVariance:
    """Workspace of the gain, for k arms."""
    return LawVariance(
        law,
        np.zeros((k, vertices)),
        np.zeros(k),
        np.zeros((vertices, _NODES)),
        np.zeros(_NODES),
    )


@compiled
def _average(part: LawVariance, source: Any, cells: Cells, leader: int, x: int) -> None:
    """Write what an arm pays on average, in all and within every cell: O(M d + c)."""
    c = part.table.shape[0]
    deviation = norm(cells.whitened[x])
    part.averages[x] = 0.0
    if deviation == 0.0:
        for z in range(c):
            part.within[x, z] = cells.probabilities[z] * mean_of(part.law, cells.means[x])
            part.averages[x] += part.within[x, z]
        return
    step = source.reach * deviation * (1.0 + 1e-6) / _HALF
    joint_law(source, cells, leader, x, step, _HALF, part.table)
    for i in range(_NODES):
        part.rewards[i] = mean_of(part.law, cells.means[x] + (i - _HALF) * step)
    for z in range(c):
        total = 0.0
        for i in range(_NODES):
            total += part.table[z, i] * part.rewards[i]
        part.within[x, z] = total
        part.averages[x] += total


@bayesian_gaps.register(LawVariance)
@compiled
def _law_gaps(
    information: LawVariance,
    source: Any,
    cells: Cells,
    leader: int,
    excess: float,
    offer: Any,
    gaps: Array,
) -> int:
    """Once one arm is best in all samples, only its place matters, which the means tell."""
    averages, settled = information.averages, is_settled(cells, leader)
    for x in range(gaps.shape[0]):
        if settled:
            averages[x] = mean_of(information.law, cells.means[x])
        elif is_offered(offer, x):
            _average(information, source, cells, leader, x)
    best = first_largest_offered(offer, averages)
    highest = averages[best]
    if not settled:
        highest = 0.0
        for z in range(cells.vertices.shape[0]):
            highest += information.within[cells.vertices[z], z]
        highest = max(highest, averages[best])
    for x in range(gaps.shape[0]):
        gaps[x] = highest - averages[x]
    return best


@bayesian_gains.register(LawVariance)
@compiled
def _law_gains(
    information: LawVariance, source: Any, cells: Cells, leader: int, gains: Array
) -> None:
    """Spread of the averages over the cells, which the gaps have left."""
    for x in range(gains.shape[0]):
        total = 0.0
        for z in range(cells.probabilities.shape[0]):
            p = cells.probabilities[z]
            if p > 0.0:
                shift = information.within[x, z] / p - information.averages[x]
                total += p * shift * shift
        gains[x] = total / variance_of(information.law, cells.means[x])
