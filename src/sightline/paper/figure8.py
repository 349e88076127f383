"""Thompson sampling and Bayesian IDS beside the frequentist policies."""

from __future__ import annotations

from sightline.core.confidence import FixedBeta
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
from sightline.policies.catalogue import IDS, BayesianIDS, LinUCB, ThompsonSampling
from sightline.report.figures import regret_figure

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    policies: dict[str, Policy] = {
        "Thompson sampling": ThompsonSampling(),
        "Bayesian IDS": BayesianIDS(samples=size.samples),
        "IDS-H": IDS_H,
        "IDS-H-UCB": IDS_UCB,
        "IDS-H, beta = 1": IDS(confidence=FixedBeta(1.0)),
        "IDS-H-UCB, beta = 1": IDS(information="halfspace-ucb", confidence=FixedBeta(1.0)),
        "LinUCB": LinUCB(),
        "LinUCB, beta = 1": LinUCB(confidence=FixedBeta(1.0)),
    }
    rounds = marks(size.horizon)
    worlds = problems(RANDOM, SLOPE_2)
    return {
        "regret": Experiment(worlds, policies, size.horizon, size.replications, checkpoints=rounds)
    }


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["regret"]
    bounds = {name: log_constant(name, outcome.size.replications) for name in results.problems}
    panels = {name: results.curves(name) for name in results.problems}
    rounds = [10**e for e in (3, 4, 5, 6)]
    return Findings(
        figures={
            "regret": ("Bayesian and frequentist policies", regret_figure(panels, bounds, EARLY))
        },
        tables=tuple(regret_table(results, name, rounds) for name in results.problems),
        curves={"regret": curve_frame(results)},
        remarks=(f"Bayesian IDS draws {outcome.size.samples:,} posterior samples per round.",),
    )


ITEM = Item(
    name="figure8",
    title="Figure 8: Bayesian methods",
    where="Appendix on Bayesian methods, figure",
    about="Prior N(0, I) and the true noise variance for the Bayesian policies; Bayesian IDS with "
    "the variance-based gain.",
    sizes={"quick": Size(10**4, 16, 1000), "paper": Size(10**6, 100, 10**4)},
    experiments=_experiments,
    show=_show,
)
