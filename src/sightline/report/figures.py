"""Figures of regret, with a label at the end of every curve.

A constant is c* sigma^2: no consistent policy has less regret than this times log n,
asymptotically.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Mapping, Sequence
from os import PathLike
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.report.statistics import Curve
from sightline.report.style import BOUND, curve_styles, drawing, new_figure, saved
from sightline.report.symbols import as_label
from sightline.validation import entries, file_path, instance, integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

_LOG_10 = math.log(10.0)
_LARGEST_LOG = 700.0  # beyond, t does not fit a float, and its axis is labelled by log10 t
_EARLY = 10**4
_LINE_HEIGHT = 0.068  # of a label, as a share of the height of a panel
_LOWEST = 0.03  # of a label: below are those of the axis
_AT_EDGE = 0.97  # share of the width above which a label is placed outside
_HEADROOM = 1.3  # limit of an axis over the largest mean: wide bands must not press curves down
_LATE = (
    2.9 * _LOG_10
)  # log of the first round shown: ratios to log n say nothing about earlier ones
_REGRET = "regret (mean, 2 standard errors)"
_PANEL = (3.3, 2.6)  # inches of a panel of a grid
_TITLE, _WIDE_TITLE = 42, 50  # characters on a line of the title, there and in a row
_LETTERS = 13.0  # of a legend, per inch

Published = Mapping[str, Mapping[int, float]]  # by label, regret at some rounds


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
    published: Mapping[str, Published] | None = None,
) -> Figure:
    """Draw regret in the style of the paper: early rounds linear, all rounds logarithmic.

    ``panels`` has the curves of every problem by label, which fill a row of two panels, and
    ``bounds`` the constants of problems.  ``early`` is the last round of the linear panels, by
    default n^(2/3), at most 10^4.  ``published`` has regret at some rounds by problem and label,
    drawn as crosses in the colour of that curve.
    """
    with drawing():
        figure = new_figure(11, 3.8 * len(panels))
        grid = figure.subplots(len(panels), 2, squeeze=False)
        for (problem, curves), (left, right) in zip(panels.items(), grid, strict=True):
            constant, crosses = bounds.get(problem), (published or {}).get(problem, {})
            log_last = max((float(curve.log_t[-1]) for curve in curves.values()), default=0.0)
            log_early = min(2.0 / 3.0 * log_last, math.log(_EARLY))
            if early is not None:
                log_early = math.log(integer("early", early, at_least=1))
            _draw_regret(left, _until(curves, log_early), constant, crosses, linear=True)
            _draw_regret(right, curves, constant, crosses)
            left.set_title(_title(f"{problem}: early rounds", _WIDE_TITLE))
            right.set_title(_title(problem, _WIDE_TITLE))
            for axes in (left, right):
                label_ends(axes)
    return saved(figure, path)


def regret_grid(
    panels: Mapping[str, Mapping[str, Curve]],
    bounds: Mapping[str, float],
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw regret in all rounds, logarithmic, on a grid of one panel per problem with one legend.

    A policy has the same colour in all panels.
    """
    columns = math.ceil(math.sqrt(len(panels)))
    rows = math.ceil(len(panels) / columns)
    with drawing():
        figure = new_figure(_PANEL[0] * columns, _PANEL[1] * rows)
        places = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
        lines = _draw_panels(places, panels, bounds)
        for i, axes in enumerate(places):
            axes.set_visible(i < len(panels))
            axes.set_ylabel("")
            if i + columns < len(panels):
                axes.set_xlabel("")
        figure.supylabel(_REGRET, fontsize="medium", color=BOUND)
        longest = max((len(str(line.get_label())) for line in lines), default=0)
        across = int(_PANEL[0] * columns / (0.7 + longest / _LETTERS))
        across = min(max(across, 1), len(lines))
        if lines:
            figure.legend(lines, _labels(lines), loc="outside upper center", ncols=across)
            figure.set_figheight(_PANEL[1] * rows + 0.1 + 0.19 * math.ceil(len(lines) / across))
    return saved(figure, path)


def regret_in(
    axes: Sequence[Axes],
    panels: Mapping[str, Mapping[str, Curve]],
    bounds: Mapping[str, float],
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw the panels of ``regret_grid`` into given axes; the legend is in the first."""
    with drawing():
        lines = _draw_panels(axes, panels, bounds)
        if lines:
            axes[0].legend(lines, _labels(lines))
    figure: Any = axes[0].get_figure()
    return saved(figure.figure, path)  # the whole figure, also of axes in a subfigure


def given_axes(name: str, value: Any, count: int) -> list[Axes]:
    """Axes of matplotlib, as many as there are panels: one, a list or an array of them."""
    from matplotlib.axes import Axes

    what = "axes of matplotlib or a list of them"
    if isinstance(value, np.ndarray):
        value = value.ravel().tolist()
    found = [value] if isinstance(value, Axes) else entries(name, value, what)
    for axes in found:
        instance(name, axes, Axes, what)
    if len(found) != count:
        raise ValueError(f"{name} must have one entry per problem, {count}, got {len(found)}")
    return found


def _labels(lines: Sequence[Line2D]) -> list[str]:
    return [as_label(str(line.get_label())) for line in lines]


def _title(text: str, width: int) -> str:
    return as_label(textwrap.fill(text, width))


def _draw_panels(
    places: Sequence[Axes],
    panels: Mapping[str, Mapping[str, Curve]],
    bounds: Mapping[str, float],
) -> list[Line2D]:
    """Draw every problem into its axes, and return one line per label, for a legend."""
    styles = curve_styles(label for curves in panels.values() for label in curves)
    lines: dict[str, Line2D] = {}
    for (problem, curves), axes in zip(panels.items(), places, strict=False):
        _draw_regret(axes, curves, bounds.get(problem), {}, styles=styles)
        axes.set_title(_title(problem, _TITLE), fontsize="medium")
        lines |= {str(line.get_label()): line for line in axes.get_lines() if _is_named(line)}
    return [lines[name] for name in [*styles, *(lines.keys() - styles.keys())] if name in lines]


def _until(curves: Mapping[str, Curve], log_end: float) -> dict[str, Curve]:
    """First part of curves; of each at least two points."""
    parts = {}
    for label, curve in curves.items():
        count = max(2, int((curve.log_t <= log_end + 1e-9).sum()))
        parts[label] = Curve(*(values[:count] for values in curve))
    return parts


def ratio_figure(curves: Mapping[str, Curve], constant: float) -> Figure:
    """Draw the ratio of regret to the lower bound, to extreme horizons."""
    with drawing():
        figure = new_figure(6.4, 3.9)
        axes = figure.subplots()
        for label, curve in curves.items():
            late = curve.log_t > _LATE
            scale = constant * curve.log_t[late]
            ratio = Curve(
                curve.log_t[late], curve.mean[late] / scale, curve.standard_error[late] / scale
            )
            _draw_curve(axes, label, curve.log_t[late] / _LOG_10, ratio)
        axes.axhline(1.0, color=BOUND, linestyle="--", label="lower bound")
        _count_digits(axes)
        axes.set_ylim(bottom=0.0)
        axes.set_ylabel(r"$R_n\,/\,(c^*\sigma^2\,\log n)$")
        label_ends(axes)
    return figure


def growth_figure(curves: Mapping[str, Curve], constant: float) -> Figure:
    """Draw regret against the lower bound to extreme horizons, both axes logarithmic.

    Each curve may have a horizon of its own.
    """
    with drawing():
        figure = new_figure(6.4, 4.2)
        axes = figure.subplots()
        for label, curve in curves.items():
            late = curve.log_t > _LATE
            part = Curve(*(values[late] for values in curve))
            _draw_curve(axes, label, part.log_t / _LOG_10, part)
        log_t = np.linspace(_LATE, max(float(c.log_t[-1]) for c in curves.values()), 50)
        axes.plot(log_t / _LOG_10, constant * log_t, "--", color=BOUND, label="lower bound")
        axes.set_yscale("log")
        _count_digits(axes)
        axes.set_ylabel(_REGRET)
        label_ends(axes)
    return figure


def _count_digits(axes: Axes) -> None:
    """Let the axis of rounds show powers of ten, evenly spaced in the logarithm of the exponent."""
    axes.set_xscale("log")
    low, high = axes.dataLim.intervalx
    exponents = [e for e in (3, 6, 10, 30, 100, 300, 1000) if low - 0.1 <= e <= high + 0.1]
    axes.set_xticks(exponents, [f"$10^{{{e}}}$" for e in exponents])
    axes.set_xticks([], minor=True)
    axes.set_xlim(low, high)
    axes.set_xlabel("rounds n")


def label_ends(axes: Axes) -> None:
    """Write the label of every line beside its last point, in its colour; labels keep apart.

    Call it when the limits of the axes stand: where labels go depends on them.
    """
    lines = [line for line in axes.get_lines() if _is_named(line)]
    if not lines:
        return
    axes.set_xlim(right=axes.dataLim.x1)
    axes.set_ylim(axes.get_ylim())
    ends = [_last_point(axes, line) for line in lines]
    at_edge = [end[0] > _AT_EDGE for end in ends]
    heights = iter(_apart([end[1] for end, last in zip(ends, at_edge, strict=True) if last]))
    for line, end, last in zip(lines, ends, at_edge, strict=True):
        colour = line.get_color()
        axes.annotate(
            as_label(str(line.get_label())),
            end,
            (1.035, next(heights)) if last else (end[0] + 0.015, end[1]),
            xycoords="axes fraction",
            textcoords="axes fraction",
            color=colour,
            fontsize=9.0,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkB": 0.0},
        )


def _is_named(line: Line2D) -> bool:
    """Whether a line has a label, and a point to put it at."""
    points = np.column_stack(line.get_data())
    return str(line.get_label())[0] != "_" and bool(np.isfinite(points).all(axis=1).any())


def _last_point(axes: Axes, line: Line2D) -> tuple[float, float]:
    """Last point of a line within the axes, as shares of their width and height."""
    points = line.get_transform().transform(np.column_stack(line.get_data()))
    shares = axes.transAxes.inverted().transform(points)
    inside = shares[np.isfinite(shares).all(axis=1) & (shares[:, 0] <= 1.0 + 1e-9)]
    return float(inside[-1][0]), float(min(max(inside[-1][1], 0.0), 1.0))


def _apart(heights: list[float]) -> list[float]:
    """Heights of labels, moved as little as possible so that each has its own line."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    groups: list[tuple[float, list[int]]] = []  # centre, members from below
    for i in order:
        group = (heights[i], [i])
        while groups and group[0] - groups[-1][0] < (
            0.5 * _LINE_HEIGHT * (len(group[1]) + len(groups[-1][1]))
        ):
            members = groups.pop()[1] + group[1]
            group = (sum(heights[j] for j in members) / len(members), members)
        groups.append(group)
    placed, least = list(heights), _LOWEST
    for centre, members in groups:
        for rank, i in enumerate(members):
            wanted = centre + (rank - 0.5 * (len(members) - 1)) * _LINE_HEIGHT
            placed[i] = max(wanted, least)
            least = placed[i] + _LINE_HEIGHT
    return placed


def _draw_regret(
    axes: Axes,
    curves: Mapping[str, Curve],
    constant: float | None,
    published: Published,
    linear: bool = False,
    styles: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    far = any(curve.log_t[-1] > _LARGEST_LOG for curve in curves.values())

    def rounds(curve: Curve) -> NDArray[np.float64]:
        return curve.log_t / _LOG_10 if far else np.exp(curve.log_t)

    for label, curve in curves.items():
        line = _draw_curve(axes, label, rounds(curve), curve, (styles or {}).get(label, {}))
        _draw_crosses(axes, line, published.get(label, {}), float(curve.log_t[-1]))
    if constant is not None and curves:
        first = max(curves.values(), key=lambda curve: curve.log_t[-1])
        bound = constant * first.log_t
        axes.plot(rounds(first), bound, "--", color=BOUND, label=r"$c^*\sigma^2\,\log n$")
    if not far and not linear:
        axes.set_xscale("log")
    axes.set_xlabel(r"$\log_{10} n$" if far else "round n")
    axes.set_ylabel(_REGRET)
    axes.margins(x=0.0)
    means = [curve.mean[np.isfinite(curve.mean)] for curve in curves.values()]
    highest = max((float(values.max(initial=0.0)) for values in means), default=0.0)
    axes.set_ylim(0.0, min(axes.get_ylim()[1], _HEADROOM * highest) or 1.0)
    axes.grid(True, axis="y")


def _draw_curve(
    axes: Axes,
    label: str,
    x: NDArray[np.float64],
    curve: Curve,
    style: Mapping[str, Any] = MappingProxyType({}),
) -> Line2D:
    """Draw a mean with a band of two standard errors, cut off at 0: regret is not negative."""
    (line,) = axes.plot(x, curve.mean, label=label, **style)
    reach = 2.0 * curve.standard_error
    low, high = np.maximum(curve.mean - reach, 0.0), curve.mean + reach
    axes.fill_between(x, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    return line


def _draw_crosses(
    axes: Axes, line: Line2D, published: Mapping[int, float], log_last: float
) -> None:
    shown = {t: value for t, value in published.items() if math.log(t) <= log_last + 1e-3}
    if not shown:
        return
    axes.plot(
        list(shown),
        list(shown.values()),
        "x:",
        color=line.get_color(),
        markersize=8,
        markeredgewidth=2,
        linewidth=1,
        clip_on=False,
    )
