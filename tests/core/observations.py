"""Estimates from outcomes that are not rewards, beside the data themselves."""

from typing import NamedTuple

import numpy as np

from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares
from sightline.core.model import Model, bandit_model
from tests import naive_observations
from tests.core.helpers import observe_all
from tests.naive import Array, Ints


class Told(NamedTuple):
    """A compiled estimate, what an outcome shows, and the truth from the same data."""

    estimate: LeastSquares
    observations: Array  # (k, p, d)
    theta: Array
    V: Array


def random_model(rng: np.random.Generator, k: int, d: int, per_arm: int) -> Model:
    """Return a bandit with a noise level per arm (p = 1), or arms that show something else."""
    if per_arm == 1:
        return bandit_model(rng.standard_normal((k, d)), np.exp(rng.uniform(-1.0, 1.0, k)))
    rewards, observations = rng.standard_normal((k, d)), rng.standard_normal((k, per_arm, d))
    return Model(rewards, observations, 0.7, None)


def random_outcomes(rng: np.random.Generator, model: Model, n: int) -> tuple[Ints, Array]:
    """Return n arms, uneven like those of a bandit, and noisy outcomes (n, p)."""
    k, p, d = model.observations.shape
    arms = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 0.7)))
    means = model.observations[arms] @ rng.standard_normal(d)
    return arms, means + model.noise_std * rng.standard_normal((n, p))


def told(model: Model, regulariser: float, arms: Ints, outcomes: Array) -> Told:
    """Return the estimate and the truth after the given data, in the coordinates of the arms."""
    estimate = least_squares(model, regulariser, reduce=False)
    single = model.observations_per_round == 1
    observe_all(estimate, arms, outcomes[:, 0].copy() if single else outcomes)
    theta, V = naive_observations.truth(model.observations, arms, outcomes, regulariser)
    return Told(estimate, model.observations, theta, V)


def random_told(seed: int, k: int, d: int, n: int, per_arm: int, regulariser: float = 1.0) -> Told:
    """Return an estimate of random arms and observations, told random outcomes."""
    rng = np.random.default_rng(seed)
    model = random_model(rng, k, d, per_arm)
    return told(model, regulariser, *random_outcomes(rng, model, n))
