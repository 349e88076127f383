"""What is known after some observations: estimates, the table of arms, and scratch space.

| symbol            | here                            | shape  |
|-------------------|---------------------------------|--------|
| V_s = lambda I + sum y y^T |                        | (d, d) |
| V_s^-1            | ``learned.gram_inverse``        | (d, d) |
| theta-hat_s       | ``learned.theta``               | (d,)   |
| log det(V_s / lambda) | ``learned.log_det[0]``      | (1,)   |
| s - 1             | ``learned.rounds[0]``           | (1,)   |
| <x, theta-hat_s>, widths, data | ``arms``, see :mod:`sightline.core.estimation.table` | |

A row y of Y_x is what an observation of arm x tells; in a bandit it is x itself.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, positive, whole, within
from sightline.core.estimation.noise import Noise
from sightline.core.estimation.table import Arms
from sightline.core.persistence import persists

__all__ = ["Learned", "LeastSquares", "Scratch"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Learned(NamedTuple):
    """What has been learned, whatever the arms are; see the table above."""

    gram_inverse: Array
    theta: Array
    log_det: Array  # (1,)
    rounds: Ints  # (1,): rounds learned from
    since_refresh: Ints  # (1,): of these, since the last refresh


@persists()
class Scratch(NamedTuple):
    """What a kernel may overwrite: nothing here lasts from one kernel to the next."""

    direction: Array  # (d,)
    products: Array  # (k,)
    factor: Array  # (d, d)


class LeastSquares(NamedTuple):
    """Estimates from all data so far."""

    learned: Learned
    arms: Arms
    scratch: Scratch
    regulariser: float  # lambda
    noise: Noise


@invariant(LeastSquares)
def _check(part: LeastSquares, name: str) -> None:
    """Check that all is finite, V^-1 positive on its diagonal, and data as many as rounds."""
    learned, arms = part.learned, part.arms
    whole(f"{name}.learned.rounds", learned.rounds)
    whole(f"{name}.learned.since_refresh", learned.since_refresh, float(learned.rounds[0]) + 1.0)
    within(f"{name}.learned.log_det", learned.log_det, ends=False)
    if arms.pulls.sum() != learned.rounds[0]:
        raise ValueError(
            f"{name}.arms.pulls must sum to the {learned.rounds[0]} rounds learned from, got "
            f"{arms.pulls.sum():g}"
        )
    for array, values in (
        ("learned.theta", learned.theta),
        ("learned.gram_inverse", learned.gram_inverse),
        ("arms.sums", arms.sums),
    ):
        within(f"{name}.{array}", values, ends=False)
    positive(f"{name}.learned.gram_inverse, on its diagonal,", np.diag(learned.gram_inverse))
