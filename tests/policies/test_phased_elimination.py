"""Phased elimination against the same rule with all data of a phase at once, and its edges."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline import LinearBandit, PhasedElimination, Session, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at, never
from sightline.extend import choose, inspect, update
from sightline.policies.phased_elimination import PhasedEliminationState
from sightline.problems import end_of_optimism, large_gaps, unit_sphere
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_rivals

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
seeds = st.integers(0, 2**32 - 1)


def every_round(
    problem: LinearBandit, policy: sl.extend.Policy, rounds: int, seed: int
) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


@pytest.mark.parametrize("gap_bound", [1.0, 4.0])
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, gap_bound: float) -> None:
    rounds = 4000
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(4))
    truth, explored = naive_rivals.phased_elimination(world, 10**4, gap_bound, rounds)
    run = every_round(problem, PhasedElimination(10**4, gap_bound), rounds, 4)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.cumsum(explored))


def test_most_of_these_problems_are_settled() -> None:
    """The comparison above covers elimination and commitment, not only the first phase."""
    settled = [
        every_round(problem, PhasedElimination(10**4), 4000, 4).explorations[-1] < 4000
        for problem in PROBLEMS.values()
    ]
    assert sum(settled) >= 5


def played_until_settled(problem: LinearBandit, horizon: int, seed: int) -> PhasedEliminationState:
    state = PhasedElimination(horizon).start(problem.model)
    decisions, noise = streams(seed)
    for t in range(1, 10**5):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        if choice.wake == never():
            break
        reward = problem.means[choice.arm] + problem.model.noise_std * noise.standard_normal()
        update(state, clock_at(t), choice.arm, reward)
    return state


def test_a_settled_arm_is_reported_and_kept() -> None:
    problem = PROBLEMS["large gaps"]
    state = played_until_settled(problem, 1000, seed=0)
    report = inspect(state, clock_at(10**6), ALL_ARMS)
    assert report.best == problem.best
    assert report.evidence == math.inf
    assert report.wake == never()
    for _ in range(100):  # late rewards, however bad, change nothing
        update(state, clock_at(10**6), problem.best, -100.0)
    choice = choose(state, clock_at(10**6), ALL_ARMS, streams(0)[0])
    assert (choice.arm, choice.wake) == (problem.best, never())


def test_rewards_of_dropped_arms_are_ignored() -> None:
    problem = PROBLEMS["space"]
    state = PhasedElimination(1000).start(problem.model)
    rng = np.random.default_rng(0)
    while state.remaining.all():
        arm = choose(state, clock_at(1), ALL_ARMS, rng).arm
        update(state, clock_at(1), arm, problem.means[arm])
    assert state.settled[0] == 0, "not settled in the same phase"
    dropped = int(np.flatnonzero(state.remaining == 0.0)[0])
    update(state, clock_at(1), dropped, 100.0)
    assert state.pulls.sum() == state.sums.sum() == 0.0


def test_only_what_was_told_counts() -> None:
    """Questions without answers repeat the arm; answers beyond the plan are data like others."""
    problem = PROBLEMS["plane"]
    session = Session(problem.actions, PhasedElimination(1000), problem.noise_std)
    open_ = [session.ask() for _ in range(200)]
    assert len({decision.arm for decision in open_}) == 1
    for decision in open_:
        session.tell(decision.id, float(problem.means[decision.arm]))
    assert session.ask().arm != open_[0].arm
    assert session.status().explorations == 200


def test_far_horizons() -> None:
    """A run of 10^400 rounds costs its exploration, which grows with log n."""
    problem = PROBLEMS["large gaps"]
    run = simulate(problem, PhasedElimination(10**400), 10**400, seed=1, checkpoints=[10**400])
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(1))
    _, explored = naive_rivals.phased_elimination(world, 10**400, 1.0, 10**5)
    assert run.explorations[0] == explored.sum() < 10**5
    assert np.isfinite(run.regret[0])


def test_runs_may_be_longer_than_the_horizon() -> None:
    problem = PROBLEMS["large gaps"]
    short, long = (
        simulate(problem, PhasedElimination(1000), n, seed=1, checkpoints=[n])
        for n in (10**4, 10**30)
    )
    assert short.explorations == long.explorations
    assert long.regret == short.regret


@pytest.mark.parametrize("noise_std", [1e-70, 1e-9, 1e9, 1e70])
def test_noise_of_any_size(noise_std: float) -> None:
    """Plans may exceed every counter, or need less than one pull."""
    problem = LinearBandit([[1.0, 0.0], [0.0, 1.0], [0.3, 0.3]], [1.0, 1.0], noise_std)
    run = simulate(problem, PhasedElimination(10**6), 3000, seed=1)
    assert run.pulls[-1].sum() == 3000


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = unit_sphere(5, 3, 0.0625, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one = every_round(problem, PhasedElimination(1000, 2.0), 1000, seed=1)
    two = every_round(other, PhasedElimination(1000, 2.0 * c), 1000, seed=1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.slow
def test_the_best_arm_is_dropped_no_more_often_than_allowed() -> None:
    """At n = 20 in at most 1 of 20 runs; the bound is loose, so the count is far below."""
    problem = end_of_optimism(0.3, 2.0, 1.0)
    wrong = sum(
        simulate(problem, PhasedElimination(20), 10**9, seed, [10**9]).pulls[0].argmax()
        != problem.best
        for seed in range(200)
    )
    assert wrong <= 10
