"""One suite that every policy passes that learns from clicks and counts; others refuse them.

In the run that compiles, only a few of them do: likelihoods differ in a handful of formulas.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.likelihood import LOGISTIC
from sightline.core.model import bandit_model
from sightline.core.persistence import check_consistency
from sightline.policies.base import choose, inspect, started, update, write_probabilities
from sightline.policies.catalogue import POLICIES
from sightline.problems.streams import recorded_stream, sphere_stream
from tests.contracts.test_policies import CONFIGURATIONS
from tests.marks import thorough, without_compilation

S = 3.0
RULE = sl.LogDet(norm_bound=S)
TAKING = [
    sl.IDS(confidence=RULE, regulariser="matched"),
    sl.IDS(information="halfspace-ucb", confidence=RULE, contexts="conditional"),
    sl.IDS(information="log-det", sampling="exact"),
    sl.LinUCB(confidence=RULE, regulariser="matched"),
    sl.LinUCB(switch_growth=0.5),
    sl.ThompsonSampling(prior_std=S),
    sl.ThompsonSampling(inflation="agrawal-goyal"),
    sl.ThompsonSampling(inflation="abeille-lazaric"),
    sl.BayesianIDS(samples=60, prior_std=S),
    sl.TopTwo(confidence=RULE),
    sl.EpsilonGreedy(20.0, "1/t", confidence=RULE),
    sl.GLMUCB(norm_bound=S),
    sl.OFUGLB(norm_bound=S),
    sl.OFUGLB(norm_bound=S, confidence=RULE),
    sl.Stakes(norm_bound=S),
]
every_policy = pytest.mark.parametrize("policy", TAKING, ids=str)

X = np.array([[1.0, 0.0, 0.5], [1.0, 0.8, 0.0], [1.0, -0.3, -0.9], [1.0, 0.2, 0.1]])
PROBABILITIES = np.eye(4) * 0.4 + 0.05


def clicks(intercept: float, arms: Any = X) -> sl.LinearBandit:
    return sl.LinearBandit(arms, [intercept, 0.6, -0.4], rewards=sl.Bernoulli())


def counts(intercept: float) -> sl.LinearBandit:
    return sl.LinearBandit(X, [intercept, 0.6, -0.4], rewards=sl.Poisson())


PROBLEMS = {
    "clicks": clicks(-0.5),
    "clicks, one in a thousand": clicks(-7.0),
    "only failures": clicks(-30.0),
    "only successes": clicks(30.0),
    "clicks, duplicate arms": clicks(-0.5, [[1.0, 0.5, 0.5], [1.0, 0.5, 0.5], [1.0, -0.5, 0.5]]),
    "clicks, one arm": clicks(-0.5, [[1.0, 0.5, 0.5]]),
    "clicks, rank-deficient": clicks(-0.5, [[1.0, 1.0, 0.0], [0.5, 0.5, 0.0], [-1.0, -1.0, 0.0]]),
    "clicks, arms of zeros": clicks(-0.5, [[0.0, 0.0, 0.0], [1.0, 0.0, 1.0]]),
    "clicks, long features": clicks(-0.5, [[100.0, 30.0, 0.0], [0.0, 0.0, 1.0]]),
    "identity": sl.LinearBandit(
        PROBABILITIES, [0.1, 0.3, 0.2, 0.6], rewards=sl.Bernoulli("identity")
    ),
    "identity, at the ends": sl.LinearBandit(
        np.eye(2), [0.0, 1.0], rewards=sl.Bernoulli("identity")
    ),
    "counts": counts(0.2),
    "counts, one in a thousand": counts(-7.0),
    "large counts": counts(8.0),
}
STREAMS = {
    "clicks": sphere_stream(4, 3, rewards=sl.Bernoulli()),
    "counts": sphere_stream(4, 3, rewards=sl.Poisson()),
    "recorded clicks": recorded_stream(
        X[None], PROBLEMS["clicks"].means[None], likelihood=sl.Bernoulli()
    ),
}


@without_compilation
@every_policy
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_round_is_played_whatever_the_likelihood(policy: sl.extend.Policy, name: str) -> None:
    run = sl.simulate(PROBLEMS[name], policy, 60, seed=1, checkpoints=[1, 10, 60])
    assert run.pulls.sum(axis=1).tolist() == [1, 10, 60]
    assert np.isfinite(run.regret).all()
    assert (run.regret >= 0).all()


@without_compilation
@every_policy
@pytest.mark.parametrize("name", STREAMS)
def test_every_round_of_a_stream_is_played(policy: sl.extend.Policy, name: str) -> None:
    if not policy.supports.streams:
        with pytest.raises(ValueError, match="needs arms that come again"):
            sl.simulate(STREAMS[name], policy, 1, seed=1)
        return
    run = sl.simulate(STREAMS[name], policy, 30, seed=1, checkpoints=[1, 30])
    assert run.pulls.sum(axis=1).tolist() == [1, 30]
    assert np.isfinite(run.regret).all()


# Those that compile: one of each way to learn.
COMPILED = [TAKING[0], TAKING[3], TAKING[5], TAKING[11], TAKING[12]]


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [*COMPILED[:2], *(pytest.param(policy, marks=thorough) for policy in COMPILED[2:])],
    ids=str,
)
def test_regret_is_sublinear(policy: sl.extend.Policy) -> None:
    """The last 90 % of the rounds cost less per round than the first 10 %, on average."""
    n = 5000
    runs = [sl.simulate(PROBLEMS["clicks"], policy, n, seed, [n // 10, n]) for seed in range(10)]
    early, final = np.mean([run.regret for run in runs], axis=0)
    assert final - early < 8.0 * early


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("policy", [TAKING[3], TAKING[5]], ids=str)
def test_regret_on_a_stream_of_clicks_is_sublinear(policy: sl.extend.Policy) -> None:
    n = 5000
    runs = [sl.simulate(STREAMS["clicks"], policy, n, seed, [n // 10, n]) for seed in range(10)]
    early, final = np.mean([run.regret for run in runs], axis=0)
    assert final - early < 8.0 * early


@without_compilation
@every_policy
def test_choices_are_well_formed_and_asking_does_not_learn(policy: sl.extend.Policy) -> None:
    problem = PROBLEMS["clicks"]
    state, rng = policy.start(problem.model), np.random.default_rng(0)
    for t in range(1, 25):
        clock = clock_at(t)
        before = inspect(state, clock, ALL_ARMS)
        choice = choose(state, clock, ALL_ARMS, rng)
        after = inspect(state, clock, ALL_ARMS)
        assert before.best == after.best
        assert before.evidence == after.evidence or math.isnan(before.evidence)
        assert math.isnan(choice.probability) or 0.0 < choice.probability <= 1.0
        update(state, clock, choice.arm, float(rng.random() < problem.means[choice.arm]))
    check_consistency(state)
    if policy.randomises:
        probabilities = np.zeros(problem.k)
        write_probabilities(state, clock_at(25), ALL_ARMS, rng, probabilities)
        assert probabilities.sum() == pytest.approx(1.0)


def test_policies_without_likelihoods_refuse_them_with_a_sentence() -> None:
    model = bandit_model(np.eye(2), likelihood=LOGISTIC)
    refused = set()
    for entry in CONFIGURATIONS:
        policy: Any = getattr(entry, "values", [entry])[0]
        if not policy.supports.likelihoods:
            with pytest.raises(ValueError, match="needs rewards that are <x, theta> and noise"):
                started(policy, model)
            refused.add(type(policy).__name__)
    taking = {type(policy).__name__ for policy in TAKING}
    assert refused | taking == set(POLICIES), "every policy is in one of the two tests"
