"""Figure 3: information gain functions on one trajectory, normalised."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from sightline.paper.item import Calculation, Findings, Item, ItemResults, Size
from sightline.paper.settings import (
    IDS_UCB,
    PLOTS,
    TEXT,
    Reading,
    as_read,
    marks,
    panels,
    problems,
)
from sightline.report.figures import label_ends
from sightline.report.symbols import as_label
from sightline.simulation.trace import information_gains

GAINS = {
    "halfspace": "I^H",
    "halfspace-ucb": "I^H-UCB",
    "cell": "I^C",
    "plain": "I, no optimism",
    "variance": "I^VAR",
}


def gains(horizon: int, seed: int, plots: bool) -> dict[str, Any]:
    """Gains of all arms along one run of IDS-H-UCB; I^VAR from 10^4 posterior samples."""
    reading = PLOTS if plots else TEXT
    (driver,) = as_read({"": IDS_UCB}, reading).values()
    problem = problems(reading.example)[reading.example]
    found = information_gains(
        problem, list(GAINS), horizon, seed, driver=driver, checkpoints=marks(horizon)
    )
    table = np.where(np.isfinite(found.gains), found.gains, -1.0)
    return {"t": found.t.tolist(), "gains": table.tolist()}


def _calculations(size: Size) -> dict[str, Calculation]:
    horizons = {TEXT: size.horizon}
    if size.every_variant:
        horizons[PLOTS] = size.horizon // 100  # difference gaps keep exploring for long
    return {
        f"{reading.name}{seed}": Calculation(
            gains,
            {"horizon": horizon, "seed": seed, "plots": reading is PLOTS},
            sample={"horizon": horizon // 10},
            share=0.1,
        )
        for reading, horizon in horizons.items()
        for seed in range(1, size.replications + 1)
    }


def runs_of(outcome: ItemResults, reading: Reading) -> list[dict[str, Any]]:
    """Gains along all runs under a reading."""
    runs = outcome.runs(reading.name)
    if not runs:
        raise reading.missing()
    return runs


def _show(outcome: ItemResults) -> Findings:
    first = runs_of(outcome, TEXT)[0]
    t, table = np.array(first["t"]), np.array(first["gains"])
    table[table < 0.0] = np.nan
    figure, row = panels(11, 3.4, len(GAINS), sharey=True)
    for axes, name, values in zip(row, GAINS.values(), table, strict=True):
        for arm in range(3):
            axes.plot(t, values[:, arm], label=f"$x_{arm + 1}$")
        axes.set(xscale="log", xlabel="round t", title=as_label(name))
        axes.tick_params(labelleft=True)
        label_ends(axes)
    row[0].set_ylabel("normalised information gain")
    frame = pd.concat(
        pd.DataFrame({"gain": name, "t": t, "arm": arm + 1, "share": values[:, arm]})
        for name, values in zip(GAINS.values(), table, strict=True)
        for arm in range(3)
    )
    caption = "Information gains of the three arms, evaluated on one run of IDS-H-UCB"
    return Findings(figures={"gains": (caption, figure)}, curves={"gains": frame})


ITEM = Item(
    name="figure3",
    title="Figure 3: information gain functions",
    see="Every gain first favours the arms that look best and later the informative arm x_3; "
    "the gains differ in when.",
    where="Appendix on mutual information, first figure",
    about="All gains are evaluated on the data that IDS-H-UCB collects on the end of optimism, "
    "slope 2, and normalised to sum to one over the arms. I^VAR comes from 10^4 posterior "
    "samples; where all samples agree on the best arm it is undefined and not drawn.",
    sizes={"quick": Size(10**5, 12, every_variant=False), "paper": Size(10**6, 20)},
    calculations=_calculations,
    show=_show,
)
