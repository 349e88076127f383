"""Projection onto cells against general QP solvers: python -m benchmarks.projection.

All solve the same instances: the cells of all arms, while the centre drifts.  Our kernel is timed
inside a compiled loop; daqp, quadprog and piqp (optional, at their default tolerances) through
their Python calls, overhead included, with matrices made beforehand.  "daqp inside" is the time
that daqp itself reports, set-up and solve.  Timed in turn, several times; the fastest counts.

The residual is the worst violation of the optimality conditions, relative to the distance to the
apex nu = 0, which lies in every cell: a solver that finds none has failed.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.projections import SOLVED, Projection, project_arm, projection
from sightline.jit import uncached

Array = NDArray[np.float64]

SIZES = [(6, 2), (50, 5), (50, 10)]
CONDITIONS = [1e2, 1e8]
DRIFTS = 10
REPEATS = 5


class Instances(NamedTuple):
    """Cells of k arms around centres (DRIFTS, d), and the same as matrices for each (drift, z)."""

    arms: Array
    centres: Array
    matrices: list[tuple[Array, Array]]


class Answer(NamedTuple):
    """Points and multipliers (of the rows as given), and the seconds a solver claims."""

    points: list[Array | None]  # None where it failed
    multipliers: list[Array]
    claimed: float


def instances(k: int, d: int, condition: float) -> Instances:
    """Arms in coordinates in which V, of this condition number, is the identity."""
    rng = np.random.default_rng(k * d)
    axes = np.linalg.qr(rng.standard_normal((d, d)))[0]
    roots = np.geomspace(1.0, condition**0.5, d)
    arms = np.ascontiguousarray(rng.standard_normal((k, d)) @ axes / roots)
    theta = rng.standard_normal(d) + 0.03 * rng.standard_normal((DRIFTS, d)).cumsum(axis=0)
    centres = theta @ axes * roots
    matrices = []
    for centre in centres:
        for z in range(k):
            normals = np.delete(arms, z, axis=0) - arms[z]
            matrices.append((normals, -normals @ centre))
    return Instances(arms, centres, matrices)


@uncached
def _all_cells(
    work: Projection,
    arms: Array,
    centres: Array,
    rows: Array,
    offsets: Array,
    point: Array,
    warm: bool,
) -> int:
    """Solve every instance; return how many were not solved."""
    failed = 0
    for t in range(centres.shape[0]):
        for z in range(arms.shape[0]):
            if not warm:
                work.counts[z] = 0
            project_arm(work, arms, centres[t], z, 0, len(arms), rows, offsets, point)
            failed += work.status[0] != SOLVED
    return failed


def ours(given: Instances, warm: bool) -> Callable[[], Answer]:
    k, d = given.arms.shape
    work, point = projection(k, d), np.zeros(d)
    nothing = np.zeros((0, d)), np.zeros(0)
    _all_cells(work, given.arms, given.centres[:1], *nothing, point, False)  # compile, and warm up

    def run() -> Answer:
        failed = _all_cells(work, given.arms, given.centres, *nothing, point, warm)
        assert failed == 0
        return Answer([], [], 0.0)

    return run


def our_answer(given: Instances, warm: bool) -> Answer:
    """Answers one by one, as the compiled loop keeps none."""
    k, d = given.arms.shape
    work = projection(k, d)
    points: list[Array | None] = []
    multipliers = []
    for centre in given.centres:
        for z in range(k):
            if not warm:
                work.counts[z] = 0
            point, full = np.zeros(d), np.zeros(k)
            rows, offsets = np.zeros((0, d)), np.zeros(0)
            project_arm(work, given.arms, centre, z, 0, k, rows, offsets, point)
            q = work.counts[z]
            lengths = np.linalg.norm(given.arms[work.members[:q]] - given.arms[z], axis=1)
            full[work.members[:q]] = work.multipliers[:q] / lengths
            points.append(point)
            multipliers.append(np.delete(full, z))
    return Answer(points, multipliers, 0.0)


def with_daqp(given: Instances, warm: bool) -> Callable[[], Answer]:
    daqp: Any = importlib.import_module("daqp")
    k, d = given.arms.shape
    hessian, linear, lower = np.eye(d), np.zeros(d), np.full(k - 1, -1e30)

    def run() -> Answer:
        answer, claimed = Answer([], [], 0.0), 0.0
        senses = [np.zeros(k - 1, dtype=np.int32) for _ in range(k)]
        for i, (normals, bounds) in enumerate(given.matrices):
            sense = senses[i % k]
            y, _, flag, info = daqp.solve(hessian, linear, normals, bounds, lower, sense)
            if warm:
                senses[i % k] = (info["lam"] > 0.0).astype(np.int32)
            claimed += info["setup_time"] + info["solve_time"]
            answer.points.append(y if flag == 1 else None)
            answer.multipliers.append(info["lam"])
        return answer._replace(claimed=claimed)

    return run


def with_quadprog(given: Instances, warm: bool) -> Callable[[], Answer]:
    quadprog: Any = importlib.import_module("quadprog")
    d = given.arms.shape[1]
    hessian, linear = np.eye(d), np.zeros(d)
    transposed = [(-normals.T, -bounds) for normals, bounds in given.matrices]

    def run() -> Answer:
        answer = Answer([], [], 0.0)
        for normals, bounds in transposed:
            try:
                y, _, _, _, multipliers, _ = quadprog.solve_qp(hessian, linear, normals, bounds)
            except ValueError:
                y, multipliers = None, bounds
            answer.points.append(y)
            answer.multipliers.append(multipliers)
        return answer

    return run


def with_piqp(given: Instances, warm: bool) -> Callable[[], Answer]:
    piqp: Any = importlib.import_module("piqp")
    d = given.arms.shape[1]
    hessian, linear = np.eye(d, order="F"), np.zeros(d)
    columns = [(np.asfortranarray(normals), bounds) for normals, bounds in given.matrices]

    def run() -> Answer:
        answer = Answer([], [], 0.0)
        solver = piqp.DenseSolver()
        for i, (normals, bounds) in enumerate(columns):
            if i == 0:
                solver.setup(hessian, linear, G=normals, h_u=bounds)
            else:
                solver.update(G=normals, h_u=bounds)
            ended = solver.solve()
            answer.points.append(np.array(solver.result.x) if ended == piqp.PIQP_SOLVED else None)
            answer.multipliers.append(np.array(solver.result.z_u))
        return answer

    return run


def residual(given: Instances, answer: Answer) -> float:
    """Worst residual over all instances."""
    worst = 0.0
    reaches = np.repeat(np.linalg.norm(given.centres, axis=1), given.arms.shape[0])
    for (normals, bounds), y, multipliers, reach in zip(
        given.matrices, answer.points, answer.multipliers, reaches, strict=True
    ):
        if y is None:
            continue
        lengths = np.linalg.norm(normals, axis=1)
        u, slack = multipliers * lengths, (bounds - normals @ y) / lengths
        terms = max(reach, float(np.abs(u).sum()))
        stationarity = np.abs(y + normals.T @ multipliers).max() / terms
        complementarity = np.abs(np.minimum(u / terms, slack / reach)).max()
        worst = max(worst, float(stationarity), float(complementarity))
    return worst


def contenders(given: Instances, warm: bool) -> Iterator[tuple[str, Callable[[], Answer] | None]]:
    yield "ours", ours(given, warm)
    others = {"daqp": with_daqp, "quadprog": with_quadprog, "piqp": with_piqp}
    for name, make in others.items():
        if warm and name != "daqp":  # the only one that takes an active set
            continue
        try:
            yield name, make(given, warm)
        except ImportError:
            yield name, None


def measure(given: Instances, warm: bool) -> list[str]:
    """One column per contender: microseconds per solve and the residual."""
    solves = len(given.matrices)
    runs = dict(contenders(given, warm))
    best = dict.fromkeys(runs, float("inf"))
    claimed = float("inf")
    answers: dict[str, Answer] = {}
    for _ in range(REPEATS):
        for name, run in runs.items():
            if run is not None:
                began = time.perf_counter()
                answers[name] = run()
                best[name] = min(best[name], time.perf_counter() - began)
                claimed = min(claimed, answers[name].claimed or claimed)
    answers["ours"] = our_answer(given, warm)
    columns = []
    for name, run in runs.items():
        if run is None:
            columns.append(f"{name}: not installed")
            continue
        inside = f" (inside {1e6 * claimed / solves:.2f})" if name == "daqp" else ""
        error = residual(given, answers[name])
        failed = sum(point is None for point in answers[name].points)
        note = f" ({failed} of {solves} failed)" if failed else ""
        columns.append(f"{name} {1e6 * best[name] / solves:.2f}{inside} {error:.0e}{note}")
    return columns


def main() -> None:
    """Print microseconds per solve and the worst residual."""
    print("microseconds per solve, then the worst residual")
    for k, d in SIZES:
        for condition in CONDITIONS:
            given = instances(k, d, condition)
            for warm in (False, True):
                start = "warm" if warm else "cold"
                columns = " | ".join(measure(given, warm))
                print(f"k={k:<3d} d={d:<3d} cond(V)={condition:.0e} {start}: {columns}", flush=True)


if __name__ == "__main__":
    main()
