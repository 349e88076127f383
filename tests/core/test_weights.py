"""Weights of the alternatives against their formula."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.gains import mixing_weights
from tests import naive

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(
    distances=st.lists(st.floats(0.0, 1e6), min_size=1, max_size=8),
    noise_std=st.floats(0.01, 10.0),
    largest_m=st.floats(0.0, 1e6),
    rule=st.sampled_from(["paper", "algorithm"]),
)
def test_mixing_weights(
    distances: list[float], noise_std: float, largest_m: float, rule: str
) -> None:
    r = np.array([math.inf, *distances])
    eta = naive.learning_rate(len(r), largest_m, noise_std)
    rate = eta / noise_std**2 * (0.5 if rule == "paper" else 1.0)
    weights = np.zeros(len(r))
    mixing_weights(r, float(r.min()), rate, weights)
    assert weights[0] == 0.0
    assert weights.sum() == pytest.approx(1.0, rel=1e-14)
    # an exponent of size e carries an absolute error e 2^-53; beyond 745 the weight is zero
    truth = naive.mixing_weights(r, eta, noise_std, rule)
    np.testing.assert_allclose(weights, truth, rtol=1e-12, atol=1e-300)


@settings(deadline=None)
@given(seed=seeds, k=st.integers(2, 10), eta=st.floats(0.01, 100.0))
def test_soft_minimum(seed: int, k: int, eta: float) -> None:
    """m <= 1/2 sum q r <= m + log(k) / eta with the exponent of the text."""
    r = np.append(np.random.default_rng(seed).exponential(5.0, k - 1), math.inf)
    weights = np.zeros(k)
    mixing_weights(r, float(r.min()), 0.5 * eta, weights)
    mean = 0.5 * (weights[:-1] @ r[:-1])
    m = 0.5 * r.min()
    assert m * (1 - 1e-12) <= mean <= m + math.log(k) / eta + 1e-12
