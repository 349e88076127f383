"""Every item of the paper, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.paper import (
    all_data,
    dimension,
    far_gains,
    far_horizon,
    figure1,
    figure2,
    figure3,
    figure4,
    figure5,
    figure6,
    figure7,
    figure8,
    gains_side_by_side,
    oracle_cost,
    posterior_weights,
    price_of_information,
    pulls_and_allocation,
    rates,
    regulariser,
    solid_bonus,
    solid_rivals,
    table1,
    zero_best,
)
from sightline.paper.item import Item

__all__ = ["ITEMS"]

ITEMS: Mapping[str, Item] = {
    module.ITEM.name: module.ITEM
    for module in (
        figure1,
        figure2,
        figure3,
        figure4,
        figure5,
        figure6,
        figure7,
        figure8,
        table1,
        far_horizon,
        far_gains,
        solid_bonus,
        regulariser,
        pulls_and_allocation,
        gains_side_by_side,
        rates,
        dimension,
        price_of_information,
        oracle_cost,
        posterior_weights,
        zero_best,
        all_data,
        solid_rivals,
    )
}
