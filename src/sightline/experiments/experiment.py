"""Experiments as values: what is run, not how or where."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from sightline.experiments import specification
from sightline.files import write_text_atomically
from sightline.policies.base import Policy, check_supports, started
from sightline.problems.delays import delay_text
from sightline.problems.descriptions import AnyProblem
from sightline.simulation.simulate import (
    check_lasting,
    rounds_text,
    valid_checkpoints,
    valid_horizon,
)
from sightline.validation import entries, file_path, instance, integer, shown, size_text, text

T = TypeVar("T")
_MOST_RUNS = 10**8  # of the shortest, an hour
_MOST_BYTES = 10**12
_LARGEST_HORIZON = 10**4000  # beyond, Python refuses to print the number, and so to write it


class Named(Mapping[str, T], Generic[T]):
    """A mapping that keeps its order, never changes and can be hashed."""

    def __init__(self, pairs: Iterable[tuple[str, T]]) -> None:
        self._pairs = tuple(pairs)
        self._values = dict(self._pairs)

    def __getitem__(self, name: str) -> T:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Named) and self._pairs == other._pairs

    def __hash__(self) -> int:
        return hash(self._pairs)

    def __repr__(self) -> str:
        return repr(self._values)


class Cell(NamedTuple):
    """One policy on one problem."""

    problem: str
    policy: str

    @property
    def id(self) -> str:
        """Name in messages and tables: ``problem / policy``."""
        return f"{self.problem} / {self.policy}"


class Grid(NamedTuple):
    """Cells, checkpoints and seeds of an experiment as plain values, for readers of its results."""

    cells: tuple[Cell, ...]
    rounds: tuple[int, ...]
    seeds: tuple[int, ...]


@dataclass(frozen=True, init=False)
class Experiment:
    """Every policy on every problem, replicated with common seeds.

    Parameters
    ----------
    problems : mapping of id to problem, or iterable of problems
        Each a LinearBandit, ContextualBandit, LinearGame or StreamBandit.  Without ids, their
        names are taken.
    policies : mapping of label to Policy, or iterable of Policy
        Policies to compare.  Without labels, their settings are taken.
    horizon : int
        Rounds per run: a Python integer, up to 10^1000 and beyond for policies that commit.
    replications : int
        Runs per policy and problem.
    seed : int
        Decides the seeds of all runs.  Replication i has the same seed in every cell, so that
        all policies face the same noise.
    checkpoints : iterable of int, optional
        Rounds after which to record; evenly spaced in log t by default.
    delay : int or str, optional
        Delay of the outcomes, as in :func:`sightline.simulate`.
    """

    problems: Mapping[str, AnyProblem]
    policies: Mapping[str, Policy]
    horizon: int
    replications: int
    seed: int = 0
    checkpoints: tuple[int, ...] | None = None
    delay: str | None = None

    def __init__(
        self,
        problems: Mapping[str, AnyProblem] | Iterable[AnyProblem],
        policies: Mapping[str, Policy] | Iterable[Policy],
        horizon: int,
        replications: int,
        seed: int = 0,
        checkpoints: Iterable[int] | None = None,
        delay: int | str | None = None,
    ) -> None:
        kinds = "LinearBandit, ContextualBandit, LinearGame or StreamBandit"
        worlds = _named("problems", problems, AnyProblem, kinds, lambda problem: problem.name)
        rivals = _named("policies", policies, Policy, "Policy", label_of)
        for policy in rivals.values():
            horizon = valid_horizon(horizon, policy, delay)
        _check_offers(worlds, rivals, horizon, delay)
        if horizon > _LARGEST_HORIZON:
            raise ValueError(f"horizon must be at most 10**4000, got {shown(horizon)}")
        if checkpoints is not None:
            checkpoints = tuple(valid_checkpoints(checkpoints, horizon))
        count = integer("replications", replications, at_least=1)
        start = integer("seed", seed, at_least=0)
        values = worlds, rivals, horizon, count, start, checkpoints, delay_text(delay)
        for field, value in zip(dataclasses.fields(self), values, strict=True):
            object.__setattr__(self, field.name, value)
        _check_size(self)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every pair of a problem and a policy."""
        return tuple(Cell(problem, label) for problem in self.problems for label in self.policies)

    @functools.cached_property
    def rounds(self) -> tuple[int, ...]:
        """Checkpoints: those given, or the default ones."""
        return tuple(valid_checkpoints(self.checkpoints, self.horizon))

    @functools.cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seed of every replication; ``sl.simulate`` with that seed gives the same run."""
        return tuple(_seed(self.seed, i) for i in range(self.replications))

    @functools.cached_property
    def digest(self) -> str:
        """Hash of the specification; equal for equal experiments in any process."""
        text = json.dumps(specification.describe(self), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def grid(self) -> Grid:
        """Cells, checkpoints and seeds as plain values."""
        return Grid(self.cells, self.rounds, self.seeds)

    def to_toml(self) -> str:
        """Specification as text that :meth:`from_toml` reads."""
        return specification.to_toml(self)

    @classmethod
    def from_toml(cls, text: str, classes: Iterable[type] = ()) -> Experiment:
        """Experiment from the text of a TOML file.

        Parameters
        ----------
        text : str
            Contents of the file.
        classes : iterable of type
            Dataclasses of policies, and of their parts, that are not the library's.  The file
            names them as ``module:Class``.  Code named in a file is never imported: a file from
            elsewhere runs no code but that of the library and of these classes.  A class is found
            by its name, so that its module may have another name than when the file was written.
        """
        instance("text", text, str, "the text of a TOML file")
        return cls(**specification.from_toml(text, classes))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the specification to a TOML file."""
        write_text_atomically(path, self.to_toml())

    @classmethod
    def load(cls, path: str | PathLike[str], classes: Iterable[type] = ()) -> Experiment:
        """Read the specification from a TOML file; ``classes`` as for :meth:`from_toml`."""
        file = file_path("path", path)
        try:
            return cls.from_toml(file.read_text(encoding="utf-8"), classes)
        except ValueError as error:  # includes text that is not UTF-8
            raise ValueError(f"{path}: {error}") from None

    def __str__(self) -> str:
        size = (
            f"{len(self.problems)} problems x {len(self.policies)} policies x "
            f"{self.replications} replications to {rounds_text(self.horizon)} rounds, "
            f"seed {self.seed}"
        )
        problems = [f"  {name}: {problem}" for name, problem in self.problems.items()]
        policies = [f"  {label}: {policy}" for label, policy in self.policies.items()]
        return "\n".join([size, *problems, *policies])


def arms_counted(problem: AnyProblem) -> int:
    """Arms whose pulls are kept; none of a stream, where an arm comes once."""
    return 0 if problem.model.stream else len(problem.gaps)


def size_of_results(experiment: Experiment) -> int:
    """Bytes of all results, before compression: regret, explorations, pulls by arm."""
    arms = [arms_counted(problem) for problem in experiment.problems.values()]
    numbers = (sum(arms) + 2 * len(arms)) * len(experiment.policies)
    return 8 * numbers * len(experiment.rounds) * experiment.replications


def _check_size(experiment: Experiment) -> None:
    """Refuse runs that would take too long or results that would be too large, before any work."""
    runs, size = len(experiment.cells) * experiment.replications, size_of_results(experiment)
    if runs > _MOST_RUNS or size > _MOST_BYTES:
        raise ValueError(
            f"replications must be fewer: {shown(experiment.replications)} are {shown(runs)} runs, "
            f"whose results at {len(experiment.rounds)} checkpoints take {size_text(size)}; "
            f"allowed are {shown(_MOST_RUNS)} runs and {size_text(_MOST_BYTES)}"
        )


def _check_offers(
    problems: Named[AnyProblem], policies: Named[Policy], horizon: int, delay: object
) -> None:
    """Refuse what cannot be played or simulated, before any worker would.

    Bandits with one known noise level are played by all: no state is made for them.
    """
    for name, problem in problems.items():
        for label, policy in policies.items():
            try:
                check_lasting(problem, horizon, delay)
                check_supports(policy, problem.model, delays=delay is not None)
                if not problem.model.plain:
                    started(policy, problem.model)
                    problem.member(0).world()
            except ValueError as error:
                raise ValueError(f"{Cell(name, label).id}: {error}") from None


def _named(what: str, values: Any, cls: Any, kinds: str, name: Any) -> Named[Any]:
    """Check members and their names."""
    if isinstance(values, Mapping):
        pairs = list(values.items())
    else:
        members = entries(what, values, "a mapping or a list")
        pairs = [(name(value) if isinstance(value, cls) else "", value) for value in members]
    if not pairs:
        raise ValueError(f"{what} must not be empty")
    names = set()
    for key, value in pairs:
        if not isinstance(value, cls):
            raise ValueError(f"{what} must be of class {kinds}, got {shown(value)}")
        text(f"names of {what}", key)
        if key in names:
            raise ValueError(
                f"two {what} have the name {key!r}: give names of your own, as a mapping"
            )
        names.add(key)
    return Named(pairs)


def label_of(policy: Policy) -> str:
    """Write the class of a policy and what differs from its defaults."""
    changed = []
    for field in dataclasses.fields(policy):  # type: ignore[arg-type]
        value = getattr(policy, field.name)
        default = field.default
        if field.default_factory is not dataclasses.MISSING:
            default = field.default_factory()
        if value != default:
            changed.append(f"{field.name}={value}")
    name = type(policy).__name__
    return f"{name}({', '.join(changed)})" if changed else name


def _seed(seed: int, replication: int) -> int:
    """Seed of one replication, of 63 bits: those of two experiments do not overlap."""
    sequence = np.random.SeedSequence(seed, spawn_key=(replication,))
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(1))
