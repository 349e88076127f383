"""A linear game: what an arm pays and what playing it shows are two things."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sightline.core.model import common_noise, game_model, valid_noise_std
from sightline.problems.base import World
from sightline.problems.noise import Gaussian, valid_noise
from sightline.problems.table import TableProblem

__all__ = ["LinearGame"]


class LinearGame(TableProblem):
    """Arms that pay <x, theta>, which nobody sees, and show Y_x theta + noise.

    Linear partial monitoring (Kirschner, Lattimore, Krause, 2020).  A bandit is the game in which
    every arm shows what it pays.

    Parameters
    ----------
    rewards : array_like, shape (k, d)
        X: what every arm pays.  An arm with a row of zeros pays nothing, and may show something.
    observations : array_like, shape (k, d) or (k, p, d)
        Y: what every arm shows, one number or p.  A row of zeros shows nothing.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float or array_like, shape (k,) or (k, p)
        Standard deviation of Gaussian noise: of all that is seen, of each arm, or of each row.
        Not allowed beside ``noise``.
    noise : distribution, optional
        Another distribution of :mod:`sightline.problems` around every mean that is seen.
    name : str
        How results refer to the game.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        X.
    observations : ndarray, shape (k, p, d)
        Y, as given.
    means, gaps : ndarray, shape (k,)
        Mean reward of every arm, and what it falls short of the best.
    best : int
        Arm with the largest mean, the first one among equals.
    k, p, d : int
        Number of arms, of rows that each shows, and dimension.
    noise_std : float or ndarray, shape (k,) or (k, p)
        Sub-Gaussian parameter of what is seen; an array if it differs.
    model : Model
        What a policy is told, without theta.
    """

    def __init__(
        self,
        rewards: ArrayLike,
        observations: ArrayLike,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        name: str = "linear-game",
    ) -> None:
        if noise is not None and noise_std is not None:
            raise ValueError("give noise_std or noise, not both")
        plain = game_model(rewards, observations)
        super().__init__(plain.rewards, theta, name)
        self.observations = plain.observations
        self.p = plain.observations_per_round
        if noise is None:
            level = 1.0 if noise_std is None else noise_std
            self.noise_std = valid_noise_std(level, self.k, self.p)
            self.noise = Gaussian(common_noise(self.noise_std))
        else:
            self.noise = valid_noise(noise, self.observations @ self.theta)
            self.noise_std = float(self.noise.std)
        self.model = game_model(self.actions, self.observations, self.noise_std)
        self.best: int = int(self.means.argmax())
        self.gaps = self.means[self.best] - self.means
        for array in (self.observations, self.gaps):
            array.setflags(write=False)

    def world(self) -> World:
        """Make what answers a policy in one run, in units of the noise of each row."""
        if self.model.shows_rewards:  # the means of the equivalent bandit, to the last bit
            return World(self.means[:, None].copy(), self.noise, self.arrivals())
        return super().world()

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.observations.shape, self.observations.tobytes())

    def __repr__(self) -> str:
        return (
            f"LinearGame({self.name!r}, k={self.k}, p={self.p}, d={self.d}, "
            f"noise={self.noise if isinstance(self.noise_std, float) else 'by row'})"
        )
