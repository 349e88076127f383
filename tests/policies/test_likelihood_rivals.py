"""Rivals for clicks and counts: runs against plain NumPy and SciPy on single rewards."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.likelihood import LOGISTIC
from sightline.core.model import bandit_model
from sightline.policies.base import choose, update
from sightline.policies.ofuglb import OFUGLBState, _radius, begin_set, highest_predictor
from tests import naive_likelihood_rivals, naive_likelihoods
from tests.core.estimation.test_likelihood import LIKELIHOODS, draw
from tests.marks import without_compilation
from tests.naive import Array

X = np.array([[1.0, 0.4], [0.6, -0.8], [-0.3, 0.9], [-0.7, -0.7], [0.2, -1.1]])
THETA = np.array([-0.9, -0.7])
ROUNDS = 40

Arms = Callable[[Array, Array, int], int]


def follows(policy: sl.extend.Policy, likelihood: str, expected: Arms, seed: int) -> None:
    """Assert that a policy plays in every round what is expected of it, given all data so far."""
    state = policy.start(bandit_model(X, likelihood=LIKELIHOODS[likelihood]))
    decisions, noise = np.random.default_rng(seed), np.random.default_rng(seed + 1)
    xs, ys = np.zeros((0, 2)), np.zeros(0)
    for t in range(1, ROUNDS):
        arm = choose(state, clock_at(t), ALL_ARMS, decisions).arm
        assert arm == expected(xs, ys, t)
        y = draw(likelihood, float(naive_likelihoods.mean(likelihood, X[arm] @ THETA)), noise)
        update(state, clock_at(t), arm, y)
        xs, ys = np.vstack([xs, X[arm]]), np.append(ys, y)


@without_compilation
@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
def test_thompson_sampling_draws_from_the_laplace_approximation(likelihood: str) -> None:
    rng = np.random.default_rng(4)

    def best(xs: Array, ys: Array, t: int) -> int:
        return int(
            (X @ naive_likelihood_rivals.thompson_parameter(likelihood, xs, ys, 2.0, rng)).argmax()
        )

    follows(sl.ThompsonSampling(prior_std=2.0), likelihood, best, seed=4)


@without_compilation
@pytest.mark.parametrize("likelihood", ["logistic", "poisson"])
def test_glm_ucb_plays_the_largest_bound(likelihood: str) -> None:
    reach = 2.0 * float(np.linalg.norm(X, axis=1).max())
    sigma = 0.5 if likelihood == "logistic" else float(np.exp(reach / 2))

    def best(xs: Array, ys: Array, t: int) -> int:
        bounds = naive_likelihood_rivals.glm_ucb(likelihood, X, xs, ys, t, 0.25, sigma)
        return int(bounds.argmax())

    follows(sl.GLMUCB(norm_bound=2.0), likelihood, best, seed=5)


@without_compilation
def test_ofuglb_plays_the_arm_that_can_be_best() -> None:
    """Radius and programme, from single rewards."""

    def best(xs: Array, ys: Array, t: int) -> int:
        theta = naive_likelihoods.fit("logistic", xs, ys, 0.25, np.zeros(2))
        radius = naive_likelihood_rivals.published_radius("logistic", xs, ys, t, 2.0)
        radius += 0.5 * 0.25 * (2.0**2 - float(theta @ theta))
        bounds = [
            naive_likelihood_rivals.highest("logistic", x, xs, theta, radius, 0.25) for x in X
        ]
        return int(np.argmax(bounds))

    follows(sl.OFUGLB(norm_bound=2.0), "logistic", best, seed=6)


@without_compilation
@pytest.mark.parametrize("bound", [0.3, 1.0, 3.0])
def test_the_set_of_ofuglb_contains_the_published_one(bound: float) -> None:
    rng = np.random.default_rng(7)
    state = sl.OFUGLB(norm_bound=bound).start(bandit_model(X, likelihood=LOGISTIC))
    assert isinstance(state, OFUGLBState)
    arms = rng.integers(len(X), size=60)
    ys = (rng.random(60) < naive_likelihoods.mean("logistic", X[arms] @ THETA)).astype(float)
    for arm, y in zip(arms, ys, strict=True):
        update(state, clock_at(1), int(arm), y)
    begin_set(state.search, state.estimate)
    radius = _radius(state.published, state, np.log(61.0))
    published = naive_likelihood_rivals.published_radius("logistic", X[arms], ys, 61, bound)
    for arm, x in enumerate(X):
        likelihood = state.estimate.arms.observations.fit
        ours = highest_predictor(likelihood, state.search, state.estimate, arm, radius)
        theirs = naive_likelihood_rivals.published_bound(
            "logistic", x, X[arms], ys, published, bound
        )
        assert ours >= theirs - 1e-6


def test_glm_ucb_refuses_a_proof_for_counts() -> None:
    with pytest.raises(ValueError, match="bounded or normal, not counts"):
        sl.GLMUCB(width="proven").start(bandit_model(X, likelihood=LIKELIHOODS["poisson"]))
    with pytest.raises(ValueError, match="width must be one of 'asymptotic', 'proven', got 'pr'"):
        sl.GLMUCB(width="pr")
    with pytest.raises(ValueError, match="confidence must be LogDet"):
        sl.OFUGLB(confidence=1.0)  # type: ignore[arg-type]


def test_ofuglb_with_normal_rewards_is_lin_ucb() -> None:
    problem = sl.problems.unit_sphere(6, 2, 0.1, seed=3)
    rule = sl.LogDet(norm_bound=2.0)
    ours = sl.simulate(problem, sl.OFUGLB(2.0, rule), 500, seed=1, checkpoints=range(1, 501))
    theirs = sl.simulate(
        problem, sl.LinUCB(rule, "matched"), 500, seed=1, checkpoints=range(1, 501)
    )
    np.testing.assert_array_equal(ours.pulls, theirs.pulls)


@without_compilation
@pytest.mark.parametrize(
    "policy",
    [
        sl.ThompsonSampling(prior_std=2.0),
        sl.ThompsonSampling(inflation="abeille-lazaric"),
        sl.BayesianIDS(samples=200),
        sl.TopTwo(),
        sl.EpsilonGreedy(),
        sl.GLMUCB(),
        sl.OFUGLB(),
    ],
    ids=lambda policy: type(policy).__name__,
)
@pytest.mark.parametrize("rewards", [sl.Bernoulli(), sl.Poisson()], ids=str)
def test_a_saved_session_goes_on(
    policy: sl.extend.Policy, rewards: sl.extend.Likelihood, tmp_path: Path
) -> None:
    first, second = (sl.Session(X, policy, seed=1, rewards=rewards) for _ in range(2))
    outcomes = np.random.default_rng(2)
    for _ in range(25):
        reward = float(outcomes.integers(2))
        for session in (first, second):
            session.tell(session.ask().id, reward)
        second.save(tmp_path / "file")
        second = sl.Session.load(tmp_path / "file")
    assert [first.ask().arm for _ in range(5)] == [second.ask().arm for _ in range(5)]
