"""Whether a state that was read from a file can be: what must hold of its arrays.

Checksums tell that a file is as it was written, not that it was written by a session.  Two rules
hold for every class of state: no array of floats holds NaN, and none of integers a negative
number.  A class that needs it otherwise says so, and what else must hold is registered beside it:

    @may_hold(negative=("best",))
    class Target(NamedTuple): ...

    @invariant(Target)
    def _check(goal: Target, name: str) -> None:
        indices(f"{name}.best", goal.best, len(goal.allocation), least=-1)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import State, is_computed, own_persistent_arrays

__all__ = [
    "check_consistency",
    "indices",
    "invariant",
    "may_hold",
    "positive",
    "shares",
    "whole",
    "within",
]

T = TypeVar("T")
Check = Callable[[Any, str], None]

_MOST = 2.0**63  # counts are below
_ROUNDING = 1e-6


class _Exceptions(NamedTuple):
    nan: tuple[str, ...]
    negative: tuple[str, ...]


_EXCEPTIONS: dict[type, _Exceptions] = {}
_INVARIANTS: dict[type, Check] = {}


def may_hold(
    *, nan: Iterable[str] = (), negative: Iterable[str] = ()
) -> Callable[[type[T]], type[T]]:
    """Declare which arrays of a class may hold NaN, and which of integers negative numbers."""

    def declare(cls: type[T]) -> type[T]:
        _EXCEPTIONS[cls] = _Exceptions(tuple(nan), tuple(negative))
        return cls

    return declare


def invariant(cls: type) -> Callable[[Check], Check]:
    """Register what must hold of a class of state: ``check(part, name)`` raises ValueError."""

    def register(check: Check) -> Check:
        _INVARIANTS[cls] = check
        return check

    return register


def check_consistency(state: State, name: str = "state") -> None:
    """Refuse a state that no session can have.

    Parameters
    ----------
    state : NamedTuple
        As it was filled from a file.
    name : str
        What it is called in the sentence.

    Raises
    ------
    ValueError
        With one sentence that names the array and what is wrong with it.
    """
    exceptions = _EXCEPTIONS.get(type(state), _Exceptions((), ()))
    for field, array in own_persistent_arrays(state):
        if array.dtype.kind == "f" and field not in exceptions.nan:
            _refuse(f"{name}.{field}", array, np.isnan(array), "must not hold nan")
        elif array.dtype.kind == "i" and field not in exceptions.negative:
            _refuse(f"{name}.{field}", array, array < 0, "must not be negative")
    for field, value in state._asdict().items():
        if hasattr(value, "_asdict") and not is_computed(value):
            check_consistency(value, f"{name}.{field}")
    check = _INVARIANTS.get(type(state))
    if check is not None:
        with np.errstate(all="ignore"):
            check(state, name)


def _refuse(name: str, array: NDArray[Any], wrong: NDArray[np.bool_], what: str) -> None:
    """Raise if anything is wrong, and say where."""
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise ValueError(f"{name} {what}, got {array[where]} at index {where}")


def within(
    name: str,
    array: NDArray[Any],
    least: float = -np.inf,
    most: float = np.inf,
    *,
    ends: bool = True,
) -> None:
    """Refuse entries outside of [least, most], and infinite ones unless ``ends``."""
    wrong = ~((array >= least) & (array <= most))
    if not ends:
        wrong |= ~np.isfinite(array)
    limits = f"between {least:g} and {most:g}" + ("" if ends else " and finite")
    _refuse(name, array, wrong, f"must be {limits}")


def positive(name: str, array: NDArray[Any]) -> None:
    """Refuse zeros and negative numbers."""
    _refuse(name, array, ~(array > 0), "must be positive")


def whole(name: str, array: NDArray[Any], most: float = _MOST) -> None:
    """Refuse what is no count: a fraction, less than 0, or more than any session can count."""
    wrong = ~((array >= 0) & (array < most) & (array == np.floor(array)))
    _refuse(name, array, wrong, f"must be whole numbers from 0, below {most:g}")


def indices(name: str, array: NDArray[Any], count: int, least: int = 0) -> None:
    """Refuse what is no index of one of ``count`` things, such as arms."""
    _refuse(name, array, (array < least) | (array >= count), f"must be from {least} to {count - 1}")


def shares(name: str, array: NDArray[np.float64], *, empty: bool = False) -> None:
    """Refuse weights that are negative or do not sum to one; ``empty`` allows that all are 0."""
    within(name, array, 0.0, 1.0 + _ROUNDING)
    total = float(array.sum())
    if abs(total - 1.0) > _ROUNDING and not (empty and total == 0.0):
        raise ValueError(f"{name} must sum to 1, got {total:g}")
