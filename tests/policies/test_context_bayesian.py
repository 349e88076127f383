"""Bayesian IDS in contexts and on streams: the action probabilities of an action set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS, block
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model, stream_model
from sightline.policies.base import choose, show, update, write_probabilities
from tests.marks import without_compilation
from tests.naive import Array

SETS = [
    np.array([[1.0, 0.0], [0.3, 0.9], [0.5, 0.4], [-0.5, -0.5]]),
    np.array([[0.0, 1.0], [1, 1]]),
]
WORLD = sl.ContextualBandit(SETS, [0.5, 0.4], noise_std=0.5)


def _probabilities(state: Any, offer: Any, k: int) -> Array:
    probabilities = np.zeros(k)
    write_probabilities(state, clock_at(50), offer, np.random.default_rng(0), probabilities)
    return probabilities


@without_compilation
@pytest.mark.parametrize("sampling", ["pair", "exact"])
@pytest.mark.parametrize("information", ["variance", "mutual-information"])
def test_the_probabilities_are_those_of_its_arms_alone(information: str, sampling: str) -> None:
    policy = sl.BayesianIDS(2000, information, sampling)
    state = policy.start(WORLD.model)
    rng = np.random.default_rng(3)
    assert WORLD.model.contexts is not None
    for t in range(1, 9):
        offer = WORLD.model.contexts.offer(t % 2)
        arm = choose(state, clock_at(t), offer, rng).arm
        assert offer.start <= arm < offer.stop
        update(state, clock_at(t), arm, WORLD.means[arm] + 0.5 * rng.standard_normal())
    streamed = policy.start(stream_model(4, 2, 0.5))
    streamed.posterior.factor[:] = state.posterior.factor
    streamed.posterior.whitened[:] = state.posterior.whitened
    for c, arms in enumerate(SETS):
        offer = WORLD.model.contexts.offer(c)
        found = _probabilities(state, offer, WORLD.k)
        assert found.sum() == pytest.approx(1.0)
        # the same posterior over these arms only
        alone = policy.start(bandit_model(arms, 0.5))
        alone.posterior.factor[:] = state.posterior.factor
        alone.posterior.whitened[:] = state.posterior.whitened
        truth = _probabilities(alone, ALL_ARMS, len(arms))
        np.testing.assert_allclose(found[offer.start : offer.stop], truth, atol=1e-6)
        show(streamed, arms, 0, len(arms))
        new = _probabilities(streamed, block(0, len(arms)), 5)
        np.testing.assert_allclose(new[: len(arms)], truth, atol=1e-6)


def test_an_angular_posterior_needs_fixed_arms() -> None:
    policy = sl.BayesianIDS(posterior="angular")
    with pytest.raises(ValueError, match="angular posterior needs the same arms"):
        policy.start(WORLD.model)
    with pytest.raises(ValueError, match="BayesianIDS needs the same arms"):
        sl.simulate(WORLD, policy, 10)


@pytest.mark.slow
def test_runs() -> None:
    few = sl.BayesianIDS(500)
    run = sl.simulate(WORLD, few, 500, 0, [500])
    assert run.regret[0] < 0.1 * 500
    stream = sl.problems.sphere_stream(5, 2, 0.1)
    assert sl.simulate(stream, few, 500, 0, [500]).regret[0] < 0.1 * 500
