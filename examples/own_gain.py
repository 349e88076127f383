"""Parts of your own for IDS: an information gain, compiled, and a gap estimate, in plain Python.

Each is one call.  With a plain part the run is interpreted, some hundred times slower.
"""

from typing import Any, NamedTuple

import numba
import numpy as np

import sightline as sl
from sightline import extend


class Width(NamedTuple):
    """Information gain: the width of the reward of an arm, to some power."""

    power: float


@extend.register_information("width", Width(power=2.0))
@numba.njit
def width_gain(rule: Width, round_: extend.Round, gains: np.ndarray) -> None:
    arms = round_.estimate.arms
    for x in range(gains.size):
        gains[x] = max(arms.seen_widths[x], 0.0) ** (0.5 * rule.power)


class Pessimistic(NamedTuple):
    """Gap estimate: the highest upper bound minus the lower bound of an arm."""

    widths: float  # distance of the lower bound from the mean, in widths


@extend.register_gaps("pessimistic", Pessimistic(widths=1.0))
def pessimistic_gaps(rule: Pessimistic, round_: extend.Round, gaps: np.ndarray) -> None:
    arms = round_.estimate.arms
    width = np.sqrt(round_.beta * np.maximum(arms.squared_widths, 0.0))
    gaps[:] = (arms.means + width).max() - (arms.means - rule.widths * width)


problem = sl.problems.unit_sphere(seed=3)
policies: dict[str, Any] = {
    "IDS": sl.IDS(),
    "own gain": sl.IDS(information="width"),
    "own gaps": sl.IDS(gaps="pessimistic"),
}
for name, policy in policies.items():
    print(f"{name}: regret {sl.simulate(problem, policy, horizon=2000).regret[-1]:.3f}")
