"""OSSB against the same rule with all data at once, and what its parameters are for."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import OSSB, LinearBandit, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, inspect, update
from sightline.problems import end_of_optimism, unit_sphere
from sightline.simulation.loop import streams
from tests import naive
from tests import naive_allocation_policies as truth
from tests.marks import without_compilation
from tests.policies.helpers import arms_with_few_told, assert_same_rounds, every_round
from tests.policies.test_oam import PROBLEMS

CONFIGURATIONS = [OSSB(), OSSB(0.0, 0.1), OSSB(0.1, 2.0, determinant_growth=0.7)]
seeds = st.integers(0, 2**32 - 1)


def rule_of(policy: OSSB) -> truth.OSSB:
    return truth.OSSB(policy.epsilon, policy.gamma, policy.determinant_growth)


def compare(problem: LinearBandit, policy: OSSB, rounds: int, seed: int) -> None:
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    assert_same_rounds(problem, policy, seed, truth.ossb(world, rule_of(policy), rounds))


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, policy: OSSB) -> None:
    compare(problem, policy, rounds=250, seed=4)


@pytest.mark.slow
@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("problem", ["end of optimism", "plane"])
def test_same_arms_as_all_data_at_once_for_long(problem: str, policy: OSSB) -> None:
    compare(PROBLEMS[problem], policy, rounds=1500, seed=1)


@without_compilation
def test_exploitation_is_where_the_report_says_so() -> None:
    """The best arm is planned exactly while evidence suffices, after every arm was played once."""
    problem = PROBLEMS["large gaps"]
    state = OSSB().start(problem.model)
    decisions, noise = streams(1)
    exploited = 0
    for t in range(1, 500):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        if t > problem.k:
            report = inspect(state, clock_at(t), ALL_ARMS)
            assert report.threshold == pytest.approx(problem.model.noise_std**2 * math.log(t))
            assert (report.evidence >= report.threshold) == (state.explores[0] == 0)
            if state.explores[0] == 0:
                assert arm == report.best
                exploited += 1
        reward = problem.means[arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), arm, reward)
    assert 0 < exploited < 499 - problem.k
    assert state.explorations[0] == 499 - problem.k - exploited


@without_compilation
@pytest.mark.parametrize("problem", ["end of optimism", "large gaps", "duplicates"])
def test_the_round_is_that_of_the_clock_where_rewards_do_not_come(problem: str) -> None:
    """t is not the number of rewards told: only every seventh is."""
    world = PROBLEMS[problem]
    told = naive.World(world.actions, world.theta, world.model.noise_std, *streams(4))
    expected = truth.ossb(told, rule_of(OSSB()), 700, told_every=7).arms
    np.testing.assert_array_equal(arms_with_few_told(world, OSSB(), 700, 7, seed=4), expected)


@without_compilation
def test_the_level_is_that_of_the_round_where_rewards_are_told_late() -> None:
    """t is the round of the clock, not the number of rewards told."""
    problem = PROBLEMS["large gaps"]
    state = OSSB().start(problem.model)
    decisions, noise = streams(1)
    open_: list[tuple[int, int]] = []
    for t in range(1, 400):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        if state.estimate.arms.pulls.min() > 0.0:
            lag, alpha = state.estimate.arms.pulls, state.goal.allocation
            best = int(np.argmax(state.estimate.arms.means))
            needs = [x for x in range(problem.k) if x != best and alpha[x] > 0.0]
            level = 2.0 * problem.model.noise_std**2 * math.log(t)
            assert (min(lag[x] / alpha[x] for x in needs) >= level) == (state.explores[0] == 0)
        open_.append((t, arm))
        if t % 7 == 0:
            for asked, played in reversed(open_[2:]):  # the rewards of two never come
                reward = problem.means[played] + problem.model.noise_std * noise.standard_normal()
                update(state, clock_at(asked), played, reward)
            open_.clear()
    assert state.estimate.learned.rounds[0] < 300
    kinds = set()
    for t in (400, 10**6, 10**15, 10**100):  # nothing is told, and the level grows
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        report = inspect(state, clock_at(t), ALL_ARMS)
        assert (report.evidence >= report.threshold) == (state.explores[0] == 0)
        kinds.add(int(state.explores[0]))
    assert kinds == {0, 1}


@pytest.mark.slow
def test_forced_exploration_keeps_runs_from_staying_with_a_wrong_arm() -> None:
    """Without it some of these 20 runs lose the gap in every late round, with it none does."""
    problem = end_of_optimism(0.1, 2.0, 1.0)

    def late_regret(epsilon: float) -> list[float]:
        runs = [simulate(problem, OSSB(epsilon), 20000, s, [10000, 20000]) for s in range(20)]
        return [float(run.regret[1] - run.regret[0]) for run in runs]

    assert max(late_regret(0.0)) > 0.9 * 0.1 * 10000
    assert max(late_regret(0.01)) < 0.9 * 0.1 * 10000


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one, two = (every_round(p, OSSB(), 200, seed=1) for p in (problem, other))
    np.testing.assert_array_equal(one.pulls, two.pulls)


def test_ties_of_all_means_are_broken_by_playing_the_arm_played_least() -> None:
    state = OSSB().start(bandit_model(np.eye(3)))
    decisions = streams(0)[0]
    arms = []
    for t in range(1, 10):
        arms.append(choose(state, clock_at(t), ALL_ARMS, decisions).arm)
        update(state, clock_at(t), arms[-1], 0.0)
    assert arms == [0, 1, 2] * 3
    update(state, clock_at(10), 1, 5.0)
    assert inspect(state, clock_at(10), ALL_ARMS).best == 1
