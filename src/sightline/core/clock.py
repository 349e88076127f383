"""Clocks: rounds of any size, counted exactly below 2^53 and by their logarithm from there on.

| symbol | here          | meaning                                           |
|--------|---------------|---------------------------------------------------|
| t      | ``Clock.t``   | the round about to be played, 1, 2, 3, ...        |
| log t  | ``log_round`` | the only function of t that the algorithms use    |

From ``FAR`` = 2^53 on, one round more changes log t by less than its last bit: ticking is a no-op,
and only jumps move the clock.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from sightline.jit import compiled

FAR = 2**53
_LOG_FAR = math.log(FAR)


class Clock(NamedTuple):
    """The round about to be played.

    Attributes
    ----------
    t : int
        The round, exact below ``FAR``; ``FAR`` itself means that round or later.
    log_t : float
        Logarithm of the round where ``t == FAR``, unused (nan) before.
    """

    t: int
    log_t: float


def clock_at(t: int) -> Clock:
    """Clock at round ``t``, a Python integer of any size."""
    return Clock(t, math.nan) if t < FAR else Clock(FAR, math.log(t))


@compiled
def never() -> Clock:
    """Wake of a choice that holds permanently."""
    return Clock(FAR, math.inf)


@compiled
def log_round(clock: Clock) -> float:
    """Logarithm of the current round."""
    return math.log(clock.t) if clock.t < FAR else clock.log_t


@compiled
def first_after(log_end: float, clock: Clock) -> Clock:
    """First round >= now with a logarithm above a number, as a run that asks every round finds it.

    Exact where rounds are counted, although ``exp`` may be off by some bits.
    """
    if clock.t == FAR:
        return Clock(FAR, max(log_end, clock.log_t))
    if math.log(clock.t) > log_end:
        return clock
    if log_end >= _LOG_FAR:
        return Clock(FAR, log_end)
    t = max(int(math.exp(log_end)), clock.t)
    while t > clock.t and math.log(t) > log_end:
        t -= 1
    while math.log(t) <= log_end:
        t += 1
    return Clock(t, math.nan) if t < FAR else Clock(FAR, _LOG_FAR)


@compiled
def later(clock: Clock, log_rounds: float) -> Clock:
    """Add whole rounds to a clock, their number given by its logarithm and rounded down."""
    if log_rounds < _LOG_FAR and clock.t < FAR:
        t = clock.t + int(math.exp(log_rounds))
        if t < FAR:
            return Clock(t, math.nan)
    now = log_round(clock)
    high, low = max(now, log_rounds), min(now, log_rounds)
    return Clock(FAR, max(high + math.log1p(math.exp(low - high)), _LOG_FAR))


@compiled
def is_before(first: Clock, second: Clock) -> bool:
    """Whether ``first`` is an earlier round than ``second``."""
    if first.t < FAR or second.t < FAR:
        return first.t < second.t
    return first.log_t < second.log_t


@compiled
def is_round(clock: Clock) -> bool:
    """Whether a clock is a valid round: from 1, exact below ``FAR``, else by its logarithm."""
    if clock.t < FAR:
        return clock.t >= 1
    return clock.t == FAR and clock.log_t >= _LOG_FAR


@compiled
def tick(clock: Clock) -> Clock:
    """Advance one round."""
    if clock.t < FAR - 1:
        return Clock(clock.t + 1, math.nan)
    if clock.t == FAR - 1:
        return Clock(FAR, _LOG_FAR)
    return clock


@compiled
def rounds_between(start: Clock, end: Clock) -> float:
    """Count the rounds from ``start`` up to but not including ``end``; inf beyond 1.8e308."""
    if end.t < FAR or end.log_t == _LOG_FAR:
        return float(end.t - start.t)
    log_end = end.log_t
    if log_end > 709.7:  # exp would overflow, and inf - inf is not a count
        return math.inf
    return -math.exp(log_end) * math.expm1(log_round(start) - log_end)
