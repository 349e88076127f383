"""Log-spaced rounds at any magnitude."""

from __future__ import annotations

import itertools
import math

import pytest

from sightline.simulation.simulate import log_spaced, power_of_ten


def test_small_horizons_are_recorded_in_full() -> None:
    assert log_spaced(1) == [1]
    assert log_spaced(3) == [1, 2, 3]


@pytest.mark.parametrize("horizon", [10**6, 10**15, 10**16, 10**40, 10**1000])
def test_rounds_are_evenly_spaced_in_log_t(horizon: int) -> None:
    rounds = log_spaced(horizon)
    late = [math.log(t) for t in rounds if t > 1000]
    steps = [b - a for a, b in itertools.pairwise(late)]
    assert rounds[-1] == horizon
    assert max(steps) == pytest.approx(min(steps), rel=0.01)


def test_power_of_ten_beyond_floats() -> None:
    assert power_of_ten(3.0) == 1000
    assert power_of_ten(400.0) == 10**400
    assert power_of_ten(500.25) / 10**500 == pytest.approx(10**0.25, rel=1e-12)
