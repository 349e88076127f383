"""Models of bandits: what noise levels make of observations, and levels that make no sense."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.model import Model, bandit_model, common_noise, valid_noise_std

ARMS = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 0.5]])
levels_of_three = st.lists(st.floats(1e-3, 1e3), min_size=3, max_size=3)


@pytest.mark.parametrize("level", [1.0, 0.3, 2, np.float64(0.1)])
def test_equal_levels_are_a_single_number(level: float) -> None:
    single, several = bandit_model(ARMS, level), bandit_model(ARMS, np.full(3, level))
    assert single.noise_std == several.noise_std == level
    assert type(several.noise_std) is float
    assert valid_noise_std(np.full(3, level), 3) == valid_noise_std(level, 3) == level
    for model in (single, several):
        assert model.shows_rewards
        assert np.shares_memory(model.rewards, model.observations)
        assert model.observations_per_round == 1
        assert model.weights is not None
        np.testing.assert_array_equal(model.weights, 1.0)
        np.testing.assert_array_equal(model.observations[:, 0], ARMS)


@settings(deadline=None)
@given(levels_of_three)
def test_the_noisiest_arm_weighs_one(levels: list[float]) -> None:
    model = bandit_model(ARMS, levels)
    assert model.weights is not None
    assert model.weights.min() == 1.0
    np.testing.assert_allclose(model.weights * levels, model.noise_std, rtol=1e-14)
    np.testing.assert_array_equal(model.rewards, ARMS)
    np.testing.assert_array_equal(model.observations[:, 0], model.weights[:, None] * ARMS)
    assert model.noise_std == max(levels)


@settings(deadline=None)
@given(levels_of_three, st.floats(1e-3, 1e3))
def test_sigma_scales_with_the_levels(levels: list[float], factor: float) -> None:
    one, other = bandit_model(ARMS, levels), bandit_model(ARMS, factor * np.array(levels))
    assert other.noise_std == pytest.approx(factor * one.noise_std, rel=1e-14)
    assert one.weights is not None
    assert other.weights is not None
    np.testing.assert_allclose(one.weights, other.weights, rtol=1e-14)


@pytest.mark.parametrize("size", [1e-70, 1e-50, 1e50, 2e69])
def test_levels_of_any_size(size: float) -> None:
    levels = size * np.array([1.0, 2.0, 4.0])
    assert common_noise(levels) == 4.0 * size
    model = bandit_model(ARMS, levels)
    assert model.weights is not None
    assert model.weights.tolist() == [4.0, 2.0, 1.0]


def test_levels_that_differ_are_no_rewards() -> None:
    model = bandit_model(ARMS, [1.0, 2.0, 1.0])
    assert not model.shows_rewards
    assert not np.shares_memory(model.rewards, model.observations)


def test_a_model_owns_its_arrays() -> None:
    actions, levels = ARMS.copy(), np.array([1.0, 2.0, 1.0])
    model = bandit_model(actions, levels)
    actions[:], levels[:] = math.nan, math.nan
    np.testing.assert_array_equal(model.rewards, ARMS)
    assert np.isfinite(model.observations).all()
    assert np.isfinite(model.noise_std)


@pytest.mark.parametrize(
    ("noise_std", "message"),
    [
        ([1.0, 2.0], r"noise_std must have shape \(3\), one noise level per arm, got \(2,\)"),
        ([1.0] * 4, r"noise_std must have shape \(3\), one noise level per arm, got \(4,\)"),
        ([], r"noise_std must have shape \(3\), one noise level per arm, got \(0,\)"),
        (np.ones((3, 1)), r"noise_std must have shape \(3\), one noise .* got \(3, 1\)"),
        (np.ones((1, 3)), r"noise_std must have shape \(3\), one noise .* got \(1, 3\)"),
        ([1.0, 0.0, 1.0], r"noise_std must be > 0 for every arm, got 0\.0 for arm 1"),
        ([1.0, 1.0, -2.0], r"noise_std must be > 0 for every arm, got -2\.0 for arm 2"),
        ([1.0, math.nan, 1.0], r"noise_std must be finite, got nan at index \(1,\)"),
        ([math.inf, 1.0, 1.0], r"noise_std must be finite, got inf at index \(0,\)"),
        (["low", "low", "high"], "noise_std must be an array of real numbers"),
        ([1.0, 1.0j, 1.0], "noise_std must be an array of real numbers"),
        (0.0, "noise_std must be finite and > 0, got 0.0"),
        (-1.0, "noise_std must be finite and > 0, got -1.0"),
        (math.nan, "noise_std must be finite and > 0, got nan"),
        (math.inf, "noise_std must be finite and > 0, got inf"),
        ("0.1", "noise_std must be a number, got '0.1'"),
        (None, "noise_std must be a number, got None"),
        (True, "noise_std must be a number, got True"),
    ],
)
def test_levels_that_make_no_sense(noise_std: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bandit_model(ARMS, noise_std)


def test_policies_may_ask_for_weights() -> None:
    model = bandit_model(ARMS, [1.0, 2.0, 1.0])
    assert model.needs_weights("LinMED") is model.weights
    blind = Model(ARMS, np.ones((3, 2, 2)), 1.0, None)
    assert blind.observations_per_round == 2
    assert not blind.shows_rewards
    with pytest.raises(ValueError, match="LinMED needs outcomes that are noisy rewards"):
        blind.needs_weights("LinMED")


def test_levels_that_would_overflow_are_refused() -> None:
    with pytest.raises(ValueError, match="noise_std must not be so different between arms"):
        bandit_model(ARMS, [1e-60, 1.0, 1e60])
