"""``sightline game``: observability class of a linear game."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import Box, announce_compilation, errors_as_messages, json_text

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound
    from sightline.bounds.observability import Observability


def game(
    problem: Annotated[
        str,
        typer.Argument(
            help="Game or bandit, such as end_of_optimism:slope=4, or a .json or .npz file with "
            "rewards, observations and theta."
        ),
    ],
    box: Box = None,
    simplex: Annotated[
        bool, typer.Option("--simplex", help="Parameters are outcome probabilities: they sum to 1.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print all witnesses as JSON.")] = False,
) -> None:
    """Classify a game by its minimax regret: trivial, locally or globally observable, hopeless.

    Example: sightline game end_of_optimism
    """
    from sightline.bounds.asymptotic import lower_bound
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
        bound = None
        with contextlib.suppress(ValueError):  # there is no c* of this game and parameter set
            bound = lower_bound(parsed, allowed)
        if as_json:
            typer.echo(json_text(_values(found, bound)))
        else:
            from sightline.cli.tables import print_game

            print_game(found, bound, _verified(found))


def _verified(found: Observability) -> str:
    """Recompute the witnesses and report the residual; near ties can exceed the tolerance."""
    try:
        return f"Witnesses recomputed, largest residual {found.verify():.0e}"
    except ArithmeticError as error:
        return f"The witnesses do not verify, so this class is uncertain: {error}"


def _values(found: Observability, bound: LowerBound | None) -> dict[str, Any]:
    names = ("kind", "exponent", "reason", "pareto", "classes", "degenerate", "parameters")
    return {
        "problem": found.problem.name,
        **{name: getattr(found, name) for name in names},
        "neighbours": [
            {
                "arms": (pair.first, pair.second),
                "between": pair.between,
                "seen": pair.seen,
                "tie": pair.tie,
                "coefficients": pair.coefficients,
                "parameters": pair.parameters,
            }
            for pair in found.neighbours
        ],
        "c_star": None if bound is None else bound.value,
    }
