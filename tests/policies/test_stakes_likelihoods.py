"""Stakes on clicks and counts: with a normal likelihood it is Stakes, and it comes to c*."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import rel_entr

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.likelihood import GAUSSIAN
from sightline.core.model import bandit_model
from sightline.policies.base import choose, update, write_probabilities
from tests.marks import thorough, without_compilation

ACTIONS = np.array([[1.0, 0.2, 0.0], [1.0, -0.5, 0.3], [1.0, 0.1, 0.8], [1.0, 0.6, -0.4]])


@without_compilation
@pytest.mark.parametrize("randomised", [True, False])
def test_with_a_normal_likelihood_it_draws_from_the_likelihood_of_normal_rewards(
    randomised: bool,
) -> None:
    """Losses, gains and gaps by likelihood are those of normal rewards, to about seven digits."""
    policy = sl.Stakes(randomised=randomised)
    plain, by_likelihood = (
        policy.start(model)
        for model in (bandit_model(ACTIONS, 1.0), bandit_model(ACTIONS, likelihood=GAUSSIAN))
    )
    rng, ours, truth = np.random.default_rng(0), np.zeros(4), np.zeros(4)
    for t in range(1, 120):
        write_probabilities(by_likelihood, clock_at(t), ALL_ARMS, rng, ours)
        write_probabilities(plain, clock_at(t), ALL_ARMS, rng, truth)
        np.testing.assert_allclose(ours, truth, rtol=1e-4, atol=1e-7)
        arm = choose(plain, clock_at(t), ALL_ARMS, np.random.default_rng(t)).arm
        y = float(ACTIONS[arm] @ [0.3, 0.5, -0.2] + rng.standard_normal())
        update(plain, clock_at(t), arm, y)
        update(by_likelihood, clock_at(t), arm, y)


@thorough
@pytest.mark.slow
def test_regret_comes_to_the_lower_bound_from_below() -> None:
    """R_n / (c* log n), with c* of Lai and Robbins, at 10^6 and 10^40 rounds."""
    problem = sl.problems.click_rates((0.5, 0.3, 0.1))
    best = problem.means.max()
    apart = rel_entr(problem.means, best) + rel_entr(1.0 - problem.means, 1.0 - best)
    bound = sum(g / d for g, d in zip(problem.gaps, apart, strict=True) if g > 0.0)
    marks = [10**6, 10**40]
    runs = [
        sl.simulate(problem, sl.Stakes(norm_bound=3.0), marks[-1], seed, marks) for seed in range(4)
    ]
    early, late = np.mean([run.regret for run in runs], axis=0) / bound
    assert 0.3 < early / (6 * math.log(10.0)) < 1.0
    assert 0.8 < late / (40 * math.log(10.0)) < 1.15
