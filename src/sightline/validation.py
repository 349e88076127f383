"""Checks of public arguments: each says what was wrong, which value came and what is allowed."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["LARGEST", "action_set", "finite_array", "integer", "number", "one_of"]

#: Largest feature or reward: products of four of them still fit a float.
LARGEST = 1e70


def finite_array(
    name: str, value: ArrayLike, shape: tuple[int | None, ...], hint: str = ""
) -> NDArray[np.float64]:
    """Return a contiguous float copy of ``value``; ``None`` in ``shape`` allows any length >= 1."""
    try:
        if np.iscomplexobj(value):
            raise TypeError("it is complex")
        array = np.array(value, dtype=np.float64, order="C", ndmin=1)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}") from None
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ")"
    fits = array.ndim == len(shape) and all(
        n is None or n == m for n, m in zip(shape, array.shape, strict=True)
    )
    if not fits:
        raise ValueError(f"{name} must have shape {wanted}{hint}, got {array.shape}")
    if array.size == 0:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def action_set(actions: ArrayLike) -> NDArray[np.float64]:
    """Return arms as a copy of shape (k, d), of a size whose powers do not overflow."""
    array = finite_array("actions", actions, (None, None), hint=", one arm per row")
    if np.abs(array).max() > LARGEST:
        raise ValueError(f"actions must not exceed {LARGEST:g} in any entry: scale the features")
    return array


def number(
    name: str, value: Any, *, above: float = -math.inf, at_least: float = -math.inf
) -> float:
    """Return a finite float in the given range."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | float | np.number):
        raise ValueError(f"{name} must be a number, got {value!r}")
    result = float(value)
    if not math.isfinite(result) or result <= above or result < at_least:
        allowed = "finite"
        if above > -math.inf:
            allowed += f" and > {above:g}"
        if at_least > -math.inf:
            allowed += f" and >= {at_least:g}"
        raise ValueError(f"{name} must be {allowed}, got {value!r}")
    return result


def integer(name: str, value: Any, *, at_least: int) -> int:
    """Return a Python integer of any size that is at least ``at_least``."""
    try:
        if isinstance(value, bool):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name} must be an integer (such as 10**6), got {value!r}") from None
    if result < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {result}")
    return result


def one_of(name: str, value: Any, allowed: Iterable[str]) -> str:
    """Return ``value`` if it is one of the allowed names; else suggest the nearest."""
    names = list(allowed)
    if value in names:
        return str(value)
    by_lower_case = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(value).lower(), by_lower_case, n=1)
    hint = f"; did you mean {by_lower_case[close[0]]!r}?" if close else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, names))}, got {value!r}{hint}")
