"""Problems with a table of arms that stay: what bandits, contexts and games share."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.problems.base import Arrivals, Problem, arrivals_of
from sightline.validation import LARGEST, finite_array, text

__all__ = ["TableProblem"]


class TableProblem(Problem):
    """Arms x with mean rewards <x, theta>: a value, equal to another with the same contents.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        X: one arm per row; of all contexts, if there are any.
    means : ndarray, shape (k,)
        Mean reward of every arm.
    k, d : int
        Number of arms and dimension.
    noise_std : float or ndarray
        Sub-Gaussian parameter sigma of what is seen; an array if it differs between arms.
    best : int or ndarray, shape (C,)
        Row of the best arm, or of the best arm of every context.
    """

    best: int | NDArray[np.int64]
    noise_std: float | NDArray[np.float64]

    def __init__(self, actions: NDArray[np.float64], theta: ArrayLike, name: str) -> None:
        self.actions = actions
        self.k, self.d = actions.shape
        self.theta = finite_array("theta", theta, (self.d,))
        with np.errstate(over="ignore", invalid="ignore"):
            self.means: NDArray[np.float64] = actions @ self.theta
        if not np.abs(self.means).max() <= LARGEST:
            raise ValueError(
                f"means must not exceed {LARGEST:g}, got {np.abs(self.means).max():g} for these "
                "actions and theta"
            )
        self.name = text("name", name)
        for array in (self.actions, self.theta, self.means):
            array.setflags(write=False)

    def member(self, replication: int) -> TableProblem:
        """Problem that a replication of an experiment plays: this one, unless it is redrawn."""
        return self

    @property
    def starts_of_contexts(self) -> NDArray[np.int64]:
        """First row of every context, and k; fixed arms are one context."""
        contexts = self.model.contexts
        return np.array([0, self.k]) if contexts is None else contexts.starts

    @property
    def contexts_of_arms(self) -> NDArray[np.int64]:
        """Context of every arm; 0 for fixed arms."""
        starts = self.starts_of_contexts
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    @property
    def best_rows(self) -> NDArray[np.int64]:
        """For every arm the row with which it is compared: the best of its context."""
        return np.repeat(self.best, np.diff(self.starts_of_contexts))

    def arrivals(self) -> Arrivals:
        """Make what decides which arms are on offer in a round of one run."""
        return arrivals_of([0, self.k])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableProblem) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        arrays = (self.actions, self.theta, np.asarray(self.noise_std))
        # distributions are tuples, of which Gaussian(1.0) == TwoPoint(1.0)
        contents = (array.tobytes() for array in arrays)
        return (self.name, self.actions.shape, *contents, type(self.noise), self.noise)
