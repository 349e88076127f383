"""``sightline token create``, ``list`` and ``revoke``."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline.cli.common import errors_as_messages
from sightline.cli.serve import DATABASE, Database, needs_service

__all__ = ["tokens"]

tokens = typer.Typer(
    name="token", help="Tokens of a service: who may do what.", no_args_is_help=True
)


@tokens.command()
def create(
    name: Annotated[str, typer.Argument(help="Name of the token, such as website.")],
    role: Annotated[
        str,
        typer.Option(help="admin, experimenter, client or reader; each may do what the next may."),
    ] = "client",
    database: Database = DATABASE,
) -> None:
    """Make a token and print it, once: the database has its hash only.

    Example: sightline token create website --role client
    """
    with errors_as_messages():
        needs_service()
        from sightline.service.store import Store
        from sightline.service.tokens import create_token

        with Store(database, serving=False) as store:
            typer.echo(create_token(store, name, role))


@tokens.command("list")
def list_all(database: Database = DATABASE) -> None:
    """List all tokens by name and role, those that were revoked as well.

    Example: sightline token list --database sqlite:///experiments.db
    """
    with errors_as_messages():
        needs_service()
        from sightline.service.store import Store
        from sightline.service.tokens import list_tokens
        from sightline.sessions.ledger import date_of

        with Store(database, serving=False) as store:
            found = list_tokens(store)
        for token in found:
            end = "" if token.revoked is None else f"  revoked {date_of(token.revoked)}"
            made = date_of(token.created)
            typer.echo(f"{token.name:24} {token.role.name.lower():14} made {made}{end}")


@tokens.command()
def revoke(
    name: Annotated[str, typer.Argument(help="Name of the token.")],
    database: Database = DATABASE,
) -> None:
    """Make a token useless, within two seconds in a service that runs.

    Example: sightline token revoke website
    """
    with errors_as_messages():
        needs_service()
        from sightline.service.store import Store
        from sightline.service.tokens import revoke_token

        with Store(database, serving=False) as store:
            revoke_token(store, name)
        typer.echo(f"revoked {name}")
