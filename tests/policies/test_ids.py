"""IDS against Algorithm 1 played round by round, and what must not change its choices."""

import dataclasses
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import IDS, FixedBeta, LinearBandit, LogDet, LogLog, simulate
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at, is_before
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import needs_norm_bound
from sightline.extend import choose, update
from sightline.policies.base import compare_to_best
from sightline.policies.ids import IDSState, ids_distribution
from sightline.problems import end_of_optimism, large_gaps
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_family
from tests.marks import thorough, without_compilation
from tests.naive import Array, Ints


def gaussian_arms(k: int, d: int, noise_std: float, seed: int) -> LinearBandit:
    """Return arms without ties: no two of equal norm, so that round 1 has one widest arm."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d)) / math.sqrt(d)
    return LinearBandit(actions, rng.standard_normal(d), noise_std)


PROBLEMS = {
    "end of optimism": end_of_optimism(0.2, 2.0, 0.1),
    "large gaps": large_gaps(0.05),
    "plane": gaussian_arms(6, 2, 0.2, seed=1),
    "space": gaussian_arms(7, 4, 0.1, seed=2),
    "more dimensions than arms": gaussian_arms(3, 5, 0.3, seed=3),
}
POLICIES = {
    "paper": IDS(),
    "ucb": IDS(information="halfspace-ucb"),
    "exact": IDS(sampling="exact"),
    "ucb exact": IDS(information="halfspace-ucb", sampling="exact"),
    "algorithm": IDS(learning_rate="algorithm"),
    "log-log": IDS(confidence=LogLog()),
    "log-log tuned": IDS(confidence=LogLog(factor=0.5), information="halfspace-ucb"),
    "fixed": IDS(confidence=FixedBeta(0.3)),
    "scaled": IDS(
        confidence=LogDet(norm_bound=2.5, factor=0.4),
        regulariser=0.05,
        sampling="exact",
        learning_rate="algorithm",
    ),
    "thresholded": IDS(gaps="thresholded"),
    "difference": IDS(gaps="difference", sampling="exact"),
    "difference to best": IDS(gaps="difference-to-best", information="halfspace-ucb"),
    "difference unlifted": IDS(
        gaps="difference-unlifted", sampling="exact", confidence=LogDet(norm_bound=0.2)
    ),
    "plain": IDS(information="plain"),
    "all data": IDS(exploitation="keep", confidence=LogDet(norm_bound=0.2)),
    "log-log of the authors": IDS(confidence=LogLog(variance_of="first")),
    "by beta": IDS(learning_rate="inverse-sqrt-beta", confidence=LogDet(delta="1/(s log s)")),
    "fixed rate": IDS(learning_rate=0.7, regulariser="matched"),
    "no rate": IDS(learning_rate=0.0),
    "deterministic": IDS(sampling="deterministic", confidence=LogDet(norm_bound=2.0)),
    "log-det": IDS(information="log-det"),
    "ucb-directed": IDS(information="ucb-directed", regulariser="matched"),
    "directed": IDS(information="directed"),
    "heavy": IDS(confidence=LogDet(norm_bound=0.5), regulariser=3.0, information="halfspace-ucb"),
}


def beta_of(policy: IDS, noise_std: float) -> naive.Beta:
    rule = policy.confidence
    norm_bound = needs_norm_bound(rule, "this test")
    matched = (noise_std / norm_bound) ** 2
    regulariser = matched if isinstance(policy.regulariser, str) else policy.regulariser
    if isinstance(rule, LogDet):
        return naive.Beta(
            "log-det", rule.factor, 1.0, noise_std, regulariser, norm_bound, rule.delta
        )
    if isinstance(rule, LogLog):
        kind = "log-log" if rule.variance_of == "both" else "log-log of the authors"
        return naive.Beta(kind, rule.factor, 1.0, noise_std, regulariser)
    assert isinstance(rule, FixedBeta)
    return naive.Beta("fixed", 1.0, rule.value, noise_std, regulariser)


def truth(problem: LinearBandit, policy: IDS, rounds: int, seed: int) -> naive.Trace:
    actions, theta = problem.actions, problem.theta
    if problem.k < problem.d:
        actions, theta = naive.spanning(actions, theta)
    world = naive.World(actions, theta, problem.model.noise_std, *streams(seed))
    rules = naive_family.Rules(
        beta_of(policy, problem.model.noise_std),
        policy.information,
        policy.sampling,
        "value" if policy.gaps == "auto" else policy.gaps,
        policy.learning_rate,
        policy.exploitation,
    )
    return naive_family.algorithm_1(world, rules, rounds)


def every_round(problem: LinearBandit, policy: IDS, rounds: int, seed: int) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


def arms_of(run: Trajectory) -> Ints:
    played = np.diff(run.pulls, axis=0, prepend=0.0)
    arms: Ints = played.argmax(axis=1)
    return arms


class Play(NamedTuple):
    """A policy asked every round through its own two functions, and what it computed."""

    arms: list[int]
    ratios: list[float]
    gap_excess: list[float]  # gap(mu_s) / delta_s, by exploration round
    state: IDSState


def play(problem: LinearBandit, policy: IDS, rounds: int, seed: int) -> Play:
    state = policy.start(problem.model)
    decisions, noise = streams(seed)
    result = Play([], [], [], state)
    for t in range(1, rounds + 1):
        clock = clock_at(t)
        choice = choose(state, clock, ALL_ARMS, decisions)
        result.arms.append(choice.arm)
        if is_before(clock, choice.wake):
            continue
        comparison = compare_to_best(state, ALL_ARMS)
        mixture, _, _ = ids_distribution(state, comparison, ALL_ARMS)
        p, gaps = mixture.probability, state.work.gaps
        gap = (1.0 - p) * gaps[mixture.first] + p * gaps[mixture.second]
        result.ratios.append(mixture.ratio)
        result.gap_excess.append(gap / gaps[comparison.best])
        expected = p if choice.arm == mixture.second and p > 0.0 else 1.0 - p
        assert choice.probability == expected
        reward = problem.means[choice.arm] + problem.model.noise_std * noise.normal()
        update(state, clock, choice.arm, reward)
    return result


def assert_same_arms(problem: LinearBandit, policy: IDS, rounds: int, seed: int) -> naive.Trace:
    trace = truth(problem, policy, rounds, seed)
    run = every_round(problem, policy, rounds, seed)
    differ = np.flatnonzero(arms_of(run) != trace.arms)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"
    np.testing.assert_array_equal(run.explorations, np.cumsum(trace.explored))
    return trace


@without_compilation
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_algorithm_1(problem: LinearBandit, policy: IDS) -> None:
    assert_same_arms(problem, policy, 120, seed=5)


# each takes seconds to compile: one per kind of confidence, gap and gain
FOR_LONG = ["paper", "ucb", "exact", "log-log", "fixed", "thresholded", "difference", "directed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [*FOR_LONG[:2], *(pytest.param(name, marks=thorough) for name in FOR_LONG[2:])]
)
@pytest.mark.parametrize(("problem", "seed"), [("large gaps", 0), ("plane", 1)])
def test_same_arms_as_algorithm_1_for_long(problem: str, seed: int, name: str) -> None:
    trace = assert_same_arms(PROBLEMS[problem], POLICIES[name], 2000, seed)
    assert trace.explored.any()


@pytest.mark.slow
def test_the_long_runs_explore_exploit_and_return() -> None:
    """Agreement above would mean little if every round explored, or none did again."""
    explored = truth(PROBLEMS["large gaps"], IDS(), 2000, seed=0).explored
    returns = np.count_nonzero(explored[1:] & ~explored[:-1])
    assert 0 < explored.sum() < 2000
    assert returns > 2


@without_compilation
@pytest.mark.parametrize("policy", [IDS(), POLICIES["scaled"]], ids=["paper", "scaled"])
@pytest.mark.parametrize("problem", ["plane", "space"])
def test_same_estimate_as_algorithm_1(problem: str, policy: IDS) -> None:
    rounds = 250
    trace = truth(PROBLEMS[problem], policy, rounds, seed=2)
    result = play(PROBLEMS[problem], policy, rounds, seed=2)
    assert result.arms == trace.arms.tolist()
    learned = result.state.estimate.learned
    np.testing.assert_allclose(learned.theta, trace.theta, rtol=1e-10)
    np.testing.assert_allclose(learned.gram_inverse, naive.inverse(trace.V), rtol=1e-10)
    np.testing.assert_allclose(result.ratios, trace.ratios, rtol=1e-9)


@without_compilation
@pytest.mark.parametrize("information", ["halfspace", "halfspace-ucb"])
@pytest.mark.parametrize("sampling", ["pair", "exact"])
@pytest.mark.parametrize("seed", range(2))
def test_information_ratio_and_near_greed(information: str, sampling: str, seed: int) -> None:
    """Psi(mu_s) <= 2, because the UCB arm has it; and gap(mu_s) <= 2 delta_s."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((6, 3))
    actions /= np.linalg.norm(actions, axis=1).max()  # in the unit ball, as the paper assumes
    problem = LinearBandit(actions, [1.0, 0.0, 0.0], 1.0)
    result = play(problem, IDS(information=information, sampling=sampling), 200, seed)
    assert len(result.ratios) > 100
    assert max(result.ratios) <= 2.0 * (1 + 1e-12)
    assert max(result.gap_excess) <= 2.0 * (1 + 1e-12)


def test_the_first_round_plays_the_widest_arm() -> None:
    # theta = 0: all gaps are equal and only width informs, whatever the regulariser
    problem = LinearBandit([[0.1, 0.0], [1.0, 0.2], [0.3, 0.9]], [1.0, 0.0], 1.0)
    for regulariser in (0.1, 0.3, 1.0, 3.0, 5.0, 7.0, 100.0):
        for policy in (IDS(regulariser=regulariser), POLICIES["ucb"]):
            assert every_round(problem, policy, 1, seed=0).pulls[0].tolist() == [0, 1, 0]


configurations = st.sampled_from(list(POLICIES.values()))
seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None, max_examples=25)
@given(configurations, seeds)
def test_rotating_the_features_changes_nothing(policy: IDS, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = gaussian_arms(5, 3, 0.3, seed)
    rotation = np.linalg.qr(rng.standard_normal((3, 3)))[0]
    turned = LinearBandit(problem.actions @ rotation, problem.theta @ rotation, 0.3)
    one, other = (every_round(p, policy, 60, seed=1) for p in (problem, turned))
    np.testing.assert_array_equal(one.pulls, other.pulls)


@settings(deadline=None, max_examples=25)
@given(configurations.filter(lambda policy: policy.information != "directed"), seeds)
def test_relabelling_the_arms_relabels_the_pulls(policy: IDS, seed: int) -> None:
    """Also in round 1: all means are tied there, but the widest arm is played under any name.

    A direction relative to the best arm, though, depends on which of the tied ones that is.
    """
    problem = gaussian_arms(5, 3, 0.3, seed)
    order = np.random.default_rng(seed).permutation(5)
    renamed = LinearBandit(problem.actions[order], problem.theta, 0.3)
    one, other = (every_round(p, policy, 60, seed=1) for p in (problem, renamed))
    np.testing.assert_array_equal(one.pulls[:, order], other.pulls)


def scaled_rule(rule: ConfidenceRule, c: float) -> ConfidenceRule:
    """Return the same rule for rewards c times as large."""
    if isinstance(rule, LogDet):
        return dataclasses.replace(rule, norm_bound=c * needs_norm_bound(rule, "this test"))
    return FixedBeta(c * c * rule.value) if isinstance(rule, FixedBeta) else rule


@settings(deadline=None, max_examples=25)
@given(configurations, seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(policy: IDS, seed: int, c: float) -> None:
    """Powers of two scale without rounding, so the runs agree to the last bit."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    scaled = dataclasses.replace(policy, confidence=scaled_rule(policy.confidence, c))
    one, two = every_round(problem, policy, 60, 1), every_round(other, scaled, 60, 1)
    np.testing.assert_array_equal(one.pulls, two.pulls)
    np.testing.assert_array_equal(c * one.regret, two.regret)


@settings(deadline=None, max_examples=25)
@given(configurations, seeds, st.sampled_from([2.0**-10, 0.5, 4.0, 2.0**10]))
def test_the_unit_of_the_features_changes_nothing(policy: IDS, seed: int, c: float) -> None:
    """Arms c times as long, theta and its bound c times as short, lambda in the unit of V."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(c * problem.actions, problem.theta / c, 0.25)
    rule = policy.confidence
    if isinstance(rule, LogDet):
        rule = dataclasses.replace(rule, norm_bound=needs_norm_bound(rule, "this test") / c)
    ridge = policy.regulariser
    if not isinstance(ridge, str):  # else it follows the bound
        ridge = c * c * ridge
    scaled = dataclasses.replace(policy, confidence=rule, regulariser=ridge)
    one, two = every_round(problem, policy, 60, 1), every_round(other, scaled, 60, 1)
    np.testing.assert_array_equal(one.pulls, two.pulls)


@pytest.mark.parametrize("sampling", ["pair", "exact"])
@pytest.mark.parametrize("information", ["halfspace", "halfspace-ucb"])
def test_the_zero_arm_can_be_settled(sampling: str, information: str) -> None:
    """Doing nothing is best: the gap of x-hat is zero and playing it teaches nothing."""
    actions: Array = np.array([[0.0, 0.0], [1.0, 0.3], [0.2, 1.0], [0.7, 0.7]])
    problem = LinearBandit(actions, [-0.6, -0.8], 0.3)
    policy = IDS(sampling=sampling, information=information)
    run = every_round(problem, policy, 1500, seed=0)
    assert 1 <= run.explorations[-1] < 750
    assert arms_of(run)[-1] == 0


@pytest.mark.parametrize("distance", [1e-9, 1e-13, 1e-16])
def test_arms_that_nearly_coincide_can_be_settled(distance: float) -> None:
    """The evidence between two arms does not depend on how close they are, only on their line."""
    theta, noise_std, rounds = [1.0, -0.3], 0.3, 3000
    apart, near = (
        every_round(LinearBandit([[1.0, 0.0], [1.0, e], [0.0, 1.0]], theta, noise_std), IDS(), n, 0)
        for e, n in ((1e-5, rounds), (distance, rounds))
    )
    assert apart.explorations[-1] < rounds
    assert near.explorations[-1] == pytest.approx(apart.explorations[-1], rel=0.02)


@pytest.mark.parametrize("seed", range(4))
def test_twins_in_a_subspace_are_settled(seed: int) -> None:
    """A copy of the best arm changes nothing, also where the arms do not span the space."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((8, 4)) @ rng.standard_normal((4, 8))
    actions /= np.linalg.norm(actions, axis=1).max()
    best = int(np.argmax(np.linalg.norm(actions, axis=1)))
    actions[[0, best]] = actions[[best, 0]]
    twins = np.vstack([actions, actions[:1]])
    alone, both = (
        every_round(LinearBandit(arms, 3.0 * actions[0], 0.1), IDS(), 1000, seed=0)
        for arms in (actions, twins)
    )
    assert alone.explorations[-1] < 100
    assert both.explorations[-1] < 100


@pytest.mark.parametrize("actions", [[[1.0, 0.5]], [[1.0, 0.5], [1.0, 0.5]]])
def test_nothing_to_choose_from_is_settled_at_once(actions: list[list[float]]) -> None:
    run = every_round(LinearBandit(actions, [1.0, 0.0], 1.0), IDS(), 50, seed=0)
    assert run.explorations[-1] == 0
    assert run.pulls[-1, 0] == 50
