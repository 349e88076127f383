"""Pictures of regret.  Matplotlib is imported on use, so that nothing else pays for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.report.statistics import Curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["horizon_figure"]

_LOG_10 = math.log(10.0)


def horizon_figure(
    curves: Mapping[str, Curve], far: Curve, constant: float, title: str, path: Path
) -> None:
    """Draw regret beside the lower bound, and its ratio to the bound at extreme horizons.

    Parameters
    ----------
    curves : mapping
        Label to regret curve, for the left panel.
    far : Curve
        Regret to an extreme horizon, for the right panel.
    constant : float
        c* sigma^2: no consistent policy has less regret than this times log n, asymptotically.
    title : str
        Name of the problem.
    path : Path
        File to write; its suffix decides the format.
    """
    from matplotlib.figure import Figure  # no pyplot: no global state, no display needed

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_regret(left, curves, constant)
    _draw_ratio(right, far, constant)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)


def _draw_regret(axes: Axes, curves: Mapping[str, Curve], constant: float) -> None:
    for label, curve in curves.items():
        t = [math.exp(u) for u in curve.log_t]
        (line,) = axes.plot(t, curve.mean, label=label)
        low, high = (curve.mean + sign * 2.0 * curve.standard_error for sign in (-1, 1))
        axes.fill_between(t, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    first = next(iter(curves.values()))
    t = [math.exp(u) for u in first.log_t]
    axes.plot(t, constant * first.log_t, "k--", label=r"$c^*\sigma^2\,\log n$")
    axes.set_xscale("log")
    axes.set_xlabel("round n")
    axes.set_ylabel("regret (mean, 2 standard errors)")
    axes.legend()


def _draw_ratio(axes: Axes, far: Curve, constant: float) -> None:
    late = far.log_t > _LOG_10  # the ratio says nothing about the first rounds
    log_t = far.log_t[late]
    ratio = far.mean[late] / (constant * log_t)
    error = 2.0 * far.standard_error[late] / (constant * log_t)
    exponent = log_t / _LOG_10
    (line,) = axes.plot(exponent, ratio, label="IDS")
    axes.fill_between(
        exponent, ratio - error, ratio + error, color=line.get_color(), alpha=0.2, linewidth=0
    )
    axes.axhline(1.0, color="k", linestyle="--", label="lower bound")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(r"$\log_{10} n$")
    axes.set_ylabel(r"$R_n\,/\,(c^*\sigma^2\,\log n)$")
    axes.legend()
