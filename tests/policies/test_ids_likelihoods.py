"""IDS on clicks and counts against its formulas in plain NumPy, and what must hold of its runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.likelihood import GAUSSIAN
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces
from sightline.core.model import bandit_model
from sightline.policies.base import choose, compare_to_best, inspect, update
from sightline.policies.ids import ids_distribution
from sightline.problems.noise import draw
from sightline.simulation.loop import streams
from tests import naive, naive_likelihoods
from tests.marks import thorough, without_compilation
from tests.naive import Array

ACTIONS = np.array([[1.0, 0.2, 0.0], [1.0, -0.5, 0.3], [1.0, 0.1, 0.8], [1.0, 0.6, -0.4]])
THETA = {"logistic": [-1.5, 0.4, 0.3], "poisson": [0.3, 0.5, -0.4], "identity": [0.3, 0.2, 0.1]}
FAMILIES = {
    "logistic": sl.Bernoulli(),
    "identity": sl.Bernoulli("identity"),
    "poisson": sl.Poisson(),
}
POLICY = sl.IDS(confidence=sl.LogDet(norm_bound=2.0))


def problem(name: str) -> sl.LinearBandit:
    return sl.LinearBandit(ACTIONS, THETA[name], rewards=FAMILIES[name])


def gains_of(name: str, xs: Array, theta: Array, H: Array, beta: float, largest_m: float) -> Array:
    """Return sum_z q(z) (sqrt(2 d(x, z)) + sqrt(beta) w(x))^2 / 2."""
    best = int((ACTIONS @ theta).argmax())
    nus = {
        z: naive_likelihoods.nearest(name, xs, theta, ACTIONS[best] - ACTIONS[z], 1.0)
        for z in range(len(ACTIONS))
        if z != best
    }
    distances = np.full(len(ACTIONS), math.inf)
    for z, nu in nus.items():
        distances[z] = 2.0 * naive_likelihoods.distance(name, xs, theta, nu, 1.0)
    largest_m = max(largest_m, 0.5 * distances.min())
    q = naive.mixing_weights(distances, naive.learning_rate(len(ACTIONS), largest_m, 1.0), 1.0)
    widths = np.array([naive.squared_norm(x, H) for x in ACTIONS])
    own = np.sqrt(beta * widths * naive_likelihoods.information(name, ACTIONS @ theta))
    gains = np.zeros(len(ACTIONS))
    for z, nu in nus.items():
        apart = np.sqrt(2.0 * naive_likelihoods.kl(name, ACTIONS @ theta, ACTIONS @ nu))
        gains += 0.5 * q[z] * (apart + own) ** 2
    return gains


@without_compilation
@pytest.mark.parametrize("name", ["logistic", "poisson"])
def test_every_exploration_is_that_of_the_formulas(name: str) -> None:
    """Gaps, gains and the mixture of every eighth of 60 rounds, from the single rewards."""
    world = problem(name)
    state = POLICY.start(world.model)
    decisions, noise = streams(1)
    xs: list[Array] = []
    largest_m = 0.5
    for t in range(1, 61):
        comparison = compare_to_best(state, ALL_ARMS)
        theta = state.estimate.learned.theta.copy()
        largest_m = max(largest_m, 0.5 * comparison.least)
        if t % 8 == 0:
            data = np.array(xs)
            H = naive_likelihoods.hessian(name, data, theta, 1.0)
            log_det = state.estimate.learned.log_det[0]
            beta = naive.Beta(norm_bound=2.0).of_delta(2.0 * math.log(t), log_det)
            widths = np.array([naive.squared_norm(x, H) for x in ACTIONS])
            top = (ACTIONS @ theta + np.sqrt(beta * widths)).max()
            means = naive_likelihoods.mean(name, ACTIONS @ theta)
            gaps = naive_likelihoods.mean(name, np.array([top]))[0] - means
            gains = gains_of(name, data, theta, H, beta, largest_m)
            truth = naive.ids(gaps, gains, naive.pairs_with(int(means.argmax()), len(ACTIONS)))
            mixture = ids_distribution(state, comparison, ALL_ARMS)[0]
            np.testing.assert_allclose(state.work.gaps, gaps, rtol=1e-5)
            np.testing.assert_allclose(state.work.gains, gains, rtol=2e-3)
            assert mixture.ratio == pytest.approx(truth.ratio, rel=4e-3)
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        update(state, clock_at(t), arm, draw(world.noise, world.means[arm], noise))
        xs.append(ACTIONS[arm])


@without_compilation
def test_with_a_normal_likelihood_every_choice_is_that_of_normal_rewards() -> None:
    """The formulas of likelihoods, with the likelihood that is normal, are those of Algorithm 1."""
    plain, by_likelihood = (
        POLICY.start(model)
        for model in (bandit_model(ACTIONS, 1.0), bandit_model(ACTIONS, likelihood=GAUSSIAN))
    )
    assert isinstance(by_likelihood.alternatives, LikelihoodHalfSpaces)
    rng = np.random.default_rng(0)
    for t in range(1, 200):
        clock = clock_at(t)
        ours = choose(by_likelihood, clock, ALL_ARMS, np.random.default_rng(t))
        truth = choose(plain, clock, ALL_ARMS, np.random.default_rng(t))
        assert ours.arm == truth.arm
        assert ours.probability == pytest.approx(truth.probability, rel=1e-6, abs=1e-9)
        assert inspect(by_likelihood, clock, ALL_ARMS).evidence == pytest.approx(
            inspect(plain, clock, ALL_ARMS).evidence, rel=1e-7, abs=1e-12
        )
        y = float(ACTIONS[truth.arm] @ [0.3, 0.5, -0.2] + rng.standard_normal())
        update(plain, clock, truth.arm, y)
        update(by_likelihood, clock, truth.arm, y)


@without_compilation
@pytest.mark.parametrize("name", FAMILIES)
def test_jumping_and_asking_every_round_are_the_same(name: str) -> None:
    world = sl.LinearBandit([[1.0, 0.0], [0.0, 1.0]], [0.9, 0.1], rewards=FAMILIES[name])
    policy = sl.IDS(confidence=sl.LogDet(norm_bound=1.0, factor=0.2))
    jumped = sl.simulate(world, policy, 600, 3)
    state = policy.start(world.model)
    decisions, noise = streams(3)
    pulls, draws = np.zeros(2), 0
    for t in range(1, 601):
        choice = choose(state, clock_at(t), ALL_ARMS, decisions)
        pulls[choice.arm] += 1.0
        if choice.wake.t == t:
            draws += 1
            y = draw(world.noise, world.means[choice.arm], noise)
            update(state, clock_at(t), choice.arm, y)
    assert jumped.explorations[-1] == draws
    np.testing.assert_array_equal(jumped.pulls[-1], pulls)


@thorough
@pytest.mark.slow
def test_regret_grows_like_the_logarithm() -> None:
    """From 10^4 to 10^40 rounds regret grows in proportion to log n."""
    world = problem("logistic")
    marks = [10**4, 10**20, 10**40]
    runs = [sl.simulate(world, POLICY, 10**40, seed, marks) for seed in range(4)]
    early, middle, late = np.mean([run.regret for run in runs], axis=0)
    per_log = (late - middle) / (20.0 * math.log(10.0)), (middle - early) / (16.0 * math.log(10.0))
    assert 0.5 < per_log[0] / per_log[1] < 2.0
    assert all(run.pulls[-1].argmax() == world.best for run in runs)


@pytest.mark.parametrize(
    "policy",
    [
        sl.IDS(information="cell"),
        sl.IDS(gaps="difference"),
        sl.PhasedElimination(horizon=100),
        sl.OSSB(),
    ],
    ids=str,
)
def test_what_cannot_learn_from_clicks_says_so(policy: sl.extend.Policy) -> None:
    with pytest.raises(ValueError, match="are clicks or counts"):
        sl.simulate(problem("logistic"), policy, 10)
