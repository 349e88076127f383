"""Scores of Student's distribution, and what is learned about the noise."""

import math

import numpy as np
import pytest
from scipy.stats import norm, t

from sightline.core.estimate import LeastSquares, estimated_noise
from sightline.core.least_squares import least_squares, observe
from sightline.core.model import bandit_model
from sightline.core.posterior.losses import noise_level, score
from tests.naive import Array


def learned(seed: int, n: int) -> tuple[LeastSquares, Array, Array]:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((4, 3))
    noise = estimated_noise(0.5, 1.0)
    estimate = least_squares(bandit_model(actions, 0.5), 0.1, noise=noise)
    arms = rng.integers(0, 4, n)
    rewards = actions[arms] @ [1.0, -0.5, 0.2] + 2.0 * rng.standard_normal(n)
    for arm, reward in zip(arms, rewards, strict=True):
        observe(estimate, int(arm), float(reward))
    return estimate, actions[arms], rewards


def test_the_level_is_the_residual_sum_of_squares_of_ridge_regression() -> None:
    estimate, X, y = learned(0, 60)
    theta = np.linalg.solve(X.T @ X + 0.1 * np.eye(3), X.T @ y)
    total = ((y - X @ theta) ** 2).sum() + 0.1 * theta @ theta
    assert noise_level(estimate) ** 2 == pytest.approx((0.25 + total) / 61.0, rel=1e-9)
    assert noise_level(estimate) == pytest.approx(2.0, rel=0.3)  # the guess was 0.5


@pytest.mark.parametrize("n", [3, 10, 100])
@pytest.mark.parametrize("a", [0.5, 2.0, 6.0])
def test_the_score_is_a_normal_quantile_of_the_same_probability(n: int, a: float) -> None:
    estimate, _, _ = learned(1, n)
    found, slope = score(estimate.noise, a)
    truth = norm.isf(t(n + 1).sf(a))
    assert found == pytest.approx(truth, rel=0.006 if n > 3 else 0.02)
    h = 1e-6
    ahead, behind = (score(estimate.noise, a * (1.0 + sign * h))[0] for sign in (1, -1))
    assert slope == pytest.approx((ahead - behind) / (2.0 * h), rel=1e-6)


def test_known_noise_has_nothing_to_learn() -> None:
    estimate = least_squares(bandit_model(np.eye(2), 0.3), 0.1)
    observe(estimate, 0, 5.0)
    assert score(estimate.noise, 1.5) == (1.5, 1.5)
    assert noise_level(estimate) == 0.3


def test_scores_at_the_ends() -> None:
    estimate, _, _ = learned(2, 5)
    assert score(estimate.noise, 0.0) == (0.0, 0.0)
    assert math.isfinite(score(estimate.noise, 1e100)[0])
