"""Figures drawn by the server as SVG: numbers only, so that no name can get into them.

Colours and widths of lines are those of the style sheet, by class: a strict content policy allows
no styles within a page.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

__all__ = ["Line", "interval", "lines", "stacks", "ticks"]

# In units of the drawing, which is scaled to the width of its place.
_WIDTH, _HEIGHT = 440.0, 220.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 10.0, 10.0, 38.0
_TINY = (160.0, 16.0)


#: Values beyond are drawn as this: their differences still fit a float.
_LARGEST = 1e300


def _axis(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis, which numbers can tell apart."""
    low, high = _drawable(low), _drawable(high)
    size = max(abs(low), abs(high))
    if high - low > 1e-12 * max(size, 1e-280):
        return low, high
    return low - max(1.0, 0.01 * size), high + max(1.0, 0.01 * size)


def _drawable(value: float) -> float:
    return min(max(value, -_LARGEST), _LARGEST)


class Line(NamedTuple):
    """A line through points; it is interrupted where a value is missing."""

    kind: str
    values: Sequence[float | None]


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers from low to high, about this many."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if size * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


class _Frame:
    """Axes of a figure."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x = x if x[1] > x[0] else (x[0], x[0] + 1.0)
        self._y = _axis(*y)

    def across(self, x: float) -> float:
        low, high = self._x
        return _LEFT + (x - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def down(self, y: float) -> float:
        low, high = self._y
        return _HEIGHT - _BOTTOM - (y - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def drawn(self, label: str, inside: str, percent: bool = False) -> Markup:
        """Put the axes around what is inside."""
        grid = []
        for y in ticks(*self._y):
            where = self.down(y)
            text = f"{100 * y:.0f} %" if percent else _number(y)
            kind = "zero" if y == 0.0 else "grid"
            grid.append(
                f'<path class="{kind}" d="M{_LEFT:.0f} {where:.1f}H{_WIDTH - _RIGHT:.0f}"/>'
                f'<text x="{_LEFT - 6:.0f}" y="{where + 4:.1f}" text-anchor="end">{text}</text>'
            )
        for x in ticks(*self._x, 4):
            where = min(self.across(x), _WIDTH - _RIGHT - 8.0)
            grid.append(
                f'<text x="{where:.1f}" y="{_HEIGHT - _BOTTOM + 16:.0f}" text-anchor="middle">'
                f"{_number(x)}</text>"
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


def _number(value: float) -> str:
    if value == 0.0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e13:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def lines(label: str, x: Sequence[float], drawn: Sequence[Line]) -> Markup:
    """Draw lines over one axis; numbers from zero on."""
    values = [_drawable(value) for line in drawn for value in line.values if value is not None]
    low, high = min([0.0, *values]), max([0.0, *values])
    frame = _Frame((0.0, max(x)), (low, high * 1.05))
    paths = []
    for line in drawn:
        steps, pen = [], "M"
        for where, value in zip(x, line.values, strict=True):
            if value is None:
                pen = "M"
                continue
            steps.append(f"{pen}{frame.across(where):.1f} {frame.down(_drawable(value)):.1f}")
            pen = "L"
        paths.append(f'<path class="line {line.kind}" d="{"".join(steps)}"/>')
    return frame.drawn(label, "".join(paths))


def stacks(label: str, edges: Sequence[float], shares: Sequence[Sequence[float]]) -> Markup:
    """Draw shares as stacks from one edge to the next, each option in the colour of its place."""
    frame = _Frame((edges[0], edges[-1]), (0.0, 1.0))
    paths: list[list[str]] = [[] for _ in shares[0]]
    for i, stack in enumerate(shares):
        left, right = frame.across(edges[i]), frame.across(edges[i + 1])
        under = 0.0
        for place, share in enumerate(stack):
            if share > 0.0:
                top, foot = frame.down(under + share), frame.down(under)
                paths[place].append(f"M{left:.1f} {top:.1f}H{right:.1f}V{foot:.1f}H{left:.1f}Z")
            under += share
    inside = "".join(
        f'<path class="c{place}" d="{"".join(parts)}"/>' for place, parts in enumerate(paths)
    )
    return frame.drawn(label, inside, percent=True)


def interval(
    value: float | None, ends: tuple[float | None, float | None], axis: tuple[float, float]
) -> Markup:
    """Draw an estimate with its interval, as a dot on a line; cut where the axis ends."""
    width, height = _TINY
    low, high = _axis(*axis)

    def place(x: float) -> float:
        return 6.0 + min(max((_drawable(x) - low) / (high - low), 0.0), 1.0) * (width - 12.0)

    left = place(low if ends[0] is None else ends[0])
    right = place(high if ends[1] is None else ends[1])
    parts = ""
    if low < 0.0 < high:
        parts += f'<path class="zero" d="M{place(0.0):.1f} 0V{height:.0f}"/>'
    parts += f'<path class="reach" d="M{left:.1f} {height / 2:.0f}H{right:.1f}"/>'
    if value is not None:
        parts += f'<circle class="dot" cx="{place(value):.1f}" cy="{height / 2:.0f}" r="4"/>'
    return Markup(
        '<svg class="interval" viewBox="0 0 {w:.0f} {h:.0f}" aria-hidden="true">{inside}</svg>'
    ).format(w=width, h=height, inside=Markup(parts))
