"""Beyond the paper: the regulariser that matches the noise, lambda = sigma^2 / S^2."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    IDS_H,
    IDS_UCB,
    RANDOM,
    SLOPE_2,
    marked,
    problems,
    regret_findings,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, LinUCB

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
    return {"regret": marked(size, problems(RANDOM, SLOPE_2), POLICIES)}


def _show(outcome: Outcome) -> Findings:
    return regret_findings(outcome, "lambda = 1 and lambda = sigma^2/S^2")


ITEM = Item(
    name="regulariser",
    title="Beyond: lambda = sigma^2 / S^2",
    see="With lambda matched to the noise all policies have a fraction of their regret, in the "
    "same order.",
    formula="beta_s = (sigma sqrt(2 log(1 // delta) + log det(V_s // lambda)) + sqrt(lambda) S)^2",
    short="Regulariser",
    where="The confidence coefficient; the paper has lambda = 1",
    about="The coefficient is (sigma sqrt(...) + sqrt(lambda) S)^2. At lambda = 1 its second part "
    "does not shrink with the noise; matched to it, the whole coefficient scales with sigma^2.",
    sizes={"quick": Size(10**5, 10), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
