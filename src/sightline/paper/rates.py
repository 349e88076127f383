"""Beyond the paper: its three regret bounds, seen as slopes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, Outcome, Size
from sightline.paper.settings import IDS_H, VARIANCE, curve_frame, marks
from sightline.problems import LinearBandit
from sightline.report.figures import label_ends
from sightline.report.results import Results
from sightline.report.style import BOUND

__all__ = ["GAPS", "ITEM", "gap_exponents", "log_exponents", "worst_exponents", "worst_limit"]

Array = NDArray[np.float64]
GAPS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_RESOLVED = 0.03  # below, regret at 10^5 rounds is limited by n and falls with the gap
_RESAMPLES = 1000


def _name(gap: float) -> str:
    return f"gap {gap:g}"


def _experiments(size: Size) -> dict[str, Experiment]:
    worlds = {
        _name(gap): LinearBandit(np.eye(2), [0.5, 0.5 - gap], math.sqrt(VARIANCE), name=_name(gap))
        for gap in GAPS
    }
    rounds = marks(size.horizon)
    policies = {"IDS-H": IDS_H}
    return {
        "regret": Experiment(worlds, policies, size.horizon, size.replications, checkpoints=rounds)
    }


def _resampled(results: Results) -> Array:
    """Mean regret of bootstrap samples of the runs, shape (resamples, gaps, checkpoints)."""
    regret = np.array([results.regret(_name(gap), "IDS-H") for gap in GAPS])
    count = regret.shape[1]
    rows = np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))
    return np.array([regret[:, row].mean(axis=1) for row in rows])


def _slopes(x: Array, y: Array) -> Array:
    centred = x - x.mean()
    slopes: Array = y @ centred / (centred @ centred)
    return slopes


def worst_exponents(results: Results) -> Array:
    """Growth of the largest regret over all gaps, as a power of n, from round 100 on."""
    log_t = np.log(np.array(results.plan.rounds, dtype=float))
    late = log_t >= math.log(100.0)
    worst = _resampled(results).max(axis=1)
    return _slopes(log_t[late], np.log(worst[:, late]))


def worst_limit(results: Results) -> float:
    """Exponent of sqrt(n) log n over the same rounds."""
    log_t = np.log(np.array(results.plan.rounds, dtype=float))
    log_t = log_t[log_t >= math.log(100.0)]
    return float(_slopes(log_t, 0.5 * log_t + np.log(log_t)))


def gap_exponents(results: Results) -> Array:
    """Growth of the last regret as a power of 1/Delta_min, over gaps that n rounds can resolve."""
    resolved = np.array(GAPS) >= _RESOLVED
    last = _resampled(results)[:, resolved, -1]
    return _slopes(-np.log(np.array(GAPS)[resolved]), np.log(last))


def log_exponents(results: Results) -> Array:
    """Growth of regret at the largest gap as a power of log n, over the last two decades."""
    log_t = np.log(np.array(results.plan.rounds, dtype=float))
    late = log_t >= log_t[-1] - math.log(100.0) - 1e-9
    regret = _resampled(results)[:, GAPS.index(max(GAPS))]
    return _slopes(np.log(log_t[late]), np.log(regret[:, late]))


def _show(outcome: Outcome) -> Findings:
    from matplotlib.figure import Figure

    results = outcome.results["regret"]
    figure = Figure(figsize=(11, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    t = np.array(results.plan.rounds, dtype=float)
    means = np.array([results.regret(_name(e), "IDS-H").mean(axis=0) for e in GAPS])
    for gap, mean in zip(GAPS, means, strict=True):
        left.plot(t, mean, label=rf"$\Delta$ = {gap:g}")
    left.plot(t, means.max(axis=0), color=BOUND, linewidth=4, alpha=0.25, label="largest")
    rate = 0.1 * np.sqrt(t) * np.log(t)
    left.plot(t, rate, "--", color=BOUND, label=r"$\propto \sqrt{n}\,\log n$")
    left.set(xscale="log", yscale="log", xlabel="round n", ylabel="mean regret", xlim=(10, None))
    left.set_ylim(bottom=1.0)
    label_ends(left)
    gaps = np.array(GAPS)
    right.plot(1.0 / gaps[::-1], means[::-1, -1], "o-", label="IDS-H", clip_on=False)
    rate = means[-1, -1] * gaps[-1] / gaps[::-1]
    right.plot(1.0 / gaps[::-1], rate, "--", color=BOUND, label=r"$\propto 1/\Delta_{\min}$")
    right.set(xscale="log", yscale="log", xlabel=r"$1/\Delta_{\min}$", ylabel="regret at the end")
    label_ends(right)
    exponents = (worst_exponents, gap_exponents, log_exponents)
    worst, small, log = (np.quantile(f(results), (0.01, 0.5, 0.99)) for f in exponents)
    return Findings(
        figures={"rates": ("Regret against n and against the smallest gap", figure)},
        curves={"regret": curve_frame(results)},
        remarks=(
            f"Exponents (1 %, median, 99 % of {_RESAMPLES} bootstrap samples of the runs): worst "
            f"regret in n {worst[0]:.2f}, {worst[1]:.2f}, {worst[2]:.2f}; last regret in 1/Delta "
            f"{small[0]:.2f}, {small[1]:.2f}, {small[2]:.2f}; regret in log n at the largest gap "
            f"{log[0]:.2f}, {log[1]:.2f}, {log[2]:.2f}.",
        ),
    )


ITEM = Item(
    name="rates",
    title="Beyond: worst-case and gap-dependent rates",
    see="Left, no curve rises faster than the dashed one in the long run; right, regret is "
    "proportional to 1/Delta_min while n suffices to resolve the gap.",
    formula="R_n = O(sqrt(n) log n)",
    short="Rates",
    where="Theorems on worst-case and gap-dependent regret",
    about="Two orthogonal arms with gaps from 0.0001 to 0.3, noise variance 0.1. The largest mean "
    "regret over the gaps is held against sqrt(n) log n, the last regret against 1/Delta_min.",
    sizes={"quick": Size(10**5, 80), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=_show,
)
