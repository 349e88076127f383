"""Reference solutions for c* of games: cutting planes over alternatives, and closed forms.

Nothing here shares a formula with the library beyond the program itself

    minimise Delta(alpha)  subject to  |Y (nu - theta)|^2 in alpha >= 2 sigma^2 for alternatives nu.

Arms without regret have so large an allocation that what they show is known.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from tests.naive import Array


class Game(NamedTuple):
    """X, Y and theta; the noise is 1."""

    rewards: Array
    observations: Array  # (k, p, d)
    theta: Array

    @property
    def gaps(self) -> Array:
        means = self.rewards @ self.theta
        gaps: Array = means.max() - means
        return gaps


def random_game(rng: np.random.Generator, most_arms: int = 40, most_dimensions: int = 8) -> Game:
    """Draw a game with some silent arms, and some that pay nothing."""
    k, d = int(rng.integers(3, most_arms + 1)), int(rng.integers(2, most_dimensions + 1))
    p = int(rng.integers(1, 4))
    rewards, theta = rng.standard_normal((k, d)), rng.standard_normal(d)
    observations = rng.standard_normal((k, p, d))
    observations[rng.random(k) < 0.2] = 0.0
    observations[rng.random((k, p)) < rng.choice([0.0, 0.5])] = 0.0
    rewards[rng.random(k) < 0.2] = 0.0
    return Game(rewards, observations, theta)


def lower_bound(game: Game, tolerance: float = 1e-7, rounds: int = 600) -> tuple[float, float]:
    """Bounds on c* for sigma = 1; both are inf where a difference cannot be seen."""
    gaps, d = game.gaps, len(game.theta)
    free, costly = gaps == 0, gaps > 0
    differences = (game.rewards - game.rewards[gaps.argmin()])[costly]
    silent = null_space(game.observations.reshape(-1, d))
    if np.abs(differences @ silent).max(initial=0.0) > 1e-9:
        return math.inf, math.inf
    known = game.observations[free].reshape(-1, d)
    space = null_space(known) if known.any() else np.eye(d)
    ties = (game.rewards[free] - game.rewards[gaps.argmin()]) @ space
    ties = ties[np.abs(ties).max(axis=1, initial=0.0) > 1e-9]
    differences = differences @ space
    possible = np.abs(differences).max(axis=1, initial=0.0) > 1e-9
    if not possible.any():
        return 0.0, 0.0
    differences, levels = differences[possible], gaps[costly][possible]
    rows, costs = game.observations[costly] @ space, gaps[costly]
    speaking = np.abs(rows).max(axis=(1, 2)) > 1e-12
    rows, costs = rows[speaking], costs[speaking]
    cuts = np.zeros((0, len(costs)))
    best = query = np.ones(len(costs))  # what is spent on each arm
    upper, lower = math.inf, 0.0
    for _ in range(rounds):
        V = np.einsum("x,xpi,xpj->ij", query / costs, rows, rows) / 2.0
        inverse = np.linalg.pinv(V, rcond=1e-14, hermitian=True)
        against = _against(differences, ties, inverse)
        directions = inverse @ against.T
        squared = (against.T * directions).sum(axis=0)
        distances = levels**2 / squared
        shifts = (directions * (levels / squared)).T
        if query.sum() / distances.min() < upper:
            upper, best = query.sum() / distances.min(), query / distances.min()
        told = ((shifts @ rows.transpose(0, 2, 1)) ** 2).sum(axis=2).T / (2.0 * costs)
        cuts = np.vstack([cuts, told[np.argsort(distances)[:10]]])
        result = linprog(np.ones(len(costs)), -cuts, -np.ones(len(cuts)), method="highs")
        dual = np.maximum(-result.ineqlin.marginals, 0.0)
        lower = max(lower, float(dual.sum() / (dual @ cuts).max()))
        if upper - lower <= tolerance * upper:
            break
        query = 0.5 * (best + result.x)
    return lower, upper


def _against(differences: Array, ties: Array, inverse: Array) -> Array:
    """X_z - X_b for the mixture b of two best arms that z is hardest to tell from.

    z must be better than both.  The distance to an intersection of half-spaces is the largest one
    to a half-space that contains it, and these have the mixtures of both differences as normals.
    """
    if len(ties) == 0:
        return differences
    (tie,) = ties  # not made for more than two best arms
    share = np.clip(differences @ inverse @ tie / (tie @ inverse @ tie), 0.0, 1.0)
    mixed: Array = differences - share[:, None] * tie
    return mixed


def star(theta: Array) -> float:
    """c* of independent arms, the first of which shows the means of all, the others nothing.

    The evidence that z is not best is alpha gap^2 / 4, for each of the two means may err by half of
    the difference.  Where the first is the best, everything is observed at no cost.
    """
    gaps = theta.max() - theta
    return float(4.0 * gaps[0] / gaps[gaps > 0].min() ** 2)


def star_with_loops(theta: Array) -> float:
    """c* of the same game in which the others show their own mean.

    The best mean is observed at no cost.  With t pulls of the first, z needs 2 / gap^2 - t of its
    own: the cost is convex and piecewise linear in t, least at one of its corners.
    """
    gaps = theta.max() - theta
    if gaps[0] == 0:
        return 0.0
    needs = 2.0 / gaps[gaps > 0] ** 2
    corners = needs[needs >= 2.0 / gaps[0] ** 2]
    others = np.flatnonzero((gaps > 0) & (np.arange(len(gaps)) > 0))
    costs = [
        gaps[0] * t + sum(gaps[z] * max(2.0 / gaps[z] ** 2 - t, 0.0) for z in others)
        for t in corners
    ]
    return float(min(costs))


def cliques(theta: Array, members: list[list[int]]) -> float:
    """c* of independent arms in cliques, each of which shows the means of all of its clique.

    The clique of the best arm is observed at no cost.  In another one, the best member is the
    nearest to be best, alpha gap^2 / 2 in all, and it is also the cheapest to play.
    """
    gaps = theta.max() - theta
    others = [clique for clique in members if gaps[clique].min() > 0]
    return float(sum(2.0 / gaps[clique].min() for clique in others))
