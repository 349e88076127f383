"""Beyond the paper: the information ratio and the total information gain against their bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from sightline.engine.trajectory import information_ratios
from sightline.paper.item import Calculation, Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, SLOPE_2, problems
from sightline.report.figures import label_ends
from sightline.report.style import BOUND

__all__ = ["ITEM", "follow"]

_EXPONENTS = [*range(1, 10), *range(10, 100, 5), *range(100, 1001, 50)]


def follow(exponent: int, seed: int) -> dict[str, Any]:
    """Largest Psi_s so far, and gamma_n in units of the noise variance, at powers of ten."""
    problem = problems(SLOPE_2)[SLOPE_2]
    run = information_ratios(problem, IDS_H, 10**exponent, seed)
    exponents = [e for e in _EXPONENTS if e <= exponent]
    counts = [int((run.log_t <= e * math.log(10.0)).sum()) for e in exponents]
    gamma = np.cumsum(run.gain) / problem.noise_std**2
    return {
        "exponents": exponents,
        "largest_ratio": [float(run.ratio[:count].max()) for count in counts],
        "last_ratio": [float(run.ratio[count - 1]) for count in counts],
        "gamma": [float(gamma[count - 1]) for count in counts],
    }


def _calculations(size: Size) -> dict[str, Calculation]:
    exponent = round(math.log10(size.horizon))
    return {
        f"seed{seed}": Calculation(
            follow, {"exponent": exponent, "seed": seed}, {"exponent": exponent // 10}, 0.1
        )
        for seed in range(size.replications)
    }


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    runs = list(outcome.values.values())
    exponents = np.array(runs[0]["exponents"])
    log_n = exponents * math.log(10.0)
    gamma = np.array([run["gamma"] for run in runs])
    figure = Figure(figsize=(11, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    for i, run in enumerate(runs):
        labels = ("_", "_") if i else (r"largest $\Psi_s$", r"last $\Psi_s$")
        left.plot(exponents, run["largest_ratio"], "-", color="C0", alpha=0.5, label=labels[0])
        left.plot(exponents, run["last_ratio"], "-", color="C1", alpha=0.5, label=labels[1])
    left.axhline(2.0, color=BOUND, linestyle="--", label="bound: 2")
    left.set(xscale="log", yscale="log", xlabel=r"$\log_{10} n$", ylabel="information ratio")
    label_ends(left)
    mean, error = gamma.mean(axis=0), gamma.std(axis=0, ddof=1) / math.sqrt(len(runs))
    right.plot(exponents, mean / log_n, label="IDS-H")
    right.fill_between(
        exponents,
        np.maximum(mean - 2 * error, 0.0) / log_n,
        (mean + 2 * error) / log_n,
        alpha=0.2,
        linewidth=0,
    )
    right.axhline(1.0, color=BOUND, linestyle="--", label="bound: 1")
    right.set(xscale="log", xlabel=r"$\log_{10} n$", ylim=(0.0, None))
    right.set_ylabel(r"information gained, $\gamma_n / (\sigma^2 \log n)$")
    label_ends(right)
    caption = "Information ratio and total information gain of IDS-H along its runs"
    frame = pd.DataFrame({"log10_n": exponents, "gamma": mean, "standard_error": error})
    return Findings(figures={"information": (caption, figure)}, curves={"gamma": frame})


ITEM = Item(
    name="information",
    title="Beyond: information ratio and total information gain",
    see="Left, the information ratio stays below its bound; right, the information gained per log"
    " n falls towards its bound.",
    formula="Psi_s(mu_s) <= 2",
    short="Information",
    where="Proofs of the worst-case and asymptotic theorems",
    about="Psi_s(mu_s) is at most 2, which the worst-case proof uses; gamma_n, the sum of the "
    "gains of the arms played, is at most log n + o(log n) in units of the noise variance. End of "
    "optimism, slope 2.",
    sizes={"quick": Size(10**100, 4), "paper": Size(10**1000, 20)},
    calculations=_calculations,
    show=_show,
)
