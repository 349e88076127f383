"""c* by this library and by cvxpy with Clarabel: seconds and values, in one run.

    pip install -c constraints.txt -e '.[bench]'
    python -m benchmarks.lower_bound

The formulation for cvxpy is the natural one after the reduction that makes the program finite:
minimise Delta(alpha) subject to matrix_frac(p_z, V(alpha)) <= Delta(z)^2 / (2 sigma^2) for all z,
p being the arms in an orthonormal basis of the complement of the best one.  Every constraint is
a second-order cone of dimension k + d in factored form (rotated cones, ``cones``), or a
semidefinite block of size d + 1 (``blocks``, what matrix_frac compiles to).  Its time is split into
what cvxpy needs to build the program and what Clarabel needs to solve it.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import sightline as sl
from benchmarks.timing import fastest

SIZES = [(50, 5), (100, 5), (200, 10)]
INSTANCES = 5


def instance(k: int, d: int, seed: int) -> sl.LinearBandit:
    return sl.problems.unit_sphere(k=k, d=d, noise_variance=1.0, seed=seed)


def reduced(problem: sl.LinearBandit) -> tuple[np.ndarray, np.ndarray]:
    basis = np.linalg.svd(problem.actions[[problem.best]])[2][1:].T
    costly = np.arange(problem.k) != problem.best
    return problem.actions[costly] @ basis, problem.gaps[costly]


def as_blocks(problem: sl.LinearBandit) -> Any:
    """Semidefinite blocks [[V, p], [p^T, t]], t = Delta^2 / (2 sigma^2)."""
    import cvxpy as cp

    points, gaps = reduced(problem)
    shares = cp.Variable(len(gaps), nonneg=True)  # alpha Delta: entries of comparable size
    weighted = points / np.sqrt(gaps)[:, None]
    V = weighted.T @ cp.diag(shares) @ weighted
    limits = gaps**2 / (2.0 * problem.model.noise_std**2)
    constraints = [cp.matrix_frac(p, V) <= limit for p, limit in zip(points, limits, strict=True)]
    return cp.Problem(cp.Minimize(cp.sum(shares)), constraints)


def as_cones(problem: sl.LinearBandit) -> Any:
    """p_z = sum_x y_zx p_x with sum_x y_zx^2 / alpha_x <= t_z: the factored form of the same."""
    import cvxpy as cp

    points, gaps = reduced(problem)
    k = len(gaps)
    shares = cp.Variable(k, nonneg=True)
    y, parts = cp.Variable((k, k)), cp.Variable((k, k), nonneg=True)
    weighted = points / np.sqrt(gaps)[:, None]
    limits = gaps**2 / (2.0 * problem.model.noise_std**2)
    flat, squares = cp.vec(y, order="C"), cp.vec(parts, order="C")
    owners = cp.hstack([shares] * k)
    # y^2 <= part * share, entry by entry
    cones = cp.SOC(squares + owners, cp.vstack([2 * flat, squares - owners]), axis=0)
    constraints = [y @ weighted == points, cp.sum(parts, axis=1) <= limits, cones]
    return cp.Problem(cp.Minimize(cp.sum(shares)), constraints)


def by_cvxpy(make: Any, problem: sl.LinearBandit) -> tuple[float, float, float, str]:
    """Seconds in all, seconds inside Clarabel, value, status."""
    import cvxpy as cp

    began = time.perf_counter()
    program = make(problem)
    try:
        program.solve(solver=cp.CLARABEL)
    except cp.error.SolverError:
        return time.perf_counter() - began, math.nan, math.nan, "failed"
    seconds = time.perf_counter() - began
    return seconds, program.solver_stats.solve_time, float(program.value), program.status


def compare(k: int, d: int, forms: dict[str, Any]) -> None:
    rows: dict[str, list[tuple[float, float]]] = {name: [] for name in forms}
    ours, outside = [], 0
    for seed in range(INSTANCES):
        problem = instance(k, d, seed)
        ours.append(fastest([lambda p=problem: sl.lower_bound(p)], 5)[0])  # type: ignore[misc]
        bound = sl.lower_bound(problem)
        line = f"  seed {seed}: [{bound.lower:.9g}, {bound.upper:.9g}]"
        for name, make in forms.items():
            seconds, inside, value, status = by_cvxpy(make, problem)
            rows[name].append((seconds, inside))
            off = max(bound.lower - value, value - bound.upper, 0.0) / bound.upper
            wrong = not off <= 1e-4
            outside += wrong and status == "optimal"
            line += f"  {name} {value:.9g} ({status}, off by {off:.0e})"
        print(line)
    median = float(np.median(ours))
    print(f"k={k}, d={d}: ours {1e3 * median:.2f} ms median of {INSTANCES}", end="")
    for name, times in rows.items():
        total, inside = np.median(np.array(times), axis=0)
        print(
            f"; {name} {total:.2f} s ({total / median:.0f} times), inside Clarabel {inside:.2f} s "
            f"({inside / median:.0f} times)",
            end="",
        )
    print(f"; 'optimal' but off by more than 1e-4: {outside}")


def growth(d: int) -> None:
    """Seconds against k, and the exponent of the last decade."""
    sizes = [100, 300, 1000, 3000, 10_000]
    seconds = []
    for k in sizes:
        problem = instance(k, d, 0)
        seconds.append(fastest([lambda p=problem: sl.lower_bound(p)], 3)[0])  # type: ignore[misc]
        bound = sl.lower_bound(problem)
        print(f"k={k}, d={d}: {1e3 * seconds[-1]:.0f} ms, relative gap {bound.gap:.0e}")
    exponent = np.polyfit(np.log(sizes[-3:]), np.log(seconds[-3:]), 1)[0]
    print(f"d={d}: seconds grow like k^{exponent:.2f} from k = {sizes[-3]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--alone", action="store_true", help="without cvxpy")
    arguments = parser.parse_args()
    if not arguments.alone:
        for k, d in SIZES:
            forms = {"blocks": as_blocks, "cones": as_cones}
            if k > 100:  # k^2 cones: minutes
                del forms["cones"]
            compare(k, d, forms)
    growth(5)
    growth(20)


if __name__ == "__main__":
    main()
