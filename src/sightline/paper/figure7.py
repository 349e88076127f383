"""Tuning of beta_s and eta_s on the end of optimism."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper import tuning
from sightline.paper.item import Item, Size
from sightline.paper.settings import PLOTS, SLOPE_2, SLOPE_4, TEXT

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    found = tuning.experiments(TEXT, SLOPE_2, size)
    if size.every_variant:
        found |= tuning.experiments(PLOTS, SLOPE_4, size)
    return found


ITEM = Item(
    name="figure7",
    title="Figure 7: tuning beta and eta on the end of optimism",
    see="As before, and the last column, LinUCB, is darker than IDS in nearly every row.",
    where="Appendix on the confidence coefficient, third figure",
    about="Mean regret after n rounds (the paper has n = 10^6) with beta held "
    "constant in gaps, gain and the test of exploitation, beside the log-determinant one; eta is "
    "in units of the noise variance. A small beta can settle on a wrong arm for ever, at a cost "
    "that grows with n. IDS has more runs than LinUCB, which is slower.",
    sizes={
        "quick": Size(10**6, 16, every_variant=False, many=100),
        "paper": Size(10**6, 100, many=400),
    },
    experiments=_experiments,
    show=tuning.show,
)
