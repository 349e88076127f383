"""``sightline bound``: c* of a problem with its certificate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import (
    Box,
    announce_compilation,
    check_figure,
    errors_as_messages,
    json_text,
)

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound
    from sightline.bounds.finite_horizon import HorizonBound
    from sightline.problems.base import TableProblem


def bound(
    problem: Annotated[
        str,
        typer.Argument(
            help="Problem, such as end_of_optimism:slope=4, or a .json, .npz or .csv file with "
            "actions and theta."
        ),
    ],
    noise_std: Annotated[
        float | None, typer.Option(help="Noise level of a problem from a file; 1 by default.")
    ] = None,
    box: Box = None,
    tolerance: Annotated[float, typer.Option(help="Relative gap between both sides.")] = 1e-8,
    horizons: Annotated[
        str | None,
        typer.Option(help="Horizons for finite-horizon bounds: 1e3,1e4,10^1000."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Figure to write, for problems in two dimensions.")
    ] = None,
    oracle: Annotated[
        Path | None,
        typer.Option(help="Figure to write: cost of the oracle strategies against c*."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> None:
    """Compute c* with a certificate: no consistent policy has less regret than c* log n.

    Example: sightline bound end_of_optimism:slope=2,noise_variance=1 --figure bound.png
    """
    from sightline.bounds.asymptotic import lower_bound
    from sightline.cli.arguments import parameter_set
    from sightline.problems.descriptions import is_problem_file

    with errors_as_messages(f"cannot read {problem}" if is_problem_file(problem) else ""):
        parsed = _problem(problem, noise_std)
    _check_figures(parsed, figure, oracle)
    with errors_as_messages():
        marks = _horizons(horizons, box)
        announce_compilation()
        found = lower_bound(parsed, parameter_set(parsed, box), tolerance=tolerance)
        curve = [found.at(n) for n in marks]
        if as_json:
            typer.echo(json_text(_values(found, curve)))
        else:
            from sightline.cli.tables import print_bound

            print_bound(found, curve)
    if figure is None and oracle is None:
        return
    from sightline.report.bound import bound_figure, oracle_figure

    for path, draw in ((figure, bound_figure), (oracle, oracle_figure)):
        if path is not None:
            with errors_as_messages(f"cannot write {path}"):
                draw(found, path)


def _check_figures(problem: TableProblem, figure: Path | None, oracle: Path | None) -> None:
    """Refuse figures that cannot be drawn or written, before computing the bound."""
    for path in (figure, oracle):
        if path is not None:
            with errors_as_messages(f"cannot write {path}"):
                check_figure(path)
    if figure is not None:
        from sightline.report.bound import check_plane

        with errors_as_messages():
            check_plane(problem)


def _problem(text: str, noise_std: float | None) -> TableProblem:
    from sightline.cli.arguments import fixed_table, parse_table
    from sightline.problems.descriptions import is_problem_file, read_problem

    if is_problem_file(text):
        return fixed_table(read_problem(text, noise_std))
    if noise_std is not None:
        raise ValueError("--noise-std is for problems from files; write name:noise_variance=...")
    return parse_table(text)


def _horizons(text: str | None, box: float | None) -> list[int]:
    from sightline.simulation.simulate import parse_rounds
    from sightline.validation import integer

    if text is None:
        return []
    if box is not None:
        raise ValueError("--horizons needs all parameters: leave out --box")
    marks = [parse_rounds("--horizons", part) for part in text.split(",")]
    return [integer("--horizons", n, at_least=2) for n in marks]


def _values(found: LowerBound, curve: list[HorizonBound]) -> dict[str, Any]:
    """Return what --json prints: bounds are null where they are infinite."""
    with_contexts = found.problem.model.contexts is not None
    names = ("lower", "upper", "value", "gap", "converged", "optimal_arms", "reason")
    certificate = ("allocation", "alternatives", "multipliers", "witness", "slopes")
    values = {
        "problem": found.problem.name,
        **{name: getattr(found, name) for name in names},
        # context of every arm; null for fixed arms
        "contexts": found.problem.contexts_of_arms if with_contexts else None,
        # the allocation of optimal arms is infinite; slopes: for clicks and counts
        **{name: getattr(found, name) for name in certificate},
    }
    if curve:
        sides = ("lower", "upper", "regret", "allocation", "prices")
        values["horizons"] = [
            # a horizon may exceed the integers of a JSON reader
            {"horizon": str(at.horizon), **{name: getattr(at, name) for name in sides}}
            for at in curve
        ]
    return values
