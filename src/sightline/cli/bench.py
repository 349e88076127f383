"""``sightline bench``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from sightline.cli.errors import in_a_sentence

__all__ = ["bench"]


def bench(
    groups: Annotated[
        list[str] | None,
        typer.Argument(help="c, numpy, published, growth, start; all by default."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Directory for bench.json and growth.svg.")] = Path(
        "bench"
    ),
    repeats: Annotated[
        int, typer.Option(min=1, help="How often to time each thing; the fastest counts.")
    ] = 5,
) -> None:
    """Measure speed, as ratios within one run: the machine may be noisy.

    Works in a checkout of the sources, which has the code to compare with.

    Example: sightline bench c growth --out results
    """
    from rich.console import Console

    with in_a_sentence(f"cannot measure into {out}"):
        _benchmarks().bench(groups or [], out, repeats, Console())


def _benchmarks() -> Any:
    """Find the module next to the sources: an installed package has no benchmarks."""
    checkout = Path(__file__).parents[3]
    if not (checkout / "benchmarks" / "bench.py").is_file():
        raise RuntimeError("the benchmarks are part of a checkout of the sources only")
    sys.path.insert(0, str(checkout))
    return importlib.import_module("benchmarks.bench")
