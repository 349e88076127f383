"""Base classes of problems: the model that a policy sees, and the world that it does not see.

| symbol                            | here                       | shape    |
|-----------------------------------|----------------------------|----------|
| Y_x theta*, mean outcome of arm x | ``World.means[x]``         | (p,)     |
| first row of context c            | ``Arrivals.starts[c]``     | (C + 1,) |
| probability of context c          | ``Arrivals.probabilities`` | (C,)     |

A bandit has one context, which is its entire table of arms.  In a stream a source draws new arms
in every round.  :func:`named` registers a named problem, which can then be described by its name
and arguments.
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

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Arrivals(NamedTuple):
    """Distribution of the action set of a round: contexts are i.i.d. blocks of rows, or a source.

    Attributes
    ----------
    starts : ndarray, shape (C + 1,)
        First row of every context, then the number of rows.
    cumulative, probabilities : ndarray, shape (C,)
        Distribution function and probabilities of the context.
    bests : ndarray, shape (C,)
        Scratch space: the arm of every context that a commitment plays.
    no_mask : ndarray, shape (0,)
        Mask of an action set that has all rows of its context.
    source : named tuple or None
        Source of new arms; None for a fixed table of arms.
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
    """Environment of one run: an outcome has p numbers, each a mean plus noise.

    Attributes
    ----------
    means : ndarray, shape (k, p)
        Means of outcomes, in units of the noise.
    noise : distribution
        Distribution of every number of an outcome around its mean.
    arrivals : Arrivals
        Distribution of the action set of a round.
    """

    means: Array
    noise: Any
    arrivals: Arrivals


class Problem(ABC):
    """Base class of problems; subclasses set the attributes.

    Attributes
    ----------
    name : str
        How results refer to the problem.
    model : Model
        The part of the problem that a policy sees.
    theta : ndarray, shape (d,)
        True parameter, which a policy does not see.
    gaps : ndarray, shape (k,)
        Suboptimality gap of every arm: difference to the best mean reward of its context.
    noise : distribution
        Distribution of every number of an outcome around its mean.
    origin : mapping or None
        Name and arguments of a named problem.
    source : named tuple or None
        Source of new arms in every round.
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
        """Read a problem from a .json, .npz or .csv file; the name of the file becomes its name.

        - JSON: an object with ``actions``, ``theta`` and optionally ``noise_std``.
        - NPZ: arrays with these names.
        - CSV: a name and d numbers per row; the row named ``theta`` is the parameter.
        - Clicks and counts (JSON): ``rewards`` instead of ``noise_std``, an object such as
          ``{"type": "Bernoulli", "link": "logistic"}``.
        - Contexts (JSON): ``action_sets``, a list of the arms of every context, instead of
          ``actions``, and optionally ``probabilities``.  NPZ has the same, with ``action_sets`` of
          shape (C, k, d); or ``actions`` and ``starts`` where contexts differ in size.
        - Games (JSON, NPZ): ``rewards``, shape (k, d), and ``observations``, shape (k, d) or
          (k, p, d), instead of ``actions``.
        - Recorded streams: ``actions``, shape (n, k, d), and ``rewards``, shape (n, k).

        Parameters
        ----------
        path : path
            The file.
        noise_std : float or array_like, shape (k,) or (k, p), optional
            Overrides the file; 1 if neither is given.
        """
        from sightline.problems.descriptions import read_problem  # it imports this module

        problem = read_problem(path, noise_std)
        if not isinstance(problem, cls):
            kind = type(problem).__name__
            raise ValueError(f"{path} describes a {kind}: read it with {kind}.load")
        return problem

    def member(self, replication: int) -> Self:
        """Problem of one replication of an experiment: this one, unless arms are redrawn."""
        return self

    def world(self) -> World:
        """Make the environment of one run."""
        means = self.model.observations @ self.theta
        return World(means, self.noise, arrivals_of([0, len(means)]))


class TableProblem(Problem):
    """A fixed table of arms x with mean rewards <x, theta>; compared by contents.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        X: one arm per row, of all contexts.
    means : ndarray, shape (k,)
        Mean reward of every arm.
    k, d : int
        Number of arms and dimension.
    noise_std : float or ndarray
        Sub-Gaussian parameter sigma of observations; an array if it differs between arms.
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

    @property
    def starts_of_contexts(self) -> NDArray[np.int64]:
        """First row of every context, then k; fixed arms are one context."""
        contexts = self.model.contexts
        return np.array([0, self.k]) if contexts is None else contexts.starts

    @property
    def contexts_of_arms(self) -> NDArray[np.int64]:
        """Context of every arm; 0 for fixed arms."""
        starts = self.starts_of_contexts
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    @property
    def best_rows(self) -> NDArray[np.int64]:
        """For every arm the best row of its context."""
        return np.repeat(self.best, np.diff(self.starts_of_contexts))

    def arrivals(self) -> Arrivals:
        """Make the distribution of action sets for one run."""
        return arrivals_of([0, self.k])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableProblem) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    def _value(self) -> tuple[object, ...]:
        arrays = (self.actions, self.theta, np.asarray(self.noise_std))
        # distributions are tuples: without its type, GaussianNoise(1.0) equals TwoPoint(1.0)
        contents = (array.tobytes() for array in arrays)
        return (self.name, self.actions.shape, *contents, type(self.noise), self.noise)


P = ParamSpec("P")
T = TypeVar("T", bound=Problem)

#: Functions that make named problems, by name.
PROBLEMS: dict[str, Callable[..., Any]] = {}


def named(make: Callable[P, T]) -> Callable[P, T]:
    """Register a named problem, whose name and arguments describe it in one line of a file."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        problem = make(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        problem.origin = {"type": make.__name__, **arguments.arguments}
        return problem

    PROBLEMS[make.__name__] = remembered
    return remembered


def deviation(noise_variance: float) -> float:
    """Compute the standard deviation of noise with a valid variance."""
    return math.sqrt(scale("noise_variance", noise_variance, power=2))


def fraction(name: str, value: float) -> float:
    """Check a number in (0, 1)."""
    result = number(name, value, above=0)
    if result >= 1:
        raise ValueError(f"{name} must be below 1, got {shown(value)}")
    return result


def valid_slope(value: float) -> float:
    """Check the slope of an end of optimism."""
    return number("slope", value, size=LARGEST)
