"""Style of figures: colours that colour-blind readers can tell apart, and few other lines.

Matplotlib is imported on use, because importing it takes long.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito (2008), without yellow, which cannot be seen on white; grey stands last.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a7a7a")
BOUND = "#222222"  # reference lines: bounds and rates
_SOFT, _LINE = "#5b6675", "#d8dde4"
_DASHES = ("-", (0, (5, 1.5)))

# Colours of a figure, and the variable of a page that takes their place: pages have a dark mode.
THEME: Mapping[str, str] = {
    **{colour: f"--curve-{i}" for i, colour in enumerate(COLOURS)},
    BOUND: "--ink",
    _SOFT: "--soft",
    _LINE: "--line",
    "#ffffff": "--page",
}


@contextlib.contextmanager
def drawing() -> Iterator[None]:
    """Draw in the style of the reports; figures made within keep it."""
    import matplotlib

    style: Any = {
        "axes.prop_cycle": _cycle(),
        "axes.edgecolor": _SOFT,
        "axes.labelcolor": BOUND,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "axes.titlesize": 11,
        "grid.color": _LINE,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 1.8,
        "text.color": BOUND,
        "xtick.color": _SOFT,
        "ytick.color": _SOFT,
        "xtick.labelcolor": BOUND,
        "ytick.labelcolor": BOUND,
    }
    with matplotlib.rc_context(style):
        yield


def _cycle() -> Any:
    from cycler import cycler

    return cycler(linestyle=_DASHES) * cycler(color=COLOURS)


def curve_styles(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Colour and dashes of every label, the same in all panels of a figure."""
    return dict(zip(dict.fromkeys(labels), itertools.cycle(_cycle()), strict=False))


def new_figure(width: float, height: float) -> Figure:
    """Make a figure of a size in inches, without pyplot: no global state, no display needed."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def saved(figure: Figure, path: str | PathLike[str] | None) -> Figure:
    """Write a figure to a file, if one is given; the suffix decides the format."""
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure
