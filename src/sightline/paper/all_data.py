"""Beyond the paper: IDS that keeps the data of exploitation rounds, and unlifted differences."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    IDS_H,
    SLOPE_2,
    SLOPE_4,
    marked,
    problems,
    regret_findings,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS

__all__ = ["ITEM"]

POLICIES: dict[str, Policy] = {
    "IDS-H": IDS_H,
    "IDS-H, all data": IDS(exploitation="keep"),
    "IDS-H, difference": IDS(gaps="difference"),
    "IDS-H, difference, unlifted": IDS(gaps="difference-unlifted"),
}


def _experiments(size: Size) -> dict[str, Experiment]:
    policies = dict(POLICIES)
    if not size.every_variant:
        policies = {label: POLICIES[label] for label in ("IDS-H", "IDS-H, all data")}
    return {"regret": marked(size, problems(SLOPE_2, SLOPE_4), policies)}


def _show(outcome: Outcome) -> Findings:
    return regret_findings(outcome, "Data of exploitation rounds discarded and kept")


ITEM = Item(
    name="all-data",
    title="Beyond: keeping the data of exploitation rounds",
    see="Keeping the data of exploitation rounds gains nothing.",
    short="All data",
    where="Conclusion, which calls the need to discard them a limitation",
    about="Algorithm 1 learns from exploration rounds only. Kept, the data of exploitation rounds "
    "are all of the empirically best arm and tell little; s, which counts all data, then sets "
    "stricter levels. Difference gaps that are not lifted to sigma / sqrt(s) are in the paper "
    "profile.",
    sizes={"quick": Size(10**6, 24, every_variant=False), "paper": Size(10**6, 200)},
    experiments=_experiments,
    show=_show,
)
