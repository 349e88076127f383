"""Figures of an experiment as SVG, drawn on the server.

Drawings contain numbers only, so that no name can inject markup.  Colours and line widths come from
the style sheet, by class: the content security policy allows no inline styles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from markupsafe import Markup

from sightline.report.charts import axis_ends, drawable, short_number, ticks

# In units of the drawing, which scales with the page.
_WIDTH, _HEIGHT = 440.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 10.0, 10.0, 38.0
_BINS = 40
_COLOURS = 6  # of the most frequent options; all others share one


class _Frame:
    """Axes of a figure."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x = x if x[1] > x[0] else (x[0], x[0] + 1.0)
        self._y = axis_ends(*y)

    def x_of(self, x: float) -> float:
        low, high = self._x
        return _LEFT + (x - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y_of(self, y: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (y - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def draw(self, label: str, inside: str, percent: bool = False) -> Markup:
        """Return the figure with axes and its content."""
        grid = []
        for y in ticks(*self._y):
            where = self.y_of(y)
            text = f"{100 * y:.0f} %" if percent else short_number(y)
            kind = "zero" if y == 0.0 else "grid"
            grid.append(
                f'<path class="{kind}" d="M{_LEFT:.0f} {where:.1f}H{_WIDTH - _RIGHT:.0f}"/>'
                f'<text x="{_LEFT - 6:.0f}" y="{where + 4:.1f}" text-anchor="end">{text}</text>'
            )
        for x in ticks(*self._x, 4):
            where = min(self.x_of(x), _WIDTH - _RIGHT - 8.0)
            grid.append(
                f'<text x="{where:.1f}" y="{_HEIGHT - _BOTTOM + 16:.0f}" text-anchor="middle">'
                f"{short_number(x)}</text>"
            )
        middle = 0.5 * (_LEFT + _WIDTH - _RIGHT)
        grid.append(
            f'<text x="{middle:.0f}" y="{_HEIGHT - 5:.0f}" text-anchor="middle">decisions</text>'
        )
        axes = Markup("".join(grid))
        return Markup(
            '<svg class="figure" viewBox="0 0 {w:.0f} {h:.0f}" role="img" aria-label="{label}">'
            "{axes}{inside}</svg>"
        ).format(w=_WIDTH, h=_HEIGHT, label=label, axes=axes, inside=Markup(inside))


def lines(label: str, x: Sequence[float], curves: Mapping[str, Sequence[float | None]]) -> Markup:
    """Draw lines over common axes; the vertical one includes zero, missing values are gaps."""
    values = [drawable(y) for curve in curves.values() for y in curve if y is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    frame = _Frame((0.0, max(x)), (low, high * 1.05))
    paths = []
    for kind, curve in curves.items():
        steps, pen = [], "M"
        for where, value in zip(x, curve, strict=True):
            if value is None:
                pen = "M"
                continue
            steps.append(f"{pen}{frame.x_of(where):.1f} {frame.y_of(drawable(value)):.1f}")
            pen = "L"
        paths.append(f'<path class="line {kind}" d="{"".join(steps)}"/>')
    return frame.draw(label, "".join(paths))


def stacks(label: str, edges: Sequence[float], shares: Sequence[Sequence[float]]) -> Markup:
    """Draw stacked shares from edge to edge, with one colour per option."""
    frame = _Frame((edges[0], edges[-1]), (0.0, 1.0))
    paths: list[list[str]] = [[] for _ in shares[0]]
    for i, stack in enumerate(shares):
        left, right = frame.x_of(edges[i]), frame.x_of(edges[i + 1])
        under = 0.0
        for place, share in enumerate(stack):
            if share > 0.0:
                top, foot = frame.y_of(under + share), frame.y_of(under)
                paths[place].append(f"M{left:.1f} {top:.1f}H{right:.1f}V{foot:.1f}H{left:.1f}Z")
            under += share
    inside = "".join(
        f'<path class="c{place}" d="{"".join(parts)}"/>' for place, parts in enumerate(paths)
    )
    return frame.draw(label, inside, percent=True)


class Traffic(NamedTuple):
    """Shares of the options over time: a figure, and a legend of colour numbers and names."""

    figure: Markup
    legend: list[tuple[int, str]]


def traffic_figure(history: dict[str, Any]) -> Traffic | None:
    """Draw the shares of the options; None without decisions, or with too many options."""
    names, points = history["options"], history["points"]
    last = points[-1]["round"]
    if last < 1 or all(point["traffic"] is None for point in points):
        return None
    edges = np.linspace(0.0, last, min(_BINS, last) + 1)
    counts = _counts(points, len(names), edges)
    totals = counts.sum(axis=0)
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0.0]
    chosen = sorted(order[:_COLOURS])
    columns = [counts[:, i] for i in chosen]
    legend = [(place, names[i]) for place, i in enumerate(chosen)]
    rest = order[_COLOURS:]
    if len(rest):
        columns.append(counts[:, rest].sum(axis=1))
        legend.append((_COLOURS, f"{len(rest):,} others"))
    stacked = np.column_stack(columns)
    total = stacked.sum(axis=1, keepdims=True)
    shares = np.divide(stacked, total, where=total > 0.0, out=np.zeros_like(stacked))
    label = "Share of every option in the decisions, over time"
    return Traffic(stacks(label, edges.tolist(), shares.tolist()), legend)


def _counts(points: Sequence[dict[str, Any]], k: int, edges: Any) -> Any:
    """Spread the decisions between two points of the history evenly over the bins between."""
    counts = np.zeros((len(edges) - 1, k))
    before = 0.0
    for point in points:
        here = float(point["round"])
        if point["traffic"] is None or here <= before:
            continue
        overlap = np.minimum(edges[1:], here) - np.maximum(edges[:-1], before)
        counts += np.maximum(overlap, 0.0)[:, None] * np.array(point["traffic"])
        before = here
    return counts


def evidence_figure(history: dict[str, Any]) -> Markup | None:
    """Draw evidence and threshold; None without a test."""
    points = [p for p in history["points"] if p["threshold"] is not None and p["told"] > 0]
    if len(points) < 2:
        return None
    return lines(
        "Evidence for the best option and its threshold, over time",
        [point["round"] for point in points],
        {name: [point[name] for point in points] for name in ("threshold", "evidence")},
    )


def reward_figure(history: dict[str, Any]) -> Markup | None:
    """Draw the reward above that of an equal split; None if it cannot be estimated."""
    points = [
        p for p in history["points"] if p["reward"] is not None and p["fixed_split"] is not None
    ]
    if len(points) < 2 or points[-1]["told"] == 0:
        return None
    return lines(
        "Estimated reward above an equal split, over time",
        [point["round"] for point in points],
        {"gain": [point["reward"] - point["fixed_split"] for point in points]},
    )
