"""Barycentric spanners and optimal designs: a few arms that represent all, and shares of pulls.

| symbol                                  | here             | shape  |
|-----------------------------------------|------------------|--------|
| s(x) x, the arms                        | ``actions``, ``scales`` | (k, d), (k,) |
| rank r of the arms                      | ``rank[0]``      | int    |
| b_1, ..., b_r, the spanner              | ``members[:r]``  | (d,)   |
| c in s(x) x = sum_j c_j b_j             | ``coordinates[x, :r]`` | (k, d) |
| pi, shares of the pulls                 | ``weights``      | (k,)   |
| V(pi) = sum_x pi(x) s(x)^2 x x^T        |                  |        |
| V(pi)^-1 in coordinates of the spanner  | ``inverse``      | (d, d) |
| squared norm of s(x) x in V(pi)^-1      | ``leverages``    | (k,)   |

**Spanner.**  Arms are chosen one by one, each with the largest |det| of those chosen so far and
unit vectors for the rest; then members are exchanged as long as that raises |det| by more than a
factor C.  Exchanging b_j for x multiplies det by the coordinate c_j of x, so in the end all
coordinates are within [-C, C] (Awerbuch, Kleinberg, STOC 2004).  There are O(r log r) exchanges of
O(k d) each.  Coordinates have no units: arms of size 1e70 and 1e-70 have equally accurate ones.

**Design.**  The design that maximises det V(pi) (D-optimal) also minimises the largest leverage
(G-optimal), which then equals r (Kiefer, Wolfowitz, 1960): the largest leverage certifies how good
a design is, and ends the search.

The search is Frank-Wolfe with away steps (Fedorov, Wynn, Atwood): move weight to the arm of
largest leverage, or away from the one of least leverage that has any, with the exact step; both
update V^-1 by a rank-one formula, O(k r).  It converges linearly (Ahipasaoglu, Sun, Todd, 2008).
It starts from equal weights on a barycentric spanner: r arms, after the idea of Kumar and Yildirim
(2005).  There leverages are at most C^2 r^2, and in its coordinates the start is V^-1 = r I and the
condition number of any later V(pi) at most C^2 r^3, whatever the units of the arms: the rank-one
formula loses no digits that matter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sightline.core.linalg import Array, Ints
from sightline.core.persistence import indices, invariant, persists, shares, within
from sightline.jit import compiled, compiled_apart

# The part of an arm outside the span of others is rounding below this fraction of the arm itself:
# elimination leaves some ten units in the last place, 2e-15.
NEGLIGIBLE = 1e-12
SPANNER_FACTOR = 2.0
MOST_STEPS = 100_000  # never needed: a tolerance of 1e-9 takes some hundred steps


class Spanner(NamedTuple):
    """Members of a spanner, and the coordinates of all arms in them."""

    coordinates: Array
    members: Ints
    rank: Ints  # (1,)
    sizes: Array  # workspace (k,)


@invariant(Spanner)
def _check_spanner(work: Spanner, name: str) -> None:
    k, d = work.coordinates.shape
    within(f"{name}.coordinates", work.coordinates, ends=False)
    indices(f"{name}.members", work.members, k)
    indices(f"{name}.rank", work.rank, d + 1)


def spanner(k: int, d: int) -> Spanner:
    """Arrays for k arms in d dimensions."""
    members, rank = (np.zeros(n, dtype=np.int64) for n in (d, 1))
    return Spanner(np.zeros((k, d)), members, rank, np.zeros(k))


@compiled
def barycentric_spanner(work: Spanner, actions: Array, scales: Array, factor: float) -> None:
    """Write a spanner of the arms ``scales[x] actions[x]``, and their coordinates, for C > 1.

    Scales are >= 0; an arm with scale 0 is left out.  From the rank on, entries of ``members`` are
    meaningless and columns of ``coordinates`` zero.
    """
    _write_in_units_of_features(work, actions, scales)
    c = work.coordinates
    k, d = c.shape
    r = 0
    while r < d:
        x, column = _largest(c, r, d)
        if c[x, column] == 0.0:
            break
        for z in range(k):
            c[z, r], c[z, column] = c[z, column], c[z, r]
        _exchange(c, x, r)
        work.members[r] = x
        r += 1
        _clear_roundings(work, r)
    work.rank[0] = r
    while r > 0:
        x, column = _largest(c, 0, r)
        if abs(c[x, column]) <= factor:
            break
        _exchange(c, x, column)
        work.members[column] = x


@compiled
def _write_in_units_of_features(work: Spanner, actions: Array, scales: Array) -> None:
    """Start from unit vectors, each as long as the largest feature, so that units do not matter."""
    k, d = actions.shape
    for z in range(k):
        work.sizes[z] = 0.0
    for i in range(d):
        unit = 0.0
        for z in range(k):
            unit = max(unit, abs(scales[z] * actions[z, i]))
        for z in range(k):
            entry = scales[z] * actions[z, i] / unit if unit > 0.0 else 0.0
            work.coordinates[z, i] = entry
            work.sizes[z] = max(work.sizes[z], abs(entry))
        work.members[i] = 0


@compiled
def _largest(c: Array, first: int, last: int) -> tuple[int, int]:
    """Arm and column of the coordinate of largest modulus; the first one among equals."""
    arm, column = 0, first
    largest = abs(c[0, first])
    for z in range(c.shape[0]):
        for i in range(first, last):
            if abs(c[z, i]) > largest:
                arm, column, largest = z, i, abs(c[z, i])
    return arm, column


@compiled
def _exchange(c: Array, x: int, column: int) -> None:
    """Replace a basis vector by arm x, and write the coordinates of all arms in the new basis."""
    k, d = c.shape
    pivot = c[x, column]
    for z in range(k):
        if z != x and c[z, column] != 0.0:
            share = c[z, column] / pivot  # 1 for twins of x, which thereby stay its twins
            for i in range(d):
                c[z, i] -= share * c[x, i]
            c[z, column] = share
    for i in range(d):
        c[x, i] = 1.0 if i == column else 0.0


@compiled
def _clear_roundings(work: Spanner, first: int) -> None:
    """Set remainders of elimination that are rounding errors to zero."""
    k, d = work.coordinates.shape
    for z in range(k):
        for i in range(first, d):
            if abs(work.coordinates[z, i]) <= NEGLIGIBLE * work.sizes[z]:
                work.coordinates[z, i] = 0.0


@persists("weights")
class Design(NamedTuple):
    """A design with the arrays it is computed in."""

    weights: Array
    leverages: Array
    inverse: Array
    direction: Array  # workspace (d,): w = V^-1 c
    steps: Ints  # (1,) taken
    spanner: Spanner


@invariant(Design)
def _check(work: Design, name: str) -> None:
    shares(f"{name}.weights", work.weights, empty=True)


def design(k: int, d: int) -> Design:
    """Arrays for k arms in d dimensions."""
    return Design(
        weights=np.zeros(k),
        leverages=np.zeros(k),
        inverse=np.zeros((d, d)),
        direction=np.zeros(d),
        steps=np.zeros(1, dtype=np.int64),
        spanner=spanner(k, d),
    )


@compiled_apart
def optimal_design(work: Design, actions: Array, scales: Array, tolerance: float) -> float:
    """Write a design whose largest leverage is at most (1 + tolerance) r; return that leverage.

    Scales are >= 0; an arm with scale 0 is left out.  The tolerance must exceed 1e-10: below,
    rounding decides.  If all arms are zero, the rank, every weight and the answer are 0.
    """
    barycentric_spanner(work.spanner, actions, scales, SPANNER_FACTOR)
    r = work.spanner.rank[0]
    _start(work, r)
    work.steps[0] = 0
    if r == 0:
        return 0.0
    most, least = _extremes(work)
    while work.leverages[most] > (1.0 + tolerance) * r and work.steps[0] < MOST_STEPS:
        if work.leverages[most] - r >= r - work.leverages[least]:
            _move(work, r, most, _exact_step(work.leverages[most], r))
        else:
            removal = -work.weights[least] / (1.0 - work.weights[least])
            step = removal
            if work.leverages[least] > 1.0:
                step = max(removal, _exact_step(work.leverages[least], r))
            _move(work, r, least, step)
            if step == removal:
                work.weights[least] = 0.0
        work.steps[0] += 1
        most, least = _extremes(work)
    worst: float = work.leverages[most]
    return worst


@compiled
def largest_reward_leverage(work: Design, scales: Array, weights: Array) -> float:
    """Largest leverage of a reward, x itself, in a design of observations ``weights[x]`` x."""
    worst = 0.0
    for x in range(scales.shape[0]):
        if scales[x] > 0.0:
            worst = max(worst, work.leverages[x] / (weights[x] * weights[x]))
    return worst


@compiled
def _start(work: Design, r: int) -> None:
    """Give equal weights to the members of the spanner, which are unit vectors there."""
    c = work.spanner.coordinates
    k, d = c.shape
    for z in range(k):
        work.weights[z] = 0.0
        total = 0.0
        for i in range(r):
            total += c[z, i] * c[z, i]
        work.leverages[z] = r * total
    for i in range(d):
        for j in range(d):
            work.inverse[i, j] = float(r) if i == j and i < r else 0.0
    for j in range(r):
        work.weights[work.spanner.members[j]] = 1.0 / r


@compiled
def _extremes(work: Design) -> tuple[int, int]:
    """Arm of largest leverage, and of least leverage among those with weight; first of equals."""
    most, least = 0, -1
    for z in range(work.leverages.shape[0]):
        if work.leverages[z] > work.leverages[most]:
            most = z
        if work.weights[z] > 0.0 and (least < 0 or work.leverages[z] < work.leverages[least]):
            least = z
    return most, least


@compiled
def _exact_step(leverage: float, r: int) -> float:
    """Share a that maximises log det((1 - a) V + a c c^T), for leverage > 1."""
    return (leverage / r - 1.0) / (leverage - 1.0)


@compiled
def _move(work: Design, r: int, x: int, step: float) -> None:
    """Replace pi by (1 - step) pi + step at x: V^-1 and all leverages by a rank-one update."""
    c, w = work.spanner.coordinates, work.direction
    k = c.shape[0]
    for i in range(r):
        total = 0.0
        for j in range(r):
            total += work.inverse[i, j] * c[x, j]
        w[i] = total
    grow = 1.0 / (1.0 - step)
    shrink = step * grow / (1.0 + step * grow * work.leverages[x])
    for i in range(r):
        for j in range(i + 1):  # one triangle, mirrored: symmetric to the last bit
            entry = grow * (work.inverse[i, j] - shrink * w[i] * w[j])
            work.inverse[i, j] = entry
            work.inverse[j, i] = entry
    for z in range(k):
        cross = 0.0
        for i in range(r):
            cross += c[z, i] * w[i]
        work.leverages[z] = grow * (work.leverages[z] - shrink * cross * cross)
        work.weights[z] *= 1.0 - step
    work.weights[x] += step


@compiled
def first_lacking(pulls: Array, planned: Array, start: int) -> int:
    """First arm from ``start`` on with fewer pulls than planned; k if there is none."""
    arm = start
    while arm < pulls.shape[0] and pulls[arm] >= planned[arm]:
        arm += 1
    return arm


@compiled
def best_remaining(remaining: Array, means: Array) -> int:
    """Arm of largest mean among those that remain; the first one among equals."""
    best = -1
    for x in range(remaining.shape[0]):
        if remaining[x] > 0.0 and (best < 0 or means[x] > means[best]):
            best = x
    return best
