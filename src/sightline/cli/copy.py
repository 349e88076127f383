"""``sightline copy``."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline.cli.common import errors_as_messages
from sightline.cli.serve import DATABASE, Database, needs_service

__all__ = ["copy"]


def copy(
    experiment: Annotated[str, typer.Argument(help="Id of the experiment, which must be paused.")],
    to: Annotated[str, typer.Option(help="Target database, such as postgresql://...")],
    database: Database = DATABASE,
) -> None:
    """Copy an experiment to another database, where it continues bit for bit.

    Example: sightline copy page --database sqlite:///experiments.db --to postgresql://me@host/name
    """
    with errors_as_messages():
        needs_service()
        from sightline.service.events import copy_log
        from sightline.service.store import Store

        with Store(database, serving=False) as source, Store(to, serving=False) as target:
            count = copy_log(source, target, experiment)
        typer.echo(f"{count} entries copied")
