"""E4 against the same rule with all data at once, its batches, and its edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import E4, LinearBandit, Session, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at, never
from sightline.extend import choose, inspect, update
from sightline.policies.e4 import E4State
from sightline.problems import end_of_optimism, unit_sphere
from sightline.simulation.loop import streams
from tests import naive
from tests import naive_allocation_policies as truth
from tests.marks import without_compilation
from tests.policies.helpers import assert_same_rounds, every_round
from tests.policies.test_oam import PROBLEMS

# the first one keeps the published gamma, with which batch 3 never ends; the last one runs beyond
# its horizon
CONFIGURATIONS = [E4(2000, gamma=10.0), E4(2000), E4(300, gamma=0.5)]
seeds = st.integers(0, 2**32 - 1)


def record(problem: LinearBandit, policy: E4, rounds: int, seed: int) -> truth.Record:
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    return truth.e4(world, policy.horizon, policy.gamma, rounds)


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, policy: E4) -> None:
    for seed in (4, 5):
        assert_same_rounds(problem, policy, seed, record(problem, policy, 2000, seed))


@pytest.mark.parametrize("problem", ["tied", "noisy"])
def test_same_arms_where_arms_are_hard_to_tell(problem: str) -> None:
    """Elimination in batches 3 and later."""
    problems = {
        "tied": LinearBandit([[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]], [1.0, 1.0], 0.3),
        "noisy": unit_sphere(8, 3, 2.0, seed=1),
    }
    policy = E4(3500, gamma=0.5)
    for seed in range(3):
        truly = record(problems[problem], policy, 4000, seed)
        assert_same_rounds(problems[problem], policy, seed, truly)


def played(problem: LinearBandit, policy: E4, rounds: int, seed: int) -> E4State:
    state = policy.start(problem.model)
    decisions, noise = streams(seed)
    for t in range(1, rounds + 1):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        if choice.wake == never():
            break
        reward = problem.means[choice.arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), choice.arm, reward)
    return state


@without_compilation
def test_these_runs_see_every_kind_of_batch() -> None:
    """The comparisons above cover the test of batch 2 as well as elimination."""
    tested = played(PROBLEMS["large gaps"], E4(2000), 2000, seed=4)
    assert (tested.batch[0], tested.settled[0], tested.remaining.min()) == (2, 1, 1.0)
    dropped = played(unit_sphere(8, 3, 2.0, seed=1), E4(3500, gamma=0.5), 3499, seed=0)
    assert dropped.batch[0] > 3
    assert 0.0 < dropped.remaining.mean() < 1.0


@without_compilation
def test_a_settled_arm_is_reported_and_kept() -> None:
    problem = PROBLEMS["large gaps"]
    state = played(problem, E4(2000), 2000, seed=4)
    report = inspect(state, clock_at(10**6), ALL_ARMS)
    assert report.best == problem.best
    assert report.evidence > report.threshold
    assert report.wake == never()
    for _ in range(100):  # late rewards, however bad, change nothing
        update(state, clock_at(10**6), problem.best, -100.0)
    choice = choose(state, clock_at(10**6), ALL_ARMS, streams(0)[0])
    assert (choice.arm, choice.wake) == (problem.best, never())


def test_with_the_published_gamma_batch_three_outlasts_every_run() -> None:
    """(log T)^11 exceeds T for every T below 10^17, so that T / (2 k) caps batch 2."""
    problem = LinearBandit([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 0.3)
    state = played(problem, E4(10**4, gamma=10.0), 9999, seed=1)
    assert (state.batch[0], state.settled[0]) == (3, 0)
    assert state.length[0] == pytest.approx(math.log(10**4) ** 11)
    assert state.length[0] > 10**10


def test_runs_may_be_longer_than_the_horizon() -> None:
    """A commitment holds for ever; what is not settled at the horizon is settled there."""
    problem = PROBLEMS["large gaps"]
    short, long = (simulate(problem, E4(2000), n, 4, [n]) for n in (2000, 10**30))
    assert short.explorations == long.explorations < 2000
    assert long.regret == short.regret
    run = simulate(unit_sphere(8, 3, 2.0, seed=1), E4(300), 10**30, 0, [300, 10**30])
    assert run.explorations.tolist() == [300, 300]


def test_far_horizons() -> None:
    assert E4(2**53 - 1).any_horizon
    assert not E4(2**53).any_horizon, "the first batch may be all there is"
    run = simulate(PROBLEMS["plane"], E4(10**400), 500, 1)
    assert run.explorations[-1] == 500


def test_equal_arms_are_settled_from_the_start() -> None:
    problem = LinearBandit([[0.6, 0.8]] * 3, [1.0, 0.0], 0.3)
    run = simulate(problem, E4(100, 1.0), 10**20, 0, [10**20])
    assert run.explorations[0] == 0


@without_compilation
def test_only_what_was_told_counts() -> None:
    """Questions without answers repeat the arm; answers beyond the plan are data like others."""
    problem = PROBLEMS["plane"]
    session = Session(problem.actions, E4(1000), problem.noise_std)
    open_ = [session.ask() for _ in range(200)]
    assert len({decision.arm for decision in open_}) == 1
    for decision in open_:
        session.tell(decision.id, float(problem.means[decision.arm]))
    assert session.ask().arm != open_[0].arm
    assert session.status().explorations == 200


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one, two = (every_round(p, E4(200, 0.5), 600, seed=1) for p in (problem, other))
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.slow
def test_the_best_arm_is_missed_no_more_often_than_the_test_allows() -> None:
    """P(Z passes for a wrong arm) is of order 1 / sqrt(T): here 1 in 14; within 4 std errors."""
    problem = end_of_optimism(0.3, 2.0, 1.0)
    runs = [simulate(problem, E4(200, 0.5), 10**9, seed, [10**9]) for seed in range(200)]
    wrong = np.mean([run.pulls[0].argmax() != problem.best for run in runs])
    bound = 1.0 / math.sqrt(200)
    assert wrong <= bound + 4.0 * math.sqrt(bound * (1.0 - bound) / 200)
