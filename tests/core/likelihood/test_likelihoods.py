"""Likelihoods against their definitions, by differences and quadrature."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline import Bernoulli, Gaussian, Poisson
from sightline.core.likelihood import (
    GAUSSIAN,
    IDENTITY,
    LOGISTIC,
    POISSON,
    _divergence_by_quadrature,
    _excess_by_quadrature,
    curvature,
    divergence,
    excess,
    information,
    mean_of,
    slope,
)
from tests import naive_likelihoods
from tests.marks import without_compilation

pytestmark = without_compilation

LIKELIHOODS = {
    "gaussian": GAUSSIAN,
    "logistic": LOGISTIC,
    "poisson": POISSON,
    "identity": IDENTITY,
}
RANGES = {"gaussian": (-9.0, 9.0), "logistic": (-9.0, 9.0), "poisson": (-9.0, 4.0)}
every_likelihood = pytest.mark.parametrize("name", LIKELIHOODS)


def cost(name: str, m: float, v: float) -> float:
    """Negative log-likelihood of v per reward, for rewards with mean m."""
    if name == "logistic":
        return float(np.logaddexp(0.0, v) - m * v)
    return -float(naive_likelihoods.log_likelihood(name, np.array(m), np.array(v)))


def draws(name: str, count: int) -> Any:
    low, high = RANGES.get(name, (0.01, 0.99))
    return np.random.default_rng(1).uniform(low, high, size=(200, count))


@every_likelihood
def test_derivatives_are_those_of_the_cost(name: str) -> None:
    likelihood, h = LIKELIHOODS[name], 1e-5
    for v, m in zip(draws(name, 1)[:, 0], np.linspace(0.0, 1.0, 200), strict=True):
        first = (cost(name, m, v + h) - cost(name, m, v - h)) / (2 * h)
        assert slope(likelihood, m, v) == pytest.approx(first, rel=1e-6, abs=1e-6)
        second = (slope(likelihood, m, v + h) - slope(likelihood, m, v - h)) / (2 * h)
        assert curvature(likelihood, m, v) == pytest.approx(second, rel=1e-4, abs=1e-6)


@every_likelihood
def test_divergences_means_and_information(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    for u, v in draws(name, 2):
        pair = np.array([u]), np.array([v])
        assert mean_of(likelihood, u) == pytest.approx(
            naive_likelihoods.mean(name, pair[0])[0], rel=1e-13
        )
        truth = naive_likelihoods.kl(name, *pair)[0]
        assert divergence(likelihood, u, v - u) == pytest.approx(truth, rel=1e-9, abs=1e-12)
        assert information(likelihood, u) == pytest.approx(
            naive_likelihoods.information(name, pair[0])[0]
        )


@every_likelihood
@given(step=st.floats(-12.0, -3.0), sign=st.sampled_from([-1.0, 1.0]))
def test_close_predictors_lose_no_digits(name: str, step: float, sign: float) -> None:
    """d(u, u + h) is half the information times h^2, and a third-order term."""
    likelihood, h = LIKELIHOODS[name], sign * 10.0**step
    for u in draws(name, 1)[:20, 0]:
        scale = u * (1.0 - u) if name == "identity" else 1.0
        half = 0.5 * information(likelihood, u) * (h * scale) ** 2
        assert divergence(likelihood, u, h * scale) == pytest.approx(half, rel=2.0 * abs(h) + 1e-12)


@every_likelihood
def test_the_excess_bounds_the_mean_over_a_normal_likelihood(name: str) -> None:
    if name == "identity":
        pytest.skip("second order only, as its docstring says")
    likelihood = LIKELIHOODS[name]
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    for v, w in zip(draws(name, 1)[:, 0], np.linspace(0.0, 3.0, 200), strict=True):
        grown = sum(
            p * (cost(name, 0.3, v + w * z) - cost(name, 0.3, v))
            for p, z in zip(weights, nodes, strict=True)
        )
        assert excess(likelihood, v, w) >= grown - 1e-9 * (1.0 + abs(grown))
        if w < 0.1:  # and not by much: it is what the curvature says, up to the third order
            assert (
                excess(likelihood, v, w)
                <= 0.5 * curvature(likelihood, 0.3, v) * w * w * (1.0 + w) + 1e-12
            )


def test_extreme_predictors_stay_finite() -> None:
    for likelihood in LIKELIHOODS.values():
        for u in (-700.0, -60.0, 0.0, 60.0, 700.0):
            for value in (
                mean_of(likelihood, u),
                slope(likelihood, 0.5, u),
                divergence(likelihood, 0.3, u - 0.3),
                divergence(likelihood, u, 0.3 - u),
                divergence(likelihood, u, 60.0 - u),
            ):
                assert math.isfinite(value)
            assert curvature(likelihood, 0.5, u) >= 0.0


@every_likelihood
def test_no_divergence_is_negative(name: str) -> None:
    likelihood, rng = LIKELIHOODS[name], np.random.default_rng(2)
    for u in rng.normal(size=2_000) * 10.0 ** rng.uniform(-2.0, 2.0, size=2_000):
        assert divergence(likelihood, u, rng.normal() * 10.0 ** rng.uniform(-4.0, 2.0)) >= 0.0


def test_divergences_of_counts_grow_without_a_jump_at_the_largest() -> None:
    h = 1e-6
    for u in (40.0, 49.0, 50.0, 51.0, 200.0):
        below, above = (divergence(POISSON, u, 50.0 + e - u) for e in (-h, h))
        assert below <= above <= below + 3.0 * h * math.exp(50.0)


def test_beyond_the_edge_the_cost_is_a_parabola() -> None:
    likelihood, edge = IDENTITY, IDENTITY.edge
    for m in (0.2, 0.7):
        for v in (-0.5, 1.5):
            near = min(max(v, edge), 1.0 - edge)
            grown = slope(likelihood, m, near) * (v - near)
            grown += 0.5 * (v - near) ** 2 / (edge * (1.0 - edge))
            expected = divergence(likelihood, m, near - m) + grown
            assert divergence(likelihood, m, v - m) == pytest.approx(expected)
    assert mean_of(likelihood, 1.7) == 1.0 - edge
    assert mean_of(likelihood, -0.2) == edge


def test_without_an_edge_rates_of_zero_and_one_are_exact() -> None:
    exact = IDENTITY._replace(edge=0.0)
    assert divergence(exact, 0.0, 0.3) == pytest.approx(-math.log(0.7), rel=1e-15)
    assert divergence(exact, 1.0, -0.3) == pytest.approx(-math.log(0.7), rel=1e-15)
    assert divergence(exact, 0.5, 0.5) == math.inf
    assert information(exact, 0.0) == 1.0


@every_likelihood
def test_divergences_are_integrals_of_curvatures(name: str) -> None:
    """What a registration without a closed form has, for steps of all sizes."""
    likelihood = LIKELIHOODS[name]
    for u, v in draws(name, 2)[:50]:
        for step in (v - u, 1e-3 * (v - u), 1e-9 * (v - u)):
            expected = pytest.approx(divergence(likelihood, u, step), rel=1e-12)
            assert _divergence_by_quadrature(likelihood, u, step) == expected
    assert _divergence_by_quadrature(likelihood, 0.5, 0.0) == 0.0


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
def test_excesses_are_integrals_of_curvatures(name: str) -> None:
    likelihood = LIKELIHOODS[name]
    zs = np.linspace(-12.0, 12.0, 961)  # where the trapezoidal rule is exact to ten digits
    density = np.exp(-0.5 * zs**2) / math.sqrt(2.0 * math.pi) * (zs[1] - zs[0])
    for v, w in zip(draws(name, 1)[:40, 0], np.linspace(0.01, 4.0, 40), strict=True):
        m = float(naive_likelihoods.mean(name, np.array(v)))
        truth = density @ [cost(name, m, v + w * z) - cost(name, m, v) for z in zs]
        found = _excess_by_quadrature(likelihood, v, w)
        assert found == pytest.approx(truth, rel=1e-8)
        assert found <= excess(likelihood, v, w) * (1.0 + 1e-8)
        if name != "logistic":
            assert found == pytest.approx(excess(likelihood, v, w), rel=1e-8)


@pytest.mark.parametrize(
    ("family", "reward", "said"),
    [
        (Bernoulli(), 1.0, ""),
        (Bernoulli("identity"), 0.5, "must be 0 or 1"),
        (Poisson(), 7.0, ""),
        (Poisson(), -1.0, "whole number from 0"),
        (Poisson(), 0.5, "whole number from 0"),
        (Gaussian(0.3), -4.2, ""),
    ],
)
def test_what_can_be_a_reward(family: Any, reward: float, said: str) -> None:
    refusal = family.refusal(reward)
    assert said in refusal
    assert bool(said) == bool(refusal)


def test_bad_families() -> None:
    with pytest.raises(ValueError, match="link must be one of 'logistic', 'identity'"):
        Bernoulli("probit")
    with pytest.raises(ValueError, match="std must be"):
        Gaussian(0.0)
