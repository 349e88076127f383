"""``sightline bound``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.compilation_notice import announce_compilation
from sightline.cli.errors import in_a_sentence

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
        float | None, typer.Option(help="Noise of a problem from a file; 1 by default.")
    ] = None,
    box: Annotated[
        float | None, typer.Option(help="Restrict the parameters to [-B, B] in each coordinate.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Relative gap to reach.")] = 1e-8,
    horizons: Annotated[
        str | None,
        typer.Option(help="Horizons at which to compute the bound as well: 1e3,1e4,10^1000."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(help="Picture to write, for problems in two dimensions.")
    ] = None,
    oracle: Annotated[
        Path | None,
        typer.Option(help="Picture to write: cost of the strategies that know the answer."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> None:
    """Compute c*, the regret per log n that no consistent policy can beat, with a certificate.

    Example: sightline bound end_of_optimism:slope=2,noise_variance=1 --figure bound.png
    """
    with in_a_sentence(f"cannot read {problem}" if _is_file(problem) else ""):
        world = _problem(problem, noise_std)
    _check_pictures(world, figure, oracle)
    with in_a_sentence():
        marks = _horizons(horizons, box)
        announce_compilation()
        found = _bound(world, box, tolerance)
        curve = [found.at(n) for n in marks]
        if as_json:
            typer.echo(json.dumps(_plain(found) | _plain_curve(curve)))
        else:
            from sightline.cli.bound_table import print_bound

            print_bound(found, curve)
    if figure is not None:
        with in_a_sentence(f"cannot write {figure}"):
            from sightline.report.bound import bound_figure

            bound_figure(found, figure)
    if oracle is not None:
        with in_a_sentence(f"cannot write {oracle}"):
            from sightline.report.bound import oracle_figure

            oracle_figure(found, oracle)


def _check_pictures(problem: TableProblem, figure: Path | None, oracle: Path | None) -> None:
    """Refuse figures that cannot be drawn or written, before the bound is computed."""
    from sightline.cli.pictures import check_picture

    for picture in (figure, oracle):
        if picture is not None:
            with in_a_sentence(f"cannot write {picture}"):
                check_picture(picture)
    if figure is not None:
        from sightline.report.bound import check_plane

        with in_a_sentence():
            check_plane(problem)


def _is_file(text: str) -> bool:
    from sightline.problems.files import is_problem_file

    return is_problem_file(text)


def _problem(text: str, noise_std: float | None) -> TableProblem:
    from sightline.cli.arguments import lasting, parse_table
    from sightline.problems.files import read_problem

    if _is_file(text):
        return lasting(read_problem(text, noise_std))
    if noise_std is not None:
        raise ValueError("--noise-std is for problems from files; write name:noise_variance=...")
    return parse_table(text)


def _horizons(text: str | None, box: float | None) -> list[int]:
    from sightline.simulation.simulate import parse_rounds
    from sightline.validation import integer

    if text is None:
        return []
    if box is not None:
        raise ValueError("--horizons is for all parameters: leave out --box")
    marks = [parse_rounds("--horizons", part) for part in text.split(",")]
    return [integer("--horizons", n, at_least=2) for n in marks]


def _bound(problem: TableProblem, box: float | None, tolerance: float) -> LowerBound:
    from sightline.bounds.asymptotic import lower_bound
    from sightline.core.projections import LARGEST_ENTRY, Polytope
    from sightline.validation import number

    parameter_set = None
    if box is not None:
        number("--box", box, above=0, at_most=LARGEST_ENTRY)
        parameter_set = Polytope.box([-box] * problem.d, [box] * problem.d)
    return lower_bound(problem, parameter_set, tolerance=tolerance)


def _plain(found: LowerBound) -> dict[str, Any]:
    with_contexts = found.problem.model.contexts is not None
    return {
        "problem": found.problem.name,
        # null where c* is infinite; then there is a witness
        "lower": _finite(found.lower),
        "upper": _finite(found.upper),
        "value": _finite(found.value),
        "gap": found.gap,
        "converged": found.converged,
        "optimal_arms": found.optimal_arms.tolist(),
        "reason": found.reason,
        # of every arm; null for fixed arms
        "contexts": found.problem.contexts_of_arms.tolist() if with_contexts else None,
        # the allocation of optimal arms is infinite
        "allocation": [_finite(a) for a in found.allocation.tolist()],
        "alternatives": found.alternatives.tolist(),
        "multipliers": found.multipliers.tolist(),
        "witness": None if found.witness is None else found.witness.tolist(),
        # for clicks and counts: the proof of the upper side
        "slopes": None if found.slopes is None else found.slopes.tolist(),
    }


def _plain_curve(curve: list[HorizonBound]) -> dict[str, Any]:
    sides = [
        {
            "horizon": str(at.horizon),  # of any size, which not every reader of JSON has
            "lower": _finite(at.lower),
            "upper": _finite(at.upper),
            "regret": _finite(at.regret),
            "allocation": [_finite(a) for a in at.allocation.tolist()],
            "prices": at.prices.tolist(),
        }
        for at in curve
    ]
    return {"horizons": sides} if curve else {}


def _finite(value: float) -> float | None:
    """Write infinity as null: JSON has none."""
    return value if math.isfinite(value) else None
