"""A lower bound on the terminal: its bracket, its allocation and the alternatives that bind."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sightline.bounds.asymptotic import LowerBound
from sightline.report.bound import binding, paid_pulls

__all__ = ["print_bound"]


def print_bound(bound: LowerBound) -> None:
    """Print the bracket, the allocation by arm and the binding alternatives."""
    console = Console()
    console.print(f"{bound.lower:.10g} <= c* <= {bound.upper:.10g}", markup=False)
    console.print(str(bound.problem), markup=False, soft_wrap=True)
    reached = "" if bound.converged else f"; {bound.tolerance:.0e} was asked for"
    console.print(f"relative gap {bound.gap:.1e}{reached}", markup=False)
    if len(bound.optimal_arms) > 1:
        arms = ", ".join(map(str, bound.optimal_arms))
        console.print(f"Arms {arms} are all optimal, and all of them cost nothing.", markup=False)
    console.print(_allocation(bound))
    console.print(_alternatives(bound))


def _allocation(bound: LowerBound) -> Table:
    """Arms with a visible cost, the costliest first."""
    table = Table(title="Allocation: pulls per log n")
    for name in ("arm", "gap", "pulls / log n", "regret / log n"):
        table.add_column(name, justify="right")
    pulls, gaps = paid_pulls(bound), bound.problem.gaps
    for arm in np.argsort(-pulls * gaps):
        if arm in bound.optimal_arms:
            table.add_row(str(arm), "0", "free", "0")
        elif pulls[arm] > 0:
            cells = (gaps[arm], pulls[arm], pulls[arm] * gaps[arm])
            table.add_row(str(arm), *(f"{cell:.6g}" for cell in cells))
    return table


def _alternatives(bound: LowerBound) -> Table:
    """Binding alternatives, the heaviest first."""
    table = Table(title="Binding alternatives: multipliers sum to the lower side")
    for name in ("best arm there", "multiplier", "parameter"):
        table.add_column(name, justify="right")
    for j in binding(bound):
        nu = bound.alternatives[j]
        table.add_row(
            str(_best_under(bound, nu)),
            f"{bound.multipliers[j]:.6g}",
            "(" + ", ".join(f"{value:.4g}" for value in nu) + ")",
        )
    return table


def _best_under(bound: LowerBound, nu: NDArray[np.float64]) -> int:
    """Suboptimal arm that is as good as the optimal ones under an alternative."""
    means = bound.problem.actions @ nu
    means[bound.optimal_arms] = -np.inf
    return int(means.argmax())
