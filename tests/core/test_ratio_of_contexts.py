"""The IDS distribution over contexts against exhaustive search, Frank-Wolfe and its conditions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.contextual_ratio import Walk, marginal, of_context, walk_chains
from sightline.core.ratio import Mixture, exact_mixture
from tests import naive_contexts
from tests.naive import Array, Ints

seeds = st.integers(0, 2**32 - 1)


def random_round(seed: int, contexts: int, most: int) -> tuple[Ints, Array, Array, Array]:
    """Return starts, probabilities, gaps and gains over several orders of magnitude."""
    rng = np.random.default_rng(seed)
    starts = np.cumsum([0, *rng.integers(1, most + 1, contexts)])
    law = rng.dirichlet(np.full(contexts, 0.5)) + 1e-6
    law /= law.sum()
    gaps = np.exp(rng.uniform(-4.0, 3.0, starts[-1]))
    gains = np.exp(rng.uniform(-6.0, 3.0, starts[-1])) * (rng.random(starts[-1]) < 0.8)
    gains[rng.integers(starts[-1])] = 1.0
    return starts, law, gaps, gains


def solve(starts: Ints, law: Array, gaps: Array, gains: Array) -> tuple[Walk, list[Mixture]]:
    chain = marginal(len(law))
    walk = walk_chains(chain, starts, law, gaps, gains)
    return Walk(*walk), [of_context(chain, walk, c) for c in range(len(law))]


def blocks(starts: Ints, values: Array) -> list[Array]:
    return np.split(values, starts[1:-1])


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(1, 4), st.integers(1, 4))
def test_the_least_ratio_of_all(seed: int, contexts: int, most: int) -> None:
    starts, law, gaps, gains = random_round(seed, contexts, most)
    walk, mixtures = solve(starts, law, gaps, gains)
    truth = naive_contexts.least_ratio(law, blocks(starts, gaps), blocks(starts, gains))
    assert walk.gap**2 / walk.gain == pytest.approx(truth, rel=1e-12)
    gap = gain = 0.0
    for p, (first, second, q, _) in zip(law, mixtures, strict=True):
        gap += p * ((1 - q) * gaps[first] + q * gaps[second])
        gain += p * ((1 - q) * gains[first] + q * gains[second])
    assert (gap, gain) == pytest.approx((walk.gap, walk.gain), rel=1e-12)
    assert sum(0 < mixture.probability < 1 for mixture in mixtures) <= 1
    for c, mixture in enumerate(mixtures):
        assert starts[c] <= mixture.first < starts[c + 1]
        assert starts[c] <= mixture.second < starts[c + 1]


@settings(deadline=None, max_examples=60)
@given(seeds, st.integers(2, 30), st.integers(1, 12))
def test_one_price_couples_all_contexts(seed: int, contexts: int, most: int) -> None:
    starts, law, gaps, gains = random_round(seed, contexts, most)
    walk, mixtures = solve(starts, law, gaps, gains)
    price = 2.0 * gaps - walk.gap / walk.gain * gains
    for c, mixture in enumerate(mixtures):
        least = price[starts[c] : starts[c + 1]].min()
        scale = np.abs(price[starts[c] : starts[c + 1]]).max()
        assert price[mixture.first] == pytest.approx(least, abs=1e-9 * scale)
        assert price[mixture.second] == pytest.approx(least, abs=1e-9 * scale)


def test_frank_wolfe_comes_near_and_never_below() -> None:
    for seed in range(10):
        starts, law, gaps, gains = random_round(seed, 5, 8)
        walk, _ = solve(starts, law, gaps, gains)
        ratio = walk.gap**2 / walk.gain
        parts = blocks(starts, gaps), blocks(starts, gains)
        coarse, fine = (naive_contexts.frank_wolfe(law, *parts, steps) for steps in (100, 4000))
        assert ratio * (1 - 1e-12) <= fine <= coarse
        assert fine <= ratio * 1.05


@settings(deadline=None)
@given(seeds, st.integers(2, 8))
def test_one_context_is_exact_ids(seed: int, k: int) -> None:
    _, _, gaps, gains = random_round(seed, 1, k)
    walk, _ = solve(np.array([0, len(gaps)]), np.ones(1), gaps, gains)
    truth = exact_mixture(gaps, gains, int(gaps.argmin()))
    assert walk.gap**2 / walk.gain == pytest.approx(truth.ratio, rel=1e-12)


def test_equal_points_and_equal_slopes() -> None:
    # two contexts with the same arms, three of which are on one line
    gaps, gains = np.array([1.0, 2.0, 3.0] * 2), np.array([1.0, 4.0, 7.0] * 2)
    walk, _ = solve(np.array([0, 3, 6]), np.array([0.5, 0.5]), gaps, gains)
    truth = naive_contexts.least_ratio(np.array([0.5, 0.5]), [gaps[:3]] * 2, [gains[:3]] * 2)
    assert walk.gap**2 / walk.gain == pytest.approx(truth, rel=1e-12)


def test_where_nothing_is_lost_the_cheapest_arm_is_played() -> None:
    gaps, gains = np.array([0.0, 1.0, 0.0, 1.0]), np.array([0.0, 1.0, 0.0, 3.0])
    _, mixtures = solve(np.array([0, 2, 4]), np.array([0.5, 0.5]), gaps, gains)
    assert [mixture[:3] for mixture in mixtures] == [(0, 0, 0.0), (2, 3, 1.0)]


def test_no_information_at_all() -> None:
    _, mixtures = solve(
        np.array([0, 2, 4]), np.array([0.5, 0.5]), np.array([1.0, 2.0, 3.0, 1.0]), np.zeros(4)
    )
    assert [mixture[:3] for mixture in mixtures] == [(0, 0, 0.0), (3, 3, 0.0)]
