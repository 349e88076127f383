"""Options of an experiment: what can be played, by name, with features and named effects.

| symbol                            | here                | shape  |
|-----------------------------------|---------------------|--------|
| X, one option per row             | ``Options.features`` | (k, d) |
| c, an effect being <c, theta>     | ``Contrast.vector`` | (d,)   |
"""

from __future__ import annotations

import difflib
import functools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.engine.labels import (
    Contrast,
    Level,
    coordinates,
    valid_contrasts,
    valid_labels,
    valid_level_mapping,
    valid_levels,
)
from sightline.validation import action_set, finite_array

__all__ = ["Contrast", "Options", "as_options"]

Array = NDArray[np.float64]

_MOST_HINTS = 1000  # names among which the nearest is looked for


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Options:
    """What can be played: features, names, and which effects the features stand for.

    ``sl.factorial`` makes the options of a factorial design.  A session takes an array or a
    mapping from names to features as well.

    Parameters
    ----------
    features : array_like, shape (k, d)
        One option per row.
    names : iterable of str, optional
        One per option, no two of them equal; ``"0"``, ``"1"`` and so on by default.
    levels : iterable of mappings, optional
        What each option combines: the level of every factor.
    columns : iterable of str, optional
        One label per column of the features; ``"x0"``, ``"x1"`` and so on by default.
    contrasts : iterable of Contrast, optional
        Effects of interest; by default every coordinate of the parameter, what one unit more of
        a column adds to the mean reward.

    Attributes
    ----------
    features : ndarray, shape (k, d)
        Read-only.
    names, columns : tuple of str
        Labels of rows and columns.
    levels : tuple of dict, or None
        Level of every factor, by option; None where options are no combinations of levels.
    contrasts : tuple of Contrast
        Effects of interest.
    """

    features: Array
    names: tuple[str, ...]
    levels: tuple[dict[str, Level], ...] | None
    columns: tuple[str, ...]
    contrasts: tuple[Contrast, ...]

    def __init__(
        self,
        features: ArrayLike,
        names: Iterable[str] | None = None,
        levels: Iterable[Mapping[str, Any]] | None = None,
        columns: Iterable[str] | None = None,
        contrasts: Iterable[Contrast] | None = None,
    ) -> None:
        table = _valid_features(features)
        k, d = table.shape
        labels = valid_labels("columns", columns, d, "x")
        effects = coordinates(labels) if contrasts is None else valid_contrasts(contrasts, d)
        values = {
            "features": table,
            "names": valid_labels("names", names, k, ""),
            "levels": None if levels is None else valid_levels(levels, k),
            "columns": labels,
            "contrasts": effects,
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        k, d = self.features.shape
        few = ", ".join(map(repr, self.names[:3])) + (", ..." if k > 3 else "")
        return f"Options({k} in {d} dimensions: {few})"

    @functools.cached_property
    def _rows(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def index(self, option: str | SupportsIndex) -> int:
        """Row of an option, given its name or the row itself.

        Raises
        ------
        KeyError
            If there is no such option.
        ValueError
            If this is neither a name nor a whole number.
        """
        if isinstance(option, str):
            if option not in self._rows:
                raise KeyError(f"no option has the name {option!r}{self._hint(option)}")
            return self._rows[option]
        try:
            if isinstance(option, bool | np.bool_):
                raise TypeError
            row = operator.index(option)
        except TypeError:
            raise ValueError(f"an option is a name or a row, got {option!r}") from None
        if not 0 <= row < len(self):
            raise KeyError(f"options have the rows 0 to {len(self) - 1}, got {row}")
        return row

    def _hint(self, name: str) -> str:
        known = self.names if len(self) <= _MOST_HINTS else ()
        close = difflib.get_close_matches(name, known, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def with_option(
        self,
        name: str,
        features: ArrayLike | None = None,
        levels: Mapping[str, Any] | None = None,
    ) -> Options:
        """Options with one more at the end; these stay as they are.

        Parameters
        ----------
        name : str
            Of the new option.
        features : array_like, shape (d,), optional
            Its features; in a factorial design they follow from the levels.
        levels : mapping of factor to level, optional
            What it combines, all of it known; needed in a factorial design and only there.
        """
        if (levels is None) != (self.levels is None):
            raise ValueError(
                "levels are for options of a factorial design only"
                if self.levels is None
                else "an option of a factorial design needs levels, one for every factor"
            )
        row = self._features_of(levels) if features is None else features
        d = self.features.shape[1]
        table = np.vstack([self.features, finite_array("features", row, (d,))])
        combined = None if self.levels is None else [*self.levels, levels or {}]
        return Options(table, [*self.names, name], combined, self.columns, self.contrasts)

    def _features_of(self, levels: Mapping[str, Any] | None) -> Array:
        """Features of a combination of levels: the sum of the effects that it has."""
        if self.levels is None or levels is None:
            raise ValueError("features must be given, as options are no combinations of levels")
        wanted = valid_level_mapping(levels)
        parts = [contrast for contrast in self.contrasts if contrast.where is not None]
        known = [contrast.where for contrast in parts]
        for factor in self.levels[0]:
            if factor not in wanted:
                raise ValueError(f"levels must have one for every factor, {factor!r} is missing")
        for factor, level in wanted.items():
            if {factor: level} not in known:
                raise ValueError(
                    f"{factor}={level} is no level of this design: a new factor or level needs "
                    "another design"
                )
        present = [c.vector for c in parts if (c.where or {}).items() <= wanted.items()]
        total: Array = np.sum(present, axis=0)
        return total

    def describe(self) -> dict[str, Any]:
        """Plain dictionary for a JSON file, from which :meth:`build` makes the same bits."""
        return {
            "features": self.features.tolist(),
            "names": list(self.names),
            "levels": None if self.levels is None else [dict(row) for row in self.levels],
            "columns": list(self.columns),
            "contrasts": [
                {**contrast._asdict(), "vector": contrast.vector.tolist()}
                for contrast in self.contrasts
            ],
        }

    @classmethod
    def build(cls, description: Mapping[str, Any]) -> Options:
        """Inverse of :meth:`describe`."""
        fields = ("features", "names", "levels", "columns", "contrasts")
        if not isinstance(description, Mapping) or set(description) != set(fields):
            raise ValueError(f"a description of options has {', '.join(fields)} and nothing else")
        try:
            contrasts = [Contrast(**contrast) for contrast in description["contrasts"]]
        except TypeError:
            raise ValueError("contrasts must be a list of term, level, vector, where") from None
        return cls(**{**description, "contrasts": contrasts})


def as_options(value: Options | Mapping[str, ArrayLike] | ArrayLike) -> Options:
    """Make options of features, one row each, or of a mapping from names to features.

    Parameters
    ----------
    value : Options, mapping of str to array_like of shape (d,), or array_like of shape (k, d)
        Options are returned as they are.
    """
    if isinstance(value, Options):
        return value
    if not isinstance(value, Mapping):
        return Options(value)
    if not value:
        raise ValueError("options must not be empty")
    lengths = set()
    rows = []
    for name, features in value.items():
        rows.append(finite_array(f"features of option {name!r}", features, (None,)))
        lengths.add(len(rows[-1]))
    if len(lengths) > 1:
        raise ValueError(f"all options need equally many features, got {sorted(lengths)}")
    return Options(np.array(rows), names=value)


def _valid_features(features: ArrayLike) -> Array:
    table = action_set(features, "features")
    table.setflags(write=False)
    return table
