"""``sightline audit``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.cli.common import FAILURE, errors_as_messages

__all__ = ["audit"]


def audit(
    path: Annotated[Path, typer.Argument(help="Parquet file of an export.")],
) -> None:
    """Recompute every probability of an exported experiment from its log.

    Exit code 0 if all come out the same, to the last bit; 1 if not.

    Example: sightline audit export.parquet
    """
    with errors_as_messages(f"cannot read {path}"):
        from sightline.report.audit import audit as recompute

        found = recompute(path)
        typer.echo(str(found))
        if not found.well:
            raise typer.Exit(FAILURE)
