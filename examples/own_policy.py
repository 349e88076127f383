"""A policy of your own: first in plain NumPy, then compiled.  Both run in the same engine."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np

import sightline as sl


class GreedyState(NamedTuple):
    """What changes is in arrays, written in place; plain numbers are configuration."""

    actions: np.ndarray
    epsilon: float
    inverse: np.ndarray  # V^-1
    theta: np.ndarray


class FastState(GreedyState):
    """The same under another name: functions are registered for the class of a state."""


@dataclass(frozen=True)
class EpsilonGreedy(sl.Policy):
    """With probability epsilon any arm, else the empirically best one."""

    epsilon: float = 0.1
    fast: bool = False

    takes_some_arms = True  # contexts, too: choose looks at what is on offer

    def start(self, model: sl.Model) -> GreedyState:
        kind, d = FastState if self.fast else GreedyState, model.rewards.shape[1]
        return kind(model.rewards, self.epsilon, np.eye(d), np.zeros(d))


def choose(state: GreedyState, clock: sl.Clock, offer: Any, rng: np.random.Generator) -> sl.Choice:
    n, best = (
        sl.number_offered(offer, len(state.actions)),
        sl.first_largest_offered(offer, state.actions @ state.theta),
    )
    arm = sl.nth_offered(offer, int(n * rng.random())) if rng.random() < state.epsilon else best
    return sl.Choice(arm, state.epsilon / n + (1.0 - state.epsilon) * (arm == best), clock)


def update(state: GreedyState, clock: sl.Clock, arm: int, reward: float) -> None:
    x = state.actions[arm]
    w, error = state.inverse @ x, reward - x @ state.theta
    scale = 1.0 / (1.0 + x @ w)
    for i in range(w.size):  # compiled in a quarter of the time that array expressions take
        state.theta[i] += scale * error * w[i]
        for j in range(w.size):
            state.inverse[i, j] -= scale * w[i] * w[j]


for kind, decorate in ((GreedyState, lambda function: function), (FastState, numba.njit)):
    sl.register_policy(kind, choose=decorate(choose), update=decorate(update))

problems = {
    "fixed arms": sl.problems.unit_sphere(seed=3),
    "contexts": sl.ContextualBandit([np.eye(2), [[0.6, 0.8], [1.0, 0.0]]], theta=[1.0, 0.5]),
}
for name, problem in problems.items():
    for fast in (False, True):
        run = sl.simulate(problem, EpsilonGreedy(fast=fast), horizon=5_000)
        print(f"{name}, compiled: {fast}, regret {run.regret[-1]:.1f}")
