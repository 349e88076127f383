"""LinIMED against the same rule with all data at once, and what must not change its choices."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline import FixedBeta, LinearBandit, LinIMED, LogDet, LogLog, simulate
from sightline.problems import end_of_optimism, large_gaps
from sightline.simulation.loop import streams
from sightline.simulation.simulate import Trajectory
from tests import naive, naive_rivals


def gaussian_arms(k: int, d: int, noise_std: float, seed: int) -> LinearBandit:
    """Return arms of different lengths.

    With equal ones all indices are equal before any data, and rounding chooses.
    """
    rng = np.random.default_rng(seed)
    return LinearBandit(rng.standard_normal((k, d)), rng.standard_normal(d), noise_std)


PROBLEMS = {
    "end of optimism": end_of_optimism(0.1, 2.0, 0.1),
    "large gaps": large_gaps(0.3),
    "plane": gaussian_arms(6, 2, 0.3, seed=3),
    "space": gaussian_arms(12, 4, 0.5, seed=2),
    "best arm zero": LinearBandit([[1.0, 0.0], [0.0, 0.0], [0.5, 0.5]], [-0.5, -0.2], 0.2),
}
CONFIGURATIONS: dict[str, tuple[Any, naive.Beta]] = {
    "log-det": (LogDet(norm_bound=2.0), naive.Beta(norm_bound=2.0)),
    "log-log": (LogLog(factor=2.0), naive.Beta("log-log", factor=2.0)),
    "fixed": (FixedBeta(0.7), naive.Beta("fixed", fixed=0.7)),
}
seeds = st.integers(0, 2**32 - 1)
variants = st.sampled_from([1, 3])


def every_round(problem: LinearBandit, policy: LinIMED, rounds: int, seed: int) -> Trajectory:
    return simulate(problem, policy, rounds, seed, checkpoints=range(1, rounds + 1))


@pytest.mark.parametrize(("variant", "cap"), [(1, 30.0), (3, 30.0), (3, 0.1)])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_same_arms_as_all_data_at_once(
    problem: LinearBandit, configuration: str, variant: int, cap: float
) -> None:
    confidence, beta = CONFIGURATIONS[configuration]
    beta = dataclasses.replace(beta, noise_std=problem.model.noise_std, regulariser=0.3)
    world = naive.World(problem.actions, problem.theta, problem.model.noise_std, *streams(4))
    truth = naive_rivals.lin_imed(world, beta, variant, cap, 300)
    run = every_round(problem, LinIMED(variant, cap, confidence, regulariser=0.3), 300, 4)
    arms = np.diff(run.pulls, axis=0, prepend=0.0).argmax(axis=1)
    differ = np.flatnonzero(arms != truth)
    assert differ.size == 0, f"first difference in round {differ[0] + 1}"


def test_variants_and_caps_differ() -> None:
    """The comparison above is of three policies, not of one."""
    problem = PROBLEMS["plane"]
    policies = [LinIMED(1), LinIMED(3), LinIMED(3, cap=0.1)]
    plays = [every_round(problem, policy, 300, 4).pulls for policy in policies]
    assert not any(np.array_equal(plays[i], plays[j]) for i in range(3) for j in range(i))


def test_the_first_arm_is_not_favoured() -> None:
    """The best arm is found wherever it stands."""
    problem = PROBLEMS["large gaps"]
    for shift in range(problem.k):
        actions = np.roll(problem.actions, shift, axis=0)
        for variant in (1, 3):
            turned = LinearBandit(actions, problem.theta, problem.noise_std)
            run = simulate(turned, LinIMED(variant), 1000, seed=2, checkpoints=[1000])
            assert run.pulls[0].argmax() == turned.best == (problem.best + shift) % problem.k


def test_a_zero_arm_that_is_best() -> None:
    """Variant 1 never plays it, as documented; variant 3 does."""
    problem = PROBLEMS["best arm zero"]
    pulls = [
        simulate(problem, LinIMED(v), 1000, seed=1, checkpoints=[1000]).pulls[0] for v in (1, 3)
    ]
    assert pulls[0][1] == 0
    assert pulls[1][1] > 500


@settings(deadline=None, max_examples=20)
@given(variants, seeds)
def test_rotation_and_names_change_nothing(variant: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = gaussian_arms(5, 3, 0.3, seed)
    rotation, order = np.linalg.qr(rng.standard_normal((3, 3)))[0], rng.permutation(5)
    turned = LinearBandit((problem.actions @ rotation)[order], problem.theta @ rotation, 0.3)
    one, other = (every_round(p, LinIMED(variant), 100, seed=1) for p in (problem, turned))
    np.testing.assert_array_equal(one.pulls[:, order], other.pulls)


@settings(deadline=None, max_examples=20)
@given(variants, seeds, st.sampled_from([2.0**-20, 0.5, 4.0, 2.0**30]))
def test_the_unit_of_reward_changes_nothing(variant: int, seed: int, c: float) -> None:
    """Logarithms shift alike for all arms, but for rounding."""
    problem = gaussian_arms(5, 3, 0.25, seed)
    other = LinearBandit(problem.actions, c * problem.theta, c * 0.25)
    one = every_round(problem, LinIMED(variant, confidence=LogDet(2.0)), 100, seed=1)
    two = every_round(other, LinIMED(variant, confidence=LogDet(2.0 * c)), 100, seed=1)
    np.testing.assert_array_equal(one.pulls, two.pulls)
