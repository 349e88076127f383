"""Barycentric spanners: what defines them, checked by brute force."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.allocation.design import SPANNER_FACTOR, Spanner, barycentric_spanner, spanner
from tests import naive_design
from tests.core.helpers import flat_arms
from tests.naive import Array

seeds = st.integers(0, 2**32 - 1)


def spanned(actions: Array) -> Spanner:
    work = spanner(*actions.shape)
    barycentric_spanner(work, actions, np.ones(len(actions)), SPANNER_FACTOR)
    return work


@settings(max_examples=60, deadline=None)
@given(seed=seeds, k=st.integers(1, 9), d=st.integers(1, 4), rank=st.integers(1, 4))
def test_spanners(seed: int, k: int, d: int, rank: int) -> None:
    actions = flat_arms(seed, k, d, min(rank, d))
    work = spanned(actions)
    r = int(work.rank[0])
    assert r == np.linalg.matrix_rank(actions)
    members, coordinates = work.members[:r], work.coordinates[:, :r]
    assert len(set(members.tolist())) == r
    assert (np.abs(coordinates) <= SPANNER_FACTOR).all()
    np.testing.assert_allclose(coordinates @ actions[members], actions, atol=1e-9)
    np.testing.assert_array_equal(coordinates[members], np.eye(r))
    # Cramer's rule: exchanging any one member gains at most the factor in volume
    own = naive_design.volume(actions[members])
    for j in range(r):
        for x in range(k):
            other = members.copy()
            other[j] = x
            assert naive_design.volume(actions[other]) <= SPANNER_FACTOR * own + 1e-6


def test_exchanges_are_made() -> None:
    """Greedy choice is not enough: some arms have coordinates beyond the factor after it."""
    rng = np.random.default_rng(1)
    greedy_fails = 0
    for _ in range(200):
        actions = rng.standard_normal((30, 6))
        loose = spanner(30, 6)
        barycentric_spanner(loose, actions, np.ones(30), 1e9)  # no exchange gains as much
        greedy_fails += bool(np.abs(loose.coordinates).max() > SPANNER_FACTOR)
        assert np.abs(spanned(actions).coordinates).max() <= SPANNER_FACTOR
    assert greedy_fails > 0


def test_a_spanner_is_within_a_known_factor_of_the_largest_volume() -> None:
    """Hadamard: coordinates within [-C, C] bound any determinant by (C sqrt r)^r."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        actions = rng.standard_normal((8, 3))
        own = naive_design.volume(actions[spanned(actions).members])
        bound = (SPANNER_FACTOR * np.sqrt(3.0)) ** 3
        assert naive_design.largest_volume(actions) <= bound * own


def test_twins_have_the_same_coordinates_to_the_last_bit() -> None:
    rng = np.random.default_rng(3)
    actions = rng.standard_normal((7, 4))
    twice = np.vstack([actions, actions])
    c = spanned(twice).coordinates
    np.testing.assert_array_equal(c[:7], c[7:])
