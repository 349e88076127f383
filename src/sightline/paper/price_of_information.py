"""The primal-dual rule pays for information at full price: its worst case beside that of IDS."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, VARIANCE, error_text
from sightline.policies.base import Policy
from sightline.policies.catalogue import PrimalDual
from sightline.problems import LinearBandit
from sightline.report.page import Table

__all__ = ["ITEM", "growth"]

HORIZONS = (10**2, 10**3, 10**4, 10**5)
POLICIES: dict[str, Policy] = {
    "IDS-H": IDS_H,
    "primal-dual": PrimalDual(gaps="value"),
}


def _name(horizon: int) -> str:
    return f"n = {horizon}"


def _hard(horizon: int) -> LinearBandit:
    """End of optimism with epsilon = 1/n and a second arm at a distance of 1/sqrt(n)."""
    actions = [[1.0, 0.0], [1.0 - 1.0 / horizon, 1.0 / math.sqrt(horizon)], [0.0, 1.0]]
    return LinearBandit(actions, [1.0, 0.0], math.sqrt(VARIANCE), name=f"hard-{horizon}")


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds = {_name(n): _hard(n) for n in HORIZONS}
    return {
        "regret": Experiment(
            worlds, POLICIES, size.horizon, size.replications, checkpoints=list(HORIZONS)
        )
    }


def growth(outcome: Outcome, policy: str) -> NDArray[np.float64]:
    """Exponent of regret in n, run by run, where the problem changes with n."""
    results = outcome.results["regret"]
    finals = np.array(
        [results.regret(_name(n), policy)[:, i] for i, n in enumerate(results.plan.rounds)]
    )
    x = np.log(np.array(results.plan.rounds, dtype=float))
    x -= x.mean()
    slopes: NDArray[np.float64] = x @ np.log(np.maximum(finals, 1e-3)) / (x @ x)
    return slopes


def _show(outcome: Outcome) -> Findings:
    results = outcome.results["regret"]
    rows = []
    for policy in POLICIES:
        cells = []
        for i, n in enumerate(HORIZONS):
            regret = results.regret(_name(n), policy)[:, i]
            cells.append(error_text(regret.mean(), regret.std(ddof=1) / math.sqrt(len(regret))))
        rows.append((policy, *cells))
    head = ("policy", *(f"n = {n:,}" for n in HORIZONS))
    title = f"Regret after n rounds of the problem for n, {outcome.size.replications} runs"
    return Findings(tables=(Table(title, head, tuple(rows)),))


ITEM = Item(
    name="worst-case",
    title="Beyond: the price of information, in the worst case",
    see="The primal-dual rule pays in nearly every round; IDS stays of the order of the "
    "square root of n.",
    short="Worst case",
    where="Section on the primal-dual approach",
    about="For every n a problem of its own: epsilon = 1/n, and the second arm so close to the "
    "first one that telling them apart by the third would take more than n rounds, at a cost of 1 "
    "each. The primal-dual rule as the paper states it, which plays the arm of least gap estimate "
    "per information, pays that price in nearly every round; IDS mixes in the best arm and does "
    "not. Noise variance 0.1.",
    sizes={"quick": Size(10**5, 20), "paper": Size(10**5, 100)},
    experiments=_experiments,
    show=_show,
)
