"""A linear bandit: arms, the parameter that nobody tells the policies, and the noise."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import bandit_model, common_noise, valid_noise_std
from sightline.problems.base import OneNumber, Problem
from sightline.problems.noise import Gaussian, valid_noise
from sightline.validation import LARGEST, action_set, finite_array, text

__all__ = ["LinearBandit"]


class LinearBandit(Problem):
    """Arms x with rewards <x, theta> + noise: a value, equal to another with the same contents.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        One arm per row.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise, the same for all arms or one for each; not allowed
        beside ``noise``.
    noise : distribution, optional
        Another reward distribution of :mod:`sightline.problems`.
    name : str
        How results refer to the problem.

    Attributes
    ----------
    means, gaps : ndarray, shape (k,)
        Mean reward of every arm, and what it falls short of the best.
    best : int
        Arm with the largest mean, the first one among equals.
    k, d : int
        Number of arms and dimension.
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter sigma of the rewards; an array if it differs between arms.
    model : Model
        What a policy is told: arms, observations and noise, without theta.
    """

    def __init__(
        self,
        actions: ArrayLike,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        name: str = "linear-bandit",
    ) -> None:
        self.actions = action_set(actions)
        self.k, self.d = self.actions.shape
        self.theta = finite_array("theta", theta, (self.d,))
        with np.errstate(over="ignore", invalid="ignore"):
            self.means: NDArray[np.float64] = self.actions @ self.theta
        if not np.abs(self.means).max() <= LARGEST:
            raise ValueError(
                f"means must not exceed {LARGEST:g}, got {np.abs(self.means).max():g} for these "
                "actions and theta"
            )
        self.best = int(self.means.argmax())
        self.gaps = self.means[self.best] - self.means
        if noise is not None and noise_std is not None:
            raise ValueError("give noise_std or noise, not both")
        if noise is None:
            self.noise_std = valid_noise_std(1.0 if noise_std is None else noise_std, self.k)
            self.noise = Gaussian(common_noise(self.noise_std))
        else:
            self.noise = valid_noise(noise, self.means)
            self.noise_std = float(self.noise.std)
        self.model = bandit_model(self.actions, self.noise_std)
        self.name = text("name", name)
        for array in (self.actions, self.theta, self.means, self.gaps):
            array.setflags(write=False)

    @classmethod
    def load(
        cls, path: str | PathLike[str], noise_std: float | ArrayLike | None = None
    ) -> LinearBandit:
        """Read a problem from a .json, .npz or .csv file, which also gives it its name.

        JSON: an object with ``actions``, ``theta`` and perhaps ``noise_std``; NPZ: arrays of these
        names; CSV: a name and d numbers per row, the row named ``theta`` being the parameter.

        Parameters
        ----------
        path : path
            The file.
        noise_std : float or array_like, shape (k,), optional
            Takes precedence over the file; 1 if neither says.
        """
        from sightline.problems.files import read_problem  # it imports this module

        return read_problem(path, noise_std)

    def member(self, replication: int) -> LinearBandit:
        """Problem that a replication of an experiment plays: this one, unless it is redrawn."""
        return self

    def world(self) -> OneNumber:
        """Make what answers a policy in one run: rewards, in units of the noise of their arm."""
        assert self.model.weights is not None
        return OneNumber(self.model.weights * self.means, self.noise)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearBandit) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        arrays = (self.actions, self.theta, np.asarray(self.noise_std))
        # distributions are tuples, of which Gaussian(1.0) == TwoPoint(1.0)
        contents = (array.tobytes() for array in arrays)
        return (self.name, self.actions.shape, *contents, type(self.noise), self.noise)

    def __repr__(self) -> str:
        noise = self.noise if isinstance(self.noise_std, float) else f"{self.k} levels"
        return f"LinearBandit({self.name!r}, k={self.k}, d={self.d}, noise={noise})"
