"""The normal distribution far out, against scipy and integration in many digits."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from sightline.core.posterior.losses import excess, log_density, mills_ratio
from tests.naive_stakes import psi


@pytest.mark.parametrize("a", [0.0, 0.3, 1.0, 2.7, 5.0, 9.9, 10.0, 10.1, 20.0, 35.0])
def test_against_scipy(a: float) -> None:
    assert log_density(a) == pytest.approx(norm.logpdf(a), rel=1e-14)
    assert mills_ratio(a) == pytest.approx(math.exp(norm.logsf(a) - norm.logpdf(a)), rel=1e-10)
    assert excess(a) == pytest.approx(psi(a) / norm.pdf(a), rel=1e-7)


def test_no_step_where_the_series_begins() -> None:
    below, above = np.nextafter(10.0, 0.0), 10.0
    assert excess(above) == pytest.approx(excess(below), rel=1e-11)
    assert mills_ratio(above) == pytest.approx(mills_ratio(below), rel=1e-11)


@pytest.mark.parametrize("a", [1e2, 1e4, 1e8, 1e100])
def test_far_out_the_first_terms_remain(a: float) -> None:
    assert excess(a) * a * a == pytest.approx(1.0, rel=3.1 / a**2)
    assert mills_ratio(a) * a == pytest.approx(1.0, rel=1.1 / a**2)
