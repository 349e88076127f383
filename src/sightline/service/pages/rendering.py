"""Templates and files of the pages, and the headers that every page has."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

from sightline.service.tokens import Role

__all__ = ["ASSETS", "HEADERS", "LONG", "Asset", "Visitor", "page", "rendered", "tag_of"]

#: Numbers from which on not all digits are written.
LONG = 1e15
#: Of every page.  Nothing within a page is executed, and no address but our own is used.  Forms
#: say where they come from, which they would not under the policy of the API: no-referrer.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Cookie",
}


class Asset(NamedTuple):
    """A file of the package that browsers ask for."""

    content: bytes
    media_type: str


class Visitor(NamedTuple):
    """Who looks at a page.

    Attributes
    ----------
    may_change : bool
        Whether forms are shown.
    signed_in : bool
        Whether there is a token to forget.
    """

    may_change: bool
    signed_in: bool

    @classmethod
    def of(cls, role: Role | None, tokens_needed: bool) -> Visitor:
        """Describe whoever has a role."""
        known = role is not None
        return cls(role is not None and role >= Role.EXPERIMENTER, known and tokens_needed)


_FILES = files("sightline.service.pages")


def _asset(name: str, media_type: str) -> Asset:
    return Asset(_FILES.joinpath("static", name).read_bytes(), media_type)


ASSETS = {
    "style.css": _asset("style.css", "text/css; charset=utf-8"),
    "script.js": _asset("script.js", "text/javascript; charset=utf-8"),
    "icon.svg": _asset("icon.svg", "image/svg+xml"),
}


def _moment(text: str | None) -> str:
    """Write a moment of the API for people; pages say that it is UTC."""
    if text is None:
        return "never"
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S}"


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if 1e4 <= abs(value) < LONG else f"{value:.4g}"


def _count(value: int) -> str:
    return f"{value:,}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("sightline.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"moment": _moment, "number": _number, "count": _count}
#: Of templates and files: with it browsers ask anew after an upgrade.
_STAMP = hashlib.sha256(
    b"".join(
        path.read_bytes()
        for folder in ("static", "templates")
        for path in sorted(_FILES.joinpath(folder).iterdir(), key=lambda path: path.name)
    )
).hexdigest()[:12]
_ENVIRONMENT.globals["stamp"] = _STAMP


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Fill in a template; everything that is not marked as safe is escaped."""
    return _ENVIRONMENT.get_template(template).render(values)


def page(template: str, values: Mapping[str, Any], status: int = 200, tag: str = "") -> Response:
    """Answer with a page; the tag changes whenever it does."""
    headers = dict(HEADERS)
    if tag:
        headers["ETag"] = tag_of(tag)
    return HTMLResponse(rendered(template, values), status, headers)


def tag_of(text: str) -> str:
    """Make a tag for what a page is made of."""
    return f'"{hashlib.sha256(f"{_STAMP} {text}".encode()).hexdigest()[:20]}"'
