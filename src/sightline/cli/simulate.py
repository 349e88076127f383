"""``sightline simulate``: run policies on problems."""

from __future__ import annotations

import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import (
    Dask,
    ResultStore,
    Threads,
    announce_compilation,
    check_figure,
    chosen_executor,
    errors_as_messages,
    json_text,
)

if TYPE_CHECKING:
    from sightline.experiments.experiment import Experiment
    from sightline.report.results import Results


def simulate(
    problem: Annotated[
        list[str] | None,
        typer.Option(
            help="Problem, such as end_of_optimism:epsilon=0.01, or a file as for bound; may be "
            "repeated."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="Policy, such as ids:information=halfspace-ucb; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="TOML file with the whole experiment, instead of options.")
    ] = None,
    horizon: Annotated[str | None, typer.Option(help="Rounds: 10^6 (default), 10^1000.")] = None,
    replications: Annotated[
        int | None, typer.Option(help="Runs per policy and problem; default: 100.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of all runs, 0 by default.")] = None,
    delay: Annotated[
        str | None,
        typer.Option(help="Delayed outcomes: 100 (rounds), geometric:100 (mean), batches:50."),
    ] = None,
    store: ResultStore = Path("results"),
    threads: Threads = None,
    dask: Dask = None,
    figure: Annotated[
        Path | None, typer.Option(help="Figure to write; regret.png in the store by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Run policies on problems, on all cores or a cluster; write results, print a table.

    Example: sightline simulate --problem end_of_optimism --policy ids --policy lin-ucb
    --policy "IDS-UCB=ids:information=halfspace-ucb" --horizon 10^6 --replications 100
    """
    options = {"horizon": horizon, "replications": replications, "seed": seed, "delay": delay}
    again = f"sightline {shlex.join(sys.argv[1:])}"
    kept = f"stopped; finished runs are kept.  Resume with: {again}"
    with errors_as_messages(interrupted=kept):
        from sightline.report.run import run

        experiment = _experiment(problem or [], policy or [], config, options)
        if figure is not None:
            check_figure(figure)
        announce_compilation()
        with chosen_executor(threads, dask) as executor:
            results = run(experiment, store, executor)
        path = figure or store / "regret.png"
        results.plot(path)
        if as_json:
            values = {
                "store": str(store),
                "figure": str(path),
                "summary": results.summary().to_dict("records"),
                "slopes": results.slopes().to_dict("records"),
                "lower_bounds": results.lower_bounds,
            }
            typer.echo(json_text(values))
        else:
            _print(results, store, path)


def _experiment(
    problems: list[str], policies: list[str], config: Path | None, options: dict[str, Any]
) -> Experiment:
    from sightline.cli.arguments import parse_policies, parse_problems
    from sightline.experiments.experiment import Experiment
    from sightline.simulation.simulate import parse_rounds

    given = {name: value for name, value in options.items() if value is not None}
    if config is not None:
        if problems or policies or given:
            raise ValueError("give --config or options for the experiment, not both")
        return Experiment.load(config)
    if not problems or not policies:
        raise ValueError("give at least one --problem and one --policy, or --config FILE")
    values: dict[str, Any] = {"horizon": "10^6", "replications": 100, "seed": 0} | given
    values["horizon"] = parse_rounds("--horizon", values["horizon"])
    if "delay" in given and ":" not in values["delay"]:
        values["delay"] = parse_rounds("--delay", values["delay"])
    return Experiment(parse_problems(problems), parse_policies(policies), **values)


def _print(results: Results, store: Path, figure: Path) -> None:
    from rich.console import Console
    from rich.table import Table

    from sightline.simulation.simulate import rounds_text

    console = Console()
    summary, slopes = results.summary(), results.slopes()
    for problem in results.problems:
        title = f"{problem}: regret after {rounds_text(results.grid.rounds[-1])} rounds"
        table = Table(title=title, caption=_bound_text(results, problem))
        table.add_column("policy", overflow="fold")  # not cut: labels differ at the end
        for name in ("mean ± standard error", "median", "5 % to 95 %", "slope in log n"):
            table.add_column(name, justify="right")
        rows = summary[summary.problem == problem].merge(slopes, on=["problem", "policy"])
        for row in rows.to_dict("records"):
            table.add_row(
                row["policy"],
                f"{row['mean']:.1f} ± {row['standard_error_x']:.1f}",
                f"{row['q0.5']:.1f}",
                f"{row['q0.05']:.1f} to {row['q0.95']:.1f}",
                f"{row['slope']:.3g} ± {row['standard_error_y']:.2g}",
            )
        console.print(table)
    console.print(f"Results: {store}\nFigure: {figure}", soft_wrap=True, markup=False)


def _bound_text(results: Results, problem: str) -> str | None:
    """Lower bound at the last round, beside the mean, and c*, beside the slope."""
    value = results.lower_bounds.get(problem)
    if value is None:  # a stream, or a store with problems that this version cannot read
        return None
    if value == math.inf:
        return "lower bound: c* is infinite, no arm reveals a difference that decides which is best"
    regret = value * math.log(results.grid.rounds[-1])
    return f"lower bound: c* log n = {regret:.4g}, with c* = {value:.4g} for this noise"
