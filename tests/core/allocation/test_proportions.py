"""The information of a sampling distribution, against its definition and against exact numbers."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.alternatives import half_spaces
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import best_arm, least_squares
from sightline.core.model import bandit_model
from sightline.policies.solid import Sampling, information_rates, sampling
from tests import naive, naive_rivals_solid
from tests.core.helpers import compare_to_best, random_fed
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
SHARE = Fraction(1, 10**6)


def rates(estimate: LeastSquares, weights: Array) -> tuple[float, Sampling]:
    """Return the squared distance in V_w and the workspace with the rates."""
    alternatives = half_spaces(len(weights))
    comparison = compare_to_best(alternatives, estimate)
    work = sampling(estimate.arms.rewards)
    return information_rates(estimate, alternatives, comparison, weights, work), work


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(2, 8), st.integers(1, 4))
def test_information_is_that_of_the_nearest_alternative(seed: int, k: int, d: int) -> None:
    fed = random_fed(seed, k, d, n=30)
    w = np.random.default_rng(seed).dirichlet(np.ones(k))
    value, gradient = naive_rivals_solid.information(fed.estimate.arms.rewards, fed.theta, w, 1.0)
    least, work = rates(fed.estimate, w)
    assert 0.5 * least == pytest.approx(value, rel=1e-6, abs=1e-12)
    np.testing.assert_allclose(0.5 * work.rates, gradient, rtol=1e-5, atol=1e-9)


@settings(deadline=None, max_examples=100)
@given(seeds, st.integers(2, 8), st.integers(1, 4))
def test_rates_are_a_supergradient(seed: int, k: int, d: int) -> None:
    """The information is concave in w, so its tangent at w lies above it everywhere."""
    estimate = random_fed(seed, k, d, n=30).estimate
    rng = np.random.default_rng(seed)
    w, other = rng.dirichlet(np.ones(k)), rng.dirichlet(np.full(k, 0.3))
    here, work = rates(estimate, w)
    tangent = here + float(work.rates @ (other - w))
    there, _ = rates(estimate, other)
    # inside V_w, w has a share of the uniform distribution, which the tangent leaves out
    assert there <= tangent + 2e-6 * (work.rates.max() + there) + 1e-12


def exact_rates(
    actions: list[list[Fraction]], theta: list[Fraction], weights: list[Fraction], best: int
) -> list[Fraction]:
    """Return the rates in the plane, in rational numbers."""
    k = len(actions)
    mixed = [(1 - SHARE) * w + SHARE / k for w in weights]
    a, b, c = (
        sum((m * x[i] * x[j] for m, x in zip(mixed, actions, strict=True)), Fraction(0))
        for i, j in ((0, 0), (0, 1), (1, 1))
    )
    determinant = a * c - b * b
    nearest: tuple[Fraction, list[Fraction]] | None = None
    for z in range(k):
        if z == best:
            continue
        u = [actions[best][i] - actions[z][i] for i in range(2)]
        y = [(c * u[0] - b * u[1]) / determinant, (a * u[1] - b * u[0]) / determinant]
        gap = u[0] * theta[0] + u[1] * theta[1]
        norm = u[0] * y[0] + u[1] * y[1]
        shift = [-gap / norm * y[i] for i in range(2)]
        if nearest is None or gap * gap / norm < nearest[0]:
            nearest = gap * gap / norm, [(shift[0] * x[0] + shift[1] * x[1]) ** 2 for x in actions]
    assert nearest is not None
    return nearest[1]


@pytest.mark.parametrize("scale", [1e-5, 1.0, 1e5])
@pytest.mark.parametrize("corner", range(3))
def test_distributions_that_leave_out_a_direction(scale: float, corner: int) -> None:
    """All weight on one arm: V_w is singular but for the uniform share."""
    actions = scale * np.array([[1.0, 0.0], [0.99, 0.04], [0.0, 1.0]])
    theta = np.array([1.0, 0.125])
    estimate = least_squares(bandit_model(actions), 1.0)
    estimate.learned.theta[:], estimate.arms.means[:] = theta, actions @ theta
    w = np.eye(3)[corner]
    _, work = rates(estimate, w)
    exact = exact_rates(
        [[Fraction(v) for v in x] for x in actions.tolist()],
        [Fraction(v) for v in theta.tolist()],
        [Fraction(v) for v in w.tolist()],
        best_arm(estimate),
    )
    # half the digits may go: the condition number of V_w is 1e6, times that of the uniform design
    largest = float(max(exact))
    np.testing.assert_allclose(
        work.rates, [float(r) for r in exact], rtol=1e-7, atol=1e-9 * largest
    )


@settings(deadline=None, max_examples=50)
@given(seeds, st.integers(2, 8), st.integers(1, 4))
def test_rates_of_observations_that_are_no_rewards(seed: int, k: int, d: int) -> None:
    """Information is collected along the rows, and what it must separate are rewards."""
    fed = random_fed(seed, k, d, n=30)
    actions, rng = fed.estimate.arms.rewards, np.random.default_rng(seed)
    rows = np.exp(rng.uniform(-1.0, 1.0, (k, 1))) * actions
    w = rng.dirichlet(np.ones(k))
    alternatives = half_spaces(k)
    comparison = compare_to_best(alternatives, fed.estimate)
    work = sampling(rows)
    least = information_rates(fed.estimate, alternatives, comparison, w, work)
    share = float(SHARE)
    V = (rows.T * ((1.0 - share) * w + share / k)) @ rows
    shifts, distances = naive.alternatives(actions, fed.theta, V, comparison.best)
    nearest = int(np.argmin(distances))
    assert least == pytest.approx(distances[nearest], rel=1e-6, abs=1e-12)
    rates = (rows @ shifts[nearest]) ** 2
    np.testing.assert_allclose(work.rates, rates, rtol=1e-5, atol=1e-9)
