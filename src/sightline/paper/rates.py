"""Beyond the paper: how regret grows with the horizon, the gap and the dimension."""

from __future__ import annotations

import math

import numpy as np

from sightline.core.linalg import Array, Ints
from sightline.experiments.experiment import Experiment
from sightline.paper.item import Findings, Item, ItemResults, Size
from sightline.paper.settings import IDS_H, VARIANCE, error_text, experiment, panels
from sightline.policies.base import Policy
from sightline.policies.catalogue import PrimalDual
from sightline.problems import LinearBandit
from sightline.report.figures import label_ends
from sightline.report.page import Table
from sightline.report.statistics import log_slopes, mean_and_error
from sightline.report.style import BOUND

_RESAMPLES = 1000


def _bandit(actions: object, theta: object, name: str) -> LinearBandit:
    return LinearBandit(np.array(actions), np.array(theta), math.sqrt(VARIANCE), name=name)


def _bootstrap(count: int) -> Ints:
    """Draw indices of runs for bootstrap samples, shape (resamples, count)."""
    return np.random.default_rng(0).integers(count, size=(_RESAMPLES, count))


# --- worst-case and gap-dependent rates -----------------------------------------------------------

_GAPS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
_RESOLVED = 0.03  # below, regret at 10^5 rounds is limited by n and falls with the gap


def _gap_name(gap: float) -> str:
    return f"gap {gap:g}"


def _two_arms(size: Size) -> dict[str, Experiment]:
    worlds = {_gap_name(gap): _bandit(np.eye(2), [0.5, 0.5 - gap], _gap_name(gap)) for gap in _GAPS}
    return {"regret": experiment(size, worlds, {"IDS-H": IDS_H})}


def _resampled(outcome: ItemResults) -> Array:
    """Mean regret of bootstrap samples of the runs, shape (resamples, gaps, checkpoints)."""
    results = outcome.results["regret"]
    regret = np.array([results.regret(_gap_name(gap), "IDS-H") for gap in _GAPS])
    return np.array([regret[:, rows].mean(axis=1) for rows in _bootstrap(regret.shape[1])])


def _log_rounds(outcome: ItemResults) -> Array:
    return np.log(np.array(outcome.results["regret"].grid.rounds, dtype=np.float64))


def worst_exponents(outcome: ItemResults) -> Array:
    """Growth of the largest regret over all gaps as a power of n, from round 100 on."""
    log_t = _log_rounds(outcome)
    late = log_t >= math.log(100.0)
    worst = _resampled(outcome).max(axis=1)
    return log_slopes(log_t[late], np.log(worst[:, late]))


def worst_limit(outcome: ItemResults) -> float:
    """Exponent of sqrt(n) log n over the same rounds."""
    log_t = _log_rounds(outcome)
    log_t = log_t[log_t >= math.log(100.0)]
    return float(log_slopes(log_t, 0.5 * log_t + np.log(log_t)))


def gap_exponents(outcome: ItemResults) -> Array:
    """Growth of the last regret as a power of 1/Delta_min, over gaps that n rounds can resolve."""
    resolved = np.array(_GAPS) >= _RESOLVED
    last = _resampled(outcome)[:, resolved, -1]
    return log_slopes(-np.log(np.array(_GAPS)[resolved]), np.log(last))


def log_exponents(outcome: ItemResults) -> Array:
    """Growth of regret at the largest gap as a power of log n, over the last two decades."""
    log_t = _log_rounds(outcome)
    late = log_t >= log_t[-1] - math.log(100.0) - 1e-9
    regret = _resampled(outcome)[:, _GAPS.index(max(_GAPS))]
    return log_slopes(np.log(log_t[late]), np.log(regret[:, late]))


def _show_rates(outcome: ItemResults) -> Findings:
    results = outcome.results["regret"]
    figure, (left, right) = panels(11, 4.0, 2)
    t = np.array(results.grid.rounds, dtype=float)
    means = np.array([results.regret(_gap_name(e), "IDS-H").mean(axis=0) for e in _GAPS])
    for gap, mean in zip(_GAPS, means, strict=True):
        left.plot(t, mean, label=rf"$\Delta$ = {gap:g}")
    left.plot(t, means.max(axis=0), color=BOUND, linewidth=4, alpha=0.25, label="largest")
    rate = 0.1 * np.sqrt(t) * np.log(t)
    left.plot(t, rate, "--", color=BOUND, label=r"$\propto \sqrt{n}\,\log n$")
    left.set(xscale="log", yscale="log", xlabel="round n", ylabel="mean regret", xlim=(10, None))
    left.set_ylim(bottom=1.0)
    label_ends(left)
    gaps = np.array(_GAPS)
    right.plot(1.0 / gaps[::-1], means[::-1, -1], "o-", label="IDS-H", clip_on=False)
    rate = means[-1, -1] * gaps[-1] / gaps[::-1]
    right.plot(1.0 / gaps[::-1], rate, "--", color=BOUND, label=r"$\propto 1/\Delta_{\min}$")
    right.set(xscale="log", yscale="log", xlabel=r"$1/\Delta_{\min}$", ylabel="regret at the end")
    label_ends(right)
    measured = [
        ", ".join(f"{value:.2f}" for value in np.quantile(rate(outcome), (0.01, 0.5, 0.99)))
        for rate in (worst_exponents, gap_exponents, log_exponents)
    ]
    return Findings(
        figures={"rates": ("Regret against n and against the smallest gap", figure)},
        curves={"regret": results.summary("all")},
        remarks=(
            f"Exponents (1 %, median, 99 % of {_RESAMPLES} bootstrap samples of the runs): worst "
            f"regret in n {measured[0]}; last regret in 1/Delta {measured[1]}; regret in log n at "
            f"the largest gap {measured[2]}.",
        ),
    )


RATES = Item(
    name="rates",
    title="Beyond: worst-case and gap-dependent rates",
    see="Left, no curve grows faster than the dashed one in the long run; right, regret is "
    "proportional to 1/Delta_min as long as n suffices to resolve the gap.",
    formula="R_n = O(sqrt(n) log n)",
    short="Rates",
    where="Theorems on worst-case and gap-dependent regret",
    about="Two orthogonal arms with gaps from 0.0001 to 0.3, noise variance 0.1. The largest mean "
    "regret over the gaps is compared with sqrt(n) log n, the last regret with 1/Delta_min.",
    sizes={"quick": Size(10**5, 80), "paper": Size(10**6, 100)},
    experiments=_two_arms,
    show=_show_rates,
)


# --- dependence on the dimension ------------------------------------------------------------------

_DIMENSIONS = (2, 4, 8, 16)
_BASIS_GAPS = (0.05, 0.1, 0.2, 0.4)


def _basis_name(d: int, gap: float) -> str:
    return f"d = {d}, gap {gap:g}"


def _bases(size: Size) -> dict[str, Experiment]:
    worlds = {
        _basis_name(d, gap): _bandit(np.eye(d), gap * np.eye(d)[0], f"basis-{d}-{gap:g}")
        for d in _DIMENSIONS
        for gap in _BASIS_GAPS
    }
    return {"regret": experiment(size, worlds, {"IDS-H": IDS_H})}


def _basis_finals(outcome: ItemResults) -> Array:
    """Last regret of all runs, shape (dimensions, gaps, runs)."""
    results = outcome.results["regret"]
    return np.array(
        [
            [results.regret(_basis_name(d, gap), "IDS-H")[:, -1] for gap in _BASIS_GAPS]
            for d in _DIMENSIONS
        ]
    )


def dimension_exponents(outcome: ItemResults) -> Array:
    """Growth of the worst mean regret as a power of d, on bootstrap samples of the runs."""
    finals = _basis_finals(outcome)
    worst = [finals[:, :, rows].mean(axis=2).max(axis=1) for rows in _bootstrap(finals.shape[2])]
    return log_slopes(np.log(np.array(_DIMENSIONS, dtype=float)), np.log(np.array(worst)))


def _show_dimension(outcome: ItemResults) -> Findings:
    means = _basis_finals(outcome).mean(axis=2)
    figure, axes = panels(6, 3.8)
    for gap, row in zip(_BASIS_GAPS, means.T, strict=True):
        axes.plot(_DIMENSIONS, row, "o-", label=rf"$\Delta$ = {gap:g}")
    line = means[0].max() * np.array(_DIMENSIONS) / _DIMENSIONS[0]
    axes.plot(_DIMENSIONS, line, "--", color=BOUND, label=r"$\propto d$")
    axes.set(xscale="log", yscale="log", xlabel="d", ylabel="mean regret")
    label_ends(axes)
    low, middle, high = np.quantile(dimension_exponents(outcome), (0.01, 0.5, 0.99))
    return Findings(
        figures={"dimension": ("Last regret against the dimension", figure)},
        curves={"regret": outcome.results["regret"].summary("all")},
        remarks=(f"Exponent of d: {middle:.2f} ({low:.2f} to {high:.2f}).",),
    )


DIMENSION = Item(
    name="dimension",
    title="Beyond: dependence on the dimension",
    see="The largest regret over all gaps grows no faster than the dimension.",
    short="Dimension",
    where="Theorems on worst-case and gap-dependent regret",
    about="The d unit vectors as arms; one of them is better than all others by a gap; noise "
    "variance 0.1. The worst-case bound is of order d, the gap-dependent one of order d^3; the "
    "largest regret over the gaps is compared with d.",
    sizes={"quick": Size(10**4, 40), "paper": Size(10**4, 200)},
    experiments=_bases,
    show=_show_dimension,
)


# --- the worst case of the primal-dual rule -------------------------------------------------------

_HORIZONS = (10**2, 10**3, 10**4, 10**5)
_RANDOMISED: dict[str, Policy] = {"IDS-H": IDS_H, "primal-dual": PrimalDual(gaps="value")}


def _hard_name(horizon: int) -> str:
    return f"n = {horizon}"


def _hard(horizon: int) -> LinearBandit:
    """End of optimism with epsilon = 1/n and a second arm at a distance of 1/sqrt(n)."""
    actions = [[1.0, 0.0], [1.0 - 1.0 / horizon, 1.0 / math.sqrt(horizon)], [0.0, 1.0]]
    return _bandit(actions, [1.0, 0.0], f"hard-{horizon}")


def _hard_problems(size: Size) -> dict[str, Experiment]:
    worlds = {_hard_name(n): _hard(n) for n in _HORIZONS}
    return {"regret": experiment(size, worlds, _RANDOMISED, checkpoints=_HORIZONS)}


def worst_case_exponents(outcome: ItemResults, policy: str) -> Array:
    """Exponent of regret in n, run by run, on problems that change with n."""
    results = outcome.results["regret"]
    rounds = results.grid.rounds
    finals = np.array([results.regret(_hard_name(n), policy)[:, i] for i, n in enumerate(rounds)])
    return log_slopes(np.log(np.array(rounds, dtype=float)), np.log(np.maximum(finals, 1e-3)).T)


def _show_worst_case(outcome: ItemResults) -> Findings:
    results = outcome.results["regret"]
    rows = []
    for policy in _RANDOMISED:
        cells = []
        for i, n in enumerate(_HORIZONS):
            mean, error = mean_and_error(results.regret(_hard_name(n), policy)[:, i])
            cells.append(error_text(float(mean), float(error)))
        rows.append((policy, *cells))
    head = ("policy", *(f"n = {n:,}" for n in _HORIZONS))
    title = f"Regret after n rounds of the problem for n, {outcome.size.replications} runs"
    return Findings(tables=(Table(title, head, tuple(rows)),))


WORST_CASE = Item(
    name="worst-case",
    title="Beyond: the price of information, in the worst case",
    see="The primal-dual rule pays in nearly every round; the regret of IDS stays of the order of "
    "the square root of n.",
    short="Worst case",
    where="Section on the primal-dual approach",
    about="A different problem for every n: epsilon = 1/n, and the second arm so close to the "
    "first one that the third would need more than n rounds to separate them, at a cost of 1 "
    "each. The primal-dual rule as the paper states it, which plays the arm of least gap estimate "
    "per information, pays that price in nearly every round. IDS mixes in the best arm and does "
    "not. Noise variance 0.1.",
    sizes={"quick": Size(10**5, 20), "paper": Size(10**5, 100)},
    experiments=_hard_problems,
    show=_show_worst_case,
)
