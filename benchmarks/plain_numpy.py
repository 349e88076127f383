"""Every policy with its defaults in plain NumPy, vectorised over the arms: the second yardstick.

Typical research code: V^-1 by Sherman and Morrison, everything else from scratch in every round.
Policies that follow plans for many rounds (OAM, OSSB, E4, explore-then-allocate, phased
elimination) are left out: they spend their time in the solver of plans.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import sightline as sl
from sightline.core.allocation.design import design, optimal_design
from sightline.simulation.loop import streams

__all__ = ["PLAIN", "play"]

Array = NDArray[np.float64]
SAMPLES = 10_000


class Data:
    """Regularised least squares over what a policy has learned from."""

    def __init__(self, actions: Array, noise_std: float, regulariser: float = 1.0) -> None:
        d = actions.shape[1]
        self.actions, self.noise_std, self.regulariser = actions, noise_std, regulariser
        self.inverse, self.moments = np.eye(d) / regulariser, np.zeros(d)
        self.theta, self.log_det, self.rounds = np.zeros(d), 0.0, 0

    def learn(self, arm: int, reward: float) -> None:
        x = self.actions[arm]
        w = self.inverse @ x
        q = 1.0 + x @ w
        self.inverse -= np.outer(w, w / q)
        self.moments += reward * x
        self.theta = self.inverse @ self.moments
        self.log_det += math.log(q)
        self.rounds += 1

    @property
    def means(self) -> Array:
        means: Array = self.actions @ self.theta
        return means

    @property
    def squared_widths(self) -> Array:
        widths: Array = ((self.actions @ self.inverse) * self.actions).sum(axis=1)
        return widths

    def beta(self, log_inverse_delta: float) -> float:
        noise = self.noise_std * math.sqrt(2.0 * log_inverse_delta + self.log_det)
        return (noise + math.sqrt(self.regulariser)) ** 2

    def beta_at(self, t: int) -> float:
        log_t = math.log(max(t, 2))
        return self.beta(log_t + math.log(log_t))

    def local_beta(self) -> float:
        return self.beta(2.0 * math.log(self.rounds + 1))

    def alternatives(self) -> tuple[int, Array, Array]:
        """x-hat, nu(z) - theta (k, d), and r_z: infinite for x-hat."""
        means = self.means
        best = int(means.argmax())
        differences = self.actions[best] - self.actions
        directions = differences @ self.inverse
        norms = (directions * differences).sum(axis=1)
        norms[best] = 1.0
        gaps = means[best] - means
        distances = gaps**2 / norms
        distances[best] = np.inf
        return best, -(gaps / norms)[:, None] * directions, distances

    def draw(self, rng: np.random.Generator) -> int:
        """Best arm of a draw from the posterior."""
        root = np.linalg.cholesky(self.inverse)
        draw = self.theta + self.noise_std * root @ rng.standard_normal(len(self.theta))
        return int((self.actions @ draw).argmax())


# A policy says which arm to play, and whether to learn from it.
Choose = Callable[[int, np.random.Generator], tuple[int, bool]]


def mixture(gaps: Array, gains: Array, best: int) -> tuple[int, float]:
    """Partner of the arm `best` in the IDS distribution, and its probability."""
    if gaps[best] <= 0.0:
        return best, 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        p = gaps[best] / (gaps - gaps[best]) - 2 * gains[best] / (gains - gains[best])
        p = np.where(gaps <= gaps[best], 1.0, np.clip(p, 0.0, 1.0))
        p = np.where(gains > gains[best], p, 0.0)
        gap = (1 - p) * gaps[best] + p * gaps
        ratio = gap**2 / ((1 - p) * gains[best] + p * gains)
    other = int(np.nanargmin(ratio))
    return other, float(p[other])


class Explorer:
    """A policy that plays x-hat while the evidence suffices, and learns only from other rounds."""

    def __init__(self, data: Data) -> None:
        self.data, self.largest = data, 0.0

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[int, bool]:
        best, shifts, distances = self.data.alternatives()
        least = float(distances.min())
        if least >= self.data.beta_at(t):
            return best, False
        self.largest = max(self.largest, least)
        return self.explore(best, shifts, distances, rng), True

    def explore(self, best: int, shifts: Array, distances: Array, rng: np.random.Generator) -> int:
        raise NotImplementedError

    def weights(self, distances: Array) -> Array:
        variance = self.data.noise_std**2
        eta = math.log(len(distances)) / math.sqrt(max(0.5, 0.5 * self.largest / variance))
        weights = np.exp(-0.5 * eta * (distances - distances.min()) / variance)
        q: Array = weights / weights.sum()
        return q


class IDS(Explorer):
    """I^H, or I^H-UCB: optimistic for all arms, or for the arm of the largest bound alone."""

    def __init__(self, data: Data, only_ucb: bool = False) -> None:
        super().__init__(data)
        self.only_ucb = only_ucb

    def explore(self, best: int, shifts: Array, distances: Array, rng: np.random.Generator) -> int:
        data = self.data
        means, widths = data.means, np.sqrt(data.local_beta() * data.squared_widths)
        bounds = means + widths
        ucb = int(bounds.argmax())
        optimism = np.where(np.arange(len(means)) == ucb, widths, 0.0) if self.only_ucb else widths
        values = np.abs(shifts @ data.actions.T)
        gains = 0.5 * self.weights(distances) @ (values + optimism) ** 2
        other, p = mixture(bounds[ucb] - means, gains, best)
        return other if rng.random() < p else best


class PrimalDual(Explorer):
    """Least estimated gap per information."""

    def explore(self, best: int, shifts: Array, distances: Array, rng: np.random.Generator) -> int:
        data = self.data
        gains = 0.5 * self.weights(distances) @ (shifts @ data.actions.T) ** 2
        if gains.max() <= 0.0:
            gains = np.log1p(data.squared_widths)
        means = data.means
        gaps = np.maximum(means[best] - means, data.noise_std / math.sqrt(data.rounds + 1))
        with np.errstate(divide="ignore"):
            return int((gaps / gains).argmin())


class TopTwo(Explorer):
    """A draw's best arm, or the first other one of a hundred more draws."""

    def explore(self, best: int, shifts: Array, distances: Array, rng: np.random.Generator) -> int:
        leader = self.data.draw(rng)
        if rng.random() < 0.5:
            return leader
        for _ in range(100):
            arm = self.data.draw(rng)
            if arm != leader:
                return arm
        return int(distances.argmin()) if leader == best else best


def lin_ucb(data: Data) -> Choose:
    def choose(t: int, rng: np.random.Generator) -> tuple[int, bool]:
        bounds = data.means + np.sqrt(data.beta_at(t) * data.squared_widths)
        return int(bounds.argmax()), True

    return choose


def thompson(data: Data) -> Choose:
    return lambda t, rng: (data.draw(rng), True)


def lin_imed(data: Data) -> Choose:
    def choose(t: int, rng: np.random.Generator) -> tuple[int, bool]:
        widths = data.beta_at(t) * data.squared_widths
        bounds = data.means + np.sqrt(widths)
        gaps = bounds.max() - bounds
        indices = gaps**2 / widths - np.log(widths)
        if gaps.max() > 0.0:
            leader = int(bounds.argmax())
            indices[leader] = min(indices[leader], math.log(30.0 / gaps.max() ** 2))
        return int(indices.argmin()), True

    return choose


def lin_med(data: Data) -> Choose:
    work = design(*data.actions.shape)
    optimal_design(work, data.actions, np.ones(len(data.actions)), 0.01)
    shares = 0.05 * work.weights + 0.05 / len(data.actions)

    def choose(t: int, rng: np.random.Generator) -> tuple[int, bool]:
        best, _, distances = data.alternatives()
        distances[best] = 0.0
        p = shares.copy()
        p[best] += 0.9
        p *= np.exp(-distances / data.beta_at(t))
        return int(np.searchsorted(np.cumsum(p), rng.random() * p.sum(), side="right")), True

    return choose


class Solid:
    """Incremental primal-dual updates of an exploration distribution, in phases."""

    def __init__(self, data: Data) -> None:
        k = len(data.actions)
        self.data, self.w, self.multiplier = data, np.full(k, 1.0 / k), 0.0
        self.explorations, self.inside, self.phase = 0, 0, 0
        self.scale = 2.0 * float(np.linalg.norm(data.actions, axis=1).max())

    def __call__(self, t: int, rng: np.random.Generator) -> tuple[int, bool]:
        best, _, distances = self.data.alternatives()
        if distances.min() >= self.data.beta_at(t):
            return best, True
        arm = int(np.searchsorted(np.cumsum(self.w), rng.random(), side="right"))
        self.step(best)
        return min(arm, len(self.w) - 1), True

    def step(self, best: int) -> None:
        data, k = self.data, len(self.w)
        self.explorations += 1
        self.inside += 1
        z = math.exp(self.phase)
        length = z * math.exp(2 * self.phase)
        beta = data.beta(2.0 * math.log(self.explorations))
        widths = np.sqrt(beta * data.squared_widths)
        mixed = (1.0 - 1e-6) * self.w + 1e-6 / k
        inverse = np.linalg.inv((data.actions.T * mixed) @ data.actions)
        means = data.means
        differences = data.actions[best] - data.actions
        directions = differences @ inverse
        norms = (directions * differences).sum(axis=1)
        norms[best] = 1.0
        gaps = means[best] - means
        evidence = gaps**2 / norms
        evidence[best] = np.inf
        nearest = int(evidence.argmin())
        variance = 2.0 * data.noise_std**2
        gradient = (gaps[nearest] / norms[nearest] * (data.actions @ directions[nearest])) ** 2
        gradient /= variance
        constraint = evidence[nearest] / variance + self.scale * (self.w @ widths) - 1.0 / z
        scores = means + widths + self.multiplier * (gradient + self.scale * widths)
        self.w *= np.exp((scores - scores.max()) / math.sqrt(length))
        self.w /= self.w.sum()
        lowered = self.multiplier - constraint / math.sqrt(length)
        self.multiplier = min(max(lowered, 0.0), self.scale * z)
        if self.inside >= length:
            self.w, self.multiplier = np.full(k, 1.0 / k), 0.0
            self.inside, self.phase = 0, self.phase + 1


def bayesian_ids(data: Data) -> Choose:
    """Gaps and variance-based gains from fresh posterior samples in every round."""

    def choose(t: int, rng: np.random.Generator) -> tuple[int, bool]:
        actions, d = data.actions, len(data.theta)
        root = data.noise_std * np.linalg.cholesky(data.inverse)
        thetas = data.theta + rng.standard_normal((SAMPLES, d)) @ root.T
        values = thetas @ actions.T
        cell = values.argmax(axis=1)
        counts = np.bincount(cell, minlength=len(actions)).astype(np.float64)
        if counts.max() == SAMPLES:
            return int(counts.argmax()), True
        mean = thetas.mean(axis=0)
        gaps = np.take_along_axis(values, cell[:, None], axis=1).mean() - actions @ mean
        sums = [np.bincount(cell, weights=column, minlength=len(actions)) for column in thetas.T]
        seen = counts > 0
        shifts = np.column_stack(sums)[seen] / counts[seen, None] - mean
        gains = (counts[seen] / SAMPLES) @ (shifts @ actions.T) ** 2
        best = int(gaps.argmin())
        other, p = mixture(gaps, gains, best)
        return other if rng.random() < p else best, True

    return choose


class Plain(NamedTuple):
    """A policy, and whether its regulariser is matched to the noise."""

    make: Callable[[Data], Choose]
    matched: bool = False


# By the expression of the policy that it is to be compared with.
PLAIN: dict[str, Plain] = {
    "LinUCB()": Plain(lin_ucb),
    "ThompsonSampling()": Plain(thompson, matched=True),
    "IDS()": Plain(IDS),
    "IDS(information='halfspace-ucb')": Plain(functools.partial(IDS, only_ucb=True)),
    "PrimalDual()": Plain(PrimalDual),
    "SOLID()": Plain(Solid),
    "LinMED()": Plain(lin_med, matched=True),
    "LinIMED()": Plain(lin_imed, matched=True),
    "TopTwo()": Plain(TopTwo, matched=True),
    "BayesianIDS()": Plain(bayesian_ids, matched=True),
}


def play(plain: Plain, problem: sl.LinearBandit, rounds: int, seed: int) -> tuple[float, int]:
    """Regret and rounds that the policy learned from; a seed means what it means to us."""
    decisions, noise = streams(seed)
    noise_std = problem.model.noise_std
    regulariser = noise_std**2 if plain.matched else 1.0
    data = Data(np.array(problem.actions), noise_std, regulariser)
    choose, regret = plain.make(data), 0.0
    for t in range(1, rounds + 1):
        arm, learn = choose(t, decisions)
        if learn:
            data.learn(arm, problem.means[arm] + noise_std * noise.standard_normal())
        regret += problem.gaps[arm]
    return regret, data.rounds
