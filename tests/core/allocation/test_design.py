"""Designs against the certificate of Kiefer and Wolfowitz and a slow algorithm."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sightline.core.allocation.design import (
    Design,
    design,
    largest_reward_leverage,
    optimal_design,
)
from tests import naive_design
from tests.core.helpers import flat_arms
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)
TIGHT = 1e-9


def designed(actions: Array, scales: Array | None = None, tolerance: float = TIGHT) -> Design:
    work = design(*actions.shape)
    scales = np.ones(len(actions)) if scales is None else scales
    work.leverages[:] = work.weights[:] = np.nan  # whatever an earlier call has left
    worst = optimal_design(work, actions, scales, tolerance)
    assert worst == work.leverages.max()
    return work


def assert_certified(actions: Array, work: Design, tolerance: float = TIGHT) -> None:
    """Check that the weights are a distribution whose largest leverage is the rank."""
    rank = np.linalg.matrix_rank(actions)
    assert work.spanner.rank[0] == rank
    assert (work.weights >= 0.0).all()
    assert work.weights.sum() == pytest.approx(1.0, abs=1e-13)
    truth = naive_design.leverages(actions, work.weights)
    np.testing.assert_allclose(work.leverages, truth, rtol=0.0, atol=1e-9 * rank)
    assert truth.max() <= rank * (1.0 + tolerance + 1e-9)


@settings(max_examples=60, deadline=None)
@given(
    seed=seeds,
    k=st.integers(1, 12),
    d=st.integers(1, 5),
    rank=st.integers(1, 5),
    tolerance=st.sampled_from([0.3, 1e-2, TIGHT]),
)
def test_the_largest_leverage_is_the_rank(
    seed: int, k: int, d: int, rank: int, tolerance: float
) -> None:
    actions = flat_arms(seed, k, d, min(rank, d))
    assert_certified(actions, designed(actions, tolerance=tolerance), tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "d"), [(50, 5), (200, 10), (400, 20)])
def test_large_problems(k: int, d: int) -> None:
    actions = np.random.default_rng(k).standard_normal((k, d))
    assert_certified(actions, designed(actions))


@pytest.mark.parametrize("seed", range(5))
def test_same_design_as_a_slow_algorithm(seed: int) -> None:
    """V(pi) is unique where it is optimal: so are leverages and log det, to first order."""
    actions = np.random.default_rng(seed).standard_normal((7, 3))
    truth = naive_design.multiplicative_design(actions, steps=3000)
    work = designed(actions)
    theirs = naive_design.leverages(actions, truth)
    assert theirs.max() <= 3.0 * (1 + 1e-3), "the slow algorithm has not arrived"
    np.testing.assert_allclose(work.leverages, theirs, atol=3e-2)
    ours = naive_design.log_det(actions, work.weights)
    # log det of any design is below the optimum, by at most r log(largest leverage / r)
    gap = 3.0 * np.log(theirs.max() / 3.0)
    assert 0.0 <= ours - naive_design.log_det(actions, truth) + 1e-12 <= gap + 1e-9


def test_known_designs() -> None:
    basis = np.eye(3)
    np.testing.assert_allclose(designed(basis).weights, 1 / 3, rtol=1e-12)
    inner = np.vstack([basis, 0.5 * np.ones((1, 3))])  # inside the ellipsoid of the others
    np.testing.assert_allclose(designed(inner).weights, [1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-12)
    line = np.array([[1.0], [-3.0], [2.0]])
    np.testing.assert_array_equal(designed(line).weights, [0.0, 1.0, 0.0])


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=st.integers(3, 10), size=st.sampled_from([1e-60, 1e-9, 1.0, 1e9, 1e60]))
def test_linear_maps_change_nothing(seed: int, k: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    actions, matrix = rng.standard_normal((k, 3)), rng.standard_normal((3, 3))
    assume(np.linalg.cond(matrix) < 1e3)
    one, other = designed(actions), designed(size * actions @ matrix)
    # within the tolerance, V(pi) is optimal to first order: leverages agree to its square root
    np.testing.assert_allclose(one.leverages, other.leverages, atol=1e-3)


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=st.integers(2, 8), zeros=st.integers(0, 3))
def test_duplicates_opposites_and_zero_arms_change_nothing(seed: int, k: int, zeros: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, 2))
    copies = rng.integers(k, size=4)
    signs = rng.choice([-1.0, 1.0], size=(4, 1))
    more = np.vstack([actions, signs * actions[copies], np.zeros((zeros, 2))])
    order = rng.permutation(len(more))
    work = designed(more[order])
    assert_certified(more[order], work)
    back = np.argsort(order)
    np.testing.assert_allclose(work.leverages[back][:k], designed(actions).leverages, atol=1e-3)
    np.testing.assert_allclose(work.leverages[back][k : k + 4], work.leverages[back][copies])
    assert (work.leverages[back][k + 4 :] == 0.0).all()
    assert (work.weights[back][k + 4 :] == 0.0).all()


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=st.integers(2, 9))
def test_a_mask_leaves_arms_out(seed: int, k: int) -> None:
    rng = np.random.default_rng(seed)
    actions = rng.standard_normal((k, 3))
    mask = rng.integers(2, size=k).astype(np.float64)
    assume(mask.any())
    masked, alone = designed(actions, mask), designed(actions[mask > 0])
    np.testing.assert_array_equal(masked.weights[mask > 0], alone.weights)
    assert (masked.weights[mask == 0] == 0.0).all()
    assert masked.spanner.rank[0] == alone.spanner.rank[0]


@settings(max_examples=40, deadline=None)
@given(seed=seeds, k=st.integers(3, 9), spread=st.sampled_from([1.0, 5.0, 30.0]))
def test_scales_are_those_of_the_arms(seed: int, k: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    actions, scales = rng.standard_normal((k, 3)), np.exp(-spread * rng.random(k))
    work = designed(actions, scales)
    assert work.spanner.rank[0] == 3  # an arm of weight e^-30 still counts where it is alone
    truth = naive_design.leverages(scales[:, None] * actions, work.weights)
    if spread < 10.0:  # else the truth has lost its digits
        np.testing.assert_allclose(work.leverages, truth, rtol=1e-6, atol=1e-9)
    assert work.leverages.max() <= 3.0 * (1.0 + TIGHT)
    # each arm with weight is at the boundary, which only the optimal design achieves
    np.testing.assert_allclose(work.leverages[work.weights > 1e-4], 3.0, rtol=1e-4)


def test_only_zero_arms() -> None:
    work = designed(np.zeros((3, 2)))
    assert work.spanner.rank[0] == 0
    assert (work.weights == 0.0).all()
    assert designed(np.eye(2), np.zeros(2)).spanner.rank[0] == 0


@pytest.mark.parametrize("unit", [1e-300, 1e-70, 1.0, 1e70])
def test_features_of_any_size(unit: float) -> None:
    actions = np.array([[1.0, unit], [1.0, -2.0 * unit], [0.5, 0.0]])
    plain = designed(np.array([[1.0, 1.0], [1.0, -2.0], [0.5, 0.0]]))
    np.testing.assert_allclose(designed(actions).weights, plain.weights, atol=1e-12)


def test_arms_that_nearly_coincide() -> None:
    """Their difference is a direction of its own, until it is rounding."""
    apart = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-9]])
    work = designed(apart)
    assert work.spanner.rank[0] == 2
    np.testing.assert_allclose(work.weights, 0.5, rtol=1e-6)
    assert designed(np.array([[0.1, 0.3], [0.1 * 3, 0.3 * 3]])).spanner.rank[0] == 1


def test_arrays_are_reused() -> None:
    actions = np.random.default_rng(0).standard_normal((6, 3))
    work = design(6, 3)
    optimal_design(work, actions, np.array([1.0, 1.0, 0.0, 0.0, 0.0, 0.0]), TIGHT)
    optimal_design(work, actions, np.ones(6), TIGHT)
    np.testing.assert_array_equal(work.weights, designed(actions).weights)
    np.testing.assert_array_equal(work.inverse, designed(actions).inverse)


@settings(max_examples=30, deadline=None)
@given(seed=seeds, k=st.integers(3, 9))
def test_leverage_of_what_arms_pay(seed: int, k: int) -> None:
    """Where the design is one of observations rho_x x, rewards x may be longer than these."""
    rng = np.random.default_rng(seed)
    actions, rho = rng.standard_normal((k, 3)), np.exp(rng.uniform(-1.0, 1.0, k))
    mask = np.arange(k) < 3 + rng.integers(k - 2)
    work = designed(actions, rho * mask)
    V = (actions.T * (work.weights * rho**2)) @ actions
    truth = max(float(x @ np.linalg.solve(V, x)) for x in actions[mask])
    found = largest_reward_leverage(work, rho * mask, rho)
    assert found == pytest.approx(truth, rel=1e-6)
