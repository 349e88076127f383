"""Brute-force truths for the relatives of IDS, LinUCB and Thompson sampling, round by round."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tests import naive, naive_family
from tests.naive import Array, Ints


class Now(NamedTuple):
    """What an exploration round of a policy that commits knows."""

    s: int
    theta: Array
    V: Array
    xhat: int
    shifts: Array
    distances: Array
    largest_m: float


def commit_or_explore(
    world: naive.World, beta: naive.Beta, rounds: int, explore: Callable[[Now], int]
) -> naive.Trace:
    """Play x-hat while m_s >= beta_{s, t log t} / 2, else learn from what `explore` plays."""
    actions = world.actions
    played: list[int] = []
    rewards: list[float] = []
    arms = np.zeros(rounds, dtype=np.int64)
    explored: npt.NDArray[np.bool_] = np.zeros(rounds, dtype=np.bool_)
    largest_m = 0.0
    for t in range(1, rounds + 1):
        xs, ys = actions[played], np.array(rewards)
        V, theta = naive.covariance(xs, beta.regulariser), naive.ridge(xs, ys, beta.regulariser)
        xhat = int(np.argmax(actions @ theta))
        shifts, distances = naive.alternatives(actions, theta, V, xhat)
        m = 0.5 * distances.min()
        largest_m = max(largest_m, m)
        arms[t - 1] = xhat
        if m < 0.5 * beta.exploitation(V, t):
            now = Now(len(played) + 1, theta, V, xhat, shifts, distances, largest_m)
            arms[t - 1], explored[t - 1] = explore(now), True
            played.append(int(arms[t - 1]))
            rewards.append(world.pull(played[-1]))
    xs = actions[played]
    estimate = naive.ridge(xs, np.array(rewards), beta.regulariser)
    covariance = naive.covariance(xs, beta.regulariser)
    return naive.Trace(arms, explored, np.zeros(0), estimate, covariance)


# --- primal-dual --------------------------------------------------------------------------------


@dataclass(frozen=True)
class PrimalDual:
    """The choices of the primal-dual method."""

    beta: naive.Beta
    optimism: str = "none"
    gaps: str = "floored"
    candidates: str = "others"
    learning_rate: str | float = "paper"


def _gains(actions: Array, now: Now, rules: PrimalDual, local: float, noise_std: float) -> Array:
    """Return 1/2 sum_z q(z) (|<nu(z) - theta, x>| + optimism(x))^2, or log det if that is zero."""
    q = naive_family.weights(rules.learning_rate, now.distances, now.largest_m, local, noise_std)
    optimism = np.zeros(len(actions))
    if rules.optimism != "none":
        kind = "halfspace" if rules.optimism == "all" else "ucb"
        optimism = naive.corrections(actions, now.theta, now.V, local, kind)
    gains = naive.information_gain(actions, now.shifts, q, optimism, now.xhat)
    if gains.max() > 0.0:
        return gains
    return np.log1p([naive.squared_norm(x, now.V) for x in actions])


def primal_dual(world: naive.World, rules: PrimalDual, rounds: int) -> naive.Trace:
    """Explore the arm of least gap per gain."""
    actions = world.actions

    def explore(now: Now) -> int:
        local = rules.beta.local(now.V, now.s)
        gains = _gains(actions, now, rules, local, world.noise_std)
        gaps = (actions[now.xhat] - actions) @ now.theta
        if rules.gaps == "value":
            gaps = naive.value_gaps(actions, now.theta, now.V, local)
        elif rules.gaps == "floored":
            gaps = np.maximum(gaps, world.noise_std / math.sqrt(now.s))
        prices = {
            x: gaps[x] / gains[x]
            for x in range(len(actions))
            if gains[x] > 0.0 and (rules.candidates == "all" or x != now.xhat)
        }
        return min(prices, key=lambda x: prices[x]) if prices else now.xhat

    return commit_or_explore(world, rules.beta, rounds, explore)


# --- top-two ------------------------------------------------------------------------------------


def top_two(
    world: naive.World, beta: naive.Beta, p: float, redraws: int, rounds: int
) -> tuple[naive.Trace, Ints]:
    """Explore leader or challenger; also count challengers: none, drawn, fallen back on."""
    actions, sigma = world.actions, world.noise_std
    kinds = np.zeros(3, dtype=np.int64)

    def explore(now: Now) -> int:
        root = np.asarray(np.linalg.cholesky(now.V).T, dtype=np.float64)

        def best_of_draw() -> int:
            eta = world.decisions.standard_normal(len(now.V))
            return int(np.argmax(actions @ (now.theta + sigma * naive.solve(root, eta))))

        leader = best_of_draw()
        if world.decisions.random() < p:
            kinds[0] += 1
            return leader
        r = now.distances / sigma**2
        chance = len(actions) / 2 * math.exp(-r.min() / 2)
        if leader != now.xhat or redraws * chance >= 2.0**-53:
            for _ in range(redraws):
                arm = best_of_draw()
                if arm != leader:
                    kinds[1] += 1
                    return arm
        kinds[2] += 1
        return int(np.argmin(r)) if leader == now.xhat else now.xhat

    return commit_or_explore(world, beta, rounds, explore), kinds


# --- policies that learn from every round -------------------------------------------------------


def rarely_switching(
    world: naive.World, beta: naive.Beta, growth: float, rounds: int
) -> tuple[Ints, int]:
    """Keep the UCB arm until det V is (1 + growth) times what it was; also count computations."""
    played: list[int] = []
    rewards: list[float] = []
    computed: list[Array] = []
    for t in range(1, rounds + 1):
        xs = world.actions[played]
        V = naive.covariance(xs, beta.regulariser)
        det = float(np.linalg.det(V))
        if not computed or det >= (1.0 + growth) * float(np.linalg.det(computed[-1])):
            computed.append(V)
            theta = naive.ridge(xs, np.array(rewards), beta.regulariser)
            scores = naive.ucb_scores(world.actions, theta, V, beta.exploitation(V, t))
            arm = int(np.argmax(scores))
        played.append(arm)
        rewards.append(world.pull(arm))
    return np.array(played), len(computed)


def inflation(rule: str | float, V: Array, t: int, beta: naive.Beta) -> float:
    """Return the standard deviation of a draw along V^-1/2, in units of the reward."""
    if rule == "agrawal-goyal":
        tau = max(t, 2)
        delta = 1.0 / (tau * math.log(tau))
        return beta.noise_std * math.sqrt(9.0 * len(V) * math.log(tau / delta))
    if rule == "abeille-lazaric":
        return math.sqrt(beta.exploitation(V, t))
    return beta.noise_std * float(rule)


def inflated_thompson(world: naive.World, rule: str | float, beta: naive.Beta, rounds: int) -> Ints:
    """Play the best arm of theta-hat + v V^-1/2 eta, the root being the inverse factor of V."""
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, rounds + 1):
        xs = world.actions[played]
        V = naive.covariance(xs, beta.regulariser)
        eta = world.decisions.standard_normal(len(V))
        root = np.asarray(np.linalg.cholesky(V).T, dtype=np.float64)
        spread = naive.solve(root, eta)
        theta = naive.ridge(xs, np.array(rewards), beta.regulariser)
        theta = theta + inflation(rule, V, t, beta) * spread
        played.append(int(np.argmax(world.actions @ theta)))
        rewards.append(world.pull(played[-1]))
    return np.array(played)
