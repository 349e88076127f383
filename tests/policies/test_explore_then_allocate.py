"""Explore-then-allocate against the same rule with all data at once, and its phases."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import ExploreThenAllocate, LinearBandit, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at, never
from sightline.extend import choose, inspect, update
from sightline.policies.explore_then_allocate import ExploreThenAllocateState
from sightline.problems import unit_sphere
from sightline.simulation.loop import streams
from tests import naive
from tests import naive_allocation_policies as truth
from tests.marks import without_compilation
from tests.policies.helpers import assert_same_rounds, every_round
from tests.policies.test_oam import PROBLEMS

CONFIGURATIONS = [
    ExploreThenAllocate(10**4),
    ExploreThenAllocate(50, constant=0.0),
    ExploreThenAllocate(3, constant=0.0),
]
seeds = st.integers(0, 2**32 - 1)
LARGE_GAPS = PROBLEMS["large gaps"]


@pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, policy: ExploreThenAllocate) -> None:
    for seed in (4, 5):
        world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
        record = truth.explore_then_allocate(world, policy.horizon, policy.constant, 400)
        assert_same_rounds(problem, policy, seed, record)


def played(
    problem: LinearBandit, policy: ExploreThenAllocate, rounds: int, seed: int
) -> tuple[ExploreThenAllocateState, list[int]]:
    """Return the state after so many rounds, and its phases by round."""
    state = policy.start(problem.model)
    decisions, noise = streams(seed)
    phases = []
    for t in range(1, rounds + 1):
        phases.append(int(state.phase[0]))
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        if choice.wake == never():
            break
        reward = problem.means[choice.arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), choice.arm, reward)
    return state, phases


@without_compilation
def test_these_runs_see_every_phase() -> None:
    """The comparison above covers warm-up, allocation, recovery and commitment."""
    seen = set()
    for problem in PROBLEMS.values():
        for policy in CONFIGURATIONS:
            for seed in (4, 5):
                phases = played(problem, policy, 400, seed)[1]
                assert phases == sorted(phases)
                seen |= set(phases)
    assert seen == {0, 1, 2, 3}


def test_the_warm_up_plays_a_spanner() -> None:
    policy = ExploreThenAllocate(10**4)
    state, phases = played(LARGE_GAPS, policy, 9, seed=1)
    times = math.ceil(math.sqrt(math.log(10**4)))
    assert phases.count(0) == 2 * times == 8
    assert sorted(state.estimate.arms.pulls)[-2:] == [4.0, 5.0]


@without_compilation
def test_recovery_starts_from_nothing() -> None:
    """Means that jump are not trusted: all data go, also those of the jump."""
    policy = ExploreThenAllocate(10**4)
    state, _ = played(LARGE_GAPS, policy, 9, seed=1)
    assert state.phase[0] == 1
    update(state, clock_at(10), 0, 1000.0)
    assert state.phase[0] == 2
    assert state.estimate.arms.pulls.sum() == 0.0
    assert choose(state, clock_at(11), ALL_ARMS, streams(0)[0]).wake.t == 11, "LinUCB never commits"


def test_a_settled_arm_is_reported_and_kept() -> None:
    state, phases = played(LARGE_GAPS, ExploreThenAllocate(1000), 2000, seed=4)
    assert phases[-1] == 3
    report = inspect(state, clock_at(10**6), ALL_ARMS)
    assert report.best == LARGE_GAPS.best
    assert report.wake == never()
    f_n = truth.f(1000, math.log(1000), 2, 1.0)
    assert report.threshold == pytest.approx(0.5 * LARGE_GAPS.model.noise_std**2 * f_n, rel=1e-12)
    for _ in range(100):  # late rewards, however bad, change nothing
        update(state, clock_at(10**6), LARGE_GAPS.best, -100.0)
    choice = choose(state, clock_at(10**6), ALL_ARMS, streams(0)[0])
    assert (choice.arm, choice.wake) == (LARGE_GAPS.best, never())


def test_runs_may_be_longer_than_the_horizon() -> None:
    """A commitment holds for ever."""
    policy = ExploreThenAllocate(1000)
    short, long = (simulate(LARGE_GAPS, policy, n, 4, [n]) for n in (2000, 10**15))
    assert short.explorations == long.explorations
    assert long.regret == short.regret
    with pytest.raises(ValueError, match="horizon must be below"):
        simulate(LARGE_GAPS, policy, 10**16)


def test_equal_arms_are_settled_after_the_warm_up() -> None:
    problem = LinearBandit([[0.6, 0.8]] * 3, [1.0, 0.0], 0.3)
    run = simulate(problem, ExploreThenAllocate(1000), 10**9, 0, [10**9])
    assert run.explorations[0] < 10


@settings(deadline=None, max_examples=15)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one, two = (every_round(p, ExploreThenAllocate(50), 200, seed=1) for p in (problem, other))
    np.testing.assert_array_equal(one.pulls, two.pulls)
