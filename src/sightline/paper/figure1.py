"""Figure 1: regret on random action sets and on the end of optimism, under both readings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, ItemResults, Size
from sightline.paper.settings import (
    BOTH,
    EARLY,
    IDS_H,
    IDS_UCB,
    PLOTS,
    RANDOM,
    SHORT_LEVEL,
    SLOPE_2,
    SLOPE_4,
    SOLID_PP,
    c_star,
    experiment,
    problems,
    regret_table,
    renamed,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import SOLID, LinUCB
from sightline.report.figures import regret_figure
from sightline.report.page import Table
from sightline.report.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Suffix of the labels of IDS, and its meaning.
CONVENTIONS: Mapping[str, str] = {
    "": "value gaps, delta = 1/s^2 (the text)",
    ", short": "value gaps, delta = 1/(s log s)",
    ", difference": "difference gaps, delta = 1/s^2",
    ", difference, short": "difference gaps, delta = 1/(s log s)",
}
# Read off the published plots, within about 10 %; for comparison only.
PUBLISHED: Mapping[str, Mapping[int, Mapping[str, float]]] = {
    RANDOM: {
        10**4: {"IDS-H": 40, "IDS-H-UCB": 31.5, "SOLID++": 31.5, "LinUCB": 31.5},
        10**6: {"IDS-H": 155, "IDS-H-UCB": 110, "SOLID": 255, "SOLID++": 170, "LinUCB": 100},
    },
    SLOPE_4: {
        10**4: {"IDS-H": 41, "IDS-H-UCB": 28, "SOLID++": 22, "LinUCB": 28},
        10**6: {"IDS-H": 165, "IDS-H-UCB": 260, "SOLID": 215, "SOLID++": 530, "LinUCB": 560},
    },
}
_RIVALS: Mapping[str, Policy] = {
    "SOLID": SOLID(),
    "SOLID++": SOLID_PP,
    "SOLID++, no bonus": SOLID(reset=False),
    "LinUCB": LinUCB(),
}
_IDS = {"IDS-H": IDS_H, "IDS-H-UCB": IDS_UCB}


def _ids(suffixes: Iterable[str]) -> dict[str, Policy]:
    policies: dict[str, Policy] = {}
    for label, policy in _IDS.items():
        for suffix in suffixes:
            gaps = "difference" if "difference" in suffix else "value"
            level = SHORT_LEVEL if "short" in suffix else policy.confidence
            policies[label + suffix] = replace(policy, gaps=gaps, confidence=level)
    return policies


def _experiments(size: Size) -> dict[str, Experiment]:
    rivals = dict(_RIVALS)
    if not size.every_variant:
        del rivals["SOLID++, no bonus"]
    read = [reading.suffix for reading in BOTH]
    everywhere = problems(RANDOM, SLOPE_2, SLOPE_4)
    variants = _ids(CONVENTIONS if size.every_variant else read)
    found = {
        "regret": experiment(size, everywhere, variants | rivals),
        "many": experiment(size, everywhere, _ids([""]), size.many),
        "most": experiment(size, problems(SLOPE_2), _ids([""]), 10 * size.many),
    }
    if size.every_variant:  # slower policies, where regret has heavy tails
        slower = _ids(read) | {"LinUCB": LinUCB()}
        found["many sets"] = experiment(size, problems(RANDOM), slower, 3 * size.replications)
        solid = {"SOLID": SOLID()}  # its slope is close to twice the optimal one
        found["slope"] = experiment(size, problems(SLOPE_2, SLOPE_4), solid, 4 * size.many)
    return found


def _figure(results: Results, suffix: str, problem: str) -> Figure:
    rivals = [label for label in _RIVALS if label in results.policies]
    names = {label: label + suffix for label in _IDS} | {label: label for label in rivals}
    rows = (RANDOM, problem)
    panels = {name: renamed(results.curves(name), names) for name in rows}
    bounds = {name: c_star(name, len(results.grid.seeds)) for name in rows}
    published = {
        name: {label: {t: at[label] for t, at in times.items() if label in at} for label in names}
        for name, times in PUBLISHED.items()
    }
    return regret_figure(panels, bounds, EARLY, published=published)


def _comparison(results: Results) -> tuple[Table, str]:
    """Compare every convention with the published numbers, and name the closest."""
    rows, distances = [], {}
    for suffix, meaning in CONVENTIONS.items():
        if "IDS-H" + suffix not in results.policies:
            continue
        logs = []
        for problem, times in PUBLISHED.items():
            for t, values in times.items():
                if t not in results.grid.rounds:
                    continue
                mark = results.grid.rounds.index(t)
                cells = []
                for label in _IDS:
                    mean = float(results.regret(problem, label + suffix)[:, mark].mean())
                    cells.append(f"{mean:.0f} ({values[label]:g})")
                    logs.append(abs(math.log(mean / values[label])))
                rows.append((meaning, problem, f"{t:,}", *cells))
        distances[meaning] = math.exp(sum(logs) / len(logs))
    closest = min(distances, key=lambda meaning: distances[meaning])
    listed = "; ".join(f"{meaning}: {value:.2f}" for meaning, value in distances.items())
    table = Table(
        "IDS under several conventions: measured (published, read off the plot)",
        ("convention", "problem", "n", "IDS-H", "IDS-H-UCB"),
        tuple(rows),
    )
    return table, (
        f"The convention closest to the published curves of IDS is: {closest}. Typical factor "
        f"between measured and published regret (1 is perfect): {listed}."
    )


def _show(outcome: ItemResults) -> Findings:
    results = outcome.results["regret"]
    comparison, remark = _comparison(results)
    return Findings(
        figures={
            "text": (
                "Settings of the text: value gaps, slope 2. Crosses: published curves, read off "
                "the plots.",
                _figure(results, "", SLOPE_2),
            ),
            "plots": (
                "Settings that match the plots: difference gaps, delta = 1/(s log s), slope 4. "
                "Crosses: published curves, read off the plots.",
                _figure(results, PLOTS.suffix, SLOPE_4),
            ),
        },
        tables=(*(regret_table(results, name) for name in results.problems), comparison),
        curves={"regret": results.summary("all")},
        remarks=(remark,),
    )


ITEM = Item(
    name="figure1",
    title="Figure 1: regret of IDS, SOLID and LinUCB",
    see="On the end of optimism the curves of IDS and SOLID bend towards the slope of the dashed "
    "line, while those of LinUCB and SOLID++ grow fast; crosses are the published curves.",
    where="Section 3, figure with all plots",
    about="Six arms uniform on the unit sphere in the plane, a new set in every repetition, and "
    "the end of optimism with epsilon = 0.01; noise variance 0.1. SOLID++ has the constraint bonus "
    "of SOLID, its published default as we remember it; the library's default has no bonus. "
    "The dashed line is c* log n, for random sets with the mean c* of the sets that were played.",
    sizes={
        "quick": Size(10**6, 24, every_variant=False, many=200),
        "paper": Size(10**6, 100, many=600),
    },
    experiments=_experiments,
    show=_show,
)
