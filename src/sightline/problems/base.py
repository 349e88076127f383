"""What the engine needs of a problem: the model that policies see, and what answers them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.model import Model

__all__ = ["Arrivals", "FixedArms", "OneNumber", "Problem", "SeveralNumbers"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class FixedArms(NamedTuple):
    """Every arm is on offer in every round."""

    code: int = 0  # numba knows no empty named tuples


class Arrivals(NamedTuple):
    """Contexts are drawn independently, each with its own rows of the table."""

    starts: Ints  # (C + 1,)
    cumulative: Array  # (C,): sums of the probabilities
    probabilities: Array  # (C,)
    bests: Ints  # (C,): scratch


class OneNumber(NamedTuple):
    """Answers with one number: its mean, and noise."""

    means: Array  # (k,)
    noise: Any
    arrivals: Any = FixedArms()


class SeveralNumbers(NamedTuple):
    """Answers with p numbers, each its mean and noise."""

    means: Array  # (k, p)
    noise: Any
    outcome: Array  # (p,): where the answer is written
    arrivals: Any = FixedArms()


class Problem(ABC):
    """A world with a finite table of arms; subclasses fill in the attributes.

    Attributes
    ----------
    name : str
        How results refer to the problem.
    model : Model
        What a policy is told.
    theta : ndarray, shape (d,)
        What it is not told.
    gaps : ndarray, shape (k,)
        What the mean reward of every arm falls short of the best, of its context if there are any.
    noise : distribution
        Of every entry of an outcome, around its mean.
    origin : mapping or None
        How a named problem was made.
    """

    name: str
    model: Model
    theta: Array
    gaps: Array
    noise: Any
    origin: Mapping[str, Any] | None = None

    def member(self, replication: int) -> Problem:
        """Problem that a replication of an experiment plays: this one, unless it is redrawn."""
        return self

    def world(self) -> OneNumber | SeveralNumbers:
        """Make what answers a policy in one run."""
        means = self.model.observations @ self.theta
        p = means.shape[1]
        if p == 1:
            return OneNumber(np.ascontiguousarray(means[:, 0]), self.noise)
        return SeveralNumbers(means, self.noise, np.zeros(p))
