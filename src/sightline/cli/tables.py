"""Tables of lower bounds and of games on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sightline.bounds.asymptotic import LowerBound
from sightline.bounds.finite_horizon import HorizonBound
from sightline.bounds.observability import Neighbours, Observability
from sightline.report.bound import binding, paid_pulls
from sightline.simulation.simulate import rounds_text

_TITLES = {
    "trivial": "trivial: no regret",
    "local": "locally observable: regret of order n^(1/2)",
    "global": "globally observable, not locally: regret of order n^(2/3)",
    "hopeless": "hopeless: regret of order n",
}
_MOST_PAIRS = 30  # on the terminal; --json has all


# --- lower bounds ---------------------------------------------------------------------------------


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
        console.print(f"The parameter: {_vector(bound.witness)}", markup=False, soft_wrap=True)
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
            _vector(nu),
        )
    return table


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


# --- games ----------------------------------------------------------------------------------------


def print_game(found: Observability, bound: LowerBound | None, verified: str) -> None:
    """Print the class and why, c* if there is one, cells, neighbours, and what was verified."""
    console = Console()
    console.print(_TITLES[found.kind], markup=False)
    console.print(str(found.problem), markup=False, soft_wrap=True)
    console.print(found.reason, markup=False, soft_wrap=True)
    if bound is not None:
        console.print(f"c* at its parameter: {bound.value:.6g}", markup=False)
    console.print(_pareto(found))
    if found.neighbours:
        # the worst first: they are the reason
        pairs = sorted(found.neighbours, key=lambda pair: pair.seen != found.kind)
        console.print(_neighbour_table(found, pairs[:_MOST_PAIRS]))
        if len(pairs) > _MOST_PAIRS:
            console.print(f"and {len(pairs) - _MOST_PAIRS} more pairs: --json has all of them")
    console.print(verified, markup=False, soft_wrap=True)


def _pareto(found: Observability) -> Table:
    table = Table(title="Pareto-optimal arms: each is best under some parameters, and near them")
    table.add_column("arm", justify="right")
    table.add_column("pays the same")
    table.add_column("best under")
    for members, theta in zip(found.classes, found.parameters, strict=True):
        table.add_row(str(members[0]), _arms(members[1:]), _vector(theta))
    if found.degenerate:
        table.caption = f"Best under some parameters, but nowhere alone: {_arms(found.degenerate)}"
    return table


def _neighbour_table(found: Observability, pairs: list[Neighbours]) -> Table:
    table = Table(title="Neighbours: the difference of what they pay, and what shows it")
    for name in ("arms", "as good at their tie", "shown by", "combination", "not told apart"):
        table.add_column(name)
    for pair in pairs:
        by = {"local": "these", "global": "others", "hopeless": "nothing"}[pair.seen]
        among = "" if pair.parameters is None else " and ".join(map(_vector, pair.parameters))
        table.add_row(
            f"{pair.first}, {pair.second}", _arms(pair.between), by, _combination(pair), among
        )
    return table


def _combination(pair: Neighbours) -> str:
    """Write the coefficients: 2 Y[3] - 0.5 Y[4, 1]."""
    if pair.coefficients is None:
        return ""
    one = pair.coefficients.shape[1] == 1
    terms = []
    for arm, row in np.argwhere(pair.coefficients):
        weight = pair.coefficients[arm, row]
        name = f"Y[{arm}]" if one else f"Y[{arm}, {row}]"
        size = f"{abs(weight):.4g} ".removeprefix("1 ")
        terms.append(f"{'-' if weight < 0 else '+'} {size}{name}")
    return " ".join(terms).removeprefix("+ ")


def _arms(arms: tuple[int, ...]) -> str:
    return ", ".join(map(str, arms))


def _vector(theta: NDArray[np.float64]) -> str:
    theta = np.where(np.abs(theta) > 1e-12 * np.abs(theta).max(), theta, 0.0)  # but for rounding
    return "(" + ", ".join(f"{value:.4g}" for value in theta) + ")"
