"""Names, levels and effects of options, checked."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.validation import finite_array, shown

__all__ = [
    "Contrast",
    "Level",
    "coordinates",
    "listed",
    "unknown_name",
    "valid_contrasts",
    "valid_labels",
    "valid_level",
    "valid_level_mapping",
    "valid_levels",
]

Array = NDArray[np.float64]
Level = str | int | float | bool
_MOST_NAMES = 10  # in a sentence
_LARGEST = 1e300  # number that is a level: any program can read it, as a float
_MOST_HINTS = 1000  # names among which the nearest is looked for


class Contrast(NamedTuple):
    """A named linear function of the parameter, whose value is an effect.

    Attributes
    ----------
    term : str
        What it is an effect of: a factor, several of them, or a column.
    level : str
        At which level or levels; empty where there is nothing to tell apart.
    vector : ndarray, shape (d,)
        c: the effect is <c, theta>.
    where : dict of factor to level, or None
        The levels of a factorial design that have this effect, none of them for the grand mean;
        None where options are no combinations of levels.
    """

    term: str
    level: str
    vector: Array
    where: dict[str, Level] | None = None


def listed(names: Collection[str]) -> str:
    """Write names for a sentence, the first ones if they are many."""
    few = ", ".join(shown(name) for name in islice(names, _MOST_NAMES))
    return few + (f", ... ({len(names):,} in all)" if len(names) > _MOST_NAMES else "")


def unknown_name(what: str, name: str, known: Collection[str]) -> str:
    """Say that nothing has this name, what was probably meant, and which names there are."""
    close = difflib.get_close_matches(name, known, n=1) if len(known) <= _MOST_HINTS else []
    hint = f"; did you mean {close[0]!r}? There are" if close else ": there are"
    return f"no {what} has the name {shown(name)}{hint} {listed(known)}"


def valid_labels(
    what: str, labels: Iterable[str] | None, count: int, prefix: str
) -> tuple[str, ...]:
    """Check labels, or number them."""
    if labels is None:
        return tuple(f"{prefix}{i}" for i in range(count))
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(f"{what} must be a list of {count} texts, got {labels!r}")
    listed = tuple(labels)
    for label in listed:
        if not isinstance(label, str) or not label.strip() or not label.isprintable():
            raise ValueError(f"{what} must be printable text, got {label!r}")
    if len(listed) != count:
        raise ValueError(f"{what} must be {count} texts, got {len(listed)}")
    _refuse_twins(what, listed)
    return listed


def _refuse_twins(what: str, values: tuple[Any, ...]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} must differ, got {value!r} twice")
        seen.add(value)


def valid_level(what: str, value: object) -> Level:
    """Return the level of a factor if it is text or a finite number, as JSON has them."""
    level = value.item() if isinstance(value, np.generic) else value
    if isinstance(level, str) and level.strip() and level.isprintable():
        return level
    if isinstance(level, int | float) and abs(level) <= _LARGEST:
        return level
    raise ValueError(
        f"{what} must be printable text or a finite number up to {_LARGEST:g}, got {shown(value)}"
    )


def valid_level_mapping(row: object) -> dict[str, Level]:
    """Return a mapping of factors to levels as a dictionary of its own."""
    if not isinstance(row, Mapping) or not all(isinstance(factor, str) for factor in row):
        raise ValueError(f"levels must be mappings of factor to level, got {row!r}")
    return {factor: valid_level(f"level of {factor!r}", level) for factor, level in row.items()}


def valid_levels(levels: Iterable[Mapping[str, Any]], k: int) -> tuple[dict[str, Level], ...]:
    """Return the levels of k options, the same factors in all."""
    if isinstance(levels, Mapping | str) or not isinstance(levels, Iterable):
        raise ValueError(f"levels must be a list of {k} mappings, got {levels!r}")
    rows = tuple(valid_level_mapping(row) for row in levels)
    if len(rows) != k:
        raise ValueError(f"levels must be {k} mappings, one per option, got {len(rows)}")
    for row in rows:
        if row.keys() != rows[0].keys():
            raise ValueError(f"all options need a level of every factor, got {row!r}")
    return rows


def coordinates(columns: tuple[str, ...]) -> tuple[Contrast, ...]:
    """Contrasts that are the coordinates of the parameter."""
    units = np.eye(len(columns))
    units.setflags(write=False)
    return tuple(Contrast(name, "", unit) for name, unit in zip(columns, units, strict=True))


def valid_contrasts(contrasts: Iterable[Contrast], d: int) -> tuple[Contrast, ...]:
    """Return contrasts of a parameter in d dimensions, with vectors of their own."""
    listed = tuple(contrasts)
    valid = []
    for contrast in listed:
        if not isinstance(contrast, Contrast):
            raise ValueError(f"contrasts must be of class Contrast, got {contrast!r}")
        if not isinstance(contrast.term, str) or not isinstance(contrast.level, str):
            raise ValueError(f"term and level of a contrast must be text, got {contrast[:2]!r}")
        vector = finite_array(f"vector of the contrast {contrast.term!r}", contrast.vector, (d,))
        vector.setflags(write=False)
        where = None if contrast.where is None else valid_level_mapping(contrast.where)
        valid.append(Contrast(contrast.term, contrast.level, vector, where))
    _refuse_twins("contrasts", tuple(contrast[:2] for contrast in valid))
    return tuple(valid)
