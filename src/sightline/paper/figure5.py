"""The simplified confidence coefficient sigma^2 (2 log t + d log log t)."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.core.confidence_rules import LogLog
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    PLOTS,
    RANDOM,
    SLOPE_2,
    as_read,
    marked,
    problems,
    regret_findings,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, SOLID, LinUCB

__all__ = ["AUTHORS", "ITEM"]

AUTHORS = ", authors"  # added to labels: sigma^2 multiplies the first term only
_SIMPLE, _AUTHORS = LogLog(), LogLog(variance_of="first")
BESIDE: Mapping[str, IDS] = {
    "IDS-H, log-det": IDS(),
    "IDS-H-UCB, log-det": IDS(information="halfspace-ucb"),
}
OF_AUTHORS: Mapping[str, IDS] = {
    "IDS-H" + AUTHORS: IDS(confidence=_AUTHORS),
    "IDS-H-UCB" + AUTHORS: IDS(information="halfspace-ucb", confidence=_AUTHORS),
}
SIMPLIFIED: Mapping[str, Policy] = {
    "IDS-H": IDS(confidence=_SIMPLE),
    "IDS-H-UCB": IDS(information="halfspace-ucb", confidence=_SIMPLE),
    "LinUCB": LinUCB(confidence=_SIMPLE),
}
SOLIDS: Mapping[str, Policy] = {
    "SOLID": SOLID(confidence=_SIMPLE),
    "SOLID++": SOLID(reset=False, constraint_bonus=2.0, confidence=_SIMPLE),
}
LIN_UCB: Mapping[str, Policy] = {
    "LinUCB" + AUTHORS: LinUCB(confidence=_AUTHORS),
    "LinUCB, log-det": LinUCB(),
}


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds = problems(RANDOM, SLOPE_2) if size.every_variant else problems(SLOPE_2)
    policies = {**SIMPLIFIED, **OF_AUTHORS, **BESIDE, **LIN_UCB}
    if not size.every_variant:
        return {"regret": marked(size, worlds, policies)}
    as_plotted = {**as_read({**OF_AUTHORS, **BESIDE}, PLOTS), **LIN_UCB}
    return {
        "regret": marked(size, worlds, {**policies, **SOLIDS}),
        "plots": marked(size, problems(RANDOM, PLOTS.example), as_plotted),
    }


def _show(outcome: Outcome) -> Findings:
    shown = [x for x in (*SIMPLIFIED, *SOLIDS) if x in outcome.results["regret"].policies]
    return regret_findings(outcome, "All policies with the simplified coefficient", shown)


ITEM = Item(
    name="figure5",
    title="Figure 5: the log-log confidence coefficient",
    see="The order of the policies is that of figure 1, with less regret for all of them.",
    formula="beta_t = sigma^2 (2 log t + d log log t)",
    where="Appendix on the confidence coefficient, first figure",
    about="beta_t = sigma^2 (2 log t + d log log t) for all policies; the tables have the "
    "log-determinant coefficient beside it, and the one of the authors' code, in which sigma^2 "
    "multiplies the first term only. The quick profile leaves out SOLID and random sets.",
    sizes={"quick": Size(10**6, 56, every_variant=False), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
