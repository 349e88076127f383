"""Context distribution: known, counted, or represented by a sample of past action sets.

A bandit has one context, of probability 1.

If arms are new in every round, the value of an exploration depends on the arms of later rounds.
A reservoir keeps R of the past action sets, each with the same probability (Vitter, 1985).  These
and the present set represent the distribution: each is a context of a table, with equal
probabilities.

| rows of the table         | hold                                                   |
|---------------------------|--------------------------------------------------------|
| 0 to most - 1             | the present set, its first arm repeated at the end     |
| most                      | the arm of a late outcome                              |
| then ``most`` for each    | sets of the reservoir                                  |
"""

from __future__ import annotations

import enum
import math
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ActionSet
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import note_information, show_arms
from sightline.core.linalg import Array, Ints
from sightline.core.model import Contexts, Model
from sightline.core.persistence import invariant, persists, shares, whole
from sightline.jit import compiled

#: R: sixteen sets represent future ones well, and cost sixteen times the present one.
SETS_KEPT = 16


class ContextKind(enum.IntEnum):
    """Sources of the probabilities of contexts."""

    KNOWN = 0
    COUNTED = 1  # (n_c + 1) / (n + C)
    SAMPLED = 2  # equal for all sets of a reservoir


# compiled code reads plain numbers
KNOWN, COUNTED, SAMPLED = (int(kind) for kind in ContextKind)


@persists("probabilities", "counts", "sets", "sets_seen")
class ContextDistribution(NamedTuple):
    """Probabilities of the contexts of a table, and their source."""

    kind: int  # a ContextKind
    probabilities: Array  # (C,)
    counts: Array  # (C,): how often each has come, if counted; else (0,)
    sets: Array  # (R, most, d): the reservoir, if sampled; else (0, 0, 0)
    sets_seen: Ints  # (1,): sets that have come


@invariant(ContextDistribution)
def _check(part: ContextDistribution, name: str) -> None:
    whole(f"{name}.counts", part.counts)
    whole(f"{name}.sets_seen", part.sets_seen)
    if part.kind != SAMPLED:
        shares(f"{name}.probabilities", part.probabilities)


def context_distribution(contexts: Contexts | None, estimated: bool) -> ContextDistribution:
    """Distribution of the contexts of a model before any data."""
    count = 1 if contexts is None else len(contexts)
    kind, probabilities, counts = KNOWN, np.full(count, 1.0 / count), np.zeros(0)
    if contexts is not None:
        if contexts.probabilities is None or estimated:
            kind, counts = COUNTED, np.zeros(count)
        else:
            probabilities = contexts.probabilities.copy()
    sets, seen = np.zeros((0, 0, 0)), np.zeros(1, dtype=np.int64)
    return ContextDistribution(kind, probabilities, counts, sets, seen)


def sample_of_sets(model: Model) -> ContextDistribution:
    """Empty reservoir, for a model of :meth:`Model.with_reservoir`."""
    assert model.contexts is not None
    count, most, d = len(model.contexts) - 2, model.stream, model.rewards.shape[1]
    sets, seen = np.zeros((count, most, d)), np.zeros(1, dtype=np.int64)
    return ContextDistribution(SAMPLED, np.zeros(count + 2), np.zeros(0), sets, seen)


@compiled
def log_probability(distribution: ContextDistribution, context: int) -> float:
    """Logarithm of the probability of a context; -inf for one that does not come."""
    if distribution.probabilities.shape[0] == 1:
        return 0.0
    probability = distribution.probabilities[context]
    return math.log(probability) if probability > 0.0 else -math.inf


@compiled
def note_action_set(
    distribution: ContextDistribution, actions: ActionSet, estimate: LeastSquares, rng: Generator
) -> None:
    """Count the context of a round, O(C), or sample its arms into the reservoir."""
    if distribution.kind == COUNTED:
        counts = distribution.counts
        counts[actions.context] += 1.0
        total = float(counts.shape[0])
        for c in range(counts.shape[0]):
            total += counts[c]
        for c in range(counts.shape[0]):
            distribution.probabilities[c] = (counts[c] + 1.0) / total
    elif distribution.kind == SAMPLED:
        sets, seen = distribution.sets, distribution.sets_seen
        place = seen[0]
        seen[0] += 1
        if place >= sets.shape[0]:
            place = int(rng.random() * seen[0])
        if place < sets.shape[0]:
            for z in range(sets.shape[1]):
                for i in range(sets.shape[2]):
                    sets[place, z, i] = estimate.arms.rewards[z, i]


@compiled
def show_sets(
    distribution: ContextDistribution, estimate: LeastSquares, rows: Array, start: int, stop: int
) -> None:
    """Put the arms of a round into the table beside past sets; or the arm of a late outcome."""
    sets, probabilities = distribution.sets, distribution.probabilities
    most = sets.shape[1]
    show_arms(estimate, rows, start, stop)
    if start > 0:
        return
    arms = estimate.arms
    for z in range(stop, most):  # equal to the first one, to the last bit: never preferred to it
        for i in range(arms.rewards.shape[1]):
            arms.rewards[z, i] = arms.rewards[0, i]
            arms.columns[i, z] = arms.columns[i, 0]
        arms.means[z] = arms.means[0]
        arms.squared_widths[z] = arms.squared_widths[0]
        note_information(arms.observations.fit, estimate, z, z + 1)
        arms.refreshed_widths[z] = arms.refreshed_widths[0]
    filled = min(distribution.sets_seen[0], sets.shape[0])
    for r in range(filled):
        show_arms(estimate, sets[r], most + 1 + r * most, most + 1 + (r + 1) * most)
    for c in range(probabilities.shape[0]):
        comes = c == 0 or 2 <= c < filled + 2
        probabilities[c] = 1.0 / (filled + 1) if comes else 0.0
