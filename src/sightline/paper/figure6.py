"""Tuning of beta_s and eta_s on random action sets."""

from __future__ import annotations

from sightline.experiments.experiment import Experiment
from sightline.paper import tuning
from sightline.paper.item import Item, Size
from sightline.paper.settings import PLOTS, RANDOM, TEXT

__all__ = ["ITEM"]


def _experiments(size: Size) -> dict[str, Experiment]:
    found = tuning.experiments(TEXT, RANDOM, size)
    if size.every_variant:
        found |= tuning.experiments(PLOTS, RANDOM, size)
    return found


ITEM = Item(
    name="figure6",
    title="Figure 6: tuning beta and eta on random action sets",
    see="Rows matter, columns hardly: beta decides the regret, eta does not.",
    where="Appendix on the confidence coefficient, second figure",
    about="Mean regret after n rounds (the paper has n = 10^4) with beta held "
    "constant in gaps, gain and the test of exploitation, beside the log-determinant one; eta is "
    "in units of the noise variance. A small beta can settle on a wrong arm for ever, at a cost "
    "that grows with n. IDS has more runs than LinUCB, which is slower.",
    sizes={
        "quick": Size(10**4, 100, every_variant=False, many=150),
        "paper": Size(10**4, 100, many=2000),
    },
    experiments=_experiments,
    show=tuning.show,
)
