"""Where each arm is best: cells of the parameter set, by linear programs.

| symbol                                                | here               | shape      |
|-------------------------------------------------------|--------------------|------------|
| f_ab = <phi_a - phi_b, theta>: at theta_0, and slopes | ``_Arms.leads``    | (k, 1 + r) |
| C_a = {theta in Theta: f_ab(theta) >= 0 for all b}    | a cell             |            |

An arm is Pareto-optimal if its cell has the dimension of Theta: f_ab > 0 for all b somewhere.  Two
such arms are neighbours if their cells meet in one dimension less: f_ab = 0, and f_ac > 0 for all
others, somewhere.  Arms that are not Pareto-optimal shape no cell, since the cells of those that
are cover Theta; so they are left out of the programs for neighbours.

Coordinates and tolerances are those of :mod:`sightline.bounds.region`.
"""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.region import Region, lengths, solve

__all__ = ["Partition", "Tie", "find_cells"]

Array = NDArray[np.float64]

# Arms this close to each other, relative to their size, are the same; or on one line.
_SAME = 1e-9
# Times _SAME: an arm that is but rounding errors of others is zero.
_LEAST = 1e-5
# A cell as wide as this, where Theta has width 1, is one.  Directions of differences as small as
# _SAME are known to this.
_MARGIN = 1e-7


class Tie(NamedTuple):
    """Two neighbours, and a parameter where they are best and nearly all others are not."""

    first: int
    second: int
    between: tuple[int, ...]  # arms that are best wherever both are
    point: Array  # (r,)


class Partition(NamedTuple):
    """Which arms are best somewhere, and where two of them meet."""

    classes: tuple[tuple[int, ...], ...]  # arms that pay the same everywhere
    pareto: tuple[int, ...]  # first arms of classes
    degenerate: tuple[int, ...]  # best somewhere, but only beside others
    points: Array  # (len(pareto), r): where each is best
    ties: tuple[Tie, ...]


class _Arms:
    """What arms pay, as functions on Theta."""

    def __init__(self, rewards: Array, region: Region) -> None:
        self.rewards = rewards
        self.chart = np.column_stack([region.origin, region.basis])
        sizes = lengths(np.abs(rewards) @ np.abs(self.chart))
        self.sizes = np.maximum(sizes, _LEAST * sizes.max())

    def leads(self, a: int, others: Any = slice(None)) -> Array:
        """f_ac for other arms c: value at theta_0 and slopes."""
        found: Array = (self.rewards[a] - self.rewards[others]) @ self.chart
        return found

    def rounding(self, *arms: int, others: Any = slice(None)) -> Array:
        """Below what differences between some arms and others are none."""
        found: Array = _SAME * np.maximum(self.sizes[others], self.sizes[list(arms)].max())
        return found

    def classes(self) -> tuple[tuple[int, ...], ...]:
        """Arms that pay the same all over Theta, in the order of their first."""
        free, found = np.ones(len(self.rewards), dtype=bool), []
        for a in range(len(self.rewards)):
            if free[a]:
                members = free & (lengths(self.leads(a)) <= self.rounding(a))
                free[members] = False
                found.append(tuple(np.flatnonzero(members).tolist()))
        return tuple(found)

    def between(self, a: int, b: int) -> tuple[int, ...]:
        """Arms c with f_ac = t f_ab and t from 0 to 1: they are best wherever a and b both are."""
        leads = self.leads(a)
        tie = leads[b]
        shares = leads @ tie / (tie @ tie)
        off = lengths(leads - np.outer(shares, tie))
        on = off <= np.maximum(self.rounding(a, b), _MARGIN * lengths(leads))
        on &= (shares >= -_MARGIN) & (shares <= 1.0 + _MARGIN)
        return tuple(np.flatnonzero(on).tolist())


def find_cells(rewards: Array, region: Region) -> Partition:
    """Find cells and neighbours: one linear program per class of arms, and per pair of cells."""
    arms = _Arms(rewards, region)
    classes = arms.classes()
    firsts = np.array([members[0] for members in classes])
    found = [_inside(arms.leads(a, np.delete(firsts, i)), region) for i, a in enumerate(firsts)]
    points, margins = np.array([point for point, _ in found]), np.array([m for _, m in found])
    wide = margins > _MARGIN
    wide[margins.argmax()] = True  # cells cover Theta: one of them is wide, whatever rounding says
    pareto = firsts[wide].tolist()
    edge = firsts[~wide & (margins >= -_MARGIN)].tolist()
    return Partition(
        classes,
        tuple(pareto),
        tuple(c for members in classes if members[0] in edge for c in members),
        points[wide],
        _ties(pareto, arms, region),
    )


def _inside(leads: Array, region: Region) -> tuple[Array, float]:
    """Find a point of Theta where the least of some functions is largest, and its value there."""
    r = region.rows.shape[1]
    if len(leads) == 0:
        return np.zeros(r), 1.0
    leads = leads / lengths(leads)[:, None]
    rows = np.column_stack([region.rows, np.zeros(len(region.rows))])
    system = np.vstack([np.column_stack([-leads[:, 1:], np.ones(len(leads))]), rows])
    limits = np.concatenate([leads[:, 0], region.slack])
    bounds = [(None, None)] * r + [(None, 1.0)]
    found = solve(np.append(np.zeros(r), -1.0), system, limits, bounds)
    if found is None:
        return np.zeros(r), -np.inf
    return found[:-1], float((leads[:, 0] + leads[:, 1:] @ found[:-1]).min())


def _ties(pareto: list[int], arms: _Arms, region: Region) -> tuple[Tie, ...]:
    """Pairs of cells that meet in one dimension less than Theta has."""
    pairs = list(itertools.combinations(pareto, 2))
    met = {pair: _meeting(*pair, pareto, arms, region) for pair in pairs}
    chosen = {pair for pair in pairs if met[pair][1] > _MARGIN}
    # Cells cover Theta, so that neighbours connect them all.  Where rounding hides that, the pairs
    # that come nearest to it do.
    group = {a: a for a in pareto}
    for pair in sorted(pairs, key=lambda pair: (pair not in chosen, -met[pair][1])):
        old, new = (group[a] for a in pair)
        if old != new:
            chosen.add(pair)
            group = {a: new if g == old else g for a, g in group.items()}
    return tuple(Tie(*pair, arms.between(*pair), met[pair][0]) for pair in pairs if pair in chosen)


def _meeting(a: int, b: int, pareto: list[int], arms: _Arms, region: Region) -> tuple[Array, float]:
    """Find where two arms tie, others are worse and no face of Theta is near; and by how much."""
    r = region.rows.shape[1]
    tie = arms.leads(a, b)
    tie = tie / lengths(tie)
    others = np.array([c for c in pareto if c not in (a, b)], dtype=int)
    leads = arms.leads(a, others)
    # the same on the tie, and of a size that says whether it changes there
    leads -= np.outer(leads @ tie, tie)
    norms = lengths(leads)
    kept = norms > arms.rounding(a, b, others=others)
    leads = leads[kept] / norms[kept, None]
    rows = np.column_stack([region.rows, region.slack])  # Theta shrinks around its centre
    system = np.vstack([np.column_stack([-leads[:, 1:], np.ones(len(leads))]), rows])
    limits = np.concatenate([leads[:, 0], region.slack])
    bounds = [(None, None)] * r + [(0.0, 1.0)]
    objective = np.append(np.zeros(r), -1.0)
    found = solve(objective, system, limits, bounds, np.append(tie[1:], 0.0)[None], [-tie[0]])
    if found is None:
        return np.zeros(r), -np.inf
    point, slopes = found[:-1], tie[1:]  # on the tie but for what the solver neglects
    return point - slopes * (tie[0] + slopes @ point) / (slopes @ slopes), float(found[-1])
