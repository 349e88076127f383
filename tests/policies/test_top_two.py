"""Top-two sampling against all data at once, its probabilities, and what it does not promise."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import FixedBeta, LinearBandit, LogDet, LogLog, TopTwo, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, update
from sightline.policies.top_two import TopTwoState
from sightline.problems import end_of_optimism, large_gaps
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_variants
from tests.marks import thorough


def gaussian_arms(k: int, d: int, noise_std: float, seed: int) -> LinearBandit:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d)) / math.sqrt(d)
    return LinearBandit(actions, rng.standard_normal(d), noise_std)


PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.05),
    "plane": gaussian_arms(6, 2, 0.2, seed=1),
    "space": gaussian_arms(7, 4, 0.1, seed=2),
}
# policy beside the coefficients of the truth; the noise is that of the problem
POLICIES: dict[str, tuple[TopTwo, dict[str, object]]] = {
    "default": (TopTwo(), {}),
    "few redraws": (TopTwo(redraws=2, regulariser=1.0), {"regulariser": 1.0}),
    "one redraw": (TopTwo(redraws=1, leader_probability=0.2), {}),
    "leader": (
        TopTwo(0.9, 20, LogDet(norm_bound=2.0, factor=0.4), regulariser=3.0),
        {"norm_bound": 2.0, "factor": 0.4, "regulariser": 3.0},
    ),
    "log-log": (
        TopTwo(confidence=LogLog(), regulariser=0.1),
        {"kind": "log-log", "regulariser": 0.1},
    ),
    "fixed": (
        TopTwo(confidence=FixedBeta(0.3), regulariser=0.1),
        {"kind": "fixed", "fixed": 0.3, "regulariser": 0.1},
    ),
}


def every_round(problem: LinearBandit, policy: TopTwo, rounds: int, seed: int) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def assert_same_arms(
    problem: LinearBandit, name: str, rounds: int, seed: int
) -> tuple[naive.Trace, naive.Ints]:
    policy, coefficients = POLICIES[name]
    noise_std = problem.model.noise_std
    known = {"regulariser": noise_std**2, **coefficients}
    beta = naive.Beta(noise_std=noise_std, **known)  # type: ignore[arg-type]
    world = naive.World(problem.actions, problem.theta, noise_std, *streams(seed))
    trace, kinds = naive_variants.top_two(
        world, beta, policy.leader_probability, policy.redraws, rounds
    )
    run = every_round(problem, policy, rounds, seed)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != trace.arms)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.cumsum(trace.explored))
    return trace, kinds


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(problem: LinearBandit, name: str) -> None:
    assert_same_arms(problem, name, 120, seed=5)


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_same_arms_as_all_data_at_once_for_long(name: str) -> None:
    """Long enough to explore and exploit; by default, with every kind of choice."""
    trace, kinds = assert_same_arms(PROBLEMS["large gaps"], name, 1500, seed=0)
    assert 0 < trace.explored.sum() < 1500
    assert name != "default" or kinds.min() > 0


def learned(policy: TopTwo, actions: naive.Array, pulls: int, theta: list[float]) -> TopTwoState:
    """Return a state after noiseless rewards, so many of each arm."""
    state = policy.start(bandit_model(actions))
    for _ in range(pulls):
        for arm, mean in enumerate((actions @ np.array(theta)).tolist()):
            update(state, clock_at(1), arm, mean)
    return state


def test_the_probabilities_of_leader_and_challenger() -> None:
    """In the plane under a round prior, where P(arm is best) is an angle."""
    draws, p = 4000, 0.3
    angles = np.array([0.0, 0.5, 2.0, 3.5])
    actions = np.column_stack([np.cos(angles), np.sin(angles)])
    state = TopTwo(leader_probability=p, redraws=1000).start(bandit_model(actions))
    rng, clock = np.random.default_rng(1), clock_at(1)
    choices = [choose(state, clock, ALL_ARMS, rng) for _ in range(draws)]
    assert all(math.isnan(choice.probability) for choice in choices)
    turns = np.diff(np.concatenate([angles, [angles[0] + 2 * math.pi]]))
    best = (turns + np.roll(turns, 1)) / (4 * math.pi)
    challenger = best * ((best / (1 - best)).sum() - best / (1 - best))
    expected = p * best + (1 - p) * challenger
    assert expected.sum() == pytest.approx(1.0)
    counts = np.bincount([choice.arm for choice in choices], minlength=4) / draws
    assert np.all(np.abs(counts - expected) < 4.0 * np.sqrt(expected * (1 - expected) / draws))


@pytest.mark.slow
def test_the_fallback_is_where_redraws_lead() -> None:
    """Three standard deviations from one arm, more than six from the other: it is the former."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [-0.9, 0.1]])
    tries = 400
    for redraws in (1, 10**5):
        policy = TopTwo(leader_probability=0.5, redraws=redraws)
        state = learned(policy, actions, 24, [1.0, 0.1])
        rng, clock = np.random.default_rng(2), clock_at(10**9)
        arms = [choose(state, clock, ALL_ARMS, rng).arm for _ in range(tries)]
        _, near, far = np.sqrt(state.alternatives.distances)
        assert near < 4.0 < 6.0 < far
        assert set(arms) == {0, 1}
        share = np.mean([arm == 1 for arm in arms])
        assert abs(share - 0.5) < 4 * math.sqrt(0.25 / tries)


seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=20)
@given(seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one = every_round(problem, TopTwo(confidence=LogDet(norm_bound=2.0)), 60, 1)
    two = every_round(other, TopTwo(confidence=LogDet(norm_bound=2.0 * c)), 60, 1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


def test_beside_the_zero_arm_exploration_ends() -> None:
    """The challenger teaches nothing, the leader all."""
    problem = LinearBandit([[1.0, 0.5], [0.0, 0.0]], [1.0, 0.0], 0.3)
    run = every_round(problem, TopTwo(), 500, seed=0)
    assert 1 < run.explorations[-1] < 250


@pytest.mark.slow
@pytest.mark.parametrize("p", [0.5, 0.8])
def test_the_limit_on_end_of_optimism(p: float) -> None:
    """The cost tends to beta / (p epsilon), not to c* beta / 2 = slope^2 beta.

    Leader and challenger are x* and its neighbour, at 1/N(x*) + 1/N(x2) = epsilon^2 / beta.
    """
    epsilon, slope, horizon = 0.1, 2.0, 10**1000
    problem = end_of_optimism(epsilon, slope, 0.1)
    policy = TopTwo(leader_probability=p)
    runs = [simulate(problem, policy, horizon, seed, [horizon]) for seed in range(10)]
    u, log_det = runs[0].log_t[-1], 2 * math.log(runs[0].explorations[-1])
    beta = 0.1 * (math.sqrt(2 * (u + math.log(u)) + log_det) + 1) ** 2
    ratios = np.array([run.regret[-1] for run in runs]) / (beta / (p * epsilon))
    error = float(ratios.std(ddof=1)) / math.sqrt(len(runs))
    assert abs(ratios.mean() - 1.0) < 4 * error
    optimal = slope**2 * p * epsilon
    assert ratios.mean() > optimal + 4 * error


@pytest.mark.slow
def test_regret_is_linear_until_the_test_succeeds() -> None:
    """A share 1 - p of the rounds goes to the challenger, whatever its gap."""
    epsilon, p, n = 0.01, 0.5, 10**4
    problem = end_of_optimism(epsilon, 2.0, 0.1)
    runs = [simulate(problem, TopTwo(p), n, seed, [n // 2, n]) for seed in range(20)]
    assert all(run.explorations[-1] == n for run in runs)
    late = np.array([run.regret[1] - run.regret[0] for run in runs])
    assert late.mean() > (1 - p) * epsilon * n / 2 - 4 * late.std(ddof=1) / math.sqrt(20)
