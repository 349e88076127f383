"""Custom likelihoods: quantities derived from three functions and a sampler."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import linprog, minimize
from scipy.special import gammaln

import sightline as sl
from sightline.core.alternatives import compare
from sightline.core.least_squares import best_arm, least_squares, observe
from sightline.core.likelihood import divergence, excess, variance_of
from sightline.core.likelihood_alternatives import half_spaces_for
from sightline.core.model import bandit_model
from sightline.jit import callable_for
from sightline.simulation.simulate import is_interpreted
from tests.naive import Array

X = np.array([[1.0, 0.0], [0.8, 0.7], [0.9, -0.6], [0.3, 0.2], [0.6, -1.1]])
THETA = np.array([0.9, -0.5])


class NegativeBinomial(NamedTuple):
    """Counts with log mean u and variance mu + mu^2 / size."""

    size: float = 2.0


class FastNegativeBinomial(NamedTuple):
    size: float = 2.0


class Exponential(NamedTuple):
    """Waiting times with log mean u."""

    unit: float = 1.0


def log_mean(likelihood: Any, u: float) -> float:
    return math.exp(min(u, 50.0))


def overdispersed_slope(likelihood: Any, m: float, v: float) -> float:
    p = 1.0 / (1.0 + likelihood.size * math.exp(-max(v, -500.0)))
    return float((m + likelihood.size) * p - m)


def overdispersed_curvature(likelihood: Any, m: float, v: float) -> float:
    odds = math.exp(-abs(max(v, -500.0) - math.log(likelihood.size)))
    return float((m + likelihood.size) * odds / ((1.0 + odds) * (1.0 + odds)))


def overdispersed_count(likelihood: Any, mean: float, rng: np.random.Generator) -> float:
    total, log_miss = 0.0, math.log1p(likelihood.size / mean)
    for _ in range(int(likelihood.size)):
        total += math.floor(-math.log1p(-rng.random()) / log_miss)
    return total


def waiting_slope(likelihood: Any, m: float, v: float) -> float:
    return 1.0 - m * math.exp(-max(v, -500.0))


def waiting_curvature(likelihood: Any, m: float, v: float) -> float:
    return m * math.exp(-max(v, -500.0))


def waiting_time(likelihood: Any, mean: float, rng: np.random.Generator) -> float:
    return -mean * math.log1p(-rng.random())


COUNTS: Any = {
    "mean": log_mean,
    "slope": overdispersed_slope,
    "curvature": overdispersed_curvature,
    "draw": overdispersed_count,
}
sl.extend.register_likelihood(NegativeBinomial, **COUNTS)
compiled: Any = {name: numba.njit(each) for name, each in COUNTS.items()}
sl.extend.register_likelihood(FastNegativeBinomial, **compiled)
sl.extend.register_likelihood(
    Exponential, mean=log_mean, slope=waiting_slope, curvature=waiting_curvature, draw=waiting_time
)


@dataclass(frozen=True)
class Own(sl.extend.Likelihood):
    likelihood: Any

    @property
    def as_tuple(self) -> Any:
        return self.likelihood


OWN: dict[str, Any] = {
    "counts": NegativeBinomial(),
    "geometric": NegativeBinomial(1.0),
    "times": Exponential(),
}
every_own = pytest.mark.parametrize("name", OWN)


def bandit(name: str, actions: Any = X, theta: Any = THETA) -> sl.LinearBandit:
    return sl.LinearBandit(actions, theta, rewards=Own(OWN[name]))


def distribution(name: str, mean: Any) -> Any:
    if name == "times":
        return stats.expon(scale=mean)
    size = OWN[name].size
    return stats.nbinom(size, size / (size + mean))


def kl(name: str, p: Any, q: Any) -> Array:
    """Divergence of rewards with mean q from those with mean p, in closed form."""
    p, q = np.longdouble(p), np.longdouble(q)  # terms cancel
    if name == "times":
        return np.asarray(np.log(q / p) + p / q - 1.0, dtype=np.float64)
    size = OWN[name].size
    found = p * np.log(p / q) + (p + size) * np.log((size + q) / (size + p))
    return np.asarray(found, dtype=np.float64)


def log_likelihood(name: str, y: Array, v: Array) -> Array:
    mean = np.exp(v)
    if name == "times":
        return np.asarray(-v - y / mean)
    size = OWN[name].size
    constant = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
    p = mean / (size + mean)
    return np.asarray(constant + size * np.log1p(-p) + y * np.log(p))


# --- what is derived ------------------------------------------------------------------------------


@every_own
def test_divergences_are_sums_over_all_rewards(name: str) -> None:
    likelihood, rng = OWN[name], np.random.default_rng(1)
    measured = callable_for(divergence, likelihood)
    for u, step in rng.uniform(-2.0, 2.0, (40, 2)):
        found = measured(likelihood, u, step)
        assert found == pytest.approx(float(kl(name, np.exp(u), np.exp(u + step))), rel=1e-10)
        # the second-order term, where the closed form has no digits left
        half = 0.5 * 1e-18 * callable_for(variance_of, likelihood)(likelihood, u)
        half *= (math.exp(u) / callable_for(variance_of, likelihood)(likelihood, u)) ** 2
        assert measured(likelihood, u, 1e-9) == pytest.approx(half, rel=1e-8)
    if name != "times":
        ys = np.arange(2000.0)
        one, other = distribution(name, 3.0), distribution(name, 1.2)
        truth = one.pmf(ys) @ (one.logpmf(ys) - other.logpmf(ys))
        assert measured(likelihood, math.log(3.0), math.log(0.4)) == pytest.approx(truth, rel=1e-9)


@every_own
def test_excesses_are_means_over_a_normal_law(name: str) -> None:
    likelihood = OWN[name]
    zs = np.linspace(-10.0, 10.0, 2001)
    density = stats.norm.pdf(zs) * (zs[1] - zs[0])
    for v, w in [(-1.0, 0.01), (0.5, 0.3), (2.0, 1.5)]:
        truth = density @ kl(name, math.exp(v), np.exp(v + w * zs))
        found = callable_for(excess, likelihood)(likelihood, v, w)
        assert found == pytest.approx(truth, rel=1e-7)


@every_own
def test_rewards_have_their_mean_and_variance(name: str) -> None:
    problem = bandit(name)
    rng = np.random.default_rng(0)
    rewards = [draw_one(name, problem.means[0], rng) for _ in range(20_000)]
    expected = distribution(name, problem.means[0])
    assert np.mean(rewards) == pytest.approx(expected.mean(), abs=5.0 * expected.std() / 141.0)
    assert np.var(rewards) == pytest.approx(expected.var(), rel=0.1)
    assert problem.noise_std == pytest.approx(distribution(name, problem.means.max()).std())


def draw_one(name: str, mean: float, rng: np.random.Generator) -> float:
    sampler = waiting_time if name == "times" else overdispersed_count
    return sampler(OWN[name], mean, rng)


# --- estimates and alternatives -------------------------------------------------------------------


@every_own
def test_estimates_and_nearest_alternatives_are_those_of_single_rewards(name: str) -> None:
    """Against SciPy on the probabilities of all rewards."""
    problem, rng, lam = bandit(name), np.random.default_rng(4), 0.5
    estimate = least_squares(bandit_model(X, likelihood=OWN[name]), lam, reduce=False)
    arms = rng.integers(len(X), size=60)
    ys = np.array([draw_one(name, problem.means[arm], rng) for arm in arms])
    learn = callable_for(observe, estimate)
    for arm, y in zip(arms, ys, strict=True):
        learn(estimate, arm, y)

    def loss(theta: Array) -> float:
        return float(0.5 * lam * theta @ theta - log_likelihood(name, ys, X[arms] @ theta).sum())

    fit = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(estimate.learned.theta, fit, atol=1e-5)

    theta, best = estimate.learned.theta, best_arm(estimate)
    alternatives = half_spaces_for(estimate, math.inf, math.inf)
    callable_for(compare, alternatives, estimate)(alternatives, estimate, best)
    pulls = np.bincount(arms, minlength=len(X))

    def fall(nu: Array) -> float:
        lost = kl(name, np.exp(X @ theta), np.exp(X @ nu))
        return float(pulls @ lost + 0.5 * lam * (nu - theta) @ (nu - theta))

    for z in np.flatnonzero(np.arange(len(X)) != best):
        alike = {"type": "eq", "fun": lambda nu, z=z: (X[best] - X[z]) @ nu}
        nearest = minimize(fall, 0.5 * theta, constraints=alike, method="SLSQP", tol=1e-12)
        assert alternatives.distances[z] == pytest.approx(2.0 * nearest.fun, rel=1e-4)


# --- policies and sessions ------------------------------------------------------------------------


@every_own
@pytest.mark.parametrize(
    "policy", [sl.IDS(), sl.Stakes(), sl.LinUCB()], ids=["IDS", "Stakes", "LinUCB"]
)
def test_policies_learn_which_arm_is_best(name: str, policy: sl.extend.Policy) -> None:
    problem = bandit(name)
    assert is_interpreted(problem, policy)
    run = sl.simulate(problem, policy, 150, seed=2, checkpoints=[30, 150])
    assert run.pulls.sum(axis=1).tolist() == [30, 150]
    assert run.regret[-1] < 150 * problem.gaps.mean()  # that of equal shares


@pytest.mark.slow
@pytest.mark.parametrize("policy", [sl.IDS(), sl.Stakes()], ids=["IDS", "Stakes"])
def test_compiled_or_plain_the_run_is_the_same(policy: sl.extend.Policy) -> None:
    fast = sl.LinearBandit(X, THETA, rewards=Own(FastNegativeBinomial()))
    assert not is_interpreted(fast, policy)
    runs = [sl.simulate(problem, policy, 60, seed=3) for problem in (bandit("counts"), fast)]
    assert runs[0].pulls.tolist() == runs[1].pulls.tolist()
    bounds = [sl.lower_bound(problem) for problem in (bandit("counts"), fast)]
    assert bounds[0].value == pytest.approx(bounds[1].value, rel=1e-12)


@every_own
@pytest.mark.parametrize("policy", [sl.IDS(), sl.Stakes()], ids=["IDS", "Stakes"])
def test_sessions_estimate_means(name: str, policy: sl.extend.Policy) -> None:
    session = sl.Session(X, policy, rewards=Own(OWN[name]), seed=1)
    means, rng = bandit(name).means, np.random.default_rng(7)
    told: list[list[float]] = [[] for _ in X]
    for _ in range(40):
        decision = session.ask()
        arm = int(decision.arm)
        told[arm].append(draw_one(name, means[arm], rng))
        session.tell(decision.id, told[arm][-1])
    estimates = session.estimates()
    assert estimates is not None
    most = max(range(len(X)), key=lambda arm: len(told[arm]))
    error = estimates.standard_errors[most]
    assert estimates.means[most] == pytest.approx(np.mean(told[most]), abs=3.0 * error)
    assert abs(estimates.means[most] - means[most]) <= 5.0 * error


# --- bounds ---------------------------------------------------------------------------------------


@every_own
def test_bounds_of_independent_arms_are_those_of_lai_and_robbins(name: str) -> None:
    means = np.array([3.0, 2.9, 1.0, 0.2, 0.001])
    bound = sl.lower_bound(bandit(name, np.eye(5), np.log(means)))
    truth = float(((means[0] - means) / np.maximum(kl(name, means, means[0]), 1e-300))[1:].sum())
    assert bound.value == pytest.approx(truth, rel=2e-8)
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)
    assert bound.lower <= truth * (1 + 1e-12)
    assert bound.upper >= truth * (1 - 1e-12)


@every_own
@pytest.mark.parametrize("seed", range(2))
def test_bounds_in_the_plane_are_linear_programs(name: str, seed: int) -> None:
    """Alternatives that keep the best arm are theta + t e: only the nearest on each side matter."""
    rng = np.random.default_rng(seed)
    actions, theta = rng.standard_normal((4, 2)), rng.standard_normal(2)
    problem = bandit(name, actions, theta)
    bound = sl.lower_bound(problem)
    u, best = actions @ theta, problem.best
    moves = actions @ np.array([-actions[best, 1], actions[best, 0]])
    ways = (u[best] - u[moves != 0]) / moves[moves != 0]
    ends = [ways[ways > 0].min(initial=math.inf), ways[ways < 0].max(initial=-math.inf)]
    evidence = np.array(
        [kl(name, np.exp(u), np.exp(u + t * moves)) for t in ends if math.isfinite(t)]
    )
    costly = np.arange(4) != best
    found = linprog(problem.gaps[costly], -evidence[:, costly], -np.ones(len(evidence)))
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)
    assert bound.value == pytest.approx(found.fun, rel=1e-7)


@every_own
def test_small_gaps_have_the_bound_of_their_fisher_information(name: str) -> None:
    """Steps of 1e-8: the closed forms have no digits left, integrals do."""
    u, gap = 0.4, 1e-8
    bound = sl.lower_bound(bandit(name, np.eye(2), [u, u - gap]))
    variance = distribution(name, math.exp(u)).var()
    assert bound.converged
    assert bound.value * gap == pytest.approx(2.0 * variance / math.exp(u), rel=1e-6)


def test_no_evidence_is_less_than_a_certificate_says() -> None:
    """In three dimensions: alternatives at random."""
    rng = np.random.default_rng(5)
    actions, theta = rng.standard_normal((6, 3)), 0.7 * rng.standard_normal(3)
    problem = bandit("counts", actions, theta)
    bound = sl.lower_bound(problem)
    assert bound.converged
    assert bound.verify() == (bound.lower, bound.upper)
    amounts = np.where(np.isfinite(bound.allocation), bound.allocation, 0.0)
    best, u = actions[problem.best], actions @ theta
    least = math.inf
    for _ in range(2000):
        shift = rng.standard_normal(3)
        shift -= (shift @ best) / (best @ best) * best
        moves = actions @ shift
        z = int(rng.choice(np.flatnonzero(u < u.max())))
        nu = theta + shift * (u.max() - u[z]) / moves[z]
        with np.errstate(all="ignore"):
            evidence = amounts @ kl("counts", np.exp(u), np.exp(actions @ nu))
        least = min(least, float(evidence) if math.isfinite(evidence) else math.inf)
    assert 1.0 - 1e-7 <= least <= 1.5
