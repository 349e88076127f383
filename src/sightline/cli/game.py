"""``sightline game``: observability class of a linear game."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import announce_compilation, errors_as_messages, finite_or_none

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
        bool, typer.Option("--simplex", help="Parameters are outcome probabilities: they sum to 1.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all witnesses as JSON.")] = False,
) -> None:
    """Classify a game by its minimax regret: trivial, locally or globally observable, hopeless.

    Example: sightline game end_of_optimism
    """
    from sightline.bounds.observability import observability
    from sightline.cli.arguments import parameter_set, parse_table
    from sightline.problems.descriptions import is_problem_file

    name = problem.partition(":")[0]
    with errors_as_messages(f"cannot read {name}" if is_problem_file(name) else ""):
        parsed = parse_table(problem)
    with errors_as_messages():
        allowed = parameter_set(parsed, box, simplex)
        found = observability(parsed, allowed)
        announce_compilation()
        bound = _bound(parsed, allowed)
        if as_json:
            typer.echo(json.dumps(_plain(found, bound)))
        else:
            from sightline.cli.tables import print_game

            print_game(found, bound, _verified(found))


def _bound(problem: TableProblem, parameter_set: Polytope | None) -> LowerBound | None:
    """Compute c* at the parameter of the game; None if that game and set have none."""
    from sightline.bounds.asymptotic import lower_bound

    try:
        return lower_bound(problem, parameter_set)
    except ValueError:
        return None


def _verified(found: Observability) -> str:
    """Recompute the witnesses and report the residual; near ties can exceed the tolerance."""
    try:
        return f"Witnesses recomputed, largest residual {found.verify():.0e}"
    except ArithmeticError as error:
        return f"The witnesses do not verify, so this class is uncertain: {error}"


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
        "c_star": None if bound is None else finite_or_none(bound.value),
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
