"""Items: a figure or table of the paper, what it runs and how it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from sightline.experiments.experiment import Experiment
from sightline.report.page import Table
from sightline.report.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Size(NamedTuple):
    """Size of an item in one profile."""

    horizon: int
    replications: int
    samples: int = 0  # posterior samples per round
    every_variant: bool = True  # if not, only the variants that claims are about
    many: int = 0  # replications of cheap policies, where more of them decide a claim


class Calculation(NamedTuple):
    """Work that is not an experiment: a function from plain values to a plain result."""

    function: Callable[..., Any]  # at the top level of a module; returns JSON-serialisable values
    arguments: dict[str, Any]
    sample: Mapping[str, Any] = {}  # changed arguments of a shorter call, to estimate the duration
    share: float = 1.0  # duration of the shorter call as a share of the full one
    kernels: str = ""  # key of the compiled kernels, if arguments decide which


class ItemResults(NamedTuple):
    """Results of all experiments and calculations of an item, by name."""

    size: Size
    results: Mapping[str, Results]
    values: Mapping[str, Any]
    seconds: float  # of work, without compilation

    def runs(self, kind: str) -> list[Any]:
        """Values of the calculations whose names begin with a kind."""
        return [value for name, value in self.values.items() if name.startswith(kind)]


@dataclass(frozen=True)
class Findings:
    """Figures with captions, tables, curves and remarks of an item."""

    figures: Mapping[str, tuple[str, Figure]] = field(default_factory=dict)
    tables: tuple[Table, ...] = ()
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper, or one beyond it."""

    name: str  # on the command line
    title: str  # heading in the report
    where: str  # place in the paper
    about: str  # content and settings, for the report
    sizes: Mapping[str, Size]  # by profile
    show: Callable[[ItemResults], Findings]
    # experiments and calculations of a size, by name
    experiments: Callable[[Size], Mapping[str, Experiment]] = lambda size: {}
    calculations: Callable[[Size], Mapping[str, Calculation]] = lambda size: {}
    see: str = ""  # one sentence on what the figures show
    formula: str = ""  # in the plain notation of ``report/symbols.py``
    short: str = ""  # name on the scoreboard of claims; by default the title up to a colon
