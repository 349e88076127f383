"""V^-1 and widths after rounds that were not played yet, against matrices."""

import numpy as np
import pytest

from sightline.core.estimate import LeastSquares
from sightline.core.lookahead import add_pulls, begin_now, lookahead_of
from tests.core.helpers import random_fed


def now(estimate: LeastSquares) -> LeastSquares:
    view = lookahead_of(estimate).estimate
    begin_now(view, estimate)
    return view


@pytest.mark.parametrize("seed", range(5))
def test_so_many_more_rounds(seed: int) -> None:
    data = random_fed(seed, k=6, d=3, n=20)
    estimate = data.estimate
    before = estimate.arms.squared_widths.copy()
    view = now(estimate)
    X = estimate.arms.rewards
    V = np.linalg.inv(estimate.learned.gram_inverse)
    for arm, count in ((2, 7.0), (4, 1.0), (2, 0.5)):
        add_pulls(view, arm, count)
        V = V + count * np.outer(X[arm], X[arm])
    inverse = np.linalg.inv(V)
    np.testing.assert_allclose(view.learned.gram_inverse, inverse, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        view.arms.squared_widths, np.einsum("ki,ij,kj->k", X, inverse, X), rtol=1e-9
    )
    np.testing.assert_array_equal(estimate.arms.squared_widths, before)
    assert view.arms.means is estimate.arms.means


@pytest.mark.parametrize("seed", range(5))
def test_infinitely_many_rounds_leave_nothing_unknown(seed: int) -> None:
    data = random_fed(seed, k=5, d=3, n=10)
    estimate = data.estimate
    view = now(estimate)
    add_pulls(view, 1, np.inf)
    x = estimate.arms.rewards[1]
    assert view.arms.squared_widths[1] == pytest.approx(0.0, abs=1e-15)
    np.testing.assert_allclose(view.learned.gram_inverse @ x, 0.0, atol=1e-12)
    many = now(estimate)
    add_pulls(many, 1, 1e9)
    np.testing.assert_allclose(
        view.arms.squared_widths, many.arms.squared_widths, rtol=1e-6, atol=1e-8
    )
    add_pulls(view, 1, np.inf)  # again: it shows nothing that is not known
    assert np.isfinite(view.learned.gram_inverse).all()
