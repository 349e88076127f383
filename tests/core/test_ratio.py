"""The IDS distribution against search on grids, and the lemmas that characterise it."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.ratio import SAMPLING, Mixture, least_ratio, pair_probability
from tests import naive
from tests.naive import Array

positive = st.floats(1e-3, 1e3)
PAIR, EXACT = SAMPLING["pair"], SAMPLING["exact"]

seeds = st.integers(0, 2**32 - 1)
arms = st.integers(2, 8)


def random_round(seed: int, k: int) -> tuple[Array, Array, int]:
    """Return gaps, gains and x-hat over several orders of magnitude."""
    rng = np.random.default_rng(seed)
    gaps = np.exp(rng.uniform(-4.0, 3.0, k))
    gains = np.exp(rng.uniform(-6.0, 3.0, k)) * (rng.random(k) < 0.8)
    if not gains.any():
        gains[0] = 1.0
    return gaps, gains, int(np.argmin(gaps))


def mean(values: Array, mixture: Mixture) -> float:
    p = mixture.probability
    return float((1.0 - p) * values[mixture.first] + p * values[mixture.second])


@settings(deadline=None)
@given(positive, positive, st.floats(0.0, 1e3), st.floats(0.0, 1e3))
def test_probability_of_a_pair(gap: float, behind: float, gain_1: float, gain_2: float) -> None:
    gaps, gains = (gap, gap + behind), (gain_1, gain_2)
    ours = pair_probability(gaps[0], gain_1, gaps[1], gain_2)
    assert ours == pytest.approx(naive.best_probability(gaps, gains), rel=1e-14)
    # no grid point may be better; and the refined grid comes within its last step of the best
    grid = naive.grid_probability(gaps, gains)
    assert naive.ratio(ours, gaps, gains) <= naive.ratio(grid, gaps, gains) * (1 + 1e-12)
    if naive.ratio(ours, gaps, gains) < math.inf and max(gain_1, gain_2) > 1e-6:
        assert naive.ratio(grid, gaps, gains) <= naive.ratio(ours, gaps, gains) * (1 + 1e-4)


@pytest.mark.parametrize(
    ("gap_1", "gain_1", "gap_2", "gain_2", "p"),
    [
        (1.0, 1.0, 2.0, 1.0, 0.0),  # nothing to learn from the second
        (1.0, 1.0, 1.0, 2.0, 1.0),  # as good and more informative
        (1.0, 1.0, 1.0, 1.0, 0.0),
        (1.0, 0.0, 2.0, 5.0, 1.0),  # 1/(2-1) - 0
        (1.0, 0.0, 5.0, 5.0, 0.25),
        (1.0, 1.0, 3.0, 17.0, 0.375),  # 1/2 - 2/16
        (0.0, 0.0, 1.0, 1.0, 0.0),  # no regret at all
        (1.0, 0.0, 2.0, 0.0, 0.0),  # no information at all
    ],
)
def test_probability_by_hand(
    gap_1: float, gain_1: float, gap_2: float, gain_2: float, p: float
) -> None:
    assert pair_probability(gap_1, gain_1, gap_2, gain_2) == p


@settings(deadline=None)
@given(seeds, arms)
def test_pairs_with_the_best(seed: int, k: int) -> None:
    gaps, gains, best = random_round(seed, k)
    ours = least_ratio(PAIR, gaps, gains, best)
    truth = naive.ids(gaps, gains, naive.pairs_with(best, k))
    assert ours.ratio == pytest.approx(truth.ratio, rel=1e-12)
    assert (ours.first, ours.second) == truth[:2]
    assert ours.probability == pytest.approx(truth.p, rel=1e-12)
    assert ours.first == best


@settings(deadline=None)
@given(seeds, arms)
def test_all_pairs(seed: int, k: int) -> None:
    gaps, gains, best = random_round(seed, k)
    ours = least_ratio(EXACT, gaps, gains, best)
    truth = naive.ids(gaps, gains, naive.all_pairs(k))
    assert ours.ratio == pytest.approx(truth.ratio, rel=1e-12)
    assert ours.ratio == pytest.approx(mean(gaps, ours) ** 2 / mean(gains, ours), rel=1e-12)
    assert ours.ratio <= least_ratio(PAIR, gaps, gains, best).ratio * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_all_pairs_on_a_grid(seed: int) -> None:
    gaps, gains, best = random_round(seed, 4)
    ours = least_ratio(EXACT, gaps, gains, best)
    truth = naive.ids(gaps, gains, naive.all_pairs(4), grid=True)
    assert ours.ratio <= truth.ratio * (1 + 1e-12)
    assert ours.ratio == pytest.approx(truth.ratio, rel=1e-6)


@pytest.mark.parametrize("seed", range(5))
def test_three_arms_are_never_better_than_two(seed: int) -> None:
    """The lemma that a minimiser has two arms, on a grid over the whole simplex."""
    gaps, gains, best = random_round(seed, 3)
    weights = np.array(
        [(i, j, 100 - i - j) for i in range(101) for j in range(101 - i)], dtype=np.float64
    )
    weights /= 100.0
    information = weights @ gains
    informative = information > 0.0
    ratios = (weights @ gaps)[informative] ** 2 / information[informative]
    assert least_ratio(EXACT, gaps, gains, best).ratio <= ratios.min() * (1 + 1e-12)


@settings(deadline=None)
@given(seeds, arms)
def test_support_of_the_minimiser(seed: int, k: int) -> None:
    """g = gap - Psi / (2 gap(mu)) I is least on the support, where it is gap(mu) / 2."""
    gaps, gains, best = random_round(seed, k)
    mixture = least_ratio(EXACT, gaps, gains, best)
    gap = mean(gaps, mixture)
    g = gaps - mixture.ratio / (2.0 * gap) * gains
    scale = gaps.max() + np.abs(g).max()
    p = mixture.probability
    support = {mixture.first: 1.0 - p, mixture.second: p}
    for x, probability in support.items():
        if probability > 0.0 and mixture.first != mixture.second:
            assert g[x] == pytest.approx(0.5 * gap, abs=1e-9 * scale)
    assert g.min() >= 0.5 * gap - 1e-9 * scale


@settings(deadline=None)
@given(seeds, arms)
def test_almost_greedy(seed: int, k: int) -> None:
    """gap(mu) <= 2 delta_s, for the minimiser over all pairs and over those with x-hat."""
    gaps, gains, best = random_round(seed, k)
    for sampling in (PAIR, EXACT):
        mixture = least_ratio(sampling, gaps, gains, best)
        assert mean(gaps, mixture) <= 2.0 * gaps[best] * (1 + 1e-12)


def test_without_any_information_the_best_is_played() -> None:
    gaps, gains = np.array([2.0, 1.0, 3.0]), np.zeros(3)
    for sampling in (PAIR, EXACT):
        mixture = least_ratio(sampling, gaps, gains, 1)
        assert (mixture.first, mixture.probability) == (1, 0.0)
        assert mixture.ratio == math.inf


@settings(deadline=None)
@given(seeds, st.integers(3, 8))
def test_the_limit_of_no_estimation_error(seed: int, k: int) -> None:
    """A zero gap is the limit of small ones: x-hat tells nothing, so the cheapest teacher plays."""
    rng = np.random.default_rng(seed)
    gaps, gains = rng.uniform(0.5, 2.0, k), rng.uniform(0.5, 2.0, k)
    best = int(rng.integers(k))
    gains[best] = 0.0
    for sampling in (PAIR, EXACT):
        gaps[best] = 1e-13
        near = least_ratio(sampling, gaps, gains, best)
        gaps[best] = 0.0
        limit = least_ratio(sampling, gaps, gains, best)
        assert near.first == best
        assert (limit.second, limit.probability) == (near.second, 1.0)


def test_a_zero_gap_that_informs_is_played() -> None:
    gaps, gains = np.array([1.0, 0.0, 2.0]), np.array([9.0, 0.1, 9.0])
    for sampling in (PAIR, EXACT):
        mixture = least_ratio(sampling, gaps, gains, 1)
        assert mixture.second == 1
