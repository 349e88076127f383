"""Clicks and counts of new arms: one step per outcome, against its definition and the batch fit."""

import math

import numpy as np
import pytest

from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares, observe, show_arms
from sightline.core.likelihood import curvature, slope
from sightline.core.likelihood_fit import implicit_predictor
from sightline.core.model import stream_model
from sightline.core.persistence import check_consistency
from tests import naive_likelihood_rivals, naive_likelihoods
from tests.core.estimation.test_likelihood import LIKELIHOODS, draw
from tests.marks import without_compilation
from tests.naive import Array

pytestmark = without_compilation


def streamed(likelihood: str, xs: Array, ys: Array, regulariser: float) -> LeastSquares:
    """Return what is learned from one arm per round."""
    estimate = least_squares(
        stream_model(2, xs.shape[1], likelihood=LIKELIHOODS[likelihood]), regulariser
    )
    for x, y in zip(xs, ys, strict=True):
        show_arms(estimate, x[None], 0, 1)
        observe(estimate, 0, y)
    return estimate


def rewards_of(likelihood: str, n: int, theta: Array, seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    xs = rng.standard_normal((n, len(theta)))
    xs[:, 0] = 1.0
    means = naive_likelihoods.mean(likelihood, xs @ theta)
    return xs, np.array([draw(likelihood, m, rng) for m in means])


@pytest.mark.parametrize("likelihood", ["logistic", "poisson", "gaussian"])
def test_a_step_is_that_of_its_definition(likelihood: str) -> None:
    regulariser, theta = 0.7, np.zeros(3)
    xs, ys = rewards_of(likelihood, 40, np.array([-0.5, 0.4, 0.3]), seed=1)
    H = regulariser * np.eye(3)
    for n in range(len(xs)):
        theta, H = naive_likelihood_rivals.proximal_step(likelihood, theta, H, xs[n], ys[n])
    estimate = streamed(likelihood, xs, ys, regulariser)
    np.testing.assert_allclose(estimate.learned.theta, theta, atol=1e-5)
    np.testing.assert_allclose(estimate.learned.gram_inverse, np.linalg.inv(H), rtol=1e-4)
    growth = np.linalg.slogdet(H)[1] - 3 * math.log(regulariser)
    assert estimate.learned.log_det[0] == pytest.approx(growth, rel=1e-4)
    check_consistency(estimate)


def test_normal_outcomes_are_those_of_least_squares() -> None:
    xs, ys = rewards_of("gaussian", 300, np.array([0.2, 0.4, -0.3]), seed=2)
    plain = least_squares(stream_model(2, 3, 1.0), 0.5)
    for x, y in zip(xs, ys, strict=True):
        show_arms(plain, x[None], 0, 1)
        observe(plain, 0, y)
    estimate = streamed("gaussian", xs, ys, 0.5)
    np.testing.assert_allclose(estimate.learned.theta, plain.learned.theta, rtol=1e-12)
    ours, theirs = (one.arms.observations.stream for one in (estimate, plain))
    np.testing.assert_allclose(ours.factor, theirs.factor, rtol=1e-12)


@pytest.mark.parametrize(
    ("likelihood", "theta"),
    [
        ("logistic", [0.0, 0.5, -0.5]),
        ("logistic", [-3.5, 0.3, 0.3]),
        ("poisson", [-2.0, 0.3, 0.3]),
        ("poisson", [2.0, 0.3, -0.2]),
    ],
)
def test_it_ends_up_where_the_fit_to_all_data_is(likelihood: str, theta: list[float]) -> None:
    """Within a standard error, in the metric of the fit; and as sure, to a tenth or so."""
    xs, ys = rewards_of(likelihood, 5000, np.array(theta), seed=3)
    estimate = streamed(likelihood, xs, ys, 1.0)
    fit = naive_likelihoods.fit(likelihood, xs, ys, 1.0, np.array(theta))
    H = naive_likelihoods.hessian(likelihood, xs, fit, 1.0)
    away = estimate.learned.theta - fit
    assert math.sqrt(away @ H @ away) < 1.0
    np.testing.assert_allclose(estimate.learned.gram_inverse @ H, np.eye(3), atol=0.15)


@pytest.mark.parametrize("likelihood", ["logistic", "poisson", "identity"])
@pytest.mark.parametrize("width", [1e-8, 1.0, 1e4])
def test_the_equation_is_solved_whatever_it_is(likelihood: str, width: float) -> None:
    for outcome in (0.0, 1.0) if likelihood != "poisson" else (0.0, 3.0, 1e6):
        for u in (-30.0, -2.0, 0.3, 4.0, 30.0):
            v = implicit_predictor(LIKELIHOODS[likelihood], outcome, u, width)
            pull = width * slope(LIKELIHOODS[likelihood], outcome, v)
            error = (
                1e-13
                * (1.0 + width * curvature(LIKELIHOODS[likelihood], outcome, v))
                * (1.0 + abs(v))
            )
            assert v - u + pull == pytest.approx(0.0, abs=error + 1e-12 * abs(u))


def test_what_is_told_late_is_learned_through_the_last_row() -> None:
    xs, _ = rewards_of("logistic", 3, np.zeros(3), seed=4)
    early, late = (
        least_squares(stream_model(2, 3, likelihood=LIKELIHOODS["logistic"]), 1.0) for _ in range(2)
    )
    show_arms(early, xs[:2], 0, 2)
    observe(early, 1, 1.0)
    show_arms(late, xs[1:], 0, 2)
    show_arms(late, xs[1:2], 2, 3)
    observe(late, 2, 1.0)
    np.testing.assert_array_equal(early.learned.theta, late.learned.theta)
    ours, theirs = (one.arms.observations.stream for one in (early, late))
    np.testing.assert_array_equal(ours.factor, theirs.factor)


def test_only_failures_leave_it_finite() -> None:
    xs = np.tile([1.0, 0.5, -0.5], (3000, 1))
    estimate = streamed("logistic", xs, np.zeros(3000), 0.1)
    assert np.isfinite(estimate.learned.theta).all()
    assert estimate.learned.theta @ xs[0] < -3.0
