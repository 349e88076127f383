"""Factorial designs: every combination of the levels of several factors is an option.

The mean of an option is the grand mean, plus the effect of each of its levels, plus the effects
of its interactions.  Effects of a factor sum to zero over its levels, and those of an interaction
over the levels of each of its factors.

A factor with L levels has L - 1 columns: orthogonal, with sum zero and mean square one over the
levels; with two levels they are +1 and -1.  An interaction has the products of the columns of its
factors.  Over all combinations, each counted once, all columns are then orthonormal.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.labels import Contrast, Level, valid_level
from sightline.sessions.options import Options
from sightline.validation import one_of, shown

__all__ = ["GRAND_MEAN", "factorial"]

Array = NDArray[np.float64]

#: Term of the contrast that is the mean over all combinations.
GRAND_MEAN = "grand mean"
# Numbers in the table of features: beyond, a round of any policy would take milliseconds.
_LARGEST_TABLE = 10**6
# Levels that are compared with forbidden ones: a second or two.
_MOST_COMPARED = 10**9


def factorial(
    factors: Mapping[str, Iterable[Any]],
    interactions: str | Iterable[Iterable[str]] | None = None,
    forbidden: Iterable[Mapping[str, Any]] = (),
) -> Options:
    """Make options of all combinations of levels, described by main effects and interactions.

    The parameter theta has the grand mean first: the mean reward over all combinations, each
    counted once, with those that are forbidden as the model continues to them.  Then come the
    effects in orthonormal coordinates, so that the squared norm of theta is the mean square of
    the mean rewards over all combinations.  Rewards in [-1, 1] therefore have a theta of norm at
    most 1, which is the default ``norm_bound`` of all policies, as long as nothing is forbidden.
    For a factor with two levels the coordinate is the effect of the first.

    Parameters
    ----------
    factors : mapping of str to iterable
        Levels of every factor, at least two each: texts or numbers.
    interactions : "pairs", iterable of iterables of factors, or None
        Which factors interact: all pairs, those listed, or none of them.
    forbidden : iterable of mappings of factor to level
        Combinations to leave out: each mapping excludes every option that has all its levels.

    Returns
    -------
    Options
        Named ``"picture=large, text=short"``, the last factor changing fastest.  The contrasts are
        the grand mean, the main effect of every level and the effect of every cell of an
        interaction, as deviations.

    Examples
    --------
    >>> import sightline as sl
    >>> pages = sl.factorial({"picture": ["large", "small"], "text": ["short", "long"]})
    >>> pages.names[0]
    'picture=large, text=short'
    >>> pages.features[1].tolist()
    [1.0, 1.0, -1.0]
    """
    levels = _valid_factors(factors)
    terms: list[tuple[str, ...]] = [(factor,) for factor in levels]
    _check_size(levels, terms)  # of many factors there would be far too many pairs to list
    terms += _valid_interactions(interactions, list(levels))
    _check_size(levels, terms)
    codes = {factor: _codes(len(values)) for factor, values in levels.items()}
    rows = np.indices([len(values) for values in levels.values()]).reshape(len(levels), -1)
    excluding = _valid_forbidden(forbidden, levels)
    if len(excluding) * rows.size > _MOST_COMPARED:
        raise ValueError(
            f"forbidden has {len(excluding)} mappings, which are compared with {rows.shape[1]} "
            f"combinations of {len(levels)} factors: more than {_MOST_COMPARED:,} comparisons"
        )
    for entry in excluding:
        excluded = [rows[i] == entry[factor] for i, factor in enumerate(levels) if factor in entry]
        rows = rows[:, ~np.logical_and.reduce(excluded)]
    if rows.shape[1] == 0:
        raise ValueError("forbidden excludes every combination, no option is left")
    which = dict(zip(levels, rows, strict=True))
    blocks = [_products([codes[factor][which[factor]] for factor in term]) for term in terms]
    labels = [
        {factor: values[i] for (factor, values), i in zip(levels.items(), column, strict=True)}
        for column in rows.T
    ]
    return Options(
        features=np.hstack([np.ones((rows.shape[1], 1)), *blocks]),
        names=[", ".join(f"{factor}={level}" for factor, level in row.items()) for row in labels],
        levels=labels,
        columns=[GRAND_MEAN, *(label for term in terms for label in _columns(term, codes))],
        contrasts=_contrasts(levels, terms, codes),
    )


def _codes(count: int) -> Array:
    """Orthogonal columns with sum zero and mean square one over the levels: Helmert's, scaled."""
    codes = np.zeros((count, count - 1))
    for j in range(count - 1):
        later = count - 1 - j
        scale = math.sqrt(count / (later * (later + 1)))
        codes[j, j] = later * scale
        codes[j + 1 :, j] = -scale
    return codes


def _products(blocks: Sequence[Array]) -> Array:
    """Products of one column of each block, row by row."""
    product = functools.reduce(
        lambda a, b: (a[:, :, None] * b[:, None, :]).reshape(len(a), -1), blocks
    )
    return product + 0.0  # no -0.0, so that features are their effects' sum to the last bit


def _columns(term: tuple[str, ...], codes: Mapping[str, Array]) -> list[str]:
    """Labels of the columns of a term: its factors, numbered where they have several columns."""
    counts = [codes[factor].shape[1] for factor in term]
    labels = [
        [factor if count == 1 else f"{factor} {j + 1}" for j in range(count)]
        for factor, count in zip(term, counts, strict=True)
    ]
    return [":".join(choice) for choice in itertools.product(*labels)]


def _contrasts(
    levels: Mapping[str, Sequence[Level]],
    terms: Sequence[tuple[str, ...]],
    codes: Mapping[str, Array],
) -> list[Contrast]:
    sizes = [math.prod(codes[factor].shape[1] for factor in term) for term in terms]
    d = 1 + sum(sizes)
    found = [Contrast(GRAND_MEAN, "", np.eye(1, d)[0], {})]
    start = 1
    for term, size in zip(terms, sizes, strict=True):
        for cell in itertools.product(*(range(len(levels[factor])) for factor in term)):
            vector = np.zeros(d)
            rows = [codes[factor][i : i + 1] for factor, i in zip(term, cell, strict=True)]
            vector[start : start + size] = _products(rows)[0]
            where = {factor: levels[factor][i] for factor, i in zip(term, cell, strict=True)}
            level = ":".join(map(str, where.values()))
            found.append(Contrast(":".join(term), level, vector, where))
        start += size
    return found


def _check_size(levels: Mapping[str, Sequence[Level]], terms: Sequence[tuple[str, ...]]) -> None:
    """Refuse a table of features that is too large, before it is made."""
    # with so many factors the product has more digits than are ever written
    rows = math.prod(len(values) for values in levels.values()) if len(levels) < 60 else 2**60
    d = 1 + sum(math.prod(len(levels[factor]) - 1 for factor in term) for term in terms)
    if rows * d > _LARGEST_TABLE:
        raise ValueError(
            f"the design has {shown(rows)} combinations with {d} features each, more than the "
            f"{_LARGEST_TABLE} numbers that are allowed: leave out factors, levels or interactions"
        )


def _valid_factors(factors: object) -> dict[str, list[Level]]:
    if not isinstance(factors, Mapping) or not factors:
        raise ValueError(f"factors must be a mapping of factor to levels, got {factors!r}")
    found: dict[str, list[Level]] = {}
    for factor, values in factors.items():
        if not isinstance(factor, str) or not factor.strip() or not factor.isprintable():
            raise ValueError(f"names of factors must be printable text, got {factor!r}")
        if factor == GRAND_MEAN:
            raise ValueError(f"a factor cannot be called {GRAND_MEAN!r}, which is a term already")
        if isinstance(values, str | Mapping) or not isinstance(values, Iterable):
            raise ValueError(f"factor {factor!r} needs a list of levels, got {values!r}")
        levels = [valid_level(f"level of {factor!r}", level) for level in values]
        if len(levels) < 2:
            raise ValueError(f"factor {factor!r} needs at least two levels, got {levels!r}")
        if len(set(map(str, levels))) < len(levels):
            raise ValueError(f"levels of factor {factor!r} must differ, got {levels!r}")
        found[factor] = levels
    return found


def _valid_interactions(interactions: Any, factors: list[str]) -> list[tuple[str, ...]]:
    if interactions is None:
        return []
    if isinstance(interactions, str):
        one_of("interactions", interactions, ["pairs"])
        return list(itertools.combinations(factors, 2))
    if not isinstance(interactions, Iterable):
        raise ValueError(f"interactions must be 'pairs' or a list of pairs, got {interactions!r}")
    found: dict[tuple[str, ...], None] = {}
    for entry in interactions:
        if isinstance(entry, str) or not isinstance(entry, Iterable):
            raise ValueError(f"an interaction is between two or more factors, got {entry!r}")
        term = tuple(one_of("factor of an interaction", factor, factors) for factor in entry)
        if len(set(term)) < max(len(term), 2):
            raise ValueError(f"an interaction is between two or more factors, got {entry!r}")
        term = tuple(sorted(term, key=factors.index))
        if term in found:
            raise ValueError(f"interactions must differ, got {':'.join(term)} twice")
        found[term] = None
    return list(found)


def _valid_forbidden(forbidden: Any, levels: Mapping[str, Sequence[Level]]) -> list[dict[str, int]]:
    """Forbidden assignments, by the number of each level."""
    if isinstance(forbidden, str | Mapping) or not isinstance(forbidden, Iterable):
        raise ValueError(f"forbidden must be a list of mappings, got {forbidden!r}")
    known = {
        factor: {str(level): i for i, level in enumerate(values)}
        for factor, values in levels.items()
    }
    found = []
    for entry in forbidden:
        if not isinstance(entry, Mapping) or not entry:
            raise ValueError(f"forbidden must have mappings of factor to level, got {entry!r}")
        numbers = {}
        for factor, level in entry.items():
            one_of("factor of a forbidden combination", factor, levels)
            name = one_of(f"level of {factor!r}", str(level), known[factor])
            numbers[factor] = known[factor][name]
        found.append(numbers)
    return found
