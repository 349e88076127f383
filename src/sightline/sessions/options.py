"""Options of an experiment: names, features, effects and contexts.

| symbol                        | here                     | shape     |
|-------------------------------|--------------------------|-----------|
| X, one option per row         | ``Options.features``     | (k, d)    |
| Y, observations of a game     | ``Options.observations`` | (k, p, d) |
| c, where <c, theta> is an effect | ``Contrast.vector``   | (d,)      |
"""

from __future__ import annotations

import dataclasses
import difflib
import functools
import itertools
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import Contexts, game_model
from sightline.problems.bandits import valid_probabilities
from sightline.validation import action_set, affordable, finite_array, flag, integer, shown, text

Array = NDArray[np.float64]
Level = str | int | float | bool
_MOST_NAMES = 10  # in a sentence
_LARGEST = 1e300  # level of a factor: any program can read it as a float
_MOST_HINTS = 1000  # names to search for the nearest


class Contrast(NamedTuple):
    """A named linear function of the parameter, whose value is an effect.

    Attributes
    ----------
    term : str
        Factor, several factors, or column of the features.
    level : str
        Level or levels of the factors; empty for columns and the grand mean.
    vector : ndarray, shape (d,)
        c: the effect is <c, theta>.
    where : dict of factor to level, or None
        Levels of a factorial design that have this effect, empty for the grand mean; None in other
        designs.
    """

    term: str
    level: str
    vector: Array
    where: dict[str, Level] | None = None


def listed(names: Collection[str]) -> str:
    """Write names for a sentence, only the first ones if they are many."""
    few = ", ".join(shown(name) for name in islice(names, _MOST_NAMES))
    return few + (f", ... ({len(names):,} in all)" if len(names) > _MOST_NAMES else "")


def unknown_name(what: str, name: str, known: Collection[str]) -> str:
    """Message for an unknown name: the nearest one, and which names there are."""
    close = difflib.get_close_matches(name, known, n=1) if len(known) <= _MOST_HINTS else []
    hint = f"; did you mean {close[0]!r}? There are" if close else ": there are"
    return f"no {what} has the name {shown(name)}{hint} {listed(known)}"


def _found(
    given: str | SupportsIndex,
    numbers: Mapping[str, int],
    one: str,
    what: str,
    number: str,
    where: str = "",
) -> int:
    """Find a number, given a name or the number itself, among consecutive numbers by name."""
    if isinstance(given, str):
        if given not in numbers:
            raise KeyError(unknown_name(f"{what}{where}", given, numbers))
        return numbers[given]
    try:
        if isinstance(given, bool | np.bool_):
            raise TypeError
        found = operator.index(given)
    except TypeError:
        raise ValueError(f"{one} is a name or a {number}, got {shown(given)}") from None
    first = next(iter(numbers.values()))
    last = first + len(numbers) - 1
    if not first <= found <= last:
        raise KeyError(
            f"{what}s{where} have the {number}s {first} to {last}, got {shown(found)}: there are "
            f"{listed(numbers)}"
        )
    return found


def valid_labels(
    what: str, labels: Iterable[str] | None, count: int, prefix: str
) -> tuple[str, ...]:
    """Validate labels, or number them."""
    if labels is None:
        return tuple(f"{prefix}{i}" for i in range(count))
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise ValueError(f"{what} must be a list of {count} texts, got {labels!r}")
    listed = tuple(text(what, label) for label in labels)
    if len(listed) != count:
        raise ValueError(f"{what} must be {count} texts, got {len(listed)}")
    _refuse_duplicates(what, listed)
    return listed


def _refuse_duplicates(what: str, values: tuple[Any, ...]) -> None:
    seen = set()
    for value in values:
        if value in seen:
            raise ValueError(f"{what} must differ, got {value!r} twice")
        seen.add(value)


def valid_level(what: str, value: object) -> Level:
    """Return the level of a factor: text or a finite number, as JSON has them."""
    level = value.item() if isinstance(value, np.generic) else value
    if isinstance(level, str) and level.strip() and level.isprintable():
        return level
    if isinstance(level, int | float) and abs(level) <= _LARGEST:
        return level
    raise ValueError(
        f"{what} must be printable text or a finite number up to {_LARGEST:g}, got {shown(value)}"
    )


def valid_level_mapping(row: object) -> dict[str, Level]:
    """Copy a mapping of factors to levels."""
    if not isinstance(row, Mapping) or not all(isinstance(factor, str) for factor in row):
        raise ValueError(f"levels must be mappings of factor to level, got {row!r}")
    return {factor: valid_level(f"level of {factor!r}", level) for factor, level in row.items()}


def valid_levels(levels: Iterable[Mapping[str, Any]], k: int) -> tuple[dict[str, Level], ...]:
    """Return the levels of k options with the same factors."""
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
    """Return the coordinates of the parameter as contrasts."""
    units = np.eye(len(columns))
    units.setflags(write=False)
    return tuple(Contrast(name, "", unit) for name, unit in zip(columns, units, strict=True))


def valid_contrasts(contrasts: Iterable[Contrast], d: int) -> tuple[Contrast, ...]:
    """Copy contrasts of a parameter in d dimensions."""
    valid = []
    for contrast in contrasts:
        if not isinstance(contrast, Contrast):
            raise ValueError(f"contrasts must be of class Contrast, got {contrast!r}")
        if not isinstance(contrast.term, str) or not isinstance(contrast.level, str):
            raise ValueError(f"term and level of a contrast must be text, got {contrast[:2]!r}")
        vector = finite_array(f"vector of the contrast {contrast.term!r}", contrast.vector, (d,))
        vector.setflags(write=False)
        where = None if contrast.where is None else valid_level_mapping(contrast.where)
        valid.append(Contrast(contrast.term, contrast.level, vector, where))
    _refuse_duplicates("contrasts", tuple(contrast[:2] for contrast in valid))
    return tuple(valid)


def _check_fields(cls: Any, description: object, has: str) -> None:
    fields = [field.name for field in dataclasses.fields(cls)]
    if not isinstance(description, Mapping) or set(description) != set(fields):
        raise ValueError(f"{has} {', '.join(fields)} and nothing else")


@dataclass(frozen=True, init=False)
class Blocks:
    """Names of contexts, and the consecutive rows of each.

    Parameters
    ----------
    names : iterable of str or None
        One per context, all different; None for ``"0"``, ``"1"`` and so on.
    starts : iterable of int
        First row of every context, then the number of rows.
    probabilities : array_like, shape (C,), optional
        Probabilities of the contexts, if known.  They are kept as given: normalising them again
        after a file was read could change bits.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    probabilities: tuple[float, ...] | None

    def __init__(
        self,
        names: Iterable[str] | None,
        starts: Iterable[int],
        probabilities: ArrayLike | None = None,
    ) -> None:
        rows = tuple(integer("first row of a context", start, at_least=0) for start in starts)
        if len(rows) < 2 or rows[0] != 0 or any(np.diff(rows) < 1):
            raise ValueError(f"contexts must have consecutive rows from 0, got {shown(list(rows))}")
        given = None
        if probabilities is not None:
            valid_probabilities(probabilities, len(rows) - 1)  # raises
            given = tuple(np.asarray(probabilities, dtype=np.float64).tolist())
        object.__setattr__(self, "names", valid_labels("contexts", names, len(rows) - 1, ""))
        object.__setattr__(self, "starts", rows)
        object.__setattr__(self, "probabilities", given)

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, context: int) -> range:
        """Return the rows of a context."""
        return range(self.starts[context], self.starts[context + 1])

    def blocks(self) -> list[range]:
        """Return the rows of every context."""
        return [self.rows(context) for context in range(len(self))]

    def index(self, context: str | SupportsIndex) -> int:
        """Find the number of a context, given its name or the number itself."""
        return _found(context, self._numbers, "a context", "context", "number")

    @functools.cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    def contexts(self) -> Contexts:
        """Return the contexts for a model."""
        given = self.probabilities
        probabilities = None if given is None else valid_probabilities(given, len(self))
        return Contexts(np.array(self.starts, dtype=np.int64), probabilities)

    def describe(self) -> dict[str, Any]:
        """Return plain data for JSON; :meth:`build` is the inverse."""
        given = self.probabilities
        return {
            "names": list(self.names),
            "starts": list(self.starts),
            "probabilities": None if given is None else list(given),
        }

    @classmethod
    def build(cls, description: Mapping[str, Any]) -> Blocks:
        """Inverse of :meth:`describe`."""
        _check_fields(cls, description, "contexts have")
        return cls(**description)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Options:
    """Options of an experiment: features, names, and effects.

    ``sl.factorial`` makes the options of a factorial design, ``sl.contexts`` those of several
    contexts, ``sl.stream`` those that are new in every round, ``sl.duel`` and ``sl.game`` those of
    games.  A session also takes an array, a mapping from names to features or a list of names.

    All parameters are attributes: arrays are read-only, labels are tuples.

    Parameters
    ----------
    features : array_like, shape (k, d)
        One option per row.  In a stream, zeros: one row for each option that can be on offer at
        once.
    names : iterable of str, optional
        One per option, all different within a context; ``"0"``, ``"1"`` and so on by default.
    levels : iterable of mappings, optional
        Levels of each option, one of every factor; None if the design is not factorial.
    columns : iterable of str, optional
        One label per column of the features; ``"x0"``, ``"x1"`` and so on by default.
    contrasts : iterable of Contrast, optional
        Effects of interest; by default every coordinate of the parameter, which is what one unit
        more of a column adds to the mean reward.
    contexts : Blocks, optional
        Names and rows of the contexts, see :func:`contexts`; None without contexts.
    stream : bool
        Whether options come with every question, see :func:`stream`.
    observations : array_like, shape (k, d) or (k, p, d), optional
        Observation rows of a game, see :func:`game`; as an attribute, of shape (k, p, d).  None if
        options show their reward.
    items : iterable of str, optional
        Names of the items of a duel, see :func:`duel`: its options are each item with itself, then
        all pairs of two.
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
        table = action_set(features, "features")
        table.setflags(write=False)
        k, d = table.shape
        labels = valid_labels("columns", columns, d, "x")
        effects = coordinates(labels) if contrasts is None else valid_contrasts(contrasts, d)
        if flag("stream", stream) and (table.any() or levels is not None or contexts is not None):
            raise ValueError(
                "options that are new in every round have no features, levels or contexts"
            )
        rows = None
        if observations is not None:
            if stream or contexts is not None:
                raise ValueError(
                    "options of a game must not have contexts or be new in every round"
                )
            rows = game_model(table, observations).observations
            rows.setflags(write=False)
        values = {
            "features": table,
            "names": _valid_names(names, k, contexts),
            "levels": None if levels is None else valid_levels(levels, k),
            "columns": labels,
            "contrasts": effects,
            "contexts": contexts,
            "stream": stream,
            "observations": rows,
            "items": None if items is None else _valid_items(items, table, rows),
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

    @property
    def blocks(self) -> list[range]:
        """Rows of every context; without contexts, of one."""
        return [range(len(self))] if self.contexts is None else self.contexts.blocks()

    @functools.cached_property
    def _rows(self) -> list[dict[str, int]]:
        """Rows by name, for every context; without contexts, for one."""
        return [{self.names[row]: row for row in block} for block in self.blocks]

    @functools.cached_property
    def labels(self) -> tuple[str, ...]:
        """Names for tables and figures: with the context, where there are contexts."""
        if self.contexts is None:
            return self.names
        where = zip(self.contexts.names, self._rows, strict=True)
        return tuple(f"{context}: {name}" for context, rows in where for name in rows)

    @functools.cached_property
    def named(self) -> bool:
        """Whether options have names, other than their rows."""
        return self.names != tuple(map(str, range(len(self.names))))

    def name_or_row(self, row: int) -> str | int:
        """Return the name of an option, or its row where options have no names."""
        return self.names[row] if self.named else row

    @functools.cached_property
    def pairs(self) -> tuple[tuple[str, str], ...] | None:
        """Names of the two items of every option; None if it is not a duel."""
        if self.items is None:
            return None
        return tuple((self.items[i], self.items[j]) for i, j in pairs_of(len(self.items)))

    @property
    def seen(self) -> Array:
        """Observation rows, shape (k p, d): the features, except in a game."""
        if self.observations is None:
            return self.features
        return self.observations.reshape(-1, self.features.shape[1])

    @functools.cached_property
    def per_arm(self) -> int:
        """Number p of numbers that an option shows: 1, except in a game."""
        return 1 if self.observations is None else self.observations.shape[1]

    @property
    def told(self) -> str:
        """What is told of a decision: a reward, or in a game an outcome."""
        return "reward" if self.observations is None else "outcome"

    def context_number(self, context: str | SupportsIndex | None) -> int | None:
        """Find the number of a context, given its name or the number; None without contexts."""
        if self.contexts is None:
            if context is not None:
                raise ValueError(
                    f"there are no contexts: context must be left out, got {shown(context)}"
                )
            return None
        if context is None:
            raise ValueError(f"context must be given: one of {listed(self.contexts.names)}")
        return self.contexts.index(context)

    def needs_fixed_options(self, what: str) -> None:
        """Refuse contexts, streams and games."""
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
        """Refuse streams."""
        if self.stream:
            raise ValueError(f"{what} needs options that last; these are new in every round")

    def new_rows(self, options: object) -> Array | None:
        """Validate the options that come with a question; None where none do."""
        if not self.stream:
            if options is not None:
                raise ValueError(
                    "options must be left out of a question: the options of this session are "
                    "known; sl.stream makes one in which they are new in every round"
                )
            return None
        most, d = self.features.shape
        wanted = f"an array of shape (k, {d}), k from 1 to {most}"
        if options is None:
            raise ValueError(f"options must be given with every question: {wanted}")
        rows = action_set(options, "options")  # type: ignore[arg-type]
        if rows.shape[1] != d or len(rows) > most:
            raise ValueError(f"options must be {wanted}, got shape {rows.shape}")
        return rows

    def index(self, option: str | SupportsIndex, context: str | SupportsIndex | None = None) -> int:
        """Find the row of an option, given its name or the row itself.

        Parameters
        ----------
        option : str or int
            Name or row.
        context : str or int, optional
            Name or number of the context, where there are contexts.

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
        return _found(option, names, "an option", "option", "row", inside)

    def rows_of_control(self, control: str | SupportsIndex) -> tuple[int, ...]:
        """Find the row of a control in every context; without contexts, one; in a duel, an item."""
        self.needs_lasting_options("a control")
        try:
            contexts = (None,) if self.contexts is None else self.contexts.names
            found = tuple(self.index(control, context) for context in contexts)
        except KeyError as error:
            raise ValueError(f"control: {error.args[0]}") from None
        if self.items is not None and found[0] >= len(self.items):
            raise ValueError(f"control must be one of {shown(self.items)}, got {shown(control)}")
        return found

    def with_option(
        self,
        name: str,
        features: ArrayLike | None = None,
        levels: Mapping[str, Any] | None = None,
    ) -> Options:
        """Return options with one more at the end; a factorial design needs its known levels."""
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
        """Features of a combination of levels: the sum of its effects."""
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
        """Return plain data for JSON, from which :meth:`build` makes the same bits."""
        seen = None if self.observations is None else self.observations.tolist()
        return {"features": self.features.tolist(), "observations": seen, **self.describe_labels()}

    def describe_labels(self) -> dict[str, Any]:
        """Return plain data without features and observations, which files have as arrays."""
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
        _check_fields(cls, description, "a description of options has")
        try:
            contrasts = [Contrast(**contrast) for contrast in description["contrasts"]]
        except TypeError:
            raise ValueError("contrasts must be a list of term, level, vector, where") from None
        blocks = description["contexts"]
        contexts = None if blocks is None else Blocks.build(blocks)
        return cls(**{**description, "contrasts": contrasts, "contexts": contexts})


def as_options(value: Options | Mapping[str, ArrayLike] | ArrayLike) -> Options:
    """Make options from features, one row each, from a mapping of names to features, or from names.

    Options are returned as they are.  Options with names only are independent.
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
    rows = [
        finite_array(f"features of option {name!r}", features, (None,))
        for name, features in value.items()
    ]
    lengths = set(map(len, rows))
    if len(lengths) > 1:
        raise ValueError(f"all options need equally many features, got {sorted(lengths)}")
    return Options(np.array(rows), names=value)


def names_in(value: object) -> list[str] | None:
    """Return names of options without features; None if the value is anything else."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    listed = value if isinstance(value, list | tuple) else ()
    named = bool(listed) and all(isinstance(name, str) for name in listed)
    return list(listed) if named else None


def independent(k: int) -> Array:
    """Return features of k independent options: one feature for each."""
    affordable(f"{shown(k)} options without features", 8 * k * k)
    return np.eye(k)


def _valid_names(names: Iterable[str] | None, k: int, contexts: Blocks | None) -> tuple[str, ...]:
    """Names of k options, all different within a context."""
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


def pairs_of(n: int) -> list[tuple[int, int]]:
    """List the options of a duel: each of n items with itself, then all pairs of two."""
    return [(i, i) for i in range(n)] + list(itertools.combinations(range(n), 2))


def _valid_items(items: Iterable[str], table: Array, observations: Array | None) -> tuple[str, ...]:
    """Names of the items of a duel; refuse options that are not its pairs, as in damaged files."""
    listed = list(items)
    n = len(listed)
    labels = valid_labels("items", listed, n, "")
    if observations is not None and 2 * len(table) == n * (n + 1):
        first, second = 0.5 * table[np.array(pairs_of(n)).T]
        same = np.array_equal(first + second, table)
        if same and np.array_equal((first - second)[:, None], observations):
            return labels
    raise ValueError(f"options with items must be the pairs of these, got {shown(labels)}")
