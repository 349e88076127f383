"""What several items share: the problems and policies of the paper, and small summaries."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from sightline.bounds.asymptotic import lower_bound
from sightline.core.confidence_rules import LogDet
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Outcome, Size
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, SOLID, LinUCB
from sightline.problems import LinearBandit, end_of_optimism, unit_spheres
from sightline.report.figures import regret_figure
from sightline.report.page import Table
from sightline.report.results import Results
from sightline.report.statistics import Curve, mean_and_error
from sightline.simulation.simulate import log_spaced, rounds_text

__all__ = [
    "BOTH",
    "EARLY",
    "EPSILON",
    "FREQUENTIST",
    "IDS_H",
    "IDS_UCB",
    "PLOTS",
    "RANDOM",
    "SLOPE_2",
    "SLOPE_4",
    "SOLID_PP",
    "TEXT",
    "Reading",
    "as_read",
    "curve_frame",
    "error_text",
    "log_constant",
    "marked",
    "marks",
    "problems",
    "regret_findings",
    "regret_table",
    "renamed",
]

VARIANCE = 0.1
EPSILON = 0.01
EARLY = 10**4  # last round of the linear panels, as in the paper
RANDOM = "random action sets"
SLOPE_2 = "end of optimism, slope 2"
SLOPE_4 = "end of optimism, slope 4"

IDS_H = IDS()
IDS_UCB = IDS(information="halfspace-ucb")
# SOLID++ with the bonus of SOLID in the constraint, which is how we recall the published defaults:
# that paper was not at hand.  The library's own has none.
SOLID_PP = SOLID(reset=False, constraint_bonus=2.0)
FREQUENTIST: Mapping[str, Policy] = {
    "IDS-H": IDS_H,
    "IDS-H-UCB": IDS_UCB,
    "SOLID": SOLID(),
    "SOLID++": SOLID_PP,
    "SOLID++, no bonus": SOLID(reset=False),
    "LinUCB": LinUCB(),
}
SHORT_LEVEL = LogDet(delta="1/(s log s)")


class Reading(NamedTuple):
    """A way to read the settings of the paper.

    Attributes
    ----------
    name : str
        What verdicts call it.
    example : str
        The end of optimism under this reading.
    suffix : str
        What is added to the labels of IDS.
    """

    name: str
    example: str
    suffix: str


#: As the text has it: value gaps, delta = 1/s^2, slope 2.
TEXT = Reading("text", SLOPE_2, "")
#: As the plots appear to have been made: difference gaps, delta = 1/(s log s), slope 4.
PLOTS = Reading("plots", SLOPE_4, ", difference, short")
BOTH = (TEXT, PLOTS)


def as_read(policies: Mapping[str, IDS], reading: Reading) -> dict[str, IDS]:
    """Policies of the text under a reading, with its labels."""
    if reading is TEXT:
        return dict(policies)
    found = {}
    for label, policy in policies.items():
        level = SHORT_LEVEL if policy.confidence == LogDet() else policy.confidence
        found[label + reading.suffix] = replace(policy, gaps="difference", confidence=level)
    return found


def problems(*names: str) -> dict[str, LinearBandit]:
    """Problems of the paper by their names here."""
    known = {
        RANDOM: unit_spheres(6, 2, VARIANCE),
        SLOPE_2: end_of_optimism(EPSILON, 2.0, VARIANCE),
        SLOPE_4: end_of_optimism(EPSILON, 4.0, VARIANCE),
    }
    return {name: known[name] for name in names}


def marks(horizon: int) -> list[int]:
    """Checkpoints: ten per decade, which include the powers of ten."""
    return log_spaced(horizon, per_decade=10)


def marked(
    size: Size,
    worlds: Mapping[str, LinearBandit],
    policies: Mapping[str, Policy],
    replications: int | None = None,
) -> Experiment:
    """Policies on problems, recorded at the checkpoints; as many runs as the size says."""
    count = size.replications if replications is None else replications
    return Experiment(worlds, policies, size.horizon, count, checkpoints=marks(size.horizon))


def log_constant(name: str, replications: int) -> float:
    """c* sigma^2 of a problem; of random action sets the average over those that are played."""
    problem = problems(name)[name]
    members = range(replications) if name == RANDOM else range(1)
    values = [lower_bound(problem.member(i), tolerance=1e-4).value for i in members]
    return float(sum(values) / len(values))


def renamed(curves: Mapping[str, Curve], names: Mapping[str, str]) -> dict[str, Curve]:
    """Pick curves, under new names and in the order of these."""
    return {new: curves[old] for new, old in names.items()}


def error_text(mean: float, error: float) -> str:
    """Mean and standard error with sensible digits."""
    digits = 0 if abs(mean) >= 100 else 1 if abs(mean) >= 1 else 3
    return f"{mean:.{digits}f} ± {error:.{digits}f}"


def regret_table(
    results: Results, problem: str, rounds: Iterable[int], policies: Iterable[str] | None = None
) -> Table:
    """Mean regret and standard error at some rounds, and the late slope in log n."""
    times = [t for t in rounds if t in results.plan.rounds]
    rows = []
    slopes = results.slopes(since=max(1, results.plan.rounds[-1] // 10)).set_index(
        ["problem", "policy"]
    )
    for policy in policies or results.policies:
        regret = results.regret(problem, policy)
        cells = []
        for t in times:
            mean, error = mean_and_error(regret[:, results.plan.rounds.index(t)])
            cells.append(error_text(float(mean), float(error)))
        late = slopes.loc[(problem, policy)]
        rows.append((policy, *cells, error_text(late.slope, late.standard_error)))
    head = ("policy", *(f"n = {rounds_text(t)}" for t in times), "slope in log n, last decade")
    count = len(results.plan.seeds)
    return Table(f"{problem}: mean regret ± standard error, {count} runs", head, tuple(rows))


def curve_frame(results: Results) -> pd.DataFrame:
    """All curves of an experiment as a table: mean, standard error and quantiles."""
    return results.summary("all")


def regret_findings(
    outcome: Outcome,
    caption: str,
    shown: Iterable[str] | None = None,
    remarks: tuple[str, ...] = (),
) -> Findings:
    """Regret on every problem: a figure of the policies shown (by default all), and tables."""
    results = outcome.results["regret"]
    labels = {label: label for label in shown or results.policies}
    panels = {name: renamed(results.curves(name), labels) for name in results.problems}
    bounds = {name: log_constant(name, outcome.size.replications) for name in results.problems}
    rounds = [10**e for e in (3, 4, 5, 6)]
    return Findings(
        figures={"regret": (caption, regret_figure(panels, bounds, EARLY))},
        tables=tuple(regret_table(results, name, rounds) for name in results.problems),
        curves={"regret": curve_frame(results)},
        remarks=remarks,
    )
