"""``sightline token create``, ``list`` and ``revoke``."""

from __future__ import annotations

from typing import Annotated

import typer

from sightline.cli.common import errors_as_messages
from sightline.cli.serve import DATABASE, Database, needs_service

__all__ = ["tokens"]

tokens = typer.Typer(
    name="token", help="Manage the access tokens of a service.", no_args_is_help=True
)


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
    with errors_as_messages():
        needs_service()
        from sightline.service.store import Store
        from sightline.service.tokens import create_token

        with Store(database, serving=False) as store:
            typer.echo(create_token(store, name, role))


@tokens.command("list")
def list_all(database: Database = DATABASE) -> None:
    """List all tokens by name and role, including revoked ones.

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
    with errors_as_messages():
        needs_service()
        from sightline.service.store import Store
        from sightline.service.tokens import revoke_token

        with Store(database, serving=False) as store:
            revoke_token(store, name)
        typer.echo(f"revoked {name}")
