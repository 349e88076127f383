"""Brute-force truths of Bayesian IDS: plain NumPy, from the whole data or from given samples.

Symbols: actions (k, d); P and b the posterior precision and moment, so theta ~ N(P^-1 b, P^-1);
thetas (M, d) samples of it.  Nothing is shared with the product.
"""

import math
from typing import NamedTuple

import numpy as np

from tests import naive
from tests.naive import Array, Ints


class Round(NamedTuple):
    """What one round of Bayesian IDS computes."""

    probabilities: Array  # (k,)
    gaps: Array  # (k,)
    gains: Array  # (k,)


def thetas(P: Array, b: Array, half: Array, samples: int) -> Array:
    """Return mean + R^-1 eta for eta, -eta and, if the number is odd, zero; P = R^T R."""
    R = np.asarray(np.linalg.cholesky(P).T, dtype=np.float64)
    eta = np.concatenate([half, -half, np.zeros((samples % 2, len(b)))])
    result: Array = naive.solve(P, b) + np.linalg.solve(R, eta.T).T
    return result


def from_samples(actions: Array, thetas: Array) -> Round:
    """Return probabilities, Bayesian gaps and variance-based gains, sample by sample."""
    k, M = len(actions), len(thetas)
    values = thetas @ actions.T
    cell = values.argmax(axis=1)
    mean = thetas.mean(axis=0)
    gaps = values.max(axis=1).mean() - actions @ mean
    probabilities, gains = np.zeros(k), np.zeros(k)
    for z in range(k):
        members = thetas[cell == z]
        if len(members):
            probabilities[z] = len(members) / M
            gains += probabilities[z] * (actions @ (members.mean(axis=0) - mean)) ** 2
    return Round(probabilities, gaps, gains)


def entropy(probabilities: Array) -> float:
    """Return the entropy in nats."""
    p = probabilities[probabilities > 0]
    return float(-(p * np.log(p)).sum())


def kl_sum(parts: Array, step: float) -> float:
    """Return the mutual information of rows and columns of a joint density (cells, grid)."""
    p = parts.sum(axis=1, keepdims=True) * step
    q = parts.sum(axis=0, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = parts * (np.log(parts) - np.log(p) - np.log(q))
    return float(terms[parts > 0].sum() * step)


def sampled_mutual_information(x: Array, actions: Array, thetas: Array, sigma: float) -> float:
    """Return I(x*; y) for theta uniform on the samples: a mixture of Gaussians per cell."""
    cell = (thetas @ actions.T).argmax(axis=1)
    u = thetas @ x
    grid = np.arange(u.min() - 8 * sigma, u.max() + 8 * sigma, sigma / 8)
    parts = np.zeros((len(actions), len(grid)))
    for z in range(len(actions)):
        for value in u[cell == z]:
            parts[z] += np.exp(-0.5 * ((grid - value) / sigma) ** 2)
    return kl_sum(parts / (math.sqrt(2 * math.pi) * sigma * len(u)), sigma / 8)


class Plane(NamedTuple):
    """The posterior as weighted points of the plane, none of them on a border of cells."""

    thetas: Array  # (n, 2)
    weights: Array  # (n,), summing to one
    cell: Ints  # (n,)


def gauss_legendre(breaks: Array, order: int) -> tuple[Array, Array]:
    """Return nodes and weights of a composite rule."""
    nodes, weights = np.polynomial.legendre.leggauss(order)
    half = np.diff(breaks)[:, None] / 2
    middle = (breaks[1:] + breaks[:-1])[:, None] / 2
    return (middle + half * nodes).ravel(), (half * weights).ravel()


def plane(actions: Array, P: Array, b: Array) -> Plane:
    """Integrate over w = R theta in polar coordinates, both directions numerically.

    Along a direction the best arm does not change; between the directions in which two arms are
    equal neither.
    """
    R = np.asarray(np.linalg.cholesky(P).T, dtype=np.float64)
    whitened = np.linalg.solve(R.T, actions.T).T
    centre = R @ naive.solve(P, b)
    radius, zero = math.hypot(*centre), math.atan2(centre[1], centre[0])
    # around the direction of the mean as fine as the posterior is wide there
    breaks = [*np.linspace(-math.pi, math.pi, 17), *np.linspace(-12, 12, 49) / max(radius, 4.0)]
    for one in whitened:
        for other in whitened:
            if np.any(one != other):
                breaks.append(math.atan2(other[0] - one[0], one[1] - other[1]) - zero)
    turned = (np.array(breaks) + math.pi) % (2 * math.pi) - math.pi
    angles, angle_weights = gauss_legendre(np.unique([*turned, math.pi]), 12)
    radii, radius_weights = gauss_legendre(
        np.linspace(max(radius - 9.0, 0.0), radius + 9.0, 13), 12
    )
    directions = np.column_stack([np.cos(zero + angles), np.sin(zero + angles)])
    points = (radii[:, None, None] * directions).reshape(-1, 2)
    density = np.exp(-0.5 * ((points - centre) ** 2).sum(axis=1)) / (2 * math.pi)
    weights = density * np.outer(radii * radius_weights, angle_weights).ravel()
    cell = np.tile((directions @ whitened.T).argmax(axis=1), len(radii))
    return Plane(np.linalg.solve(R, points.T).T, weights, cell)


def from_plane(actions: Array, plane: Plane) -> Round:
    """Return probabilities, gaps and variance-based gains by the midpoint rule."""
    k = len(actions)
    mean = plane.weights @ plane.thetas
    probabilities, gains, top = np.zeros(k), np.zeros(k), 0.0
    for z in range(k):
        inside = plane.cell == z
        p = plane.weights[inside].sum()
        if p > 0:
            conditional = plane.weights[inside] @ plane.thetas[inside] / p
            probabilities[z] = p
            gains += p * (actions @ (conditional - mean)) ** 2
            top += p * (conditional @ actions[z])
    return Round(probabilities, top - actions @ mean, gains)


def plane_mutual_information(x: Array, k: int, plane: Plane, sigma: float) -> float:
    """Return I(x*; y) by histograms of <x, theta>, much finer than the noise, and convolution."""
    u = plane.thetas @ x
    step = min(sigma, u.std()) / 40
    edges = np.arange(u.min() - step, u.max() + 2 * step, step)
    pad = math.ceil(7 * sigma / step)
    kernel = np.exp(-0.5 * (np.arange(-pad, pad + 1) * step / sigma) ** 2)
    kernel /= kernel.sum() * step
    parts = np.zeros((k, len(edges) - 1 + 2 * pad))
    for z in range(k):
        inside = plane.cell == z
        mass = np.histogram(u[inside], edges, weights=plane.weights[inside])[0]
        parts[z] = np.convolve(mass, kernel)
    return kl_sum(np.maximum(parts, 0.0), step)


def bayesian_ids(
    world: naive.World, half: Array, samples: int, rounds: int, prior_std: float, sampling: str
) -> Ints:
    """Play Bayesian IDS with the variance-based gain, from all data at once in every round."""
    actions, k = world.actions, len(world.actions)
    played: list[int] = []
    rewards: list[float] = []
    for _ in range(rounds):
        xs, ys = actions[played], np.array(rewards)
        P, b = naive.posterior(xs, ys, world.noise_std, prior_std)
        now = from_samples(actions, thetas(P, b, half, samples))
        best = int(np.argmin(now.gaps))
        if now.probabilities.max() == 1.0:
            first, second, p = int(now.probabilities.argmax()), 0, 0.0
        else:
            pairs = naive.pairs_with(best, k) if sampling == "pair" else naive.all_pairs(k)
            first, second, p, _ = naive.ids(now.gaps, now.gains, pairs)
        played.append(second if world.decisions.random() < p else first)
        rewards.append(world.pull(played[-1]))
    return np.array(played)
