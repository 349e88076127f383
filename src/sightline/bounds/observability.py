"""Observability of linear partial monitoring games, and the minimax regret that follows from it.

Bartok, Foster, Pal, Rakhlin, Szepesvari (2014) treat finite games, Kirschner, Lattimore, Krause
(2020) linear ones.  Arm a pays <phi_a, theta> and shows Y_a theta + noise, for a parameter theta of
a set Theta.  With cells and neighbours as in :mod:`sightline.bounds.cells`, a game is

- trivial if one arm is best everywhere: no regret;
- locally observable if for all neighbours a, b the difference phi_a - phi_b is a linear combination
  of rows shown by arms of N(a, b), the arms that are best wherever a and b both are: regret of
  order sqrt(n), since an observation costs no more than a mistake;
- globally observable if it is a linear combination of rows of all arms: regret of order n^(2/3);
- hopeless otherwise: regret of order n.

Everything is within the affine hull of Theta: a difference that is constant there is known.
In R^d the Pareto-optimal arms are the vertices of the convex hull of all phi_a, and neighbours are
its edges.  Neighbours suffice: they connect all cells, so every difference is a sum of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.cells import Partition, Region, Tie, find_cells, find_region, lengths
from sightline.core.linalg import Array
from sightline.core.projections import Polytope
from sightline.problems.base import TableProblem
from sightline.validation import SMALLEST, instance

_EXPONENTS = {"trivial": 0.0, "local": 1 / 2, "global": 2 / 3, "hopeless": 1.0}
# Relative precision of differences of arms, and singular values of rows that count as zero.
_ROUNDING = 1e-7
_DEPENDENT = 1e-8
_NOTHING = 1e-13  # size of a row after cancellation, relative to its terms, that counts as zero
_TOLERANCE = 1e-6  # of a residual, relative to its terms
_SHOWS_NOTHING = 1e-12  # size of a row, relative to the largest, that counts as zero


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Two arms with adjacent cells, and the observations that tell them apart.

    Attributes
    ----------
    first, second : int
        a and b, the first arms of their classes.
    between : tuple of int
        N(a, b): arms that are best wherever both are, a and b among them.
    seen : str
        "local" if arms of N(a, b) show phi_a - phi_b, "global" if others are needed, "hopeless" if
        no arms show it.
    tie : ndarray, shape (d,)
        A parameter under which both are best, and no arm outside of N(a, b) is.
    coefficients : ndarray, shape (k, p), or None
        w with sum_c sum_i w_ci Y_ci = phi_a - phi_b within Theta; zero outside of N(a, b) if
        ``seen`` is "local"; None if it is "hopeless".
    step : ndarray, shape (d,), or None
        Unless ``seen`` is "local": a is best under tie + step, b under tie - step, and no arm of
        N(a, b) shows a difference between the two parameters; no arm at all if it is "hopeless".
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
        """Two indistinguishable parameters; a is best under the first and b under the second."""
        return None if self.step is None else np.array([self.tie + self.step, self.tie - self.step])

    def __repr__(self) -> str:
        return f"Neighbours({self.first}, {self.second}, between={self.between}, {self.seen!r})"


@dataclass(frozen=True, eq=False)
class Observability:
    """Observability class of a game, with witnesses.

    Attributes
    ----------
    problem : TableProblem
        The game.
    parameter_set : Polytope or None
        Theta; None is all of R^d.
    kind : str
        "trivial", "local", "global" or "hopeless".
    pareto : tuple of int
        Arms that are best in a neighbourhood of some parameters, the first of each class.
    classes : tuple of tuple of int
        Arms that pay the same for all parameters, for every arm that is Pareto-optimal.
    degenerate : tuple of int
        Arms that are best for some parameters, but nowhere alone.
    parameters : ndarray, shape (len(pareto), d)
        A parameter for each Pareto-optimal class at which it alone is best.
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
        """Neighbours that keep the game out of a better class."""
        return tuple(pair for pair in self.neighbours if pair.seen == self.kind != "local")

    @property
    def reason(self) -> str:
        """Explanation of the class."""
        within = "" if self.parameter_set is None else " of the set"
        if self.kind == "trivial":
            arms = _listed("Arm", self.classes[0])
            return f"{arms} best under every parameter{within}: there is nothing to learn."
        if self.kind == "local":
            return (
                "For any two arms that compete for being best, arms that are as good where the "
                "two tie show which is better."
            )
        worst = self.blocking[0]
        pair = f"whether arm {worst.first} or arm {worst.second} is better"
        if self.kind == "hopeless":
            return f"No arm shows {pair}, and each of them is best under some parameters{within}."
        return (
            f"To learn {pair}, a policy must play arms that lose where the two tie: "
            f"{_listed('arm', worst.between)} as good there, but do not show it."
        )

    def verify(self) -> float:
        """Recompute all witnesses from the game alone, by plain arithmetic.

        Returns
        -------
        float
            The largest residual, relative to its terms.

        Raises
        ------
        ArithmeticError
            If a witness proves nothing.
        """
        residuals = [0.0]
        for members, theta in zip(self.classes, self.parameters, strict=True):
            residuals.append(_outside(self, theta))
            _check_best(self, theta, members, f"arm {members[0]} is not best where it should be")
        for pair in self.neighbours:
            residuals += _check_pair(self, pair)
        worst = max(residuals)
        if not worst <= _TOLERANCE:
            raise ArithmeticError(
                f"a witness has a residual of {worst:g}, allowed is {_TOLERANCE:g}"
            )
        return worst

    def __repr__(self) -> str:
        within = "R^d" if self.parameter_set is None else "a polytope"
        regret = {"trivial": "0", "local": "n^(1/2)", "global": "n^(2/3)", "hopeless": "n"}
        return (
            f"Observability({self.problem.name!r}, Theta = {within}: {self.kind}, regret ~ "
            f"{regret[self.kind]}, {len(self.pareto)} Pareto-optimal arms, "
            f"{len(self.neighbours)} pairs of neighbours)"
        )


def observability(game: TableProblem, parameter_set: Polytope | None = None) -> Observability:
    """Classify a partial monitoring game by its observability, which decides its minimax regret.

    Parameters
    ----------
    game : LinearGame or LinearBandit
        Rewards and observations of the arms; theta and noise levels do not matter.
    parameter_set : Polytope, optional
        Theta, the set of possible parameters; it may be flat, such as the simplex of
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
    if game.model.models is not None:
        raise ValueError(f"game must not be a finite class of models, {game.name} is one")
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
    """Rows that arms show within Theta, scaled to length 1, without those that vanish."""

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
        """Sparse coefficients of the rows of some arms, by orthogonal matching pursuit."""
        usable = np.ones(len(self.arms), bool) if arms is None else np.isin(self.arms, arms)
        rows = np.where(usable[:, None], self.units, 0.0)
        chosen: list[int] = []
        weights: NDArray[Any] = np.zeros(0)
        left = goal
        while lengths(left) > 1e-12 * lengths(goal):
            best = int(np.abs(rows @ left).argmax())
            if best in chosen:  # only rounding errors are left
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
    """Find rows that show the difference of two neighbours, and parameters they do not separate."""
    a, b = tie.first, tie.second
    goal = (rewards[a] - rewards[b]) @ region.basis
    seen, coefficients, blind = "hopeless", None, None
    for level, arms in (("local", tie.between), ("global", None)):
        left = rows.unseen(goal, arms)
        if lengths(left) <= _ROUNDING * lengths(goal):
            seen, coefficients = level, rows.combination(goal, arms)
            break
        blind = left
    return Neighbours(
        a,
        b,
        tie.between,
        seen,
        region.origin + region.basis @ tie.point,
        coefficients,
        None if blind is None else region.basis @ _step(tie, cells, rewards, blind, region),
    )


def _step(tie: Tie, cells: Partition, rewards: Array, direction: Array, region: Region) -> Array:
    """Half of the longest step that stays within Theta and both cells in both directions."""
    ways = [_room(region.slack - region.rows @ tie.point, np.abs(region.rows @ direction))]
    theta, change = region.origin + region.basis @ tie.point, region.basis @ direction
    others = [c for c in cells.pareto if c not in tie.between]
    for arm, sign in ((tie.first, 1.0), (tie.second, -1.0)):
        leads = rewards[arm] - rewards[others]
        ways.append(_room(leads @ theta, np.maximum(-sign * (leads @ change), 0.0)))
    return 0.5 * min(ways) * direction


def _room(slack: Array, rates: Array) -> float:
    """Largest step until a slack vanishes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ways = np.where(rates > 0, np.maximum(slack, 0.0) / rates, np.inf)
    return float(ways.min(initial=np.inf))


def _listed(noun: str, arms: tuple[int, ...]) -> str:
    """Arms as subject and verb of a sentence: ``arms 0, 2 and 3 are``."""
    if len(arms) == 1:
        return f"{noun} {arms[0]} is"
    return f"{noun}s {', '.join(map(str, arms[:-1]))} and {arms[-1]} are"


# --- verification of witnesses -------------------------------------------------------------------
#
# Not recomputed: that no other arm is Pareto-optimal, that no other pairs are neighbours, and that
# a parameter set is as flat as its ``directions`` say.


def _check_pair(found: Observability, pair: Neighbours) -> list[float]:
    """Residuals of equations; inequalities are checked here."""
    rewards, seen = found.problem.model.rewards, found.problem.model.observations
    difference = rewards[pair.first] - rewards[pair.second]
    what = f"neighbours {pair.first} and {pair.second}"
    _check_best(found, pair.tie, pair.between, f"{what} are not best where they tie")
    both = np.abs(rewards[pair.first]) + np.abs(rewards[pair.second])
    units = _units(found)
    sizes = np.abs(pair.tie) + units
    residuals = [_outside(found, pair.tie), _ratio(difference @ pair.tie, both @ sizes)]
    if pair.coefficients is not None:
        used = {int(c) for c in np.flatnonzero(pair.coefficients.any(axis=1))}
        if pair.seen == "local" and not used <= set(pair.between):
            raise ArithmeticError(f"{what}: a combination uses arms outside of their neighbourhood")
        shown = np.tensordot(pair.coefficients, seen, axes=2)
        terms = np.tensordot(np.abs(pair.coefficients), np.abs(seen), axes=2)
        left = np.abs((shown - difference) @ found.directions).max()
        scale = ((terms + np.abs(difference)) @ np.abs(found.directions)).max()
        residuals.append(_ratio(left, scale))
    if pair.step is not None:
        arms = list(pair.between if pair.seen == "global" else range(len(rewards)))
        changes = np.abs(seen @ pair.step)[arms]
        # length of the step in units of the width of Theta
        length = np.abs(np.linalg.lstsq(found.directions, pair.step, rcond=None)[0]).max()
        terms = length * (np.abs(seen) @ units)
        rows = terms[arms] > _SHOWS_NOTHING * terms.max()  # others are rounding errors themselves
        residuals += map(_ratio, changes[rows], terms[arms][rows])
        if not difference @ pair.step > 0:
            raise ArithmeticError(f"{what}: the step does not change which of them is better")
        for sign, arm in ((1.0, pair.first), (-1.0, pair.second)):
            residuals.append(_outside(found, pair.tie + sign * pair.step))
            differences = rewards[arm] - rewards
            # the step is added separately: it may be small beside the tie
            leads = differences @ pair.tie + sign * (differences @ pair.step)
            terms = _terms(rewards, arm, sizes)
            least = np.full(len(rewards), -1e-12)
            least[list(pair.between)] = -_TOLERANCE  # these arms are nearly on a line
            if (leads < least * terms).any():
                raise ArithmeticError(f"{what}: arm {arm} is not best under its parameter")
    return residuals


def _check_best(found: Observability, theta: Array, best: tuple[int, ...], trouble: str) -> None:
    """Check that some arms are best: other Pareto-optimal arms are worse, others not better."""
    rewards = found.problem.model.rewards
    leads = (rewards[best[0]] - rewards) @ theta
    terms = _terms(rewards, best[0], np.abs(theta) + _units(found))
    rivals = [members[0] for members in found.classes if members[0] not in best]
    if not (leads[rivals] > 0).all() or not (leads >= -_TOLERANCE * terms).all():
        raise ArithmeticError(trouble)


def _terms(rewards: Array, arm: int, sizes: Array) -> Array:
    """Sizes of the terms of differences to an arm; some arms are mere rounding errors."""
    terms = (np.abs(rewards) + np.abs(rewards[arm])) @ sizes
    floored: Array = np.maximum(terms, 1e-3 * terms.max())
    return floored


def _units(found: Observability) -> Array:
    """Width of Theta in every coordinate, relative to which parameters are known."""
    units: Array = np.abs(found.directions).sum(axis=1)
    return units


def _outside(found: Observability, theta: Array) -> float:
    """Largest violation of a constraint of Theta, relative to its terms."""
    if found.parameter_set is None:
        return 0.0
    normals, offsets = found.parameter_set.arrays(len(theta))
    terms = np.abs(normals) @ (np.abs(theta) + _units(found)) + np.abs(offsets)
    return float(max(map(_ratio, np.maximum(normals @ theta - offsets, 0.0), terms)))


def _ratio(residual: float, terms: float) -> float:
    """Residual relative to its terms, which may all be zero."""
    return 0.0 if residual == 0.0 else float(abs(residual) / terms)
