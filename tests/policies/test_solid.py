"""SOLID and SOLID++ against brute force, their phases, and what the constraint bonus does."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sightline as sl
from sightline import SOLID, FixedBeta, LinearBandit, LogDet, LogLog
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.policies.base import Evidence, choose, inspect, update
from sightline.policies.solid import SOLIDState
from sightline.problems import end_of_optimism, large_gaps, unit_sphere
from sightline.simulation.loop import streams
from tests import naive, naive_rivals_solid
from tests.marks import thorough, without_compilation
from tests.naive import Array
from tests.naive_rivals_solid import Constants, SolidTrace

PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 4.0, 0.1),
    "large gaps": large_gaps(0.3),
    "circle": unit_sphere(6, 2, 0.1, seed=3),
    "sphere": unit_sphere(8, 3, 0.5, seed=1),
    "twins": LinearBandit([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [0.5, 0.2], 0.3),
}
TIED = LinearBandit([[1.0, 0.0], [0.0, 1.0]], [1.0, 1.0], 0.3)  # explores for ever, nearly
# policies beside the constants of the truth, where kappa is not yet divided by the variance
CONFIGURATIONS: dict[str, tuple[SOLID, Constants, naive.Beta]] = {
    "SOLID": (SOLID(), Constants(reset=True, kappa=math.nan), naive.Beta()),  # nan: 2 S L
    "SOLID, no bonus": (
        SOLID(constraint_bonus=0.0),
        Constants(reset=True, kappa=0.0),
        naive.Beta(),
    ),
    "SOLID++": (
        SOLID(reset=False),
        Constants(reset=False, kappa=0.0, steps=(0.5, 0.1)),
        naive.Beta(),
    ),
    "SOLID++, bonus": (
        SOLID(reset=False, constraint_bonus=0.05),
        Constants(reset=False, kappa=0.05, steps=(0.5, 0.1)),
        naive.Beta(),
    ),
    "own constants": (
        SOLID(
            constraint_bonus=0.02,
            primal_step=0.3,
            dual_step="phase",
            first_normaliser=3.0,
            first_multiplier=0.4,
            multiplier_bound=0.7,
            confidence=LogDet(norm_bound=2.0, factor=0.3, delta="1/(s log s)"),
            regulariser=0.1,
        ),
        Constants(True, 0.02, (0.3, None), z_0=3.0, lambda_1=0.4, lambda_max=0.7),
        naive.Beta(factor=0.3, norm_bound=2.0, regulariser=0.1, delta="1/(s log s)"),
    ),
    "log-log": (
        SOLID(reset=False, primal_step="phase", confidence=LogLog()),
        Constants(reset=False, kappa=0.0, steps=(None, 0.1)),
        naive.Beta("log-log"),
    ),
    "fixed": (
        SOLID(confidence=FixedBeta(2.0), constraint_bonus=0.0),
        Constants(reset=True, kappa=0.0),
        naive.Beta("fixed", fixed=2.0),
    ),
}


def started(problem: LinearBandit, policy: SOLID) -> SOLIDState:
    return policy.start(problem.model)


def played(problem: LinearBandit, policy: SOLID, rounds: int, seed: int) -> SolidTrace:
    """Play through the interpreter, looking into the state."""
    decisions, noise = streams(seed)
    state = started(problem, policy)
    arms, weights, multipliers, explored = [], [], [], []
    for t in range(1, rounds + 1):
        before = int(state.pair.explorations[0])
        weights.append(state.pair.weights.copy())
        arms.append(choose(state, clock_at(t), ALL_ARMS, decisions).arm)
        reward = float(problem.actions[arms[-1]] @ problem.theta)
        reward += problem.model.noise_std * float(noise.standard_normal())
        update(state, clock_at(t), arms[-1], reward)
        multipliers.append(float(state.pair.multiplier[0]))
        explored.append(state.pair.explorations[0] > before)
    return SolidTrace(np.array(arms), np.array(weights), np.array(multipliers), np.array(explored))


def truth(problem: LinearBandit, configuration: str, rounds: int, seed: int) -> SolidTrace:
    _, c, beta = CONFIGURATIONS[configuration]
    longest = float(np.linalg.norm(problem.actions, axis=1).max())
    bonus = 2.0 * longest if math.isnan(c.kappa) else c.kappa
    c = dataclasses.replace(
        c, kappa=bonus / problem.model.noise_std**2, range_of_means=2.0 * beta.norm_bound * longest
    )
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(seed))
    beta = dataclasses.replace(beta, noise_std=problem.model.noise_std)
    return naive_rivals_solid.solid(world, beta, c, rounds)


def compare(problem: LinearBandit, configuration: str, rounds: int, seed: int) -> SolidTrace:
    expected = truth(problem, configuration, rounds, seed)
    actual = played(problem, CONFIGURATIONS[configuration][0], rounds, seed)
    differ = np.flatnonzero(actual.arms != expected.arms)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(actual.explored, expected.explored)
    np.testing.assert_allclose(actual.weights, expected.weights, atol=1e-6)
    np.testing.assert_allclose(actual.multipliers, expected.multipliers, rtol=1e-6, atol=1e-9)
    return actual


@without_compilation
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_rounds_as_brute_force(problem: LinearBandit, configuration: str) -> None:
    compare(problem, configuration, rounds=120, seed=4)


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("seed", range(2))
def test_same_rounds_as_brute_force_through_phases(configuration: str, seed: int) -> None:
    """Long enough for several phases, and for exploitation to begin."""
    compare(end_of_optimism(0.1, 4.0, 0.1), configuration, rounds=1200, seed=seed)


@without_compilation
def test_the_multiplier_and_the_exploitation_test_are_in_play() -> None:
    """What the comparisons compare: multipliers that move, and rounds of both kinds."""
    trace = played(PROBLEMS["circle"], CONFIGURATIONS["SOLID++"][0], 400, seed=4)
    assert trace.multipliers.max() > 0.1
    assert 0.1 < trace.explored.mean() < 0.9


@pytest.mark.parametrize("reset", [True, False])
def test_phases_have_their_lengths_and_restarts(reset: bool) -> None:
    policy = SOLID(reset=reset, constraint_bonus=0.0, first_multiplier=0.25, first_normaliser=2.0)
    state = started(TIED, policy)
    lengths = [math.ceil(2.0 * math.exp(3 * k)) for k in range(3)]
    ends = np.cumsum(lengths)
    for t in range(1, ends[-1] + 1):
        choose(state, clock_at(t), ALL_ARMS, np.random.default_rng(t))
        # both means stay tied, or nearly: nothing is settled
        update(state, clock_at(t), t % 2, 1.0)
        assert state.pair.explorations[0] == t
        assert state.pair.phase[0] == np.searchsorted(ends, t, side="right")
        if t in ends and reset:
            np.testing.assert_array_equal(state.pair.weights, 0.5)
            assert state.pair.multiplier[0] == 0.25
        elif t in ends:
            assert state.pair.multiplier[0] > 0.25


def test_the_bound_on_the_multiplier_holds() -> None:
    problem = end_of_optimism(0.01, 8.0, 1.0)
    fixed = played(problem, SOLID(reset=False, multiplier_bound=0.05), 200, seed=0)
    assert fixed.multipliers.max() == 0.05
    steep = SOLID(reset=False, dual_step=100.0)
    longest = float(np.linalg.norm(problem.actions, axis=1).max())
    trace = played(problem, steep, 1 + 21, seed=0)
    assert trace.multipliers[0] == 2.0 * longest
    assert trace.multipliers[1:].max() == pytest.approx(2.0 * longest * math.e)


@without_compilation
def test_asking_and_inspecting_do_not_learn() -> None:
    problem = PROBLEMS["circle"]
    state = started(problem, SOLID(reset=False))
    rng = np.random.default_rng(0)
    for t in range(1, 40):
        learned = [state.pair.weights.copy(), *(a.copy() for a in state.pair[:5])]
        for _ in range(3):
            arm = choose(state, clock_at(t), ALL_ARMS, rng).arm
            inspect(state, clock_at(10 * t), ALL_ARMS)
        now = [state.pair.weights, *state.pair[:5]]
        for one, other in zip(learned, now, strict=True):
            np.testing.assert_array_equal(one, other)
        update(state, clock_at(t), arm, problem.means[arm])


def settled_in_round_50(problem: LinearBandit) -> tuple[SOLIDState, Evidence]:
    state = started(problem, SOLID())
    report = inspect(state, clock_at(50), ALL_ARMS)
    while report.evidence < report.threshold:
        for arm in range(problem.k):
            update(state, clock_at(50), arm, problem.means[arm])
        report = inspect(state, clock_at(50), ALL_ARMS)
    return state, report


def test_inspection_tells_when_the_settled_arm_will_be_questioned() -> None:
    problem = PROBLEMS["circle"]
    state, report = settled_in_round_50(problem)
    assert report.best == problem.best
    first = report.wake.t
    rng = np.random.default_rng(0)
    assert first > 50
    assert choose(state, clock_at(first - 1), ALL_ARMS, rng).probability == 1.0
    assert choose(state, clock_at(first), ALL_ARMS, rng).probability < 1.0


@without_compilation
def test_a_late_reward_moves_the_weights_if_its_round_would_explore() -> None:
    """Whether it would is judged by the round of the decision, on what is known now."""
    problem = PROBLEMS["circle"]
    for later in (-1, 0):
        state, report = settled_in_round_50(problem)
        before, told = int(state.pair.explorations[0]), int(state.estimate.learned.rounds[0])
        update(state, clock_at(report.wake.t + later), problem.best, problem.means[problem.best])
        assert state.pair.explorations[0] == before + later + 1
        assert state.estimate.learned.rounds[0] == told + 1, "it learns in either case"


@without_compilation
@pytest.mark.parametrize("reset", [True, False])
def test_rewards_told_late_and_in_any_order(reset: bool) -> None:
    """Answers between two rewards come from one distribution, and the best arm is found."""
    problem = PROBLEMS["circle"]
    session = sl.Session(problem.actions, SOLID(reset=reset), problem.noise_std, seed=1)
    rng = np.random.default_rng(0)
    for _ in range(30):
        batch = [session.ask() for _ in range(50)]
        for arm in {decision.arm for decision in batch}:
            # exploitation can end within a batch, as the clock runs on: 1, then the weight
            stated = {d.probability for d in batch if d.arm == arm}
            assert len(stated - {1.0}) <= 1
        for i in rng.permutation(50)[:45]:  # some rewards never come
            mean = problem.means[batch[i].arm]
            session.tell(batch[i].id, mean + problem.model.noise_std * rng.standard_normal())
    status = session.status()
    assert status.best == problem.best
    assert status.settled
    assert status.explorations == 30 * 45


@settings(deadline=None, max_examples=20)
@given(
    st.sampled_from([policy for policy, _, _ in CONFIGURATIONS.values()]),
    st.integers(0, 2**32 - 1),
)
def test_rotation_changes_nothing(policy: SOLID, seed: int) -> None:
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((5, 3)), rng.standard_normal(3)
    rotation: Any = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    runs = [
        sl.simulate(LinearBandit(x, y, 0.3), policy, 100, 1, range(1, 101))
        for x, y in ((actions, theta), (actions @ rotation, theta @ rotation))
    ]
    np.testing.assert_array_equal(runs[0].pulls, runs[1].pulls)


def pulls(policy: SOLID, seed: int) -> Array:
    run = sl.simulate(end_of_optimism(0.01, 4.0, 0.1), policy, 2000, seed, range(1, 2001))
    return run.pulls


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_with_the_bonus_the_normaliser_is_never_felt(seed: int) -> None:
    """The finding of docs/solid.md: the multiplier stays 0, so z_0 changes no choice at all."""
    bonus, none = (SOLID(reset=False, constraint_bonus=b) for b in (1.0, 0.0))
    other = [dataclasses.replace(policy, first_normaliser=100.0) for policy in (bonus, none)]
    np.testing.assert_array_equal(pulls(bonus, seed), pulls(other[0], seed))
    assert (pulls(none, seed) != pulls(other[1], seed)).any()
    multipliers = played(end_of_optimism(0.01, 4.0, 0.1), bonus, 300, seed).multipliers
    np.testing.assert_array_equal(multipliers, 0.0)


@pytest.mark.slow
def test_without_the_bonus_the_informative_arm_is_played_more_often() -> None:
    """By more than four standard errors of the mean difference, after 2000 rounds."""
    with_bonus, without = (
        np.array([pulls(SOLID(reset=False, constraint_bonus=b), seed)[-1, 2] for seed in range(10)])
        for b in (1.0, 0.0)
    )
    difference = without - with_bonus
    assert difference.mean() > 4.0 * difference.std(ddof=1) / math.sqrt(10)
