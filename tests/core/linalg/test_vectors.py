"""Drawing an index from weights."""

import math
from typing import Any

import numpy as np

from sightline.core.linalg.vectors import draw_index


def test_draws_have_the_given_frequencies() -> None:
    rng = np.random.default_rng(0)
    weights = np.array([0.0, 0.2, 0.5, 0.0, 0.3, 0.0])
    n = 20_000
    counts = np.bincount([draw_index(weights, rng) for _ in range(n)], minlength=6)
    assert (counts[weights == 0.0] == 0).all()
    errors = np.sqrt(n * weights * (1.0 - weights))
    assert (np.abs(counts - n * weights) <= 4.0 * errors).all()


def test_rounding_never_draws_an_arm_without_weight() -> None:
    """Weights that add to less than the number drawn: the last arm that has any is taken."""

    class Highest:
        def random(self) -> float:
            return math.nextafter(1.0, 0.0)

    weights = np.array([0.5, 0.5 - 1e-12, 0.0])
    draw: Any = getattr(draw_index, "py_func", draw_index)
    assert draw(weights, Highest()) == 1
