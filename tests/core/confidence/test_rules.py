"""Confidence coefficients against their formulas."""

import math
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.confidence import global_beta, local_beta, register_confidence, settled_until
from sightline.core.confidence_rules import LogDet
from sightline.jit import interpreted, uncached
from tests import naive
from tests.core.confidence.helpers import build, build_own, dimensions, growing, log_dets, rules


@settings(deadline=None)
@given(rules, st.integers(1, 10**7), st.integers(0, 2**32 - 1), st.integers(1, 4))
def test_local_coefficient(beta: naive.Beta, s: int, seed: int, d: int) -> None:
    xs = np.random.default_rng(seed).standard_normal((10, d))
    V = naive.covariance(xs, beta.regulariser)
    log_det = naive.log_det_ratio(V, beta.regulariser)
    ours = local_beta(build(beta, d), log_det, s)
    assert ours == pytest.approx(beta.local(V, s), rel=1e-12)


@settings(deadline=None)
@given(rules, st.integers(1, 10**300), log_dets, dimensions)
def test_global_coefficient(beta: naive.Beta, t: int, log_det: float, d: int) -> None:
    log_t = math.log(t)
    ours = global_beta(build(beta, d), log_det, log_t)
    assert ours == pytest.approx(beta.at(log_det, d, log_t), rel=1e-12)


def test_the_paper_s_numbers() -> None:
    """The coefficient of the paper at sigma = lambda = S = 1, written out."""
    confidence = LogDet().build(2, 1.0, 1.0)
    assert local_beta(confidence, 0.0, 1) == 1.0
    assert local_beta(confidence, 3.0, 5) == pytest.approx(
        (math.sqrt(2 * math.log(25) + 3) + 1) ** 2, rel=1e-15
    )
    assert global_beta(confidence, 3.0, math.log(7)) == pytest.approx(
        (math.sqrt(2 * math.log(7 * math.log(7)) + 3) + 1) ** 2, rel=1e-15
    )
    assert global_beta(confidence, 3.0, 0.0) == global_beta(confidence, 3.0, math.log(2))


def test_a_fixed_level_is_that_of_all_rounds() -> None:
    """With one observation of one arm, by hand: V = 1 + 4 at sigma = 0.5, S = 2, delta = 0.05."""
    confidence = LogDet(norm_bound=2.0, delta=0.05).build(1, 0.5, 1.0)
    beta = (0.5 * math.sqrt(2 * math.log(20) + math.log(5)) + 2.0) ** 2
    assert local_beta(confidence, math.log(5), 1) == pytest.approx(beta, rel=1e-15)
    for log_t in (0.0, 10.0, 1e5):
        assert global_beta(confidence, math.log(5), log_t) == local_beta(confidence, math.log(5), 9)
    exactly = global_beta(confidence, math.log(5), 0.0)
    assert settled_until(confidence, math.log(5), exactly) == math.inf
    assert settled_until(confidence, math.log(5), math.nextafter(exactly, 0.0)) == -math.inf


@settings(deadline=None)
@given(rules, log_dets, dimensions, st.floats(0.0, 1e5), st.floats(0.0, 1e5))
def test_coefficients_grow(
    beta: naive.Beta, log_det: float, d: int, one: float, other: float
) -> None:
    confidence = build(beta, d)
    early, late = sorted((one, other))
    assert global_beta(confidence, log_det, early) <= global_beta(confidence, log_det, late)
    assert local_beta(confidence, log_det, 1) <= local_beta(confidence, log_det, 2 + int(late))


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(1.2, 1e5))  # below log 3 they are flat
def test_settled_until_inverts_the_coefficient(
    beta: naive.Beta, log_det: float, d: int, log_t: float
) -> None:
    confidence = build(beta, d)
    evidence = beta.at(log_det, d, log_t)
    found = settled_until(confidence, log_det, evidence)
    # beta moves by at least its derivative; where sqrt(lambda) S dwarfs the noise, digits go
    step = 1e-6 * log_t
    slope = (beta.at(log_det, d, log_t + step) - evidence) / step
    assert found == pytest.approx(log_t, rel=1e-13, abs=1e-14 * evidence / slope + 1e-13)
    assert beta.at(log_det, d, found) == pytest.approx(evidence, rel=1e-12)


# --- rules without a closed form ----------------------------------------------------------------


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(0.0, 1e5))
def test_bisection_agrees_with_the_closed_form(
    beta: naive.Beta, log_det: float, d: int, log_t: float
) -> None:
    closed, own = build(beta, d), build_own(beta, d)
    evidence = global_beta(closed, log_det, log_t)
    assert global_beta(own, log_det, log_t) == evidence
    assert local_beta(own, log_det, 7) == local_beta(closed, log_det, 7)
    if log_t < 1.2:  # the coefficient is flat at first: one last bit more is on the slope
        evidence *= 1.0 + 1e-9
    expected = settled_until(closed, log_det, evidence)
    assert settled_until(own, log_det, evidence) == pytest.approx(expected, rel=1e-12, abs=1e-12)


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(0.0, 1e5))
def test_bisection_ends_at_the_last_number_that_is_settled(
    beta: naive.Beta, log_det: float, d: int, log_t: float
) -> None:
    own = build_own(beta, d)
    evidence = global_beta(own, log_det, log_t)
    end = settled_until(own, log_det, evidence)
    assert end >= log_t
    assert global_beta(own, log_det, end) <= evidence
    assert global_beta(own, log_det, math.nextafter(end, math.inf)) > evidence


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(0.0, 0.999))
def test_bisection_of_too_little_and_of_endless_evidence(
    beta: naive.Beta, log_det: float, d: int, share: float
) -> None:
    own = build_own(beta, d)
    too_little = share * global_beta(own, log_det, 0.0)
    assert settled_until(own, log_det, too_little) == -math.inf
    assert settled_until(own, log_det, math.inf) == math.inf


class Bounded(NamedTuple):
    limit: float


@uncached
def bounded(confidence: Bounded, log_det: float, log_t: float) -> float:
    return confidence.limit * log_t / (1.0 + log_t)


register_confidence(Bounded, local=bounded, overall=bounded)


def test_a_coefficient_with_a_limit_is_settled_for_ever() -> None:
    confidence = Bounded(4.0)
    assert settled_until(confidence, 0.0, 4.0) == math.inf
    # 4 u / (1 + u) = 3 at u = 3
    assert settled_until(confidence, 0.0, 3.0) == pytest.approx(3.0, rel=1e-15)


class Plain(NamedTuple):
    slope: float


def plain(confidence: Plain, log_det: float, log_t: float) -> float:
    return confidence.slope * (1.0 + log_t)


register_confidence(Plain, local=plain, overall=plain)


def test_bisection_of_a_rule_in_plain_python() -> None:
    """As the engine calls it, for which such a rule is a reason to interpret everything."""
    found = interpreted(settled_until)(Plain(2.0), 0.0, 10.0)
    assert found == pytest.approx(4.0, rel=1e-15)


@pytest.mark.parametrize("ask", [local_beta, global_beta, settled_until])
def test_a_rule_must_be_registered(ask: Any) -> None:
    with pytest.raises(TypeError, match="no confidence rule is registered for str"):
        ask("log-det", 0.0, 1)
