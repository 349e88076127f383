"""Thompson sampling against the posterior from all data at once, and its draws as draws."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import FixedBeta, LinearBandit, LogDet, LogLog, ThompsonSampling, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, update
from sightline.policies.thompson import ThompsonState
from sightline.problems import end_of_optimism, unit_sphere
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_variants
from tests.naive import Array

PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "sphere": unit_sphere(6, 3, 0.3, seed=4),
    "fewer arms than dimensions": unit_sphere(2, 4, 1.0, seed=5),
}
seeds = st.integers(0, 2**32 - 1)


def every_round(
    problem: LinearBandit, policy: ThompsonSampling, rounds: int, seed: int
) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def assert_same_arms(problem: LinearBandit, prior_std: float, rounds: int, seed: int) -> None:
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    truth = naive.thompson(world, prior_std, rounds)
    run = every_round(problem, ThompsonSampling(prior_std), rounds, seed)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"


@pytest.mark.parametrize("prior_std", [1.0, 0.1, 30.0])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, prior_std: float) -> None:
    assert_same_arms(problem, prior_std, rounds=300, seed=8)


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once_for_long(problem: LinearBandit) -> None:
    assert_same_arms(problem, 1.0, rounds=4000, seed=9)


def learned(
    actions: Array, noise_std: float, prior_std: float
) -> tuple[ThompsonState, Array, Array]:
    """Return a state after some data, and the posterior precision and moment they imply."""
    rng = np.random.default_rng(2)
    state = ThompsonSampling(prior_std).start(bandit_model(actions, noise_std))
    arms = rng.integers(len(actions), size=12)
    rewards = actions[arms] @ np.array([0.5, -1.0]) + noise_std * rng.standard_normal(12)
    for t, arm in enumerate(arms.tolist()):
        update(state, clock_at(t + 1), arm, float(rewards[t]))
    return state, *naive.posterior(actions[arms], rewards, noise_std, prior_std)


ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [-0.3, 0.9]])


def test_posterior_precision_and_moment() -> None:
    state, P, b = learned(ARMS, noise_std=0.4, prior_std=2.0)
    factor = np.triu(state.posterior.factor)
    np.testing.assert_allclose(factor.T @ factor, P, rtol=1e-13)
    np.testing.assert_allclose(factor.T @ state.posterior.whitened, b, rtol=1e-13)


@pytest.mark.parametrize("draws", [4000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_draws_have_the_mean_and_covariance_of_the_posterior(draws: int) -> None:
    """Within 4 standard errors, at a fixed seed: a wrong mean or scale is off by many more."""
    state, P, b = learned(ARMS, noise_std=0.4, prior_std=2.0)
    rng = np.random.default_rng(0)
    clock = clock_at(1)
    thetas = np.empty((draws, 2))
    for i in range(draws):
        choose(state, clock, ALL_ARMS, rng)
        thetas[i] = state.draw  # where the draw behind the choice is left
    covariance = naive.inverse(P)
    variances = np.diag(covariance)
    error = thetas.mean(axis=0) - naive.solve(P, b)
    assert np.all(np.abs(error) < 4.0 * np.sqrt(variances / draws))
    # a covariance of n Gaussian draws has variance (C_ii C_jj + C_ij^2) / n
    spread = np.sqrt((np.outer(variances, variances) + covariance**2) / draws)
    assert np.all(np.abs(np.cov(thetas.T) - covariance) < 4.0 * spread)


def test_arms_are_played_as_often_as_they_are_best() -> None:
    """Probability matching in the plane, where P(arm is best) is an angle of the prior."""
    draws = 3000
    angles = np.array([0.0, 0.5, 2.0, 3.5])
    actions = np.column_stack([np.cos(angles), np.sin(angles)])
    state = ThompsonSampling(3.0).start(bandit_model(actions))
    rng, clock = np.random.default_rng(1), clock_at(1)
    arms = [choose(state, clock, ALL_ARMS, rng).arm for _ in range(draws)]
    # unit arms: the nearest in angle is best, and the prior is round
    turns = np.diff(np.concatenate([angles, [angles[0] + 2 * math.pi]]))
    shares = (turns + np.roll(turns, 1)) / (4 * math.pi)
    counts = np.bincount(arms, minlength=4) / draws
    assert np.all(np.abs(counts - shares) < 4.0 * np.sqrt(shares * (1 - shares) / draws))


@settings(deadline=None, max_examples=20)
@given(seeds)
def test_names_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions, theta, order = rng.standard_normal((5, 3)), rng.standard_normal(3), rng.permutation(5)
    policy = ThompsonSampling()
    one = every_round(LinearBandit(actions, theta, 0.3), policy, 100, seed=1)
    other = every_round(LinearBandit(actions[order], theta, 0.3), policy, 100, seed=1)
    np.testing.assert_array_equal(one.pulls[:, order], other.pulls)


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((5, 3)), rng.standard_normal(3)
    one = every_round(LinearBandit(actions, theta, 0.25), ThompsonSampling(1.5), 100, seed=1)
    other = LinearBandit(actions, c * theta, c * 0.25)
    two = every_round(other, ThompsonSampling(1.5 * c), 100, seed=1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


INFLATED: dict[str, tuple[ThompsonSampling, dict[str, object]]] = {
    "agrawal-goyal": (ThompsonSampling(inflation="agrawal-goyal"), {}),
    "abeille-lazaric": (ThompsonSampling(inflation="abeille-lazaric"), {}),
    "abeille-lazaric, tuned": (
        ThompsonSampling(0.5, "abeille-lazaric", LogDet(norm_bound=2.0, factor=0.3)),
        {"norm_bound": 2.0, "factor": 0.3},
    ),
    "abeille-lazaric, log-log": (
        ThompsonSampling(3.0, "abeille-lazaric", LogLog()),
        {"kind": "log-log"},
    ),
    "abeille-lazaric, fixed": (
        ThompsonSampling(1.0, "abeille-lazaric", FixedBeta(0.7)),
        {"kind": "fixed", "fixed": 0.7},
    ),
    "fixed": (ThompsonSampling(2.0, 0.3), {}),
}


@pytest.mark.parametrize("name", INFLATED)
@pytest.mark.parametrize("problem", ["end of optimism", "sphere"])  # whose arms span the space
def test_inflated_draws_as_all_data_at_once(problem: str, name: str) -> None:
    policy, coefficients = INFLATED[name]
    assert_inflated(PROBLEMS[problem], policy, coefficients)


def assert_inflated(
    problem: LinearBandit, policy: ThompsonSampling, coefficients: dict[str, object]
) -> None:
    noise_std = problem.model.noise_std
    assert policy.prior_std is not None
    regulariser = (noise_std / policy.prior_std) ** 2
    beta = naive.Beta(noise_std=noise_std, regulariser=regulariser, **coefficients)  # type: ignore[arg-type]
    world = naive.World(problem.actions, problem.theta, noise_std, *streams(8))
    truth = naive_variants.inflated_thompson(world, policy.inflation, beta, 300)
    run = every_round(problem, policy, 300, 8)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"


def test_no_inflation_is_the_posterior_itself() -> None:
    problem = PROBLEMS["sphere"]
    one, two = (every_round(problem, ThompsonSampling(inflation=v), 200, 1) for v in ("none", 1.0))
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.parametrize("rule", ["agrawal-goyal", "abeille-lazaric"])
def test_dimensions_without_arms_do_not_inflate(rule: str) -> None:
    """The spread of draws depends on the span of the arms, not on how they are written."""
    flat, wide = (
        PROBLEMS["sphere"].actions,
        np.hstack([PROBLEMS["sphere"].actions, np.zeros((6, 4))]),
    )
    spreads = []
    for actions in (flat, wide):
        state = ThompsonSampling(inflation=rule).start(bandit_model(actions, 0.3))
        update(state, clock_at(1), 2, 1.0)
        rng = np.random.default_rng(0)
        thetas = []
        for _ in range(3000):
            choose(state, clock_at(50), ALL_ARMS, rng)
            thetas.append(state.draw[0])
        spreads.append(np.std(thetas))
    # a standard deviation from n draws has relative error 1 / sqrt(2 n)
    assert abs(spreads[1] / spreads[0] - 1.0) < 4 * math.sqrt(2 / (2 * 3000))
