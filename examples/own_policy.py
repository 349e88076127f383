"""A policy of your own: first in plain NumPy, then compiled.  Both run in the same engine."""

from dataclasses import dataclass
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

import sightline as sl


class GreedyState(NamedTuple):
    """What changes is in arrays, written in place; plain numbers are configuration."""

    actions: NDArray[np.float64]
    epsilon: float
    inverse: NDArray[np.float64]  # V^-1
    theta: NDArray[np.float64]


class FastState(GreedyState):
    """The same under another name: functions are registered for the class of a state."""


@dataclass(frozen=True)
class EpsilonGreedy(sl.Policy):
    """With probability epsilon any arm, else the empirically best one."""

    epsilon: float = 0.1
    fast: bool = False

    def start(self, actions: NDArray[np.float64], noise_std: float) -> GreedyState:
        kind, d = FastState if self.fast else GreedyState, actions.shape[1]
        return kind(actions, self.epsilon, np.eye(d), np.zeros(d))


def choose(state: GreedyState, clock: sl.Clock, rng: np.random.Generator) -> sl.Choice:
    k, best = state.actions.shape[0], np.argmax(state.actions @ state.theta)
    arm = rng.integers(0, k) if rng.random() < state.epsilon else best
    return sl.Choice(int(arm), state.epsilon / k + (1.0 - state.epsilon) * (arm == best), clock)


def update(state: GreedyState, arm: int, reward: float) -> None:
    x = state.actions[arm]
    w = state.inverse @ x
    state.theta[:] += w * (reward - x @ state.theta) / (1.0 + x @ w)
    state.inverse[:] -= np.outer(w, w) / (1.0 + x @ w)


for kind, decorate in ((GreedyState, lambda function: function), (FastState, numba.njit)):
    sl.choose.register(kind)(decorate(choose))
    sl.update.register(kind)(decorate(update))

if __name__ == "__main__":
    for fast in (False, True):
        policy = EpsilonGreedy(fast=fast)
        run = sl.simulate(sl.problems.unit_sphere(k=6, d=2, seed=3), policy, horizon=20_000)
        print(f"{policy}: regret {run.regret[-1]:.1f}")
