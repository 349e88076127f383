"""Figures of a lower bound, and the arms and alternatives that they show."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.bounds.asymptotic import LowerBound
from sightline.bounds.oracle import CoveringProgram, online_allocation, oracle_ids
from sightline.problems.base import TableProblem
from sightline.report.style import new_figure, saved

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Shares of the cost, or of the multipliers, from which arms and alternatives are shown.
_VISIBLE = 1e-6
# Oracle IDS takes (cost / 2)^2 rounds: more cost than this takes minutes.
_LARGEST_COST = 6000.0


def binding(bound: LowerBound) -> NDArray[np.int64]:
    """Alternatives that carry the bound, the heaviest first."""
    order = np.argsort(-bound.multipliers)
    return order[bound.multipliers[order] > _VISIBLE * bound.lower]


def paid_pulls(bound: LowerBound) -> NDArray[np.float64]:
    """Allocation of arms whose cost is visible; 0 for the others and for optimal arms."""
    gaps = bound.problem.gaps
    finite = np.where(np.isfinite(bound.allocation), bound.allocation, 0.0)
    pulls: NDArray[np.float64] = np.where(finite * gaps > _VISIBLE * bound.upper, finite, 0.0)
    return pulls


def check_plane(problem: TableProblem) -> None:
    """Refuse a problem that :func:`bound_figure` cannot draw."""
    if problem.model.contexts is not None:
        raise ValueError("only problems without contexts can be drawn: a cell has one best arm")
    if problem.d != 2:
        raise ValueError(f"only problems in 2 dimensions can be drawn, this one has {problem.d}")


def bound_figure(bound: LowerBound, path: str | PathLike[str] | None = None) -> Figure:
    """Draw arms, cells, theta and the binding alternatives of a problem in the plane."""
    problem = bound.problem
    check_plane(problem)
    figure = new_figure(6.4, 6.0)
    axes = figure.subplots()
    shown = np.vstack([problem.actions, problem.theta, bound.alternatives[binding(bound)]])
    reach = 1.25 * max(np.abs(shown).max(), 1e-300)
    _draw_cells(axes, problem.actions, reach)
    _draw_arms(axes, bound)
    axes.plot(*problem.theta, "k*", markersize=13, label=r"$\theta$")
    for number, j in enumerate(binding(bound)):
        label = r"binding alternatives $\nu$" if number == 0 else None
        axes.plot(*bound.alternatives[j], "kX", markersize=8, markerfacecolor="w", label=label)
    axes.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    axes.set_title(f"{problem.name}: $c^* = {bound.value:.5g}$")
    axes.legend(loc="lower left")
    return saved(figure, path)


def _draw_cells(axes: Axes, actions: NDArray[np.float64], reach: float) -> None:
    """Colour every parameter by its best arm."""
    from matplotlib import colormaps

    grid = np.linspace(-reach, reach, 600)
    parameters = np.stack(np.meshgrid(grid, grid), axis=-1)
    best = (parameters @ actions.T).argmax(axis=-1)
    colours = colormaps["tab10"](best % 10)
    axes.imshow(colours, origin="lower", extent=(-reach, reach, -reach, reach), alpha=0.25)


def _draw_arms(axes: Axes, bound: LowerBound) -> None:
    from matplotlib import colormaps

    pulls = paid_pulls(bound)
    for arm, (x, y) in enumerate(bound.problem.actions):
        text = "free" if np.isinf(bound.allocation[arm]) else f"{pulls[arm]:.3g}"
        axes.plot(x, y, "o", color=colormaps["tab10"](arm % 10), markeredgecolor="k")
        below = arm % 2 == 0  # neighbours are often close
        axes.annotate(
            f"{arm}: {text}",
            (x, y),
            textcoords="offset points",
            xytext=(6, -14 if below else 6),
            fontsize=9,
        )
    axes.plot([], [], "o", color="0.6", markeredgecolor="k", label=r"arm: $\alpha^*$")


def oracle_figure(bound: LowerBound, path: str | PathLike[str] | None = None) -> Figure:
    """Draw the cost of the two oracle strategies over c* beta, which tends to 1, against beta."""
    if bound.witness is not None:
        raise ValueError("c* is infinite: an oracle cannot find out which arm is best")
    if not bound.lower > 0:
        raise ValueError(f"c* is {bound.upper:g}: an oracle has nothing to find out")
    program = CoveringProgram.of(bound)
    levels = np.geomspace(1.0, max(min(1000.0, _LARGEST_COST / bound.value), 2.0), 25)
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    for label, run in (
        ("online convex optimisation", online_allocation(program, levels)),
        ("oracle IDS", oracle_ids(program, levels)),
    ):
        axes.plot(run.beta, run.cost / (bound.value * run.beta), label=label)
    axes.axhline(1.0, color="k", linestyle="--", label="$c^*$")
    axes.set(xscale="log", xlabel=r"evidence $\beta$", ylabel=r"cost / ($c^* \beta$)")
    axes.set_title(bound.problem.name)
    axes.legend()
    return saved(figure, path)
