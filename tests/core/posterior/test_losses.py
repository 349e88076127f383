"""Expected losses and the gains that lower them, against brute force."""

import math

import numpy as np
import pytest

from sightline.core.action_set import ALL_ARMS, some_arms
from sightline.core.estimate import known_noise
from sightline.core.posterior.losses import (
    ExpectedLoss,
    Losses,
    expected_loss,
    loss_gains,
    losses,
)
from tests.core.helpers import Fed, random_fed
from tests.marks import without_compilation
from tests.naive import Array
from tests.naive_stakes import look

pytestmark = without_compilation


def seen(
    data: Fed, sigma: float, guard: float, offer: object = ALL_ARMS
) -> tuple[Losses, ExpectedLoss]:
    estimate = data.estimate._replace(noise=known_noise(sigma**2))
    out = losses(*estimate.arms.rewards.shape)
    best = int(estimate.arms.means.argmax())
    loss = expected_loss(out, estimate, guard, best, offer)
    loss_gains(out, estimate, loss, offer)
    return out, loss


@pytest.mark.parametrize("guard", [0.0, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(6))
def test_against_brute_force(seed: int, sigma: float, guard: float) -> None:
    data = random_fed(seed, k=6, d=3, n=12)
    estimate = data.estimate
    truth = look(
        estimate.arms.rewards, estimate.learned.theta, estimate.learned.gram_inverse, sigma, guard
    )
    out, loss = seen(data, sigma, guard)
    assert loss.best == truth.best
    np.testing.assert_allclose(np.exp(out.log_losses), truth.losses, rtol=1e-6)
    assert loss.evidence == pytest.approx(truth.evidence, rel=1e-9)
    assert math.exp(loss.log_loss) == pytest.approx(truth.loss, rel=1e-6)
    np.testing.assert_allclose(out.gains, truth.gains, rtol=2e-5, atol=1e-12)


def test_the_expected_loss_is_that_of_the_posterior_within_its_bounds() -> None:
    """Monte Carlo: between the largest L_z and their sum, and near E max_z (-<u_z, theta>)^+."""
    data = random_fed(3, k=6, d=3, n=12)
    estimate = data.estimate
    _, loss = seen(data, 0.5, 0.0)
    draws = np.random.default_rng(0).multivariate_normal(
        estimate.learned.theta, 0.25 * estimate.learned.gram_inverse, size=400_000
    )
    means = draws @ estimate.arms.rewards.T
    truth = (means.max(axis=1) - means[:, loss.best]).mean()
    assert math.exp(loss.log_loss) == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("arm", range(5))
def test_gains_are_the_fall_of_the_log_loss_of_one_alternative(arm: int) -> None:
    """With two arms there is one alternative, and I(x) is minus d log L per small observation."""
    rng = np.random.default_rng(arm)
    X = rng.standard_normal((2, 2))
    V: Array = 2.0 * np.eye(2) + np.outer(X[0], X[0])
    theta = rng.standard_normal(2)
    small = 1e-6

    def log_loss(matrix: Array) -> float:
        return math.log(look(X, theta, np.linalg.inv(matrix), 0.5, 0.0).loss)

    truth = look(X, theta, np.linalg.inv(V), 0.5, 0.0)
    for x in range(2):
        # a whole observation takes 1 / (1 + |x|^2) of what a small one takes per unit
        width = X[x] @ np.linalg.inv(V) @ X[x]
        fall = (log_loss(V) - log_loss(V + small * np.outer(X[x], X[x]))) / small
        assert truth.gains[x] == pytest.approx(fall / (1.0 + width), rel=1e-3)


def test_arms_that_are_not_on_offer_neither_lose_nor_tell() -> None:
    data = random_fed(5, k=6, d=3, n=12)
    best = int(data.estimate.arms.means.argmax())
    available = np.ones(6, dtype=np.bool_)
    hidden = (best + 1) % 6
    available[hidden] = False
    out, _ = seen(data, 0.5, 0.0, some_arms(available))
    assert out.log_losses[hidden] == -math.inf
    assert out.gains[hidden] == 0.0


def test_log_losses_below_all_floats() -> None:
    data = random_fed(1, k=4, d=2, n=2000)
    out, loss = seen(data, 1e-3, 2.0)
    assert -1e9 < loss.log_loss < -1000.0
    assert np.isfinite(out.gains).all()
    assert (out.gains >= 0.0).all()
