"""Greedy and epsilon-greedy: choices and probabilities against least squares on all data."""

import numpy as np
import pytest

import sightline as sl
from sightline import EpsilonGreedy, LinearBandit
from sightline.core.action_set import ALL_ARMS, ActionSet, block, some_arms
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.extend import choose, update
from sightline.policies.base import inspect, write_probabilities
from sightline.problems import contextual_simple, unit_sphere
from sightline.simulation.loop import context_stream, streams
from tests import naive
from tests.naive import Array
from tests.naive_contexts import contexts_drawn
from tests.policies.helpers import every_round

POLICIES = [
    EpsilonGreedy(0.0, regulariser=0.5),
    EpsilonGreedy(0.2, regulariser=0.5),
    EpsilonGreedy(1.0, regulariser=0.5),
    EpsilonGreedy(15.0, "1/t", regulariser=0.5),
]
MARKS, SEEDS = [1000, 2000], range(10)
every_policy = pytest.mark.parametrize("policy", POLICIES, ids=str)


def probabilities(policy: EpsilonGreedy, means: Array, offered: list[int], t: int) -> Array:
    """Return p of all arms by its definition."""
    epsilon = policy.epsilon if policy.schedule == "fixed" else min(1.0, policy.epsilon / t)
    tied = [x for x in offered if means[x] >= means[offered].max() - 1e-12]
    p = np.zeros(len(means))
    p[offered] += epsilon / len(offered)
    p[tied] += (1.0 - epsilon) / len(tied)
    return p


@every_policy
def test_runs_of_all_data_at_once(policy: EpsilonGreedy) -> None:
    """In contexts, whose arms share the estimate; the draw is inverted in the order of arms."""
    problem, rounds = contextual_simple(3, 4, 2, noise_variance=0.1), 200
    contexts = contexts_drawn(problem.probabilities, context_stream(5).random(rounds))
    decisions, noise = streams(5)
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, rounds + 1):
        theta = naive.ridge(problem.actions[played], np.array(rewards), 0.5)
        start, stop = problem.starts[contexts[t - 1] : contexts[t - 1] + 2]
        p = probabilities(policy, problem.actions @ theta, list(range(start, stop)), t)
        arm = int(np.searchsorted(np.cumsum(p), decisions.random(), side="right"))
        played.append(arm)
        rewards.append(problem.means[arm] + problem.model.noise_std * noise.standard_normal())
    run = every_round(problem, policy, rounds, seed=5)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    assert arms.tolist() == played


OFFERS: dict[str, tuple[ActionSet, list[int]]] = {
    "all": (ALL_ARMS, list(range(6))),
    "some": (some_arms(np.array([False, True, True, False, False, True])), [1, 2, 5]),
    "one": (some_arms(np.arange(6) == 4), [4]),
    "context": (block(2, 5, 1), [2, 3, 4]),
}


@every_policy
@pytest.mark.parametrize("name", OFFERS)
def test_the_probabilities_of_any_action_set(policy: EpsilonGreedy, name: str) -> None:
    offer, offered = OFFERS[name]
    problem = unit_sphere(6, 2, 0.1, seed=3)
    state = policy.start(problem.model)
    rng = np.random.default_rng(2)
    arms, rewards = rng.integers(6, size=20), rng.standard_normal(20)
    for t in range(20):
        update(state, clock_at(t + 1), int(arms[t]), float(rewards[t]))
    means = problem.actions @ naive.ridge(problem.actions[arms], rewards, 0.5)
    assert inspect(state, clock_at(21), offer).best == max(offered, key=lambda x: means[x])
    truth = probabilities(policy, means, offered, 21)
    found = np.full(6, np.nan)
    write_probabilities(state, clock_at(21), offer, rng, found)
    assert found == pytest.approx(truth, abs=1e-15)
    draws = [choose(state, clock_at(21), offer, rng) for _ in range(3000)]
    counts = np.bincount([draw.arm for draw in draws], minlength=6)
    spread = np.sqrt(truth * (1.0 - truth).clip(0.0) / 3000)
    assert np.all(np.abs(counts / 3000 - truth) <= 4.0 * spread + 1e-15)
    assert all(draw.probability == pytest.approx(truth[draw.arm]) for draw in draws)


@every_policy
def test_ties_are_shared(policy: EpsilonGreedy) -> None:
    """Before any data, and between arms that are equal: no arm is favoured for its place."""
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    state = policy.start(bandit_model(arms, 0.3))
    found = np.zeros(4)
    write_probabilities(state, clock_at(1), ALL_ARMS, np.random.default_rng(0), found)
    assert found == pytest.approx([0.25] * 4)
    update(state, clock_at(1), 0, 0.7)
    write_probabilities(state, clock_at(2), ALL_ARMS, np.random.default_rng(0), found)
    means = arms @ naive.ridge(arms[[0]], np.array([0.7]), 0.5)
    assert found == pytest.approx(probabilities(policy, means, [0, 1, 2, 3], 2))
    assert found[0] == found[2]


def test_greedy_settles_on_its_first_arm() -> None:
    """On independent arms with positive means: it never learns that another is better."""
    problem = LinearBandit(np.eye(2), [0.5, 0.9], 1e-3)
    pulls = [sl.simulate(problem, EpsilonGreedy(0.0), 100, s, [100]).pulls[0] for s in range(20)]
    assert {tuple(row) for row in pulls} == {(100.0, 0.0), (0.0, 100.0)}


def test_explorations_fall_as_one_over_t() -> None:
    """The expected number of them is about epsilon log n."""
    problem = LinearBandit(np.eye(2), [0.9, 0.0], 1e-2)
    state = EpsilonGreedy(4.0, "1/t").start(problem.model)
    rng = np.random.default_rng(0)
    update(state, clock_at(1), 0, 0.9)
    update(state, clock_at(2), 1, 0.0)
    worse = 0
    for _ in range(50):
        worse += sum(choose(state, clock_at(t), ALL_ARMS, rng).arm for t in range(1, 401))
    truth = sum(min(1.0, 4.0 / t) / 2 for t in range(1, 401))
    assert worse / 50 == pytest.approx(truth, abs=4 * np.sqrt(truth / 50))
    assert choose(state, clock_at(10**300), ALL_ARMS, rng).arm == 0


def test_greedy_settles_on_wrong_arms_even_where_nothing_need_be_explored() -> None:
    """An arm that looks bad is not played, and then nothing is learned about it."""
    problem = sl.problems.spanning_contexts()
    late = {
        policy: np.mean(
            [np.diff(sl.simulate(problem, policy, 2000, s, MARKS).regret) for s in SEEDS]
        )
        for policy in (EpsilonGreedy(0.0), sl.LinUCB(regulariser="matched"))
    }
    greedy, optimistic = late.values()
    assert optimistic < 0.5
    assert greedy > 5.0
