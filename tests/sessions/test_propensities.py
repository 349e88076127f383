"""Probabilities of decisions: stated by every policy, at least the min_probability, and right."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS, some_arms
from sightline.core.clock import clock_at
from sightline.jit import callable_for
from sightline.policies.base import choose, write_probabilities
from tests.marks import thorough, without_compilation
from tests.own_policies import EpsilonGreedy

ACTIONS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
RANDOMISING: list[sl.extend.Policy] = [
    sl.IDS(),
    sl.IDS(sampling="exact", information="halfspace-ucb"),
    sl.BayesianIDS(samples=500),
    sl.EpsilonGreedy(),
    sl.LinMED(),
    sl.SOLID(),
    sl.ThompsonSampling(),
    sl.TopTwo(),
]
POLICIES = [*RANDOMISING, sl.LinUCB(), sl.LinIMED()]


def told(policy: sl.extend.Policy, rounds: int = 12, **options: Any) -> sl.Session:
    session = sl.Session(ACTIONS, policy, 0.3, seed=2, **options)
    rng = np.random.default_rng(3)
    for _ in range(rounds):
        decision = session.ask()
        session.tell(decision, 0.3 * decision.features[0] + 0.3 * rng.standard_normal())
    return session


def marks_of(policy: sl.extend.Policy) -> Any:
    return without_compilation if isinstance(policy, sl.SOLID | sl.LinMED | sl.LinIMED) else ()


BY_DRAWS = [policy for policy in POLICIES if policy.probability_by_draws]
every_policy = pytest.mark.parametrize(
    "policy",
    [
        # thousands of draws take seconds in the interpreter
        pytest.param(policy, marks=pytest.mark.slow if policy in BY_DRAWS else marks_of(policy))
        for policy in POLICIES
    ],
    ids=str,
)


@pytest.mark.parametrize(
    "policy",
    [
        pytest.param(policy, marks=pytest.mark.slow if policy in BY_DRAWS else without_compilation)
        for policy in POLICIES
    ],
    ids=str,
)
def test_the_law_is_that_of_the_choices(policy: sl.extend.Policy) -> None:
    state = told(policy)._live.state
    rng, clock = np.random.default_rng(1), clock_at(13)
    probabilities = np.zeros(4)
    callable_for(write_probabilities, state)(state, clock, ALL_ARMS, rng, probabilities)
    assert probabilities.sum() == pytest.approx(1.0)
    draws = 1000
    ask = callable_for(choose, state)
    counts = np.bincount([ask(state, clock, ALL_ARMS, rng).arm for _ in range(draws)], minlength=4)
    spread = np.sqrt(probabilities * (1.0 - probabilities) / draws) + 0.008
    assert np.all(np.abs(counts / draws - probabilities) < 4.0 * spread)


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(),
        *(
            pytest.param(policy, marks=thorough)
            for policy in (sl.ThompsonSampling(), sl.TopTwo(), sl.EpsilonGreedy(), sl.LinMED())
        ),
    ],
    ids=str,
)
def test_the_law_of_some_arms(policy: sl.extend.Policy) -> None:
    state = told(policy)._live.state
    probabilities = np.zeros(4)
    offer = some_arms(np.array([False, True, True, False]))
    arguments = (state, clock_at(13), offer, np.random.default_rng(1), probabilities)
    callable_for(write_probabilities, state)(*arguments)
    assert probabilities[[0, 3]].tolist() == [0.0, 0.0]
    assert probabilities.sum() == pytest.approx(1.0)


@thorough
@every_policy
def test_with_a_floor_every_option_has_its_share(policy: sl.extend.Policy) -> None:
    """Stated probabilities are those of the draws: a sum of inverses is one on average."""
    session = told(policy, min_probability=0.05)
    draws = 600
    decisions = session.ask(count=draws)
    probabilities = np.array([one.probability for one in decisions])
    arms = np.array([one.arm for one in decisions])
    assert probabilities.min() >= 0.05
    inverse = np.array([(1.0 / probabilities)[arms == arm].sum() / draws for arm in range(4)])
    assert np.all(np.abs(inverse - 1.0) < 4.0 * np.sqrt(1.0 / 0.05 / draws))
    assert len(set(arms)) == 4


@pytest.mark.slow
def test_probabilities_of_thompson_sampling_change_no_decision() -> None:
    session = sl.Session(ACTIONS, sl.ThompsonSampling(), 0.3, seed=2)
    run = sl.simulate(
        sl.LinearBandit(ACTIONS, [0.3, 0.0], noise_std=0.3), sl.ThompsonSampling(), 1, seed=2
    )
    decision = session.ask()
    assert run.pulls[-1][decision.arm] == 1
    assert 0.0 < decision.probability < 1.0
    twin = sl.Session(ACTIONS, sl.ThompsonSampling(), 0.3, seed=2)
    assert twin.ask().probability == decision.probability


def test_while_committed_the_floor_explores() -> None:
    session = sl.Session(np.eye(2), sl.IDS(), 0.1, min_probability=0.2)
    for _ in range(60):
        decision = session.ask()
        session.tell(decision, 1.0 - decision.arm)
    decisions = session.ask(count=100)
    assert not any(one.exploring for one in decisions if one.arm == 0)
    others = [one for one in decisions if one.arm == 1]
    assert 5 < len(others) < 40
    assert all(one.exploring and one.probability == pytest.approx(0.2) for one in others)


def test_a_batch_of_a_policy_without_chance_looks_at_different_things() -> None:
    session = sl.Session(np.eye(4), sl.LinUCB(), 0.3, units="given")
    arms = [one.arm for one in session.ask(count=8)]
    assert sorted(arms) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert sorted(one.arm for one in session.ask(count=4)) == [0, 1, 2, 3]
    estimates = session.estimates()
    assert estimates is not None
    assert estimates.standard_errors.tolist() == [0.3] * 4, "nothing was learned from that"
    assert session.ask().round == 13


@pytest.mark.parametrize(
    ("policy", "min_probability", "message"),
    [
        (sl.IDS(), 0.3, "min_probability must be at most 1/4"),
        (sl.IDS(), -0.1, "min_probability must be"),
        (sl.IDS(), "0.1", "min_probability must be a number"),
        (EpsilonGreedy(0.1), 0.1, "min_probability needs the probabilities of EpsilonGreedy"),
    ],
)
def test_bad_floors(policy: sl.extend.Policy, min_probability: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sl.Session(ACTIONS, policy, 0.3, min_probability=min_probability)


def test_a_floor_limits_how_many_options_there_can_be() -> None:
    session = sl.Session(ACTIONS, sl.IDS(), 0.3, min_probability=0.25)
    with pytest.raises(ValueError, match="min_probability must be at most 1/5"):
        session.add("more", [1.0, 1.0])
    assert len(session.options) == 4
