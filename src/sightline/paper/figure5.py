"""The simplified confidence coefficient sigma^2 (2 log t + d log log t)."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.core.confidence.log_log import LogLog
from sightline.lab.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    RANDOM,
    SLOPE_2,
    marks,
    problems,
    regret_findings,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, SOLID, LinUCB

__all__ = ["ITEM"]

_SIMPLE = LogLog()
SIMPLIFIED: Mapping[str, Policy] = {
    "IDS-H": IDS(confidence=_SIMPLE),
    "IDS-H-UCB": IDS(information="halfspace-ucb", confidence=_SIMPLE),
    "SOLID": SOLID(confidence=_SIMPLE),
    "SOLID++": SOLID(reset=False, constraint_bonus=2.0, confidence=_SIMPLE),
    "LinUCB": LinUCB(confidence=_SIMPLE),
}
BESIDE: Mapping[str, Policy] = {
    "IDS-H, log-det": IDS(),
    "IDS-H-UCB, log-det": IDS(information="halfspace-ucb"),
    "LinUCB, log-det": LinUCB(),
}


def _experiments(size: Size) -> dict[str, Experiment]:
    policies = {**SIMPLIFIED, **BESIDE}
    rounds = marks(size.horizon)
    worlds = problems(RANDOM, SLOPE_2)
    return {
        "regret": Experiment(worlds, policies, size.horizon, size.replications, checkpoints=rounds)
    }


def _show(outcome: Outcome) -> Findings:
    return regret_findings(outcome, "All policies with the simplified coefficient", SIMPLIFIED)


ITEM = Item(
    name="figure5",
    title="Figure 5: the log-log confidence coefficient",
    see="The order of the policies is that of figure 1, with less regret for all of them.",
    formula="beta_t = sigma^2 (2 log t + d log log t)",
    where="Appendix on the confidence coefficient, first figure",
    about="beta_t = sigma^2 (2 log t + d log log t) for all policies; the tables have the "
    "log-determinant coefficient beside it.",
    sizes={"quick": Size(10**5, 10), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
