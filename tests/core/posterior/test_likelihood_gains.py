"""The Laplace approximation, and gains about mean rewards, against plain NumPy."""

import numpy as np
import pytest

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.likelihood import mean_of, mean_slope, variance_of
from sightline.core.model import bandit_model
from sightline.core.persistence import check_consistency
from sightline.core.posterior.gaussian import draw_parameter, posterior_for
from sightline.policies.base import update
from sightline.policies.bayesian_ids import BayesianIDS, bayesian_mixture
from tests import naive_likelihood_rivals, naive_likelihoods
from tests.core.estimation.test_likelihood import LIKELIHOODS, draw
from tests.marks import without_compilation

pytestmark = without_compilation

X = np.array([[1.0, 0.0], [0.6, 0.8], [-0.3, 0.9], [-0.7, -0.7], [0.2, -1.1], [0.1, 0.1]])
THETA = np.array([0.3, -0.6])


@pytest.mark.parametrize("likelihood", LIKELIHOODS)
def test_slopes_of_means_and_variances_follow_from_the_likelihood(likelihood: str) -> None:
    for u in (0.1, 0.3, 0.8):
        low, high = (mean_of(LIKELIHOODS[likelihood], u + h) for h in (-1e-6, 1e-6))
        assert mean_slope(LIKELIHOODS[likelihood], u) == pytest.approx(
            (high - low) / 2e-6, rel=1e-6
        )
        m = float(naive_likelihoods.mean(likelihood, np.array(u)))
        expected = {"gaussian": 1.0, "poisson": m}.get(likelihood, m * (1.0 - m))
        assert variance_of(LIKELIHOODS[likelihood], u) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
def test_draws_have_the_mean_and_the_covariance_of_the_fit(likelihood: str) -> None:
    rng = np.random.default_rng(3)
    posterior = posterior_for(bandit_model(X, likelihood=LIKELIHOODS[likelihood]), 2.0)
    arms = rng.integers(len(X), size=80)
    ys = np.array(
        [draw(likelihood, m, rng) for m in naive_likelihoods.mean(likelihood, X[arms] @ THETA)]
    )
    for arm, y in zip(arms, ys, strict=True):
        from sightline.core.posterior.gaussian import absorb

        absorb(posterior, arm, y)
    check_consistency(posterior)
    theta = naive_likelihoods.fit(likelihood, X[arms], ys, 0.25, np.zeros(2))
    H = naive_likelihoods.hessian(likelihood, X[arms], theta, 0.25)
    draws = np.zeros((20_000, 2))
    for one in draws:
        draw_parameter(posterior, 1.0, one, rng)
    np.testing.assert_allclose(draws.mean(axis=0), theta, atol=0.02)
    np.testing.assert_allclose(np.cov(draws.T) @ H, np.eye(2), atol=0.06)


@pytest.mark.parametrize("n", [0, 5, 60])
@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
def test_gaps_and_gains_are_those_of_the_samples(likelihood: str, n: int) -> None:
    rng = np.random.default_rng(n)
    state = BayesianIDS(samples=2000).start(bandit_model(X, likelihood=LIKELIHOODS[likelihood]))
    arms = rng.integers(len(X), size=n)
    ys = np.array(
        [draw(likelihood, m, rng) for m in naive_likelihoods.mean(likelihood, X[arms] @ THETA)]
    )
    for arm, y in zip(arms, ys, strict=True):
        update(state, clock_at(1), int(arm), y)
    mixture = bayesian_mixture(state, ALL_ARMS)
    theta = naive_likelihoods.fit(likelihood, X[arms], ys, 1.0, np.zeros(2))
    H = naive_likelihoods.hessian(likelihood, X[arms], theta, 1.0)
    half = state.source.eta.transpose(0, 2, 1).reshape(-1, 2)[:1000].astype(np.float64)
    eta = np.vstack([half, -half])
    samples = theta + np.linalg.solve(np.linalg.cholesky(H).T, eta.T).T
    gaps, gains, shares = naive_likelihood_rivals.gains_of_mean_rewards(
        likelihood, X, theta, samples
    )
    found = np.zeros(len(X))
    found[state.cells.vertices] = state.cells.probabilities
    np.testing.assert_allclose(found, shares, atol=1e-3)
    scale = {"logistic": 1.0, "poisson": 10.0}[likelihood]
    np.testing.assert_allclose(state.gaps, gaps, atol=2e-3 * scale)
    np.testing.assert_allclose(state.gains, gains, rtol=0.02, atol=1e-3)
    assert mixture.first in range(len(X))
