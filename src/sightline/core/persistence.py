"""Which fields of a state are worth keeping: the others are configuration or scratch.

A state is a tree of named tuples.  Their arrays are kept in files unless the class says which:

    @persists("pulls", "sums")
    class Arms(NamedTuple): ...

Of a class that is ``@computed`` nothing is kept, its parts included.  Empty arrays are not kept.
Whoever loads a state starts a new one from its configuration and fills in what was kept.  Where a
class renames or removes a field, it raises its version with ``state_version`` and registers a
``migration`` from the one before, so that older files can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "State",
    "computed",
    "is_computed",
    "migrated",
    "migration",
    "own_persistent_arrays",
    "persistent_arrays",
    "persists",
    "state_version",
    "version_of",
]

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
