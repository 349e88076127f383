"""Which fields of a state are worth keeping: the others are configuration or scratch.

A state is a tree of named tuples.  Their arrays are kept in files unless the class says which:

    @persists("pulls", "sums")
    class Arms(NamedTuple): ...

Of a class that is ``@computed`` nothing is kept, its parts included.  Empty arrays are not kept.
Whoever loads a state starts a new one from its configuration and fills in what was kept.  Where a
class renames or removes a field, it raises its version with ``state_version`` and registers a
``migration`` from the one before, so that older files can be read.

Whether a state that was read from a file can be: what must hold of its arrays.

Checksums tell that a file is as it was written, not that it was written by a session.  Two rules
hold for every class of state: no array of floats holds NaN, and none of integers a negative
number.  A class that needs it otherwise says so, and what else must hold is registered beside it:

    @may_hold(negative=("best",))
    class Target(NamedTuple): ...

    @invariant(Target)
    def _check(goal: Target, name: str) -> None:
        indices(f"{name}.best", goal.best, len(goal.allocation), least=-1)

Numbers that are not known, in files: TOML and the command line have no None.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")


class State(Protocol):
    """A named tuple: of arrays, numbers and further named tuples."""

    def _asdict(self) -> dict[str, Any]: ...


Arrays = dict[str, NDArray[Any]]
Migration = Callable[[Arrays], Arrays]

_KEPT: dict[type, tuple[str, ...]] = {}
_COMPUTED: set[type] = set()
_VERSIONS: dict[type, int] = {}
_MIGRATIONS: dict[tuple[type, int], Migration] = {}


def persists(*fields: str) -> Callable[[type[T]], type[T]]:
    """Declare which arrays of a named tuple are kept; none if nothing is named."""

    def declare(cls: type[T]) -> type[T]:
        unknown = set(fields) - set(cls._fields)  # type: ignore[attr-defined]
        if unknown:
            raise ValueError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")
        _KEPT[cls] = fields
        return cls

    return declare


def computed(cls: type[T]) -> type[T]:
    """Declare that a named tuple is filled before it is read, with all its parts: not kept."""
    _COMPUTED.add(cls)
    return cls


def is_computed(state: State) -> bool:
    """Whether nothing of a part is kept."""
    return type(state) in _COMPUTED


def own_persistent_arrays(state: State) -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays of a state that are kept, by field; without those of its parts."""
    fields = state._asdict()
    kept = _KEPT.get(type(state), tuple(fields))
    for name, value in fields.items():
        if isinstance(value, np.ndarray) and name in kept and value.size:
            yield name, value


def persistent_arrays(state: State, prefix: str = "state") -> Iterator[tuple[str, NDArray[Any]]]:
    """Arrays of a state that are kept, with their dotted names."""
    if not hasattr(state, "_asdict"):
        raise TypeError(
            f"only states that are NamedTuples of arrays can be saved, got {type(state).__name__}"
        )
    fields = state._asdict()
    kept = _KEPT.get(type(state), tuple(fields))
    for name, value in fields.items():
        if hasattr(value, "_asdict"):
            if not is_computed(value):
                yield from persistent_arrays(value, f"{prefix}.{name}")
        elif isinstance(value, np.ndarray):
            if name in kept and value.size:
                yield f"{prefix}.{name}", value
        elif not isinstance(value, bool | int | float | str | np.number | None):
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


def migration(cls: type, version: int) -> Callable[[Migration], Migration]:
    """Register how arrays of a state class, by name, get from a version to the next."""

    def register(function: Migration) -> Migration:
        _MIGRATIONS[cls, version] = function
        return function

    return register


def migrated(cls: type, version: int, arrays: Arrays) -> Arrays:
    """Arrays of a state class in its present version.

    Raises
    ------
    ValueError
        If they are of a later version, or there is no way from theirs.
    """
    now = version_of(cls)
    if version > now:
        raise ValueError(
            f"its {cls.__name__} has version {version}, later than {now}: upgrade sightline"
        )
    for step in range(version, now):
        if (cls, step) not in _MIGRATIONS:
            raise ValueError(f"nothing reads version {step} of {cls.__name__} any more")
        arrays = _MIGRATIONS[cls, step](arrays)
    return arrays


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


_UNKNOWN = "unknown"


def none_if_unknown(part: Any, name: str) -> None:
    """Make None of ``"unknown"`` in a field of a frozen dataclass."""
    value = getattr(part, name)
    if isinstance(value, str) and value == _UNKNOWN:
        object.__setattr__(part, name, None)


def described_fields(part: Any) -> dict[str, Any]:
    """Fields of a dataclass by name, with ``"unknown"`` for None where a number is the default.

    Files leave None out, and what they leave out is the default.
    """
    found = {}
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        unknown = value is None and isinstance(field.default, float)
        found[field.name] = _UNKNOWN if unknown else value
    return found
