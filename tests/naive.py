"""Brute-force truths: every formula as the paper writes it, from the whole data, in plain NumPy.

Nothing here is incremental and nothing is shared with the product, so agreement means something.
Symbols: actions (k, d); xs (n, d) and ys (n,) the data; V = lambda I + sum x x^T; xhat the index of
the empirically best arm; r_z = ||nu(z) - theta||_V^2 (infinite where z has no alternative).
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


# --- the estimate -------------------------------------------------------------------------------


def solve(matrix: Array, vector: Array) -> Array:
    """Return matrix^-1 vector."""
    return np.asarray(np.linalg.solve(matrix, vector), dtype=np.float64)


def inverse(matrix: Array) -> Array:
    """Return matrix^-1."""
    return np.asarray(np.linalg.inv(matrix), dtype=np.float64)


def covariance(xs: Array, regulariser: float) -> Array:
    """Return V = lambda I + sum x x^T."""
    V: Array = regulariser * np.eye(xs.shape[1]) + xs.T @ xs
    return V


def ridge(xs: Array, ys: Array, regulariser: float) -> Array:
    """Return V^-1 sum x y."""
    return solve(covariance(xs, regulariser), xs.T @ ys)


def log_det_ratio(V: Array, regulariser: float) -> float:
    """Return log det(V / lambda)."""
    return float(np.linalg.slogdet(V / regulariser)[1])


def squared_norm(x: Array, V: Array) -> float:
    """Return ||x||^2 in the norm of V^-1."""
    return float(x @ solve(V, x))


def spanning(actions: Array, theta: Array) -> tuple[Array, Array]:
    """Return arms and parameter in a basis of the span of the arms: the paper's setting."""
    rank = np.linalg.matrix_rank(actions)
    basis = np.asarray(np.linalg.svd(actions)[2][:rank], dtype=np.float64)
    return actions @ basis.T, basis @ theta


# --- confidence coefficients --------------------------------------------------------------------


@dataclass(frozen=True)
class Beta:
    """A confidence coefficient: `kind` is "log-det", "log-log[ of the authors]" or "fixed"."""

    kind: str = "log-det"
    factor: float = 1.0
    fixed: float = 1.0
    noise_std: float = 1.0
    regulariser: float = 1.0
    norm_bound: float = 1.0
    delta: str | float = "1/s^2"

    @property
    def fixed_delta(self) -> float | None:
        """The level of all rounds, if log-det has one."""
        return None if self.kind != "log-det" or isinstance(self.delta, str) else self.delta

    def of_delta(self, log_inverse_delta: float, log_det: float) -> float:
        """Return the self-normalised radius, squared, at a confidence level."""
        noise = self.noise_std * math.sqrt(2.0 * log_inverse_delta + log_det)
        return self.factor * (noise + math.sqrt(self.regulariser) * self.norm_bound) ** 2

    def of_rounds(self, log_rounds: float, d: int) -> float:
        """Return sigma^2 (2 log tau + d log log tau), tau at least 3.

        The authors' code has sigma^2 2 log tau + d log log tau.
        """
        log_tau = max(log_rounds, math.log(3.0))
        if self.kind == "log-log of the authors":
            return self.factor * (2.0 * self.noise_std**2 * log_tau + d * math.log(log_tau))
        return self.factor * self.noise_std**2 * (2.0 * log_tau + d * math.log(log_tau))

    def local(self, V: Array, s: int) -> float:
        """Return beta_{s, s^2}."""
        if self.fixed_delta is not None:
            return self.of_delta(-math.log(self.fixed_delta), log_det_ratio(V, self.regulariser))
        if self.kind == "log-det":
            inverse_delta = s**2 if self.delta == "1/s^2" else max(s, 2) * math.log(max(s, 2))
            return self.of_delta(math.log(inverse_delta), log_det_ratio(V, self.regulariser))
        return self.fixed if self.kind == "fixed" else self.of_rounds(math.log(s), len(V))

    def at(self, log_det: float, d: int, log_t: float) -> float:
        """Return beta_{s, t log t} for a given log det(V / lambda) and log t."""
        log_t = max(log_t, math.log(2.0))
        if self.fixed_delta is not None:
            return self.of_delta(-math.log(self.fixed_delta), log_det)
        if self.kind == "log-det":
            return self.of_delta(log_t + math.log(log_t), log_det)
        return self.fixed if self.kind == "fixed" else self.of_rounds(log_t, d)

    def exploitation(self, V: Array, t: int) -> float:
        """Return beta_{s, t log t}."""
        return self.at(log_det_ratio(V, self.regulariser), len(V), math.log(t))


# --- gaps and alternatives ----------------------------------------------------------------------


def ucb_scores(actions: Array, theta: Array, V: Array, beta: float) -> Array:
    """Return <x, theta> + beta^1/2 ||x||_{V^-1} for every arm."""
    return np.array([x @ theta + math.sqrt(beta * squared_norm(x, V)) for x in actions])


def value_gaps(actions: Array, theta: Array, V: Array, beta: float) -> Array:
    """Return max_z UCB(z) - <x, theta> for every arm."""
    best = max(ucb_scores(actions, theta, V, beta))
    return np.array([best - x @ theta for x in actions])


def alternative(theta: Array, V: Array, best: Array, z: Array) -> Array:
    """Return the closest parameter in V-norm at which z is no worse than `best`, closed form."""
    u = best - z
    if not np.any(u):
        return theta.copy()
    direction = solve(V, u)
    nu: Array = theta - (theta @ u) / (u @ direction) * direction
    return nu


def alternative_kkt(theta: Array, V: Array, best: Array, z: Array) -> Array:
    """Return the same parameter from the optimality conditions of the quadratic program."""
    u = z - best
    if theta @ u >= 0.0:
        return theta.copy()
    d = len(theta)
    system = np.block([[V, -u[:, None]], [u[None, :], np.zeros((1, 1))]])
    return solve(system, np.append(V @ theta, 0.0))[:d]


def alternatives(actions: Array, theta: Array, V: Array, xhat: int) -> tuple[Array, Array]:
    """Return nu(z) - theta (k, d) and r_z (k,); an arm equal to xhat has no alternative."""
    shifts = np.zeros_like(actions)
    distances = np.full(len(actions), math.inf)
    for z, x in enumerate(actions):
        if np.any(x != actions[xhat]):
            shifts[z] = alternative(theta, V, actions[xhat], x) - theta
            distances[z] = shifts[z] @ V @ shifts[z]
    return shifts, distances


# --- information --------------------------------------------------------------------------------


def learning_rate(k: int, largest_m: float, noise_std: float) -> float:
    """Return log(k) / sqrt(max_l m_l), m in units of the noise variance and at least 1/2."""
    return math.log(k) / math.sqrt(max(0.5, largest_m / noise_std**2))


def mixing_weights(distances: Array, eta: float, noise_std: float, rule: str = "paper") -> Array:
    """Return q: exp(-eta/2 r) by the text ("paper"), exp(-eta r) by Algorithm 1 ("algorithm")."""
    if not np.any(np.isfinite(distances)):
        return np.zeros(len(distances))
    rate = eta / 2.0 if rule == "paper" else eta
    unnormalised = np.exp(-rate * (distances - distances.min()) / noise_std**2)
    q: Array = unnormalised / unnormalised.sum()
    return q


def information_gain(
    actions: Array, shifts: Array, q: Array, corrections: Array, xhat: int
) -> Array:
    """Return 1/2 sum_z q(z) (|<nu(z) - theta, x>| + correction(x))^2 for every arm."""
    gain = np.zeros(len(actions))
    for j, x in enumerate(actions):
        for z in range(len(actions)):
            if z != xhat:
                gain[j] += 0.5 * q[z] * (abs(shifts[z] @ x) + corrections[j]) ** 2
    return gain


def corrections(actions: Array, theta: Array, V: Array, beta: float, information: str) -> Array:
    """Return the optimistic term: for every arm ("halfspace"), or at the UCB arm alone."""
    widths = np.array([math.sqrt(beta * squared_norm(x, V)) for x in actions])
    if information == "halfspace":
        return widths
    ucb = int(np.argmax(ucb_scores(actions, theta, V, beta)))
    return np.where(np.arange(len(actions)) == ucb, widths, 0.0)


# --- the information ratio ----------------------------------------------------------------------


class Mixture(NamedTuple):
    """Play `second` with probability `p`, else `first`."""

    first: int
    second: int
    p: float
    ratio: float


def ratio(p: float, gap: tuple[float, float], gain: tuple[float, float]) -> float:
    """Return Psi(p); no information at a positive gap is infinitely bad, at no gap it is free."""
    regret = (1.0 - p) * gap[0] + p * gap[1]
    information = (1.0 - p) * gain[0] + p * gain[1]
    if information > 0.0:
        return regret**2 / information
    return 0.0 if regret == 0.0 else math.inf


def best_probability(gap: tuple[float, float], gain: tuple[float, float]) -> float:
    """Return p* for 0 <= gap[0] <= gap[1], in closed form."""
    if gain[0] >= gain[1]:
        return 0.0
    if gap[0] == gap[1]:
        return 1.0
    p = gap[0] / (gap[1] - gap[0]) - 2.0 * gain[0] / (gain[1] - gain[0])
    return min(max(p, 0.0), 1.0)


def grid_probability(gap: tuple[float, float], gain: tuple[float, float]) -> float:
    """Return p* by search on a grid, twice refined around its best point (Psi is convex)."""
    low, high, best = 0.0, 1.0, 0.0
    for _ in range(3):
        grid = np.linspace(low, high, 1001)
        best = min(grid.tolist(), key=lambda p: ratio(p, gap, gain))
        step = (high - low) / 1000
        low, high = max(0.0, best - step), min(1.0, best + step)
    return float(best)


def ids(gaps: Array, gains: Array, pairs: list[tuple[int, int]], *, grid: bool = False) -> Mixture:
    """Return the best mixture over the pairs, each ordered so that the first gap is smaller."""
    search = grid_probability if grid else best_probability
    best = Mixture(pairs[0][0], pairs[0][0], 0.0, math.inf)
    for a, b in pairs:
        i, j = (a, b) if gaps[a] <= gaps[b] else (b, a)
        gap, gain = (float(gaps[i]), float(gaps[j])), (float(gains[i]), float(gains[j]))
        p = search(gap, gain)
        value = ratio(p, gap, gain)
        if value < best.ratio:
            best = Mixture(i, j, p, value)
    return best


def pairs_with(xhat: int, k: int) -> list[tuple[int, int]]:
    """Return xhat paired with every arm, itself among them."""
    return [(xhat, xhat)] + [(xhat, j) for j in range(k) if j != xhat]


def all_pairs(k: int) -> list[tuple[int, int]]:
    """Return every unordered pair, an arm with itself among them."""
    return [(i, j) for i in range(k) for j in range(i, k)]


# --- policies, round by round -------------------------------------------------------------------


@dataclass(frozen=True)
class World:
    """A linear bandit with Gaussian noise, and the two streams of one run."""

    actions: Array
    theta: Array
    noise_std: float
    decisions: np.random.Generator
    noise: np.random.Generator

    def pull(self, arm: int) -> float:
        """Return a reward; the only place that draws noise."""
        mean = float(self.actions[arm] @ self.theta)
        return mean + self.noise_std * float(self.noise.standard_normal())


class Trace(NamedTuple):
    """What happened: arm and whether it was an exploration, by round; and the last estimate."""

    arms: Ints
    explored: npt.NDArray[np.bool_]
    ratios: Array  # Psi(mu_s), by exploration round
    theta: Array
    V: Array


def lin_ucb(world: World, beta: Beta, rounds: int) -> Ints:
    """Play the largest upper confidence bound at level 1 / (t log t), learning from every round."""
    played: list[int] = []
    rewards: list[float] = []
    for t in range(1, rounds + 1):
        xs = world.actions[played]
        V = covariance(xs, beta.regulariser)
        theta = ridge(xs, np.array(rewards), beta.regulariser)
        scores = ucb_scores(world.actions, theta, V, beta.exploitation(V, t))
        played.append(int(np.argmax(scores)))
        rewards.append(world.pull(played[-1]))
    return np.array(played)


def posterior(xs: Array, ys: Array, noise_std: float, prior_std: float) -> tuple[Array, Array]:
    """Return P = I / prior_std^2 + sum x x^T / sigma^2 and b = sum x y / sigma^2."""
    P: Array = np.eye(xs.shape[1]) / prior_std**2 + xs.T @ xs / noise_std**2
    b: Array = xs.T @ ys / noise_std**2
    return P, b


def thompson(world: World, prior_std: float, rounds: int) -> Ints:
    """Play the best arm of a draw L^-T (L^-1 b + eta) from the Gaussian posterior, P = L L^T."""
    played: list[int] = []
    rewards: list[float] = []
    for _ in range(rounds):
        xs, ys = world.actions[played], np.array(rewards)
        P, b = posterior(xs, ys, world.noise_std, prior_std)
        L = np.asarray(np.linalg.cholesky(P), dtype=np.float64)
        eta = world.decisions.standard_normal(len(b))
        theta = solve(L.T, solve(L, b) + eta)
        played.append(int(np.argmax(world.actions @ theta)))
        rewards.append(world.pull(played[-1]))
    return np.array(played)
