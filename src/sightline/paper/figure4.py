"""Cells against half-spaces, exact against approximate sampling."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.lab.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    EARLY,
    RANDOM,
    SLOPE_2,
    curve_frame,
    log_constant,
    marks,
    problems,
    regret_table,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS
from sightline.report.figures import regret_figure

__all__ = ["ITEM"]

_KINDS = {"H": "halfspace", "H-UCB": "halfspace-ucb", "C": "cell", "C-UCB": "cell-ucb"}
POLICIES: Mapping[str, Policy] = {
    f"IDS-{name}{suffix}": IDS(information=information, sampling=sampling)
    for name, information in _KINDS.items()
    for suffix, sampling in (("", "pair"), (", exact", "exact"))
}

_WITH_CLAIMS = ("IDS-H", "IDS-H, exact", "IDS-H-UCB", "IDS-C")


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds = problems(RANDOM, SLOPE_2)
    rounds = marks(size.horizon)
    policies = {
        label: policy
        for label, policy in POLICIES.items()
        if size.every_variant or label in _WITH_CLAIMS
    }
    return {
        "regret": Experiment(worlds, policies, size.horizon, size.replications, checkpoints=rounds)
    }


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["regret"]
    bounds = {name: log_constant(name, outcome.size.replications) for name in results.problems}
    panels = {name: results.curves(name) for name in results.problems}
    figure = regret_figure(panels, bounds, EARLY)
    rounds = [10**e for e in (3, 4, 5, 6)]
    return Findings(
        figures={"regret": ("Gains on half-spaces (H) and cells (C); pairs and exact", figure)},
        tables=tuple(regret_table(results, name, rounds) for name in results.problems),
        curves={"regret": curve_frame(results)},
    )


ITEM = Item(
    name="figure4",
    title="Figure 4: cells and half-spaces, exact and approximate sampling",
    where="Appendix on information gain functions, second figure",
    about="Four gains, each minimised over pairs with the empirically best arm and over all "
    "distributions; the quick profile has four of the eight. All play under the same noise.",
    sizes={"quick": Size(10**5, 12, every_variant=False), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
