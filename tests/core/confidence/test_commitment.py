"""Wakes against a look at every round."""

import itertools
import math

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sightline.core.clock import FAR, clock_at, is_before, log_round
from sightline.core.confidence import global_beta, next_exploration, settled_until
from sightline.core.confidence_rules import FixedBeta
from tests import naive
from tests.core.confidence.helpers import build, build_own, dimensions, growing, log_dets, rules

LOG_FAR = math.log(FAR)


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.integers(1, 400), st.integers(1, 400), st.floats(0, 1))
def test_next_exploration_is_the_first_round_found_by_looking(
    beta: naive.Beta, log_det: float, d: int, start: int, target: int, share: float
) -> None:
    # halfway between the coefficients of two rounds, so that rounding cannot matter
    lower, upper = (beta.at(log_det, d, math.log(t)) for t in (target, target + 1))
    evidence = lower + (0.2 + 0.6 * share) * (upper - lower)
    assume(upper - lower > 1e-9 * upper)
    wake = next_exploration(build(beta, d), log_det, evidence, clock_at(start))
    rounds = range(start, 1000)
    assert wake.t == next(t for t in rounds if evidence < beta.at(log_det, d, math.log(t)))


@settings(deadline=None)
@given(rules, log_dets, dimensions, st.integers(1, FAR - 1), st.floats(-2, 39), st.integers(-2, 2))
def test_next_exploration_to_the_last_bit(
    beta: naive.Beta, log_det: float, d: int, start: int, log_target: float, bits: int
) -> None:
    """The comparison of two floats turns at the wake, wherever rounds are counted exactly."""
    confidence = build(beta, d)
    evidence = global_beta(confidence, log_det, log_target)
    for _ in range(abs(bits)):
        evidence = math.nextafter(evidence, math.copysign(math.inf, bits))
    wake = next_exploration(confidence, log_det, evidence, clock_at(start))

    def explores(t: int) -> bool:
        return evidence < global_beta(confidence, log_det, math.log(t))

    if wake.t < FAR:
        assert explores(wake.t)
    last_settled = min(wake.t, FAR) - 1
    if wake.t == FAR and wake.log_t < math.inf:
        last_settled = FAR - 100  # a logarithm tells rounds apart to about 2^-47 there
    if last_settled >= start:
        assert not explores(last_settled)
        assert not explores(start)


@settings(deadline=None)
@given(rules, log_dets, dimensions, st.integers(1, 10**18), st.floats(30, 45), st.floats(0, 1e-3))
def test_more_evidence_never_wakes_earlier(
    beta: naive.Beta, log_det: float, d: int, start: int, log_target: float, more: float
) -> None:
    confidence = build(beta, d)
    evidence = global_beta(confidence, log_det, log_target)
    wake = next_exploration(confidence, log_det, evidence, clock_at(start))
    later = next_exploration(confidence, log_det, evidence * (1.0 + more), clock_at(start))
    assert not is_before(later, wake)
    assert not is_before(wake, clock_at(start))


@pytest.mark.parametrize(
    "beta",
    [
        naive.Beta(),
        naive.Beta(factor=0.3, noise_std=0.7, norm_bound=2.0),
        naive.Beta(factor=0.3, noise_std=0.7, norm_bound=2.0, regulariser=1.5),
        naive.Beta("log-log", noise_std=0.7),
    ],
)
def test_wakes_around_the_border_stand_in_order(beta: naive.Beta) -> None:
    """Where counting ends and logarithms begin, wakes neither jump back nor fall in between."""
    confidence = build(beta, 3)
    offsets = range(-3000, 3001, 7)
    wakes = [
        next_exploration(
            confidence, 2.0, global_beta(confidence, 2.0, math.log(FAR + i)), clock_at(10)
        )
        for i in offsets
    ]
    assert {wake.t == FAR for wake in wakes} == {False, True}
    for wake, following in itertools.pairwise(wakes):
        assert not is_before(following, wake)
    for offset, wake in zip(offsets, wakes, strict=True):
        assert log_round(wake) == pytest.approx(math.log(FAR + offset), abs=1e-13)
        assert log_round(wake) >= LOG_FAR or wake.t < FAR


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(LOG_FAR, 1e5), st.floats(0.0, 1.0))
def test_far_out_the_wake_is_where_beta_meets_the_evidence(
    beta: naive.Beta, log_det: float, d: int, log_t: float, share: float
) -> None:
    confidence = build(beta, d)
    evidence = beta.at(log_det, d, log_t)
    start = LOG_FAR + share * (log_t - LOG_FAR)
    wake = next_exploration(confidence, log_det, evidence, clock_at(FAR)._replace(log_t=start))
    assert wake.t == FAR
    assert wake.log_t >= start
    reached = beta.at(log_det, d, wake.log_t)
    assert reached == pytest.approx(evidence, rel=1e-12) or wake.log_t == start


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(0.0, 0.999))
def test_too_little_evidence_is_never_settled(
    beta: naive.Beta, log_det: float, d: int, share: float
) -> None:
    confidence = build(beta, d)
    evidence = share * beta.at(log_det, d, 0.0)
    assert settled_until(confidence, log_det, evidence) == -math.inf
    for clock in (clock_at(1), clock_at(10**6), clock_at(10**40)):
        assert next_exploration(confidence, log_det, evidence, clock)[:1] == clock[:1]


@settings(deadline=None)
@given(rules, log_dets, dimensions, st.integers(1, 10**40))
def test_endless_evidence_settles_for_ever(
    beta: naive.Beta, log_det: float, d: int, start: int
) -> None:
    wake = next_exploration(build(beta, d), log_det, math.inf, clock_at(start))
    assert wake == (FAR, math.inf)


@pytest.mark.parametrize("start", [1, 10**6, 10**40])
def test_a_fixed_coefficient_settles_once(start: int) -> None:
    confidence = FixedBeta(2.5).build(3, 0.1, 1.0)
    clock = clock_at(start)
    assert next_exploration(confidence, 1.0, 2.5, clock) == (FAR, math.inf)
    assert not is_before(clock, next_exploration(confidence, 1.0, 2.4999, clock))


@settings(deadline=None)
@given(
    growing, log_dets, dimensions, st.integers(1, FAR - 1), st.floats(-2, 36), st.integers(-2, 2)
)
def test_rules_without_a_closed_form_wake_in_the_same_round(
    beta: naive.Beta, log_det: float, d: int, start: int, log_target: float, bits: int
) -> None:
    confidence = build(beta, d)
    evidence = global_beta(confidence, log_det, log_target)
    for _ in range(abs(bits)):
        evidence = math.nextafter(evidence, math.copysign(math.inf, bits))
    for clock in (clock_at(start), clock_at(1 + start % 1000)):
        expected = next_exploration(confidence, log_det, evidence, clock)
        found = next_exploration(build_own(beta, d), log_det, evidence, clock)
        assert found.t == expected.t < FAR


@settings(deadline=None)
@given(growing, log_dets, dimensions, st.floats(38.0, 1e5), st.integers(1, 10**40))
def test_rules_without_a_closed_form_wake_far_out(
    beta: naive.Beta, log_det: float, d: int, log_target: float, start: int
) -> None:
    confidence, clock = build(beta, d), clock_at(start)
    evidence = global_beta(confidence, log_det, log_target)
    expected = next_exploration(confidence, log_det, evidence, clock)
    found = next_exploration(build_own(beta, d), log_det, evidence, clock)
    assert found.t == expected.t == FAR
    assert found.log_t == pytest.approx(expected.log_t, rel=1e-12)


@settings(deadline=None)
@given(growing, dimensions, st.sampled_from([1e17, 1e300, math.inf]))
def test_a_coefficient_that_rounding_stops_is_not_looked_for_without_end(
    beta: naive.Beta, d: int, log_det: float
) -> None:
    """Of rewards near the ends of the floats: time no longer makes a difference to the last bit."""
    confidence = build(beta, d)
    evidence = global_beta(confidence, log_det, 0.0)
    assert next_exploration(confidence, log_det, evidence, clock_at(3)).t <= FAR
