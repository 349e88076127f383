"""``sightline game``."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.compilation_notice import announce_compilation
from sightline.cli.errors import in_a_sentence

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound
    from sightline.bounds.observability import Neighbours, Observability
    from sightline.core.projections import Polytope
    from sightline.problems.base import TableProblem

__all__ = ["game"]


def game(
    problem: Annotated[
        str,
        typer.Argument(
            help="Game or bandit, such as end_of_optimism:slope=4, or a .json or .npz file with "
            "rewards, observations and theta."
        ),
    ],
    box: Annotated[
        float | None, typer.Option(help="Restrict the parameters to [-B, B] in each coordinate.")
    ] = None,
    simplex: Annotated[
        bool, typer.Option("--simplex", help="Parameters are laws of outcomes: they sum to 1.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all witnesses as JSON.")] = False,
) -> None:
    """Tell how slowly regret can grow in a game: which arms compete, and what tells them apart.

    Example: sightline game end_of_optimism
    """
    from sightline.bounds.observability import observability
    from sightline.cli.arguments import parse_table
    from sightline.problems.files import is_problem_file

    name = problem.partition(":")[0]
    with in_a_sentence(f"cannot read {name}" if is_problem_file(name) else ""):
        world = parse_table(problem)
    with in_a_sentence():
        parameter_set = _parameter_set(world, box, simplex)
        found = observability(world, parameter_set)
        announce_compilation()
        bound = _bound(world, parameter_set)
        if as_json:
            typer.echo(json.dumps(_plain(found, bound)))
        else:
            from sightline.cli.game_table import print_game

            print_game(found, bound, _verified(found))


def _parameter_set(problem: TableProblem, box: float | None, simplex: bool) -> Polytope | None:
    from sightline.core.projections import LARGEST_ENTRY, Polytope
    from sightline.validation import number

    if simplex and box is not None:
        raise ValueError("give --box or --simplex, not both")
    if simplex:
        return Polytope.simplex(problem.d)
    if box is None:
        return None
    number("--box", box, above=0, at_most=LARGEST_ENTRY)
    return Polytope.box([-box] * problem.d, [box] * problem.d)


def _bound(problem: TableProblem, parameter_set: Polytope | None) -> LowerBound | None:
    """c* at the parameter of the game, where there is one: not for every game and set."""
    from sightline.bounds.asymptotic import lower_bound

    try:
        return lower_bound(problem, parameter_set)
    except ValueError:
        return None


def _verified(found: Observability) -> str:
    """Say what came of recomputing the witnesses; near ties can be too near for them."""
    try:
        return f"Witnesses recomputed, largest residual {found.verify():.0e}"
    except ArithmeticError as error:
        return f"Witnesses do not hold up, so this class is uncertain: {error}"


def _plain(found: Observability, bound: LowerBound | None) -> dict[str, Any]:
    return {
        "problem": found.problem.name,
        "kind": found.kind,
        "exponent": found.exponent,
        "reason": found.reason,
        "pareto": list(found.pareto),
        "classes": [list(members) for members in found.classes],
        "degenerate": list(found.degenerate),
        "parameters": found.parameters.tolist(),
        "neighbours": [_plain_pair(pair) for pair in found.neighbours],
        # infinity is null, as nothing is: JSON has none
        "c_star": bound.value if bound is not None and math.isfinite(bound.value) else None,
    }


def _plain_pair(pair: Neighbours) -> dict[str, Any]:
    return {
        "arms": [pair.first, pair.second],
        "between": list(pair.between),
        "seen": pair.seen,
        "tie": pair.tie.tolist(),
        "coefficients": None if pair.coefficients is None else pair.coefficients.tolist(),
        "parameters": None if pair.parameters is None else pair.parameters.tolist(),
    }
