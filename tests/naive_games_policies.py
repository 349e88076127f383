"""Brute-force truths for rivals of IDS in games, from the whole data in plain NumPy.

Playing x shows Y_x theta and noise, p numbers; data of sweeps or of exploration rounds only.
"""

import math
from dataclasses import dataclass

import numpy as np

from sightline.core.model import Model
from tests import naive, naive_family, naive_observations
from tests.naive import Array, Ints
from tests.naive_allocation_policies import Record


@dataclass
class Game:
    """A game with Gaussian noise, the streams of one run, and all that was seen."""

    model: Model
    theta: Array
    decisions: np.random.Generator
    noise: np.random.Generator

    def __post_init__(self) -> None:
        self.arms: list[int] = []  # those learned from
        self.outcomes: list[Array] = []

    def learn(self, arm: int) -> None:
        """Play an arm and keep what it shows."""
        rows = self.model.observations[arm]
        noise = [self.noise.standard_normal() for _ in rows]
        self.arms.append(arm)
        self.outcomes.append(rows @ self.theta + self.model.noise_std * np.array(noise))

    def truth(self, regulariser: float) -> naive_observations.Truth:
        """Return theta-hat and V of all data at once."""
        p = self.model.observations_per_round
        outcomes = np.array(self.outcomes).reshape(-1, p)
        return naive_observations.truth(
            self.model.observations, np.array(self.arms, dtype=np.int64), outcomes, regulariser
        )


def thompson(game: Game, prior_std: float, rounds: int) -> Ints:
    """Play the best arm of a draw L^-T (L^-1 b + eta) from the Gaussian posterior, P = L L^T."""
    sigma = game.model.noise_std
    for _ in range(rounds):
        theta, V = game.truth((sigma / prior_std) ** 2)
        L = np.asarray(np.linalg.cholesky(V / sigma**2), dtype=np.float64)
        eta = game.decisions.standard_normal(len(theta))
        draw = naive.solve(L.T, naive.solve(L, V @ theta / sigma**2) + eta)
        game.learn(int(np.argmax(game.model.rewards @ draw)))
    return np.array(game.arms)


def lambda_of(game: Game, members: Ints, regulariser: float) -> float:
    """Return lambda, given in units of the largest squared row of a sweep."""
    rows = game.model.observations[members].reshape(-1, len(game.theta))
    return regulariser * max(float(y @ y) for y in rows)


def gcb(game: Game, members: Ints, constant: float, regulariser: float, rounds: int) -> Record:
    """Sweep, unless one arm stands out or there have been many sweeps."""
    rewards, sigma = game.model.rewards, game.model.noise_std
    ridge = lambda_of(game, members, regulariser)
    arms: list[int] = []
    learned: list[bool] = []
    for t in range(1, rounds + 1):
        sweeps, position = divmod(len(game.arms), len(members))
        exploits, best = False, 0
        if position == 0:
            theta, V = game.truth(ridge)
            best = int(np.argmax(rewards @ theta))
            others = [z for z in rewards if np.any(z != rewards[best])]
            f = math.log(max(t, 2)) + 2.0 * math.log(len(rewards))
            gap = min(float((rewards[best] - z) @ theta) for z in others)
            width = max(naive.squared_norm(rewards[best] - z, V) for z in others)
            exploits = gap >= constant * sigma * math.sqrt(f * width) or sweeps >= t ** (2 / 3) * f
        arms.append(best if exploits else int(members[position]))
        learned.append(not exploits)
        if not exploits:
            game.learn(arms[-1])
    return Record(np.array(arms), np.array(learned))


def pege(
    game: Game, members: Ints, powers: tuple[float, float], exponential: bool, rounds: int
) -> Record:
    """Sweep b^beta times, then play the best arm b^alpha or exp(b^alpha) times."""
    alpha, beta = powers
    arms: list[int] = []
    learned: list[bool] = []
    b = 0
    while len(arms) < rounds:
        b += 1
        for _ in range(math.floor(b**beta)):
            for arm in members.tolist():
                game.learn(arm)
                arms.append(arm)
                learned.append(True)
        theta = game.truth(lambda_of(game, members, 1e-6)).theta
        length = math.floor(math.exp(b**alpha)) if exponential else math.floor(b**alpha)
        arms += [int(np.argmax(game.model.rewards @ theta))] * length
        learned += [False] * length
    return Record(np.array(arms[:rounds]), np.array(learned[:rounds]))


def maximum_information(game: Game, beta: naive.Beta, rounds: int) -> Record:
    """Play what tells most about the widest difference to x-hat, unless x-hat is settled."""
    rewards, observations = game.model.rewards, game.model.observations
    arms: list[int] = []
    learned: list[bool] = []
    for t in range(1, rounds + 1):
        theta, V = game.truth(beta.regulariser)
        level = beta.exploitation(V, t)
        best = int(np.argmax(rewards @ theta))
        u = [rewards[best] - z for z in rewards if np.any(z != rewards[best])]
        settled = min(float(w @ theta) ** 2 / naive.squared_norm(w, V) for w in u) >= level
        direction = naive_family.plausible_direction(rewards, theta, V, level)
        gains = naive_observations.log_shrinkage(observations, V, direction)
        if gains.max() < 1e-12:
            gains = naive_observations.log_det_growth(observations, V)
        arms.append(best if settled else int(np.argmax(gains)))
        learned.append(not settled)
        if not settled:
            game.learn(arms[-1])
    return Record(np.array(arms), np.array(learned))
