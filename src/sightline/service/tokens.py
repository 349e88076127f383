"""Who may do what: tokens with roles, of which the database has hashes only.

A token is 32 random bytes, so that a plain SHA-256 of it tells nobody anything: there is no list of
likely ones to try.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from enum import IntEnum
from typing import NamedTuple

from sqlalchemy import insert, select, update
from sqlalchemy.exc import IntegrityError

from sightline.service.schema import TOKENS
from sightline.service.store import Store
from sightline.validation import one_of, shown

__all__ = [
    "LastAdminError",
    "Role",
    "TakenError",
    "Token",
    "Tokens",
    "create_token",
    "list_tokens",
    "revoke_token",
]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_PREFIX = "sl_"  # by which people, and programs that look for leaked ones, know a token


class Role(IntEnum):
    """What a token allows; each role may do all that those before it may."""

    READER = 1
    CLIENT = 2
    EXPERIMENTER = 3
    ADMIN = 4


class Token(NamedTuple):
    """A token as the database knows it; times are seconds since 1970."""

    name: str
    role: Role
    created: float
    revoked: float | None


class TakenError(ValueError):
    """There is a token with this name, or was."""


class LastAdminError(ValueError):
    """Nobody could make another token over HTTP."""


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(store: Store, name: str, role: str) -> str:
    """Make a token, and return it: nobody can read it again.

    Raises
    ------
    TakenError
        If the name is taken.
    ValueError
        If it cannot be a name, or there is no such role.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(
            f"the name of a token has letters, digits, '.', '_' and '-', 100 at most, got "
            f"{shown(name)}"
        )
    level = Role[one_of("role", role, [one.name.lower() for one in Role]).upper()]
    secret = _PREFIX + secrets.token_urlsafe(32)
    values = {"name": name, "hash": _hash(secret), "role": level.name.lower()}
    try:
        with store.writing() as connection:
            connection.execute(insert(TOKENS).values(created=time.time(), **values))
    except IntegrityError:
        raise TakenError(
            f"there is a token {name!r} already: name another, since revoked ones stay listed"
        ) from None
    return secret


def list_tokens(store: Store) -> list[Token]:
    """List all tokens, those that were revoked as well."""
    with store.reading() as connection:
        found = connection.execute(select(TOKENS).order_by(TOKENS.c.created, TOKENS.c.name)).all()
    return [Token(row.name, Role[row.role.upper()], row.created, row.revoked) for row in found]


def revoke_token(store: Store, name: str, *, keep_admin: bool = False) -> None:
    """Make a token useless, within the seconds of ``Settings.token_refresh``; it stays listed.

    Parameters
    ----------
    store : Store
        Where it is.
    name : str
        Its name.
    keep_admin : bool
        Whether to refuse the last token of an admin.

    Raises
    ------
    LastAdminError
        If it is the last one of an admin, which is to be kept.
    ValueError
        If there is no such token.
    """
    valid = TOKENS.c.revoked.is_(None)
    admin = TOKENS.c.role == Role.ADMIN.name.lower()
    with store.writing() as connection:
        # locked, and in one order: of two that revoke each other, the second sees what the first
        # has done (SQLite has one that writes at a time)
        held = select(TOKENS.c.name).where(valid & admin).order_by(TOKENS.c.name).with_for_update()
        if keep_admin and connection.scalars(held).all() == [name]:
            raise LastAdminError(f"{name} is the last admin: sightline token revoke does that")
        unused = valid & (TOKENS.c.name == name)
        done = connection.execute(update(TOKENS).where(unused).values(revoked=time.time()))
        if done.rowcount == 0:
            raise ValueError(f"there is no token {shown(name)} that could be revoked")


class Tokens:
    """Tokens in memory, read again when they are old.

    Parameters
    ----------
    store : Store
        Where they are.
    loopback : bool
        Whether only this machine can connect: without any token, everybody is then an admin.
    lifetime : float
        Seconds after which they are read again.
    """

    def __init__(self, store: Store, loopback: bool, lifetime: float) -> None:
        self._store, self._loopback, self._lifetime = store, loopback, lifetime
        self._roles: dict[str, tuple[str, Role]] = {}
        self._read = -float("inf")
        self.refresh()

    @property
    def is_old(self) -> bool:
        """Whether they should be read again."""
        return time.monotonic() - self._read > self._lifetime

    def refresh(self) -> None:
        """Read them."""
        with self._store.reading() as connection:
            found = connection.execute(select(TOKENS)).all()
        # revoked ones count: a service that was closed once does not open by itself again
        self.needed = bool(found) or not self._loopback
        self._roles = {
            row.hash: (row.name, Role[row.role.upper()]) for row in found if row.revoked is None
        }
        self._read = time.monotonic()

    def holder(self, secret: str | None) -> tuple[str, Role] | None:
        """Name and role of whoever has a token; None if it is not valid."""
        if not self.needed:
            return "", Role.ADMIN
        return None if secret is None else self._roles.get(_hash(secret))
