"""The yardsticks in C and NumPy play the same algorithms as our policies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from benchmarks.plain_c import POLICIES, runner
from benchmarks.plain_numpy import PLAIN, play

import sightline as sl
from sightline.simulation.loop import streams

ROUNDS = 2000


def _sphere() -> sl.LinearBandit:
    """Arms of different norms: at equal ones the last bit would decide the first round."""
    problem = sl.problems.unit_sphere(k=8, d=3, seed=3)
    actions = problem.actions * np.linspace(0.9, 1.0, 8)[:, None]
    return sl.LinearBandit(actions, problem.theta, problem.noise_std, name="sphere")


PROBLEMS = [sl.problems.end_of_optimism(0.01), _sphere()]

# Roots of V^-1, optimal designs and posterior samples are not unique: these agree in law only.
IN_DISTRIBUTION = ["ThompsonSampling()", "TopTwo()", "LinMED()", "BayesianIDS()"]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name),
]
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="yardsticks in C need gcc")


def assert_alike(ours: list[tuple[float, int]], plain: list[tuple[float, int]]) -> None:
    """Compare regret and exploration rounds within four standard errors."""
    error = np.sqrt(np.var(ours, axis=0) / len(ours) + np.var(plain, axis=0) / len(plain))
    assert (abs(np.mean(ours, axis=0) - np.mean(plain, axis=0)) <= 4.0 * error).all()


def played(
    problem: sl.LinearBandit, policy: sl.extend.Policy, rounds: int, seed: int
) -> tuple[float, int]:
    run = sl.simulate(problem, policy, rounds, seed, [rounds])
    return float(run.regret[-1]), int(run.explorations[-1])


@needs_gcc
@pytest.mark.parametrize("name", POLICIES)
def test_same_numbers_give_same_runs_in_c(name: str, problem: sl.LinearBandit) -> None:
    for seed in range(5):
        decisions, noise = streams(seed)
        normal = name == "thompson"  # the others draw uniform numbers, or none
        draws = (
            decisions.standard_normal(problem.d * ROUNDS) if normal else decisions.random(ROUNDS)
        )
        tapes = (draws, noise.standard_normal(ROUNDS))
        regret, explorations = runner(name, problem, ROUNDS, tapes=tapes)(seed)
        ours = played(problem, POLICIES[name], ROUNDS, seed)
        assert explorations == ours[1]
        assert regret == pytest.approx(ours[0], rel=1e-12)


@needs_gcc
@pytest.mark.parametrize("name", POLICIES)
def test_random_numbers_have_the_same_distribution(name: str, problem: sl.LinearBandit) -> None:
    play_in_c = runner(name, problem, ROUNDS)
    ours = [played(problem, POLICIES[name], ROUNDS, seed) for seed in range(100)]
    assert_alike(ours, [play_in_c(seed) for seed in range(100)])


@pytest.mark.parametrize("name", sorted(set(PLAIN) - set(IN_DISTRIBUTION)))
def test_same_seed_gives_the_same_run_in_numpy(name: str, problem: sl.LinearBandit) -> None:
    for seed in range(3):
        regret, explorations = play(PLAIN[name], problem, 400, seed)
        ours = played(problem, eval(f"sl.{name}"), 400, seed)
        assert explorations == ours[1]
        assert regret == pytest.approx(ours[0], rel=1e-12)


@pytest.mark.parametrize("name", IN_DISTRIBUTION)
def test_same_distribution_in_numpy(name: str, problem: sl.LinearBandit) -> None:
    rounds, runs = (100, 12) if name == "BayesianIDS()" else (300, 40)
    policy = eval(f"sl.{name}")
    ours = [played(problem, policy, rounds, seed) for seed in range(5 * runs)]
    assert_alike(ours, [play(PLAIN[name], problem, rounds, seed) for seed in range(runs)])
