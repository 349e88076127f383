"""Brute-force SOLID and SOLID++: every round from the whole data, as the specification writes it.

w(x) are plain weights, multiplied and normalised; alternatives solve their optimality conditions.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tests import naive
from tests.naive import Array, Ints

UNIFORM_SHARE = 1e-6


@dataclass(frozen=True)
class Constants:
    """The constants of one configuration; a step of None is 1 / sqrt(p_k)."""

    reset: bool
    kappa: float
    steps: tuple[float | None, float | None] = (None, None)
    z_0: float = 1.0
    lambda_1: float = 0.0
    lambda_max: float | None = None  # None: range_of_means * z_k
    range_of_means: float = 2.0


class SolidTrace(NamedTuple):
    """Arms, w before every round, lambda after it, and whether the round explored."""

    arms: Ints
    weights: Array
    multipliers: Array
    explored: Array


def design(actions: Array, w: Array) -> Array:
    """Return V_w, with the share of the uniform distribution that keeps it regular."""
    mixed = (1.0 - UNIFORM_SHARE) * w + UNIFORM_SHARE / len(w)
    V: Array = (actions.T * mixed) @ actions
    return V


def information(actions: Array, theta: Array, w: Array, noise_std: float) -> tuple[float, Array]:
    """Return min over z of the information of w against nu(z), and its derivative in w."""
    V = design(actions, w)
    xhat = int(np.argmax(actions @ theta))
    best, gradient = math.inf, np.zeros(len(actions))
    for z in range(len(actions)):
        if np.any(actions[z] != actions[xhat]):
            shift = naive.alternative_kkt(theta, V, actions[xhat], actions[z]) - theta
            value = float(shift @ V @ shift) / (2.0 * noise_std**2)
            if value < best:
                best, gradient = value, (actions @ shift) ** 2 / (2.0 * noise_std**2)
    return best, gradient


class Dual(NamedTuple):
    """w, lambda, exploration rounds, those of the phase, and the phase."""

    w: Array
    multiplier: float
    s: int = 0
    inside: int = 0
    phase: int = 0


def step(now: Dual, actions: Array, theta: Array, V: Array, beta: naive.Beta, c: Constants) -> Dual:
    """Return w, lambda and the phase after one exploration round."""
    s, inside = now.s + 1, now.inside + 1
    z = c.z_0 * math.exp(now.phase)
    p = z * math.exp(2 * now.phase)
    alpha_w, alpha_l = (1.0 / math.sqrt(p) if a is None else a for a in c.steps)
    gamma = beta.local(V, s)
    cw = np.array([math.sqrt(gamma * naive.squared_norm(x, V)) for x in actions])
    value, gradient = information(actions, theta, now.w, beta.noise_std)
    g = value + c.kappa * float(now.w @ cw) - 1.0 / z
    q = actions @ theta + cw + now.multiplier * (gradient + c.kappa * cw)
    w = now.w * np.exp(alpha_w * (q - q.max()))
    bound = c.range_of_means * z if c.lambda_max is None else c.lambda_max
    multiplier = min(max(now.multiplier - alpha_l * g, 0.0), bound)
    if inside < p:
        return Dual(w / w.sum(), multiplier, s, inside, now.phase)
    if c.reset:
        return Dual(np.full(len(w), 1.0 / len(w)), c.lambda_1, s, 0, now.phase + 1)
    return Dual(w / w.sum(), multiplier, s, 0, now.phase + 1)


def solid(world: naive.World, beta: naive.Beta, c: Constants, rounds: int) -> SolidTrace:
    """Play SOLID, learning from every round."""
    k = len(world.actions)
    played: list[int] = []
    rewards: list[float] = []
    weights, multipliers, explored = [], [], []
    now = Dual(np.full(k, 1.0 / k), c.lambda_1)
    for t in range(1, rounds + 1):
        xs = world.actions[played]
        V = naive.covariance(xs, beta.regulariser)
        theta = naive.ridge(xs, np.array(rewards), beta.regulariser)
        xhat = int(np.argmax(world.actions @ theta))
        distances = naive.alternatives(world.actions, theta, V, xhat)[1]
        explored.append(distances.min() < beta.exploitation(V, t))
        weights.append(now.w)
        arm = xhat
        if explored[-1]:
            u = world.decisions.random()
            arm = min(int(np.searchsorted(np.cumsum(now.w), u, side="right")), k - 1)
            now = step(now, world.actions, theta, V, beta, c)
        multipliers.append(now.multiplier)
        played.append(arm)
        rewards.append(world.pull(arm))
    return SolidTrace(
        np.array(played), np.array(weights), np.array(multipliers), np.array(explored)
    )
