"""Contexts by their definitions: exhaustive search and rounds one at a time."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from tests import naive
from tests import naive_allocation_policies as fixed
from tests.naive import Array, Ints


class Pair(NamedTuple):
    """Expected gap and expected gain of a choice for all contexts."""

    gap: float
    gain: float

    @property
    def ratio(self) -> float:
        """Gap squared over gain."""
        return self.gap**2 / self.gain if self.gain > 0 else math.inf


def expected(
    shares: Array, gaps: Sequence[Array], gains: Sequence[Array], mu: Iterable[Array]
) -> Pair:
    """Return what distributions on the arms of every context expect."""
    mu = list(mu)
    gap = sum(p * (m @ g) for p, m, g in zip(shares, mu, gaps, strict=True))
    gain = sum(p * (m @ g) for p, m, g in zip(shares, mu, gains, strict=True))
    return Pair(float(gap), float(gain))


def least_ratio(shares: Array, gaps: Sequence[Array], gains: Sequence[Array]) -> float:
    """Return the least ratio, over all mixtures of two deterministic choices.

    Reachable pairs are a convex polygon whose vertices are deterministic choices.  The ratio is
    convex, so that it is least on an edge.
    """
    choices = itertools.product(*(range(len(g)) for g in gaps))
    points = []
    for arms in choices:
        mu = [np.eye(len(g))[a] for g, a in zip(gaps, arms, strict=True)]
        points.append(expected(shares, gaps, gains, mu))
    best = min(point.ratio for point in points)
    for a, b in itertools.combinations(points, 2):
        low, high = (a, b) if a.gap <= b.gap else (b, a)
        p = naive.best_probability((low.gap, high.gap), (low.gain, high.gain))
        mixed = Pair(low.gap + p * (high.gap - low.gap), low.gain + p * (high.gain - low.gain))
        best = min(best, mixed.ratio)
    return best


def frank_wolfe(shares: Array, gaps: Sequence[Array], gains: Sequence[Array], steps: int) -> float:
    """Return the ratio after so many steps from the uniform distributions, of sizes 1/2, 1/3..."""
    mu = [np.full(len(g), 1.0 / len(g)) for g in gaps]
    for step in range(2, steps + 2):
        now = expected(shares, gaps, gains, mu)
        for c, (gap, gain) in enumerate(zip(gaps, gains, strict=True)):
            gradient = (2.0 * now.gap * now.gain * gap - now.gap**2 * gain) / now.gain**2
            vertex = np.eye(len(gap))[gradient.argmin()]
            mu[c] = (1.0 - 1.0 / step) * mu[c] + vertex / step
    return expected(shares, gaps, gains, mu).ratio


def evidence(action_sets: Sequence[Array], theta: Array, V: Array) -> float:
    """Return the least squared distance to a parameter that changes the best arm of a context."""
    distances = [math.inf]
    for X in action_sets:
        best = int((X @ theta).argmax())
        for z in range(len(X)):
            if not np.array_equal(X[z], X[best]):
                nu = naive.alternative(theta, V, X[best], X[z])
                distances.append(float((nu - theta) @ V @ (nu - theta)))
    return min(distances)


class Weighed(NamedTuple):
    """Of all arms, context after context."""

    least: float
    gaps: list[Array]
    gains: list[Array]


def weigh(
    action_sets: Sequence[Array],
    theta: Array,
    V: Array,
    beta: float,
    largest_m: float,
    noise_std: float,
) -> Weighed:
    """Weigh all arms by the gains on half-spaces of all contexts, and by upper bounds on values."""
    nus, distances = [], []
    for X in action_sets:
        best = int((X @ theta).argmax())
        for z in range(len(X)):
            if not np.array_equal(X[z], X[best]):
                nu = naive.alternative(theta, V, X[best], X[z])
                nus.append(nu)
                distances.append(float((nu - theta) @ V @ (nu - theta)))
    least = min(distances)
    k = sum(map(len, action_sets))
    m = max(largest_m, least / 2.0 / noise_std**2)
    eta = math.log(k) / math.sqrt(m)
    q = np.exp(-eta / 2.0 / noise_std**2 * (np.array(distances) - least))
    q /= q.sum()
    gaps, gains = [], []
    for X in action_sets:
        scores = naive.ucb_scores(X, theta, V, beta)
        gaps.append(scores.max() - X @ theta)
        gain = np.zeros(len(X))
        for weight, nu in zip(q, nus, strict=True):
            widths = np.array([math.sqrt(beta * naive.squared_norm(x, V)) for x in X])
            gain += 0.5 * weight * (np.abs(X @ (nu - theta)) + widths) ** 2
        gains.append(gain)
    return Weighed(least, gaps, gains)


def contexts_drawn(shares: Array, draws: Array) -> Ints:
    """Return the contexts that uniform draws stand for."""
    return np.searchsorted(np.cumsum(shares)[:-1], draws, side="right").astype(np.int64)


class Seen(NamedTuple):
    """All that OAM has seen, rows being those of all contexts, one after the other."""

    action_sets: Sequence[Array]
    played: list[int]
    rewards: list[float]
    noise_std: float


class Step(NamedTuple):
    """An arm for the present context, whether it explores, and by which part of the rule."""

    arm: int
    explores: bool
    part: str


def next_of_oam(seen: Seen, context: int, alpha: Array, rule: fixed.OAM, s: int) -> Step:
    """Return what OAM plays in a context, for the s-th time if it explores.

    The allocation alpha, which is not unique, is the product's.
    """
    X = fixed.coordinates(np.vstack(seen.action_sets))
    sizes = [len(arms) for arms in seen.action_sets]
    home = np.repeat(np.arange(len(sizes)), sizes)
    own = np.flatnonzero(home == context)
    d = np.linalg.matrix_rank(X)
    played = X[seen.played]
    # first rounds: what least squares on the arms played cannot make of an arm is outside
    outside = np.linalg.norm(X - X @ np.linalg.pinv(played) @ played, axis=1).round(8)
    if np.linalg.matrix_rank(played, tol=1e-4) < d and outside[own].max() > 1e-4:
        return Step(int(own[outside[own].argmax()]), False, "outside")
    variance = seen.noise_std**2
    G = played.T @ played
    inverse = np.linalg.pinv(G)
    means = X @ inverse @ (played.T @ np.array(seen.rewards))
    widths = np.array([x @ inverse @ x for x in X])
    N = np.bincount(seen.played, minlength=len(X))
    bests = np.array([means[home == c].max() for c in range(len(sizes))])
    gaps = bests[home] - means
    best = int(own[means[own].argmax()])
    f_n = variance * fixed.f(rule.horizon, math.log(rule.horizon), d, rule.constant)

    def passes(arms: Ints) -> bool:
        positive = gaps[arms][gaps[arms] > 0.0]
        least = positive.min() if len(positive) else 0.0
        return bool(np.all(widths[arms] * f_n <= np.maximum(gaps[arms], least) ** 2))

    def waits(why: str) -> Step:
        if passes(own):
            return Step(best, False, f"{why}, settled alone")
        beta = variance * fixed.f(rule.horizon, 2.0 * math.log(s), d, rule.constant)
        return Step(int(own[(means + np.sqrt(beta * widths))[own].argmax()]), True, why)

    if np.linalg.matrix_rank(played, tol=1e-4) < d:
        return waits("waits for the span")
    if passes(np.arange(len(X))):
        return Step(best, False, "exploits")
    d_min = gaps[gaps > 0.0].min() if np.any(gaps > 0.0) else 0.0
    fewest = int(own[N[own].argmin()])
    if d_min == 0.0:
        return Step(fewest, True, "ties")
    shares = np.minimum(f_n * alpha, f_n / d_min**2)
    lagging = [x for x in own if N[x] < shares[x]]
    if not lagging:
        return waits("waits")
    assert rule.rate is not None
    if rule.rate * s >= N[fewest]:
        return Step(fewest, True, "forced")
    return Step(int(min(lagging, key=lambda x: float(N[x] / shares[x]))), True, "lags")
