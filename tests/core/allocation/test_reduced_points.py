"""Arms as alternatives see them: invariants, ranks, and arms that nearly coincide."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.program import costly_arms, reduced_points
from tests.naive import Array


def gaps_of(actions: Array, theta: Array) -> Array:
    means = actions @ theta
    gaps: Array = means.max() - means
    return gaps


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    k=st.integers(2, 9),
    d=st.integers(1, 4),
    optimal=st.integers(1, 3),
    spread=st.sampled_from([0.0, 8.0]),
)
def test_invariants(seed: int, k: int, d: int, optimal: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    units = 10.0 ** rng.uniform(-spread, spread, d)
    actions = rng.standard_normal((k, d)) * units
    free = np.arange(k) < min(optimal, k - 1)
    gaps = np.where(free, 0.0, rng.random(k) + 1e-3)
    points, functionals = reduced_points(actions, free, gaps)
    rank = max(min(d - int(free.sum()), int((~free).sum())), 0)
    assert points.shape == (k, rank)
    assert (points[free] == 0.0).all()
    costly = ~free
    values = actions[costly] @ functionals / np.sqrt(gaps[costly])[:, None]
    np.testing.assert_allclose(points[costly], values, atol=1e-9)
    sizes = np.abs(actions[free]) @ np.abs(functionals)
    assert (np.abs(actions[free] @ functionals) <= 1e-12 * sizes).all()
    np.testing.assert_allclose(points.T @ points, np.eye(rank), atol=1e-12)
    assert (costly_arms(points) == np.flatnonzero(costly if rank else free & False)).all()


def test_arms_parallel_to_the_best_vanish() -> None:
    actions = np.array([[0.1, 0.3], [0.1 * 3, 0.3 * 3], [-0.07, -0.21], [0.2, 0.5]])
    theta = np.array([10.0, -2.0])
    gaps = gaps_of(actions, theta)
    best = int(gaps.argmin())
    points, _ = reduced_points(actions, np.arange(4) == best, gaps)
    assert points.shape == (4, 1)
    assert (costly_arms(points) == [3]).all()


@pytest.mark.parametrize("distance", [1e-3, 1e-7, 1e-11])
def test_arms_that_nearly_coincide_with_the_best(distance: float) -> None:
    """Their point is known to nearly all digits, from the difference of the arms."""
    rng = np.random.default_rng(0)
    best = np.array([0.3, 0.7])
    actions = np.vstack([best, best + distance * rng.standard_normal(2), rng.standard_normal(2)])
    gaps = np.array([0.0, distance, 1.0])
    points, _ = reduced_points(actions, np.arange(3) == 0, gaps)

    def across(x: Array) -> Fraction:
        a, b, c, e = (Fraction(float(v)) for v in (*best, *x))
        return a * e - b * c

    ratio = float(across(actions[1]) / across(actions[2])) / np.sqrt(distance)
    assert points[1, 0] / points[2, 0] == pytest.approx(ratio, rel=1e-14 / distance**0.25)
