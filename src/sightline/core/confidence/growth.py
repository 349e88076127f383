"""The root of a u + b log u = level: how long a coefficient that grows with u = log t suffices.

It has a closed form (Lambert W); a few Newton steps give it at any magnitude.
"""

from __future__ import annotations

import math

from sightline.jit import compiled

__all__ = ["solve_growth"]


@compiled
def solve_growth(a: float, b: float, level: float, start: float) -> float:
    """Root u >= start of a u + b log u = level; -inf if it lies before ``start``."""
    u = start
    step = level - a * u - b * math.log(u)
    if step < 0.0:
        return -math.inf
    # The left side is concave, so Newton climbs monotonically from the left and cannot overshoot.
    while step > 1e-15 * level:
        increase = step / (a + b / u)
        if u + increase == u:
            break
        u += increase
        step = level - a * u - b * math.log(u)
    return u
