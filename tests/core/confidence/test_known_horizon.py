"""The level of evidence against its formula."""

import math

import pytest

from sightline.core.confidence_rules import evidence_level, full_level, threshold, valid_threshold
from tests import naive_allocation_policies as truth


@pytest.mark.parametrize("horizon", [3, 1000, 10**400])
@pytest.mark.parametrize(("d", "constant"), [(1, 1.0), (5, 0.3), (2, 0.0)])
def test_levels_by_the_formula(horizon: int, d: int, constant: float) -> None:
    level = threshold(horizon, constant, d, noise_std=0.3)
    for log_inverse_delta in (0.0, 2.5, math.log(horizon)):
        expected = 0.09 * truth.f(horizon, log_inverse_delta, d, constant)
        assert evidence_level(level, log_inverse_delta) == pytest.approx(expected, rel=1e-14)
    expected = 0.09 * truth.f(horizon, math.log(horizon), d, constant)
    assert full_level(level) == pytest.approx(expected, rel=1e-14)
    assert full_level(level) > 0.0


@pytest.mark.parametrize(
    ("horizon", "constant", "message"),
    [
        (2, 1.0, "horizon must be at least 3, got 2"),
        (1e5, 1.0, "horizon must be an integer"),
        (3, -0.1, "constant must be finite and >= 0, got -0.1"),
        (3, math.inf, "constant must be finite"),
    ],
)
def test_bad_values(horizon: object, constant: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        valid_threshold(horizon, constant)
