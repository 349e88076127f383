"""Linear bandits, contextual linear bandits and linear games (linear partial monitoring).

Rewards of bandits are <x, theta> + noise, homoscedastic or heteroscedastic, or follow a generalised
linear model such as clicks and counts.  In a game, rewards and observations differ.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.likelihood import (
    Gaussian,
    Likelihood,
    LikelihoodKind,
    kind_of,
    mean_of,
    valid_likelihood,
    variance_of,
)
from sightline.core.linalg import Array, Ints
from sightline.core.model import Contexts, bandit_model, game_model
from sightline.jit import interpreted
from sightline.problems.base import TableProblem, World
from sightline.problems.noise import Counts, FromLikelihood, check_sampler, noise_of_likelihood
from sightline.validation import action_set, entries, finite_array, scale, shown

_ROUNDING = 1e-9  # by which the sum of probabilities may differ from 1
_EXACT = 1e-14  # what remains after normalisation: normalising again would change bits


class NoisyRewards(TableProblem):
    """Arms x with rewards <x, theta> + noise, or a likelihood with mean mu(<x, theta>)."""

    def __init__(
        self,
        actions: Array,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None,
        noise: Any,
        rewards: Likelihood | None,
        name: str,
    ) -> None:
        super().__init__(actions, theta, name)
        self.likelihood: Likelihood | None = None  # None: <x, theta> + noise
        self.unknown_noise: Gaussian | None = None  # if policies do not know the noise level
        if isinstance(rewards, Gaussian) and rewards.std is None:
            self.unknown_noise, rewards = rewards, None
        options = {"noise_std": noise_std, "noise": noise, "rewards": rewards}
        given = [name for name, value in options.items() if value is not None]
        if len(given) > 1:
            raise ValueError(f"give {' or '.join(given)}, not both")
        if rewards is not None:
            noise_std, noise = self._set_likelihood(valid_likelihood(rewards))
        self._set_noise(noise_std, noise, self.means)

    def _set_likelihood(self, rewards: Likelihood) -> tuple[float | None, Any]:
        """Compute means from a likelihood; return the noise level, or the reward distribution."""
        if isinstance(rewards, Gaussian):
            return rewards.std, None
        self.likelihood, likelihood, predictors = rewards, rewards.as_tuple, self.means
        if (
            kind_of(likelihood) != LikelihoodKind.IDENTITY
        ):  # there the predictor is the mean, bit for bit
            # interpreted: compiling a kernel would take longer
            self.means = np.array([interpreted(mean_of)(likelihood, u) for u in self.means])
            self.means.setflags(write=False)
        if not np.isfinite(self.means).all():
            raise ValueError(f"mean rewards of {rewards} must be finite, got {shown(self.means)}")
        noise = noise_of_likelihood(likelihood)
        if isinstance(noise, Counts):
            noise = Counts(float(np.sqrt(self.means.max())))
        if isinstance(noise, FromLikelihood):
            variances = [interpreted(variance_of)(likelihood, u) for u in predictors]
            noise = FromLikelihood(
                likelihood, scale("deviation of a reward", math.sqrt(max(variances)))
            )
        return None, noise

    @property
    def likelihood_tuple(self) -> Any:
        """Likelihood of the rewards, as kernels take it; None for <x, theta> + noise."""
        return None if self.likelihood is None else self.likelihood.as_tuple

    def _set_model(self, contexts: Contexts | None = None) -> None:
        """Set what policies see, without the noise level if it is unknown to them."""
        model = bandit_model(self.actions, self.noise_std, self.likelihood_tuple)
        if self.unknown_noise is not None:
            model = model.without_noise_level(self.unknown_noise.guess)
        self.model = dataclasses.replace(model, contexts=contexts)
        self._set_best()

    def world(self) -> World:
        """Make the environment of one run: rewards, in units of the noise of their arm."""
        check_sampler(self.noise)
        return super().world()

    def _mean_outcomes(self) -> Array:
        assert self.model.weights is not None
        return (self.model.weights * self.means)[:, None]

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.likelihood, self.unknown_noise)


class LinearBandit(NoisyRewards):
    """A linear bandit: arms x with rewards <x, theta> + noise; compared by contents.

    In a generalised linear bandit the rewards follow a likelihood with mean mu(<x, theta>) instead.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        One arm per row.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise: one for all arms, or one per arm (heteroscedastic
        noise).  Excludes ``noise``.
    noise : distribution, optional
        Another reward distribution of :mod:`sightline.problems`; a ``Sampler`` for custom noise.
    rewards : Bernoulli, Poisson or Gaussian, optional
        Likelihood of the rewards, known to policies; replaces ``noise_std`` and ``noise``.
        ``Gaussian(std=None)`` can be combined with these: policies then know at most the ratios of
        noise levels, and a guess.
    name : str
        How results refer to the problem.

    Attributes
    ----------
    means, gaps : ndarray, shape (k,)
        Mean reward and suboptimality gap of every arm.
    best : int
        Arm with the largest mean, the first one among equals.
    k, d : int
        Number of arms and dimension.
    noise_std : float or ndarray, shape (k,)
        Sub-Gaussian parameter sigma of the rewards; an array if it differs between arms.
    model : Model
        The part of the problem that a policy sees: arms, observations and noise, without theta.
    """

    best: int
    gaps: Array

    def __init__(
        self,
        actions: ArrayLike,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        rewards: Likelihood | None = None,
        name: str = "linear-bandit",
    ) -> None:
        super().__init__(action_set(actions), theta, noise_std, noise, rewards, name)
        self._set_model()

    def __repr__(self) -> str:
        if self.likelihood is not None:
            return f"LinearBandit({self.name!r}, k={self.k}, d={self.d}, {self.likelihood})"
        noise = self.noise if isinstance(self.noise_std, float) else f"{self.k} levels"
        if self.unknown_noise is not None:
            noise = f"{noise}, unknown"
        return f"LinearBandit({self.name!r}, k={self.k}, d={self.d}, noise={noise})"


class ContextualBandit(NoisyRewards):
    """A contextual linear bandit: i.i.d. contexts with an action set each, and one parameter.

    Regret compares with the best arm of the context of each round.

    Parameters
    ----------
    action_sets : sequence of array_like, shapes (k_c, d)
        The arms of every context, one per row; their numbers may differ.
    theta : array_like, shape (d,)
        True parameter.
    probabilities : array_like, shape (C,), optional
        Probability of every context; uniform by default.
    noise_std : float or array_like, shape (k,)
        Standard deviation of Gaussian noise: of all arms, or of each arm of the first context,
        then of the second, and so on.  Excludes ``noise``.
    noise, rewards, name
        As in :class:`LinearBandit`.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        All arms, context after context: k = k_1 + ... + k_C.
    starts : ndarray, shape (C + 1,)
        First row of every context among them; the last entry is k.
    means, gaps : ndarray, shape (k,)
        Mean reward of every arm, and its gap to the best arm of its context.
    best : ndarray, shape (C,)
        Row of the best arm of every context, the first one among equals.
    """

    best: Ints
    gaps: Array

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
        self.probabilities = valid_probabilities(probabilities, len(self.starts) - 1)
        self._set_model(Contexts(self.starts, self.probabilities))
        for array in (self.starts, self.probabilities, self.best):
            array.setflags(write=False)

    @property
    def action_sets(self) -> tuple[Array, ...]:
        """Arms of every context."""
        return tuple(np.split(self.actions, self.starts[1:-1]))

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.starts.tobytes(), self.probabilities.tobytes())

    def __repr__(self) -> str:
        return (
            f"ContextualBandit({self.name!r}, contexts={len(self.probabilities)}, k={self.k}, "
            f"d={self.d}, {self.likelihood or f'noise={self.noise}'})"
        )


def blocks_of(action_sets: object) -> tuple[Array, Ints]:
    """Stack the arms of all contexts; return the table and the first row of every context."""
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
    """Check positive probabilities that sum to 1; uniform by default."""
    if probabilities is None:
        return np.full(contexts, 1.0 / contexts)
    found = finite_array(
        "probabilities", probabilities, (contexts,), hint=", one per context", booleans=False
    )
    if not (found > 0).all():
        context = int(np.argmax(found <= 0))
        raise ValueError(
            f"probabilities must be > 0, got {shown(float(found[context]))} for context {context}: "
            "leave out contexts that never occur"
        )
    total = found.sum()
    if abs(total - 1.0) > _ROUNDING:
        raise ValueError(f"probabilities must sum to 1, got {total:.10g}")
    normalised: Array = found / total
    return found if abs(total - 1.0) <= _EXACT else normalised


class LinearGame(TableProblem):
    """A game of linear partial monitoring: arms pay <x, theta> unseen, and show Y_x theta + noise.

    Kirschner, Lattimore, Krause (2020).  A bandit is a game in which every arm shows its reward.

    Parameters
    ----------
    rewards : array_like, shape (k, d)
        X: reward features.  An arm with a row of zeros pays nothing, and may show something.
    observations : array_like, shape (k, d) or (k, p, d)
        Y: observation features, of one number or p per arm.  A row of zeros shows nothing.
    theta : array_like, shape (d,)
        True parameter.
    noise_std : float or array_like, shape (k,) or (k, p)
        Standard deviation of Gaussian noise: of all observations, of each arm, or of each row.
        Excludes ``noise``.
    noise : distribution, optional
        Another distribution of :mod:`sightline.problems` of observations around their means.
    name : str
        How results refer to the game.

    Attributes
    ----------
    actions : ndarray, shape (k, d)
        X.
    observations : ndarray, shape (k, p, d)
        Y, as given.
    means, gaps : ndarray, shape (k,)
        Mean reward and suboptimality gap of every arm.
    best : int
        Arm with the largest mean, the first one among equals.
    k, p, d : int
        Number of arms, of observed numbers per arm, and dimension.
    noise_std : float or ndarray, shape (k,) or (k, p)
        Sub-Gaussian parameter of observations; an array if it differs.
    model : Model
        The part of the game that a policy sees.
    """

    best: int
    gaps: Array

    def __init__(
        self,
        rewards: ArrayLike,
        observations: ArrayLike,
        theta: ArrayLike,
        noise_std: float | ArrayLike | None = None,
        *,
        noise: Any = None,
        name: str = "linear-game",
    ) -> None:
        if noise is not None and noise_std is not None:
            raise ValueError("give noise_std or noise, not both")
        plain = game_model(rewards, observations)
        super().__init__(plain.rewards, theta, name)
        self.observations = plain.observations
        self.p = plain.observations_per_round
        self._set_noise(noise_std, noise, self.observations @ self.theta, self.p)
        self.model = game_model(self.actions, self.observations, self.noise_std)
        self._set_best()
        self.observations.setflags(write=False)

    def _mean_outcomes(self) -> Array:
        if self.model.shows_rewards:  # the means of the equivalent bandit, bit for bit
            return self.means[:, None].copy()
        return super()._mean_outcomes()

    def _value(self) -> tuple[object, ...]:
        return (*super()._value(), self.observations.shape, self.observations.tobytes())

    def __repr__(self) -> str:
        return (
            f"LinearGame({self.name!r}, k={self.k}, p={self.p}, d={self.d}, "
            f"noise={self.noise if isinstance(self.noise_std, float) else 'by row'})"
        )
