"""``sightline compile``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.errors import in_a_sentence

if TYPE_CHECKING:
    from pathlib import Path

    from sightline.policies.base import Policy

__all__ = ["compile_policies"]


def compile_policies(
    policy: Annotated[
        list[str] | None,
        typer.Argument(
            help="Policies, such as ids:information=halfspace-ucb; by default every one that "
            "sightline list shows, with its defaults."
        ),
    ] = None,
) -> None:
    """Fill the kernel cache on all cores, so that no run has to wait for the compiler.

    For images and clusters: what is compiled is what simulations with Gaussian rewards, sessions
    and the service call.  NUMBA_CACHE_DIR says where kernels are kept; those who use them there
    need not be able to write.

    Example: sightline compile ids lin-ucb
    """
    with in_a_sentence(interrupted="stopped; what is compiled is kept"):
        from sightline.cli.arguments import parse_policies
        from sightline.experiments.compilation import default_policies

        policies = parse_policies(policy, "policy") if policy else default_policies()
        directory = _writable_cache()
        began = time.perf_counter()
        _compile(policies)
        if not any(directory.rglob("*.nbc")):
            raise RuntimeError(f"nothing was written to {directory}: is the disk full?")
        seconds = time.perf_counter() - began
        typer.echo(f"{len(policies)} compiled in {seconds:.0f} s; kernels are in {directory}")


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

    from sightline.experiments.compilation import Job, compile_in_processes, exercise

    columns = (TextColumn("compiling"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True) as progress:
        bar = progress.add_task("", total=len(policies))

        def report(name: str, seconds: float) -> None:
            progress.console.print(f"{name}: {seconds:.1f} s", markup=False, soft_wrap=True)
            progress.advance(bar)

        compile_in_processes(
            [Job(name, exercise, (policy,)) for name, policy in policies.items()], report
        )
