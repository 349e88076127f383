"""Beyond the paper: a best arm of norm zero, which its asymptotic theorem leaves out."""

from __future__ import annotations

import math

from sightline.bounds.asymptotic import lower_bound
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, VARIANCE, curve_frame
from sightline.policies.base import Policy
from sightline.policies.catalogue import IDS
from sightline.problems import LinearBandit
from sightline.report.figures import ratio_figure
from sightline.report.page import Table
from sightline.report.statistics import mean_and_error
from sightline.simulation.simulate import rounds_text

__all__ = ["ITEM", "ZERO", "zero_constant"]

ZERO = "best arm of norm zero"
_ROUNDS = [10**e for e in (3, 6, 12, 30, 100, 300)]
POLICIES: dict[str, Policy] = {"IDS-H": IDS_H, "IDS-H, thresholded": IDS(gaps="thresholded")}


def _problem() -> LinearBandit:
    actions = [[0.0, 0.0], [-0.3, 0.4], [-0.6, -0.5], [-0.2, 0.9]]
    return LinearBandit(actions, [1.0, 0.0], math.sqrt(VARIANCE), name="zero-best")


def zero_constant() -> float:
    """c* sigma^2."""
    return lower_bound(_problem()).value


def _experiments(size: Size) -> dict[str, Experiment]:
    decades = {10**e for e in [*range(1, 30), *range(30, 301, 10)]}
    rounds = sorted(t for t in {*decades, size.horizon} if t <= size.horizon)
    policies = POLICIES if size.every_variant else {"IDS-H": IDS_H}
    return {
        "far": Experiment(
            {ZERO: _problem()}, policies, size.horizon, size.replications, checkpoints=rounds
        )
    }


def _show(outcome: Outcome) -> Findings:
    results, constant = outcome.results["far"], zero_constant()
    rows = []
    for policy in results.policies:
        regret = results.regret(ZERO, policy)
        cells = []
        for t in _ROUNDS:
            mark = results.plan.rounds.index(t)
            mean, error = mean_and_error(regret[:, mark] / (constant * math.log(t)))
            cells.append(f"{mean:.3f} ± {error:.3f}")
        rows.append((policy, *cells))
    head = ("policy", *(f"n = {rounds_text(t)}" for t in _ROUNDS))
    title = f"R_n / (c* sigma^2 log n), mean ± standard error, {outcome.size.replications} runs"
    caption = "Regret over the lower bound where playing the best arm teaches nothing"
    return Findings(
        figures={"ratio": (caption, ratio_figure(results.curves(ZERO), constant))},
        tables=(Table(title, head, tuple(rows)),),
        curves={"far": curve_frame(results)},
    )


ITEM = Item(
    name="zero-best",
    title="Beyond: a best arm of norm zero",
    see="With a best arm that teaches nothing IDS still comes down towards c* log n.",
    short="Zero best arm",
    where="Below the theorem on asymptotic regret, which assumes that the best arm is not zero",
    about="Four arms in the plane, the best one of which is the zero vector: playing it teaches "
    "nothing, and its width is zero, so that delta_s can be zero. Algorithm 1 is then taken in the "
    "limit of delta_s falling to zero. The paper leaves open whether it stays optimal, and "
    "proposes thresholded gaps as a remedy. Noise variance 0.1.",
    sizes={"quick": Size(10**300, 20, every_variant=False), "paper": Size(10**300, 100)},
    experiments=_experiments,
    show=_show,
)
