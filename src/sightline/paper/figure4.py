"""Cells against half-spaces, exact against approximate sampling."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import (
    PLOTS,
    RANDOM,
    SLOPE_2,
    SLOPE_4,
    as_read,
    marked,
    problems,
    regret_findings,
)
from sightline.policies.catalogue import IDS

__all__ = ["ITEM"]

_KINDS = {"H": "halfspace", "H-UCB": "halfspace-ucb", "C": "cell", "C-UCB": "cell-ucb"}
POLICIES: Mapping[str, IDS] = {
    f"IDS-{name}{suffix}": IDS(information=information, sampling=sampling)
    for name, information in _KINDS.items()
    for suffix, sampling in (("", "pair"), (", exact", "exact"))
}

_WITH_CLAIMS = ("IDS-H", "IDS-H, exact", "IDS-C")


def _experiments(size: Size) -> dict[str, Experiment]:
    policies = {
        label: policy
        for label, policy in POLICIES.items()
        if size.every_variant or label in _WITH_CLAIMS
    }
    found = {"regret": marked(size, problems(RANDOM, SLOPE_2, SLOPE_4), policies)}
    if size.every_variant:
        plotted = as_read({label: POLICIES[label] for label in _WITH_CLAIMS}, PLOTS)
        found["plots"] = marked(size, problems(RANDOM, SLOPE_4), plotted)
    return found


def _show(outcome: Outcome) -> Findings:
    return regret_findings(outcome, "Gains on half-spaces (H) and cells (C); pairs and exact")


ITEM = Item(
    name="figure4",
    title="Figure 4: cells and half-spaces, exact and approximate sampling",
    see="The curves lie on each other: the cheap half-spaces and pairs of arms lose nothing "
    "against exact cells and exact minimisation.",
    formula="Psi_s(mu) = (Delta-hat_s(mu)^2) / (I_s(mu))",
    where="Appendix on information gain functions, second figure",
    about="Four gains, each minimised over pairs with the empirically best arm and over all "
    "distributions; the quick profile has three of the eight. All play under the same noise. On "
    "the end of optimism with slope 2 half-spaces, cells and exact sampling make nearly the same "
    "choices, so that equal regret there says little; slope 4 and random sets tell them apart.",
    sizes={"quick": Size(10**6, 24, every_variant=False), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
