"""Options of an experiment: what can be played, by name, with features and named effects.

| symbol                            | here                | shape  |
|-----------------------------------|---------------------|--------|
| X, one option per row             | ``Options.features`` | (k, d) |
| Y, what an option of a game shows | ``Options.observations`` | (k, p, d) |
| c, an effect being <c, theta>     | ``Contrast.vector`` | (d,)   |
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import game_model
from sightline.sessions.blocks import Blocks
from sightline.sessions.labels import (
    Contrast,
    Level,
    coordinates,
    listed,
    unknown_name,
    valid_contrasts,
    valid_labels,
    valid_level_mapping,
    valid_levels,
)
from sightline.validation import action_set, affordable, finite_array, shown

__all__ = ["Contrast", "Options", "as_options", "independent", "names_in", "pairs_of"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Options:
    """What can be played: features, names, and which effects the features stand for.

    ``sl.factorial`` makes the options of a factorial design, ``sl.contexts`` those of several
    contexts, ``sl.stream`` says that they are new in every round, ``sl.duel`` and ``sl.game`` make
    those of games.  A session takes an array, a mapping from names to features or a list of names
    as well.

    Parameters
    ----------
    features : array_like, shape (k, d)
        One option per row.
    names : iterable of str, optional
        One per option, no two of them equal within a context; ``"0"``, ``"1"`` and so on by
        default.
    levels : iterable of mappings, optional
        What each option combines: the level of every factor.
    columns : iterable of str, optional
        One label per column of the features; ``"x0"``, ``"x1"`` and so on by default.
    contrasts : iterable of Contrast, optional
        Effects of interest; by default every coordinate of the parameter, what one unit more of
        a column adds to the mean reward.
    contexts : Blocks, optional
        Which rows are on offer together; :func:`contexts` makes them.
    stream : bool
        Whether options are new in every round; :func:`stream` says so.
    observations : array_like, shape (k, d) or (k, p, d), optional
        What each option shows, where that is not what it pays; :func:`game` says so.
    items : iterable of str, optional
        Names of what is compared, where options are pairs; :func:`duel` makes them.

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
    contexts : Blocks, or None
        Names and rows of the contexts: ``contexts.names``, ``contexts.rows(number)``; None if all
        options are on offer in every decision.
    stream : bool
        Whether options come with every question.  Features are then zeros, a row for each option
        that can be on offer at once, and a name is the row of the present ones.
    observations : ndarray, shape (k, p, d), or None
        Read-only; None where an option shows its reward.
    items : tuple of str, or None
        What is compared, where options are pairs: each item with itself, in their order, then the
        pairs of two.  None where they are no pairs.
    """

    features: Array
    names: tuple[str, ...]
    levels: tuple[dict[str, Level], ...] | None
    columns: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    contexts: Blocks | None
    stream: bool
    observations: Array | None
    items: tuple[str, ...] | None

    def __init__(
        self,
        features: ArrayLike,
        names: Iterable[str] | None = None,
        levels: Iterable[Mapping[str, Any]] | None = None,
        columns: Iterable[str] | None = None,
        contrasts: Iterable[Contrast] | None = None,
        contexts: Blocks | None = None,
        stream: bool = False,
        observations: ArrayLike | None = None,
        items: Iterable[str] | None = None,
    ) -> None:
        table = _valid_features(features)
        k, d = table.shape
        labels = valid_labels("columns", columns, d, "x")
        effects = coordinates(labels) if contrasts is None else valid_contrasts(contrasts, d)
        seen = _valid_observations(observations, table, contexts, stream)
        values = {
            "features": table,
            "names": _valid_names(names, k, contexts),
            "levels": None if levels is None else valid_levels(levels, k),
            "columns": labels,
            "contrasts": effects,
            "contexts": contexts,
            "stream": _valid_stream(stream, table, levels, contexts),
            "observations": seen,
            "items": None if items is None else _valid_items(items, table, seen),
        }
        for field, value in values.items():
            object.__setattr__(self, field, value)

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        k, d = self.features.shape
        if self.stream:
            return f"Options(new in every round, at most {k} in {d} dimensions)"
        few = ", ".join(map(repr, self.names[:3])) + (", ..." if k > 3 else "")
        if self.items is not None:
            return f"Options({k} pairs of {len(self.items)} in {d} dimensions: {few})"
        where = "" if self.contexts is None else f" and {len(self.contexts)} contexts"
        return f"Options({k} in {d} dimensions{where}: {few})"

    @functools.cached_property
    def _rows(self) -> list[dict[str, int]]:
        """Rows by name, of every context; there is one list where there are no contexts."""
        blocks = [range(len(self))] if self.contexts is None else self.contexts.blocks()
        return [{self.names[row]: row for row in block} for block in blocks]

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names for tables and figures: with their context, where there are contexts."""
        if self.contexts is None:
            return self.names
        where = zip(self.contexts.names, self._rows, strict=True)
        return tuple(f"{context}: {name}" for context, rows in where for name in rows)

    @functools.cached_property
    def named(self) -> bool:
        """Whether names say more than the row."""
        return self.names != tuple(map(str, range(len(self.names))))

    def name_or_row(self, row: int) -> str | int:
        """Name of an option, or its row where options have no names."""
        return self.names[row] if self.named else row

    @functools.cached_property
    def pairs(self) -> tuple[tuple[str, str], ...] | None:
        """Names of the two items of every option; None where options are no pairs."""
        if self.items is None:
            return None
        return tuple((self.items[i], self.items[j]) for i, j in pairs_of(len(self.items)))

    @property
    def seen(self) -> Array:
        """What an option shows, shape (k p, d): its features, unless it is of a game."""
        if self.observations is None:
            return self.features
        return self.observations.reshape(-1, self.features.shape[1])

    @functools.cached_property
    def per_arm(self) -> int:
        """How many numbers an option shows: p, which is 1 unless it is of a game."""
        return 1 if self.observations is None else self.observations.shape[1]

    @property
    def told(self) -> str:
        """What is told of a decision: a reward, or an outcome where rewards are not seen."""
        return "reward" if self.observations is None else "outcome"

    def context_number(self, context: str | SupportsIndex | None) -> int | None:
        """Find the number of a context, given its name or the number itself; None without contexts.

        Raises
        ------
        KeyError
            If there is no such context.
        ValueError
            If there are contexts and none is given, or the other way round, or if this is neither
            a name nor a whole number.
        """
        if self.contexts is None:
            if context is not None:
                raise ValueError(
                    f"there are no contexts: context must be left out, got {shown(context)}"
                )
            return None
        if context is None:
            raise ValueError(f"context must be given: one of {self.contexts.listed()}")
        return self.contexts.index(context)

    def needs_fixed_options(self, what: str) -> None:
        """Refuse what is for options that are all on offer in every decision, and no game."""
        if self.observations is not None:
            raise ValueError(
                f"{what} needs options that show their rewards; these are of a game, and stay as "
                "they are"
            )
        if self.contexts is not None or self.stream:
            these = "are new in every round" if self.stream else "have contexts"
            raise ValueError(
                f"{what} needs options that are all on offer in every decision; these {these}"
            )

    def needs_lasting_options(self, what: str) -> None:
        """Refuse what is for options that are known beforehand."""
        if self.stream:
            raise ValueError(f"{what} needs options that last; these are new in every round")

    def new_rows(self, actions: object) -> Array | None:
        """Check the options that come with a question; None where none do.

        Raises
        ------
        ValueError
            If they are missing, or cannot be on offer.
        """
        if not self.stream:
            if actions is not None:
                raise ValueError(
                    "actions must be left out of a question: the options of this session are "
                    "known; sl.stream makes one in which they are new in every round"
                )
            return None
        most, d = self.features.shape
        wanted = f"an array of shape (k, {d}), k from 1 to {most}"
        if actions is None:
            raise ValueError(f"actions must be given with every question: {wanted}")
        rows = action_set(actions)  # type: ignore[arg-type]
        if rows.shape[1] != d or len(rows) > most:
            raise ValueError(f"actions must be {wanted}, got shape {rows.shape}")
        return rows

    def index(self, option: str | SupportsIndex, context: str | SupportsIndex | None = None) -> int:
        """Row of an option, given its name or the row itself.

        Parameters
        ----------
        option : str or int
            Name or row.
        context : str or int, optional
            Where there are contexts: in which of them.

        Raises
        ------
        KeyError
            If there is no such option.
        ValueError
            If this is neither a name nor a whole number, or if the context is missing.
        """
        number = self.context_number(context)
        names = self._rows[number or 0]
        inside = (
            "" if self.contexts is None else f" in context {self.contexts.names[number or 0]!r}"
        )
        if isinstance(option, str):
            if option not in names:
                raise KeyError(unknown_name(f"option{inside}", option, names))
            return names[option]
        try:
            if isinstance(option, bool | np.bool_):
                raise TypeError
            row = operator.index(option)
        except TypeError:
            raise ValueError(f"an option is a name or a row, got {option!r}") from None
        first = next(iter(names.values()))
        last = first + len(names) - 1
        if not first <= row <= last:
            raise KeyError(
                f"options{inside} have the rows {first} to {last}, got {row}: there are "
                f"{listed(names)}"
            )
        return row

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
        self.needs_fixed_options("adding an option")
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
        seen = None if self.observations is None else self.observations.tolist()
        return {"features": self.features.tolist(), "observations": seen, **self.describe_labels()}

    def describe_labels(self) -> dict[str, Any]:
        """Describe all but features and observations, which files have as arrays."""
        return {
            "names": list(self.names),
            "levels": None if self.levels is None else [dict(row) for row in self.levels],
            "columns": list(self.columns),
            "contrasts": [
                {**contrast._asdict(), "vector": contrast.vector.tolist()}
                for contrast in self.contrasts
            ],
            "contexts": None if self.contexts is None else self.contexts.describe(),
            "stream": self.stream,
            "items": None if self.items is None else list(self.items),
        }

    @classmethod
    def build(cls, description: Mapping[str, Any]) -> Options:
        """Inverse of :meth:`describe`."""
        fields = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(description, Mapping) or set(description) != set(fields):
            raise ValueError(f"a description of options has {', '.join(fields)} and nothing else")
        try:
            contrasts = [Contrast(**contrast) for contrast in description["contrasts"]]
        except TypeError:
            raise ValueError("contrasts must be a list of term, level, vector, where") from None
        blocks = description["contexts"]
        contexts = None if blocks is None else Blocks.build(blocks)
        return cls(**{**description, "contrasts": contrasts, "contexts": contexts})


def as_options(value: Options | Mapping[str, ArrayLike] | ArrayLike) -> Options:
    """Make options of features, one row each, of a mapping from names to features, or of names.

    Parameters
    ----------
    value : Options, mapping of str to array_like, array_like of shape (k, d), or list of str
        Options are returned as they are.  Those with names only are independent.
    """
    if isinstance(value, Options):
        return value
    names = names_in(value)
    if names is not None:
        labels = valid_labels("names", names, len(names), "")
        return Options(independent(len(labels)), labels, columns=labels)
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


def names_in(value: object) -> list[str] | None:
    """Names of options that have no features; None if the value is anything else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    listed = value if isinstance(value, list | tuple) else ()
    named = bool(listed) and all(isinstance(name, str) for name in listed)
    return list(listed) if named else None


def independent(k: int) -> Array:
    """Features of k options of which none tells anything about another: one for each."""
    affordable(f"{shown(k)} options without features", 8 * k * k)
    return np.eye(k)


def _valid_names(names: Iterable[str] | None, k: int, contexts: Blocks | None) -> tuple[str, ...]:
    """Names of k options, which differ within a context."""
    if contexts is None:
        return valid_labels("names", names, k, "")
    if not isinstance(contexts, Blocks) or contexts.starts[-1] != k:
        raise ValueError(f"contexts must be Blocks of {k} rows, got {shown(contexts)}")
    listed = None if names is None else list(names)
    if listed is not None and len(listed) != k:
        raise ValueError(f"names must be {k} texts, got {len(listed)}")
    found: list[str] = []
    for c, rows in enumerate(contexts.blocks()):
        part = None if listed is None else listed[rows.start : rows.stop]
        found += valid_labels(f"names in context {contexts.names[c]!r}", part, len(rows), "")
    return tuple(found)


def _valid_stream(stream: object, table: Array, levels: object, contexts: object) -> bool:
    """Refuse to call options new that are known."""
    if not isinstance(stream, bool):
        raise ValueError(f"stream must be True or False, got {shown(stream)}")
    if stream and (table.any() or levels is not None or contexts is not None):
        raise ValueError("options that are new in every round have no features, levels or contexts")
    return stream


def _valid_observations(
    observations: ArrayLike | None, table: Array, contexts: object, stream: bool
) -> Array | None:
    """Return what options show, of shape (k, p, d)."""
    if observations is None:
        return None
    if stream or contexts is not None:
        raise ValueError("options of a game must not have contexts or be new in every round")
    rows = game_model(table, observations).observations
    rows.setflags(write=False)
    return rows


def pairs_of(n: int) -> list[tuple[int, int]]:
    """Each of n items with itself, then all pairs of two: the options of a duel."""
    return [(i, i) for i in range(n)] + list(itertools.combinations(range(n), 2))


def _valid_items(items: Iterable[str], table: Array, observations: Array | None) -> tuple[str, ...]:
    """Names of what is compared; refuse options that are not its pairs: files have any."""
    listed = list(items)
    n = len(listed)
    labels = valid_labels("items", listed, n, "")
    if observations is not None and 2 * len(table) == n * (n + 1):
        first, second = 0.5 * table[np.array(pairs_of(n)).T]
        same = np.array_equal(first + second, table)
        if same and np.array_equal((first - second)[:, None], observations):
            return labels
    raise ValueError(f"options with items must be the pairs of these, got {shown(labels)}")


def _valid_features(features: ArrayLike) -> Array:
    table = action_set(features, "features")
    table.setflags(write=False)
    return table
