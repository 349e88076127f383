"""Estimates fed with data, beside the data themselves."""

from typing import Any, NamedTuple

import numpy as np

from sightline.core.action_set import ALL_ARMS
from sightline.core.alternatives import (
    BLOCK,
    Comparison,
    compare,
    half_spaces,
    shifts,
    write_shifts,
)
from sightline.core.estimate import LeastSquares
from sightline.core.gains import Round, learning_rate_rule, workspace
from sightline.core.gaps import optimistic_arm
from sightline.core.least_squares import best_arm, least_squares, observe
from sightline.core.model import bandit_model
from sightline.core.posterior.samples import Samples
from sightline.jit import uncached
from tests import naive
from tests.naive import Array, Ints


class Fed(NamedTuple):
    """A compiled estimate, and the truth from the same data."""

    estimate: LeastSquares
    theta: Array
    V: Array


@uncached  # millions of updates need a compiled loop
def observe_all(estimate: LeastSquares, arms: Ints, outcomes: Array) -> None:
    for i in range(arms.shape[0]):
        observe(estimate, arms[i], outcomes[i])


def random_data(
    rng: np.random.Generator, actions: Array, n: int, noise_std: float = 0.3
) -> tuple[Ints, Array]:
    """Return n arms, uneven like those of a bandit, and noisy rewards."""
    k, d = actions.shape
    frequencies = rng.dirichlet(np.full(k, 0.7))
    arms = rng.choice(k, size=n, p=frequencies)
    theta = rng.standard_normal(d)
    return arms, actions[arms] @ theta + noise_std * rng.standard_normal(n)


def fed(actions: Array, regulariser: float, arms: Ints, rewards: Array) -> Fed:
    """Return the estimate and the truth after the given data."""
    estimate = least_squares(bandit_model(actions), regulariser)
    observe_all(estimate, arms, rewards)
    xs = actions[arms]
    return Fed(estimate, naive.ridge(xs, rewards, regulariser), naive.covariance(xs, regulariser))


def random_fed(seed: int, k: int, d: int, n: int, regulariser: float = 1.0) -> Fed:
    """Return an estimate of random arms, spanning min(d, k) dimensions, fed with random data."""
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, min(d, k)))
    return fed(actions, regulariser, *random_data(rng, actions, n))


def compare_to_best(alternatives: Any, estimate: LeastSquares) -> Comparison:
    """Compare all arms with the empirically best one."""
    return compare(alternatives, estimate, best_arm(estimate))


def round_of(
    estimate: LeastSquares,
    *,
    alternatives: Any = None,
    beta: float = 1.0,
    learning_rate: str | float = "paper",
) -> Round:
    """Return what gaps and gains look at, with half-spaces unless other alternatives are given."""
    k, d = estimate.arms.rewards.shape
    alternatives = half_spaces(k) if alternatives is None else alternatives
    return Round(
        estimate=estimate,
        alternatives=alternatives,
        comparison=compare_to_best(alternatives, estimate),
        beta=beta,
        ucb_arm=optimistic_arm(estimate, beta, ALL_ARMS),
        learning_rate=learning_rate_rule(learning_rate, k),
        work=workspace(k, d),
    )


def shifts_of(alternatives: Any, estimate: LeastSquares, comparison: Comparison) -> Array:
    """Return nu(z) - theta (k, d), zero where there is none, after ``locate_alternatives``."""
    k, d = estimate.arms.rewards.shape
    finite = np.flatnonzero(np.isfinite(alternatives.distances))
    work, result = shifts(k, d), np.zeros((k, d))
    for start in range(0, len(finite), BLOCK):
        block = finite[start : start + BLOCK]
        work.arms[: len(block)] = block
        write_shifts(alternatives, estimate, comparison, len(block), work)
        result[block] = work.columns[:, : len(block)].T
    return result


class Flat(NamedTuple):
    """An estimate of arms that lie in a plane of R^3, and the truth in coordinates of the plane.

    There everything is well conditioned, whatever the regulariser.
    """

    estimate: LeastSquares
    coordinates: Array
    theta: Array
    V: Array


def flat_fed(seed: int, n: int, regulariser: float) -> Flat:
    """Return an estimate of five arms that do not span the space, fed with n observations."""
    rng = np.random.default_rng(seed)
    coordinates = rng.standard_normal((5, 2))
    basis = np.linalg.qr(rng.standard_normal((3, 3)))[0][:2]
    arms = rng.integers(5, size=n)
    rewards = coordinates[arms] @ np.array([1.0, -0.5]) + rng.standard_normal(n)
    estimate = least_squares(bandit_model(coordinates @ basis), regulariser)
    observe_all(estimate, arms, rewards)
    xs = coordinates[arms]
    theta = naive.ridge(xs, rewards, regulariser)
    return Flat(estimate, coordinates, theta, naive.covariance(xs, regulariser))


def flat_arms(seed: int, k: int, d: int, rank: int) -> Array:
    """Return k arms that lie in a subspace of R^d."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((k, rank)) @ rng.standard_normal((rank, d))


def half_of(source: Samples, samples: int, d: int) -> Array:
    """Return one eta of every pair, (M // 2, d)."""
    flat = source.eta.transpose(0, 2, 1).reshape(-1, source.eta.shape[1])
    return flat[: samples // 2, :d].astype(np.float64)
