"""Cells, gaps and gains: samples against plain NumPy on the same samples, angles against grids."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import clock_at
from sightline.core.model import bandit_model
from sightline.core.posterior.gains import bayesian_gains, joint_distribution
from sightline.core.posterior.samples import WIDTH, fixed_samples
from sightline.policies.base import update
from sightline.policies.bayesian_ids import BayesianIDS, BayesianState, bayesian_mixture
from tests import naive, naive_bayes
from tests.core.helpers import half_of
from tests.naive import Array
from tests.naive_bayes import Round

seeds = st.integers(0, 2**32 - 1)
NOW = clock_at(1)  # a posterior learns the same whenever it is told
MUTUAL = "mutual-information"
ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [-0.3, 0.9], [-0.7, -0.7], [0.2, -1.1], [0.1, 0.1]])
THETA = np.array([0.8, 0.3])


class Case(NamedTuple):
    """How often each of the six arms was played, and the noise."""

    pulls: tuple[int, ...]
    noise_std: float


CASES = {
    "prior": Case((0, 0, 0, 0, 0, 0), 0.3),
    "early": Case((1, 1, 0, 0, 0, 0), 0.5),
    "middle": Case((5, 5, 2, 1, 1, 0), 0.5),
    "lopsided": Case((0, 0, 2000, 0, 0, 0), 0.5),
    "concentrated": Case((400, 300, 10, 0, 0, 0), 0.5),
    "very concentrated": Case((4000, 4000, 0, 0, 0, 0), 0.5),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class Fed(NamedTuple):
    state: BayesianState
    P: Array
    b: Array


def fed(policy: BayesianIDS, case: Case, actions: Array = ARMS) -> Fed:
    """Return a state after some data and one round, and the posterior from all data at once."""
    arms = np.repeat(np.arange(len(case.pulls)), case.pulls)
    noise = np.random.default_rng(2).standard_normal(arms.size)
    rewards = actions[arms] @ THETA + case.noise_std * noise
    state = policy.start(bandit_model(actions, case.noise_std))
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        update(state, NOW, arm, reward)
    bayesian_mixture(state, ALL_ARMS)
    assert policy.prior_std is not None
    P, b = naive.posterior(actions[arms], rewards, case.noise_std, policy.prior_std)
    return Fed(state, P, b)


def result(state: BayesianState) -> Round:
    probabilities = np.zeros(state.gaps.size)
    probabilities[state.cells.vertices] = state.cells.probabilities
    return Round(probabilities, state.gaps.copy(), state.gains.copy())


def truth(fed: Fed, actions: Array, samples: int) -> tuple[Round, Array]:
    half = half_of(fed.state.source, samples, actions.shape[1])
    thetas = naive_bayes.thetas(fed.P, fed.b, half, samples)
    return naive_bayes.from_samples(actions, thetas), thetas


# --- samples --------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 2, 3, 511, 512, 513, 2000])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_samples_are_standard_normal_and_the_same_every_time(samples: int, d: int) -> None:
    source = fixed_samples(samples, d, 4)
    half = half_of(source, samples, d)
    assert np.array_equal(source.eta, fixed_samples(samples, d, 4).eta)
    flat = source.eta.transpose(0, 2, 1).reshape(-1, source.eta.shape[1])
    assert not flat[samples // 2 :].any()
    assert not flat[:, d:].any()
    norms = np.linalg.norm(half, axis=1)
    assert np.all(np.diff(norms) <= 0)
    np.testing.assert_allclose(source.radii, np.append(norms, 0.0)[::WIDTH][: len(source.radii)])
    if samples == 2000:
        assert np.all(np.abs((half**2).mean(axis=0) - 1) < 4 * math.sqrt(2 / 1000))


@every_case
@pytest.mark.parametrize("samples", [301, pytest.param(10_000, marks=pytest.mark.slow)])
def test_samples_against_numpy(case: Case, samples: int) -> None:
    ours = fed(BayesianIDS(samples), case)
    expected, _ = truth(ours, ARMS, samples)
    found = result(ours.state)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-12)
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=1e-5, atol=1e-9)
    if expected.probabilities.max() < 1.0:
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-5, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 8), st.integers(1, 5), st.integers(0, 12))
def test_samples_against_numpy_on_random_problems(seed: int, k: int, d: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, d))
    arms, rewards = rng.integers(k, size=n), rng.standard_normal(n)
    state = BayesianIDS(200).start(bandit_model(actions, 0.5))
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        update(state, NOW, arm, reward)
    bayesian_mixture(state, ALL_ARMS)
    P, b = naive.posterior(actions[arms], rewards, 0.5, 1.0)
    expected, _ = truth(Fed(state, P, b), actions, 200)
    found = result(state)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-12)
    # a sample within float32 of a border may be counted on either side
    assert np.abs(found.probabilities - expected.probabilities).max() < 1.5 / 200
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=1e-5, atol=1e-6)
    if np.abs(found.probabilities - expected.probabilities).max() < 1e-12 and k > 1:
        np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@every_case
def test_samples_against_angles(case: Case) -> None:
    """Within 5 standard errors of M / 2 independent pairs (mirror images may be worth no more)."""
    samples = 40_000
    exact = result(fed(BayesianIDS(posterior="angular"), case).state)
    ours = fed(BayesianIDS(samples), case)
    found = result(ours.state)
    p = exact.probabilities
    error = np.sqrt(p * (1 - p) / (samples / 2))
    assert np.all(np.abs(found.probabilities - p) <= 5 * error + 1 / samples)
    _, thetas = truth(ours, ARMS, samples)
    best = int(np.argmin(exact.gaps))
    excess = (thetas @ ARMS.T).max(axis=1) - thetas @ ARMS[best]
    spread = excess.std() / math.sqrt(samples / 2)
    np.testing.assert_allclose(found.gaps, exact.gaps, atol=5 * spread + 1e-7)


# --- angles ---------------------------------------------------------------------------------------


@every_case
def test_angles_against_integration_over_the_plane(case: Case) -> None:
    ours = fed(BayesianIDS(posterior="angular"), case)
    expected = naive_bayes.from_plane(ARMS, naive_bayes.plane(ARMS, ours.P, ours.b))
    found = result(ours.state)
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.gaps, expected.gaps, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.gains, expected.gains, rtol=1e-9, atol=1e-12)


@settings(deadline=None, max_examples=25)
@given(seeds, st.integers(1, 7), st.integers(0, 10), st.floats(0.02, 2.0))
def test_angles_on_random_problems(seed: int, k: int, n: int, noise_std: float) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, 2))
    arms, rewards = rng.integers(k, size=n), rng.standard_normal(n)
    state = BayesianIDS(posterior="angular").start(bandit_model(actions, noise_std))
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        update(state, NOW, arm, reward)
    bayesian_mixture(state, ALL_ARMS)
    found = result(state)
    assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-10)
    assert np.all(found.gaps >= 0)
    np.testing.assert_allclose(state.cells.shifts.sum(axis=0), 0.0, atol=1e-12)
    P, b = naive.posterior(actions[arms], rewards, noise_std, 1.0)
    expected = naive_bayes.from_plane(actions, naive_bayes.plane(actions, P, b))
    np.testing.assert_allclose(found.probabilities, expected.probabilities, atol=1e-6)
    np.testing.assert_allclose(found.gaps, expected.gaps, atol=1e-6)
    if found.probabilities.max() < 1.0:
        np.testing.assert_allclose(found.gains, expected.gains, atol=1e-6)


@pytest.mark.parametrize("noise_std", [1e-2, 1e-4, 1e-6])
def test_angles_of_a_point_between_two_cells(noise_std: float) -> None:
    """However concentrated, a mean on the border of two cells belongs half to each."""
    actions = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    state = BayesianIDS(posterior="angular").start(bandit_model(actions, noise_std))
    for arm in (0, 1) * 50:
        update(state, NOW, arm, 1.0)
    bayesian_mixture(state, ALL_ARMS)
    np.testing.assert_allclose(state.cells.probabilities.max(), 0.5, atol=1e-9)
    deviation = noise_std / math.sqrt(50)
    # E max of two independent normals of this deviation is deviation / sqrt(pi)
    assert state.gaps.min() == pytest.approx(deviation / math.sqrt(math.pi), rel=1e-3)


# --- mutual information ---------------------------------------------------------------------------


@every_case
def test_mutual_information_of_the_samples(case: Case) -> None:
    samples = 301
    ours = fed(BayesianIDS(samples, information=MUTUAL), case)
    expected, thetas = truth(ours, ARMS, samples)
    if expected.probabilities.max() == 1.0:
        pytest.skip("nothing is left to learn")
    values = [naive_bayes.sampled_mutual_information(x, ARMS, thetas, case.noise_std) for x in ARMS]
    np.testing.assert_allclose(ours.state.gains, values, rtol=1e-2)


@pytest.mark.parametrize("name", ["prior", "early", "middle", "lopsided"])
def test_mutual_information_of_angles(name: str) -> None:
    """To the accuracy of a histogram of points that are not even."""
    case = CASES[name]
    ours = fed(BayesianIDS(posterior="angular", information=MUTUAL), case)
    plane = naive_bayes.plane(ARMS, ours.P, ours.b)
    values = [naive_bayes.plane_mutual_information(x, 6, plane, case.noise_std) for x in ARMS]
    np.testing.assert_allclose(ours.state.gains, values, rtol=2e-2)


@every_case
@pytest.mark.parametrize("posterior", ["samples", "angular"])
def test_bounds_on_mutual_information(case: Case, posterior: str) -> None:
    """0 <= variance gain / (2 (v + sigma^2)) <= I <= log(1 + v / sigma^2) / 2, and I <= H(x*).

    Of samples, v is their own variance; and they are no Gaussian, so the lower bound is 0.
    """
    ours = fed(BayesianIDS(301, posterior=posterior, information=MUTUAL), case)
    other = fed(BayesianIDS(301, posterior=posterior), case)
    state, noise = ours.state, case.noise_std**2
    if state.cells.probabilities.max() == 1.0:
        pytest.skip("nothing is left to learn")
    v = np.array([x @ naive.solve(ours.P, x) for x in ARMS])
    lower = other.state.gains / (2 * (v + noise))
    if posterior == "samples":
        v = (truth(ours, ARMS, 301)[1] @ ARMS.T).var(axis=0)
        lower = np.zeros(6)
    assert np.all(state.gains >= lower * 0.99)
    assert np.all(state.gains <= 0.5 * np.log1p(v / noise) * 1.01)
    assert np.all(state.gains <= naive_bayes.entropy(state.cells.probabilities) * (1 + 1e-9))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prior", "early", "middle", "lopsided"])
def test_mutual_information_of_samples_against_angles(name: str) -> None:
    """The rarest cell that matters holds 2 % of the samples here."""
    exact = fed(BayesianIDS(posterior="angular", information=MUTUAL), CASES[name]).state.gains
    found = fed(BayesianIDS(100_000, information=MUTUAL), CASES[name]).state.gains
    informative = exact > 0.05 * exact.max()
    np.testing.assert_allclose(found[informative], exact[informative], rtol=0.05)


def test_a_zero_arm_tells_nothing() -> None:
    actions = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    for information in ("variance", MUTUAL):
        state = BayesianIDS(100, information=information).start(bandit_model(actions, 0.5))
        bayesian_mixture(state, ALL_ARMS)
        assert state.gains[0] == 0.0
        assert np.all(state.gains[1:] > 0.0)


def test_what_is_not_registered_is_refused() -> None:
    state = BayesianIDS(10).start(bandit_model(np.eye(2), 1.0))
    with pytest.raises(TypeError, match="no information gain is known to a str"):
        bayesian_gains("variance", state.source, state.cells, 0, state.gains)
    with pytest.raises(TypeError, match="no joint distribution is known to a str"):
        joint_distribution("samples", state.cells, 0, 0, 1.0, 1, np.zeros((2, 4)))


# --- a noise level per arm ------------------------------------------------------------------------

LEVELS = np.array([0.3, 1.0, 0.5, 2.0, 0.3, 0.7])


@pytest.mark.parametrize("posterior", ["samples", "angular"])
def test_gains_before_any_data_are_those_of_the_noise_of_each_arm(posterior: str) -> None:
    """The prior is the same for all noise: each arm compares with a problem of its own."""
    policy = BayesianIDS(301, information=MUTUAL, posterior=posterior)
    state = policy.start(bandit_model(ARMS, LEVELS))
    bayesian_mixture(state, ALL_ARMS)
    for x, level in enumerate(LEVELS.tolist()):
        alone = policy.start(bandit_model(ARMS, level))
        bayesian_mixture(alone, ALL_ARMS)
        assert state.gains[x] == pytest.approx(alone.gains[x], rel=1e-12)
        np.testing.assert_allclose(state.gaps, alone.gaps, rtol=1e-12)


@pytest.mark.parametrize("posterior", ["samples", "angular"])
def test_variance_is_that_of_the_outcome(posterior: str) -> None:
    """An outcome is the reward times a weight: its variance over cells has the weight squared."""
    model = bandit_model(ARMS, LEVELS)
    policy = BayesianIDS(301, posterior=posterior)
    state, plain = policy.start(model), policy.start(bandit_model(ARMS, 1.0))
    bayesian_mixture(state, ALL_ARMS)
    bayesian_mixture(plain, ALL_ARMS)
    precisions = model.needs_weights("a policy") ** 2
    np.testing.assert_allclose(state.gains, precisions * plain.gains, rtol=1e-12)


def test_data_weigh_as_much_as_they_are_precise() -> None:
    rng = np.random.default_rng(3)
    model = bandit_model(ARMS, LEVELS)
    weights = model.needs_weights("a policy")
    arms, rewards = rng.integers(6, size=25), rng.standard_normal(25)
    state = BayesianIDS(301).start(model)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        update(state, NOW, arm, weights[arm] * reward)
    P = np.eye(2) + (ARMS[arms].T / LEVELS[arms] ** 2) @ ARMS[arms]
    b = (ARMS[arms].T / LEVELS[arms] ** 2) @ rewards
    bayesian_mixture(state, ALL_ARMS)
    np.testing.assert_allclose(state.cells.means, ARMS @ naive.solve(P, b), rtol=1e-10)
    expected, _ = truth(Fed(state, P, b), ARMS, 301)
    np.testing.assert_allclose(result(state).probabilities, expected.probabilities, atol=1e-12)
    np.testing.assert_allclose(state.gaps, expected.gaps, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(state.gains, weights**2 * expected.gains, rtol=1e-5, atol=1e-12)
