"""The contract of a problem: the model that a policy sees, and the world that answers it.

| symbol                             | here                       | shape   |
|------------------------------------|----------------------------|---------|
| Y_x theta*, mean outcome of arm x  | ``World.means[x]``         | (p,)    |
| first row of context c             | ``Arrivals.starts[c]``     | (C + 1,) |
| probability of context c           | ``Arrivals.probabilities`` | (C,)    |

A bandit has one context, which is its entire table.

Problems with a table of arms that stay: what bandits, contexts and games share.

What named problems share: they remember how they were made, and check common parameters.
"""

from __future__ import annotations

import functools
import inspect
import math
from abc import ABC
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import Model
from sightline.validation import LARGEST, finite_array, number, scale, shown, text

__all__ = [
    "Arrivals",
    "Problem",
    "TableProblem",
    "World",
    "arrivals_of",
    "deviation",
    "fraction",
    "named",
    "valid_slope",
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


P = ParamSpec("P")
T = TypeVar("T", bound=Problem)


def named(make: Callable[P, T]) -> Callable[P, T]:
    """Let the problem remember how it was made, so that a file can say it in one line."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        problem = make(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        problem.origin = {"type": make.__name__, **arguments.arguments}
        return problem

    return remembered


def deviation(noise_variance: float) -> float:
    """Return the standard deviation of the noise."""
    return math.sqrt(scale("noise_variance", noise_variance, power=2))


def fraction(name: str, value: float) -> float:
    """Return a number in (0, 1)."""
    result = number(name, value, above=0)
    if result >= 1:
        raise ValueError(f"{name} must be below 1, got {shown(value)}")
    return result


def valid_slope(value: float) -> float:
    """Return the slope of an end of optimism."""
    return number("slope", value, size=LARGEST)
