"""How often each context comes: told, or counted.

With fixed arms there is one, and it always comes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, shares, whole
from sightline.core.model import Contexts, OneContext
from sightline.core.persistence import migration, persists, state_version
from sightline.jit import compiled, generic

__all__ = [
    "Always",
    "Counted",
    "Told",
    "frequencies",
    "log_frequency",
    "log_of_several",
    "note_nothing",
    "note_offer",
]

Array = NDArray[np.float64]


class Always(NamedTuple):
    """Fixed arms."""

    code: int = 0  # numba knows no empty named tuples


@persists()
class Told(NamedTuple):
    """Probabilities that are known."""

    probabilities: Array  # (C,)


@state_version(2)
@persists("counts", "probabilities")
class Counted(NamedTuple):
    """Probabilities from the contexts seen: (n_c + 1) / (n + C)."""

    counts: Array  # (C,)
    probabilities: Array  # (C,), of the last count


@migration(Counted, 1)
def _with_probabilities(arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Add what used to be all alike until the next count."""
    counts = arrays["counts"]
    return arrays | {"probabilities": (counts + 1.0) / (counts.sum() + len(counts))}


@invariant(Counted)
def _check(law: Counted, name: str) -> None:
    whole(f"{name}.counts", law.counts)
    shares(f"{name}.probabilities", law.probabilities)


def frequencies(contexts: Contexts | None, estimated: bool) -> Always | Told | Counted:
    """Say what is known of the contexts of a model before any data."""
    if contexts is None:
        return Always()
    if contexts.probabilities is None or estimated:
        count = len(contexts)
        return Counted(np.zeros(count), np.full(count, 1.0 / count))
    return Told(contexts.probabilities.copy())


@generic
def log_frequency(law: Any, context: int) -> float:
    """Logarithm of the probability of a context."""
    raise TypeError(f"{type(law).__name__} does not say how often contexts come")


@log_frequency.register(Always)
@compiled
def _log_of_one(law: Always, context: int) -> float:
    return 0.0


@log_frequency.register(Told)
@log_frequency.register(Counted)
@compiled
def log_of_several(law: Any, context: int) -> float:
    """Logarithm of a probability; -inf for a context that does not come."""
    probability = law.probabilities[context]
    return math.log(probability) if probability > 0.0 else -math.inf


@generic
def note_offer(law: Any, offer: Any) -> None:
    """Take note of the context of an offer."""
    raise TypeError(f"{type(law).__name__} does not say how often contexts come")


@note_offer.register(Always)
@note_offer.register(Told)
@compiled
def note_nothing(law: Any, offer: Any) -> None:
    """Count nothing."""


@note_offer.register(Counted)
@compiled
def _count(law: Counted, offer: OneContext) -> None:
    """O(C)."""
    law.counts[offer.context] += 1.0
    total = float(law.counts.shape[0])
    for c in range(law.counts.shape[0]):
        total += law.counts[c]
    for c in range(law.counts.shape[0]):
        law.probabilities[c] = (law.counts[c] + 1.0) / total
