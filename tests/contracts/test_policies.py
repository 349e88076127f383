"""One suite that every policy of the catalogue passes, in several configurations."""

from __future__ import annotations

import json
import math
import pickle
from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, clock_at, is_before
from sightline.core.model import bandit_model
from sightline.jit import registered
from sightline.policies.base import choose, inspect, update
from sightline.policies.catalogue import POLICIES, build, describe
from sightline.simulation.loop import streams
from tests.marks import without_compilation
from tests.selection import standing_in

# those that need no horizon, which has no default
ANYTIME = [cls for cls in POLICIES.values() if "horizon" not in cls.__annotations__]
CONFIGURATIONS = [
    *(cls() for cls in ANYTIME if cls is not sl.BayesianIDS),
    sl.BayesianIDS(samples=500),
    sl.BayesianIDS(samples=200, information="mutual-information", sampling="exact"),
    sl.IDS(information="halfspace-ucb"),
    sl.IDS(sampling="exact", learning_rate="algorithm"),
    sl.IDS(confidence=sl.LogLog(factor=0.5), regulariser=0.1),
    sl.IDS(confidence=sl.FixedBeta(2.0)),
    sl.IDS(confidence=sl.LogDet(delta=0.05)),
    sl.IDS(gaps="difference", learning_rate=0.5, regulariser="matched"),
    sl.IDS(gaps="difference-to-best", sampling="deterministic"),
    sl.IDS(gaps="thresholded", confidence=sl.LogDet(delta="1/(s log s)")),
    sl.IDS(information="log-det", learning_rate="inverse-sqrt-beta"),
    sl.IDS(information="ucb-directed"),
    sl.IDS(information="directed"),
    sl.IDS(information="cell"),
    sl.IDS(information="cell-ucb"),
    sl.IDS(information="laplace"),
    sl.IDS(information="laplace-variance"),
    sl.IDS(information="plain"),
    sl.IDS(gaps="difference-unlifted", exploitation="keep"),
    sl.LinUCB(confidence=sl.LogDet(norm_bound=2.0, factor=0.3), regulariser=0.01),
    sl.LinUCB(switch_growth=0.5),
    sl.PrimalDual("all", "empirical", "others", learning_rate="algorithm"),
    sl.PrimalDual(candidates="others", regulariser="matched"),
    sl.PrimalDual(optimism="ucb", gaps="value", confidence=sl.LogLog(), learning_rate=0.5),
    sl.Stakes(guard=0.0, randomised=False),
    sl.Stakes(norm_bound=2.0, noise="estimated"),
    sl.GCB(0.3, regulariser=0.1),
    sl.PEGE("logarithmic"),
    sl.PEGE("logarithmic", 0.5, 0.0),
    sl.PEGE(alpha=2.0, beta=0.5, regulariser=0.1),
    sl.MaximumInformation(confidence=sl.LogLog(), regulariser=0.1),
    sl.MaximumInformation(regulariser="matched"),
    sl.EpsilonGreedy(0.0),
    sl.EpsilonGreedy(30.0, "1/t", confidence=sl.LogLog(), regulariser=0.1),
    sl.ThompsonSampling(prior_std=0.3),
    sl.LinIMED(variant=1, confidence=sl.LogLog(), regulariser=0.1),
    sl.LinMED(0.5, 0.25, confidence=sl.LogLog(), regulariser=0.1, staleness=0.0),
    sl.PhasedElimination(horizon=300),
    sl.PhasedElimination(horizon=10**400, gap_bound=3.0),
    sl.ThompsonSampling(inflation="agrawal-goyal"),
    sl.ThompsonSampling(inflation="abeille-lazaric", confidence=sl.LogLog()),
    sl.ThompsonSampling(inflation=0.5),
    sl.TopTwo(leader_probability=0.9, redraws=3, regulariser=1.0),
    sl.TopTwo(redraws=1, confidence=sl.LogLog(), regulariser=0.1),
    sl.SOLID(reset=False),
    sl.SOLID(
        constraint_bonus=0.1,
        primal_step=0.5,
        dual_step="phase",
        first_normaliser=5.0,
        first_multiplier=0.5,
        multiplier_bound=10.0,
        confidence=sl.LogLog(),
        regulariser=0.1,
    ),
    sl.OSSB(epsilon=0.0, gamma=0.5, determinant_growth=0.0),
    sl.E4(horizon=300),
    sl.E4(horizon=50, gamma=0.5),
    sl.ExploreThenAllocate(horizon=300),
    sl.ExploreThenAllocate(horizon=10**400, constant=0.0),
    sl.OAM(horizon=300),
    sl.OAM(horizon=30, constant=0.1, forced_exploration=0.01, determinant_growth=0.0),
]
LARGE = pytest.param(sl.BayesianIDS(), marks=pytest.mark.slow, id="BayesianIDS()")
every_policy = pytest.mark.parametrize("policy", [*CONFIGURATIONS, LARGE], ids=str)
every_small_policy = pytest.mark.parametrize("policy", CONFIGURATIONS, ids=str)

PROBLEMS = {
    "plain": sl.problems.unit_sphere(k=6, d=2, noise_variance=0.1, seed=3),
    "one arm": sl.LinearBandit([[1.0, 2.0]], [1.0, 0.0], 0.3),
    "one dimension": sl.LinearBandit([[-1.0], [0.5], [1.0]], [1.0], 0.3),
    "duplicate arms": sl.LinearBandit(
        [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1.0, 0.0], 0.3
    ),
    "equal arms": sl.LinearBandit([[0.6, 0.8]] * 3, [1.0, 0.0], 0.3),
    "rank-deficient": sl.LinearBandit(
        [[0.5, 0.5, 0.0], [1.0, 1.0, 0.0], [-1.0, -1.0, 0.0]], [1.0, 0.0, 0.0], 0.3
    ),
    "best arm zero": sl.LinearBandit([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], [-0.5, -0.2], 0.3),
    "only zero arms": sl.LinearBandit([[0.0, 0.0], [0.0, 0.0]], [1.0, 0.0], 0.3),
    "tied best": sl.LinearBandit([[1.0, 0.0], [0.0, 1.0], [-0.5, 0.0]], [1.0, 1.0], 0.3),
    "all tied": sl.LinearBandit([[1.0, 0.0], [0.0, 1.0], [0.5, 0.0]], [0.0, 0.0], 0.3),
    "near-duplicates": sl.LinearBandit([[1.0, 0.0], [1.0, 1e-9], [0.0, 1.0]], [1.0, 0.0], 0.3),
    "large numbers": sl.LinearBandit([[1e5, 0.0], [1e5, 1.0], [0.0, 1.0]], [1.0, 0.0], 0.3),
    "small numbers": sl.LinearBandit([[1e-5, 0.0], [0.0, 1e-5]], [1.0, 0.0], 0.3),
}


@every_policy
@pytest.mark.parametrize("name", PROBLEMS)
def test_every_round_is_played_on_every_kind_of_problem(
    policy: sl.extend.Policy, name: str
) -> None:
    problem = PROBLEMS[name]
    run = sl.simulate(problem, policy, 120, seed=1, checkpoints=[1, 10, 120])
    assert run.pulls.sum(axis=1).tolist() == [1, 10, 120]
    assert (run.regret >= 0).all()
    assert np.isfinite(run.regret).all()
    assert (run.explorations <= run.t).all()
    if not policy.commits:
        assert (run.explorations == run.t).all()


@pytest.mark.parametrize("policy", standing_in((one, one) for one in CONFIGURATIONS))
@pytest.mark.slow
def test_regret_is_sublinear(policy: sl.extend.Policy) -> None:
    """The last 90 % of the rounds cost less per round than the first 10 %, on average."""
    problem = PROBLEMS["plain"]
    n = 20_000 if isinstance(policy, sl.GCB) else 2000  # GCB sweeps for thousands of rounds here
    runs = [sl.simulate(problem, policy, n, seed, [n // 10, n]) for seed in range(10)]
    early, final = np.mean([run.regret for run in runs], axis=0)
    assert final - early < 9.0 * early


@without_compilation
@every_small_policy
def test_choices_are_well_formed_and_asking_does_not_learn(policy: sl.extend.Policy) -> None:
    problem = PROBLEMS["plain"]
    state = policy.start(problem.model)
    decisions, noise = streams(0)
    for t in range(1, 60):
        clock = clock_at(t)
        before = inspect(state, clock, ALL_ARMS)
        choice = choose(state, clock, ALL_ARMS, decisions)
        after = inspect(state, clock, ALL_ARMS)
        assert before.best == after.best
        assert before.evidence == after.evidence or math.isnan(before.evidence)
        assert 0 <= choice.arm < problem.k
        assert math.isnan(choice.probability) or 0.0 < choice.probability <= 1.0
        assert not is_before(Clock(*choice.wake), clock)
        if is_before(clock, Clock(*choice.wake)):
            assert policy.commits
            assert choice.arm == before.best
        update(state, clock, choice.arm, problem.means[choice.arm] + 0.1 * noise.standard_normal())


@without_compilation
@every_small_policy
def test_stated_probabilities_are_those_of_the_draws(policy: sl.extend.Policy) -> None:
    """Inverse probabilities average to one per possible arm: within 4 standard errors."""
    problem = PROBLEMS["plain"]
    state = policy.start(problem.model)
    decisions, noise = streams(3)
    for t in range(1, 8):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        update(state, clock_at(t), arm, problem.means[arm] + 0.3 * noise.standard_normal())
    if math.isnan(choose(state, clock_at(8), ALL_ARMS, decisions).probability):
        pytest.skip("this policy does not state probabilities")
    draws = [choose(state, clock_at(8), ALL_ARMS, decisions) for _ in range(4000)]
    for arm in {draw.arm for draw in draws}:
        stated = {draw.probability for draw in draws if draw.arm == arm}
        frequency = np.mean([draw.arm == arm for draw in draws])
        assert len(stated) == 1, "the probability depends on the past only, not on the draw"
        p = stated.pop()
        assert abs(frequency - p) <= 4 * math.sqrt(p * (1 - p) / len(draws))


@every_policy
def test_configurations_are_frozen_values(policy: sl.extend.Policy) -> None:
    assert policy == build(describe(policy))
    assert hash(policy) == hash(build(describe(policy)))
    assert pickle.loads(pickle.dumps(policy)) == policy
    with pytest.raises(FrozenInstanceError):
        setattr(policy, fields(policy)[0].name, None)  # type: ignore[arg-type]


@every_policy
@pytest.mark.slow
def test_policies_of_the_library_are_compiled(policy: sl.extend.Policy) -> None:
    state = policy.start(bandit_model(np.eye(2), 1.0))
    assert registered(state).compiled
    assert all(type(state) in function.kernels for function in (choose, update, inspect))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: sl.IDS(information="half-space"), "did you mean 'halfspace'"),
        (
            lambda: sl.IDS(sampling="all"),
            "sampling must be one of 'pair', 'exact', 'deterministic', got 'all'",
        ),
        (lambda: sl.IDS(learning_rate=""), "learning_rate must be one of"),
        (lambda: sl.IDS(confidence="logdet"), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.LinUCB(confidence=1.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.IDS(regulariser=0.0), "regulariser must be finite and > 0, got 0.0"),
        (lambda: sl.LinUCB(regulariser=-1.0), "regulariser must be finite and > 0"),
        (lambda: sl.ThompsonSampling(prior_std=math.nan), "prior_std must be finite"),
        (lambda: sl.IDS(regulariser="1"), "regulariser must be one of 'matched', got '1'"),
        (lambda: sl.ThompsonSampling("1"), "prior_std must be a number"),  # type: ignore[arg-type]
        (lambda: sl.LogDet(norm_bound="1"), "norm_bound must be a number"),  # type: ignore[arg-type]
        (lambda: sl.LogDet(delta="1/s"), "delta must be one of"),
        (lambda: sl.LogDet(delta=0.0), "delta must be finite and > 0, got 0.0"),
        (lambda: sl.LogDet(delta=1), "or a number between 0 and 1, got 1"),
        (lambda: sl.LogDet(delta=None), "delta must be a number, got None"),  # type: ignore[arg-type]
        (lambda: sl.IDS(gaps="values"), "did you mean 'value'"),
        (lambda: sl.IDS(learning_rate=-1.0), "learning_rate must be finite and >= 0"),
        (lambda: sl.LogDet(norm_bound=-1.0), "norm_bound must be finite and >= 0"),
        (lambda: sl.LogDet(factor=0.0), "factor must be finite and > 0"),
        (lambda: sl.LogLog(factor=math.inf), "factor must be finite"),
        (lambda: sl.FixedBeta(0.0), "value must be finite and > 0"),
        (lambda: sl.PhasedElimination(1e6), "horizon must be an integer"),  # type: ignore[arg-type]
        (lambda: sl.PhasedElimination(0), "horizon must be at least 1, got 0"),
        (lambda: sl.PhasedElimination(9, gap_bound=0.0), "gap_bound must be finite and > 0"),
        (lambda: sl.LinIMED(variant=2), "variant must be 1 or 3, got 2"),
        (lambda: sl.LinIMED(cap=0.0), "cap must be finite and > 0, got 0.0"),
        (lambda: sl.EpsilonGreedy(-0.1), "epsilon must be finite and >= 0, got -0.1"),
        (
            lambda: sl.EpsilonGreedy(1.5),
            'epsilon must be at most 1, unless schedule="1/t", got 1.5',
        ),
        (lambda: sl.EpsilonGreedy(schedule="1/s"), "schedule must be one of 'fixed', '1/t', got"),
        (lambda: sl.EpsilonGreedy(regulariser="match"), "did you mean 'matched'"),
        (lambda: sl.EpsilonGreedy(confidence=1.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.LinMED(empirical=-0.1), "empirical must be finite and >= 0, got -0.1"),
        (lambda: sl.LinMED(design=0.1), r"empirical \+ design must be below 1.* got 0.9 \+ 0.1"),
        (lambda: sl.LinMED(staleness="5%"), "staleness must be a number"),  # type: ignore[arg-type]
        (lambda: sl.LinUCB(switch_growth=0.0), "switch_growth must be finite and > 0, got 0.0"),
        (lambda: sl.LinUCB(switch_growth=True), "switch_growth must be a number, got True"),
        (
            lambda: sl.ThompsonSampling(inflation="agrawal"),
            "inflation must be one of 'none', 'agrawal-goyal', 'abeille-lazaric', got 'agrawal'",
        ),
        (lambda: sl.ThompsonSampling(inflation=0.0), "inflation must be finite and > 0, got 0.0"),
        (lambda: sl.ThompsonSampling(inflation=None), "inflation must be a number, got None"),  # type: ignore[arg-type]
        (lambda: sl.ThompsonSampling(confidence=1.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.PrimalDual(optimism="al"), "optimism must be one of 'none', 'all', 'ucb'"),
        (lambda: sl.PrimalDual(gaps="floor"), "did you mean 'floored'"),
        (lambda: sl.PrimalDual(candidates="other"), "did you mean 'others'"),
        (
            lambda: sl.PrimalDual(candidates="all", gaps="empirical"),
            'candidates="all" needs gaps="floored" or "value", got "empirical"',
        ),
        (lambda: sl.PrimalDual(learning_rate="pape"), "did you mean 'paper'"),
        (lambda: sl.PrimalDual(regulariser=0.0), "regulariser must be finite and > 0"),
        (lambda: sl.PrimalDual(confidence=None), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.TopTwo(leader_probability=0.0), "leader_probability must be finite and > 0"),
        (lambda: sl.TopTwo(leader_probability=1.0), "leader_probability must be below 1, got 1.0"),
        (lambda: sl.TopTwo(redraws=-1), "redraws must be at least 1, got -1"),
        (lambda: sl.TopTwo(redraws=1.5), "redraws must be an integer"),  # type: ignore[arg-type]
        (lambda: sl.TopTwo(regulariser="match"), "did you mean 'matched'"),
        (lambda: sl.TopTwo(confidence=2.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.SOLID(reset=1), r"reset must be True \(SOLID\) or False"),  # type: ignore[arg-type]
        (lambda: sl.SOLID(constraint_bonus=-1.0), "constraint_bonus must be finite and >= 0"),
        (lambda: sl.SOLID(primal_step="phases"), "primal_step must be one of 'phase'"),
        (lambda: sl.SOLID(dual_step=0.0), "dual_step must be finite and > 0, got 0.0"),
        (lambda: sl.SOLID(first_normaliser=0.5), "first_normaliser must be finite and >= 1"),
        (lambda: sl.SOLID(first_multiplier=-0.1), "first_multiplier must be finite and >= 0"),
        (
            lambda: sl.SOLID(first_multiplier=2.0, multiplier_bound=1.0),
            "multiplier_bound must be finite and > 0 and >= 2, got 1.0",
        ),
        (lambda: sl.SOLID(confidence=1.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.SOLID(regulariser=0.0), "regulariser must be finite and > 0"),
        (lambda: sl.OAM(2), "horizon must be at least 3, got 2"),
        (lambda: sl.OAM(100.0), "horizon must be an integer"),  # type: ignore[arg-type]
        (lambda: sl.OAM(9, constant=-1.0), "constant must be finite and >= 0"),
        (lambda: sl.OAM(9, forced_exploration="1"), "forced_exploration must be one of 'theory'"),
        (lambda: sl.OAM(9, forced_exploration=-0.1), "forced_exploration must be finite and >= 0"),
        (lambda: sl.OAM(9, determinant_growth=-1.0), "determinant_growth must be finite and >= 0"),
        (lambda: sl.OSSB(epsilon=-0.1), "epsilon must be finite and >= 0, got -0.1"),
        (lambda: sl.OSSB(gamma=math.inf), "gamma must be finite and >= 0"),
        (lambda: sl.OSSB(determinant_growth=-1), "determinant_growth must be finite and >= 0"),
        (lambda: sl.E4(2), "horizon must be at least 3, got 2"),
        (lambda: sl.E4(1e5), "horizon must be an integer"),  # type: ignore[arg-type]
        (lambda: sl.E4(9, gamma=-1.0), "gamma must be finite and >= 0, got -1.0"),
        (lambda: sl.ExploreThenAllocate(2), "horizon must be at least 3, got 2"),
        (lambda: sl.ExploreThenAllocate(9, constant=-1.0), "constant must be finite and >= 0"),
        (lambda: sl.GCB(0.0), "constant must be finite and > 0, got 0.0"),
        (lambda: sl.GCB(regulariser="matched"), "regulariser must be a number"),  # type: ignore[arg-type]
        (lambda: sl.PEGE("logarithm"), "did you mean 'logarithmic'"),
        (lambda: sl.PEGE(alpha=-0.1), "alpha must be finite and >= 0"),
        (lambda: sl.PEGE(beta=-1.0), "beta must be finite and >= 0"),
        (lambda: sl.PEGE(beta=11.0), "beta must be at most 10, got 11.0"),
        (lambda: sl.PEGE(regulariser=-1.0), "regulariser must be finite and > 0, got -1.0"),
        (lambda: sl.MaximumInformation(confidence=1.0), "confidence must be LogDet"),  # type: ignore[arg-type]
        (lambda: sl.MaximumInformation(regulariser=0.0), "regulariser must be finite and > 0"),
        (lambda: build({"type": "IDSS"}), "did you mean 'IDS'"),
        (lambda: build({"type": "IDS", "informaton": "x"}), "did you mean 'information'"),
    ],
)
def test_bad_configurations(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_numpy_numbers_are_described_plainly() -> None:
    policy = sl.TopTwo(np.float32(0.5), np.int64(5), sl.LogDet(np.int32(2)))  # type: ignore[arg-type]
    described = json.loads(json.dumps(describe(policy)))
    assert build(described) == sl.TopTwo(0.5, 5, sl.LogDet(2))


def size_of(state: Any) -> int:
    """Numbers in all arrays of a state."""
    if isinstance(state, np.ndarray):
        return state.size
    return sum(map(size_of, state)) if isinstance(state, tuple) else 0


@every_policy
def test_memory_is_of_order_kd_and_d_squared(policy: sl.extend.Policy) -> None:
    rng = np.random.default_rng(0)
    few, many = (
        size_of(policy.start(bandit_model(rng.standard_normal((k, 3))))) for k in (80, 240)
    )
    assert many <= 4 * few  # where something had k^2 entries, it would be more than 7
