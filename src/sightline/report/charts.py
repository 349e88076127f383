"""Small charts as SVG elements: their text is numbers and dates, so that no name can inject markup.

Colours and line widths come from the style sheet of a page, by class, so that pages without inline
styles can show them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Larger values are drawn as this one, so that differences fit a float.
_LARGEST = 1e300
_WIDTH, _HEIGHT = 360.0, 190.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 48.0, 8.0, 10.0, 26.0
_TINY = (160.0, 16.0)


def drawable(value: float) -> float:
    """Clip a value, so that differences fit a float."""
    return min(max(value, -_LARGEST), _LARGEST)


def axis_ends(low: float, high: float) -> tuple[float, float]:
    """Return the ends of an axis, far enough apart for floats."""
    low, high = drawable(low), drawable(high)
    size = max(abs(low), abs(high))
    if high - low > 1e-12 * max(size, 1e-280):
        return low, high
    return low - max(1.0, 0.01 * size), high + max(1.0, 0.01 * size)


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return about ``count`` round numbers from low to high."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * m for m in (1.0, 2.0, 2.5, 5.0, 10.0) if size * m >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def short_number(value: float) -> str:
    """Write the number of a tick."""
    if value == 0.0:
        return "0"
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if size <= abs(value) < 1e13:
            return f"{value / (1e3 if letter == 'k' else size):.4g}{letter}"
    return f"{value:.4g}"


def interval(
    value: float | None, ends: tuple[float | None, float | None], axis: tuple[float, float]
) -> str:
    """Draw an estimate and its interval as a dot on a line, cut off at the ends of the axis."""
    width, height = _TINY
    low, high = axis_ends(*axis)

    def place(x: float) -> float:
        return 6.0 + min(max((drawable(x) - low) / (high - low), 0.0), 1.0) * (width - 12.0)

    left = place(low if ends[0] is None else ends[0])
    right = place(high if ends[1] is None else ends[1])
    parts = ""
    if low < 0.0 < high:
        parts += f'<path class="zero" d="M{place(0.0):.1f} 0V{height:.0f}"/>'
    parts += f'<path class="reach" d="M{left:.1f} {height / 2:.0f}H{right:.1f}"/>'
    if value is not None:
        parts += f'<circle class="dot" cx="{place(value):.1f}" cy="{height / 2:.0f}" r="4"/>'
    return (
        f'<svg class="interval" viewBox="0 0 {width:.0f} {height:.0f}" aria-hidden="true">'
        f"{parts}</svg>"
    )


def bars(label: str, dates: Sequence[str], values: Sequence[float]) -> str:
    """Draw one bar per date."""
    top = max([1.0, *values])
    y = _Vertical(0.0, top)
    inside = []
    for (left, right), value in zip(_slots(len(dates)), values, strict=True):
        if value > 0.0:
            inside.append(f"M{left:.1f} {y(value):.1f}H{right:.1f}V{y(0.0):.1f}H{left:.1f}Z")
    return _chart(label, dates, y, f'<path class="c0" d="{"".join(inside)}"/>')


def points(label: str, dates: Sequence[str], values: Sequence[float], percent: bool) -> str:
    """Draw one value per date, nan where there is none, joined by lines."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min([0.0, *known]), max([0.0, *known])
    y = _Vertical(low, high if high > low else low + 1.0)
    path, dots, pen = [], [], "M"
    for (left, right), value in zip(_slots(len(dates)), values, strict=True):
        if not math.isfinite(value):
            pen = "M"
            continue
        x = 0.5 * (left + right)
        path.append(f"{pen}{x:.1f} {y(value):.1f}")
        dots.append(f'<circle class="dot" cx="{x:.1f}" cy="{y(value):.1f}" r="2.5"/>')
        pen = "L"
    inside = f'<path class="line" d="{"".join(path)}"/>{"".join(dots)}'
    return _chart(label, dates, y, inside, percent)


def stacks(label: str, dates: Sequence[str], shares: Sequence[Sequence[float]]) -> str:
    """Draw stacked shares per date, with one colour per column."""
    y = _Vertical(0.0, 1.0)
    paths: list[list[str]] = [[] for _ in shares[0]]
    for (left, right), stack in zip(_slots(len(dates)), shares, strict=True):
        under = 0.0
        for place, part in enumerate(stack):
            if part > 0.0:
                top, foot = y(under + part), y(under)
                paths[place].append(f"M{left:.1f} {top:.1f}H{right:.1f}V{foot:.1f}H{left:.1f}Z")
            under += part
    inside = "".join(f'<path class="c{i}" d="{"".join(one)}"/>' for i, one in enumerate(paths))
    return _chart(label, dates, y, inside, percent=True)


class _Vertical:
    """A vertical axis."""

    def __init__(self, low: float, high: float) -> None:
        self.ends = axis_ends(low, high)

    def __call__(self, value: float) -> float:
        low, high = self.ends
        return (
            _HEIGHT - _BOTTOM - (drawable(value) - low) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)
        )


def _slots(n: int) -> list[tuple[float, float]]:
    """Left and right ends of n slots, with a gap between them if they are wide."""
    width = (_WIDTH - _LEFT - _RIGHT) / n
    gap = min(0.1 * width, 3.0)
    lefts = [_LEFT + i * width for i in range(n)]
    return [(left + 0.5 * gap, left + width - 0.5 * gap) for left in lefts]


def _chart(
    label: str, dates: Sequence[str], y: _Vertical, inside: str, percent: bool = False
) -> str:
    """Return the chart with its axes."""
    grid = []
    for tick in ticks(*y.ends, 4):
        where = y(tick)
        text = f"{100.0 * tick:.3g} %" if percent else short_number(tick)
        kind = "zero" if tick == 0.0 else "grid"
        grid.append(
            f'<path class="{kind}" d="M{_LEFT:.0f} {where:.1f}H{_WIDTH - _RIGHT:.0f}"/>'
            f'<text x="{_LEFT - 5:.0f}" y="{where + 4:.1f}" text-anchor="end">{text}</text>'
        )
    slots, n = _slots(len(dates)), len(dates)
    shown = sorted({0, n - 1, *([n // 2] if n > 4 else [])})
    for i in shown:
        anchor = "middle"
        x = 0.5 * sum(slots[i])
        if n > 1 and i in (0, n - 1):
            anchor, x = ("start", slots[0][0]) if i == 0 else ("end", slots[-1][1])
        grid.append(
            f'<text x="{x:.1f}" y="{_HEIGHT - 8:.0f}" text-anchor="{anchor}">{dates[i]}</text>'
        )
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{label}">{"".join(grid)}{inside}</svg>'
    )
