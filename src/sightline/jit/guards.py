"""Guards: what a part of a user's own must return, so that nothing is computed from a NaN.

A guard raises from within compiled code, where a sentence must be a constant: it says which part
it was and what it returned, but for the number itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import FunctionType
from typing import Any

__all__ = ["number_between", "wrong_numbers"]


def wrong_numbers(who: str, low: float, high: float) -> tuple[str, str, str]:
    """Sentences for a number that is nan, too small or too large.

    Parameters
    ----------
    who : str
        What must be such a number.
    low, high : float
        Least and largest that is allowed.
    """
    finite = "a finite number" if math.isfinite(high) else "a number"
    least = f" >= {low:g}" if math.isfinite(low) and low > -high else ""
    small = "a negative number" if low == 0.0 else f"less than {low:g}"
    large = f"more than {high:g}" if high < 1e300 else "inf"
    said = f"{who} must be {finite}{least}, got "
    return f"{said}nan", said + small, said + large


def number_between(what: str, low: float, high: float) -> Callable[..., FunctionType]:
    """Guard of functions of three arguments that return a number.

    Parameters
    ----------
    what : str
        What the number is, in a sentence about the class that the function is registered for.
    low, high : float
        Least and largest that is allowed.
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
