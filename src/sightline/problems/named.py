"""What named problems share: they remember how they were made, and check common parameters."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from sightline.problems.base import Problem
from sightline.validation import LARGEST, number, scale, shown

__all__ = ["deviation", "fraction", "named", "valid_slope"]

P = ParamSpec("P")
T = TypeVar("T", bound=Problem)


def named(make: Callable[P, T]) -> Callable[P, T]:
    """Let the problem remember how it was made, so that a file can say it in one line."""
    signature = inspect.signature(make)

    @functools.wraps(make)
    def remembered(*args: P.args, **kwargs: P.kwargs) -> T:
        problem = make(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs)
        arguments.apply_defaults()
        problem.origin = {"type": make.__name__, **arguments.arguments}
        return problem

    return remembered


def deviation(noise_variance: float) -> float:
    """Return the standard deviation of the noise."""
    return math.sqrt(scale("noise_variance", noise_variance, power=2))


def fraction(name: str, value: float) -> float:
    """Return a number in (0, 1)."""
    result = number(name, value, above=0)
    if result >= 1:
        raise ValueError(f"{name} must be below 1, got {shown(value)}")
    return result


def valid_slope(value: float) -> float:
    """Return the slope of an end of optimism."""
    return number("slope", value, size=LARGEST)
