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
import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.linalg import Array, Ints
from sightline.core.model import Model, common_noise, starts_of, valid_noise_std
from sightline.problems.noise import GaussianNoise, valid_noise
from sightline.validation import LARGEST, finite_array, number, scale, shown, text


class Arrivals(NamedTuple):
    """Distribution of the action set of a round: contexts are i.i.d. blocks of rows, or a source.

    Without a source ``rows``, ``means`` and ``gaps`` are empty.
    """

    starts: Ints  # (C + 1,): first row of every context, then the number of rows
    cumulative: Array  # (C,): distribution function of the context
    probabilities: Array  # (C,)
    bests: Ints  # (C,), scratch: the arm of every context that a commitment plays
    no_mask: NDArray[np.bool_]  # (0,): mask of an action set that has all rows of its context
    source: Any  # of new arms; None for a fixed table of arms
    rows: Array  # (max_arms, d): features of the arms of the current round
    means: Array  # (max_arms + 1,): their mean rewards
    gaps: Array  # (max_arms + 1,)


def arrivals_of(starts: ArrayLike, probabilities: ArrayLike | None = None) -> Arrivals:
    """Make the distribution of contexts for one run, from first rows and probabilities."""
    shares = np.array([1.0] if probabilities is None else probabilities, dtype=np.float64)
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
    """Environment of one run: an outcome has p numbers, each a mean plus noise."""

    means: Array  # (k, p): of outcomes, in units of the noise
    noise: Any  # distribution of every number of an outcome around its mean
    arrivals: Arrivals


class Problem(ABC):
    """Base class of problems, which are compared by contents; subclasses set the attributes."""

    name: str  # by which results refer to the problem
    model: Model  # the part of the problem that a policy sees
    theta: Array  # (d,): true parameter
    gaps: Array  # (k,): differences to the best mean reward of the context
    noise: Any  # distribution of every number of an outcome around its mean
    origin: Mapping[str, Any] | None = None  # name and arguments of a named problem
    source: Any = None  # of new arms in every round

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
        - Finite classes (JSON, NPZ): ``models``, shape (M, k), and ``true``, instead of ``actions``
          and ``theta``.
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

    @abstractmethod
    def world(self) -> World:
        """Make the environment of one run."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Problem) and self._value() == other._value()

    def __hash__(self) -> int:
        return hash(self._value())

    @abstractmethod
    def _value(self) -> tuple[object, ...]:
        """Contents, by which problems are compared."""


class TableProblem(Problem):
    """A fixed table of arms x with mean rewards <x, theta>.

    ``actions`` is X, shape (k, d): one arm per row, of all contexts.
    """

    best: int | Ints  # row of the best arm, or (C,) of the best arm of every context
    noise_std: float | Array  # sub-Gaussian parameter of outcomes; an array if it differs

    def __init__(self, actions: Array, theta: ArrayLike, name: str) -> None:
        self.actions = actions
        self.k, self.d = actions.shape
        self.theta = finite_array("theta", theta, (self.d,))
        with np.errstate(over="ignore", invalid="ignore"):
            self.means: Array = actions @ self.theta
        if not np.abs(self.means).max() <= LARGEST:
            raise ValueError(
                f"means must not exceed {LARGEST:g}, got {np.abs(self.means).max():g} for these "
                "actions and theta"
            )
        self.name = text("name", name)
        for array in (self.actions, self.theta, self.means):
            array.setflags(write=False)

    def _set_noise(self, noise_std: Any, noise: Any, means: Array, p: int = 1) -> None:
        """Check the noise of outcomes with these means, p numbers per arm."""
        if noise is None:
            level = 1.0 if noise_std is None else noise_std
            self.noise_std = valid_noise_std(level, self.k, p)
            self.noise = GaussianNoise(common_noise(self.noise_std))
        else:
            self.noise = valid_noise(noise, means)
            self.noise_std = float(self.noise.std)

    def _set_best(self) -> None:
        """Find the best row of every context, the first one among equals, and the gaps."""
        blocks = itertools.pairwise(self.starts_of_contexts.tolist())
        rows = [start + int(self.means[start:stop].argmax()) for start, stop in blocks]
        self.best = rows[0] if self.model.contexts is None else np.array(rows)
        self.gaps = self.means[self.best_rows] - self.means
        self.gaps.setflags(write=False)

    @property
    def starts_of_contexts(self) -> Ints:
        """First row of every context, then k; fixed arms are one context."""
        return starts_of(self.model.contexts, self.k)

    @property
    def contexts_of_arms(self) -> Ints:
        """Context of every arm; 0 for fixed arms."""
        starts = self.starts_of_contexts
        return np.repeat(np.arange(len(starts) - 1), np.diff(starts))

    @property
    def best_rows(self) -> Ints:
        """For every arm the best row of its context."""
        return np.repeat(self.best, np.diff(self.starts_of_contexts))

    def world(self) -> World:
        """Make the environment of one run, in units of the noise of each row."""
        contexts = self.model.contexts
        probabilities = None if contexts is None else contexts.probabilities
        arrivals = arrivals_of(self.starts_of_contexts, probabilities)
        return World(self._mean_outcomes(), self.noise, arrivals)

    def _mean_outcomes(self) -> Array:
        """Means of outcomes, shape (k, p)."""
        return self.model.observations @ self.theta

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
