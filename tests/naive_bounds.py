"""Reference solutions for c*: cutting planes by linear programs, closed forms, arithmetic.

Nothing here shares a formula with the library beyond the paper's program

    minimise Delta(alpha)  subject to  |nu - theta|^2 >= 2 sigma^2  for all alternatives nu

in the norm of V(alpha), with the mass of the optimal arms taken to infinity: alternatives nu agree
with theta on them.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog, minimize

from tests.naive import Array, Ints


class Truth(NamedTuple):
    """Bounds on c* and an allocation that costs ``upper``, without the free arms."""

    lower: float
    upper: float
    allocation: Array


class Reduced(NamedTuple):
    """Arms that cost something, seen by the parameters that agree on the optimal ones."""

    arms: Ints  # which
    points: Array
    gaps: Array
    basis: Array


def reduced(actions: Array, theta: Array) -> Reduced:
    """Project away the optimal arms, and what then vanishes."""
    means = actions @ theta
    gaps = means.max() - means
    free = gaps <= 1e-14 * np.abs(means).max()
    basis = null_space(actions[free]) if np.abs(actions[free]).max() > 0 else np.eye(len(theta))
    points = actions @ basis
    costly = ~free & (np.linalg.norm(points, axis=1) > 1e-11 * np.linalg.norm(actions, axis=1))
    arms = np.flatnonzero(costly)
    if len(arms):  # coordinates of the span, of comparable size
        _, singular, rotation = np.linalg.svd(points[arms], full_matrices=False)
        rank = int((singular > 1e-11 * singular[0]).sum())
        basis = basis @ rotation[:rank].T / singular[:rank]
    return Reduced(arms, actions[arms] @ basis, gaps[arms], basis)


def evidence(points: Array, gaps: Array, shares: Array) -> tuple[Array, Array]:
    """Squared distance of the nearest alternative for each arm, and where it is, for M = R^d.

    ``shares`` are costs alpha(x) Delta(x), so V = sum of shares p p^T / Delta.
    """
    V = (points.T * (shares / gaps)) @ points
    directions = np.linalg.solve(V, points.T).T
    squared = (points * directions).sum(axis=1)
    return gaps**2 / squared, directions * (gaps / squared)[:, None]


def lower_bound(
    actions: Array, theta: Array, noise_std: float, tolerance: float = 1e-7, rounds: int = 600
) -> Truth:
    """c* for M = R^d by cutting planes: each alternative is one linear constraint.

    The next point lies between the best feasible one and the solution of the linear program.
    """
    arms, points, gaps, _ = reduced(actions, theta)
    allocation = np.zeros(len(actions))
    if len(arms) == 0:
        return Truth(0.0, 0.0, allocation)
    cuts = np.zeros((0, len(arms)))
    best = query = np.ones(len(arms))
    upper, lower = math.inf, 0.0
    for _ in range(rounds):
        distances, shifts = evidence(points, gaps, query)
        least = distances.min()
        if query.sum() / least < upper:
            upper, best = query.sum() / least, query / least
        nearest = np.argsort(distances)[:8]
        cuts = np.vstack([cuts, (shifts[nearest] @ points.T) ** 2 / gaps])
        solution, value = cover(cuts)
        lower = max(lower, value)
        if upper - lower <= tolerance * upper:
            break
        query = 0.5 * (best + solution)
    scale = 2.0 * noise_std**2
    allocation[arms] = scale * best / gaps
    return Truth(scale * lower, scale * upper, allocation)


def cover(cuts: Array) -> tuple[Array, float]:
    """Minimise sum a subject to cuts a >= 1; the value is that of the multipliers found."""
    scale = cuts.max(axis=1)
    unit = scale.min()
    result = linprog(np.ones(cuts.shape[1]), -cuts / scale[:, None], -unit / scale, method="highs")
    multipliers = np.maximum(-result.ineqlin.marginals, 0.0) / scale
    return result.x / unit, float(multipliers.sum() / (multipliers @ cuts).max())


def in_the_plane(
    actions: Array, theta: Array, noise_std: float, reach: tuple[float, float] | None = None
) -> float:
    """c* for d = 2 and one optimal arm, which leaves a line of parameters theta + s q.

    Arm z is best beyond s = Delta(z) / <q, z>; none is parallel to the best.  ``reach`` are the
    ends of the line within M.
    """
    means = actions @ theta
    best = int(means.argmax())
    gaps = means[best] - means
    q = np.array([-actions[best, 1], actions[best, 0]])
    values = np.delete(actions @ q, best)
    gaps = np.delete(gaps, best)
    low, high = (-math.inf, math.inf) if reach is None else reach
    needed = [s for s in gaps / values if low <= s <= high]
    if not needed:
        return 0.0
    price = (gaps / values**2).min()
    return float(2.0 * noise_std**2 * price / min(abs(s) for s in needed) ** 2)


def nearest_within(V: Array, point: Array, gap: float, rows: Array, slack: Array) -> Array | None:
    """Least e^T V e with <e, point> >= gap and rows e <= slack; None if there is no such e."""
    inside = linprog(-point, rows, slack, bounds=(None, None))
    if -inside.fun < gap * (1 - 1e-9):
        return None
    result = minimize(
        lambda e: e @ V @ e,
        inside.x * min(1.0, gap / -inside.fun),
        jac=lambda e: 2.0 * V @ e,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda e: e @ point - gap, "jac": lambda e: point},
            {"type": "ineq", "fun": lambda e: slack - rows @ e, "jac": lambda e: -rows},
        ],
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return np.asarray(result.x)


def lower_bound_within(
    actions: Array,
    theta: Array,
    noise_std: float,
    normals: Array,
    offsets: Array,
    tolerance: float = 1e-5,
) -> Truth:
    """c* within M = {nu : normals nu <= offsets}, by cutting planes: small problems."""
    arms, points, gaps, basis = reduced(actions, theta)
    rows, slack = normals @ basis, offsets - normals @ theta
    allocation = np.zeros(len(actions))
    cuts = np.zeros((0, len(arms)))
    best = query = np.ones(len(arms))
    upper, lower = math.inf, 0.0
    for _ in range(200):
        V = (points.T * (query / gaps)) @ points
        unit = np.trace(V)
        found = [
            nearest_within(V / unit, p, g, rows, slack) for p, g in zip(points, gaps, strict=True)
        ]
        shifts = [e for e in found if e is not None]
        if not shifts:
            return Truth(0.0, 0.0, allocation)
        least = min(e @ V @ e for e in shifts)
        if query.sum() / least < upper:
            upper, best = query.sum() / least, query / least
        cuts = np.vstack([cuts, (np.array(shifts) @ points.T) ** 2 / gaps])
        solution, lower = cover(cuts)
        if upper - lower <= tolerance * upper:
            break
        query = 0.5 * (best + solution)
    scale = 2.0 * noise_std**2
    allocation[arms] = scale * best / gaps
    return Truth(scale * lower, scale * upper, allocation)


def with_levels(actions: Array, theta: Array, levels: Array) -> float:
    """c* for M = R^d, one optimal arm and a noise level per arm, by a general solver.

    Minimise sum alpha Delta subject to |x* - z|^2 <= Delta(z)^2 / 2 in the norm of V^-1, where V =
    sum alpha x x^T / sigma_x^2 and the best arm has a huge alpha.  Along x* and across, V is then
    graded, and its elimination loses no digits.
    """
    means = actions @ theta
    best = int(means.argmax())
    others = np.arange(len(actions)) != best
    gaps = (means[best] - means)[others]
    longest = actions[best] / np.linalg.norm(actions[best])
    basis = np.column_stack([longest, null_space(longest[None, :])])
    rows = (actions / levels[:, None]) @ basis
    rows[best, 1:] = 0.0
    huge = 1e12 * rows[best, 0] ** 2
    differences = (actions[best] - actions[others]) @ basis

    def evidence(shares: Array) -> Array:
        """Delta(z)^2 / (2 |x* - z|^2); shares are alpha Delta."""
        V = (rows[others].T * (shares / gaps)) @ rows[others]
        V[0, 0] += huge
        squared = (differences * np.linalg.solve(V, differences.T).T).sum(axis=1)
        values: Array = gaps**2 / (2.0 * squared)
        return values

    start = np.ones(len(gaps))
    start /= evidence(start).min()
    unit = float(start.sum())  # so that tolerances are relative
    result = minimize(
        np.sum,
        start / unit,
        jac=np.ones_like,
        method="SLSQP",
        bounds=[(0.0, None)] * len(gaps),
        constraints={"type": "ineq", "fun": lambda a: evidence(np.maximum(a, 0.0) * unit) - 1.0},
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    found = np.maximum(result.x, 0.0) * unit
    return float(found.sum() / evidence(found).min())  # scaled until it is feasible


# --- instances ----------------------------------------------------------------------------------


class Instance(NamedTuple):
    """A bandit to be solved."""

    actions: Array
    theta: Array
    noise_std: float


def instance(rng: np.random.Generator, k: int, d: int) -> Instance:
    """Arms of a random kind, among them near-duplicates, small gaps and features of any unit."""
    kind = rng.choice(["sphere", "gaussian", "duplicates", "close", "small gaps", "units"])
    actions = rng.standard_normal((k, d))
    theta = rng.standard_normal(d)
    if kind == "sphere":
        actions /= np.linalg.norm(actions, axis=1, keepdims=True)
    if kind == "duplicates":
        for x in range(k // 2, k):
            actions[x] = actions[rng.integers(k // 2)] * (1.0 + 1e-4 * rng.random())
    if kind == "close":
        actions = actions[rng.integers(max(k // 4, 1), size=k)]
        actions = actions + 10.0 ** rng.uniform(-4, -1, (k, 1)) * rng.standard_normal((k, d))
    if kind == "small gaps":  # some arms are moved to a mean just below the best
        means = actions @ theta
        chosen = rng.random(k) < 0.3
        gaps = 10.0 ** rng.uniform(-4, 0, k)
        excess = (means - means.max() + gaps) * chosen
        excess[means.argmax()] = 0.0
        actions -= excess[:, None] * theta / (theta @ theta)
    if kind == "units":
        units = 10.0 ** rng.uniform(-4, 4, d)
        actions, theta = actions * units, theta / units
    return Instance(actions, theta, float(10.0 ** rng.uniform(-1, 1)))
