"""Stakes in contexts: probabilities by the formulas, commitments, and where it must end."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS, block
from sightline.core.clock import clock_at, is_before
from sightline.core.posterior.losses import expected_loss
from sightline.policies.base import at_stake, choose, update, write_probabilities
from sightline.policies.stakes import exploration
from sightline.simulation.loop import context_stream, streams
from tests.marks import thorough, without_compilation
from tests.naive_contexts import contexts_drawn, expected, least_ratio
from tests.naive_stakes import KAPPA, look_at_all
from tests.own_policies import Restless

SHARES = np.array([0.7, 0.3])
SIGMA = 0.4


def problem(seed: int, k: int = 3, d: int = 3) -> sl.ContextualBandit:
    rng = np.random.default_rng(seed)
    sets = [rng.standard_normal((k, d)), rng.standard_normal((k + 1, d))]
    return sl.ContextualBandit(sets, np.eye(d)[0], SHARES, SIGMA)


def two_optimisms(rare: float) -> sl.ContextualBandit:
    """Return two ends of optimism that share theta and the best arm."""
    arms = sl.problems.end_of_optimism(epsilon=0.1).actions
    first, second = np.zeros((3, 3)), np.zeros((3, 3))
    first[:, :2], second[:, [0, 2]] = arms, arms
    return sl.ContextualBandit([first, second], [1.0, 0.0, 0.0], [1 - rare, rare], 0.3)


def after(world: sl.ContextualBandit, rounds: int, seed: int, policy: sl.extend.Policy) -> Any:
    state = policy.start(world.model)
    decisions, noise = streams(seed)
    drawn = contexts_drawn(world.probabilities, context_stream(seed).random(rounds))
    assert world.model.contexts is not None
    for t, c in enumerate(drawn, 1):
        arm = choose(state, clock_at(t), world.model.contexts.offer(c), decisions).arm
        update(state, clock_at(t), arm, world.means[arm] + SIGMA * noise.standard_normal())
    return state


@without_compilation
@pytest.mark.parametrize("rounds", [2, 5, 12, 40])
@pytest.mark.parametrize("seed", range(3))
def test_losses_gains_and_probabilities_by_their_formulas(seed: int, rounds: int) -> None:
    world = problem(seed)
    state = after(world, rounds, seed, sl.Stakes())
    estimate = state.estimate
    coordinates = estimate.arms.rewards
    sets = list(np.split(coordinates, world.starts[1:-1]))
    learned = estimate.learned
    truth = look_at_all(sets, SHARES, learned.theta, learned.gram_inverse, SIGMA, 0.5)
    assert world.model.contexts is not None
    mu = []
    for c in range(2):
        offer = world.model.contexts.offer(c)
        found = exploration(state, offer)
        if found.committed or found.log_until > -math.inf:
            pytest.skip("committed")
        np.testing.assert_allclose(
            np.exp(state.now.log_losses), np.concatenate(truth.losses), rtol=1e-6, atol=1e-300
        )
        np.testing.assert_allclose(state.now.gains, np.concatenate(truth.gains), rtol=1e-5)
        probabilities = np.zeros(world.k)
        write_probabilities(
            state, clock_at(rounds + 1), offer, np.random.default_rng(0), probabilities
        )
        mu.append(probabilities[offer.start : offer.stop])
        assert mu[-1].sum() == pytest.approx(1.0)
    now = expected_loss(state.now, estimate, 0.5, 0, ALL_ARMS)
    assert math.exp(now.log_loss) == pytest.approx(truth.loss, rel=1e-6)
    assert now.evidence == pytest.approx(truth.evidence, rel=1e-6)
    gaps = [gap + KAPPA * truth.loss for gap in truth.gaps]
    best = least_ratio(SHARES, gaps, truth.gains)
    assert expected(SHARES, gaps, truth.gains, mu).ratio == pytest.approx(best, rel=1e-5)


@thorough
@pytest.mark.slow
@pytest.mark.parametrize("rare", [0.5, 0.1])
def test_jumps_and_single_rounds_agree_in_distribution(rare: float) -> None:
    world, runs, n = two_optimisms(rare), 400, 4000
    jumped = [sl.simulate(world, sl.Stakes(), n, s, [n]) for s in range(runs)]
    walked = [sl.simulate(world, Restless(sl.Stakes()), n, 10_000 + s, [n]) for s in range(runs)]
    assert np.mean([run.explorations[-1] < n for run in jumped]) > 0.5
    for arm in (1, 2, 4, 5):
        first, second = (
            np.array([run.pulls[-1][arm] for run in each]) for each in (jumped, walked)
        )
        error = math.sqrt((first.var() + second.var()) / runs)
        assert first.mean() == pytest.approx(second.mean(), abs=4 * error + 1e-9)


@without_compilation
def test_an_exploration_waits_for_its_context() -> None:
    world = two_optimisms(0.2)
    assert world.model.contexts is not None
    offers = [world.model.contexts.offer(c) for c in range(2)]
    for rounds in range(200, 3000, 200):
        state = after(world, rounds, 0, sl.Stakes())
        found = exploration(state, offers[0])
        if found.committed and found.log_probability > -math.inf:
            break
    else:
        pytest.fail("never commits")
    home = int(found.arm >= offers[0].stop)
    rng, now = np.random.default_rng(1), clock_at(rounds + 1)
    away = choose(state, now, offers[1 - home], rng)
    assert away.probability == 1.0
    assert is_before(now, away.wake)
    # asked again before that, the same; with the other context, the chance of the exploration
    again = choose(state, now, offers[1 - home], rng)
    assert (again.arm, again.probability, again.wake.t) == (away.arm, 1.0, away.wake.t)
    here = choose(state, now, offers[home], rng)
    assert here.wake.t == away.wake.t
    assert here.probability == pytest.approx(1.0 - math.exp(found.log_probability))
    # at that round it explores only where the arm is on offer
    elsewhere = choose(state, away.wake, offers[1 - home], rng)
    assert elsewhere.arm == away.arm
    assert is_before(away.wake, elsewhere.wake)
    at_home = choose(state, elsewhere.wake, offers[home], rng)
    assert (at_home.arm, at_home.wake.t) == (found.arm, elsewhere.wake.t)


@pytest.mark.slow
def test_where_best_arms_tell_everything_exploration_ends() -> None:
    sets = [np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.0, 1.0], [-1.0, 0.5]])]
    world = sl.ContextualBandit(sets, [1.0, 0.4], noise_std=0.5)
    runs = [sl.simulate(world, sl.Stakes(), 10**12, s, [10**4, 10**12]) for s in range(20)]
    regret = np.mean([run.regret for run in runs], axis=0)
    assert regret[1] < regret[0] + 1.0


def test_what_is_at_stake_is_a_mean_over_contexts() -> None:
    world = problem(0)
    state = after(world, 20, 0, sl.Stakes())
    loss, price = at_stake(state, clock_at(21), block(0, 3, 0))
    other, same_price = at_stake(state, clock_at(21), block(3, 7, 1))
    assert 0 < loss == pytest.approx(other)
    assert 0 < price == pytest.approx(same_price)


def test_the_form_without_chance_needs_fixed_arms() -> None:
    with pytest.raises(ValueError, match="deterministic Stakes needs the same arms"):
        sl.Stakes(randomised=False).start(problem(0).model)
    with pytest.raises(ValueError, match="context_probabilities must be one of"):
        sl.Stakes(context_probabilities="guess")
