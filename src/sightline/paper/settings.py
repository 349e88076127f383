"""What several items share: problems, policies and readings of the paper, tables and figures."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sightline.bounds.asymptotic import lower_bound
from sightline.core.confidence_rules import LogDet
from sightline.core.linalg import Array
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, ItemResults, Size
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, SOLID
from sightline.problems import LinearBandit, end_of_optimism, unit_spheres
from sightline.report.figures import regret_figure
from sightline.report.page import Table
from sightline.report.results import Results
from sightline.report.statistics import Curve, mean_and_error
from sightline.simulation.simulate import log_spaced, rounds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

VARIANCE = 0.1
EPSILON = 0.01
EARLY = 10**4  # last round of the linear panels, as in the paper
RANDOM = "random action sets"
SLOPE_2 = "end of optimism, slope 2"
SLOPE_4 = "end of optimism, slope 4"

IDS_H = IDS()
IDS_UCB = IDS(information="halfspace-ucb")
# SOLID++ with the constraint bonus of SOLID: the published defaults as we remember them, since that
# paper was not available.  The library's default has no bonus.
SOLID_PP = SOLID(reset=False, constraint_bonus=2.0)
SHORT_LEVEL = LogDet(delta="1/(s log s)")


class NotRunError(LookupError):
    """The runs that a figure or claim needs are not part of this profile."""


class Reading(NamedTuple):
    """One reading of the paper's settings."""

    name: str  # in verdicts
    example: str  # the end of optimism under this reading
    suffix: str  # of the labels of IDS

    def label(self, policy: str) -> str:
        """Label of a policy under this reading; rivals of IDS do not depend on it."""
        return policy + self.suffix if policy.startswith("IDS-") else policy

    def missing(self) -> NotRunError:
        """Error for runs under this reading that the profile leaves out."""
        return NotRunError(f"The reading of the {self.name} is not run in this profile.")


#: The settings that the text states: value gaps, delta = 1/s^2, slope 2.
TEXT = Reading("text", SLOPE_2, "")
#: The settings that match the plots: difference gaps, delta = 1/(s log s), slope 4.
PLOTS = Reading("plots", SLOPE_4, ", difference, short")
BOTH = (TEXT, PLOTS)


def as_read(policies: Mapping[str, IDS], reading: Reading) -> dict[str, IDS]:
    """Policies of the text under a reading, with its labels."""
    if reading is TEXT:
        return dict(policies)
    found = {}
    for label, policy in policies.items():
        rule = SHORT_LEVEL if isinstance(policy.confidence, LogDet) else policy.confidence
        found[label + reading.suffix] = replace(policy, gaps="difference", confidence=rule)
    return found


def problems(*names: str) -> dict[str, LinearBandit]:
    """Problems of the paper by name."""
    known = {
        RANDOM: unit_spheres(6, 2, VARIANCE),
        SLOPE_2: end_of_optimism(EPSILON, 2.0, VARIANCE),
        SLOPE_4: end_of_optimism(EPSILON, 4.0, VARIANCE),
    }
    return {name: known[name] for name in names}


def marks(horizon: int) -> list[int]:
    """Checkpoints: ten per decade, including the powers of ten."""
    return log_spaced(horizon, per_decade=10)


def experiment(
    size: Size,
    worlds: Mapping[str, LinearBandit],
    policies: Mapping[str, Policy],
    replications: int | None = None,
    checkpoints: Iterable[int] | None = None,
) -> Experiment:
    """Policies on problems, with the horizon and by default the replications of a size."""
    count = size.replications if replications is None else replications
    rounds = marks(size.horizon) if checkpoints is None else checkpoints
    return Experiment(worlds, policies, size.horizon, count, checkpoints=rounds)


def c_star(name: str, replications: int) -> float:
    """c* of a problem; of random action sets the mean over those that are played."""
    problem = problems(name)[name]
    members = range(replications) if name == RANDOM else range(1)
    values = [lower_bound(problem.member(i), tolerance=1e-4).value for i in members]
    return float(sum(values) / len(values))


def ratios(results: Results, problem: str, policy: str, constant: float) -> Array:
    """R_n / (c* log n), shape (runs, checkpoints)."""
    log_n = np.array([math.log(n) for n in results.grid.rounds])
    return results.regret(problem, policy) / (constant * log_n)


def renamed(curves: Mapping[str, Curve], names: Mapping[str, str]) -> dict[str, Curve]:
    """Select curves under new names, in the order of these."""
    return {new: curves[old] for new, old in names.items()}


def panels(width: float, height: float, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """Make a figure with axes side by side."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(1, columns, **options)


def error_text(mean: float, error: float, digits: int | None = None) -> str:
    """Mean and standard error, by default with digits that suit the mean."""
    if digits is None:
        digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 1 else 3
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def regret_table(results: Results, problem: str) -> Table:
    """Mean regret and standard error at powers of ten, and the late slope in log n."""
    times = [10**e for e in (3, 4, 5, 6) if 10**e in results.grid.rounds]
    columns = [results.grid.rounds.index(t) for t in times]
    rows = []
    slopes = results.slopes(since=max(1, results.grid.rounds[-1] // 10)).set_index(
        ["problem", "policy"]
    )
    for policy in results.policies:
        means, errors = mean_and_error(results.regret(problem, policy)[:, columns])
        late = slopes.loc[(problem, policy)]
        cells = map(error_text, means, errors)
        rows.append((policy, *cells, error_text(late.slope, late.standard_error)))
    head = ("policy", *(f"n = {rounds_text(t)}" for t in times), "slope in log n, last decade")
    count = len(results.grid.seeds)
    return Table(f"{problem}: mean regret ± standard error, {count} runs", head, tuple(rows))


def regret_findings(
    outcome: ItemResults,
    caption: str,
    shown: Iterable[str] | None = None,
    remarks: tuple[str, ...] = (),
) -> Findings:
    """Regret on every problem: a figure of the policies shown (by default all), and tables."""
    results = outcome.results["regret"]
    labels = {label: label for label in shown or results.policies}
    panels = {name: renamed(results.curves(name), labels) for name in results.problems}
    bounds = {name: c_star(name, outcome.size.replications) for name in results.problems}
    return Findings(
        figures={"regret": (caption, regret_figure(panels, bounds, EARLY))},
        tables=tuple(regret_table(results, name) for name in results.problems),
        curves={"regret": results.summary("all")},
        remarks=remarks,
    )
