"""Tuning of beta_s and eta_s on the end of optimism."""

from __future__ import annotations

from sightline.lab.experiment import Experiment
from sightline.paper import tuning
from sightline.paper.item import Item, Size
from sightline.paper.settings import SLOPE_2

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    return {"tuning": tuning.experiment(SLOPE_2, size)}


ITEM = Item(
    name="figure7",
    title="Figure 7: tuning beta and eta on the end of optimism",
    see="As before, and the last column, LinUCB, is darker than IDS in nearly every row.",
    where="Appendix on the confidence coefficient, third figure",
    about="Mean regret after n rounds (the paper has n = 10^6) with beta held "
    "constant in gaps, gain and the test of exploitation, beside the log-determinant one; eta is "
    "in units of the noise variance. A small beta can settle on a wrong arm for ever, at a cost "
    "that grows with n.",
    sizes={"quick": Size(10**5, 10), "paper": Size(10**6, 100)},
    experiments=_experiments,
    show=tuning.show,
)
