"""Notice on the terminal before the first compilation, which takes half a minute."""

from __future__ import annotations

import sys

import typer

__all__ = ["announce_compilation"]


def announce_compilation() -> None:
    """Print a notice if no kernel is in the cache yet; only if stderr is a terminal."""
    from sightline.jit import cache_directory

    directory = cache_directory()
    if sys.stderr.isatty() and directory is not None and not any(directory.rglob("*.nbc")):
        typer.echo("First use: compiling, which takes half a minute or so, once.", err=True)
