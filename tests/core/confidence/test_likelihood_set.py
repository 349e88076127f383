"""Likelihood-ratio sets: the largest predictor against SciPy, and what must hold of it."""

import math

import numpy as np
import pytest

from sightline.policies.ofuglb import (
    LikelihoodSet,
    begin_set,
    highest_predictor,
    likelihood_set,
    loss_at,
)
from tests import naive_likelihood_rivals, naive_likelihoods
from tests.core.estimation.test_likelihood import Told, told
from tests.marks import without_compilation

pytestmark = without_compilation


def prepared(data: Told) -> LikelihoodSet:
    part = likelihood_set(*data.estimate.arms.rewards.shape)
    begin_set(part, data.estimate)
    return part


@pytest.mark.parametrize("radius", [0.1, 3.0, 40.0])
@pytest.mark.parametrize("likelihood", ["logistic", "poisson", "gaussian"])
def test_the_largest_predictor_is_that_of_scipy(likelihood: str, radius: float) -> None:
    data = told(likelihood, seed=5)
    estimate, part = data.estimate, prepared(data)
    seen, theta = estimate.arms.observations.fit, estimate.learned.theta
    for arm, x in enumerate(estimate.arms.rewards):
        found = highest_predictor(seen, part, estimate, arm, radius)
        expected = naive_likelihood_rivals.highest(
            likelihood, x, data.xs, theta, radius, estimate.regulariser
        )
        assert found - x @ theta == pytest.approx(expected - x @ theta, rel=2e-5)
        met = naive_likelihoods.distance(
            likelihood, data.xs, theta, theta + part.shift, estimate.regulariser
        )
        assert met == pytest.approx(radius, rel=1e-6)
        assert loss_at(seen, part, estimate, part.shift.copy()) == pytest.approx(met, rel=1e-8)


@pytest.mark.parametrize("radius", [0.1, 3.0, 40.0])
def test_for_normal_rewards_it_is_in_closed_form(radius: float) -> None:
    data = told("gaussian", seed=2)
    arms, part = data.estimate.arms, prepared(data)
    for arm in range(6):
        found = highest_predictor(arms.observations.fit, part, data.estimate, arm, radius)
        expected = arms.means[arm] + math.sqrt(2.0 * radius * arms.squared_widths[arm])
        assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("likelihood", ["logistic", "poisson", "identity"])
def test_it_is_finite_and_grows_with_the_radius_whatever_the_data(likelihood: str) -> None:
    for n in (0, 1, 2, 400):
        data = told(likelihood, seed=n, n=n, regulariser=0.01)
        part, seen = prepared(data), data.estimate.arms.observations.fit
        for arm in range(6):
            bounds = [
                highest_predictor(seen, part, data.estimate, arm, radius)
                for radius in (0.0, 1e-6, 1.0, 20.0, 500.0)
            ]
            assert np.isfinite(bounds).all()
            assert bounds[0] == data.estimate.arms.means[arm]
            assert (np.diff(bounds) > 0.0).all()
