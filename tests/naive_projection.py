"""Truth for projections onto polyhedra: every active set is tried, and optimality is checked.

And systems on which active sets go wrong.
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np

from tests import naive
from tests.naive import Array, Ints

Exact = list[Fraction]

KINDS = [
    "random",
    "integers",
    "cone",
    "integer cone",
    "duplicates",
    "parallel",
    "box",
    "cross-polytope",
]


def nearest(rows: Array, offsets: Array, slack: float = 1e-10) -> Array | None:
    """Nearest point to the origin with rows y <= offsets, or None if there is none.

    Of all points that are nearest in some set of at most d planes, those that satisfy every
    constraint contain the answer; it is the shortest of them.
    """
    lengths = np.linalg.norm(rows, axis=1)
    real = lengths > 0.0
    if (offsets[~real] < 0.0).any():
        return None
    N, b = rows[real] / lengths[real, None], offsets[real] / lengths[real]
    m, d = N.shape
    best = None
    for size in range(min(d, m) + 1):
        for chosen in combinations(range(m), size):
            planes = list(chosen)
            y = np.linalg.lstsq(N[planes], b[planes], rcond=1e-13)[0] if size else np.zeros(d)
            allowed = slack * (np.linalg.norm(y) + np.abs(b))
            if (N @ y <= b + allowed).all() and (best is None or y @ y < best @ best):
                best = y
    return best


def nearest_alternative(
    actions: Array,
    theta: Array,
    V: Array,
    z: int,
    rivals: list[int],
    normals: Array,
    bounds: Array,
) -> Array | None:
    """Return nu - theta for the nearest nu in M at which z beats the rivals, or None."""
    d = len(theta)
    # V = L L^T: in y = L^T (nu - theta) the norm is Euclidean
    whitener = np.linalg.inv(np.linalg.cholesky(V)).T
    rows, offsets = cell(
        actions[[*rivals, z]] @ whitener,
        naive.solve(whitener, theta),
        len(rivals),
        normals.reshape(-1, d) @ whitener,
        bounds - normals.reshape(-1, d) @ theta,
    )
    y = nearest(rows, offsets)
    return None if y is None else whitener @ y


def nearest_exactly(rows: Array, offsets: Array) -> Exact | None:
    """The same in rational arithmetic, of the very numbers given: no tolerance, small cases."""
    m, d = rows.shape
    N = [[Fraction(float(x)) for x in row] for row in rows]
    b = [Fraction(float(x)) for x in offsets]
    for size in range(min(d, m) + 1):
        for chosen in combinations(range(m), size):
            gram = [[_inner(N[i], N[j]) for j in chosen] for i in chosen]
            u = _solve(gram, [-b[i] for i in chosen])
            if u is None or any(value < 0 for value in u):
                continue
            y = [
                -sum((v * N[i][j] for v, i in zip(u, chosen, strict=True)), Fraction(0))
                for j in range(d)
            ]
            if all(_inner(N[i], y) <= b[i] for i in range(m)):
                return y  # the optimality conditions are sufficient
    return None


def _inner(a: Exact, b: Exact) -> Fraction:
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def _solve(matrix: list[Exact], right: Exact) -> Exact | None:
    """Gauss and Jordan; None for a singular matrix."""
    n = len(right)
    table = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(n):
        pivot = next((r for r in range(i, n) if table[r][i] != 0), None)
        if pivot is None:
            return None
        table[i], table[pivot] = table[pivot], table[i]
        table[i] = [value / table[i][i] for value in table[i]]
        for r in range(n):
            if r != i:
                table[r] = [x - table[r][i] * y for x, y in zip(table[r], table[i], strict=True)]
    return [row[n] for row in table]


def kkt_residual(
    rows: Array, offsets: Array, y: Array, active: Ints, multipliers: Array, reach: float = 0.0
) -> float:
    """Largest violation of the optimality conditions, relative to the size of their terms.

    ``multipliers`` belong to the rows named in ``active``, scaled to length one.  All four
    conditions: y = -N u, N y <= b with equality on the active rows, and u >= 0.  Offsets are
    known relative to ``reach`` if it is larger than they are.
    """
    tiny = math.ulp(0.0)
    lengths = np.linalg.norm(rows, axis=1)
    real = lengths > 0.0
    size = float(np.linalg.norm(y))
    N, b = rows[active] / lengths[active, None], offsets[active] / lengths[active]
    terms = max(size, float(np.abs(multipliers).sum()), tiny)
    stationarity = float(np.abs(y + N.T @ multipliers).max()) / terms
    sign = max(0.0, -float(multipliers.min(initial=0.0)) / terms)
    bounds = offsets[real] / lengths[real]
    excess = (rows @ y)[real] / lengths[real] - bounds
    feasibility = float((excess / (size + reach + np.abs(bounds) + tiny)).max(initial=0.0))
    gaps = np.abs(N @ y - b) / (size + reach + np.abs(b) + tiny)
    return max(stationarity, sign, feasibility, float(gaps.max(initial=0.0)))


def cell(arms: Array, centre: Array, z: int, rows: Array, offsets: Array) -> tuple[Array, Array]:
    """All constraints of the cell of arm z in a polytope, as rows; arms equal to z are void."""
    normals = arms - arms[z]
    return np.vstack([normals, rows]), np.append(-normals @ centre, offsets)


def system(kind: str, rng: np.random.Generator, d: int, m: int) -> tuple[Array, Array]:
    """A random system of a kind; cones have all their planes through one point."""
    normal = rng.standard_normal((m, d))
    small = rng.integers(-2, 3, (m, d)).astype(float)
    match kind:
        case "random":
            return normal, rng.standard_normal(m)
        case "integers":
            return small, rng.integers(-2, 3, m).astype(float)
        case "cone":
            return normal, normal @ rng.standard_normal(d)
        case "integer cone":
            return small, small @ rng.integers(-2, 3, d) / 3.0
        case "duplicates":
            twin = rng.integers(m, size=m)
            scale = rng.choice([0.3, 1.0, 7.0], m)
            return normal[twin] * scale[:, None], rng.standard_normal(m)[twin] * scale
        case "parallel":
            twin = rng.integers(m, size=m)
            sign = rng.choice([-1.0, 1.0], m)
            return normal[twin] * sign[:, None], rng.standard_normal(m) + 0.5
        case "box":
            corner, sides = 2.0 * rng.standard_normal(d), rng.integers(0, 2, d) * rng.random(d)
            return np.vstack([np.eye(d), -np.eye(d)]), np.append(corner + sides, -corner)
        case _:  # cross-polytope
            d = min(d, 3)
            signs = 1.0 - 2.0 * np.array(list(np.ndindex(*[2] * d)))
            return signs, 1.0 + signs @ (2.0 * rng.standard_normal(d))


def degenerate_arms(kind: str, rng: np.random.Generator, k: int, d: int) -> Array:
    """Arms many of which are never best alone, or hardly differ."""
    match kind:
        case "grid":
            return rng.integers(-1, 2, (k, d)).astype(float)
        case "cube":
            return rng.integers(0, 2, (k, d)).astype(float)
        case "nearly equal":
            arms = rng.standard_normal((k, d))[rng.integers(k, size=k)]
            return arms + 1e-8 * rng.standard_normal((k, d)) * rng.integers(0, 2, k)[:, None]
        case _:
            return rng.standard_normal((k, d))
