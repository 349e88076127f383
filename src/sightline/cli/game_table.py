"""The class of a game on the terminal: its cells, its neighbours and what tells them apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from sightline.bounds.asymptotic import LowerBound
from sightline.bounds.observability import Neighbours, Observability

__all__ = ["print_game"]

_TITLES = {
    "trivial": "trivial: no regret",
    "local": "locally observable: regret of order n^(1/2)",
    "global": "globally observable, not locally: regret of order n^(2/3)",
    "hopeless": "hopeless: regret of order n",
}
_MOST_PAIRS = 30  # on the terminal; --json has all


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
        console.print(_neighbours(found, pairs[:_MOST_PAIRS]))
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


def _neighbours(found: Observability, pairs: list[Neighbours]) -> Table:
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
