"""SOLID beside OAM and Thompson sampling, which the paper quotes it to outperform."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import RANDOM, SLOPE_2, marked, problems, regret_findings
from sightline.policies.base import Policy
from sightline.policies.catalogue import OAM, SOLID, ThompsonSampling

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    policies: dict[str, Policy] = {"SOLID": SOLID(), "Thompson sampling": ThompsonSampling()}
    if size.every_variant:
        policies["OAM"] = OAM(size.horizon)
    return {"regret": marked(size, problems(RANDOM, SLOPE_2), policies)}


def _show(outcome: Outcome) -> Findings:
    return regret_findings(outcome, "SOLID, OAM and Thompson sampling")


ITEM = Item(
    name="solid-rivals",
    title="Beyond: SOLID against OAM and Thompson sampling",
    see="Thompson sampling, which is told nothing of gaps or bounds, stays below SOLID.",
    short="SOLID rivals",
    where="Section 3, quoted from the paper on SOLID",
    about="OAM knows the horizon. Thompson sampling has the prior N(0, I) and the true noise "
    "variance. SOLID has the confidence coefficient of the paper, not its own. The quick profile "
    "leaves out OAM.",
    sizes={"quick": Size(10**5, 10, every_variant=False), "paper": Size(10**5, 60)},
    experiments=_experiments,
    show=_show,
)
