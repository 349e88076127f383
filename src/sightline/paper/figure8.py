"""Thompson sampling and Bayesian IDS beside the frequentist policies."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.core.confidence_rules import FixedBeta
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    IDS_H,
    IDS_UCB,
    PLOTS,
    RANDOM,
    SLOPE_2,
    as_read,
    marked,
    problems,
    regret_findings,
)
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS, BayesianIDS, LinUCB, ThompsonSampling

__all__ = ["ITEM"]


IDS_POLICIES: Mapping[str, IDS] = {
    "IDS-H": IDS_H,
    "IDS-H-UCB": IDS_UCB,
    "IDS-H, beta = 1": IDS(confidence=FixedBeta(1.0)),
    "IDS-H-UCB, beta = 1": IDS(information="halfspace-ucb", confidence=FixedBeta(1.0)),
}
RIVALS: Mapping[str, Policy] = {
    "Thompson sampling": ThompsonSampling(),
    "LinUCB": LinUCB(),
    "LinUCB, beta = 1": LinUCB(confidence=FixedBeta(1.0)),
}


def _experiments(size: Size) -> dict[str, Experiment]:
    policies: dict[str, Policy] = {**IDS_POLICIES, **RIVALS}
    names = [RANDOM, SLOPE_2]
    if size.every_variant:
        policies |= as_read(IDS_POLICIES, PLOTS)
        policies["Bayesian IDS"] = BayesianIDS(samples=size.samples)
        names.append(PLOTS.example)
    found = {"regret": marked(size, problems(*names), policies)}
    if size.every_variant:  # ratios here are close to the ends of what "about half" allows
        kept = [label for label in policies if "beta = 1" in label or label == "Bayesian IDS"]
        close = {label: policies[label] for label in kept}
        found["half"] = marked(size, problems(PLOTS.example), close, size.many)
    return found


def _show(outcome: Outcome) -> Findings:
    remark = f"Bayesian IDS draws {outcome.size.samples:,} posterior samples per round."
    if not outcome.size.every_variant:
        remark = "Bayesian IDS takes a second per run and is left to the paper profile."
    return regret_findings(outcome, "Bayesian and frequentist policies", remarks=(remark,))


ITEM = Item(
    name="figure8",
    title="Figure 8: Bayesian methods",
    see="The Bayesian policies start far below the others; those with the constant beta = 1 come "
    "close to them.",
    where="Appendix on Bayesian methods, figure",
    about="Prior N(0, I) and the true noise variance for the Bayesian policies; Bayesian IDS with "
    "the variance-based gain.",
    sizes={
        "quick": Size(10**6, 40, every_variant=False),
        "paper": Size(10**6, 100, 10**4, many=600),
    },
    experiments=_experiments,
    show=_show,
)
