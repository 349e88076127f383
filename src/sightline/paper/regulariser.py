"""Beyond the paper: the regulariser that matches the noise, lambda = sigma^2 / S^2."""

from __future__ import annotations

from sightline.lab.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    EARLY,
    IDS_H,
    IDS_UCB,
    RANDOM,
    SLOPE_2,
    curve_frame,
    log_constant,
    marks,
    problems,
    regret_table,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB
from sightline.report.figures import regret_figure

__all__ = ["ITEM"]

POLICIES: dict[str, Policy] = {
    "IDS-H": IDS_H,
    "IDS-H, matched": IDS(regulariser="matched"),
    "IDS-H-UCB": IDS_UCB,
    "IDS-H-UCB, matched": IDS(information="halfspace-ucb", regulariser="matched"),
    "LinUCB": LinUCB(),
    "LinUCB, matched": LinUCB(regulariser="matched"),
}


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds, rounds = problems(RANDOM, SLOPE_2), marks(size.horizon)
    return {
        "regret": Experiment(worlds, POLICIES, size.horizon, size.replications, checkpoints=rounds)
    }


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["regret"]
    bounds = {name: log_constant(name, outcome.size.replications) for name in results.problems}
    panels = {name: results.curves(name) for name in results.problems}
    rounds = [10**e for e in (3, 4, 5, 6)]
    return Findings(
        figures={
            "regret": ("lambda = 1 and lambda = sigma^2/S^2", regret_figure(panels, bounds, EARLY))
        },
        tables=tuple(regret_table(results, name, rounds) for name in results.problems),
        curves={"regret": curve_frame(results)},
    )


ITEM = Item(
    name="regulariser",
    title="Beyond: lambda = sigma^2 / S^2",
    where="The confidence coefficient; the paper has lambda = 1",
    about="The coefficient is (sigma sqrt(...) + sqrt(lambda) S)^2. At lambda = 1 its second part "
    "does not shrink with the noise; matched to it, the whole coefficient scales with sigma^2.",
    sizes={"quick": Size(10**5, 10), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
