"""Draw the pictures of the documentation: python docs/pictures.py (a minute or two).

regret.svg  regret of IDS, Stakes and LinUCB against the lower bound, to 10^1000 rounds
cells.png   arms, cells and the binding alternative of end of optimism
watch.html  IDS at work, round by round
scoreboard.svg  all policies by their regret over that of the best, from the recorded runs
session.png the experiment of examples/adaptive_experiment.py at its end

It prints the pulls per arm and the table of the scoreboard, which the pages contain.
"""

from __future__ import annotations

import runpy
import tempfile
from pathlib import Path

import matplotlib

import sightline as sl
from sightline.report.bound import bound_figure
from sightline.report.figures import growth_figure
from sightline.report.watch import write_watch_page

ASSETS = Path(__file__).parent / "assets"
PROBLEM = sl.problems.end_of_optimism(epsilon=0.01, slope=2.0, noise_variance=0.1)
NEAR, FAR = 10**6, 10**1000
REPLICATIONS = 50
EXPONENTS = [*range(3, 20), *range(20, 100, 10), *range(100, 1001, 50)]


def regret_picture(path: Path) -> None:
    policies = {"IDS": sl.IDS(), "Stakes": sl.Stakes(), "LinUCB": sl.LinUCB()}
    near = sl.run(sl.Experiment([PROBLEM], policies, NEAR, REPLICATIONS))
    print(near.summary([10**4, 10**5, NEAR]).to_string(index=False))
    print(near.pulls().to_string(index=False))
    curves = {"LinUCB": near.curves(PROBLEM.name)["LinUCB"]}
    for name, horizon in {"IDS": FAR, "Stakes": 10**300}.items():
        marks = [10**e for e in EXPONENTS if 10**e <= horizon]
        policy = {name: policies[name]}
        far = sl.run(sl.Experiment([PROBLEM], policy, horizon, REPLICATIONS, checkpoints=marks))
        print(far.summary().drop(columns="t").to_string(index=False))
        curves[name] = far.curves(PROBLEM.name)[name]
    curves = {name: curves[name] for name in ("IDS", "LinUCB", "Stakes")}
    growth_figure(curves, sl.lower_bound(PROBLEM).value).savefig(path, metadata={"Date": None})


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
