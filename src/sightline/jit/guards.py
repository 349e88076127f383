"""Guards: check the numbers that custom implementations return, such as nan.

A guard raises from compiled code, in which a message must be a constant: it names the part and
describes the wrong value, but cannot contain the number.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any


def wrong_numbers(who: str, low: float, high: float) -> tuple[str, str, str]:
    """Messages for a number that is nan, too small or too large; ``who`` is the subject."""
    finite = "a finite number" if math.isfinite(high) else "a number"
    least = f" >= {low:g}" if math.isfinite(low) and low > -high else ""
    small = "a negative number" if low == 0.0 else f"less than {low:g}"
    large = f"more than {high:g}" if high < 1e300 else "inf"
    said = f"{who} must be {finite}{least}, got "
    return f"{said}nan", said + small, said + large


def number_between(what: str, low: float, high: float) -> Callable[..., FunctionType]:
    """Guard of functions of three arguments that return a number from an interval.

    ``what`` names the number in messages about the class of the implementation.
    """

    def guard(function: Callable[..., float], cls: type) -> Any:
        nan, small, large = wrong_numbers(f"{what} of {cls.__name__}", low, high)

        def checked(part: Any, first: Any, second: Any) -> float:
            value = function(part, first, second)
            if value < low:
                raise ValueError(small)
            if value > high:
                raise ValueError(large)
            if value != value:
                raise ValueError(nan)
            return value

        return checked

    return guard
