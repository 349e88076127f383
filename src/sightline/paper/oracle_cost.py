"""Strategies that know the answer: their cost against c* beta, from the paper's appendix."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.bounds.asymptotic import lower_bound
from sightline.bounds.oracle import CoveringProgram, online_allocation, oracle_ids
from sightline.paper.item import Calculation, Findings, Item, Outcome, Size
from sightline.problems import end_of_optimism, unit_sphere
from sightline.report.page import Table

__all__ = ["ITEM", "costs", "excess_exponents"]

_STRATEGIES = {"online convex optimisation": online_allocation, "oracle IDS": oracle_ids}
_SPHERES = 8  # seeds of random action sets that are tried


def costs(levels: list[float]) -> dict[str, dict[str, Any]]:
    """c* and the cost of every evidence level, by problem and strategy, at unit variance."""
    worlds = {"end of optimism, slope 2": end_of_optimism(0.01, 2.0, 1.0)}
    for seed in range(_SPHERES):
        worlds[f"random action set {seed}"] = unit_sphere(6, 2, 1.0, seed)
    found = {}
    for name, problem in worlds.items():
        program = CoveringProgram.of(lower_bound(problem))
        if program.docile.all():
            continue
        runs = {
            strategy: run(program, levels).cost.tolist() for strategy, run in _STRATEGIES.items()
        }
        found[name] = {"constant": program.solve()[0], "costs": runs}
    return found


def excess_exponents(outcome: Outcome) -> dict[str, float]:
    """Growth of cost - c* beta as a power of beta, over all levels, at worst over the problems.

    A cost that exceeds c* beta by no more than one round's counts as no growth.
    """
    levels = np.array(_LEVELS)
    worst = dict.fromkeys(_STRATEGIES, -math.inf)
    for found in outcome.values["costs"].values():
        for strategy, cost in found["costs"].items():
            excess = np.maximum(np.array(cost) - found["constant"] * levels, 1.0)
            x = np.log(levels) - np.log(levels).mean()
            worst[strategy] = max(worst[strategy], float(x @ np.log(excess) / (x @ x)))
    return worst


_LEVELS = [10.0**e for e in np.arange(1.0, 4.01, 0.25)]


def _calculations(size: Size) -> dict[str, Calculation]:
    return {"costs": Calculation(costs, {"levels": _LEVELS}, {"levels": _LEVELS[:5]}, 0.1)}


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 3.8), layout="constrained")
    row = figure.subplots(1, len(_STRATEGIES), sharey=True)
    rows = []
    for name, found in outcome.values["costs"].items():
        cells = []
        for axes, (strategy, cost) in zip(row, found["costs"].items(), strict=True):
            ratio = np.array(cost) / (found["constant"] * np.array(_LEVELS))
            axes.plot(_LEVELS, ratio, label=name)
            axes.set(xscale="log", xlabel=r"evidence $\\beta$", title=strategy)
            cells += [f"{ratio[0]:.3f}", f"{ratio[-1]:.3f}"]
        rows.append((name, f"{found['constant']:.3f}", *cells))
    row[0].set_ylabel(r"cost / ($c^* \\beta$)")
    row[0].legend()
    head = ["problem", "c*"]
    for strategy in _STRATEGIES:
        head += [f"{strategy}: ratio at beta = 10", "at 10^4"]
    caption = "Cost of reaching evidence beta over c* beta"
    return Findings(
        figures={"costs": (caption, figure)},
        tables=(Table("Cost over c* beta, unit variance", tuple(head), tuple(rows)),),
    )


ITEM = Item(
    name="oracle",
    title="Beyond: what it costs to know the answer",
    where="Appendix on primal-dual methods, oracle setting",
    about="With gaps and alternatives known, online convex optimisation and oracle IDS build an "
    "allocation that meets every constraint at the level beta. The paper bounds their cost by c* "
    "beta + O(sqrt(beta)). Problems in which playing the best arm settles everything have c* = 0 "
    "and are left out.",
    sizes={"quick": Size(1, 1), "paper": Size(1, 1)},
    calculations=_calculations,
    show=_show,
)
