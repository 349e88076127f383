"""What regret a game allows at all: whether what arms show tells which arm is best.

Linear partial monitoring (Bartok, Foster, Pal, Rakhlin, Szepesvari, 2014, for finite games;
Kirschner, Lattimore, Krause, 2020, for linear ones).  Arm a pays <phi_a, theta> and shows
Y_a theta + noise, for a parameter theta of a set Theta.  With cells and neighbours as in
:mod:`sightline.bounds.cells`, a game is

- trivial if one arm is best everywhere: no regret;
- locally observable if for all neighbours a, b the difference phi_a - phi_b is a combination of
  rows that are shown by arms of N(a, b), those that are best wherever a and b both are: regret of
  order sqrt(n), since finding out costs no more than a mistake;
- globally observable if it is a combination of rows of all arms: regret of order n^(2/3);
- hopeless else: regret of order n.

All of this within the affine hull of Theta: a difference that is constant there is known.
In R^d the Pareto-optimal arms are the vertices of the convex hull of all phi_a, and neighbours are
its edges.  Neighbours are enough: they connect all cells, so every difference is a sum of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.cells import Partition, Tie, find_cells
from sightline.bounds.region import Region, find_region, lengths
from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem
from sightline.validation import SMALLEST, instance

__all__ = ["Neighbours", "Observability", "observability"]

Array = NDArray[np.float64]

_EXPONENTS = {"trivial": 0.0, "local": 1 / 2, "global": 2 / 3, "hopeless": 1.0}
# Differences of arms are known to this, relative to their own size; rows as near to being
# dependent are taken to be so.
_ROUNDING = 1e-7
_DEPENDENT = 1e-8
_NOTHING = 1e-13  # a row that is left when others cancel, relative to what it was made of


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two arms whose cells meet, and what tells which of them is better.

    Attributes
    ----------
    first, second : int
        a and b, the first arms of their classes.
    between : tuple of int
        N(a, b): arms that are best wherever both are, a and b among them.
    seen : str
        "local" if arms of N(a, b) show phi_a - phi_b, "global" if others are needed, "hopeless" if
        nothing shows it.
    tie : ndarray, shape (d,)
        A parameter under which both are best, and no arm outside of N(a, b) is.
    coefficients : ndarray, shape (k, p), or None
        w with sum_c sum_i w_ci Y_ci = phi_a - phi_b within Theta; zero outside of N(a, b) if
        ``seen`` is "local"; None if it is "hopeless".
    step : ndarray, shape (d,), or None
        Unless ``seen`` is "local": a is best under tie + step, b under tie - step, and no arm of
        N(a, b) shows a difference between the two; no arm at all if it is "hopeless".
    """

    first: int
    second: int
    between: tuple[int, ...]
    seen: str
    tie: Array
    coefficients: Array | None
    step: Array | None

    @property
    def parameters(self) -> Array | None:
        """Two parameters that are not told apart, a being best under the first."""
        return None if self.step is None else np.array([self.tie + self.step, self.tie - self.step])

    def __repr__(self) -> str:
        return f"Neighbours({self.first}, {self.second}, between={self.between}, {self.seen!r})"


@dataclass(frozen=True, eq=False)
class Observability:
    """Class of a game, with witnesses.

    Attributes
    ----------
    problem : TableProblem
        The game.
    parameter_set : Polytope or None
        Theta; None is all of R^d.
    kind : str
        "trivial", "local", "global" or "hopeless".
    pareto : tuple of int
        Arms that are best for some parameters and near them, the first of each class.
    classes : tuple of tuple of int
        Arms that pay the same for all parameters, for every arm that is Pareto-optimal.
    degenerate : tuple of int
        Arms that are best for some parameters, but nowhere alone.
    parameters : ndarray, shape (len(pareto), d)
        Where each Pareto-optimal class is best alone.
    neighbours : tuple of Neighbours
        Pairs of arms whose cells meet in one dimension less than Theta has, with witnesses.
    directions : ndarray, shape (d, r)
        Basis of the differences of parameters of Theta.
    """

    problem: TableProblem
    parameter_set: Polytope | None
    kind: str
    pareto: tuple[int, ...]
    classes: tuple[tuple[int, ...], ...]
    degenerate: tuple[int, ...]
    parameters: Array
    neighbours: tuple[Neighbours, ...]
    directions: Array

    @property
    def exponent(self) -> float:
        """Minimax regret grows like n to this power, up to logarithms."""
        return _EXPONENTS[self.kind]

    @property
    def blocking(self) -> tuple[Neighbours, ...]:
        """Neighbours for which the game is not better than it is."""
        return tuple(pair for pair in self.neighbours if pair.seen == self.kind != "local")

    @property
    def reason(self) -> str:
        """Why, in a sentence or two."""
        within = "" if self.parameter_set is None else " of the set"
        if self.kind == "trivial":
            arms = _listed("Arm", self.classes[0])
            return f"{arms} best under every parameter{within}: there is nothing to find out."
        if self.kind == "local":
            return (
                "Whichever two arms compete for being best, arms that are as good where the two "
                "tie show which is better."
            )
        worst = self.blocking[0]
        pair = f"whether arm {worst.first} or arm {worst.second} is better"
        if self.kind == "hopeless":
            return f"No arm shows {pair}, and each of them is best under some parameters{within}."
        return (
            f"To see {pair} one must play arms that lose where the two tie: "
            f"{_listed('arm', worst.between)} as good there, and not enough."
        )

    def verify(self) -> float:
        """Recompute all witnesses from the game alone, by plain arithmetic.

        Returns
        -------
        float
            The largest residual, relative to the terms that it is made of.

        Raises
        ------
        ArithmeticError
            If a witness does not show what it should.
        """
        from sightline.bounds.observability_check import largest_residual

        return largest_residual(self)

    def __repr__(self) -> str:
        within = "R^d" if self.parameter_set is None else "a polytope"
        regret = {"trivial": "0", "local": "n^(1/2)", "global": "n^(2/3)", "hopeless": "n"}
        return (
            f"Observability({self.problem.name!r}, Theta = {within}: {self.kind}, regret ~ "
            f"{regret[self.kind]}, {len(self.pareto)} Pareto-optimal arms, "
            f"{len(self.neighbours)} pairs of neighbours)"
        )


def observability(game: TableProblem, parameter_set: Polytope | None = None) -> Observability:
    """Classify a game by what its arms show: how slowly regret can grow at best.

    Parameters
    ----------
    game : LinearGame or LinearBandit
        What arms pay and show; its theta and its noise levels do not matter.
    parameter_set : Polytope, optional
        Theta, the parameters that are possible; it may be flat, such as the simplex of
        distributions over outcomes.  All of R^d by default.

    Returns
    -------
    Observability
        The class, the cells of arms, and witnesses.  Cost: one linear program per arm, and one per
        pair of Pareto-optimal arms.
    """
    instance("game", game, TableProblem, "a LinearGame or a LinearBandit")
    game.model.needs_fixed_arms("observability")
    game.model.needs_noise("observability")
    if parameter_set is not None:
        instance("parameter_set", parameter_set, Polytope, "a Polytope or None")
    rewards, seen = game.model.rewards, game.model.observations
    for features in (rewards, seen):
        if 0.0 < (largest := float(np.abs(features).max())) < SMALLEST:
            raise ValueError(
                f"features must reach {SMALLEST:g}, got {largest:g} at most: scale them"
            )
    region = find_region(parameter_set, rewards, seen.reshape(-1, game.d))
    cells = find_cells(rewards, region)
    rows = _Rows(seen, region)
    neighbours = tuple(_witness(tie, cells, rewards, rows, region) for tie in cells.ties)
    levels = ["trivial", "local", "global", "hopeless"]
    kind = max((pair.seen for pair in neighbours), key=levels.index, default="trivial")
    return Observability(
        game,
        parameter_set,
        kind,
        cells.pareto,
        tuple(members for members in cells.classes if members[0] in cells.pareto),
        cells.degenerate,
        region.origin + cells.points @ region.basis.T,
        neighbours,
        region.basis,
    )


class _Rows:
    """What arms show within Theta: rows of length 1, those that show nothing left out."""

    def __init__(self, seen: Array, region: Region) -> None:
        self.shape = seen.shape[:2]
        rows = seen.reshape(-1, seen.shape[2]) @ region.basis
        terms = lengths(np.abs(seen) @ np.abs(region.basis)).ravel()
        norms = lengths(rows)
        self.kept = np.flatnonzero(norms > _NOTHING * np.maximum(terms, norms.max(initial=0.0)))
        self.norms = norms[self.kept]
        self.units = rows[self.kept] / self.norms[:, None]
        self.arms = self.kept // self.shape[1]

    def unseen(self, goal: Array, arms: tuple[int, ...] | None) -> Array:
        """Part of a vector that is orthogonal to the rows of some arms, or of all."""
        rows = self.units if arms is None else self.units[np.isin(self.arms, arms)]
        _, values, axes = np.linalg.svd(rows, full_matrices=False)
        axes = axes[values > _DEPENDENT * values.max(initial=0.0)]
        left: Array = goal - axes.T @ (axes @ goal)
        left -= axes.T @ (axes @ left)  # once more: what is left may be small
        return left

    def combination(self, goal: Array, arms: tuple[int, ...] | None) -> Array:
        """Coefficients of the rows of some arms, few of which are not zero.

        Rows join one by one, first the one that shows most of what is left.
        """
        usable = np.ones(len(self.arms), bool) if arms is None else np.isin(self.arms, arms)
        rows = np.where(usable[:, None], self.units, 0.0)
        chosen: list[int] = []
        weights: NDArray[Any] = np.zeros(0)
        left = goal
        while lengths(left) > 1e-12 * lengths(goal):
            best = int(np.abs(rows @ left).argmax())
            if best in chosen:  # nothing but rounding errors is left
                break
            chosen.append(best)
            weights = np.linalg.lstsq(rows[chosen].T, goal, rcond=None)[0]
            left = goal - rows[chosen].T @ weights
        if lengths(left) > _ROUNDING * lengths(goal):  # rows that are nearly dependent
            chosen = list(range(len(rows)))
            weights = np.linalg.lstsq(rows.T, goal, rcond=_DEPENDENT)[0]
        coefficients = np.zeros(self.shape)
        coefficients.flat[self.kept[chosen]] = weights / self.norms[chosen]
        return coefficients


def _witness(tie: Tie, cells: Partition, rewards: Array, rows: _Rows, region: Region) -> Neighbours:
    """Find what shows the difference of two neighbours, and what cannot be told apart."""
    a, b = tie.first, tie.second
    goal = (rewards[a] - rewards[b]) @ region.basis
    seen, blind = "local", None
    arms: tuple[int, ...] | None = tie.between
    for level, known in (("local", tie.between), ("global", None)):
        left = rows.unseen(goal, known)
        if lengths(left) <= _ROUNDING * lengths(goal):
            seen, arms = level, known
            break
        blind = left
    else:
        seen = "hopeless"
    return Neighbours(
        a,
        b,
        tie.between,
        seen,
        region.origin + region.basis @ tie.point,
        None if seen == "hopeless" else rows.combination(goal, arms),
        None if blind is None else region.basis @ _step(tie, cells, rewards, blind, region),
    )


def _step(tie: Tie, cells: Partition, rewards: Array, direction: Array, region: Region) -> Array:
    """Half of the way that can be gone both ways, within Theta and the two cells."""
    ways = [_room(region.slack - region.rows @ tie.point, np.abs(region.rows @ direction))]
    theta, turn = region.origin + region.basis @ tie.point, region.basis @ direction
    others = [c for c in cells.pareto if c not in tie.between]
    for arm, sign in ((tie.first, 1.0), (tie.second, -1.0)):
        leads = rewards[arm] - rewards[others]
        ways.append(_room(leads @ theta, np.maximum(-sign * (leads @ turn), 0.0)))
    return 0.5 * min(ways) * direction


def _room(slack: Array, rates: Array) -> float:
    """How far one can go until a slack is used up."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.where(rates > 0, np.maximum(slack, 0.0) / rates, np.inf)
    return float(ways.min(initial=np.inf))


def _listed(noun: str, arms: tuple[int, ...]) -> str:
    """Arms as the subject of a sentence, with its verb: arms 0, 2 and 3 are."""
    if len(arms) == 1:
        return f"{noun} {arms[0]} is"
    return f"{noun}s {', '.join(map(str, arms[:-1]))} and {arms[-1]} are"
