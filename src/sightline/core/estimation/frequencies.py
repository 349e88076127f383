"""How often each context comes: told, or counted."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, whole
from sightline.core.model import Contexts
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = ["Counted", "Told", "frequencies", "note_context"]

Array = NDArray[np.float64]


@persists()
class Told(NamedTuple):
    """Probabilities that are known."""

    probabilities: Array  # (C,)


@persists("counts")
class Counted(NamedTuple):
    """Probabilities from the contexts seen: (n_c + 1) / (n + C)."""

    counts: Array  # (C,)
    probabilities: Array  # (C,), of the last count


@invariant(Counted)
def _check(law: Counted, name: str) -> None:
    whole(f"{name}.counts", law.counts)


def frequencies(contexts: Contexts, estimated: bool) -> Told | Counted:
    """Say what is known of the contexts of a model before any data."""
    if contexts.probabilities is None or estimated:
        count = len(contexts)
        return Counted(np.zeros(count), np.full(count, 1.0 / count))
    return Told(contexts.probabilities.copy())


@generic
def note_context(law: Any, context: int) -> None:
    """Take note of a context that has come."""
    raise TypeError(f"{type(law).__name__} does not say how often contexts come")


@note_context.register(Told)
@compiled
def _note_nothing(law: Told, context: int) -> None:
    pass


@note_context.register(Counted)
@compiled
def _count(law: Counted, context: int) -> None:
    """O(C)."""
    law.counts[context] += 1.0
    total = float(law.counts.shape[0])
    for c in range(law.counts.shape[0]):
        total += law.counts[c]
    for c in range(law.counts.shape[0]):
        law.probabilities[c] = (law.counts[c] + 1.0) / total
