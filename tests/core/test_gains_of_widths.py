"""Gains on widths against the determinants and widths after the observation itself."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.gains import INFORMATION, information_gains
from sightline.core.model import Model
from tests import naive, naive_family, naive_observations
from tests.core.helpers import random_fed, round_of
from tests.core.observations import Told, random_model, random_outcomes, random_told, told
from tests.marks import thorough, without_compilation
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
sizes = {"k": st.integers(2, 8), "d": st.integers(1, 4), "n": st.integers(1, 60)}
every_gain = pytest.mark.parametrize("information", ["log-det", "ucb-directed", "directed"])


def gains_of(case: Told, beta: float, information: str) -> Array:
    round_ = round_of(case.estimate, beta=beta)
    gains = np.full(len(case.observations), math.nan)
    information_gains(INFORMATION[information].rule, round_, gains)
    return gains


def exact(case: Told, beta: float, information: str) -> Array:
    """Return by how much log det V would grow, or the log of a squared width would fall."""
    rewards, theta, V = case.estimate.arms.rewards, case.theta, case.V
    if information == "log-det":
        return naive_observations.log_det_growth(case.observations, V)
    if information == "ucb-directed":
        direction = rewards[np.argmax(naive.ucb_scores(rewards, theta, V, beta))]
    else:
        direction = naive_family.plausible_direction(rewards, theta, V, beta)
    return naive_observations.log_shrinkage(case.observations, V, direction)


def test_what_is_registered() -> None:
    assert INFORMATION["log-det"].any_horizon
    assert not INFORMATION["ucb-directed"].any_horizon
    assert INFORMATION["directed"].any_horizon


@every_gain
@settings(deadline=None, max_examples=50)
@given(seed=seeds, beta=st.floats(0.01, 100.0), **sizes)
def test_gains_of_rewards(information: str, seed: int, beta: float, k: int, d: int, n: int) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    case = Told(estimate, estimate.arms.rewards[:, None, :], theta, V)
    truth = exact(case, beta, information)
    np.testing.assert_allclose(gains_of(case, beta, information), truth, rtol=1e-8, atol=1e-10)


@without_compilation
@every_gain
@settings(deadline=None, max_examples=50)
@given(seed=seeds, beta=st.floats(0.01, 100.0), per_arm=st.integers(1, 4), **sizes)
def test_gains_of_what_else_is_seen(
    information: str, seed: int, beta: float, k: int, d: int, n: int, per_arm: int
) -> None:
    case = random_told(seed, k, d, n, per_arm)
    truth = exact(case, beta, information)
    np.testing.assert_allclose(gains_of(case, beta, information), truth, rtol=1e-8, atol=1e-10)


@without_compilation
@every_gain
def test_a_second_number_that_is_noise_tells_nothing(information: str) -> None:
    rng = np.random.default_rng(9)
    one = random_model(rng, 5, 3, 1)
    padded = np.concatenate([one.observations, np.zeros((5, 1, 3))], axis=1)
    model = Model(one.rewards, padded, one.noise_std, None)
    case = told(model, 1.0, *random_outcomes(rng, model, 30))
    truth = exact(case, 3.0, information)
    np.testing.assert_allclose(gains_of(case, 3.0, information), truth, rtol=1e-9, atol=1e-12)


@without_compilation
@every_gain
def test_an_arm_that_shows_nothing_tells_nothing(information: str) -> None:
    rng = np.random.default_rng(10)
    plain = random_model(rng, 5, 3, 3)
    plain.observations[2] = 0.0
    case = told(plain, 1.0, *random_outcomes(rng, plain, 30))
    gains = gains_of(case, 3.0, information)
    assert gains[2] == 0.0
    assert np.delete(gains, 2).min() > 0.0


@thorough
@pytest.mark.slow
@every_gain
def test_compiled_gains_of_three_numbers(information: str) -> None:
    case = random_told(11, 6, 4, 40, per_arm=3)
    truth = exact(case, 3.0, information)
    np.testing.assert_allclose(gains_of(case, 3.0, information), truth, rtol=1e-9, atol=1e-12)
