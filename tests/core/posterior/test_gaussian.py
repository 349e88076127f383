"""The Gaussian posterior, one observation at a time, against that from all data at once."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import ALL_ARMS
from sightline.core.posterior.gaussian import absorb, best_under, gaussian_posterior, posterior_mean
from tests import naive
from tests.core.posterior.helpers import posterior_of

seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.integers(0, 30))
def test_posterior_of_all_data(seed: int, k: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    actions, arms, rewards = (
        rng.standard_normal((k, d)),
        rng.integers(k, size=n),
        rng.normal(size=n),
    )
    posterior = posterior_of(actions, arms, rewards, noise_std=0.4)
    P, b = naive.posterior(actions[arms], rewards, 0.4, 1.5)
    R = np.triu(posterior.factor)
    np.testing.assert_allclose(R.T @ R, P, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(R.T @ posterior.whitened, b, rtol=1e-12, atol=1e-12)
    theta = np.zeros(d)
    posterior_mean(posterior, theta)
    np.testing.assert_allclose(theta, naive.solve(P, b), rtol=1e-9, atol=1e-9)
    assert best_under(posterior, theta, ALL_ARMS) == np.argmax(actions @ theta)


def test_equal_means_go_to_the_first() -> None:
    twins, basis = np.array([[0.0], [1.0], [1.0]]), np.eye(3)
    assert best_under(gaussian_posterior(twins, twins, 1.0, 1.0), np.ones(1), ALL_ARMS) == 1
    assert best_under(gaussian_posterior(basis, basis, 1.0, 1.0), np.zeros(3), ALL_ARMS) == 0


@settings(deadline=None, max_examples=30)
@given(seeds, st.integers(1, 6), st.integers(1, 4), st.integers(0, 30))
def test_posterior_of_observations_that_are_no_rewards(seed: int, k: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    actions, rows = rng.standard_normal((k, d)), rng.standard_normal((k, d))
    arms, outcomes = rng.integers(k, size=n), rng.normal(size=n)
    posterior = gaussian_posterior(actions, rows, 0.4, 1.5)
    for arm, outcome in zip(arms.tolist(), outcomes.tolist(), strict=True):
        absorb(posterior, arm, outcome)
    P, b = naive.posterior(rows[arms], outcomes, 0.4, 1.5)
    theta = np.zeros(d)
    posterior_mean(posterior, theta)
    np.testing.assert_allclose(theta, naive.solve(P, b), rtol=1e-9, atol=1e-9)
    assert best_under(posterior, theta, ALL_ARMS) == np.argmax(actions @ theta)
