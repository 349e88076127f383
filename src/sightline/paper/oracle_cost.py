"""Beyond the paper: cost of the oracle strategies of its appendix against c* beta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.bounds.asymptotic import lower_bound
from sightline.bounds.oracle import CoveringProgram, online_allocation, oracle_ids
from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.settings import panels
from sightline.problems import end_of_optimism, unit_sphere
from sightline.report.figures import label_ends
from sightline.report.page import Table
from sightline.report.statistics import log_slopes

_STRATEGIES = {"online convex optimisation": online_allocation, "oracle IDS": oracle_ids}


def costs(most: float, spheres: int) -> dict[str, dict[str, Any]]:
    """c* and the cost of every evidence level, by problem and strategy, at unit variance.

    The last level costs about ``most``.  Oracle IDS spends 1 / sqrt(t) in round t, so it needs a
    quarter of the square of the cost in rounds.
    """
    worlds = {"end of optimism, slope 2": end_of_optimism(0.01, 2.0, 1.0)}
    for seed in range(spheres):
        worlds[f"random action set {seed}"] = unit_sphere(8, 4, 1.0, seed)
    found = {}
    for name, problem in worlds.items():
        program = CoveringProgram.of(lower_bound(problem))
        constant = program.solve()[0]
        if constant == 0.0 or constant > 0.01 * most:
            continue
        levels = np.geomspace(10.0, most / constant, 13)
        runs = {
            strategy: run(program, levels).cost.tolist() for strategy, run in _STRATEGIES.items()
        }
        found[name] = {"constant": constant, "levels": levels.tolist(), "costs": runs}
    return found


def excess_exponents(outcome: ItemResults) -> dict[str, float]:
    """Growth of cost - c* beta as a power of beta; the largest exponent over the problems.

    An excess of at most the cost of one round counts as no growth.
    """
    worst = dict.fromkeys(_STRATEGIES, -math.inf)
    for found in outcome.values["costs"].values():
        levels = np.array(found["levels"])
        for strategy, cost in found["costs"].items():
            excess = np.maximum(np.array(cost) - found["constant"] * levels, 1.0)
            power = float(log_slopes(np.log(levels), np.log(excess)))
            worst[strategy] = max(worst[strategy], power)
    return worst


def _calculations(size: Size) -> dict[str, Calculation]:
    return {"costs": Calculation(costs, {"most": 3000.0, "spheres": 8}, {"most": 400.0}, 0.01)}


def _show(outcome: ItemResults) -> Findings:
    figure, row = panels(11, 3.8, len(_STRATEGIES), sharey=True)
    rows = []
    first = next(name for name in outcome.values["costs"] if name.startswith("random"))
    for name, found in outcome.values["costs"].items():
        cells = []
        for axes, (strategy, cost) in zip(row, found["costs"].items(), strict=True):
            ratio = np.array(cost) / (found["constant"] * np.array(found["levels"]))
            random = name.startswith("random")  # one colour and one label for all
            label = "random action sets" if name == first else "_" if random else name
            axes.plot(found["levels"], ratio, color="C1" if random else "C0", label=label)
            axes.set(xscale="log", xlabel=r"evidence $\beta$", title=strategy)
            cells += [f"{ratio[0]:.3f}", f"{ratio[-1]:.3f}"]
        rows.append((name, f"{found['constant']:.3f}", f"{found['levels'][-1]:.0f}", *cells))
    row[0].set_ylabel(r"cost / ($c^* \beta$)")
    for axes in row:
        label_ends(axes)
    head = ["problem", "c*", "last beta"]
    for strategy in _STRATEGIES:
        head += [f"{strategy}: ratio at beta = 10", "at the last beta"]
    caption = "Cost of reaching evidence beta over c* beta"
    return Findings(
        figures={"costs": (caption, figure)},
        tables=(Table("Cost over c* beta, unit variance", tuple(head), tuple(rows)),),
    )


ITEM = Item(
    name="oracle",
    title="Beyond: the cost of the oracle strategies",
    see="The cost over c* beta falls towards 1 as the level beta grows.",
    short="Oracle",
    where="Appendix on primal-dual methods, oracle setting",
    about="With known gaps and alternatives, online convex optimisation and oracle IDS build an "
    "allocation that meets every constraint at the level beta. The paper bounds their cost by c* "
    "beta + O(sqrt(beta)). Problems: the end of optimism, where one constraint binds and the "
    "excess is small, and random sets of 8 arms in 4 dimensions with c* up to 30.",
    sizes={"quick": Size(1, 1), "paper": Size(1, 1)},
    calculations=_calculations,
    show=_show,
)
