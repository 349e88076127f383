"""Commands of the service: ``sightline serve``, ``token``, ``copy`` and ``audit``."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.cli.common import FAILURE, errors_as_messages

if TYPE_CHECKING:
    from sightline.service.store import Store

DATABASE = "sqlite:///experiments.db"
Database = Annotated[
    str,
    typer.Option(
        envvar="SIGHTLINE_DATABASE",
        help="sqlite:///experiments.db or postgresql://user@host/name.",
    ),
]

tokens = typer.Typer(
    name="token", help="Manage the access tokens of a service.", no_args_is_help=True
)


@contextlib.contextmanager
def _service() -> Iterator[None]:
    """Report errors as messages, also that the service is not installed."""
    with errors_as_messages():
        try:
            import sightline.service.app  # noqa: F401
        except ModuleNotFoundError as error:
            raise ImportError(
                f"{error.name} is missing: the service needs pip install 'sightline[service]'"
            ) from None
        yield


@contextlib.contextmanager
def _opened(database: str) -> Iterator[Store]:
    """Open a database that another process may serve."""
    with _service():
        from sightline.service.store import Store

        with Store(database, serving=False) as store:
            yield store


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
    with _service():
        import logging

        from sightline.service.server import serve as run

        logging.basicConfig(format="%(levelname)s %(name)s %(message)s", level=logging.INFO)
        run(database, host, port, rate)


@tokens.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the token, such as website.")],
    role: Annotated[
        str,
        typer.Option(help="admin, experimenter, client or reader; each role includes the next."),
    ] = "client",
    database: Database = DATABASE,
) -> None:
    """Create a token and print it; the database stores only its hash.

    Example: sightline token create website --role client
    """
    with _opened(database) as store:
        from sightline.service.tokens import create_token

        typer.echo(create_token(store, name, role))


@tokens.command("list")
def list_all(database: Database = DATABASE) -> None:
    """List all tokens by name and role, including revoked ones.

    Example: sightline token list --database sqlite:///experiments.db
    """
    with _opened(database) as store:
        from sightline.service.tokens import list_tokens
        from sightline.sessions.decisions import date_of

        for token in list_tokens(store):
            end = "" if token.revoked is None else f"  revoked {date_of(token.revoked)}"
            created = date_of(token.created)
            typer.echo(f"{token.name:24} {token.role.name.lower():14} created {created}{end}")


@tokens.command()
def revoke(
    name: Annotated[str, typer.Argument(help="Name of the token.")],
    database: Database = DATABASE,
) -> None:
    """Revoke a token; a running service notices within two seconds.

    Example: sightline token revoke website
    """
    with _opened(database) as store:
        from sightline.service.tokens import revoke_token

        revoke_token(store, name)
        typer.echo(f"revoked {name}")


def copy(
    experiment: Annotated[str, typer.Argument(help="Id of the experiment, which must be paused.")],
    to: Annotated[str, typer.Option(help="Target database, such as postgresql://...")],
    database: Database = DATABASE,
) -> None:
    """Copy an experiment to another database, where it continues bit for bit.

    Example: sightline copy page --database sqlite:///experiments.db --to postgresql://me@host/name
    """
    with _service():
        from sightline.service.events import copy_log
        from sightline.service.store import Store

        with Store(database, serving=False) as source, Store(to, serving=False) as target:
            count = copy_log(source, target, experiment)
        typer.echo(f"{count} entries copied")


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
