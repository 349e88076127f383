"""Policies as a user would write them, and wrappers that look into the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from sightline.core.clock import Clock, is_before, never, tick
from sightline.core.model import Model
from sightline.jit import uncached
from sightline.policies.base import Choice, Policy, best_of, choose, register_policy, update


class EpsilonGreedyState(NamedTuple):
    actions: NDArray[np.float64]
    epsilon: float
    gram: NDArray[np.float64]
    moment: NDArray[np.float64]


@dataclass(frozen=True)
class EpsilonGreedy(Policy):
    """Plain NumPy: the engine runs it uncompiled."""

    epsilon: float = 0.1

    def start(self, model: Model) -> EpsilonGreedyState:
        d = model.rewards.shape[1]
        return EpsilonGreedyState(model.rewards, self.epsilon, np.eye(d), np.zeros(d))


def choose_epsilon_greedy(
    state: EpsilonGreedyState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    k = len(state.actions)
    greedy = int(np.argmax(state.actions @ np.linalg.solve(state.gram, state.moment)))
    arm = int(rng.integers(k)) if rng.random() < state.epsilon else greedy
    probability = state.epsilon / k + (1.0 - state.epsilon) * (arm == greedy)
    return Choice(arm, probability, clock)


def update_epsilon_greedy(state: EpsilonGreedyState, clock: Clock, arm: int, reward: float) -> None:
    x = state.actions[arm]
    state.gram[...] += np.outer(x, x)
    state.moment[...] += x * reward


register_policy(EpsilonGreedyState, choose=choose_epsilon_greedy, update=update_epsilon_greedy)


class RestlessState(NamedTuple):
    inner: Any


@dataclass(frozen=True)
class Restless(Policy):
    """Cuts every commitment of a compiled policy to one round: a run that asks every round."""

    inner: Policy

    @property
    def commits(self) -> bool:
        return True

    @property
    def supports(self) -> sl.extend.Supports:
        return self.inner.supports

    def start(self, model: Model) -> RestlessState:
        return RestlessState(self.inner.start(model))


@uncached
def choose_restless(
    state: RestlessState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    choice = choose(state.inner, clock, offer, rng)
    wake = tick(clock) if is_before(clock, choice.wake) else choice.wake
    return Choice(choice.arm, choice.probability, wake)


@uncached
def update_restless(state: RestlessState, clock: Clock, arm: int, reward: float) -> None:
    update(state.inner, clock, arm, reward)


@uncached
def best_of_restless(state: RestlessState, clock: Clock, offer: Any) -> int:
    return best_of(state.inner, clock, offer)


register_policy(
    RestlessState, choose=choose_restless, update=update_restless, best_of=best_of_restless
)


class StubbornState(NamedTuple):
    arm: int
    rewards: list[float]
    explorations: int


@dataclass(frozen=True)
class Stubborn(Policy):
    """Explores one arm for a while, keeps the rewards, then commits to the arm for ever."""

    arm: int
    explorations: int = 0

    @property
    def commits(self) -> bool:
        return True

    def start(self, model: Model) -> StubbornState:
        return StubbornState(self.arm, REWARDS.setdefault(self, []), self.explorations)


#: Rewards that every stubborn policy has seen, by policy.
REWARDS: dict[Stubborn, list[float]] = {}


def choose_stubborn(
    state: StubbornState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    rng.random()  # decisions draw from their own stream
    return Choice(state.arm, 1.0, clock if clock.t <= state.explorations else never())


def update_stubborn(state: StubbornState, clock: Clock, arm: int, reward: float) -> None:
    state.rewards.append(reward)


register_policy(StubbornState, choose=choose_stubborn, update=update_stubborn)


def arms_played(run: sl.types.Trajectory) -> NDArray[np.int64]:
    """Sequence of arms of a run that was recorded after every round."""
    pulls = np.vstack([np.zeros(run.pulls.shape[1]), run.pulls])
    played: NDArray[np.int64] = np.diff(pulls, axis=0).argmax(axis=1)
    return played
