"""The contract of an item: a figure or table of the paper, what it runs and how it is shown."""

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

__all__ = ["Calculation", "Findings", "Item", "Outcome", "Size"]


class Size(NamedTuple):
    """How large an item is made in one profile."""

    horizon: int
    replications: int
    samples: int = 0  # posterior samples per round, where there is a posterior
    every_variant: bool = True  # else only those that claims are about: each has to be compiled
    many: int = 0  # runs of policies that are cheap, where more of them decide a claim


class Calculation(NamedTuple):
    """Work that is not an experiment: a function of plain values with a plain result.

    Attributes
    ----------
    function : callable
        At the top level of a module; its result must fit JSON.
    arguments : dict
        Plain values.
    sample : dict
        Changes of the arguments that make it shorter, to find out how long it will take.
    share : float
        Share of the whole that the shorter one is.
    kernels : str
        What it compiles: of calculations by one function, those that differ in this compile other
        kernels.
    """

    function: Callable[..., Any]
    arguments: dict[str, Any]
    sample: Mapping[str, Any] = {}
    share: float = 1.0
    kernels: str = ""


class Outcome(NamedTuple):
    """What the runs of an item gave."""

    size: Size
    results: Mapping[str, Results]
    values: Mapping[str, Any]
    seconds: float  # of work, without compilation, whenever it was done


@dataclass(frozen=True)
class Findings:
    """What an item shows."""

    figures: Mapping[str, tuple[str, Figure]] = field(default_factory=dict)  # name: caption, figure
    tables: tuple[Table, ...] = ()
    curves: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()


def _nothing(size: Size) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Item:
    """A figure or table of the paper, or one beyond it.

    Parameters
    ----------
    name : str
        What the command line calls it.
    title : str
        Heading in the report.
    where : str
        Where it stands in the paper.
    about : str
        What it shows and with which settings, for the report.
    sizes : mapping
        Size in every profile.
    show : callable
        Makes the findings of an outcome.
    experiments, calculations : callable
        What it runs, by name.
    see : str
        The sentence that says what to see in its figures.
    formula : str
        What it is about, in the plain notation of ``report/symbols.py``.
    short : str
        Its name on the scoreboard; by default the title up to a colon.
    """

    name: str
    title: str
    where: str
    about: str
    sizes: Mapping[str, Size]
    show: Callable[[Outcome], Findings]
    experiments: Callable[[Size], Mapping[str, Experiment]] = _nothing
    calculations: Callable[[Size], Mapping[str, Calculation]] = _nothing
    see: str = ""
    formula: str = ""
    short: str = ""
