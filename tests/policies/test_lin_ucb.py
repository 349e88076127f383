"""LinUCB against the same rule with all data at once, and what must not change its choices."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import FixedBeta, LinearBandit, LinUCB, LogDet, LogLog, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, update
from sightline.problems import end_of_optimism, large_gaps
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_variants


def gaussian_arms(k: int, d: int, noise_std: float, seed: int) -> LinearBandit:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d)) / math.sqrt(d)
    return LinearBandit(actions, rng.standard_normal(d), noise_std)


PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.3),
    "plane": gaussian_arms(6, 2, 0.2, seed=1),
    "space": gaussian_arms(8, 4, 0.5, seed=2),
}
# coefficients of the policy beside those of the truth; the noise is that of the problem
CONFIGURATIONS = {
    "paper": (LinUCB(), naive.Beta()),
    "tuned": (
        LinUCB(LogDet(norm_bound=2.0, factor=0.3), regulariser=0.1),
        naive.Beta(factor=0.3, norm_bound=2.0, regulariser=0.1),
    ),
    "log-log": (
        LinUCB(LogLog(factor=2.0), regulariser=3.0),
        naive.Beta("log-log", factor=2.0, regulariser=3.0),
    ),
    "fixed": (LinUCB(FixedBeta(0.7)), naive.Beta("fixed", fixed=0.7)),
}
policies = st.sampled_from([policy for policy, _ in CONFIGURATIONS.values()])
seeds = st.integers(0, 2**32 - 1)


def every_round(problem: LinearBandit, policy: LinUCB, rounds: int, seed: int) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def assert_same_arms(
    problem: LinearBandit, policy: LinUCB, beta: naive.Beta, rounds: int, seed: int
) -> None:
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    truth = naive.lin_ucb(
        world, dataclasses.replace(beta, noise_std=problem.model.noise_std), rounds
    )
    run = every_round(problem, policy, rounds, seed)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.arange(1, rounds + 1))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, configuration: str) -> None:
    assert_same_arms(problem, *CONFIGURATIONS[configuration], rounds=200, seed=4)


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", ["end of optimism", "space"])
def test_same_arms_as_all_data_at_once_for_long(problem: str, configuration: str) -> None:
    assert_same_arms(PROBLEMS[problem], *CONFIGURATIONS[configuration], rounds=3000, seed=1)


@settings(deadline=None, max_examples=20)
@given(policies, seeds)
def test_rotation_and_names_change_nothing(policy: LinUCB, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = gaussian_arms(5, 3, 0.3, seed)
    rotation, order = np.linalg.qr(rng.standard_normal((3, 3)))[0], rng.permutation(5)
    turned = LinearBandit((problem.actions @ rotation)[order], problem.theta @ rotation, 0.3)
    one, other = (every_round(p, policy, 100, seed=1) for p in (problem, turned))
    np.testing.assert_array_equal(one.pulls[:, order], other.pulls)


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one = every_round(problem, LinUCB(LogDet(norm_bound=2.0)), 100, seed=1)
    two = every_round(other, LinUCB(LogDet(norm_bound=2.0 * c)), 100, seed=1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


# det V is an integer where arms and lambda are: these factors never meet a ratio of two exactly
@pytest.mark.parametrize("growth", [0.0973, 0.4517, 2.7183])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_rarely_switching_as_all_data_at_once(problem: LinearBandit, growth: float) -> None:
    rounds = 300
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(6))
    beta = naive.Beta(noise_std=problem.model.noise_std)
    truth, computed = naive_variants.rarely_switching(world, beta, growth, rounds)
    run = every_round(problem, LinUCB(switch_growth=growth), rounds, seed=6)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    # log det is at most d log(1 + n max |x|^2 / (d lambda)), and each computation but the first
    # takes its share of it
    d, longest = problem.d, float((problem.actions**2).sum(axis=1).max())
    most = 1 + d * math.log1p(rounds * longest / d) / math.log1p(growth)
    assert 1 < computed <= most


def test_a_held_arm_outlasts_evidence_against_it_and_then_yields() -> None:
    """Also if asked twice, or never told the reward of an arm."""
    state = LinUCB(switch_growth=2.9).start(bandit_model([[1.0, 0.0], [0.0, 0.9]], 0.1))
    rng = np.random.default_rng(0)
    assert choose(state, clock_at(1), ALL_ARMS, rng).arm == 0
    update(state, clock_at(1), 0, -5.0)  # det V = 2
    assert [choose(state, clock_at(t), ALL_ARMS, rng).arm for t in (2, 2, 3)] == [0, 0, 0]
    update(state, clock_at(3), 0, -5.0)  # 3
    assert choose(state, clock_at(4), ALL_ARMS, rng).arm == 0
    update(state, clock_at(4), 0, -5.0)  # 4, more than 1 + 2.9 times what it was
    assert choose(state, clock_at(5), ALL_ARMS, rng).arm == 1
    assert choose(state, clock_at(5), ALL_ARMS, rng).arm == 1


@pytest.mark.slow
def test_rarely_switching_costs_little() -> None:
    """The bound allows a factor sqrt(1 + C); within that, paired over seeds."""
    problem, horizon, growth = PROBLEMS["plane"], 3000, 0.5
    always, seldom = (
        np.array([simulate(problem, policy, horizon, s, [horizon]).regret[-1] for s in range(30)])
        for policy in (LinUCB(), LinUCB(switch_growth=growth))
    )
    excess = seldom - math.sqrt(1 + growth) * always
    assert excess.mean() < 4 * excess.std(ddof=1) / math.sqrt(30)
