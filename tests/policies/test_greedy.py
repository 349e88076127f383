"""Greedy and epsilon-greedy: choices and probabilities against least squares on all data."""

import numpy as np
import pytest

import sightline as sl
from sightline import EpsilonGreedy, LinearBandit, choose, update
from sightline.core.clock import clock_at
from sightline.core.model import ALL_ARMS, AllArms, OneContext, SomeArms
from sightline.engine.loop import context_stream, streams
from sightline.policies.base import inspect, law
from sightline.problems import contextual_simple, unit_sphere
from tests import naive
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


def probabilities(policy: EpsilonGreedy, best: int, offered: list[int], t: int) -> dict[int, float]:
    """Return p by its definition."""
    epsilon = policy.epsilon if policy.schedule == "fixed" else min(1.0, policy.epsilon / t)
    return {x: epsilon / len(offered) + (1.0 - epsilon) * (x == best) for x in offered}


@every_policy
def test_runs_of_all_data_at_once(policy: EpsilonGreedy) -> None:
    """In contexts, whose arms share the estimate; the draw is inverted in the order of arms."""
    problem, rounds = contextual_simple(3, 4, 2, noise_variance=0.1), 200
    law_ = problem.probabilities
    contexts = contexts_drawn(law_, context_stream(5).random(rounds))
    decisions, noise = streams(5)
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, rounds + 1):
        theta = naive.ridge(problem.actions[played], np.array(rewards), 0.5)
        c = contexts[t - 1]
        offered = list(range(problem.starts[c], problem.starts[c + 1]))
        best = max(offered, key=lambda x: problem.actions[x] @ theta)
        epsilon = policy.epsilon if policy.schedule == "fixed" else min(1.0, policy.epsilon / t)
        u = decisions.random()
        arm = offered[int(u / epsilon * len(offered))] if u < epsilon else best
        played.append(arm)
        rewards.append(problem.means[arm] + problem.model.noise_std * noise.standard_normal())
    run = every_round(problem, policy, rounds, seed=5)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    assert arms.tolist() == played


OFFERS: dict[str, tuple[AllArms | SomeArms | OneContext, list[int]]] = {
    "all": (ALL_ARMS, list(range(6))),
    "some": (SomeArms(np.array([False, True, True, False, False, True])), [1, 2, 5]),
    "one": (SomeArms(np.arange(6) == 4), [4]),
    "context": (OneContext(1, 2, 5), [2, 3, 4]),
}


@every_policy
@pytest.mark.parametrize("name", OFFERS)
def test_the_law_of_any_offer(policy: EpsilonGreedy, name: str) -> None:
    offer, offered = OFFERS[name]
    problem = unit_sphere(6, 2, 0.1, seed=3)
    state = policy.start(problem.model)
    rng = np.random.default_rng(2)
    arms, rewards = rng.integers(6, size=20), rng.standard_normal(20)
    for t in range(20):
        update(state, clock_at(t + 1), int(arms[t]), float(rewards[t]))
    theta = naive.ridge(problem.actions[arms], rewards, 0.5)
    best = max(offered, key=lambda x: problem.actions[x] @ theta)
    assert inspect(state, clock_at(21), offer).best == best
    truth = probabilities(policy, best, offered, 21)
    found = np.full(6, np.nan)
    law(state, clock_at(21), offer, rng, found)
    assert found == pytest.approx([truth.get(x, 0.0) for x in range(6)], abs=1e-15)
    draws = [choose(state, clock_at(21), offer, rng) for _ in range(3000)]
    counts = np.bincount([draw.arm for draw in draws], minlength=6)
    spread = np.sqrt(found * (1.0 - found) / 3000)
    assert np.all(np.abs(counts / 3000 - found) <= 4.0 * spread + 1e-15)
    assert all(draw.probability == pytest.approx(truth[draw.arm]) for draw in draws)


def test_the_last_draw_below_epsilon_is_an_arm() -> None:
    """Rounding must not make an arm k of k arms."""

    class Highest:
        def random(self) -> float:
            return float(np.nextafter(0.3, 0.0))

    state = EpsilonGreedy(0.3).start(unit_sphere(7).model)
    assert choose(state, clock_at(1), ALL_ARMS, Highest()).arm == 6  # type: ignore[arg-type]


def test_greedy_is_greedy() -> None:
    assert not EpsilonGreedy(0.0).randomises
    assert EpsilonGreedy().randomises
    problem = LinearBandit(np.eye(2), [0.5, 0.9], 1e-3)
    run = sl.simulate(problem, EpsilonGreedy(0.0), 100, seed=1, checkpoints=[100])
    assert run.pulls[0].tolist() == [100, 0], "it never learns that the second arm is better"


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
    assert greedy > 10.0
