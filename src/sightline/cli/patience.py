"""A word to who waits: the first use of a kernel compiles it, silently and for a while."""

from __future__ import annotations

import sys

import typer

__all__ = ["mention_compilation"]


def mention_compilation() -> None:
    """Say, to a person and not to a pipe, that nothing has been compiled yet."""
    from sightline.jit import cache_directory

    directory = cache_directory()
    if sys.stderr.isatty() and directory is not None and not any(directory.rglob("*.nbc")):
        typer.echo("First use: compiling, which takes half a minute or so, once.", err=True)
