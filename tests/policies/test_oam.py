"""OAM against the same rule with all data at once, and its edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import OAM, LinearBandit, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, inspect, update
from sightline.problems import end_of_optimism, large_gaps, unit_sphere
from sightline.simulation.loop import streams
from tests import naive
from tests import naive_allocation_policies as truth
from tests.marks import without_compilation
from tests.policies.helpers import arms_with_few_told, assert_same_rounds, every_round

PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.3),
    "plane": unit_sphere(6, 2, 0.1, seed=3),
    "space": unit_sphere(12, 4, 0.1, seed=2),
    "fewer arms than dimensions": unit_sphere(2, 4, 0.05, seed=5),
    "flat": LinearBandit([[0.5, 0.5, 0.0], [1.0, 1.0, 0.0], [-1.0, 0.0, 0.0]], [1.0, 0, 0], 0.2),
    "duplicates": LinearBandit([[0, 1.0], [1.0, 0], [1.0, 0], [0, 1.0]], [1.0, 0.3], 0.2),
    "best arm zero": LinearBandit([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], [-0.5, -0.2], 0.2),
}
# the policy beside the parameters of the truth
CONFIGURATIONS = {
    "default": (OAM(10**4), truth.OAM(10**4)),
    "theory": (OAM(500, forced_exploration="theory"), truth.OAM(500, rate=None)),
    "tuned": (
        OAM(50, constant=0.2, forced_exploration=0.05, determinant_growth=1.0),
        truth.OAM(50, 0.2, 0.05, 1.0),
    ),
}
seeds = st.integers(0, 2**32 - 1)


def compare(problem: LinearBandit, configuration: str, rounds: int, seed: int) -> None:
    policy, rule = CONFIGURATIONS[configuration]
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    assert_same_rounds(problem, policy, seed, truth.oam(world, rule, rounds))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, configuration: str) -> None:
    compare(problem, configuration, rounds=250, seed=4)


@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", ["end of optimism", "plane"])
def test_same_arms_as_all_data_at_once_for_long(problem: str, configuration: str) -> None:
    """Far beyond the horizon of the tuned configuration: the rule stays the same."""
    compare(PROBLEMS[problem], configuration, rounds=1500, seed=1)


@without_compilation
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", ["end of optimism", "duplicates"])
def test_the_round_is_that_of_the_clock_where_rewards_do_not_come(
    problem: str, configuration: str
) -> None:
    """Only every seventh is told."""
    policy, rule = CONFIGURATIONS[configuration]
    world = PROBLEMS[problem]
    told = naive.World(world.actions, world.theta, world.model.noise_std, *streams(4))
    expected = truth.oam(told, rule, 700, told_every=7).arms
    np.testing.assert_array_equal(arms_with_few_told(world, policy, 700, 7, seed=4), expected)


@without_compilation
def test_the_rate_is_that_of_the_round_of_the_clock() -> None:
    """1 / log log t is below 1/3, the share of three arms played in turn, after 5e8 rounds only."""
    problem = PROBLEMS["end of optimism"]
    policy, rule = CONFIGURATIONS["theory"]
    state = policy.start(problem.model)
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(4))
    data, lazily, s, differ = truth.Data(world), truth.Lazily(rule.zeta), 0, 0
    for t in range(1, 60):
        if t > problem.d:
            alpha = lazily.at(data)
            asked = {}
            for now in (10**9, 10**100, 10**1000, t):  # of which the last one is told
                asked[now] = choose(state, clock_at(now), ALL_ARMS, world.decisions).arm
                expected, explores = truth.next_of_oam(data, alpha, rule, s + 1, now)
                assert asked[now] == expected
            differ += len(set(asked.values())) > 1
            s += explores
        arm = choose(state, clock_at(t), ALL_ARMS, world.decisions).arm
        data.pull(arm)
        update(state, clock_at(t), arm, data.rewards[-1])
    assert differ > 5


def ending(problem: LinearBandit, policy: OAM, rounds: int) -> tuple[float, float, float]:
    """Return evidence and threshold after so many rounds, and the share of exploration."""
    state = policy.start(problem.model)
    decisions, noise = streams(1)
    for t in range(1, rounds + 1):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        reward = problem.means[arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), arm, reward)
    report = inspect(state, clock_at(rounds + 1), ALL_ARMS)
    assert report.best == problem.best
    return report.evidence, report.threshold, state.explorations[0] / rounds


def test_exploitation_begins_where_the_report_says_so() -> None:
    problem = PROBLEMS["large gaps"]
    policy = OAM(1000)
    ends = [ending(problem, policy, rounds) for rounds in (8, 3000)]
    assert ends[0][0] < ends[0][1]
    assert ends[0][2] > 0.5
    assert ends[1][0] >= ends[1][1]
    assert ends[1][2] < 0.5
    f_n = truth.f(1000, math.log(1000), 2, 1.0)
    assert ends[1][1] == pytest.approx(0.5 * problem.model.noise_std**2 * f_n, rel=1e-12)


def test_runs_may_be_longer_than_the_horizon() -> None:
    """The horizon is a level of confidence: nothing happens when it has passed."""
    problem = PROBLEMS["large gaps"]
    short, long = (simulate(problem, OAM(100), n, 1, [50, 100]) for n in (100, 400))
    np.testing.assert_array_equal(short.pulls, long.pulls)
    run = simulate(problem, OAM(100), 20000, 1, [1000, 20000])
    assert run.regret[0] == run.regret[1], "it exploits, trusting what it knew at round 1000"


def test_far_horizons_in_the_configuration() -> None:
    problem = PROBLEMS["large gaps"]
    near, far = (simulate(problem, OAM(n), 3000, 1, [3000]).regret[0] for n in (3000, 10**400))
    assert near < far, "a far horizon asks for more evidence"


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one, two = (every_round(p, OAM(200), 200, seed=1) for p in (problem, other))
    np.testing.assert_array_equal(one.pulls, two.pulls)


@settings(deadline=None, max_examples=15)
@given(seeds)
def test_the_units_of_features_change_nothing(seed: int) -> None:
    """Any basis is as good, since there is no regulariser."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    basis = np.diag([1e6, 1.0, 1e-3])
    other = LinearBandit(problem.actions @ basis, np.linalg.solve(basis, problem.theta), 0.25)
    one, two = (every_round(p, OAM(100), 100, seed=1) for p in (problem, other))
    np.testing.assert_array_equal(one.pulls, two.pulls)


def test_ties_of_all_means_are_broken_by_playing_the_arm_played_least() -> None:
    """Rewards of zero teach nothing about the best arm; the next one that is not zero does."""
    state = OAM(1000).start(bandit_model(np.eye(3)))
    decisions = streams(0)[0]
    arms = []
    for t in range(1, 10):
        arms.append(choose(state, clock_at(t), ALL_ARMS, decisions).arm)
        update(state, clock_at(t), arms[-1], 0.0)
    assert sorted(arms) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    update(state, clock_at(10), 1, 5.0)
    assert inspect(state, clock_at(10), ALL_ARMS).best == 1
