"""The yardsticks in C play the same algorithms as our policies."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from benchmarks.plain_c import POLICIES, runner

import sightline as sl
from sightline.engine.simulate import streams

ROUNDS = 2000


def _sphere() -> sl.LinearBandit:
    """Arms of different norms: at equal ones the last bit would decide the first round."""
    problem = sl.problems.unit_sphere(k=8, d=3, seed=3)
    actions = problem.actions * np.linspace(0.9, 1.0, 8)[:, None]
    return sl.LinearBandit(actions, problem.theta, problem.noise_std, name="sphere")


PROBLEMS = [sl.problems.end_of_optimism(0.01), _sphere()]

pytestmark = [
    pytest.mark.skipif(shutil.which("gcc") is None, reason="yardsticks in C need gcc"),
    pytest.mark.slow,
    pytest.mark.parametrize("name", POLICIES),
    pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.name),
]


def test_same_numbers_give_same_runs(name: str, problem: sl.LinearBandit) -> None:
    for seed in range(5):
        decisions, noise = streams(seed)
        normal = name == "thompson"  # the others draw uniform numbers, or none
        draws = (
            decisions.standard_normal(problem.d * ROUNDS) if normal else decisions.random(ROUNDS)
        )
        tapes = (draws, noise.standard_normal(ROUNDS))
        regret, explorations = runner(name, problem, ROUNDS, tapes=tapes)(seed)
        run = sl.simulate(problem, POLICIES[name], ROUNDS, seed, [ROUNDS])
        assert explorations == run.explorations[-1]
        assert regret == pytest.approx(run.regret[-1], rel=1e-12)


def test_random_numbers_give_the_same_law(name: str, problem: sl.LinearBandit) -> None:
    play = runner(name, problem, ROUNDS)
    ours, plain = [], []
    for seed in range(100):
        run = sl.simulate(problem, POLICIES[name], ROUNDS, seed, [ROUNDS])
        ours.append((run.regret[-1], run.explorations[-1]))
        plain.append(play(seed))
    error = np.sqrt((np.var(ours, axis=0) + np.var(plain, axis=0)) / 99)
    assert (abs(np.mean(ours, axis=0) - np.mean(plain, axis=0)) <= 4.0 * error).all()
