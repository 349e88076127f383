"""All items by name, in the order of the report."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.paper import (
    comparisons,
    far_horizons,
    figure1,
    figure2,
    figure3,
    information,
    oracle_cost,
    posterior_weights,
    rates,
    table1,
    tuning,
)
from sightline.paper.item import Item

ITEMS: Mapping[str, Item] = {
    item.name: item
    for item in (
        figure1.ITEM,
        figure2.ITEM,
        figure3.ITEM,
        comparisons.FIGURE_4,
        comparisons.FIGURE_5,
        tuning.FIGURE_6,
        tuning.FIGURE_7,
        comparisons.FIGURE_8,
        table1.ITEM,
        far_horizons.FAR_HORIZON,
        far_horizons.FAR_GAINS,
        comparisons.SOLID_BONUS,
        comparisons.REGULARISER,
        far_horizons.ALLOCATION,
        information.ITEM,
        rates.RATES,
        rates.DIMENSION,
        rates.WORST_CASE,
        oracle_cost.ITEM,
        posterior_weights.ITEM,
        far_horizons.ZERO_BEST,
        comparisons.ALL_DATA,
        comparisons.SOLID_RIVALS,
    )
}
