"""Brute-force truths for policies that follow an allocation, from the whole data in plain NumPy.

Allocations and spanners are not unique, so these are the product's; that they are what they should
be is checked where they are made.  Everything else is written as the sources have it, in the
coordinates of the arms, without regularisation: G = sum x x^T.
"""

import functools
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from sightline.core.allocation.design import barycentric_spanner, spanner
from sightline.core.allocation.program import cheapest_allocation
from sightline.core.model import bandit_model
from sightline.core.unregularised import unregularised
from tests import naive, naive_design, naive_rivals
from tests.naive import Array, Ints


class Record(NamedTuple):
    """Arms by round, and whether the round was learned from."""

    arms: Ints
    learned: npt.NDArray[np.bool_]


@dataclass
class Data:
    """All that was seen."""

    world: naive.World
    played: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)

    @functools.cached_property
    def arms(self) -> Array:
        """Arms in a basis of their span."""
        return naive.spanning(self.world.actions, self.world.theta)[0]

    def pull(self, arm: int) -> None:
        """Play an arm and learn."""
        self.played.append(arm)
        self.rewards.append(self.world.pull(arm))

    @property
    def pulls(self) -> Ints:
        """Pulls of every arm."""
        return np.bincount(self.played, minlength=len(self.world.actions))

    @property
    def gram(self) -> Array:
        """Return sum x x^T, from the counts."""
        X = self.arms
        G: Array = (X.T * self.pulls) @ X
        return G

    def means(self) -> Array:
        """Return <x, theta-hat> for every arm."""
        X = self.arms
        means: Array = X @ naive.solve(self.gram, X[self.played].T @ np.array(self.rewards))
        return means

    def squared_widths(self) -> Array:
        """Return ||x||^2 in G^-1 for every arm."""
        return np.array([naive.squared_norm(x, self.gram) for x in self.arms])


def members(actions: Array) -> list[int]:
    """Return a barycentric spanner."""
    work = spanner(*actions.shape)
    barycentric_spanner(work, actions, np.ones(len(actions)), 2.0)
    return [int(x) for x in work.members[: work.rank[0]]]


def coordinates(actions: Array) -> Array:
    """Return the arms in the basis that the spanner is."""
    return unregularised(bandit_model(actions), "E4")[0].arms.rewards


def f(horizon: int, log_inverse_delta: float, d: int, constant: float) -> float:
    """Return f_{n, delta} = 2 (1 + 1/log n) log(1/delta) + c d log(d log n)."""
    log_n = math.log(horizon)
    growth = 2.0 * (1.0 + 1.0 / log_n) * log_inverse_delta
    return growth + constant * d * math.log(d * log_n)


def allocation(X: Array, means: Array) -> Array:
    """Return alpha at the estimated gaps, with ties as far behind as the second-best arm."""
    best = int(np.argmax(means))
    gaps = means[best] - means
    if not np.any(gaps > 0.0):
        twins = np.all(X[best] == X, axis=1) & (np.arange(len(X)) != best)
        return np.where(twins, 0.0, math.inf)
    alpha = np.zeros(len(means))
    gaps = np.maximum(gaps, gaps[gaps > 0.0].min())
    free = np.arange(len(X)) == best
    cheapest_allocation(X, free, gaps, np.ones(len(X)), 1e-3, alpha)
    return alpha


@dataclass
class Lazily:
    """An allocation found anew when det G has grown by 1 + zeta or the best arm has changed."""

    zeta: float
    alpha: Array | None = None
    best: int = -1
    log_det: float = 0.0

    def at(self, data: Data) -> Array:
        """Return the allocation for these data."""
        means, log_det = data.means(), float(np.linalg.slogdet(data.gram)[1])
        best = int(np.argmax(means))
        grown = log_det - self.log_det >= math.log1p(self.zeta)
        if self.alpha is None or grown or best != self.best:
            self.alpha, self.best, self.log_det = allocation(data.arms, means), best, log_det
        return self.alpha


# --- optimal allocation matching ----------------------------------------------------------------


class OAM(NamedTuple):
    """Parameters; `rate` is e_t, or None for 1 / log log t."""

    horizon: int
    constant: float = 1.0
    rate: float | None = 0.0
    zeta: float = 0.1


def oam(world: naive.World, rule: OAM, rounds: int, told_every: int = 1) -> Record:
    """Match the optimal allocation, learning from every round, or from every so many."""
    data, lazily, s, arms = Data(world), Lazily(rule.zeta), 0, []
    first = members(world.actions)
    for t in range(1, rounds + 1):
        if len(data.played) < len(first):
            arm, explores = first[len(data.played)], False
        else:
            arm, explores = next_of_oam(data, lazily.at(data), rule, s + 1, t)
        arms.append(arm)
        if t % told_every == 0:
            data.pull(arm)
            s += explores
    return Record(np.array(arms), np.arange(1, rounds + 1) % told_every == 0)


def next_of_oam(data: Data, alpha: Array, rule: OAM, s: int, t: int) -> tuple[int, bool]:
    """Return the arm of round t, and whether it explores, for the s-th time if so."""
    variance, d = data.world.noise_std**2, data.arms.shape[1]
    f_n = variance * f(rule.horizon, math.log(rule.horizon), d, rule.constant)
    means, N, widths = data.means(), data.pulls, data.squared_widths()
    gaps = means.max() - means
    d_min = gaps[gaps > 0.0].min() if np.any(gaps > 0.0) else 0.0
    if np.all(widths * f_n <= np.maximum(gaps, d_min) ** 2):
        return int(np.argmax(means)), False
    if d_min == 0.0:
        return int(np.argmin(N)), True
    shares = np.minimum(f_n * alpha, f_n / d_min**2)
    if np.any(shares > N):
        relative = np.divide(N, shares, out=np.full(len(N), math.inf), where=shares > 0.0)
        rate = 1.0 / math.log(math.log(max(t, 16))) if rule.rate is None else rule.rate
        forced = N.min() <= rate * s
        return int(np.argmin(N) if forced else np.argmin(relative)), True
    beta = variance * f(rule.horizon, 2.0 * math.log(s), d, rule.constant)
    return int(np.argmax(means + np.sqrt(beta * widths))), True


# --- optimal sampling for structured bandits ----------------------------------------------------


class OSSB(NamedTuple):
    """Parameters."""

    epsilon: float
    gamma: float
    zeta: float


def ossb(world: naive.World, rule: OSSB, rounds: int, told_every: int = 1) -> Record:
    """Sample as the lower bound at the least-squares means asks.

    It learns from every round, or from every so many.
    """
    data, lazily, s, arms = Data(world), Lazily(rule.zeta), 0, []
    for t in range(1, rounds + 1):
        if len(data.played) < len(world.actions):
            arm, explores = len(data.played), False
        else:
            arm, explores = next_of_ossb(data, lazily.at(data), rule, s + 1, t)
        arms.append(arm)
        if t % told_every == 0:
            data.pull(arm)
            s += explores
    return Record(np.array(arms), np.arange(1, rounds + 1) % told_every == 0)


def next_of_ossb(data: Data, alpha: Array, rule: OSSB, s: int, t: int) -> tuple[int, bool]:
    """Return the arm of round t, and whether it explores, for the s-th time if so."""
    N, best = data.pulls, int(np.argmax(data.means()))
    c = 2.0 * data.world.noise_std**2 * alpha
    others = [x for x in range(len(N)) if x != best and c[x] > 0.0]
    if all(N[x] >= (1.0 + rule.gamma) * c[x] * math.log(t) for x in others):
        return best, False
    if N.min() <= rule.epsilon * s or np.isinf(c[others]).any():
        return int(np.argmin(N)), True
    return min(others, key=lambda x: float(N[x] / c[x])), True


# --- E4 -----------------------------------------------------------------------------------------


@dataclass
class Batches:
    """E4 in the making: the data, the arms that are left and the parameters."""

    data: Data
    left: list[int]
    horizon: int
    gamma: float

    def design(self, length: float) -> Array:
        """Return ceil(2 pi g length / r) pulls, g the largest leverage, r the dimension."""
        arms = coordinates(self.data.world.actions)
        weights = naive_rivals.a_design(arms, self.left, 0.01)
        rank = np.linalg.matrix_rank(arms[self.left])
        basis = np.linalg.svd(arms[self.left])[2][:rank]
        worst = naive_design.leverages(arms[self.left] @ basis.T, weights[self.left]).max()
        return np.asarray(np.ceil(2.0 * weights * worst * length / rank), dtype=np.float64)

    def matched(self) -> Array:
        """Return ceil(min(w a log T, (log T)^(1 + gamma), T / (2 k))) pulls."""
        k, d = self.data.arms.shape
        log_t = math.log(self.horizon)
        a = (1.0 + 1.0 / math.log(log_t)) * (1.0 + d * math.log(log_t) / log_t)
        w = 2.0 * self.data.world.noise_std**2 * allocation(self.data.arms, self.data.means())
        most = min(log_t ** (1.0 + self.gamma), self.horizon / (2.0 * k))
        return np.asarray(np.ceil(np.minimum(w * a * log_t, most)), dtype=np.float64)

    def play(self, plan: Array, rounds: int) -> None:
        """Play a plan, arm by arm, until the end of the run."""
        for x, times in enumerate(plan):
            while times > 0 and len(self.data.played) < rounds:
                self.data.pull(x)
                times -= 1

    def passes(self) -> bool:
        """Return whether Z > log(t^(d/2) T) / 2, Z = min gap^2 / (2 sigma^2 ||x - x-hat||^2)."""
        data, (d, t) = self.data, (self.data.arms.shape[1], len(self.data.played))
        means, best = data.means(), int(np.argmax(data.means()))
        apart = [z for z in range(len(means)) if np.any(data.arms[z] != data.arms[best])]
        variance = data.world.noise_std**2
        Z = min(
            (means[best] - means[z]) ** 2
            / (2.0 * variance * naive.squared_norm(data.arms[z] - data.arms[best], data.gram))
            for z in apart
        )
        return bool(0.5 * d * math.log(t) + math.log(self.horizon) < 2.0 * Z)

    def drop(self, length: float) -> None:
        """Drop arms more than 2 eps below the best."""
        (k, d), means = self.data.arms.shape, self.data.means()
        variance = self.data.world.noise_std**2
        eps = math.sqrt(variance * d * math.log(k * self.horizon**2) / length)
        best = max(means[x] for x in self.left)
        self.left = [x for x in self.left if means[x] >= best - 2.0 * eps]

    def is_settled(self) -> bool:
        """Return whether only equal arms are left."""
        return len({tuple(self.data.world.actions[x]) for x in self.left}) == 1


def e4(world: naive.World, horizon: int, gamma: float, rounds: int) -> Record:
    """Explore, estimate, eliminate, exploit; after the horizon, play the best of what is left."""
    batches = Batches(Data(world), list(range(len(world.actions))), horizon, gamma)
    data, most = batches.data, min(rounds, horizon)
    if not batches.is_settled():
        batches.play(batches.design(math.sqrt(horizon)), most)
        if len(data.played) < most:
            batches.play(batches.matched(), most)
        if len(data.played) < most and batches.passes():
            batches.left = [int(np.argmax(data.means()))]
    length, phase = math.log(horizon) ** (1.0 + gamma), 0
    while len(data.played) < most and not batches.is_settled():
        batches.play(batches.design(length), most)
        if len(data.played) < most:
            batches.drop(length)
        phase += 1
        length = horizon ** (1.0 - 0.5**phase)
    learned = len(data.played)
    means = data.means() if learned else np.zeros(len(world.actions))
    last = max(batches.left, key=lambda x: float(means[x]))
    return Record(np.array(data.played + [last] * (rounds - learned)), np.arange(rounds) < learned)


# --- explore, then allocate, then recover -------------------------------------------------------


def explore_then_allocate(world: naive.World, horizon: int, constant: float, rounds: int) -> Record:
    """Warm up, play the allocation in turn, commit; recover by LinUCB."""
    data, log_n = Data(world), math.log(horizon)
    k, d = data.arms.shape
    variance = world.noise_std**2
    for arm in np.repeat(members(world.actions), math.ceil(math.sqrt(log_n)))[:rounds].tolist():
        data.pull(arm)
    g_n = variance * f(horizon, math.log(log_n), d, constant)
    f_n = variance * f(horizon, log_n, d, constant)
    means, best = data.means(), int(np.argmax(data.means()))
    tolerance = 2.0 * math.sqrt(data.squared_widths().max() * g_n)
    shares, last = f_n * allocation(data.arms, means), k - 1
    while len(data.played) < rounds and np.abs(data.means() - means).max() <= tolerance:
        lacking = [x for x in range(k) if data.pulls[x] <= shares[x]]
        if lacking == [best]:
            learned = len(data.played)
            arms = np.array(data.played + [best] * (rounds - learned))
            return Record(arms, np.arange(rounds) < learned)
        last = min(lacking, key=lambda x: (x - last - 1) % k)
        data.pull(last)
    recovery = Data(world)
    while len(data.played) + len(recovery.played) < rounds:
        recovery.pull(widest_or_optimistic(recovery, f_n))
    return Record(np.array(data.played + recovery.played), np.ones(rounds, dtype=np.bool_))


def widest_or_optimistic(data: Data, beta: float) -> int:
    """Return the UCB arm; before arms span the space, that of a vanishing ridge.

    The ridge is one in the coordinates of the spanner, which the limit depends on.
    """
    arms = coordinates(data.world.actions)
    xs = arms[data.played]
    V = naive.covariance(xs, 1e-8)
    theta = naive.solve(V, xs.T @ np.array(data.rewards))
    return int(np.argmax(naive.ucb_scores(arms, theta, V, beta)))
