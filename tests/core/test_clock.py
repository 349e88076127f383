"""The clock against Python's integers, which have no end."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.core.clock import (
    FAR,
    Clock,
    clock_at,
    is_before,
    log_round,
    never,
    rounds_between,
    tick,
)

near = st.integers(1, FAR - 1)
anywhere = st.one_of(near, st.integers(FAR, 10**400))


def same(one: Clock, other: Clock) -> bool:
    return one.t == other.t and (one.log_t == other.log_t or one.t < FAR)


@settings(deadline=None)
@given(anywhere)
def test_logarithm_of_a_round(t: int) -> None:
    assert log_round(clock_at(t)) == math.log(t)


@settings(deadline=None)
@given(near)
def test_a_tick_is_one_round(t: int) -> None:
    assert same(tick(clock_at(t)), clock_at(t + 1))


@pytest.mark.parametrize("t", [1, FAR - 2, FAR - 1])
def test_a_tick_across_the_border(t: int) -> None:
    assert same(tick(clock_at(t)), clock_at(t + 1))


def test_a_tick_far_out_is_below_the_last_bit() -> None:
    clock = clock_at(10**30)
    assert tick(clock) == clock


@settings(deadline=None)
@given(near, near)
def test_order_where_rounds_are_counted(one: int, other: int) -> None:
    assert is_before(clock_at(one), clock_at(other)) == (one < other)


@settings(deadline=None)
@given(near, st.integers(FAR, 10**400))
def test_order_across_the_border(early: int, late: int) -> None:
    assert is_before(clock_at(early), clock_at(late))
    assert not is_before(clock_at(late), clock_at(early))


@settings(deadline=None)
@given(st.integers(FAR, 10**400), st.integers(1, 1000))
def test_order_far_out(t: int, per_mille: int) -> None:
    later = t + t * per_mille // 1000
    assert is_before(clock_at(t), clock_at(later))
    assert not is_before(clock_at(later), clock_at(t))
    assert not is_before(clock_at(t), clock_at(t))


@settings(deadline=None)
@given(anywhere)
def test_never_is_after_every_round(t: int) -> None:
    assert is_before(clock_at(t), never())
    assert not is_before(never(), clock_at(t))


@settings(deadline=None)
@given(near, near)
def test_rounds_are_counted_exactly(one: int, other: int) -> None:
    start, end = sorted((one, other))
    assert rounds_between(clock_at(start), clock_at(end)) == end - start


@settings(deadline=None)
@given(st.integers(1, 10**300), st.integers(1, 10**6))
def test_rounds_beyond_the_border(start: int, per_million: int) -> None:
    end = start + max(start * per_million // 10**6, FAR)
    count = rounds_between(clock_at(start), clock_at(end))
    # log t is at most 691 and known to half its last bit, so t to 6e-14 relative
    assert count == pytest.approx(end - start, rel=0.0, abs=2e-13 * end)


def test_more_rounds_than_a_float_can_hold() -> None:
    assert rounds_between(clock_at(1), clock_at(10**1000)) == math.inf
    assert rounds_between(clock_at(10**400), clock_at(10**1000)) == math.inf
    assert rounds_between(clock_at(1), never()) == math.inf
