"""A policy of your own: first in plain NumPy, then compiled.  Both run in the same loop."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

from sightline import extend, problems, simulate


class GreedyState(NamedTuple):
    """What changes is in arrays, written in place; plain numbers are configuration."""

    actions: np.ndarray
    epsilon: float
    inverse: np.ndarray  # V^-1
    theta: np.ndarray


class FastState(GreedyState):
    """The same under another name: functions are registered by class."""


@dataclass(frozen=True)
class EpsilonGreedy(extend.Policy):
    """With probability epsilon a random arm, else the empirically best one."""

    epsilon: float = 0.1
    fast: bool = False
    supports = extend.Supports(masks=True, contexts=True)  # choose looks at what is on offer

    def start(self, model: extend.Model) -> GreedyState:
        kind, d = FastState if self.fast else GreedyState, model.rewards.shape[1]
        return kind(model.rewards, self.epsilon, np.eye(d), np.zeros(d))


def choose(state: GreedyState, clock: extend.Clock, offer: Any, rng: Any) -> extend.Choice:
    n = extend.number_offered(offer, len(state.actions))
    best = extend.first_largest_offered(offer, state.actions @ state.theta)
    arm = extend.nth_offered(offer, int(n * rng.random())) if rng.random() < state.epsilon else best
    return extend.Choice(arm, state.epsilon / n + (1.0 - state.epsilon) * (arm == best), clock)


def update(state: GreedyState, clock: extend.Clock, arm: int, reward: float) -> None:
    x = state.actions[arm]
    w = state.inverse @ x
    gain = w / (1.0 + x @ w)
    state.theta[:] += gain * (reward - x @ state.theta)
    state.inverse[:] -= np.outer(gain, w)


for kind, decorate in ((GreedyState, lambda function: function), (FastState, numba.njit)):
    extend.register_policy(kind, choose=decorate(choose), update=decorate(update))

for problem in (problems.unit_sphere(seed=3), problems.contextual_simple()):
    for fast in (False, True):
        run = simulate(problem, EpsilonGreedy(fast=fast), horizon=5_000)
        print(f"{problem.name}, compiled: {fast}, regret {run.regret[-1]:.1f}")
