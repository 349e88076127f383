"""Policies that are told neither the noise level nor a bound on theta."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from benchmarks import coverage

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.confidence import global_beta, local_beta
from sightline.core.confidence_rules import FixedConfidence
from sightline.core.estimate import known_noise
from sightline.core.least_squares import noise_variance
from sightline.experiments.specification import from_toml, to_toml
from sightline.policies.base import choose, compare_to_best, started
from sightline.policies.catalogue import POLICIES, build, describe
from sightline.policies.ids import IDSState, ids_distribution
from sightline.problems.descriptions import build as build_problem
from sightline.problems.descriptions import describe as describe_problem
from sightline.simulation.loop import walk
from tests import naive
from tests.marks import thorough, without_compilation

FREE = sl.LogDet(norm_bound=None)
LEARNING: dict[str, sl.extend.Policy] = {
    "IDS": sl.IDS(),
    "IDS S unknown": sl.IDS(confidence=FREE),
    "IDS difference": sl.IDS(gaps="difference", confidence=FREE, learning_rate="inverse-sqrt-beta"),
    "LinUCB": sl.LinUCB(),
    "LinUCB S unknown": sl.LinUCB(confidence=FREE),
    "LinUCB rare": sl.LinUCB(confidence=FREE, switch_growth=0.5),
    "LinIMED": sl.LinIMED(confidence=FREE),
    "LinMED": sl.LinMED(confidence=FREE),
    "PrimalDual": sl.PrimalDual(confidence=FREE),
    "MaximumInformation": sl.MaximumInformation(confidence=FREE),
    "EpsilonGreedy": sl.EpsilonGreedy(confidence=FREE),
    "BayesianIDS": sl.BayesianIDS(samples=200, prior_std=None),
    "ThompsonSampling": sl.ThompsonSampling(prior_std=None),
    "Stakes": sl.Stakes(),
    "Stakes deterministic": sl.Stakes(randomised=False),
}
NEEDS_HORIZON = {"E4", "OAM", "ExploreThenAllocate", "PhasedElimination"}


def problem(c: float = 1.0, guess: float = 1.0, sigma: float = 0.3) -> sl.LinearBandit:
    rng = np.random.default_rng(2)
    actions = rng.standard_normal((6, 3))
    theta = c * np.array([0.6, -0.5, 0.4])
    rewards = sl.Gaussian(std=None, guess=guess)
    return sl.LinearBandit(actions, theta, c * sigma, rewards=rewards)


def learned_state(
    policy: sl.extend.Policy, world: sl.LinearBandit, rounds: int
) -> tuple[Any, Any, Any]:
    """State after some rounds, with the arms and outcomes that it has learned from."""
    state = started(policy, world.model)
    arms, outcomes = [], []
    for step in walk(world, state, 3):
        if step.clock.t > rounds:
            break
        if step.outcome is not None:
            arms.append(step.choice.arm)
            outcomes.append(step.outcome)
    return state, world.actions[arms], np.array(outcomes)


def test_policies_are_not_told_the_level() -> None:
    loud, quiet = problem(sigma=0.3), problem(sigma=0.01)
    for world in (loud, quiet):
        assert world.model.noise_std == 1.0
        assert not world.model.noise_known
    assert loud.noise_std == 0.3
    assert loud != quiet
    assert "unknown" in repr(loud)
    ratios = sl.LinearBandit(np.eye(2), [1, 0], [0.2, 0.1], rewards=sl.Gaussian(std=None))
    np.testing.assert_array_equal(ratios.model.weights, [1.0, 2.0])
    assert ratios.model.noise_std == 1.0


@without_compilation
@pytest.mark.parametrize("label", LEARNING)
def test_policies_play_without_it(label: str) -> None:
    run = sl.simulate(problem(), LEARNING[label], 60, seed=1)
    assert run.pulls[-1].sum() == 60


@pytest.mark.parametrize("name", sorted(POLICIES))
def test_others_say_that_they_need_it(name: str) -> None:
    cls: Any = POLICIES[name]
    policy = cls(horizon=100) if name in NEEDS_HORIZON else cls()
    if policy.supports.unknown_noise:
        assert name in {label.split()[0] for label in LEARNING}
        return
    with pytest.raises(ValueError, match=f"{name} needs to know the noise level"):
        sl.simulate(problem(), policy, 10)


@pytest.mark.parametrize("name", ["SOLID", "ThompsonSampling"])
def test_policies_that_need_a_bound_on_theta_say_so(name: str) -> None:
    inflation = {"inflation": "abeille-lazaric"} if name == "ThompsonSampling" else {}
    policy = POLICIES[name](confidence=FREE, **inflation)  # type: ignore[call-arg]
    known = sl.LinearBandit(np.eye(2), [1, 0])
    with pytest.raises(ValueError, match="needs a bound S on the norm of theta"):
        sl.simulate(known, policy, 10)


@without_compilation
@pytest.mark.parametrize("label", ["IDS S unknown", "LinUCB S unknown", "LinUCB rare", "Stakes"])
def test_numbers_of_a_run_follow_from_its_data(label: str) -> None:
    state, xs, ys = learned_state(LEARNING[label], problem(), 150)
    state = getattr(state, "always", state)
    estimate, norm, level = state.estimate, state.confidence.norm, state.confidence.noise
    lam = estimate.regulariser
    theta, V = naive.ridge(xs, ys, lam), naive.covariance(xs, lam)
    residual = float(((ys - xs @ theta) ** 2).sum() + lam * theta @ theta)
    assert level.outcomes[0] == len(ys)
    assert level.residual[0] == pytest.approx(residual, rel=1e-9)
    assert norm.length[0] == pytest.approx(math.sqrt(lam * theta @ theta), rel=1e-9)
    assert norm.share[0] >= lam / np.linalg.eigvalsh(V).min() * (1.0 - 1e-9)


@without_compilation
@pytest.mark.parametrize("label", ["IDS", "IDS difference"])
def test_the_probabilities_are_those_of_known_noise_with_the_same_numbers(label: str) -> None:
    state, _, _ = learned_state(LEARNING[label], problem(), 80)
    assert isinstance(state, IDSState)
    learned = state.estimate.learned
    beta = local_beta(state.confidence, learned.log_det[0], learned.rounds[0] + 1)
    known = state._replace(
        estimate=state.estimate._replace(noise=known_noise(noise_variance(state.estimate))),
        confidence=FixedConfidence(beta),
    )
    found, expected = (
        ids_distribution(one, compare_to_best(one, ALL_ARMS), ALL_ARMS)[0] for one in (state, known)
    )
    assert found == expected


@without_compilation
def test_linucb_plays_the_largest_bound_by_the_students_form() -> None:
    state, xs, ys = learned_state(sl.LinUCB(), problem(), 80)
    beta = global_beta(state.confidence, float(state.estimate.learned.log_det[0]), math.log(81))
    theta, V = naive.ridge(xs, ys, 1.0), naive.covariance(xs, 1.0)
    scores = naive.ucb_scores(problem().actions, theta, V, beta)
    choice = choose(state, clock_at(81), ALL_ARMS, np.random.default_rng(0))
    assert choice.arm == scores.argmax()


@pytest.mark.parametrize("label", ["IDS S unknown", "LinUCB S unknown", "Stakes"])
@pytest.mark.parametrize("c", [0.125, 1024.0])
def test_the_unit_of_the_rewards_changes_nothing(label: str, c: float) -> None:
    runs = [
        sl.simulate(problem(scale, guess=scale), LEARNING[label], 2000, seed=4)
        for scale in (1.0, c)
    ]
    np.testing.assert_array_equal(runs[0].pulls, runs[1].pulls)


@without_compilation
def test_without_a_bound_the_widest_arms_come_first() -> None:
    """Nothing bounds theta before all directions were seen, and nothing is settled."""
    world = sl.LinearBandit(np.diag([1.0, 3.0, 2.0]), [1.0, 0.0, 0.0], 0.1)
    state = started(sl.LinUCB(confidence=FREE), world.model)
    arms = [step.choice.arm for step, _ in zip(walk(world, state, 0), range(3), strict=False)]
    assert arms == [1, 2, 0]


def test_numbers_of_several_rows_are_refused() -> None:
    model = sl.LinearGame(np.eye(2), np.ones((2, 2, 2)), [1.0, 0.0]).model
    with pytest.raises(ValueError, match="outcomes of one number; this problem shows 2"):
        started(sl.IDS(), model.without_noise_level(1.0))


@pytest.mark.parametrize("rewards", [sl.Gaussian(std=None), sl.Gaussian(None, guess=20.0)])
def test_problems_and_policies_come_back_from_files(rewards: sl.Gaussian) -> None:
    for noise in (0.3, [0.3, 0.6]):
        world = sl.LinearBandit(np.eye(2), [1.0, 0.0], noise, rewards=rewards)
        assert build_problem(describe_problem(world)) == world
    policy = sl.IDS(confidence=FREE)
    assert build(describe(policy)) == policy
    experiment = sl.Experiment({"p": world}, {"IDS": policy}, horizon=10, replications=1)
    arguments = from_toml(to_toml(experiment))
    assert arguments["problems"] == {"p": world}
    assert arguments["policies"] == {"IDS": policy}


@pytest.mark.parametrize(("std", "guess"), [(0.0, 1.0), (-1.0, 1.0), ("none", 1.0), (None, 0.0)])
def test_levels_that_are_none_are_refused(std: Any, guess: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        sl.Gaussian(std, guess)


@pytest.mark.slow
@pytest.mark.parametrize(
    "label",
    [
        "IDS S unknown",
        pytest.param("LinUCB S unknown", marks=thorough),
        pytest.param("Stakes", marks=thorough),
    ],
)
@pytest.mark.parametrize("guess", [0.03, 3.0])
def test_the_truth_is_missed_as_seldom_as_promised(label: str, guess: float) -> None:
    """In 100 runs, 50 misses at the level 1/2 would be allowed; false settlements at no time."""
    world = problem(guess=guess)
    found = coverage.tally(world, LEARNING[label], runs=100, horizon=5000, levels=(0.05, 0.5))
    assert found.missed[0.05] <= 5
    assert found.missed[0.5] <= 50
    assert found.wrong == 0


@pytest.mark.slow
@pytest.mark.parametrize("told", [False, True])
def test_a_set_that_is_too_small_is_found_out(told: bool) -> None:
    """The measurement can fail: a coefficient of a tenth loses the truth."""
    rule = sl.LogDet(norm_bound=None, factor=0.1)
    world = sl.LinearBandit(problem().actions, problem().theta, 0.3) if told else problem()
    found = coverage.tally(world, sl.LinUCB(confidence=rule), 30, horizon=2000, levels=(0.05,))
    assert found.missed[0.05] > 5
