"""Options that differ from context to context, such as from one segment of visitors to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.sessions.blocks import Blocks
from sightline.sessions.options import Options, as_options, independent, names_in
from sightline.validation import entries, shown

__all__ = ["contexts"]


def contexts(
    options: Mapping[str, Mapping[str, ArrayLike] | ArrayLike] | Iterable[ArrayLike],
    probabilities: Mapping[str, float] | ArrayLike | None = None,
    columns: Iterable[str] | None = None,
) -> Options:
    """Options of a session in which a context comes with every question.

    All contexts share one parameter: what is learned in one tells something about the others, as
    far as their features have to do with each other.

    Parameters
    ----------
    options : mapping of context to options, or iterable of array_like
        The options of every context: a mapping from names to features, or features of shape
        (k_c, d), one option per row.  Names may come again in other contexts.  Contexts without
        names are called ``"0"``, ``"1"`` and so on.  Where all contexts have lists of names and no
        features, every option of every context is independent of all others.
    probabilities : mapping of context to probability or array_like, shape (C,), optional
        How often each context comes, where that is known; by default policies that need it count.
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
    """Give every option a feature of its own, where all have names only."""
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
    """Probabilities in the order of the contexts, however they were given."""
    if not isinstance(probabilities, Mapping):
        return probabilities
    known = [str(c) for c in range(count)] if names is None else names
    if set(probabilities) != set(known):
        raise ValueError(
            f"probabilities must have one for every context, {shown(known)}, got "
            f"{shown(list(probabilities))}"
        )
    return [probabilities[name] for name in known]
