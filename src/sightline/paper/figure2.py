"""Figure 2: arms and cells of the end of optimism, and the confidence ellipsoid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sightline.bounds.asymptotic import lower_bound
from sightline.core.clock import log_round
from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.settings import IDS_H, SLOPE_2, panels, problems
from sightline.problems import end_of_optimism
from sightline.report.page import Table
from sightline.simulation.loop import walk

_EPSILON = 0.3  # at epsilon = 0.01 two arms look the same


def constants(epsilons: list[float], slopes: list[float]) -> list[list[float]]:
    """Rows of epsilon, slope, and the certified sides of c* at unit variance."""
    rows = []
    for slope in slopes:
        for epsilon in epsilons:
            bound = lower_bound(end_of_optimism(epsilon, slope, 1.0))
            rows.append([epsilon, slope, bound.lower, bound.upper])
    return rows


def first_commitment(seed: int, early: int) -> list[dict[str, Any]]:
    """Estimate and V after ``early`` explorations, and when IDS first exploits after that."""
    problem = problems(SLOPE_2)[SLOPE_2]
    state = IDS_H.start(problem.model)
    snapshots: list[dict[str, Any]] = []
    explored = 0
    for step in walk(problem, state, seed):
        settled = step.outcome is None and explored > early
        if explored == early or settled:
            pulls = state.estimate.arms.pulls
            gram = np.eye(2) + (problem.actions.T * pulls) @ problem.actions
            theta = state.estimate.learned.theta
            rounds = math.exp(log_round(step.clock))
            snapshots.append({"t": rounds, "gram": gram.tolist(), "theta": theta.tolist()})
        if settled:
            break
        explored += step.outcome is not None
    return snapshots


def _calculations(size: Size) -> dict[str, Calculation]:
    epsilons = [0.001, 0.01, 0.05, 0.1, 0.2]
    return {
        "constants": Calculation(constants, {"epsilons": epsilons, "slopes": [2.0, 4.0]}),
        "ellipsoids": Calculation(first_commitment, {"seed": 0, "early": 4}),
    }


def _draw_world(axes: Any, actions: Any, reach: float) -> None:
    from matplotlib.colors import ListedColormap

    grid = np.linspace(-reach, reach, 500)
    parameters = np.stack(np.meshgrid(grid, grid), axis=-1)
    best = (parameters @ actions.T).argmax(axis=-1)
    colours = ListedColormap(["#cfe3f7", "#fde0bf", "#d5efd0"])
    axes.imshow(best, origin="lower", extent=(-reach, reach, -reach, reach), cmap=colours)
    for arm, (x, y) in enumerate(actions, 1):
        axes.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "-|>", "color": f"C{arm - 1}"})
        offset = (6, -16) if arm == 1 else (6, 8)
        axes.annotate(f"$x_{arm}$", (x, y), textcoords="offset points", xytext=offset)
    for arm in range(len(actions)):
        middle = parameters[best == arm].mean(axis=0)
        axes.annotate(rf"$\mathcal{{C}}_{arm + 1}$", middle, fontsize=15, ha="center")


def _draw_ellipsoid(axes: Any, snapshot: dict[str, Any], level: float, **style: Any) -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 200)
    circle = np.array([np.cos(angles), np.sin(angles)]) * math.sqrt(level)
    shape = np.linalg.inv(np.linalg.cholesky(np.array(snapshot["gram"]))).T
    points = np.array(snapshot["theta"])[:, None] + shape @ circle
    axes.plot(*points, **style)


def _show(outcome: ItemResults) -> Findings:
    figure, (left, right) = panels(11, 5.2, 2)
    _draw_world(left, end_of_optimism(_EPSILON, 2.0).actions, 1.35)
    left.plot(1.0, 0.0, "k*", markersize=13)
    left.set_title(rf"arms and cells, drawn with $\epsilon$ = {_EPSILON}")
    problem = problems(SLOPE_2)[SLOPE_2]
    _draw_world(right, problem.actions, 1.6)
    early, settled = outcome.values["ellipsoids"]
    for snapshot, line in ((early, "--"), (settled, "-")):
        level = 2.0 * problem.model.noise_std**2 * max(math.log(snapshot["t"]), 1.0)
        label = f"$\\mathcal{{E}}_t$ before round {snapshot['t']:.0f}"
        _draw_ellipsoid(right, snapshot, level, color="k", linestyle=line, label=label)
    right.plot(1.0, 0.0, "k*", markersize=13, label=r"$\theta^*$")
    right.set(title=r"$\epsilon$ = 0.01: one run of IDS-H, early and when it first exploits")
    right.legend(loc="lower right")
    rows = tuple(
        (f"{slope:g}", f"{epsilon:g}", f"{lower:.6f}", f"{upper:.6f}")
        for epsilon, slope, lower, upper in outcome.values["constants"]
    )
    table = Table(
        "c* at unit variance, certified from both sides", ("slope", "epsilon", "from", "to"), rows
    )
    caption = "Arms, cells C1 to C3, theta* (star) and confidence ellipsoids of radius 2 log t"
    return Findings(figures={"cells": (caption, figure)}, tables=(table,))


ITEM = Item(
    name="figure2",
    title="Figure 2: the end of optimism, and its c*",
    see="The best arm is identified once the confidence ellipse lies inside one colour; it must"
    " become narrow in the direction that only the bad arm x_3 reveals.",
    formula='c* = min_alpha sum_x alpha(x) Delta(x) "subject to" |nu - theta*|_{V(alpha)}^2 >= 2 '
    'sigma^2 "for all" nu "with another best arm"',
    where="Section 3, figure of the example; the constant in the text below it",
    about="The best arm is identified when the ellipsoid lies inside the first cell. At unit "
    "variance c* = min(2 slope^2, 2/epsilon), which does not depend on a small epsilon.",
    sizes={"quick": Size(1, 1), "paper": Size(1, 1)},
    calculations=_calculations,
    show=_show,
)
