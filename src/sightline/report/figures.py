"""Figures of regret.  Matplotlib is imported on use, because importing it takes long."""

from __future__ import annotations

import math
from collections.abc import Mapping
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.report.statistics import Curve
from sightline.validation import file_path, integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_format", "ratio_figure", "regret_figure"]

_LOG_10 = math.log(10.0)
_LARGEST_LOG = 700.0  # beyond, t does not fit a float, and its axis is labelled by log10 t
_EARLY = 10**4


def check_format(path: str | PathLike[str]) -> None:
    """Refuse a file whose suffix is no format of figures; without one, matplotlib adds it."""
    from matplotlib.backend_bases import FigureCanvasBase

    kind = file_path("path", path).suffix.lower().removeprefix(".")
    known = sorted(FigureCanvasBase.get_supported_filetypes())
    if kind and kind not in known:
        raise ValueError(f"{path}: the format of a figure must be one of {', '.join(known)}")


def regret_figure(
    panels: Mapping[str, Mapping[str, Curve]],
    bounds: Mapping[str, float],
    early: int | None = None,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw regret in the style of the paper: early rounds linear, all rounds logarithmic.

    Parameters
    ----------
    panels : mapping
        Problem to label to regret curve; one row of two panels each.
    bounds : mapping
        c* sigma^2 of problems, for the reference line c* sigma^2 log n.
    early : int, optional
        Last round of the linear panels; by default n^(2/3), at most 10^4.
    path : path, optional
        File to write; its suffix decides the format.
    """
    from matplotlib.figure import Figure  # no pyplot: no global state, no display needed

    figure = Figure(figsize=(11, 3.8 * len(panels)), layout="constrained")
    grid = figure.subplots(len(panels), 2, squeeze=False)
    for (problem, curves), (left, right) in zip(panels.items(), grid, strict=True):
        constant = bounds.get(problem)
        log_last = max((float(curve.log_t[-1]) for curve in curves.values()), default=0.0)
        log_early = min(2.0 / 3.0 * log_last, math.log(_EARLY))
        if early is not None:
            log_early = math.log(integer("early", early, at_least=1))
        _draw_regret(left, _until(curves, log_early), constant, linear=True)
        _draw_regret(right, curves, constant)
        left.set_title(f"{problem}: early rounds")
        right.set_title(problem)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _until(curves: Mapping[str, Curve], log_end: float) -> dict[str, Curve]:
    """First part of curves; of each at least two points."""
    parts = {}
    for label, curve in curves.items():
        count = max(2, int((curve.log_t <= log_end + 1e-9).sum()))
        parts[label] = Curve(*(values[:count] for values in curve))
    return parts


def ratio_figure(
    curves: Mapping[str, Curve], constant: float, path: str | PathLike[str] | None = None
) -> Figure:
    """Draw the ratio of regret to the lower bound, to extreme horizons.

    Parameters
    ----------
    curves : mapping
        Label to regret curve.
    constant : float
        c* sigma^2: no consistent policy has less regret than this times log n, asymptotically.
    path : path, optional
        File to write; its suffix decides the format.
    """
    from matplotlib.figure import Figure  # no pyplot: no global state, no display needed

    figure = Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for label, curve in curves.items():
        _draw_ratio(axes, label, curve, constant)
    axes.axhline(1.0, color="k", linestyle="--", label="lower bound")
    axes.set_xscale("log")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(r"$\log_{10} n$")
    axes.set_ylabel(r"$R_n\,/\,(c^*\sigma^2\,\log n)$")
    axes.legend()
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _draw_regret(
    axes: Axes, curves: Mapping[str, Curve], constant: float | None, linear: bool = False
) -> None:
    far = any(curve.log_t[-1] > _LARGEST_LOG for curve in curves.values())

    def rounds(curve: Curve) -> NDArray[np.float64]:
        return curve.log_t / _LOG_10 if far else np.exp(curve.log_t)

    for label, curve in curves.items():
        (line,) = axes.plot(rounds(curve), curve.mean, label=label)
        low, high = (curve.mean + sign * 2.0 * curve.standard_error for sign in (-1, 1))
        axes.fill_between(rounds(curve), low, high, color=line.get_color(), alpha=0.2, linewidth=0)
    if constant is not None and curves:
        first = next(iter(curves.values()))
        bound = constant * first.log_t
        axes.plot(rounds(first), bound, "k--", label=r"$c^*\sigma^2\,\log n$")
    if not far and not linear:
        axes.set_xscale("log")
    axes.set_xlabel(r"$\log_{10} n$" if far else "round n")
    axes.set_ylabel("regret (mean, 2 standard errors)")
    if curves and not linear:  # beside a linear panel is a logarithmic one
        axes.legend(loc="upper left")


def _draw_ratio(axes: Axes, label: str, curve: Curve, constant: float) -> None:
    late = curve.log_t > 2.9 * _LOG_10  # the ratio says nothing about the first rounds
    log_t = curve.log_t[late]
    ratio = curve.mean[late] / (constant * log_t)
    error = 2.0 * curve.standard_error[late] / (constant * log_t)
    exponent = log_t / _LOG_10
    (line,) = axes.plot(exponent, ratio, label=label)
    axes.fill_between(
        exponent, ratio - error, ratio + error, color=line.get_color(), alpha=0.2, linewidth=0
    )
