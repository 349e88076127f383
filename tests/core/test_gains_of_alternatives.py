"""Information gains against double loops over arms and alternatives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import ALL_ARMS
from sightline.core.alternatives import BLOCK
from sightline.core.estimate import LeastSquares
from sightline.core.gains import INFORMATION, NEGLIGIBLE_WEIGHT, Round, information_gains
from sightline.core.gaps import optimistic_arm
from sightline.core.least_squares import best_arm, least_squares, noise_variance, update_seen_widths
from sightline.core.model import Model, bandit_model
from sightline.core.projections import projections
from tests import naive, naive_observations
from tests.core.helpers import random_fed, round_of, shifts_of
from tests.core.observations import Told, random_told, told
from tests.marks import without_compilation
from tests.naive import Array
from tests.naive_projection import nearest_alternative

seeds = st.integers(0, 2**32 - 1)
sizes = {"k": st.integers(2, 9), "d": st.integers(1, 5), "n": st.integers(1, 80)}
both_gains = pytest.mark.parametrize("information", ["halfspace", "halfspace-ucb"])


def compiled_round(estimate: LeastSquares, beta: float, rate: float, information: str) -> Round:
    """Return a round whose gains have been written, with weights exp(-rate distance)."""
    round_ = round_of(estimate, beta=beta, learning_rate=2.0 * rate)
    information_gains(INFORMATION[information].rule, round_, round_.work.gains)
    return round_


def compiled_gains(estimate: LeastSquares, beta: float, rate: float, information: str) -> Array:
    return compiled_round(estimate, beta, rate, information).work.gains


@both_gains
@settings(deadline=None)
@given(seed=seeds, beta=st.floats(0.01, 100.0), eta=st.floats(0.01, 10.0), **sizes)
def test_gain_is_the_double_sum(
    information: str, seed: int, beta: float, eta: float, k: int, d: int, n: int
) -> None:
    estimate, theta, V = random_fed(seed, k, d, n)
    actions, xhat = estimate.arms.rewards, best_arm(estimate)
    shifts, distances = naive.alternatives(actions, theta, V, xhat)
    q = naive.mixing_weights(distances, eta, 1.0)
    optimism = naive.corrections(actions, theta, V, beta, information)
    truth = naive.information_gain(actions, shifts, q, optimism, xhat)
    ours = compiled_gains(estimate, beta, 0.5 * eta, information)
    # rounding of distances enters the weights multiplied by eta r <= 1e4
    np.testing.assert_allclose(ours, truth, rtol=1e-8, atol=1e-10 * truth.max())


def unpruned(round_: Round, optimism: Array) -> Array:
    """Return the double sum with the kernel's own weights and shifts: no other rounding."""
    estimate, xhat = round_.estimate, round_.comparison.best
    shifts = shifts_of(round_.alternatives, estimate, round_.comparison)
    weights = round_.work.weights
    return naive.information_gain(estimate.arms.rewards, shifts, weights, optimism, xhat)


@both_gains
@settings(deadline=None, max_examples=30)
@given(seed=seeds, rate=st.floats(0.1, 3.0), k=st.integers(4, 12))
def test_dropping_alternatives_changes_nothing(
    information: str, seed: int, rate: float, k: int
) -> None:
    # low noise and many observations: distances in the hundreds, so most weights are negligible
    estimate = random_fed(seed, k, 3, 300).estimate
    beta = 5.0
    round_ = compiled_round(estimate, beta, rate, information)
    optimism = np.sqrt(beta * np.maximum(estimate.arms.squared_widths, 0.0))
    if information == "halfspace-ucb":
        optimism[np.arange(k) != optimistic_arm(estimate, beta, ALL_ARMS)] = 0.0
    truth = unpruned(round_, optimism)
    np.testing.assert_allclose(round_.work.gains, truth, rtol=1e-13, atol=1e-13 * truth.max())


def test_some_weights_are_negligible_above() -> None:
    """The test above would be empty if every weight mattered."""
    round_ = compiled_round(random_fed(0, 12, 3, 300).estimate, 5.0, 3.0, "halfspace")
    assert 0 < np.count_nonzero(round_.work.weights < 1e-20) < 12


@both_gains
def test_before_any_data_only_optimism_informs(information: str) -> None:
    actions = np.array([[0.5, 0.0], [0.0, 2.0], [1.0, 0.0]])
    gains = compiled_gains(least_squares(bandit_model(actions), 1.0), 4.0, 1.0, information)
    # theta = 0: no shift at all; I = beta |x|^2 / 2, for the UCB arm alone or for all
    truth = [0.5, 8.0, 2.0] if information == "halfspace" else [0.0, 8.0, 0.0]
    np.testing.assert_allclose(gains, truth, rtol=1e-14)


@settings(deadline=None)
@given(seed=seeds, beta=st.floats(0.01, 100.0), **sizes)
def test_the_ucb_gain_is_the_smaller_and_equal_at_the_ucb_arm(
    seed: int, beta: float, k: int, d: int, n: int
) -> None:
    estimate = random_fed(seed, k, d, n).estimate
    everywhere = compiled_gains(estimate, beta, 0.5, "halfspace")
    at_ucb = compiled_gains(estimate, beta, 0.5, "halfspace-ucb")
    ucb = optimistic_arm(estimate, beta, ALL_ARMS)
    assert at_ucb[ucb] == pytest.approx(everywhere[ucb], rel=1e-12)
    assert np.all(at_ucb <= everywhere * (1 + 1e-12))
    assert np.all(everywhere >= 0.5 * beta * estimate.arms.squared_widths * (1 - 1e-12))


@pytest.mark.slow
@both_gains
def test_more_arms_than_are_weighed_at_once(information: str) -> None:
    estimate, theta, V = random_fed(4, 2 * BLOCK + 10, 3, 200)
    xhat, beta = best_arm(estimate), 3.0
    shifts, distances = naive.alternatives(estimate.arms.rewards, theta, V, xhat)
    q = naive.mixing_weights(distances, 0.02, 1.0)
    assert (q > NEGLIGIBLE_WEIGHT).sum() > BLOCK
    optimism = naive.corrections(estimate.arms.rewards, theta, V, beta, information)
    truth = naive.information_gain(estimate.arms.rewards, shifts, q, optimism, xhat)
    np.testing.assert_allclose(compiled_gains(estimate, beta, 0.01, information), truth, rtol=1e-8)


# --- outcomes that are not rewards --------------------------------------------------------------

RULES = {name: gain.rule for name, gain in INFORMATION.items()}
ETA = 0.6


def alternatives_of(case: Told, xhat: int, cells: bool) -> tuple[Array, Array]:
    """Return nu(z) - theta and r_z of half-spaces or cells, from the data."""
    rewards, theta, V = case.estimate.arms.rewards, case.theta, case.V
    if not cells:
        return naive.alternatives(rewards, theta, V, xhat)
    k, d = rewards.shape
    shifts, distances = np.zeros((k, d)), np.full(k, math.inf)
    for z in set(range(k)) - {xhat}:
        rivals = [i for i in range(k) if i != z]
        shift = nearest_alternative(rewards, theta, V, z, rivals, np.zeros((0, d)), np.zeros(0))
        assert shift is not None
        shifts[z], distances[z] = shift, shift @ V @ shift
    return shifts, distances


def gains_of(case: Told, beta: float, information: str, cells: bool) -> Array:
    """Return the gains by their formula, from the data."""
    rewards, noise_std = case.estimate.arms.rewards, math.sqrt(noise_variance(case.estimate))
    shifts, distances = alternatives_of(case, int(np.argmax(rewards @ case.theta)), cells)
    optimism = np.sqrt(beta * naive_observations.seen_widths(case.observations, case.V))
    if information in ("halfspace-ucb", "cell-ucb"):
        ucb = int(np.argmax(naive.ucb_scores(rewards, case.theta, case.V, beta)))
        optimism[np.arange(len(rewards)) != ucb] = 0.0
    elif information in ("plain", "laplace", "laplace-variance"):
        optimism[:] = 0.0
    eta = 1.0 if information.startswith("laplace") else ETA
    q = naive.mixing_weights(distances, eta, noise_std)
    if information == "laplace":
        q = q * np.where(np.isfinite(distances), distances, 0.0) / (2.0 * noise_std**2)
    return naive_observations.weighed(case.observations, shifts, q, optimism)


@without_compilation
@pytest.mark.parametrize(
    ("information", "cells"),
    [
        ("halfspace", False),
        ("halfspace-ucb", False),
        ("plain", False),
        ("cell", True),
        ("cell-ucb", True),
        ("laplace", True),
        ("laplace-variance", True),
    ],
)
@pytest.mark.parametrize("per_arm", [1, 2])
@settings(deadline=None, max_examples=25)
@given(seed=seeds, beta=st.floats(0.1, 10.0), k=st.integers(3, 6), n=st.integers(1, 40))
def test_gains_of_what_is_seen(
    information: str, cells: bool, per_arm: int, seed: int, beta: float, k: int, n: int
) -> None:
    case = random_told(seed, k, 3, n, per_arm)
    alternatives = projections(k, 3, True, np.zeros((0, 3)), np.zeros(0)) if cells else None
    update_seen_widths(case.estimate)  # as `gains_on_offer` does
    round_ = round_of(case.estimate, alternatives=alternatives, beta=beta, learning_rate=ETA)
    gains = np.full(k, math.nan)
    information_gains(RULES[information], round_, gains)
    truth = gains_of(case, beta, information, cells)
    np.testing.assert_allclose(gains, truth, rtol=1e-7, atol=1e-9 * truth.max())


@without_compilation
def test_rewards_are_the_case_of_weights_one() -> None:
    """The same arms and data, once as rewards and once as rows of their own: the same gains."""
    rng = np.random.default_rng(6)
    bandit = bandit_model(rng.standard_normal((5, 3)), 0.7)
    rows = Model(bandit.rewards, bandit.observations.copy(), 0.7, np.ones(5))
    assert bandit.shows_rewards
    assert not rows.shows_rewards
    data = rng.integers(5, size=40), rng.standard_normal((40, 1))
    for information in ("halfspace", "halfspace-ucb", "plain"):
        both = []
        for model in (bandit, rows):
            round_ = round_of(told(model, 1.0, *data).estimate, beta=2.0)
            information_gains(RULES[information], round_, round_.work.gains)
            both.append(round_.work.gains)
        np.testing.assert_allclose(both[0], both[1], rtol=1e-12, err_msg=information)
