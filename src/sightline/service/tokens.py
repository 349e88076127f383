"""Access tokens with roles.

A token is 32 random bytes, so that its plain SHA-256 hash, which the database stores, reveals
nothing: there is no list of likely tokens to try.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from enum import IntEnum
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from sightline.service.schema import TOKENS
from sightline.service.schemas import NAME
from sightline.service.store import Store
from sightline.validation import one_of, shown

_PREFIX = "sl_"  # people and secret scanners recognise a token by it


class Role(IntEnum):
    """Role of a token; each role includes those before it."""

    READER = 1
    CLIENT = 2
    EXPERIMENTER = 3
    ADMIN = 4


class Token(NamedTuple):
    """A token as the database stores it; times are seconds since 1970."""

    name: str
    role: Role
    created: float
    revoked: float | None


class TokenConflictError(ValueError):
    """The name of a new token is taken, or the last admin would be revoked; ``kind`` says which."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(detail)
        self.kind = kind


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def create_token(store: Store, name: str, role: str) -> str:
    """Create a token and return its secret, which is not stored.

    TokenConflictError if the name is taken, ValueError if it or the role is not valid.
    """
    if not re.fullmatch(NAME, name):
        raise ValueError(
            f"the name of a token has letters, digits, '.', '_' and '-', 100 at most, got "
            f"{shown(name)}"
        )
    level = Role[one_of("role", role, [one.name.lower() for one in Role]).upper()]
    secret = _PREFIX + secrets.token_urlsafe(32)
    values = {"name": name, "hash": _hash(secret), "role": level.name.lower()}
    try:
        with store.writing() as connection:
            connection.execute(TOKENS.insert().values(created=time.time(), **values))
    except IntegrityError:
        detail = f"there is a token {name!r} already: name another, since revoked ones stay listed"
        raise TokenConflictError("token-exists", detail) from None
    return secret


def list_tokens(store: Store) -> list[Token]:
    """List all tokens, including revoked ones."""
    with store.reading() as connection:
        found = connection.execute(select(TOKENS).order_by(TOKENS.c.created, TOKENS.c.name)).all()
    return [Token(row.name, Role[row.role.upper()], row.created, row.revoked) for row in found]


def revoke_token(store: Store, name: str, *, keep_admin: bool = False) -> None:
    """Revoke a token; a running service notices within ``Settings.token_refresh`` seconds.

    ValueError if there is no such token; TokenConflictError if ``keep_admin`` is true and it is the
    last one of an admin: without it, none could be created over HTTP.
    """
    valid = TOKENS.c.revoked.is_(None)
    admin = TOKENS.c.role == Role.ADMIN.name.lower()
    with store.writing() as connection:
        # locked, and in one order: of two admins that revoke each other, the second one sees what
        # the first one has done (SQLite has one writer at a time)
        held = select(TOKENS.c.name).where(valid & admin).order_by(TOKENS.c.name).with_for_update()
        if keep_admin and connection.scalars(held).all() == [name]:
            detail = f"{name} is the last admin: revoke it with sightline token revoke {name}"
            raise TokenConflictError("last-admin", detail)
        unused = valid & (TOKENS.c.name == name)
        done = connection.execute(TOKENS.update().where(unused).values(revoked=time.time()))
        if done.rowcount == 0:
            raise ValueError(f"there is no token {shown(name)} that could be revoked")


class TokenCache:
    """Valid tokens in memory, read again after some seconds.

    If only this machine can connect (``loopback``), every caller is an admin until a token exists.
    """

    def __init__(self, store: Store, loopback: bool, lifetime: float) -> None:
        self._store, self._loopback, self._lifetime = store, loopback, lifetime
        self._roles: dict[str, tuple[str, Role]] = {}
        self._read = -float("inf")
        self.refresh()

    @property
    def is_old(self) -> bool:
        """Whether the tokens should be read again."""
        return time.monotonic() - self._read > self._lifetime

    def refresh(self) -> None:
        """Read the tokens."""
        with self._store.reading() as connection:
            found = connection.execute(select(TOKENS)).all()
        # revoked ones count: a service with tokens never becomes open by revoking them
        self.needed = bool(found) or not self._loopback
        self._roles = {
            row.hash: (row.name, Role[row.role.upper()]) for row in found if row.revoked is None
        }
        self._read = time.monotonic()

    def holder(self, secret: str | None) -> tuple[str, Role] | None:
        """Return name and role of a token; None if it is not valid."""
        if not self.needed:
            return "", Role.ADMIN
        return None if secret is None else self._roles.get(_hash(secret))
