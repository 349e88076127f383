"""The contract of a problem: the model that a policy sees, and the world that answers it.

| symbol                             | here                       | shape   |
|------------------------------------|----------------------------|---------|
| Y_x theta*, mean outcome of arm x  | ``World.means[x]``         | (p,)    |
| first row of context c             | ``Arrivals.starts[c]``     | (C + 1,) |
| probability of context c           | ``Arrivals.probabilities`` | (C,)    |

A bandit has one context, which is its entire table.
"""

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
    "Problem",
    "World",
    "arrivals_of",
]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Arrivals(NamedTuple):
    """Distribution of the action set of a round.

    Contexts are independent and identically distributed, and each is a block of rows of the table.
    In a stream a source draws new arms in every round.

    Attributes
    ----------
    starts : ndarray, shape (C + 1,)
        First row of every context, and the number of rows.
    cumulative, probabilities : ndarray, shape (C,)
        Distribution function and probabilities of the context.
    bests : ndarray, shape (C,)
        Scratch space: the arm of every context that a commitment plays.
    no_mask : ndarray, shape (0,)
        Mask of an action set that has all rows of its context.
    source : named tuple or None
        Source of new arms; None for a table of arms that stay.
    rows : ndarray, shape (most, d) or (0, 0)
        Features of the arms of the current round; empty without a source.
    means, gaps : ndarray, shape (most + 1,) or (0,)
        Mean rewards and gaps of the arms of the current round; empty without a source.
    """

    starts: Ints
    cumulative: Array
    probabilities: Array
    bests: Ints
    no_mask: NDArray[np.bool_]
    source: Any
    rows: Array
    means: Array
    gaps: Array


def arrivals_of(starts: ArrayLike, probabilities: ArrayLike = (1.0,)) -> Arrivals:
    """Make the distribution of contexts for one run, from first rows and probabilities."""
    shares = np.array(probabilities, dtype=np.float64)
    cumulative = np.cumsum(shares)
    cumulative[-1] = 1.0
    return Arrivals(
        starts=np.array(starts, dtype=np.int64),
        cumulative=cumulative,
        probabilities=shares,
        bests=np.zeros(len(shares), dtype=np.int64),
        no_mask=np.zeros(0, dtype=np.bool_),
        source=None,
        rows=np.zeros((0, 0)),
        means=np.zeros(0),
        gaps=np.zeros(0),
    )


class World(NamedTuple):
    """What answers a policy in one run: an outcome has p numbers, each its mean and noise.

    Attributes
    ----------
    means : ndarray, shape (k, p)
        Means of outcomes, in units of the noise.
    noise : distribution
        Of every number of an outcome, around its mean.
    arrivals : Arrivals
        Distribution of the action set of a round.
    """

    means: Array
    noise: Any
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

    def world(self) -> World:
        """Make what answers a policy in one run."""
        means = self.model.observations @ self.theta
        return World(means, self.noise, arrivals_of([0, len(means)]))
