"""Beyond the paper: pulls per arm against the optimal allocation."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from sightline.bounds.asymptotic import lower_bound
from sightline.experiments.experiment import Experiment
from sightline.paper.far_horizon import SIZES, far_experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import SLOPE_2, problems
from sightline.report.figures import label_ends
from sightline.report.page import Table

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    return {"far": far_experiment(size)}


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    results = outcome.results["far"]
    optimal = lower_bound(problems(SLOPE_2)[SLOPE_2]).allocation
    pulls: pd.DataFrame = results.pulls("all")
    pulls["log_t"] = [math.log(t) for t in pulls.t]
    pulls = pulls[pulls.log_t > 2.0]
    figure = Figure(figsize=(6.4, 3.9), layout="constrained")
    axes = figure.subplots()
    rows = []
    for arm in (1, 2):
        part = pulls[pulls.arm == arm]
        x, share = part.log_t / math.log(10.0), part["mean"] / part.log_t
        error = 2.0 * part.standard_error / part.log_t
        axes.plot(x, share, color=f"C{arm}", label=f"$x_{arm + 1}$ (gap {(0.01, 1.0)[arm - 1]:g})")
        axes.fill_between(
            x,
            (share - error).clip(lower=0.0),
            share + error,
            color=f"C{arm}",
            alpha=0.2,
            linewidth=0,
        )
        axes.axhline(optimal[arm], color=f"C{arm}", linestyle="--", linewidth=1)
        last = part.iloc[-1]
        rows.append(
            (
                f"x{arm + 1}",
                f"{last['mean'] / last.log_t:.3f} ± {last.standard_error / last.log_t:.3f}",
                f"{optimal[arm]:.3f}",
            )
        )
    axes.set(xscale="log", ylim=(0.0, None))
    axes.set(xlabel=r"$\log_{10} n$", ylabel=r"pulls / $\log n$")
    axes.set_title("Pulls of suboptimal arms; dashed: optimal allocation")
    label_ends(axes)
    head = ("arm", "pulls / log n at the last round", "alpha*")
    caption = "Pulls per log n of the suboptimal arms, and what the lower bound asks for"
    frame = pulls.drop(columns="t").assign(log10_t=pulls.log_t / np.log(10.0))
    return Findings(
        figures={"pulls": (caption, figure)},
        tables=(Table(f"{SLOPE_2}, IDS-H", head, tuple(rows)),),
        curves={"pulls": frame},
    )


ITEM = Item(
    name="allocation",
    title="Beyond: pulls per arm against the optimal allocation",
    see="The pulls of the informative arm per log n fall to the dashed line, those of the other "
    "arm to zero: IDS plays the optimal allocation without computing it.",
    formula="(N_x(n)) / (log n) -> alpha*(x)",
    short="Allocation",
    where="The program behind c*",
    about="An optimal policy pulls the second arm o(log n) times and the third, the informative "
    "one, alpha* log n times. The runs are those of far-horizon.",
    sizes=SIZES,
    experiments=_experiments,
    show=_show,
)
