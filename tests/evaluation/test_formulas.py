"""Estimators and intervals against naive implementations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

import sightline as sl
from sightline.evaluation.estimators import SHIFTS, TargetPolicy, adaptive_weights, scores
from sightline.evaluation.intervals import (
    Legs,
    asymptotic,
    gamma_exponential,
    log_wealth,
    normal,
    ratio_limits,
)
from sightline.evaluation.log import DecisionLog, read_log
from tests import naive_evaluation as naive
from tests.evaluation.helpers import COLUMNS, NAMES, clicks

FRAME = clicks(300, seed=1)
MIXTURE = np.array([0.2, 0.3, 0.5])
Array = NDArray[np.float64]


def log_of(frame: object = FRAME) -> DecisionLog:
    return read_log(frame, COLUMNS)


def fits(log: DecisionLog) -> list[list[float]]:
    actions, rewards = log.actions.tolist(), log.rewards.tolist()
    return [naive.fit(actions, rewards, t, log.k) for t in range(len(log))]


@pytest.mark.parametrize("method", ["ips", "snips", "dr", "switch", "shrinkage"])
def test_values_are_those_of_other_packages(method: str) -> None:
    log = log_of()
    pi = np.broadcast_to(MIXTURE, (len(log), 3))
    cutoff = 3.0
    truth = naive.estimate(
        method,
        log.actions.tolist(),
        log.rewards.tolist(),
        log.probability.tolist(),
        pi,
        fits(log),
        cutoff,
    )
    found = sl.evaluate(FRAME, MIXTURE, method=method, cutoff=cutoff, columns=COLUMNS)
    assert found.value == pytest.approx(truth, rel=1e-12)
    by_rows = sl.evaluate(FRAME, pi, method=method, cutoff=cutoff, columns=COLUMNS)
    assert (by_rows.value, by_rows.lower) == (found.value, found.lower)


def test_the_interval_of_ips_is_that_of_vw_estimators() -> None:
    log = log_of()
    w = MIXTURE[log.actions] / log.probability
    low, high = naive.vw_interval(w.tolist(), log.rewards.tolist(), 0.1)
    found = sl.evaluate(FRAME, MIXTURE, method="ips", delta=0.1, columns=COLUMNS)
    assert [found.lower, found.upper] == pytest.approx([low, high])


@pytest.mark.parametrize(("s", "v"), [(0.0, 0.0), (3.0, 0.5), (30.0, 40.0), (12.0, 900.0)])
def test_log_wealth_is_the_integral_over_all_stakes(s: float, v: float) -> None:
    xs = [0.5] * 4 + [0.5 + math.sqrt(v)] if v else [0.5] * 4
    # predictions of these values are not those of the test: the integral is computed directly
    grid = np.linspace(1e-9, 1.0, 400_001)
    values = np.exp((1.0 - grid) * s + (np.log(grid) + 1.0 - grid) * v - grid)
    integral = np.log(np.trapezoid(values, grid) / -math.expm1(-1.0))
    assert len(xs) >= 4
    assert log_wealth(np.array(s), np.array(v)) == pytest.approx(integral, abs=1e-5)


@pytest.mark.parametrize("target", [1, 2])
def test_doubly_robust_scores_are_bounded_below_and_unbiased(target: int) -> None:
    """The mean over what may be drawn, rather than over what was."""
    log = log_of()
    pi = np.eye(3)[target]
    found = scores(log, log.rewards, TargetPolicy("one", shared=pi), "dr")
    assert found.legs is not None
    fit = fits(log)
    for t in (0, 1, 50, 299):
        p = log.recorded.dense(slice(t, t + 1), 3)[0]
        for j, k in enumerate(SHIFTS):
            for legs, is_high in ((found.legs.low, False), (found.legs.high, True)):
                fitted = [1.0 - q if is_high else q for q in fit[t]]
                cut = [min(q, k * p[a] / pi[a]) if pi[a] else 0.0 for a, q in enumerate(fitted)]

                def score(a: int, r: float) -> float:
                    y = 1.0 - r if is_high else r  # noqa: B023
                    w = pi[a] / p[a]  # noqa: B023
                    return float((w * (y - cut[a]) + pi @ cut + k) / (1.0 + k))  # noqa: B023

                assert legs[j, t] == pytest.approx(score(int(log.actions[t]), log.rewards[t]))
                assert min(score(a, float(is_high)) for a in range(3)) >= -1e-12
                mean = sum(p[a] * score(a, 0.3 + 0.1 * a) for a in range(3))
                value = 0.3 + 0.1 * target
                value = 1.0 - value if is_high else value
                assert mean == pytest.approx((value + k) / (1.0 + k))


def test_fits_use_rewards_that_were_known_before() -> None:
    """Rewards come in another order than decisions, and some never."""
    frame = FRAME.head(60).copy()
    rng = np.random.default_rng(0)
    frame["sequence"] = np.arange(60) * 3.0
    frame["closed_sequence"] = frame["sequence"] + rng.integers(1, 90, 60)
    frame.loc[7, "reward"] = np.nan
    log = read_log(frame, COLUMNS)
    told = log.take(np.flatnonzero(~np.isnan(log.rewards)))
    kept = frame.drop(index=7)
    actions = [NAMES.index(name) for name in kept["action"]]
    truth = 0.0
    for row, action in zip(kept.itertuples(), actions, strict=True):
        before = kept[kept["closed_sequence"] < row.sequence]
        codes = [NAMES.index(name) for name in before["action"]]
        q = naive.fit(codes, before["reward"].tolist(), len(before), 3)
        w = (action == 1) / row.probability
        truth += (q[1] + w * (row.reward - q[action])) / 59
    found = scores(told, told.rewards, TargetPolicy("B", shared=np.eye(3)[1]), "dr")
    assert found.phi.mean() == pytest.approx(truth)
    assert sl.evaluate(frame, "B", columns=COLUMNS).value == pytest.approx(truth)


def test_the_best_so_far_is_chosen_from_the_past() -> None:
    log = log_of()
    leaders = [int(np.argmax(q)) for q in fits(log)]
    chosen = np.eye(3)[leaders]
    found = sl.evaluate(FRAME, "best so far", columns=COLUMNS)
    assert found.value == sl.evaluate(FRAME, chosen, columns=COLUMNS).value


def test_weights_of_adaptive_estimators() -> None:
    log = log_of()
    p = log.recorded.dense(slice(0, len(log)), 3)
    found = {rule: adaptive_weights(1.0 / p[:, 1], rule, 0.4) for rule in ("stable", "two-point")}
    truth = np.sqrt(p[:, 1])
    assert found["stable"] == pytest.approx(truth)
    shares = naive.two_point_shares(p[:, 1].tolist(), 0.4)
    assert sum(shares) == pytest.approx(1.0)
    assert found["two-point"] == pytest.approx(np.sqrt(p[:, 1] * shares))
    # without decay both rules agree, up to a factor
    plain = adaptive_weights(1.0 / p[:, 1], "two-point", 0.0)
    assert plain * math.sqrt(len(log)) == pytest.approx(found["stable"])


def test_adaptively_weighted_values_and_errors() -> None:
    log = log_of()
    p = log.recorded.dense(slice(0, len(log)), 3)
    score = scores(log, log.rewards, TargetPolicy("B", shared=np.eye(3)[1]), "aipw").phi
    h = np.sqrt(p[:, 1])
    value = h @ score / h.sum()
    error = math.sqrt(h**2 @ (score - value) ** 2) / h.sum()
    found = sl.evaluate(FRAME, "B", method="aipw", interval="normal", columns=COLUMNS)
    assert found.value == pytest.approx(value)
    assert found.upper - found.value == pytest.approx(1.959964 * error)
    # of a contrast, the weights are those of the difference
    both = sl.evaluate(FRAME, "B", "A", method="aipw", interval="normal", columns=COLUMNS)
    h = (1.0 / p[:, 0] + 1.0 / p[:, 1]) ** -0.5
    other = scores(log, log.rewards, TargetPolicy("A", shared=np.eye(3)[0]), "aipw").phi
    assert both.difference is not None
    assert both.difference.value == pytest.approx(h @ (score - other) / h.sum())


def test_the_asymptotic_sequence_is_the_normal_mixture() -> None:
    rng = np.random.default_rng(0)
    scores_, delta = rng.normal(0.3, 2.0, 400), 0.05
    looks = np.array([60, 400])
    test = asymptotic(scores_, None, np.ones(400), np.ones(400, bool), looks, delta)
    low, high = test.limits(0.0, (-math.inf, math.inf))
    for look, one, other in zip(looks, low, high, strict=True):
        x = scores_[:look]
        v = ((x - x.mean()) ** 2).sum()
        first = scores_[:50]
        best = 20.0 * ((first - first.mean()) ** 2).sum()
        # rho^2 for which the radius is smallest where the variance is `best`
        radii = [
            (
                math.sqrt(2 * (best * r + 1) / r * math.log(math.sqrt(best * r + 1) / delta)),
                r,
            )
            for r in np.geomspace(1e-3, 1e3, 6001) / best
        ]
        rho2 = min(radii)[1]
        radius = math.sqrt(2 * (v * rho2 + 1) / rho2 * math.log(math.sqrt(v * rho2 + 1) / delta))
        assert (one, other) == (
            pytest.approx(x.mean() - radius / look, abs=1e-3),
            pytest.approx(x.mean() + radius / look, abs=1e-3),
        )


def test_intervals_of_a_ratio_hold_the_ratios_that_are_not_rejected() -> None:
    """The normal interval is that of Fieller."""
    rng = np.random.default_rng(0)
    one, two = rng.normal(2.0, 1.0, 500), rng.normal(1.0, 1.0, 500)
    test = normal(one, two, np.ones(500), np.array([500]), 0.05)
    ends = ratio_limits(test, 0.0)
    for c in ends:
        apart = one - c * two
        assert abs(apart.mean()) / (apart.std() / math.sqrt(500)) == pytest.approx(1.959964, 1e-5)
    assert ends[0] < one.mean() / two.mean() < ends[1]


def test_a_difference_by_wealth_is_one_value_of_two_legs() -> None:
    """v - v' is 2 (v + 1 - v') / 2 - 1: the interval is that of the average of both scores."""
    rng = np.random.default_rng(0)
    low, high, low_2, high_2 = rng.exponential(0.5, (4, 1, 200))
    shifts, looks = np.zeros(1), np.array([200])
    test = gamma_exponential(Legs(low, high, shifts), Legs(low_2, high_2, shifts), looks, 0.05)
    found = test.limits(1.0, (-1.0, 1.0))[0][0]

    def predictions(x: Array) -> Array:
        return np.minimum((np.cumsum(x) - x + 0.5) / np.arange(1, 201), 1.0)

    x = 0.5 * (low + high_2)[0]
    squares = ((x - 0.5 * (predictions(low[0]) + predictions(high_2[0]))) ** 2).sum()
    excess = log_wealth(x.sum() - 200 * np.array((1.0 + found) / 2.0), np.array(squares))
    assert excess == pytest.approx(math.log(2.0 / 0.05))


def test_looks_are_prefixes() -> None:
    log = log_of()
    target = scores(log, log.rewards, TargetPolicy("B", shared=np.eye(3)[1]), "dr").legs
    assert target is not None
    looks = np.array([60, 100, 300])
    together = gamma_exponential(target, None, looks, 0.05).limits(0.0, (0.0, 1.0))
    for i, look in enumerate(looks.tolist()):
        part = sl.evaluate(FRAME.head(look), "B", columns=COLUMNS, options=NAMES)
        assert (part.lower, part.upper) == pytest.approx((together[0][i], together[1][i]))
