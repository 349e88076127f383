"""Beyond the paper: information ratio and total information gain against their bounds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from sightline.core.linalg import Array
from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.settings import IDS_H, SLOPE_2, VARIANCE, c_star, panels, problems
from sightline.problems import end_of_optimism
from sightline.report.figures import label_ends
from sightline.report.style import BOUND
from sightline.simulation.trace import information_ratios

_EPSILON = 0.2  # smallest gap with which runs reach the asymptotic regime of the proofs
_HORIZON = 10**12
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
        "price": [_recent(run.ratio / (4.0 * run.error), count) for count in counts],
        "greed": [_recent(run.gap / run.error, count) for count in counts],
    }


def _recent(values: Array, count: int) -> float:
    """Mean over the last tenth of the first ``count`` rounds."""
    return float(values[count - max(1, count // 10) : count].mean())


def bounds_of_proofs(horizon: int, seed: int) -> dict[str, float]:
    """Tightness of the bounds of the proofs on a run at unit variance.

    Every value is a quantity over its bound, the largest over all rounds to which the bound
    applies; ``confidence`` is the largest log(1/delta) at which beta_{s, 1/delta} does not cover
    theta.
    """
    problem = end_of_optimism(_EPSILON, 2.0, 1.0)
    run = information_ratios(problem, IDS_H, horizon, seed)
    d, least = problem.d, _EPSILON
    covered = run.distance <= run.beta
    ratio = run.ratio * least / (4.0 * run.error * (8 * d + 9))
    asymptotic = (2.0 * run.error <= run.next_gap) & np.isfinite(run.next_gap)
    asymptotic &= np.isfinite(run.other_gain)
    gain = least**2 / (8.0 * (8 * d + 9)) / run.other_gain[asymptotic]
    steps, log_det = len(run.ratio), run.log_det[-1]
    levels = horizon * math.log(horizon), steps**2
    beta, local = ((math.sqrt(2.0 * math.log(x) + log_det) + 1.0) ** 2 for x in levels)
    total = 2.0 * (beta + math.sqrt(beta) + local) * d * math.log(steps)
    excess = np.maximum(np.sqrt(run.distance) - 1.0, 0.0) ** 2 - run.log_det
    return {
        "ratio": float(ratio[covered].max()),
        "gain": float(gain.max()) if len(gain) else 0.0,
        "applied": int(asymptotic.sum()),
        "total": float(run.gain.sum() / total),
        "confidence": float(0.5 * excess.max()),
    }


def _calculations(size: Size) -> dict[str, Calculation]:
    exponent = round(math.log10(size.horizon))
    along = {
        f"seed{seed}": Calculation(
            follow, {"exponent": exponent, "seed": seed}, {"exponent": exponent // 10}, 0.1
        )
        for seed in range(size.replications)
    }
    proofs = {
        f"proofs{seed}": Calculation(bounds_of_proofs, {"horizon": _HORIZON, "seed": seed})
        for seed in range(size.many)
    }
    return along | proofs


def _show(outcome: ItemResults) -> Findings:
    runs = outcome.runs("seed")
    exponents = np.array(runs[0]["exponents"])
    log_n = exponents * math.log(10.0)
    gamma = np.array([run["gamma"] for run in runs])
    figure, (left, right, limits) = panels(15, 3.8, 3)
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
    # Psi_s is in units of the noise variance, c* is not.
    for name, limit, label in (
        ("price", c_star(SLOPE_2, 1) / VARIANCE, r"$\sigma^2 \Psi_s / (4 \delta_s c^*)$"),
        ("greed", 2.0, r"$\hat\Delta_s(\mu_s) / (2 \delta_s)$"),
    ):
        limits.plot(exponents, np.mean([run[name] for run in runs], axis=0) / limit, label=label)
    limits.axhline(1.0, color=BOUND, linestyle="--", label="limit: 1")
    limits.set(xscale="log", xlabel=r"$\log_{10} n$", ylabel="over its limit")
    label_ends(limits)
    caption = (
        "Information ratio and total information gain of IDS-H along its runs, and the limits "
        "that make it a primal-dual method"
    )
    frame = pd.DataFrame({"log10_n": exponents, "gamma": mean, "standard_error": error})
    return Findings(figures={"information": (caption, figure)}, curves={"gamma": frame})


ITEM = Item(
    name="information",
    title="Beyond: information ratio and total information gain",
    see="The information ratio stays below its bound, the information gain per log n falls to "
    "its bound, and both limits that make IDS a primal-dual method are approached.",
    formula="Psi_s(mu_s) <= 2",
    short="Information",
    where="Proofs of the worst-case and asymptotic theorems",
    about="Psi_s(mu_s) is at most 2, which the worst-case proof uses; gamma_n, the sum of the "
    "gains of the arms played, is at most log n + o(log n) in units of the noise variance; and "
    "sigma^2 Psi_s / (4 delta_s) tends to c*, Delta-hat_s(mu_s) / delta_s to 2. End of optimism, "
    "slope 2. "
    f"The bounds of the proofs with their constants are checked at unit variance, epsilon = "
    f"{_EPSILON}, over 10^12 rounds.",
    sizes={"quick": Size(10**300, 4, many=60), "paper": Size(10**1000, 20, many=200)},
    calculations=_calculations,
    show=_show,
)
