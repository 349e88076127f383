"""c*: exact values, brackets that hold by arithmetic, and defined answers at the edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sightline as sl


def unit(**options: Any) -> sl.LinearBandit:
    return sl.problems.end_of_optimism(noise_variance=1.0, **options)


@pytest.mark.parametrize(
    ("problem", "value"),
    [
        (unit(slope=2.0), 8.0),
        (unit(slope=4.0), 32.0),
        (unit(slope=8.0), 128.0),
        (unit(slope=4.0, epsilon=0.1), 20.0),
        (sl.LinearBandit(np.eye(3), [1.0, 0.5, 0.2], 1.0), 6.5),
        (sl.problems.end_of_optimism(), 0.8),
        (sl.problems.end_of_optimism_family(4, noise_variance=1.0), 24.0),
    ],
    ids=str,
)
def test_exact_values(problem: sl.LinearBandit, value: float) -> None:
    bound = sl.lower_bound(problem)
    assert bound.lower <= value * (1 + 1e-13)
    assert bound.upper >= value * (1 - 1e-13)
    assert bound.gap <= 1e-8
    assert bound.verify() == (bound.lower, bound.upper)


def test_large_gaps() -> None:
    assert sl.lower_bound(sl.problems.large_gaps()).value == pytest.approx(2.2727, abs=5e-5)
