"""At which levels delta confidence coefficients are asked for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from sightline.jit import compiled, generic

__all__ = ["LEVELS", "LOG_2", "level_in_round", "log_inverse_delta"]

LOG_2 = math.log(2.0)


class _SquareLevel(NamedTuple):
    """delta = 1/s^2."""

    code: int = 0


class _SlowLevel(NamedTuple):
    """delta = 1/(s log s)."""

    code: int = 0


#: Levels of gaps and information gain at local time s, by name.
LEVELS = {"1/s^2": _SquareLevel(), "1/(s log s)": _SlowLevel()}


@generic
def log_inverse_delta(level: Any, s: int) -> float:
    """log(1/delta) at local time s."""
    raise TypeError(f"{type(level).__name__} is no level")


@log_inverse_delta.register(_SquareLevel)
@compiled
def _square(level: _SquareLevel, s: int) -> float:
    return 2.0 * math.log(s)


@log_inverse_delta.register(_SlowLevel)
@compiled
def _slow(level: _SlowLevel, s: int) -> float:
    u = math.log(max(s, 2))
    return u + math.log(u)


@compiled
def level_in_round(log_t: float) -> float:
    """log(1/delta) of the exploitation test in round t: delta = 1/(t log t)."""
    u = max(log_t, LOG_2)  # at t = 1 the value of t = 2, where t log t is not yet 0
    return u + math.log(u)
