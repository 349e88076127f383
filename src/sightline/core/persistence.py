"""Persistence: which arrays of a state are saved, and checks of loaded states.

A state is a tree of named tuples.  Their arrays are saved unless the class says which:

    @persists("pulls", "sums")
    class Arms(NamedTuple): ...

The other fields are configuration or scratch.  Nothing of a ``@computed`` class is saved, its parts
included, and no empty array.  To load a state, start a new one from its configuration and fill in
the saved arrays.  A class that renames or removes a field raises its version with
``state_version``, and files of other versions are refused.

Checksums detect damage but not forged files, so a loaded state is validated.  Two rules hold for
every class of state: no array of floats holds NaN, and no array of integers a negative number.  A
class declares exceptions, and registers further conditions:

    @may_hold(negative=("best",))
    class Target(NamedTuple): ...

    @invariant(Target)
    def _check(goal: Target, name: str) -> None:
        indices(f"{name}.best", goal.best, len(goal.allocation), least=-1)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class State(Protocol):
    """A named tuple: of arrays, numbers and further named tuples."""

    def _asdict(self) -> dict[str, Any]: ...


Arrays = dict[str, NDArray[Any]]

_KEPT: dict[type, tuple[str, ...]] = {}
_COMPUTED: set[type] = set()
_VERSIONS: dict[type, int] = {}


def persists(*fields: str) -> Callable[[type[T]], type[T]]:
    """Declare which arrays of a named tuple are saved; none if nothing is named."""

    def declare(cls: type[T]) -> type[T]:
        unknown = set(fields) - set(cls._fields)  # type: ignore[attr-defined]
        if unknown:
            raise ValueError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        _KEPT[cls] = fields
        return cls

    return declare


def computed(cls: type[T]) -> type[T]:
    """Declare that a named tuple is filled before it is read, with all its parts: not saved."""
    _COMPUTED.add(cls)
    return cls


def _saved(state: State) -> dict[str, NDArray[Any]]:
    """Arrays of a state that are saved, by field, without those of its parts."""
    fields = state._asdict()
    kept = _KEPT.get(type(state), tuple(fields))
    arrays = {name: fields[name] for name in fields if isinstance(fields[name], np.ndarray)}
    return {name: array for name, array in arrays.items() if name in kept and array.size}


def persistent_arrays(state: State, prefix: str = "state") -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays of a state that are saved, with their dotted names."""
    if not hasattr(state, "_asdict"):
        raise TypeError(
            f"only states that are NamedTuples of arrays can be saved, got {type(state).__name__}"
        )
    saved = _saved(state)
    for name, value in state._asdict().items():
        if name in saved:
            yield f"{prefix}.{name}", value
        elif hasattr(value, "_asdict"):
            if type(value) not in _COMPUTED:
                yield from persistent_arrays(value, f"{prefix}.{name}")
        elif not isinstance(value, np.ndarray | bool | int | float | str | np.number | None):
            raise TypeError(f"{prefix}.{name} is a {type(value).__name__}, and would not be saved")


def state_version(number: int) -> Callable[[type[T]], type[T]]:
    """Declare the version of the arrays of a state class; 1 where nothing is declared."""

    def declare(cls: type[T]) -> type[T]:
        _VERSIONS[cls] = number
        return cls

    return declare


def version_of(cls: type) -> int:
    """Version of the arrays of a state class."""
    return _VERSIONS.get(cls, 1)


Check = Callable[[Any, str], None]

_MOST = 2.0**63  # counts are below
_ROUNDING = 1e-6


_EXCEPTIONS: dict[type, set[str]] = {}
_INVARIANTS: dict[type, Check] = {}


def may_hold(
    *, nan: Iterable[str] = (), negative: Iterable[str] = ()
) -> Callable[[type[T]], type[T]]:
    """Declare which arrays of a class may hold NaN, and which of integers negative numbers."""

    def declare(cls: type[T]) -> type[T]:
        _EXCEPTIONS[cls] = {*nan, *negative}
        return cls

    return declare


def invariant(cls: type) -> Callable[[Check], Check]:
    """Register a condition on a class of state: ``check(part, name)`` raises ValueError."""

    def register(check: Check) -> Check:
        _INVARIANTS[cls] = check
        return check

    return register


def check_consistency(state: State, name: str = "state") -> None:
    """Validate a loaded state; raise a ValueError that names the array and the allowed values."""
    for field, array in _saved(state).items():
        if field in _EXCEPTIONS.get(type(state), ()):
            continue
        if array.dtype.kind == "f":
            _refuse(f"{name}.{field}", array, np.isnan(array), "must not hold nan")
        elif array.dtype.kind == "i":
            _refuse(f"{name}.{field}", array, array < 0, "must not be negative")
    for field, value in state._asdict().items():
        if hasattr(value, "_asdict") and type(value) not in _COMPUTED:
            check_consistency(value, f"{name}.{field}")
    check = _INVARIANTS.get(type(state))
    if check is not None:
        with np.errstate(all="ignore"):
            check(state, name)


def _refuse(name: str, array: NDArray[Any], wrong: NDArray[np.bool_], what: str) -> None:
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
    """Refuse entries that are not counts: negative, fractional, or beyond 2^63."""
    wrong = ~((array >= 0) & (array < most) & (array == np.floor(array)))
    _refuse(name, array, wrong, f"must be whole numbers from 0, below {most:g}")


def indices(name: str, array: NDArray[Any], count: int, least: int = 0) -> None:
    """Refuse entries that are not indices of ``count`` things, such as arms."""
    _refuse(name, array, (array < least) | (array >= count), f"must be from {least} to {count - 1}")


def shares(name: str, array: NDArray[np.float64], *, empty: bool = False) -> None:
    """Refuse weights that are negative or do not sum to one; ``empty`` allows that all are 0."""
    within(name, array, 0.0, 1.0 + _ROUNDING)
    total = float(array.sum())
    if abs(total - 1.0) > _ROUNDING and not (empty and total == 0.0):
        raise ValueError(f"{name} must sum to 1, got {total:g}")


_UNKNOWN = "unknown"  # what TOML and the command line, which have no None, write for it


def none_if_unknown(part: Any, name: str) -> None:
    """Replace ``"unknown"`` in a field of a frozen dataclass by None."""
    value = getattr(part, name)
    if isinstance(value, str) and value == _UNKNOWN:
        object.__setattr__(part, name, None)


def described_fields(part: Any) -> dict[str, Any]:
    """Fields of a dataclass by name, with ``"unknown"`` for None where a number is the default.

    Files omit None, and an omitted field gets its default.
    """
    found = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        unknown = value is None and isinstance(field.default, float)
        found[field.name] = _UNKNOWN if unknown else value
    return found
