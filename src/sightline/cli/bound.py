"""``sightline bound``: c* of a problem with its certificate."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import (
    announce_compilation,
    check_figure,
    errors_as_messages,
    finite_or_none,
)

if TYPE_CHECKING:
    from sightline.bounds.asymptotic import LowerBound
    from sightline.bounds.finite_horizon import HorizonBound
    from sightline.problems.base import TableProblem

__all__ = ["bound"]


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
    box: Annotated[
        float | None, typer.Option(help="Restrict the parameters to [-B, B] in each coordinate.")
    ] = None,
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
    with errors_as_messages(f"cannot read {problem}" if _is_file(problem) else ""):
        parsed = _problem(problem, noise_std)
    _check_figures(parsed, figure, oracle)
    with errors_as_messages():
        marks = _horizons(horizons, box)
        announce_compilation()
        found = _bound(parsed, box, tolerance)
        curve = [found.at(n) for n in marks]
        if as_json:
            typer.echo(json.dumps(_plain(found) | _plain_curve(curve)))
        else:
            from sightline.cli.tables import print_bound

            print_bound(found, curve)
    if figure is not None:
        with errors_as_messages(f"cannot write {figure}"):
            from sightline.report.bound import bound_figure

            bound_figure(found, figure)
    if oracle is not None:
        with errors_as_messages(f"cannot write {oracle}"):
            from sightline.report.bound import oracle_figure

            oracle_figure(found, oracle)


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


def _is_file(text: str) -> bool:
    from sightline.problems.descriptions import is_problem_file

    return is_problem_file(text)


def _problem(text: str, noise_std: float | None) -> TableProblem:
    from sightline.cli.arguments import fixed_table, parse_table
    from sightline.problems.descriptions import read_problem

    if _is_file(text):
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


def _bound(problem: TableProblem, box: float | None, tolerance: float) -> LowerBound:
    from sightline.bounds.asymptotic import lower_bound
    from sightline.cli.arguments import parameter_set

    return lower_bound(problem, parameter_set(problem, box), tolerance=tolerance)


def _plain(found: LowerBound) -> dict[str, Any]:
    with_contexts = found.problem.model.contexts is not None
    return {
        "problem": found.problem.name,
        # null if c* is infinite; the witness then shows why
        "lower": finite_or_none(found.lower),
        "upper": finite_or_none(found.upper),
        "value": finite_or_none(found.value),
        "gap": found.gap,
        "converged": found.converged,
        "optimal_arms": found.optimal_arms.tolist(),
        "reason": found.reason,
        # context of every arm; null for fixed arms
        "contexts": found.problem.contexts_of_arms.tolist() if with_contexts else None,
        # the allocation of optimal arms is infinite
        "allocation": [finite_or_none(a) for a in found.allocation.tolist()],
        "alternatives": found.alternatives.tolist(),
        "multipliers": found.multipliers.tolist(),
        "witness": None if found.witness is None else found.witness.tolist(),
        # for clicks and counts: certificate of the upper side
        "slopes": None if found.slopes is None else found.slopes.tolist(),
    }


def _plain_curve(curve: list[HorizonBound]) -> dict[str, Any]:
    sides = [
        {
            "horizon": str(at.horizon),  # may exceed the integers of a JSON reader
            "lower": finite_or_none(at.lower),
            "upper": finite_or_none(at.upper),
            "regret": finite_or_none(at.regret),
            "allocation": [finite_or_none(a) for a in at.allocation.tolist()],
            "prices": at.prices.tolist(),
        }
        for at in curve
    ]
    return {"horizons": sides} if curve else {}
