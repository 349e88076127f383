"""``sightline serve``, and what all commands of the service share."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline.cli.common import errors_as_messages

__all__ = ["DATABASE", "Database", "needs_service", "serve"]

DATABASE = "sqlite:///experiments.db"
Database = Annotated[
    str,
    typer.Option(
        envvar="SIGHTLINE_DATABASE",
        help="sqlite:///experiments.db or postgresql://user@host/name.",
    ),
]


def needs_service() -> None:
    """Raise ImportError with the command to run if the service is not installed."""
    try:
        import sightline.service.app  # noqa: F401
    except ModuleNotFoundError as error:
        raise ImportError(
            f"{error.name} is missing: the service needs pip install 'sightline[service]'"
        ) from None


def serve(
    database: Database = DATABASE,
    host: Annotated[
        str, typer.Option(help="Address to listen on; any but the loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on.")] = 8000,
    rate: Annotated[
        float, typer.Option(min=0, help="Limit of requests per second and token; 0: no limit.")
    ] = 1000.0,
) -> None:
    """Serve experiments over HTTP, with durable decisions and rewards.

    Example: sightline serve --database sqlite:///experiments.db --port 8000
    """
    with errors_as_messages():
        needs_service()
        import logging

        from sightline.service.server import serve as run

        logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
        run(database, host, port, rate)
