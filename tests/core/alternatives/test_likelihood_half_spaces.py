"""Alternatives by likelihood against SciPy, and against the closed form for a normal likelihood."""

import numpy as np
import pytest

from sightline.core.alternatives import compare, half_spaces
from sightline.core.least_squares import best_arm, least_squares, observe
from sightline.core.likelihood import POISSON
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.model import bandit_model
from tests import naive_likelihoods
from tests.core.estimation.test_likelihood import told
from tests.marks import without_compilation

pytestmark = without_compilation


@pytest.mark.parametrize("name", ["gaussian", "logistic", "poisson", "identity"])
@pytest.mark.parametrize("seed", range(4))
def test_nearest_parameters(name: str, seed: int) -> None:
    estimate, xs, _ = told(name, seed, n=80)
    alternatives, best = half_spaces_for(estimate), best_arm(estimate)
    assert isinstance(alternatives, LikelihoodHalfSpaces)
    comparison = compare(alternatives, estimate, best)
    plain = half_spaces(len(estimate.arms.means))
    compare(plain, estimate, best)
    theta, lam, arms = estimate.learned.theta, estimate.regulariser, estimate.arms.rewards
    assert comparison.least == alternatives.distances.min()
    for z in range(len(arms)):
        if z == best:
            assert alternatives.distances[z] == np.inf
            continue
        u = arms[best] - arms[z]
        nu = alternatives.parameters[z]
        assert u @ nu == pytest.approx(0.0, abs=1e-9)
        ours = naive_likelihoods.distance(name, xs, theta, nu, lam)
        if alternatives.distances[z] > max(16.0 * plain.distances.min(), 8.0):
            assert alternatives.distances[z] == plain.distances[z]  # too far to matter
            continue
        assert alternatives.distances[z] == pytest.approx(2.0 * ours, rel=1e-9)
        truth = naive_likelihoods.nearest(name, xs, theta, u, lam)
        least = naive_likelihoods.distance(name, xs, theta, truth, lam)
        assert ours <= least * (1.0 + 1e-9) + 1e-12
        np.testing.assert_allclose(nu, truth, atol=2e-4)


@pytest.mark.parametrize("seed", range(3))
def test_for_normal_rewards_they_are_in_closed_form(seed: int) -> None:
    estimate, best = told("gaussian", seed).estimate, 2
    ours = half_spaces_for(estimate)
    plain = half_spaces(6)
    # the arm must be the best for the half-spaces to be alternatives
    best = best_arm(estimate)
    compare(ours, estimate, best)
    compare(plain, estimate, best)
    np.testing.assert_allclose(ours.distances, plain.distances, rtol=1e-9)


@pytest.mark.parametrize("count", [1e20, 1e22, 1e31, 1e70])
def test_no_distance_is_negative_after_a_huge_count(count: float) -> None:
    """The estimate is then near or above the logarithm at which means are cut."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        actions = np.column_stack([np.ones(3), rng.standard_normal((3, 2))])
        estimate = least_squares(bandit_model(actions, likelihood=POISSON), 1e-3, reduce=False)
        for arm, reward in zip(rng.choice(3, size=6), [count, 1, 0, 3, count, 2], strict=True):
            observe(estimate, arm, reward)
            alternatives = half_spaces_for(estimate)
            compare(alternatives, estimate, best_arm(estimate))
            assert (alternatives.distances >= 0.0).all()
