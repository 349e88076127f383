"""Make the pictures of the documentation: python docs/pictures.py (a minute or two).

regret.svg  regret of IDS and LinUCB against the lower bound, and IDS to 10^1000 rounds
cells.png   arms, cells and the binding alternative of end of optimism
watch.html  IDS at work, round by round
scoreboard.svg  all policies by their regret over that of the best, as they were measured
session.png where the experiment of examples/adaptive_experiment.py stands at its end

It prints the pulls per arm and the table of the scoreboard that the pages quote.
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import sightline as sl
from sightline.report.bound import bound_figure
from sightline.report.watch import write_watch_page

ASSETS = Path(__file__).parent / "assets"
PROBLEM = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
NEAR, FAR = 10**6, 10**1000
REPLICATIONS = 50


def regret_picture(path: Path) -> None:
    policies = {"IDS": sl.IDS(), "LinUCB": sl.LinUCB()}
    near = sl.run(sl.Experiment([PROBLEM], policies, NEAR, REPLICATIONS))
    far = sl.run(sl.Experiment([PROBLEM], {"IDS": sl.IDS()}, FAR, REPLICATIONS))
    print(near.summary([10**4, 10**5, NEAR]).to_string(index=False))
    print(near.pulls().to_string(index=False))
    print(far.summary().to_string(index=False))
    constant = sl.lower_bound(PROBLEM).value
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, curve in near.curves(PROBLEM.name).items():
        _band(left, np.exp(curve.log_t), curve.mean, curve.standard_error, name)
    log_t = near.curves(PROBLEM.name)["IDS"].log_t
    left.plot(np.exp(log_t), constant * log_t, "k--", label="lower bound c* log n")
    left.set(xscale="log", xlabel="rounds n", ylabel="regret", title="IDS and LinUCB")
    curve = far.curves(PROBLEM.name)["IDS"]
    late = curve.log_t > np.log(100.0)
    scale = constant * curve.log_t[late]
    decades = curve.log_t[late] / np.log(10.0)
    _band(right, decades, curve.mean[late] / scale, curve.standard_error[late] / scale, "IDS")
    right.axhline(1.0, color="k", linestyle="--", label="lower bound")
    right.set(xscale="log", xlabel="log10 n", ylabel="regret / (c* log n)", ylim=(0, None))
    right.set_title("IDS to n = 10^1000")
    right.set_xticks([3, 10, 30, 100, 300, 1000], labels=["3", "10", "30", "100", "300", "1000"])
    for axes in (left, right):
        axes.legend()
    figure.savefig(path, metadata={"Date": None})


def session_picture(path: Path) -> None:
    example = runpy.run_path(str(Path(__file__).parents[1] / "examples/adaptive_experiment.py"))
    with tempfile.TemporaryDirectory() as directory:
        example["main"](Path(directory))
        with sl.Session.open(Path(directory) / "experiment.db") as session:
            session.plot().savefig(path, dpi=90)


def scoreboard_picture(path: Path) -> None:
    board = sl.scoreboard()
    board.plot().savefig(path, metadata={"Date": None})
    marks = [name for name in board.table.columns if name.startswith("10^")]
    print(f"| policy | geometric mean | worst | {' | '.join(marks)} | runs |")
    print("|---" * (4 + len(marks)) + "|")
    for row in board.table.to_dict("records"):
        numbers = [row["worst"], *(row[mark] for mark in marks)]
        cells = ["" if value != value else f"{value:.3g}" for value in numbers]
        score = f"{row['geometric_mean']:.2f} ± {row['standard_error']:.2f}"
        print(f"| {row['policy']} | {score} | {' | '.join(cells)} | {row['replications']} |")


def _band(axes: Any, x: Any, mean: Any, error: Any, label: str) -> None:
    (line,) = axes.plot(x, mean, label=label)
    colour = line.get_color()
    axes.fill_between(x, mean - 2 * error, mean + 2 * error, color=colour, alpha=0.2, linewidth=0)


def main() -> None:
    ASSETS.mkdir(exist_ok=True)
    matplotlib.rcParams.update({"svg.hashsalt": "sightline", "svg.fonttype": "none"})
    bound_figure(sl.lower_bound(PROBLEM)).savefig(ASSETS / "cells.png", dpi=90)
    write_watch_page(PROBLEM, sl.IDS(), ASSETS / "watch.html", rounds=10_000)
    session_picture(ASSETS / "session.png")
    scoreboard_picture(ASSETS / "scoreboard.svg")
    regret_picture(ASSETS / "regret.svg")


if __name__ == "__main__":
    main()
