"""What the engine needs of a problem: the model that policies see, and what answers them."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from os import PathLike
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import Model

__all__ = [
    "Arrivals",
    "FixedTable",
    "OneNumber",
    "Problem",
    "SeveralNumbers",
    "arrivals_of",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class FixedTable(NamedTuple):
    """The source of arms that stay: none are drawn."""

    code: int = 0  # numba knows no empty named tuples


class Arrivals(NamedTuple):
    """What decides on the action set of a round.

    Contexts are drawn independently, each with its own rows of the table; a bandit is one context.
    Arms that are new in every round are drawn from a source.
    """

    starts: Ints  # (C + 1,)
    cumulative: Array  # (C,): sums of the probabilities
    probabilities: Array  # (C,)
    bests: Ints  # (C,): scratch
    no_mask: NDArray[np.bool_]  # (0,)
    source: Any  # FixedTable, or where new arms come from
    rows: Array  # (most, d) of the present round, (0, 0) where arms stay
    means: Array  # (most + 1,), (0,) where arms stay
    gaps: Array  # (most + 1,), (0,) where arms stay


def arrivals_of(starts: ArrayLike, probabilities: ArrayLike = (1.0,)) -> Arrivals:
    """Make what draws contexts in one run, with their first rows and probabilities."""
    shares = np.array(probabilities, dtype=np.float64)
    cumulative = np.cumsum(shares)
    cumulative[-1] = 1.0
    return Arrivals(
        starts=np.array(starts, dtype=np.int64),
        cumulative=cumulative,
        probabilities=shares,
        bests=np.zeros(len(shares), dtype=np.int64),
        no_mask=np.zeros(0, dtype=np.bool_),
        source=FixedTable(),
        rows=np.zeros((0, 0)),
        means=np.zeros(0),
        gaps=np.zeros(0),
    )


class OneNumber(NamedTuple):
    """Answers with one number: its mean, and noise."""

    means: Array  # (k,)
    noise: Any
    arrivals: Arrivals


class SeveralNumbers(NamedTuple):
    """Answers with p numbers, each its mean and noise."""

    means: Array  # (k, p)
    noise: Any
    outcome: Array  # (p,): where the answer is written
    arrivals: Arrivals


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
    source : named tuple or None
        Where arms come from that are new in every round.
    """

    name: str
    model: Model
    theta: Array
    gaps: Array
    noise: Any
    origin: Mapping[str, Any] | None = None
    source: Any = None

    @classmethod
    def load(cls, path: str | PathLike[str], noise_std: float | ArrayLike | None = None) -> Self:
        """Read a problem from a .json, .npz or .csv file, which also gives it its name.

        JSON: an object with ``actions``, ``theta`` and perhaps ``noise_std``; NPZ: arrays of these
        names; CSV: a name and d numbers per row, the row named ``theta`` being the parameter.

        Clicks and counts have ``rewards`` in place of ``noise_std``, in JSON: an object such as
        ``{"type": "Bernoulli", "link": "logistic"}``.

        With contexts, JSON has ``action_sets``, a list of the arms of every context, in place of
        ``actions``, and perhaps ``probabilities``.  NPZ has the same, ``action_sets`` being an
        array of shape (C, k, d); or ``actions`` and ``starts``, where contexts differ in size.

        A game has ``rewards``, of shape (k, d), and ``observations``, of shape (k, d) or (k, p, d),
        in place of ``actions``, in JSON and NPZ.

        A recorded stream has ``actions`` of shape (n, k, d) and ``rewards`` of shape (n, k).

        Parameters
        ----------
        path : path
            The file.
        noise_std : float or array_like, shape (k,) or (k, p), optional
            Takes precedence over the file; 1 if neither says.
        """
        from sightline.problems.files import read_problem  # it imports this module

        problem = read_problem(path, noise_std)
        if not isinstance(problem, cls):
            kind = type(problem).__name__
            raise ValueError(f"{path} describes a {kind}: read it with {kind}.load")
        return problem

    def member(self, replication: int) -> Problem:
        """Problem that a replication of an experiment plays: this one, unless it is redrawn."""
        return self

    def world(self) -> OneNumber | SeveralNumbers:
        """Make what answers a policy in one run."""
        means = self.model.observations @ self.theta
        p, arrivals = means.shape[1], arrivals_of([0, len(means)])
        if p == 1:
            return OneNumber(np.ascontiguousarray(means[:, 0]), self.noise, arrivals)
        return SeveralNumbers(means, self.noise, np.zeros(p), arrivals)
