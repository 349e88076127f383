"""A linear bandit with contexts: which arms can be played changes from round to round."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.likelihood.families import Likelihood
from sightline.core.model import Contexts, bandit_model
from sightline.problems.base import Arrivals, arrivals_of
from sightline.problems.rewards import NoisyRewards
from sightline.validation import action_set, entries, finite_array, shown

__all__ = ["ContextualBandit", "blocks_of", "valid_probabilities"]

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # by which probabilities may miss a sum of 1
_EXACT = 1e-14  # what is left after they were divided by it: doing so again would change bits


class ContextualBandit(NoisyRewards):
    """Contexts that are drawn independently, each with its own arms, and one parameter for all.

    Regret compares with the best arm of the context of each round.

    Parameters
    ----------
    action_sets : sequence of array_like, shapes (k_c, d)
        The arms of every context, one per row; their numbers may differ.
    theta : array_like, shape (d,)
        True parameter.
    probabilities : array_like, shape (C,), optional
        How often each context comes; all alike by default.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise: of all arms, or of each arm of the first context,
        then of the second, and so on.  Not allowed beside ``noise``.
    noise : distribution, optional
        Another reward distribution of :mod:`sightline.problems`.
    rewards : Bernoulli, Poisson or Gaussian, optional
        Law of the rewards, which policies are told: in place of ``noise_std`` and ``noise``.
    name : str
        How results refer to the problem.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        All arms, context after context: k = k_1 + ... + k_C.
    starts : ndarray, shape (C + 1,)
        First row of every context among them; the last entry is k.
    means, gaps : ndarray, shape (k,)
        Mean reward of every arm, and what it falls short of the best of its context.
    best : ndarray, shape (C,)
        Row of the best arm of every context, the first one among equals.
    """

    def __init__(
        self,
        action_sets: Sequence[ArrayLike],
        theta: ArrayLike,
        probabilities: ArrayLike | None = None,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        rewards: Likelihood | None = None,
        name: str = "contextual-bandit",
    ) -> None:
        actions, self.starts = blocks_of(action_sets)
        super().__init__(actions, theta, noise_std, noise, rewards, name)
        contexts = len(self.starts) - 1
        self.probabilities = valid_probabilities(probabilities, contexts)
        blocks = list(zip(self.starts[:-1], self.starts[1:], strict=True))
        rows = [start + self.means[start:stop].argmax() for start, stop in blocks]
        self.best: NDArray[np.int64] = np.array(rows)
        sizes = np.diff(self.starts)
        self.gaps = np.repeat(self.means[self.best], sizes) - self.means
        self.model = dataclasses.replace(
            self.told(bandit_model(self.actions, self.noise_std, self.law)),
            contexts=Contexts(self.starts, self.probabilities),
        )
        for array in (self.starts, self.probabilities, self.best, self.gaps):
            array.setflags(write=False)

    @property
    def action_sets(self) -> tuple[Array, ...]:
        """The arms of every context."""
        return tuple(np.split(self.actions, self.starts[1:-1]))

    def arrivals(self) -> Arrivals:
        """Make what draws contexts in one run."""
        return arrivals_of(self.starts, self.probabilities)

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.starts.tobytes(), self.probabilities.tobytes())

    def __repr__(self) -> str:
        return (
            f"ContextualBandit({self.name!r}, contexts={len(self.probabilities)}, k={self.k}, "
            f"d={self.d}, {self.likelihood or f'noise={self.noise}'})"
        )


def blocks_of(action_sets: object) -> tuple[Array, NDArray[np.int64]]:
    """All arms in one table, context after context, and the first row of each."""
    if isinstance(action_sets, np.ndarray):
        action_sets = list(action_sets) if action_sets.ndim else action_sets.item()
    if isinstance(action_sets, Mapping):
        raise ValueError("action_sets must be a list of one array per context, got a mapping")
    sets = entries("action_sets", action_sets, "a list of one array per context")
    blocks = [action_set(one, f"action_sets[{c}]") for c, one in enumerate(sets)]
    for c, block in enumerate(blocks):
        if block.shape[1] != blocks[0].shape[1]:
            raise ValueError(
                f"all contexts must have arms of one dimension, got {blocks[0].shape[1]} in "
                f"context 0 and {block.shape[1]} in context {c}"
            )
    starts = np.cumsum([0, *(len(block) for block in blocks)])
    return np.ascontiguousarray(np.vstack(blocks)), starts.astype(np.int64)


def valid_probabilities(probabilities: ArrayLike | None, contexts: int) -> Array:
    """Positive probabilities of so many contexts, which sum to 1; all alike by default."""
    if probabilities is None:
        return np.full(contexts, 1.0 / contexts)
    found = finite_array(
        "probabilities", probabilities, (contexts,), hint=", one per context", booleans=False
    )
    if not (found > 0).all():
        context = int(np.argmax(found <= 0))
        raise ValueError(
            f"probabilities must be > 0, got {shown(float(found[context]))} for context {context}: "
            "leave out contexts that never come"
        )
    total = found.sum()
    if abs(total - 1.0) > _ROUNDING:
        raise ValueError(f"probabilities must sum to 1, got {total:.10g}")
    normalised: Array = found / total
    return found if abs(total - 1.0) <= _EXACT else normalised
