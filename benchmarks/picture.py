"""Cost against k, d and n."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.growth import exponent
from benchmarks.measurement import Measurement

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["growth_figure"]

_TITLES = {
    "k": ("A round, d = 20", "arms k"),
    "d": ("A round, k = 1000", "dimension d"),
    "n": ("A run, k = 6, d = 2", "log10 of its length n"),
}


def growth_figure(rows: Sequence[Measurement]) -> Figure:
    """Draw one panel each for k, d and n; slopes on logarithmic axes are the exponents."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4), layout="constrained")
    for axes, (variable, (title, label)) in zip(
        figure.subplots(1, 3), _TITLES.items(), strict=True
    ):
        chosen = [row for row in rows if row.yardstick.startswith(f"{variable}^")]
        for what in dict.fromkeys(row.what for row in chosen):
            series = [row for row in chosen if row.what == what]
            sizes = [row.size[variable] for row in series]
            seconds = [row.seconds for row in series]
            if variable == "n":
                axes.plot([len(str(n)) - 1 for n in sizes], seconds, marker="o", label=what)
            else:
                slope = exponent(sizes, seconds)
                label_with_slope = f"{what}: {variable}^{slope:.2f}"
                axes.plot(sizes, seconds, marker="o", label=label_with_slope)
        axes.set_xscale("log")
        axes.set_yscale("log")
        if variable == "n":
            axes.set_xticks([3, 6, 12, 100], ["3", "6", "12", "100"])
            axes.set_xticks([], minor=True)
        axes.set(title=title, xlabel=label, ylabel="seconds")
        axes.grid(alpha=0.3)
        if chosen:
            axes.legend(frameon=False, fontsize="small")
            low = min(row.seconds for row in chosen)
            axes.set_ylim(bottom=10 ** np.floor(np.log10(low)))
    return figure
