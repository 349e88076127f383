"""Sets of arms that have come, as a sample of those to come: a bounded memory of a stream.

What an exploration is worth depends on the arms of later rounds.  A reservoir keeps R of the sets
seen so far, each with the same probability (Vitter, 1985), and together with the present one they
stand for all: every set is a context of a table, with equal probabilities.

| rows of the table         | hold                                                   |
|---------------------------|--------------------------------------------------------|
| 0 to most - 1             | the present set, its first arm repeated at the end     |
| most                      | the arm of an outcome that is told late                |
| then ``most`` for each    | sets of the reservoir                                  |
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.consistency import invariant, whole
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.frequencies import (
    Always,
    Counted,
    Told,
    log_frequency,
    log_of_several,
    note_nothing,
    note_offer,
)
from sightline.core.estimation.least_squares import note_worth, show_arms
from sightline.core.model import Model
from sightline.core.persistence import persists
from sightline.jit import compiled, generic

__all__ = ["SETS_KEPT", "Reservoir", "remember", "reservoir", "show_sets"]

Array = NDArray[np.float64]

#: R: sixteen sets say enough of those to come, and cost sixteen times the present one.
SETS_KEPT = 16


@persists("sets", "seen")
class Reservoir(NamedTuple):
    """A sample of past sets; see the table above."""

    sets: Array  # (R, most, d)
    seen: NDArray[np.int64]  # (1,): sets that have come
    probabilities: Array  # (R + 2,): of the blocks of the table


@invariant(Reservoir)
def _check(kept: Reservoir, name: str) -> None:
    whole(f"{name}.seen", kept.seen)


def reservoir(model: Model) -> Reservoir:
    """Empty reservoir, for a model of :meth:`Model.with_reservoir`."""
    assert model.contexts is not None
    count, most, d = len(model.contexts) - 2, model.stream, model.rewards.shape[1]
    sets, seen = np.zeros((count, most, d)), np.zeros(1, dtype=np.int64)
    return Reservoir(sets, seen, np.zeros(count + 2))


log_frequency.register(Reservoir)(log_of_several)
note_offer.register(Reservoir)(note_nothing)


@compiled
def _repeat_first(estimate: LeastSquares, z: int) -> None:
    """Make an arm the twin of the first one, to the last bit: it is then never preferred to it."""
    arms = estimate.arms
    for i in range(arms.rewards.shape[1]):
        arms.rewards[z, i] = arms.rewards[0, i]
        arms.columns[i, z] = arms.columns[i, 0]
    arms.means[z] = arms.means[0]
    arms.squared_widths[z] = arms.squared_widths[0]
    note_worth(arms.seen, estimate, z, z + 1)
    arms.refreshed_widths[z] = arms.refreshed_widths[0]


@compiled
def show_sets(kept: Reservoir, estimate: LeastSquares, rows: Array, start: int, stop: int) -> None:
    """Put the arms of a round into the table, and past sets beside them; or one arm told late."""
    most = kept.sets.shape[1]
    show_arms(estimate, rows, start, stop)
    if start > 0:
        return
    for z in range(stop, most):
        _repeat_first(estimate, z)
    filled = min(kept.seen[0], kept.sets.shape[0])
    for r in range(filled):
        show_arms(estimate, kept.sets[r], most + 1 + r * most, most + 1 + (r + 1) * most)
    for c in range(kept.probabilities.shape[0]):
        comes = c == 0 or 2 <= c < filled + 2
        kept.probabilities[c] = 1.0 / (filled + 1) if comes else 0.0


@generic
def remember(kept: Any, estimate: LeastSquares, rng: np.random.Generator) -> None:
    """Take the present set into the reservoir, perhaps."""
    raise TypeError(f"{type(kept).__name__} does not say how often contexts come")


@remember.register(Always)
@remember.register(Told)
@remember.register(Counted)
@compiled
def _remember_nothing(kept: Any, estimate: LeastSquares, rng: np.random.Generator) -> None:
    pass


@remember.register(Reservoir)
@compiled
def _remember_set(kept: Reservoir, estimate: LeastSquares, rng: np.random.Generator) -> None:
    place = kept.seen[0]
    kept.seen[0] += 1
    if place >= kept.sets.shape[0]:
        place = int(rng.random() * kept.seen[0])
        if place >= kept.sets.shape[0]:
            return
    for z in range(kept.sets.shape[1]):
        for i in range(kept.sets.shape[2]):
            kept.sets[place, z, i] = estimate.arms.rewards[z, i]
