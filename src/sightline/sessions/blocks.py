"""Contexts of a session by name: each has a block of consecutive rows of the options."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.model import Contexts
from sightline.problems.bandits import valid_probabilities
from sightline.sessions.labels import listed, unknown_name, valid_labels
from sightline.validation import integer, shown

__all__ = ["Blocks"]

_FIELDS = ("names", "starts", "probabilities")


@dataclass(frozen=True, init=False)
class Blocks:
    """Names of contexts, and which rows each of them has.

    Parameters
    ----------
    names : iterable of str
        One per context, no two of them equal; None: ``"0"``, ``"1"`` and so on.
    starts : iterable of int
        First row of every context, then the number of rows.
    probabilities : array_like, shape (C,), optional
        How often each context comes; None if nobody knows.

    Attributes
    ----------
    names : tuple of str
        Of the contexts.
    starts : tuple of int
        First row of every context, then the number of rows.
    probabilities : tuple of float, or None
        As they were given: a file must lead to the same bits, and dividing by their sum again
        might not.
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
            valid_probabilities(probabilities, len(rows) - 1)  # which says what is wrong
            given = tuple(np.asarray(probabilities, dtype=np.float64).tolist())
        object.__setattr__(self, "names", valid_labels("contexts", names, len(rows) - 1, ""))
        object.__setattr__(self, "starts", rows)
        object.__setattr__(self, "probabilities", given)

    def __len__(self) -> int:
        return len(self.names)

    def rows(self, context: int) -> range:
        """Rows of a context."""
        return range(self.starts[context], self.starts[context + 1])

    def blocks(self) -> list[range]:
        """Rows of every context."""
        return [self.rows(context) for context in range(len(self))]

    def index(self, context: str | SupportsIndex) -> int:
        """Find the number of a context, given its name or the number itself.

        Raises
        ------
        KeyError
            If there is no such context.
        ValueError
            If this is neither a name nor a whole number.
        """
        if isinstance(context, str):
            if context not in self.names:
                raise KeyError(unknown_name("context", context, self.names))
            return self.names.index(context)
        try:
            if isinstance(context, bool | np.bool_):
                raise TypeError
            number = operator.index(context)
        except TypeError:
            raise ValueError(f"a context is a name or a number, got {shown(context)}") from None
        if not 0 <= number < len(self):
            raise KeyError(
                f"contexts have the numbers 0 to {len(self) - 1}, got {shown(number)}: there are "
                f"{self.listed()}"
            )
        return number

    def listed(self) -> str:
        """Names for a sentence."""
        return listed(self.names)

    def contexts(self) -> Contexts:
        """Say what a policy is told of them."""
        given = self.probabilities
        law = None if given is None else valid_probabilities(given, len(self))
        return Contexts(np.array(self.starts, dtype=np.int64), law)

    def describe(self) -> dict[str, Any]:
        """Plain dictionary for a JSON file; :meth:`build` is the inverse."""
        given = self.probabilities
        return {
            "names": list(self.names),
            "starts": list(self.starts),
            "probabilities": None if given is None else list(given),
        }

    @classmethod
    def build(cls, description: Mapping[str, Any]) -> Blocks:
        """Inverse of :meth:`describe`."""
        if not isinstance(description, Mapping) or set(description) != set(_FIELDS):
            raise ValueError(f"contexts have {', '.join(_FIELDS)} and nothing else")
        return cls(**description)
