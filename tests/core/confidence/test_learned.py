"""Coefficients without a noise level or a bound on theta, against densities and search."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.clock import FAR, clock_at
from sightline.core.confidence import (
    ConfidenceRule,
    adapt,
    global_beta,
    local_beta,
    next_exploration,
    settled_until,
)
from sightline.core.confidence_rules import FixedBeta, LogDet, LogLog, ridge, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import least_squares, observe
from sightline.core.model import Model, bandit_model, stream_model
from tests import naive, naive_learned
from tests.core.helpers import random_data
from tests.naive import Array

RULES = {
    "noise": LogDet(norm_bound=0.7),
    "norm": LogDet(norm_bound=None),
    "both": LogDet(norm_bound=None, factor=0.8, delta="1/(s log s)"),
    "fixed": LogDet(norm_bound=None, factor=0.8, delta=0.05),
}
KNOWS_NOISE = {"noise": False, "norm": True, "both": False, "fixed": False}
seeds = st.integers(0, 2**32 - 1)
kinds = st.sampled_from(list(RULES))


class Case:
    """An estimate fed with random data, and the confidence that follows it."""

    def __init__(self, seed: int, kind: str, n: int | None = None) -> None:
        rng = np.random.default_rng(seed)
        k, d = int(rng.integers(3, 8)), int(rng.integers(1, 5))
        self.n = int(rng.integers(1, 40)) if n is None else n
        self.sigma, self.regulariser = float(rng.uniform(0.1, 3.0)), float(rng.uniform(0.01, 2.0))
        actions = rng.standard_normal((max(k, d), d))
        model = bandit_model(actions, self.sigma)
        if not KNOWS_NOISE[kind]:
            self.guess = self.sigma * float(rng.choice([0.1, 1.0, 10.0]))
            model = model.without_noise_level(self.guess)
        arms, self.ys = random_data(rng, actions, self.n, self.sigma)
        self.estimate: LeastSquares = least_squares(model, self.regulariser, reduce=False)
        rule = RULES[kind]
        build = rule.build if KNOWS_NOISE[kind] else rule.build_without_noise
        self.confidence: Any = build(d, model.noise_std, self.regulariser)
        adapt(self.confidence, self.estimate)
        for arm, y in zip(arms, self.ys, strict=True):
            observe(self.estimate, int(arm), float(y))
            adapt(self.confidence, self.estimate)
        self.xs = actions[arms]
        self.V = naive.covariance(self.xs, self.regulariser)
        self.theta = naive.ridge(self.xs, self.ys, self.regulariser)
        self.log_det = float(self.estimate.learned.log_det[0])

    def residual(self, nu: Array) -> float:
        return float(((self.ys - self.xs @ nu) ** 2).sum())


@settings(deadline=None, max_examples=60)
@given(seeds, st.floats(0.7, 20.0))
def test_the_set_without_noise_level_ends_where_the_martingale_does(seed: int, u: float) -> None:
    """At its border the ratio of densities is 1/delta = t log t, for the prior that is used."""
    case = Case(seed, "noise")
    beta = global_beta(case.confidence, case.log_det, u)
    excess = beta - case.regulariser * 0.7**2
    shape, sigma = 0.05, 0.01 * case.guess
    least = case.residual(case.theta) + case.regulariser * case.theta @ case.theta
    # a parameter whose residual sum of squares is RSS + A, as far out along some direction
    direction = np.random.default_rng(seed).standard_normal(len(case.theta))
    square = float(((case.xs @ direction) ** 2).sum())
    linear = float((case.ys - case.xs @ case.theta) @ (case.xs @ direction))
    missing = least + excess - case.residual(case.theta)
    step = (linear + math.sqrt(linear**2 + square * missing)) / square
    nu = case.theta + step * direction
    ratio = naive_learned.log_ratio(
        case.xs, case.ys, nu, case.regulariser, shape, shape * sigma * sigma
    )
    assert ratio == pytest.approx(u + math.log(u), rel=1e-6, abs=1e-6)


@settings(deadline=None, max_examples=60)
@given(seeds, st.floats(0.7, 20.0))
def test_the_set_without_a_bound_on_theta_holds_all_that_is_not_refuted(
    seed: int, u: float
) -> None:
    case = Case(seed, "norm")
    excess = case.sigma**2 * (2.0 * (u + math.log(u)) + case.log_det)
    truth = naive_learned.farthest(case.V, case.theta, case.regulariser, excess)
    beta = global_beta(case.confidence, case.log_det, u)
    assert beta >= truth * (1.0 - 1e-9)
    share = case.regulariser / np.linalg.eigvalsh(case.V).min()
    bound = case.confidence.norm.share[0]
    assert share * (1.0 - 1e-9) <= bound <= share * len(case.theta) ** 0.5 * (1.0 + 1e-9)
    if bound > 0.25:
        assert bound <= share * len(case.theta) ** 0.25 * (1.0 + 1e-9)
    if len(case.theta) == 1 and truth < math.inf:  # nothing is lost where there is one direction
        assert beta == pytest.approx(truth, rel=1e-6)


@pytest.mark.parametrize("kind", RULES)
def test_numbers_follow_the_estimate_and_stay_numbers(kind: str) -> None:
    case = Case(3, kind, n=0)
    assert local_beta(case.confidence, 0.0, 1) > 0.0
    assert math.isfinite(local_beta(case.confidence, 0.0, 1))
    first = global_beta(case.confidence, 0.0, math.log(2.0))
    assert first > 0.0
    assert (first == math.inf) == (RULES[kind].norm_bound is None)
    assert settled_until(case.confidence, 0.0, 0.0) == -math.inf
    assert settled_until(case.confidence, 0.0, math.inf) == math.inf
    assert math.isfinite(local_beta(Case(3, kind, n=1).confidence, 0.1, 2))


def test_few_outcomes_and_a_distant_round_overflow_nothing() -> None:
    confidence = Case(3, "noise", n=1).confidence
    beta = global_beta(confidence, 0.1, 2300.0)
    assert 1e100 < beta < math.inf
    assert settled_until(confidence, 0.1, 1e90) < 2300.0


@settings(deadline=None, max_examples=80)
@given(kinds, seeds, st.floats(0.7, 40.0))
def test_settled_until_is_where_the_coefficient_reaches_the_evidence(
    kind: str, seed: int, u: float
) -> None:
    case = Case(seed, kind)
    evidence = global_beta(case.confidence, case.log_det, u)
    if evidence > 1e6 * case.sigma**2:  # the differences that are left have few digits there
        return
    if kind == "fixed":
        assert global_beta(case.confidence, case.log_det, 0.0) == evidence
        u = math.inf
    # as many digits as the coefficient has beside the residuals
    assert settled_until(case.confidence, case.log_det, evidence) == pytest.approx(u, rel=1e-6)


@settings(deadline=None, max_examples=80)
@given(kinds, seeds, st.integers(1, FAR - 1), st.floats(-2, 39), st.integers(-2, 2))
def test_next_exploration_to_the_last_bit(
    kind: str, seed: int, start: int, log_target: float, bits: int
) -> None:
    case = Case(seed, kind)
    confidence, log_det = case.confidence, case.log_det
    evidence = global_beta(confidence, log_det, log_target)
    if evidence == math.inf:
        return
    for _ in range(abs(bits)):
        evidence = math.nextafter(evidence, math.copysign(math.inf, bits))
    wake = next_exploration(confidence, log_det, evidence, clock_at(start))
    if wake.t < FAR:
        assert evidence < global_beta(confidence, log_det, math.log(wake.t))
        if wake.t > start:
            assert evidence >= global_beta(confidence, log_det, math.log(wake.t - 1))


def test_many_outcomes_make_the_noise_known() -> None:
    """The Student form tends to the one with the noise level that the residuals say."""
    rng = np.random.default_rng(0)
    model = bandit_model(np.eye(2), 0.3).without_noise_level(1.0)
    estimate = least_squares(model, 1.0)
    for i in range(20_000):
        observe(estimate, i % 2, 0.3 * rng.standard_normal())
    confidence = LogDet(norm_bound=0.0).build_without_noise(2, 1.0, 1.0)
    adapt(confidence, estimate)
    known = LogDet(norm_bound=0.0).build(2, 0.3, 1.0)
    log_det = float(estimate.learned.log_det[0])
    u = 200.0
    ratio = global_beta(confidence, log_det, u) / global_beta(known, log_det, u)
    # log n more, about what the prior costs, and the error of the noise level
    extra = (math.log(20_000) + 8.0) / (2.0 * (u + math.log(u)) + log_det)
    assert 1.0 - 0.03 < ratio < 1.0 + extra + 0.03


@pytest.mark.parametrize("rule", [LogLog(), LogLog(factor=2.0)])
def test_rules_that_need_the_noise_level_say_so(rule: ConfidenceRule) -> None:
    with pytest.raises(ValueError, match="needs to know the noise level"):
        rule.build_without_noise(2, 1.0, 1.0)
    assert FixedBeta(2.0).build_without_noise(2, 1.0, 1.0).value == 2.0


def test_unknown_is_how_files_say_none() -> None:
    assert LogDet(norm_bound="unknown") == LogDet(norm_bound=None)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="norm_bound must be a number"):
        LogDet(norm_bound="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "rule", "expected"),
    [
        (bandit_model(np.eye(2), 0.5), LogDet(norm_bound=2.0), 0.0625),
        (bandit_model(3.0 * np.eye(2), 0.5), LogDet(norm_bound=None), 0.09),
        (bandit_model(np.eye(2)).without_noise_level(7.0), LogDet(), 0.01),
        (stream_model(3, 2).without_noise_level(7.0), LogDet(), 0.01),
    ],
)
def test_what_matched_is(model: Model, rule: ConfidenceRule, expected: float) -> None:
    valid_regulariser("matched", rule)
    assert ridge("matched", rule, model) == pytest.approx(expected, rel=1e-12)
