"""What tests of several policies need."""

import numpy as np

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.policies.base import choose, update
from sightline.problems.base import Problem
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests.naive import Ints
from tests.naive_allocation_policies import Record


def every_round(problem: Problem, policy: sl.extend.Policy, rounds: int, seed: int) -> Trajectory:
    """Return a run recorded after each round."""
    return sl.simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def assert_same_rounds(
    problem: Problem, policy: sl.extend.Policy, seed: int, truth: Record
) -> None:
    """Compare arms and explorations, round by round."""
    run = every_round(problem, policy, len(truth.arms), seed)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth.arms)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.cumsum(truth.learned))


def arms_with_few_told(
    problem: sl.LinearBandit, policy: sl.extend.Policy, rounds: int, told_every: int, seed: int
) -> Ints:
    """Return the arms of a policy that is told the reward of every so many rounds only."""
    state = policy.start(problem.model)
    decisions, noise = streams(seed)
    arms = []
    for t in range(1, rounds + 1):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        arms.append(arm)
        if t % told_every == 0:
            reward = problem.means[arm] + problem.model.noise_std * noise.standard_normal()
            update(state, clock_at(t), arm, reward)
    return np.array(arms)
