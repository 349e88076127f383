"""Results of an experiment: tidy data, summaries, comparisons and a figure."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.asymptotic import lower_bound
from sightline.experiments.block import Block
from sightline.experiments.experiment import Cell, Grid
from sightline.experiments.run import BlockStorage
from sightline.experiments.specification import problems_from_toml
from sightline.experiments.store import ResultStore
from sightline.problems.base import TableProblem
from sightline.problems.descriptions import AnyProblem
from sightline.report.statistics import Curve, log_slopes, mean_and_error, regret_curve
from sightline.simulation.simulate import parse_rounds, round_array, rounds_text
from sightline.validation import entries, instance, number, one_of, shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
_LONGEST_PRINTED = 10**4000
_COLUMNS = "problem policy replication seed log_t t regret explorations pulls"
_MOST_ROWS = 3  # of a figure; more problems are on a grid
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


class Results:
    """Outcome of an experiment: all its runs, as :func:`sightline.run` returns them.

    A single run, from :func:`sightline.simulate`, is a :class:`sightline.types.Trajectory`.

    Attributes
    ----------
    grid : Grid
        Cells, checkpoints and seeds.
    """

    def __init__(
        self, storage: BlockStorage, problems: Mapping[str, AnyProblem] | None = None
    ) -> None:
        self._storage = storage
        self._problems = problems or {}
        self._lower_bounds: dict[str, float] = {}
        self.grid: Grid = storage.grid
        self._log_t = np.array([math.log(t) for t in self.grid.rounds])

    @classmethod
    def load(cls, store: str | PathLike[str]) -> Results:
        """Read the results in a store, finished or not, whichever version computed them."""
        storage = ResultStore.open(store)
        try:
            text = storage.specification()
        except OSError:  # all but the lower bounds can be had
            return cls(storage)
        try:
            problems = problems_from_toml(text)
        except ValueError:  # of another version, or a stream, of which it has checksums only
            return cls(storage)
        return cls(storage, problems)

    @property
    def problems(self) -> tuple[str, ...]:
        """Ids of the problems."""
        return tuple(dict.fromkeys(cell.problem for cell in self.grid.cells))

    @property
    def policies(self) -> tuple[str, ...]:
        """Labels of the policies."""
        return tuple(dict.fromkeys(cell.policy for cell in self.grid.cells))

    @functools.cached_property
    def _regret(self) -> dict[Cell, dict[int, Array]]:
        """Regret of every finished run, by cell and replication."""
        regret: dict[Cell, dict[int, Array]] = {cell: {} for cell in self.grid.cells}
        for block in self._storage.blocks():
            regret[block.cell].update(enumerate(block.regret, block.first))
        return regret

    @property
    def complete(self) -> bool:
        """Whether every run is there."""
        return all(len(runs) == len(self.grid.seeds) for runs in self._regret.values())

    @functools.cached_property
    def seconds(self) -> dict[Cell, float]:
        """Time that workers spent on every cell, without compilation."""
        seconds = dict.fromkeys(self.grid.cells, 0.0)
        for block in self._storage.blocks():
            seconds[block.cell] += block.seconds
        return seconds

    def regret(self, problem: str, policy: str) -> Array:
        """Regret of all finished runs of a cell, shape (replications, checkpoints)."""
        problem = one_of("problem", problem, self.problems)
        runs = self._regret[Cell(problem, one_of("policy", policy, self.policies))]
        return np.array([runs[i] for i in sorted(runs)]).reshape(-1, len(self.grid.rounds))

    @functools.cached_property
    def frame(self) -> pd.DataFrame:
        """Tidy data: one row per problem, policy, replication and checkpoint.

        ``t`` holds Python integers where rounds exceed 64 bits; ``pulls`` is a list per row, one
        entry per arm, and empty for a stream.  ``sl.simulate(problem, policy, horizon, seed)``
        gives the same run.
        """
        import pandas as pd

        parts = [self._rows(block) for block in self._storage.blocks()]
        empty = pd.DataFrame(columns=_COLUMNS.split())
        frame = pd.concat(parts, ignore_index=True) if parts else empty
        for name, categories in (("problem", self.problems), ("policy", self.policies)):
            frame[name] = pd.Categorical(frame[name], categories=list(categories))
        return frame

    def _rows(self, block: Block) -> pd.DataFrame:
        import pandas as pd
        import pyarrow as pa

        replications, marks, k = block.pulls.shape
        offsets = k * np.arange(replications * marks + 1, dtype=np.int32)
        pulls = pa.ListArray.from_arrays(offsets, block.pulls.ravel())
        return pd.DataFrame(
            {
                **block.cell._asdict(),
                "replication": np.repeat(np.arange(replications) + block.first, marks),
                "seed": np.repeat(np.array(block.seeds), marks),
                "log_t": np.tile(self._log_t, replications),
                "t": np.tile(round_array(self.grid.rounds), replications),
                "regret": block.regret.ravel(),
                "explorations": block.explorations.ravel(),
                "pulls": pd.Series(pulls, dtype=pd.ArrowDtype(pulls.type)),
            }
        )

    def summary(
        self,
        checkpoints: Iterable[int | str] | str = "last",
        quantiles: Iterable[float] = QUANTILES,
    ) -> pd.DataFrame:
        """Mean regret, its standard error and quantiles over replications.

        Parameters
        ----------
        checkpoints : {"last", "all"} or iterable of int
            Rounds to report on.
        quantiles : iterable of float
            Levels in [0, 1].
        """
        levels = [
            number("quantiles", q, at_least=0, at_most=1)
            for q in entries("quantiles", quantiles, "a list of levels in [0, 1]")
        ]

        def describe(regret: Array) -> dict[str, Any]:
            mean, error = mean_and_error(regret)
            columns = {"replications": len(regret), "mean": mean, "standard_error": error}
            with np.errstate(invalid="ignore"):
                rows = np.quantile(regret, levels, axis=0)
            return columns | {f"q{q:g}": row for q, row in zip(levels, rows, strict=True)}

        return self._table(checkpoints, self._cells(), describe)

    def compare(
        self, first: str, second: str, checkpoints: Iterable[int | str] | str = "last"
    ) -> pd.DataFrame:
        """Regret of one policy minus that of another, run by run under the same noise.

        ``wins`` is the share of runs in which the first has less regret, ties counting half.

        Parameters
        ----------
        first, second : str
            Labels of policies.
        checkpoints : {"last", "all"} or iterable of int
            Rounds to report on.
        """
        for label in (first, second):
            one_of("policy", label, self.policies)
        pairs: dict[tuple[str, ...], Array] = {}
        for problem in self.problems:
            a, b = (self._regret[Cell(problem, label)] for label in (first, second))
            both = sorted(a.keys() & b.keys())
            if both:
                pairs[problem,] = np.array([a[i] - b[i] for i in both])

        def describe(change: Array) -> dict[str, Any]:
            mean, error = mean_and_error(change)
            wins = (change < 0).mean(axis=0) + 0.5 * (change == 0).mean(axis=0)
            columns = {"replications": len(change), "difference": mean, "standard_error": error}
            return columns | {"wins": wins}

        return self._table(checkpoints, pairs, describe)

    def slopes(self, since: int | None = None) -> pd.DataFrame:
        """Slope of regret against log t, to compare with c* for the noise of the problem.

        A line is fitted to every run by least squares; the mean over runs has an honest standard
        error, because runs are independent.

        Parameters
        ----------
        since : int, optional
            First round to look at; the square root of the last one by default.
        """
        import pandas as pd

        last = self.grid.rounds[-1]
        start = math.isqrt(last) if since is None else parse_rounds("since", since)
        late = np.array([t >= start for t in self.grid.rounds])
        if late.sum() < 2:
            raise ValueError(f"a slope needs two checkpoints from round {shown(start)} on")
        rows = []
        for (problem, policy), regret in self._cells().items():
            slope, error = mean_and_error(log_slopes(self._log_t[late], regret[:, late]))
            rows.append((problem, policy, start, last, len(regret), float(slope), float(error)))
        names = ["problem", "policy", "since", "until", "replications", "slope", "standard_error"]
        return pd.DataFrame(rows, columns=names)

    def pulls(self, checkpoints: Iterable[int | str] | str = "last") -> pd.DataFrame:
        """Mean pulls of every arm and their standard error, in long form.

        Streams are left out: their arms come once.
        """
        import pandas as pd

        marks = self._marks(checkpoints)
        runs: dict[Cell, list[Array]] = {}
        for block in self._storage.blocks():
            if block.pulls.shape[2]:
                runs.setdefault(block.cell, []).extend(block.pulls[:, marks])
        parts = []
        for cell, pulls in runs.items():
            mean, error = mean_and_error(np.array(pulls))
            count, k = mean.shape
            columns = {
                **cell._asdict(),
                "t": np.repeat(self._t(marks), k),
                "arm": np.tile(np.arange(k), count),
                "mean": mean.ravel(),
                "standard_error": error.ravel(),
            }
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def curves(self, problem: str) -> dict[str, Curve]:
        """Mean regret of every policy on a problem."""
        one_of("problem", problem, self.problems)
        return {
            label: regret_curve(self._log_t, regret)
            for (name, label), regret in self._cells().items()
            if name == problem
        }

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        *,
        problems: str | Iterable[str] | None = None,
        policies: str | Iterable[str] | None = None,
        ax: Axes | Iterable[Axes] | None = None,
        bounds: Mapping[str, float] | None = None,
        early: int | None = None,
    ) -> Figure:
        """Draw mean regret with 2 standard errors: early rounds linear, all rounds logarithmic.

        Up to three problems have a row each.  More problems, and axes of your own, have one
        logarithmic panel per problem and a common legend.

        Parameters
        ----------
        path : path, optional
            File to write; its suffix decides the format.
        problems, policies : str or iterable of str, optional
            What to draw, in this order; by default all problems and all policies.
        ax : matplotlib.axes.Axes or iterable of Axes, optional
            Axes to draw into, one per problem, such as those of ``plt.subplots``.
        bounds : mapping of problem id to float, optional
            c* of problems, whose line c* log n is drawn for reference; by default those of
            :func:`sightline.lower_bound`.  An empty mapping draws none.
        early : int, optional
            Last round of the linear panels, which up to three problems have.
        """
        from sightline.report import figures

        if path is not None:
            figures.check_format(path)
        names = _chosen("problems", problems, self.problems)
        labels = _chosen("policies", policies, self.policies)
        places = None if ax is None else figures.given_axes("ax", ax, len(names))
        has_rows = places is None and len(names) <= _MOST_ROWS
        if early is not None and not has_rows:
            raise ValueError(
                f"early must be left out without linear panels, got {shown(early)}: figures of at "
                f"most {_MOST_ROWS} problems without ax have them"
            )
        if bounds is None:
            known = {name: self._lower_bound(name) for name in names}
            bounds = {name: c for name, c in known.items() if c is not None and math.isfinite(c)}
        instance("bounds", bounds, Mapping, "a mapping of problem to c*")
        for problem, value in bounds.items():
            one_of("problem of bounds", problem, self.problems)
            number("bounds", value, at_least=0)
        panels = {}
        for name in names:
            curves = self.curves(name)
            panels[name] = {label: curves[label] for label in labels if label in curves}
        if places is not None:
            return figures.regret_in(places, panels, bounds, path)
        if has_rows:
            return figures.regret_figure(panels, bounds, early, path)
        return figures.regret_grid(panels, bounds, path)

    @property
    def lower_bounds(self) -> dict[str, float]:
        """c* by problem id, for the noise of the problem: regret is at least c* log n.

        The mean, where every replication draws a new problem; streams have none.
        """
        values = {name: self._lower_bound(name) for name in self._problems}
        return {name: value for name, value in values.items() if value is not None}

    def _lower_bound(self, name: str) -> float | None:
        """c* of one problem, computed once; None for a stream or an unknown problem."""
        problem = self._problems.get(name)
        if name not in self._lower_bounds and isinstance(problem, TableProblem):
            members = {problem.member(i) for i in range(len(self.grid.seeds))}
            total = sum(lower_bound(member).value for member in members)
            self._lower_bounds[name] = total / len(members)
        return self._lower_bounds.get(name)

    def _cells(self) -> dict[tuple[str, ...], Array]:
        """Regret of all cells with at least one finished run."""
        return {tuple(c): self.regret(*c) for c in self.grid.cells if self._regret[c]}

    def _table(
        self,
        checkpoints: Iterable[int | str] | str,
        groups: Mapping[tuple[str, ...], Array],
        describe: Callable[[Array], dict[str, Any]],
    ) -> pd.DataFrame:
        """Describe the columns of every group at some checkpoints."""
        import pandas as pd

        marks = self._marks(checkpoints)
        parts = []
        for names, values in groups.items():
            keys = dict(zip(("problem", "policy"), names, strict=False))
            columns = {**keys, "t": self._t(marks), "log_t": self._log_t[marks]}
            parts.append(pd.DataFrame(columns | describe(values[:, marks])))
        return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()

    def _t(self, marks: list[int]) -> NDArray[Any]:
        return round_array([self.grid.rounds[i] for i in marks])

    def _marks(self, checkpoints: Iterable[int | str] | str) -> list[int]:
        if isinstance(checkpoints, str):
            choice = one_of("checkpoints", checkpoints, ("last", "all"))
            return list(range(len(self.grid.rounds)))[-1 if choice == "last" else 0 :]
        marks = []
        for given in entries("checkpoints", checkpoints, '"last", "all" or a list of rounds'):
            t = parse_rounds("checkpoints", given)
            if t not in self.grid.rounds:
                known = rounds_text(t) if t < _LONGEST_PRINTED else shown(t)
                raise ValueError(f"round {known} is not a checkpoint of this experiment")
            marks.append(self.grid.rounds.index(t))
        return marks

    def __repr__(self) -> str:
        done = sum(map(len, self._regret.values()))
        return (
            f"Results({len(self.problems)} problems, {len(self.policies)} policies, "
            f"{done} of {len(self.grid.cells) * len(self.grid.seeds)} runs "
            f"to {rounds_text(self.grid.rounds[-1])} rounds)"
        )


def _chosen(
    name: str, given: str | Iterable[str] | None, known: tuple[str, ...]
) -> tuple[str, ...]:
    """Names that were asked for, each once; by default all."""
    if given is None:
        return known
    names = [given] if isinstance(given, str) else entries(name, given, "a list of names")
    return tuple(dict.fromkeys(one_of(name, each, known) for each in names))
