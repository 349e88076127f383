"""The fit of clicks and counts against SciPy on single rewards, and what must hold of it."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from sightline.core import likelihood_fit as likelihood
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares, observe
from sightline.core.likelihood import GAUSSIAN, IDENTITY, LOGISTIC, POISSON
from sightline.core.model import bandit_model
from tests import naive, naive_likelihoods
from tests.marks import without_compilation
from tests.naive import Array

pytestmark = without_compilation

assert likelihood  # imported for what it registers

LIKELIHOODS: dict[str, Any] = {
    "gaussian": GAUSSIAN,
    "logistic": LOGISTIC,
    "poisson": POISSON,
    "identity": IDENTITY,
}


class Told(NamedTuple):
    """An estimate, and the single rewards it was told."""

    estimate: LeastSquares
    xs: Array
    ys: Array


def told(name: str, seed: int, n: int = 150, d: int = 3, regulariser: float = 0.7) -> Told:
    """Return an estimate of six arms after n rewards."""
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((6, d)), 0.5 * rng.standard_normal(d)
    if name == "identity":
        actions, theta = (
            np.abs(actions) / np.abs(actions).sum(axis=1, keepdims=True),
            0.2 + 0.5 * (rng.random(d)),
        )
    estimate = least_squares(
        bandit_model(actions, likelihood=LIKELIHOODS[name]), regulariser, reduce=False
    )
    arms = rng.choice(6, size=n, p=rng.dirichlet(np.ones(6)))
    means = naive_likelihoods.mean(name, actions @ theta)
    ys = np.array([draw(name, means[arm], rng) for arm in arms])
    for arm, y in zip(arms, ys, strict=True):
        observe(estimate, arm, y)
    return Told(estimate, actions[arms], ys)


def draw(name: str, mean: float, rng: np.random.Generator) -> float:
    if name == "gaussian":
        return mean + float(rng.standard_normal())
    return float(rng.poisson(mean)) if name == "poisson" else float(rng.random() < mean)


@pytest.mark.parametrize("name", LIKELIHOODS)
@pytest.mark.parametrize("seed", range(4))
def test_the_fit_is_that_of_all_single_rewards(name: str, seed: int) -> None:
    estimate, xs, ys = told(name, seed)
    lam, theta = estimate.regulariser, estimate.learned.theta
    start = theta + 0.01
    truth = naive_likelihoods.fit(name, xs, ys, lam, start)
    np.testing.assert_allclose(theta, truth, atol=2e-5)
    if name == "identity":  # whose curvature is that of the data, not of their mean
        return
    H = naive_likelihoods.hessian(name, xs, theta, lam)
    np.testing.assert_allclose(estimate.learned.gram_inverse, naive.inverse(H), rtol=1e-8)
    widths = np.array([naive.squared_norm(x, H) for x in estimate.arms.rewards])
    np.testing.assert_allclose(estimate.arms.squared_widths, widths, rtol=1e-8)
    worth = naive_likelihoods.information(name, estimate.arms.rewards @ theta)
    roots = estimate.arms.observations.fit.roots
    np.testing.assert_allclose(roots, np.sqrt(worth), rtol=1e-10)
    np.testing.assert_allclose(estimate.arms.seen_widths, worth * widths, rtol=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_with_a_normal_likelihood_it_is_least_squares(seed: int) -> None:
    estimate, xs, ys = told("gaussian", seed)
    plain = least_squares(bandit_model(estimate.arms.rewards), estimate.regulariser, reduce=False)
    for x, y in zip(xs, ys, strict=True):
        arm = int(np.flatnonzero((estimate.arms.rewards == x).all(axis=1))[0])
        observe(plain, arm, y)
    for part in ("theta", "gram_inverse", "log_det"):
        ours, theirs = getattr(estimate.learned, part), getattr(plain.learned, part)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
    for part in ("means", "squared_widths", "seen_widths"):
        np.testing.assert_allclose(
            getattr(estimate.arms, part), getattr(plain.arms, part), rtol=1e-9, atol=1e-12
        )


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson"])
@pytest.mark.parametrize("n", [3, 20, 200])
def test_the_mixture_is_bounded_from_below(name: str, n: int) -> None:
    """What enters confidence sets is at least the log of the integral that it stands for."""
    estimate, xs, ys = told(name, n, n=n, d=2)
    lam, theta = estimate.regulariser, estimate.learned.theta
    peak = naive_likelihoods.log_likelihood(name, ys, xs @ theta).sum() - 0.5 * lam * theta @ theta
    bound = peak - 0.5 * estimate.learned.log_det[0]
    truth = naive_likelihoods.log_evidence(name, xs, ys, lam, theta)
    assert bound <= truth + 1e-6
    assert truth - bound < (1e-6 if name == "gaussian" else 0.4)


@pytest.mark.parametrize("name", ["logistic", "identity", "poisson"])
@pytest.mark.parametrize("reward", [0.0, 1.0])
def test_separable_data_have_a_finite_estimate(name: str, reward: float) -> None:
    actions = np.array([[1.0, 0.0], [1.0, 1.0]])
    estimate = least_squares(bandit_model(actions, likelihood=LIKELIHOODS[name]), 0.1)
    for _ in range(300):
        for arm in range(2):
            observe(estimate, arm, reward)
    assert np.isfinite(estimate.learned.theta).all()
    assert np.isfinite(estimate.learned.gram_inverse).all()
    assert math.isfinite(estimate.learned.log_det[0])
    means = naive_likelihoods.mean(name, estimate.arms.means)
    assert np.abs(means - reward).max() < 0.02
