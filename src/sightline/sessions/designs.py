"""Options of special designs: factorial designs, contexts, streams, duels and games.

In a factorial design the mean of an option is the grand mean, plus the effect of each of its
levels, plus the effects of its interactions.  Effects of a factor sum to zero over its levels, and
those of an interaction over the levels of each of its factors.  A factor with L levels has L - 1
columns: orthogonal, with sum zero and mean square one over the levels; with two levels they are +1
and -1.  An interaction has the products of the columns of its factors.  Over all combinations, each
counted once, all columns are then orthonormal.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.model import game_model
from sightline.sessions.effects import identified
from sightline.sessions.options import (
    Blocks,
    Contrast,
    Level,
    Options,
    as_options,
    independent,
    names_in,
    pairs_of,
    valid_level,
)
from sightline.validation import action_set, affordable, entries, integer, one_of, shown, text

Array = NDArray[np.float64]
#: Term of the contrast that is the mean over all combinations.
GRAND_MEAN = "grand mean"
# Size of the table of features; above it, a round of any policy takes milliseconds.
_LARGEST_TABLE = 10**6
# Comparisons of levels with forbidden ones: a second or two.
_MOST_COMPARED = 10**9


def factorial(
    factors: Mapping[str, Iterable[Any]],
    interactions: str | Iterable[Iterable[str]] | None = None,
    forbidden: Iterable[Mapping[str, Any]] = (),
) -> Options:
    """Make options from all combinations of levels, with main effects and interactions.

    The first entry of theta is the grand mean: the mean reward over all combinations, each counted
    once, where the model extrapolates to forbidden ones.  The others are the effects in orthonormal
    coordinates, so that the squared norm of theta is the mean square of the mean rewards over all
    combinations.  Rewards in [-1, 1] therefore have a theta of norm at most 1, which is the default
    ``norm_bound`` of all policies, as long as nothing is forbidden.  For a factor with two levels
    the coordinate is the effect of the first.

    Parameters
    ----------
    factors : mapping of str to iterable
        Levels of every factor, at least two each: texts or numbers.
    interactions : "pairs", iterable of iterables of factors, or None
        Factors that interact: all pairs, those listed, or none.
    forbidden : iterable of mappings of factor to level
        Combinations to leave out: each mapping excludes every option with all its levels.

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
    _check_size(levels, terms)  # many factors have too many pairs to list
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
    return product + 0.0  # no -0.0: features equal the sum of their effects bit for bit


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
    """Refuse a table of features that would be too large."""
    # the product of so many factors would have too many digits
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
        if text("names of factors", factor) == GRAND_MEAN:
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
    """Forbidden combinations, by the number of each level."""
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


def contexts(
    options: Mapping[str, Mapping[str, ArrayLike] | ArrayLike] | Iterable[ArrayLike],
    probabilities: Mapping[str, float] | ArrayLike | None = None,
    columns: Iterable[str] | None = None,
) -> Options:
    """Make options of a session in which a context comes with every question.

    All contexts share one parameter, so that what is learned in one context also informs the
    others, as far as their features are related.

    Parameters
    ----------
    options : mapping of context to options, or iterable of array_like
        The options of every context: a mapping from names to features, or features of shape
        (k_c, d), one option per row.  Contexts may share names of options.  Contexts without names
        are called ``"0"``, ``"1"`` and so on.  If all contexts are lists of names, every option of
        every context is independent of all others.
    probabilities : mapping of context to probability or array_like, shape (C,), optional
        Probabilities of the contexts, if known; by default, policies that need them count.
    columns : iterable of str, optional
        One label per feature; ``"x0"``, ``"x1"`` and so on by default.

    Returns
    -------
    Options
        One row per context and option, context after context.

    Examples
    --------
    >>> import sightline as sl
    >>> pages = sl.contexts(
    ...     {
    ...         "mobile": {"short": [1.0, 0.0], "long": [0.0, 1.0]},
    ...         "desktop": {"short": [1.0, 0.5], "long": [0.5, 1.0], "video": [1.0, 1.0]},
    ...     }
    ... )
    >>> pages.index("short", context="desktop")
    2
    """
    names, blocks = _valid_blocks(_with_features(options))
    d = blocks[0].features.shape[1]
    for c, block in enumerate(blocks):
        if block.features.shape[1] != d:
            raise ValueError(
                f"all contexts need equally many features, got {d} in {_said(names, 0)} and "
                f"{block.features.shape[1]} in {_said(names, c)}"
            )
    starts = accumulate((len(block) for block in blocks), initial=0)
    return Options(
        np.vstack([block.features for block in blocks]),
        [name for block in blocks for name in block.names],
        columns=columns,
        contexts=Blocks(names, starts, _in_order(probabilities, names, len(blocks))),
    )


def _with_features(options: Any) -> Any:
    """Make features of options that have names only: all are independent."""
    given = options.values() if isinstance(options, Mapping) else options
    listed = [names_in(block) for block in given] if isinstance(given, Iterable) else [None]
    if not listed or None in listed:
        return options
    rows = iter(independent(sum(len(block or ()) for block in listed)))
    blocks = [{name: next(rows) for name in block or ()} for block in listed]
    for block, named in zip(listed, blocks, strict=True):
        if len(named) < len(block or ()):
            raise ValueError(f"names of options must differ within a context, got {shown(block)}")
    return dict(zip(options, blocks, strict=True)) if isinstance(options, Mapping) else blocks


def _said(names: list[str] | None, context: int) -> str:
    return f"context {context if names is None else shown(names[context])}"


def _valid_blocks(options: Any) -> tuple[list[str] | None, list[Options]]:
    names = list(options) if isinstance(options, Mapping) else None
    given = options.values() if isinstance(options, Mapping) else options
    values = entries("contexts", given, "a mapping of context to options or a list of arrays")
    blocks = []
    for c, value in enumerate(values):
        try:
            if isinstance(value, Options):
                raise ValueError(
                    "a mapping or an array is needed, got Options: take their features"
                )
            blocks.append(as_options(value))
        except ValueError as error:
            raise ValueError(f"options of {_said(names, c)}: {error}") from None
    return names, blocks


def _in_order(probabilities: Any, names: list[str] | None, count: int) -> Any:
    """Probabilities in the order of the contexts."""
    if not isinstance(probabilities, Mapping):
        return probabilities
    known = [str(c) for c in range(count)] if names is None else names
    if set(probabilities) != set(known):
        raise ValueError(
            f"probabilities must have one for every context, {shown(known)}, got "
            f"{shown(list(probabilities))}"
        )
    return [probabilities[name] for name in known]


def stream(dimension: int, max_arms: int, columns: Iterable[str] | None = None) -> Options:
    """Make options of a session in which new ones come with every question.

    ``session.ask(options=X)`` chooses a row of X, an array of shape (k, dimension), where k may
    vary.  The session learns the parameter, which all options share.  Only its journal grows with
    the number of questions.

    Parameters
    ----------
    dimension : int
        Number of features of an option.
    max_arms : int
        Largest number of options in one question.
    columns : iterable of str, optional
        One label per feature; ``"x0"``, ``"x1"`` and so on by default.

    Returns
    -------
    Options
        For ``sl.Session``, with a policy that supports streams: :class:`Stakes`,
        :class:`IDS`, :class:`BayesianIDS`, :class:`LinUCB`, :class:`ThompsonSampling`,
        :class:`EpsilonGreedy`, or your own.

    Examples
    --------
    >>> import sightline as sl
    >>> session = sl.Session(sl.stream(2, max_arms=50), sl.LinUCB(), noise_std=0.1)
    >>> decision = session.ask(options=[[1.0, 0.0], [0.5, 0.5], [0.0, 2.0]])
    >>> decision.arm, decision.features.tolist()
    (2, [0.0, 2.0])
    >>> session.tell(decision, 0.7)
    """
    d, k = integer("dimension", dimension, at_least=1), integer("max_arms", max_arms, at_least=1)
    affordable(f"{shown(k)} options in {shown(d)} dimensions", 16 * (k + d) * d)
    return Options(np.zeros((k, d)), columns=columns, stream=True)


def duel(options: Options | Mapping[str, ArrayLike] | ArrayLike) -> Options:
    """Make options of a session that asks which of two is better (dueling bandits).

    ``session.ask()`` answers with a pair, and ``session.tell(decision, "A")`` takes the winner.  An
    option may also be shown alone, as a pair with itself: that teaches nothing, and is the best
    choice once the best option is known.

    The model is linear: A wins against B with probability (1 + <x_A - x_B, theta>) / 2.  A decision
    for the pair has the reward <x_A + x_B, theta>, which is never observed.  The outcome is 1 if A
    wins and -1 if B wins, with mean <x_A - x_B, theta>; it is sub-Gaussian with parameter 1, which
    is the default ``noise_std`` of a duel.

    Parameters
    ----------
    options : Options, mapping of str to array_like, array_like of shape (n, d), or list of str
        At least two items, as a session takes its options: features by name, features, names only,
        or made by :func:`factorial`, whose effects are kept.

    Returns
    -------
    Options
        All n items alone, in their order and under their names, then all pairs of two, such as
        ``"A vs B"``.  The best option is always an item alone, so that ``session.status().best`` is
        an item.  Effects that comparisons cannot identify, such as a grand mean, are dropped; if
        none is left, the effects are those of the items, against their mean.

    Examples
    --------
    >>> import sightline as sl
    >>> answers = sl.duel({"A": [1.0, 0.0], "B": [0.0, 1.0]})
    >>> answers.names
    ('A', 'B', 'A vs B')
    >>> session = sl.Session(answers)
    >>> decision = session.ask()
    >>> decision.option, decision.pair
    ('A vs B', ('A', 'B'))
    >>> session.tell(decision, "A")
    """
    named = names_in(options)
    if named is not None:  # each gets a feature
        _check_pairs(len(named), len(named))
    known = as_options(options)
    known.needs_fixed_options("a duel")
    n, d = known.features.shape
    if n < 2:
        raise ValueError(f"a duel needs at least 2 options, got {n}")
    _check_pairs(n, d)
    pairs = pairs_of(n)
    contrasts = np.array([contrast.vector for contrast in known.contrasts]).reshape(-1, d)
    told = identified(known.features - known.features[0], contrasts)
    first, second = known.features[np.array(pairs).T]
    alone = list(known.names)
    return Options(
        first + second,
        alone + [f"{alone[i]} vs {alone[j]}" for i, j in pairs[n:]],
        columns=known.columns,
        contrasts=list(itertools.compress(known.contrasts, told)) or _deviations(known),
        observations=first - second,
        items=known.names,
    )


def _check_pairs(n: int, d: int) -> None:
    """Refuse pairs that would not fit into memory."""
    affordable(f"{shown(n)} options: {shown(n * (n + 1) // 2)} pairs", 16 * n * n * d)


def _deviations(options: Options) -> list[Contrast]:
    """Differences of all options to their average."""
    vectors = options.features - options.features.mean(axis=0)
    return [Contrast(name, "", vector) for name, vector in zip(options.names, vectors, strict=True)]


def game(
    rewards: ArrayLike,
    observations: ArrayLike,
    names: Iterable[str] | None = None,
    columns: Iterable[str] | None = None,
) -> Options:
    """Make options of a game, which shows outcomes in place of rewards (linear partial monitoring).

    An option has the mean reward <x, theta>, which is not observed.  It shows an outcome: <y,
    theta> with noise, or p such numbers.  ``session.tell(decision, outcome)`` takes the outcome.

    Parameters
    ----------
    rewards : array_like, shape (k, d)
        Reward row x of each option.
    observations : array_like, shape (k, d) or (k, p, d)
        Observation row y of each option, or p rows; a row of zeros shows nothing.
    names : iterable of str, optional
        One per option; ``"0"``, ``"1"`` and so on by default.
    columns : iterable of str, optional
        One label per feature; ``"x0"``, ``"x1"`` and so on by default.

    Returns
    -------
    Options
        For ``sl.Session``, with a policy that plays games: :class:`Stakes`, :class:`IDS`,
        :class:`GCB`, :class:`PEGE` or :class:`MaximumInformation`.  Others may fail where the best
        option shows nothing.

    Examples
    --------
    A test of a part shows how good it is, but earns nothing; a sale earns, but shows nothing.

    >>> import sightline as sl
    >>> parts = sl.game(
    ...     [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]],
    ...     [[1.0, -1.0], [0.0, 0.0], [0.0, 0.0]],
    ...     names=["test", "sell the first", "sell the second"],
    ... )
    >>> session = sl.Session(parts, sl.IDS(), noise_std=0.1)
    >>> decision = session.ask()
    >>> session.tell(decision, 0.7)
    """
    paid = action_set(rewards, "rewards")
    rows = game_model(paid, observations).observations
    return Options(paid, names, columns=columns, observations=rows)
