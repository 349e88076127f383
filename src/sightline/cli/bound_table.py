"""A lower bound on the terminal: its bracket, its allocation and the alternatives that bind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sightline.bounds.asymptotic import LowerBound
from sightline.bounds.finite_horizon import HorizonBound
from sightline.report.bound import binding, paid_pulls
from sightline.simulation.simulate import rounds_text

__all__ = ["print_bound"]


def print_bound(bound: LowerBound, curve: Sequence[HorizonBound] = ()) -> None:
    """Print the bracket, the allocation by arm, the binding alternatives and the curve."""
    console = Console()
    console.print(f"{bound.lower:.10g} <= c* <= {bound.upper:.10g}", markup=False)
    console.print(str(bound.problem), markup=False, soft_wrap=True)
    reached = "" if bound.converged else f"; {bound.tolerance:.0e} was asked for"
    console.print(f"relative gap {bound.gap:.1e}{reached}", markup=False)
    if bound.reason is not None:
        console.print(bound.reason, markup=False, soft_wrap=True)
    if bound.witness is not None:
        console.print(f"The parameter: {_parameter(bound.witness)}", markup=False, soft_wrap=True)
        return
    if len(bound.optimal_arms) > len(bound.problem.starts_of_contexts) - 1:
        arms = ", ".join(
            " of context ".join(_names(bound, arm)[::-1]) for arm in bound.optimal_arms
        )
        console.print(f"Arms {arms} are all optimal, and all of them cost nothing.", markup=False)
    console.print(_allocation(bound))
    console.print(_alternatives(bound))
    if curve:
        console.print(_curve(curve))


def _headers(bound: LowerBound, arm: str) -> list[str]:
    """Names of the columns that say which arm a row is about."""
    return [arm] if bound.problem.model.contexts is None else ["context", arm]


def _names(bound: LowerBound, arm: int) -> list[str]:
    """Context of an arm, if there are any, and its number there."""
    problem = bound.problem
    context = int(problem.contexts_of_arms[arm])
    names = [str(context), str(arm - problem.starts_of_contexts[context])]
    return names[1:] if problem.model.contexts is None else names


def _allocation(bound: LowerBound) -> Table:
    """Arms with a visible cost, the costliest first."""
    table = Table(title="Allocation: pulls per log n")
    for name in (*_headers(bound, "arm"), "gap", "pulls / log n", "regret / log n"):
        table.add_column(name, justify="right")
    pulls, gaps = paid_pulls(bound), bound.problem.gaps
    for arm in np.argsort(-pulls * gaps):
        if arm in bound.optimal_arms:
            table.add_row(*_names(bound, arm), "0", "free", "0")
        elif pulls[arm] > 0:
            cells = (gaps[arm], pulls[arm], pulls[arm] * gaps[arm])
            table.add_row(*_names(bound, arm), *(f"{cell:.6g}" for cell in cells))
    return table


def _alternatives(bound: LowerBound) -> Table:
    """Binding alternatives, the heaviest first."""
    table = Table(title="Binding alternatives: multipliers sum to the lower side")
    for name in (*_headers(bound, "best arm there"), "multiplier", "parameter"):
        table.add_column(name, justify="right")
    for j in binding(bound):
        nu = bound.alternatives[j]
        table.add_row(
            *_names(bound, _best_under(bound, nu)),
            f"{bound.multipliers[j]:.6g}",
            _parameter(nu),
        )
    return table


def _parameter(nu: NDArray[np.float64]) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in nu) + ")"


def _best_under(bound: LowerBound, nu: NDArray[np.float64]) -> int:
    """Suboptimal arm that is as good as the optimal ones under an alternative."""
    means = bound.problem.actions @ nu
    lead = means - means[bound.problem.best_rows]
    lead[bound.optimal_arms] = -np.inf
    return int(lead.argmax())


def _curve(curve: Sequence[HorizonBound]) -> Table:
    """Bounds at horizons, of which c* is the limit."""
    table = Table(title="Cost of evidence log n within n rounds")
    for name in ("n", "regret / log n", "regret", "relative gap"):
        table.add_column(name, justify="right")
    for at in curve:
        n = rounds_text(at.horizon)
        if at.lower == np.inf:
            table.add_row(n, "too few rounds", "", "")
        else:
            table.add_row(n, f"{at.value:.6g}", f"{at.regret:.6g}", f"{at.gap:.1e}")
    return table
