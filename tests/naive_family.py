"""Brute-force truths for the whole IDS family, and Algorithm 1 played round by round."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests import naive
from tests.naive import Array


@dataclass(frozen=True)
class Rules:
    """The choices that make up a member of the family."""

    beta: naive.Beta
    information: str = "halfspace"
    sampling: str = "pair"
    gaps: str = "value"
    learning_rate: str | float = "paper"
    exploitation: str = "discard"


def distance(x: Array, z: Array, V: Array) -> float:
    """Return ||x - z|| in the norm of V^-1."""
    return math.sqrt(naive.squared_norm(x - z, V))


def difference_bound(x: Array, z: Array, theta: Array, V: Array, beta: float) -> float:
    """Return the upper confidence bound on <z - x, theta>."""
    return float((z - x) @ theta) + math.sqrt(beta) * distance(x, z, V)


def gap_estimates(
    rule: str, actions: Array, theta: Array, V: Array, beta: float, least: float
) -> Array:
    """Return the gaps of all arms; `least` is what the estimation error is lifted to."""
    xhat = int(np.argmax(actions @ theta))
    if rule == "value":
        return naive.value_gaps(actions, theta, V, beta)
    if rule == "thresholded":
        gaps = naive.value_gaps(actions, theta, V, beta)
    elif rule in ("difference", "difference-unlifted"):
        gaps = np.array(
            [max(difference_bound(x, z, theta, V, beta) for z in actions) for x in actions]
        )
        if rule == "difference-unlifted":
            return gaps
    else:
        error = max(difference_bound(actions[xhat], z, theta, V, beta) for z in actions)
        gaps = error + (actions[xhat] - actions) @ theta
    lifted: Array = gaps + max(0.0, least - gaps[xhat])
    return lifted


def weights(
    rule: str | float, distances: Array, largest_m: float, beta: float, noise_std: float
) -> Array:
    """Return q under a learning rate rule."""
    if rule in ("paper", "algorithm"):
        eta = naive.learning_rate(len(distances), largest_m, noise_std)
        return naive.mixing_weights(distances, eta, noise_std, str(rule))
    eta = noise_std / math.sqrt(beta) if rule == "inverse-sqrt-beta" else float(rule)
    finite = np.where(np.isfinite(distances), distances, 0.0)
    q = np.exp(-0.5 * eta * (finite - distances.min()) / noise_std**2)
    q[~np.isfinite(distances)] = 0.0
    normalised: Array = q / q.sum()
    return normalised


def log_shrinkage(actions: Array, V: Array, direction: Array) -> Array:
    """Return by how much log of the squared width in a direction falls with each arm."""
    before = naive.squared_norm(direction, V)
    if before == 0.0:
        return np.zeros(len(actions))
    after = [naive.squared_norm(direction, V + np.outer(x, x)) for x in actions]
    shrinkage: Array = np.log(before) - np.log(after)
    return shrinkage


def plausible_direction(actions: Array, theta: Array, V: Array, beta: float) -> Array:
    """Return the widest difference to x-hat of an arm not refuted, or that of the nearest one."""
    xhat = int(np.argmax(actions @ theta))
    best = actions[xhat]
    others = [z for z in actions if np.any(z != best)]
    plausible = [z for z in others if difference_bound(best, z, theta, V, beta) >= 0.0]
    if plausible:
        other = max(plausible, key=lambda z: distance(best, z, V))
    else:
        other = min(others, key=lambda z: float((best - z) @ theta) / distance(best, z, V))
    direction: Array = best - other
    return direction


@dataclass(frozen=True)
class Round:
    """What an exploration round knows."""

    actions: Array
    theta: Array
    V: Array
    beta: float
    noise_std: float
    largest_m: float
    shifts: Array  # of the alternatives that the gain weighs
    distances: Array

    def gains(self, information: str, learning_rate: str | float) -> Array:
        """Return the information gain of all arms."""
        gains = self._gains(information, learning_rate)
        return gains if gains.max() > 0.0 else self._log_det()

    def _log_det(self) -> Array:
        return np.log1p([naive.squared_norm(x, self.V) for x in self.actions])

    def _gains(self, information: str, learning_rate: str | float) -> Array:
        actions, theta, V, beta = self.actions, self.theta, self.V, self.beta
        xhat = int(np.argmax(actions @ theta))
        if information == "log-det":
            return self._log_det()
        if information == "ucb-directed":
            ucb = int(np.argmax(naive.ucb_scores(actions, theta, V, beta)))
            return log_shrinkage(actions, V, actions[ucb])
        if information == "directed":
            return log_shrinkage(actions, V, plausible_direction(actions, theta, V, beta))
        if information == "laplace":
            return self._laplace(xhat)
        q = weights(learning_rate, self.distances, self.largest_m, beta, self.noise_std)
        kind = "halfspace" if information in ("halfspace", "cell") else "ucb"
        optimism = naive.corrections(actions, theta, V, beta, kind)
        if information == "plain":
            optimism = np.zeros(len(actions))
        return naive.information_gain(actions, self.shifts, q, optimism, xhat)

    def _laplace(self, xhat: int) -> Array:
        """Entropy reduction to first order; only its proportions matter."""
        r = self.distances / self.noise_std**2
        posterior = np.exp(-0.5 * (r - r.min()))
        posterior[xhat] = 0.0
        log_odds = np.where(np.isfinite(r), 0.5 * r, 0.0)  # log q(x-hat) - log q(z)
        q = np.where(np.isfinite(r), posterior, 0.0) * log_odds
        gains: Array = 0.5 * ((self.shifts @ self.actions.T) ** 2).T @ q
        return gains


def algorithm_1(world: naive.World, rules: Rules, rounds: int) -> naive.Trace:
    """Play Algorithm 1, recomputing everything from all the data after every exploration."""
    actions, beta, k = world.actions, rules.beta, len(world.actions)
    played: list[int] = []
    rewards: list[float] = []
    arms = np.zeros(rounds, dtype=np.int64)
    explored: npt.NDArray[np.bool_] = np.zeros(rounds, dtype=np.bool_)
    ratios: list[float] = []
    largest_m = 0.0
    stale = True
    for t in range(1, rounds + 1):
        if stale:  # between explorations only t changes
            xs, ys = actions[played], np.array(rewards)
            V, theta = naive.covariance(xs, beta.regulariser), naive.ridge(xs, ys, beta.regulariser)
            xhat = int(np.argmax(actions @ theta))
            shifts, distances = naive.alternatives(actions, theta, V, xhat)
            m = 0.5 * distances.min()
            largest_m = max(largest_m, m)
            stale = False
        if m >= 0.5 * beta.exploitation(V, t):
            arms[t - 1] = xhat
            if rules.exploitation == "keep":
                explored[t - 1] = stale = True
                played.append(xhat)
                rewards.append(world.pull(xhat))
            continue
        s = len(played) + 1
        local = beta.local(V, s)
        now = Round(actions, theta, V, local, world.noise_std, largest_m, shifts, distances)
        gains = now.gains(rules.information, rules.learning_rate)
        least = world.noise_std / math.sqrt(s)
        gaps = gap_estimates(rules.gaps, actions, theta, V, local, least)
        pairs = {
            "pair": naive.pairs_with(xhat, k),
            "exact": naive.all_pairs(k),
            "deterministic": [(x, x) for x in range(k)],
        }[rules.sampling]
        mixture = naive.ids(gaps, gains, pairs)
        arm = mixture.second if world.decisions.random() < mixture.p else mixture.first
        arms[t - 1], explored[t - 1] = arm, True
        ratios.append(mixture.ratio)
        played.append(arm)
        rewards.append(world.pull(arm))
        stale = True
    xs = actions[played]
    estimate = naive.ridge(xs, np.array(rewards), beta.regulariser)
    covariance = naive.covariance(xs, beta.regulariser)
    return naive.Trace(arms, explored, np.array(ratios), estimate, covariance)
