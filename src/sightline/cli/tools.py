"""Short commands: ``list``, ``compile``, ``bench`` and ``watch``."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.cli.common import announce_compilation, errors_as_messages

if TYPE_CHECKING:
    from sightline.policies.base import Policy


# --- list ---------------------------------------------------------------------------------------


def list_names() -> None:
    """List all problems and policies with their fields.

    Example: sightline list | less
    """
    from sightline.policies.catalogue import PARTS, POLICIES
    from sightline.problems.descriptions import PROBLEMS

    typer.echo("Problems: name:field=value,...")
    for name, make in sorted(PROBLEMS.items()):
        _print(name, make)
    typer.echo("\nPolicies: name:field=value,...; capitals, - and _ do not matter")
    for name, cls in sorted(POLICIES.items(), key=lambda item: item[0].lower()):
        _print(name, cls)
    typer.echo("\nParts of policies: ids:confidence=LogLog,confidence.factor=0.5 (lists: --config)")
    for name, cls in sorted(PARTS.items()):
        if name not in POLICIES:
            _print(name, cls)


def _print(name: str, make: Any) -> None:
    """Print a name, its summary and its fields in two lines."""
    typer.echo(f"  {name}: {(inspect.getdoc(make) or '').splitlines()[0]}")
    typer.echo(f"      {', '.join(_fields(make))}")


def _fields(make: Any) -> list[str]:
    """Parameters with their defaults as the command line writes them."""
    parts = {
        field.name: field.default_factory()
        for field in (dataclasses.fields(make) if dataclasses.is_dataclass(make) else ())
        if field.default_factory is not dataclasses.MISSING
    }
    return [
        name + _default(parts.get(name, parameter.default))
        for name, parameter in inspect.signature(make).parameters.items()
    ]


def _default(value: Any) -> str:
    if value is inspect.Parameter.empty:
        return " (required)"
    if dataclasses.is_dataclass(value):  # a part; its fields are listed with its class
        return f"={type(value).__name__}"
    return f"={str(value).lower()}" if isinstance(value, str | int | float) else ""


# --- compile ------------------------------------------------------------------------------------


def compile_policies(
    policy: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policies, such as ids:information=halfspace-ucb; by default all that "
            "sightline list shows, with their defaults."
        ),
    ] = None,
    list_found: Annotated[
        bool, typer.Option("--list", help="Say where kernels are found, and compile nothing.")
    ] = False,
) -> None:
    """Compile policies for this processor on all cores, in all settings that they take.

    For container images, clusters, and where the kernels of the package sightline-kernels, which
    are for many processors, are to be replaced by faster ones.  NUMBA_CACHE_DIR sets the directory;
    processes that use these kernels only need to read it.

    Example: sightline compile ids lin-ucb
    """
    with errors_as_messages(interrupted="stopped; compiled kernels are kept"):
        from sightline.cli.arguments import parse_policies
        from sightline.experiments.compilation import default_policies

        policies = parse_policies(policy, "policy") if policy else default_policies()
        if list_found:
            _list_kernels(policies)
            return
        directory = _writable_cache()
        began = time.perf_counter()
        _compile(policies)
        if not any(directory.rglob("*.nbc")):
            raise RuntimeError(f"nothing was written to {directory}: is the disk full?")
        seconds = time.perf_counter() - began
        typer.echo(f"{len(policies)} compiled in {seconds:.0f} s; kernels are in {directory}")


def _list_kernels(policies: Mapping[str, Policy]) -> None:
    """Print for every policy and setting where its kernels are found."""
    from sightline.experiments.compilation import find_origins
    from sightline.jit import cache_directory, shipped_kernels
    from sightline.jit.cache import cache_trouble
    from sightline.jit.numba_compat import is_disabled

    if is_disabled():
        raise RuntimeError("no kernel is used: NUMBA_DISABLE_JIT is set")
    shipped = shipped_kernels()
    typer.echo(f"cache: {cache_directory() or cache_trouble()}")
    typer.echo(f"package: {shipped.found.directory if shipped.found else shipped.reason}")
    for name, found in find_origins(policies):
        for setting, origin in found.items():
            typer.echo(f"{name}, {setting}: {origin}")


def _writable_cache() -> Path:
    from sightline.jit.cache import cache_directory, cache_trouble
    from sightline.jit.numba_compat import is_disabled

    if is_disabled():
        raise RuntimeError("nothing can be compiled: NUMBA_DISABLE_JIT is set")
    directory = cache_directory()
    if directory is None:
        raise RuntimeError(cache_trouble())
    return directory


def _compile(policies: Mapping[str, Policy]) -> None:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from sightline.experiments.compilation import (
        Job,
        compile_bounds,
        compile_in_processes,
        compile_natively,
    )

    columns = (TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        bar = progress.add_task("", total=len(policies) + 1)

        def report(name: str, seconds: float) -> None:
            progress.console.print(f"{name}: {seconds:.1f} s", markup=False, soft_wrap=True)
            progress.advance(bar)

        jobs = [Job("lower bounds", compile_bounds, ())]
        jobs += [Job(name, compile_natively, (policy,)) for name, policy in policies.items()]
        compile_in_processes(jobs, report)


# --- bench --------------------------------------------------------------------------------------


def bench(
    groups: Annotated[
        list[str] | None,
        typer.Argument(help="c, numpy, published, growth, start; all by default."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for bench.json and growth.svg.")] = Path(
        "bench"
    ),
    repeats: Annotated[
        int, typer.Option(min=1, help="Repetitions of each timing; the fastest counts.")
    ] = 5,
) -> None:
    """Measure speed as ratios within one run, because machines are noisy.

    Needs a checkout of the sources, which contains the reference implementations.

    Example: sightline bench c growth --out results
    """
    from rich.console import Console

    with errors_as_messages(f"cannot measure into {out}"):
        _benchmarks().bench(groups or [], out, repeats, Console())


def _benchmarks() -> Any:
    """Import the benchmarks of the checkout; an installed package has none."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "bench.py").is_file():
        raise RuntimeError("the benchmarks are part of a checkout of the sources only")
    sys.path.insert(0, str(checkout))
    return importlib.import_module("benchmarks.bench")


# --- watch --------------------------------------------------------------------------------------


def watch(
    problem: Annotated[
        str, typer.Argument(help="Problem in two dimensions, such as unit_sphere:k=6,d=2,seed=3.")
    ] = "end_of_optimism",
    policy: Annotated[
        str, typer.Option(help="Member of the IDS family, such as ids:information=halfspace-ucb.")
    ] = "ids",
    rounds: Annotated[int, typer.Option(min=1, help="Last round to show.")] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the run.")] = 0,
    out: Annotated[Path, typer.Option(help="Page to write.")] = Path("watch.html"),
) -> None:
    """Write an HTML page with a slider that shows IDS in the plane, round by round.

    Example: sightline watch end_of_optimism:epsilon=0.1 --rounds 1000 --out watch.html
    """
    with errors_as_messages(f"cannot write {out}"):
        from sightline.cli.arguments import parse_bandit, parse_policies
        from sightline.policies.ids import IDS
        from sightline.report.watch import write_watch_page

        chosen_problem = parse_bandit(problem)
        (chosen_policy,) = parse_policies([policy]).values()
        if not isinstance(chosen_policy, IDS):
            raise ValueError(f"--policy must be of the IDS family, such as ids, got {policy!r}")
        announce_compilation()
        frames = write_watch_page(chosen_problem, chosen_policy, out, rounds, seed)
        typer.echo(f"{frames} frames: open {out} in a browser")
