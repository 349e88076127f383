"""One suite that every policy passes on finite classes, whether it uses the models or not."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.persistence import check_consistency
from sightline.policies.base import choose, inspect, started, update, write_probabilities
from sightline.problems import FiniteClass
from sightline.simulation.loop import streams
from tests.contracts.test_policies import ANYTIME
from tests.marks import thorough, without_compilation

USING = [
    sl.IDS(),
    sl.IDS(gaps="thresholded", sampling="exact", learning_rate="algorithm"),
    sl.IDS(information="plain", sampling="deterministic", confidence=sl.FixedBeta(2.0)),
    sl.IDS(learning_rate="inverse-sqrt-beta", confidence=sl.LogDet(factor=0.5)),
    sl.IDS(learning_rate=0.5, exploitation="keep"),
    sl.LinUCB(),
    sl.LinUCB(confidence=sl.LogDet(None, 0.3)),
    sl.OSSB(),
    sl.OSSB(epsilon=0.0, gamma=0.5),
]
IGNORING = [cls() for cls in ANYTIME if cls not in (sl.IDS, sl.LinUCB, sl.OSSB, sl.BayesianIDS)] + [
    sl.BayesianIDS(samples=60),
    *(cls(horizon=60) for cls in (sl.PhasedElimination, sl.E4, sl.ExploreThenAllocate, sl.OAM)),
]
every_policy = pytest.mark.parametrize("policy", [*USING, *IGNORING], ids=str)
every_user = pytest.mark.parametrize("policy", USING, ids=str)

PLAIN = sl.problems.lipschitz_class(4, 5, noise_variance=0.1)
CLASSES = {
    "plain": PLAIN,
    "cheating": sl.problems.cheating_class(4),
    "one model": FiniteClass([[0.2, 0.5, 0.1]], 0, 0.3),
    "one arm": FiniteClass([[0.2], [0.5]], 1, 0.3),
    "duplicates": FiniteClass([[0.2, 0.5], [0.5, 0.2], [0.2, 0.5], [0.5, 0.2]], 2, 0.3),
    "tied best": FiniteClass([[0.5, 0.5, 0.1], [0.5, 0.6, 0.1], [0.2, 0.5, 0.9]], 0, 0.3),
    "all tied": FiniteClass([[0.0, 0.0], [0.0, 1e-3]], 0, 0.3),
    "noise per arm": FiniteClass([[0.2, 0.5], [0.5, 0.2], [0.6, 0.5]], 2, [0.1, 2.0]),
    "near": FiniteClass([[0.5, 0.2], [0.5 + 1e-9, 0.6]], 0, 0.3),
    "large numbers": FiniteClass([[1e5, 0.0], [1e5, 1e5 + 1.0]], 0),
    "small numbers": FiniteClass([[1e-5, 0.0], [0.0, 1e-5]], 1),
    "other noise": FiniteClass(PLAIN.models, PLAIN.true, noise=sl.problems.BernoulliNoise()),
}


@without_compilation
@every_policy
@pytest.mark.parametrize("name", CLASSES)
def test_every_round_is_played_on_every_kind_of_class(policy: sl.extend.Policy, name: str) -> None:
    problem = CLASSES[name]
    if name == "noise per arm" and not policy.supports.noise_per_arm:
        with pytest.raises(ValueError, match="needs one noise level for all arms"):
            sl.simulate(problem, policy, 1)
        return
    run = sl.simulate(problem, policy, 40, seed=1, checkpoints=[1, 10, 40])
    assert run.pulls.sum(axis=1).tolist() == [1, 10, 40]
    assert (run.regret >= 0).all()
    assert np.isfinite(run.regret).all()
    if not policy.commits:
        assert (run.explorations == run.t).all()


@without_compilation
@every_user
@pytest.mark.parametrize("name", ["plain", "cheating", "tied best", "noise per arm"])
def test_choices_are_well_formed_and_asking_does_not_learn(
    policy: sl.extend.Policy, name: str
) -> None:
    problem = CLASSES[name]
    state = started(policy, problem.model)
    weights = problem.model.needs_weights("a test")
    decisions, noise = streams(0)
    for t in range(1, 40):
        clock = clock_at(t)
        before = inspect(state, clock, ALL_ARMS)
        choice = choose(state, clock, ALL_ARMS, decisions)
        assert inspect(state, clock, ALL_ARMS) == before
        assert 0 <= choice.arm < problem.k
        assert 0.0 < choice.probability <= 1.0
        mean = weights[choice.arm] * problem.means[choice.arm]
        update(state, clock, choice.arm, mean + 0.3 * noise.standard_normal())
    check_consistency(state)


@without_compilation
@every_user
def test_stated_probabilities_are_those_of_the_draws(policy: sl.extend.Policy) -> None:
    state = started(policy, PLAIN.model)
    decisions, noise = streams(3)
    for t in range(1, 6):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        update(state, clock_at(t), arm, PLAIN.means[arm] + 0.3 * noise.standard_normal())
    stated = np.zeros(PLAIN.k)
    write_probabilities(state, clock_at(6), ALL_ARMS, decisions, stated)
    draws = [choose(state, clock_at(6), ALL_ARMS, decisions) for _ in range(1000)]
    for arm in {draw.arm for draw in draws}:
        p = stated[arm]
        assert {draw.probability for draw in draws if draw.arm == arm} == {p}
        frequency = np.mean([draw.arm == arm for draw in draws])
        assert abs(frequency - p) <= 4 * math.sqrt(p * (1 - p) / len(draws))


@thorough  # recorded runs compile the same kernels
@pytest.mark.slow
@pytest.mark.parametrize("policy", [sl.IDS(), sl.LinUCB(), sl.OSSB()], ids=str)
def test_regret_is_sublinear(policy: sl.extend.Policy) -> None:
    """The last 90 % of the rounds cost less per round than the first 10 %, on average."""
    n = 20_000
    runs = [sl.simulate(PLAIN, policy, n, seed, [n // 10, n]) for seed in range(10)]
    early, final = np.mean([run.regret for run in runs], axis=0)
    assert final - early < 4.0 * early
