"""``sightline audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.common import FAILURE, errors_as_messages

__all__ = ["audit"]


def audit(
    path: Annotated[Path, typer.Argument(help="Exported Parquet file.")],
) -> None:
    """Recompute every probability of an exported experiment from its log.

    The exit code is 0 if all are equal to the last bit, else 1.

    Example: sightline audit export.parquet
    """
    with errors_as_messages(f"cannot read {path}"):
        from sightline.report.audit import audit as recompute

        found = recompute(path)
        typer.echo(str(found))
        if not found.well:
            raise typer.Exit(FAILURE)
