"""Sampling distributions w over the arms, and what a round drawn from one tells on average.

| symbol                              | here         | shape  |
|-------------------------------------|--------------|--------|
| w(x)                                | ``weights``  | (k,)   |
| y_x, what an observation of x shows | ``rows``     | (k, d) |
| V_w = sum w(x) y_x y_x^T = R^T R    | ``factor``   | (d, d) |
| nu - theta-hat                      | ``shift``    | (d,)   |
| <nu - theta-hat, y_x>^2             | ``rates[x]`` | (k,)   |

nu is the parameter nearest to theta-hat in the norm of V_w under which another arm than x-hat is
best.  With u_z = x-hat - z it lies at squared distance <u_z, theta-hat>^2 / |u_z|^2, the norm taken
in V_w^-1, for the z that makes this least, and the distance equals sum w(x) rates[x].  It is a
minimum of functions linear in w, one for every alternative, so the rates of the minimiser are a
subgradient (Danskin): nothing has to be differentiated.

With contexts w(x) is the probability of the context of x times that of x in it, and every z is
compared with the best arm of its own context.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.alternatives import Comparison, rival_of
from sightline.core.estimate import LeastSquares
from sightline.core.linalg import norm, rank_one_update, solve, solve_transposed
from sightline.core.persistence import persists
from sightline.jit import compiled

Array = NDArray[np.float64]

# V_w is singular where w leaves out a direction.  Inside V_w, and only there, w has this share of
# the uniform distribution: unlike a multiple of I, that fits every scale and basis of the arms.
UNIFORM_SHARE = 1e-6
# What the factor starts from, relative to the longest arm: rotations need a diagonal that is not 0.
_FIRST_DIAGONAL = 1e-12


@persists()
class Sampling(NamedTuple):
    """Workspace of one evaluation; see the table above."""

    factor: Array
    shift: Array
    rates: Array
    vector: Array  # (d,)
    rows: Array  # (k, d): what an observation of each arm shows
    longest: float  # norm of the longest of them


def sampling(rows: Array) -> Sampling:
    """Arrays for arms of which an observation shows these rows."""
    k, d = rows.shape
    longest = max(norm(row) for row in rows)
    return Sampling(np.zeros((d, d)), np.zeros(d), np.zeros(k), np.zeros(d), rows, longest)


@compiled
def _factorise(weights: Array, work: Sampling) -> None:
    """Write the factor of V_w by rotating the rows into it, which loses fewest digits: O(k d^2)."""
    factor, vector, rows = work.factor, work.vector, work.rows
    k, d = rows.shape
    for i in range(d):
        for j in range(d):
            factor[i, j] = _FIRST_DIAGONAL * work.longest if i == j else 0.0
    for x in range(k):
        root = math.sqrt((1.0 - UNIFORM_SHARE) * weights[x] + UNIFORM_SHARE / k)
        for i in range(d):
            vector[i] = root * rows[x, i]
        rank_one_update(factor, vector)


@compiled
def _difference(actions: Array, best: int, z: int, vector: Array) -> None:
    for i in range(vector.shape[0]):
        vector[i] = actions[best, i] - actions[z, i]


@compiled
def information_rates(
    estimate: LeastSquares,
    alternatives: Any,
    comparison: Comparison,
    weights: Array,
    work: Sampling,
) -> float:
    """Write the rates of all arms, and return the squared distance to nu in V_w: O(k d^2).

    Only where the least distance is finite: some arm is then no twin of x-hat.
    """
    actions, factor, vector = estimate.arms.rewards, work.factor, work.vector
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    k, d = actions.shape
    _factorise(weights, work)
    nearest, least, nearest_norm = -1, math.inf, 1.0
    for z in range(k):
        if separations[z] > 0.0:
            _difference(actions, rival_of(alternatives, comparison, z), z, vector)
            solve_transposed(factor, vector)
            squared_norm = 0.0
            for i in range(d):
                squared_norm += vector[i] * vector[i]
            distance = shortfalls[z] * shortfalls[z] / squared_norm
            if distance < least:
                nearest, least, nearest_norm = z, distance, squared_norm
    _difference(actions, rival_of(alternatives, comparison, nearest), nearest, vector)
    solve_transposed(factor, vector)
    solve(factor, vector)
    scale = shortfalls[nearest] / nearest_norm
    for i in range(d):
        work.shift[i] = -scale * vector[i]
    for x in range(k):
        inner = 0.0
        for i in range(d):
            inner += work.shift[i] * work.rows[x, i]
        work.rates[x] = inner * inner
    return least
