"""At which levels delta confidence coefficients are asked for."""

from __future__ import annotations

import math
from typing import NamedTuple

from sightline.jit import compiled

__all__ = ["LEVELS", "LOG_2", "Level", "level_in_round", "log_inverse_delta"]

LOG_2 = math.log(2.0)


class Level(NamedTuple):
    """delta = 1/s^2, or 1/(s log s): a value and no class, so that both share their kernels."""

    slow: bool


#: Levels of gaps and information gain at local time s, by name.
LEVELS = {"1/s^2": Level(False), "1/(s log s)": Level(True)}


@compiled
def log_inverse_delta(level: Level, s: int) -> float:
    """log(1/delta) at local time s."""
    if level.slow:
        u = math.log(max(s, 2))
        return u + math.log(u)
    return 2.0 * math.log(s)


@compiled
def level_in_round(log_t: float) -> float:
    """log(1/delta) of the exploitation test in round t: delta = 1/(t log t)."""
    u = max(log_t, LOG_2)  # at t = 1 the value of t = 2, where t log t is not yet 0
    return u + math.log(u)
