"""Templates and static files of the pages, and the headers of every page."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

#: Larger numbers are shown with four digits.
LONG = 1e15
#: Headers of every page: no inline code runs, and no other site is contacted.  The referrer policy
#: of the API, no-referrer, would hide the origin of forms.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; "
    "base-uri 'none'",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Vary": "Cookie",
}


class Asset(NamedTuple):
    """A static file."""

    content: bytes
    media_type: str


class Visitor(NamedTuple):
    """The user of a page: whether forms are shown, and whether there is a token to sign out."""

    may_change: bool
    signed_in: bool


_FILES = files("sightline.service.pages")
_MEDIA_TYPES = {
    "style.css": "text/css; charset=utf-8",
    "script.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}
ASSETS = {
    name: Asset(_FILES.joinpath("static", name).read_bytes(), media_type)
    for name, media_type in _MEDIA_TYPES.items()
}


def _moment(text: str | None) -> str:
    """Format a time of the API; pages say that it is UTC."""
    if text is None:
        return "never"
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M:%S}"


def _number(value: float | None) -> str:
    if value is None:
        return "unknown"
    return f"{value:,.0f}" if 1e4 <= abs(value) < LONG else f"{value:.4g}"


_ENVIRONMENT = Environment(
    loader=PackageLoader("sightline.service.pages"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_ENVIRONMENT.filters |= {"moment": _moment, "number": _number, "count": "{:,}".format}
#: Hash of templates and static files, so that browsers load them again after an upgrade.
_STAMP = hashlib.sha256(
    b"".join(
        path.read_bytes()
        for folder in ("static", "templates")
        for path in sorted(_FILES.joinpath(folder).iterdir(), key=lambda path: path.name)
    )
).hexdigest()[:12]
_ENVIRONMENT.globals["stamp"] = _STAMP


def render(template: str, values: Mapping[str, Any]) -> str:
    """Render a template; everything that is not marked as safe is escaped."""
    return _ENVIRONMENT.get_template(template).render(values)


def page(template: str, values: Mapping[str, Any], status: int = 200, tag: str = "") -> Response:
    """Return a page; its ETag comes from a text that changes whenever the page does."""
    headers = dict(HEADERS)
    if tag:
        headers["ETag"] = etag_of(tag)
    return HTMLResponse(render(template, values), status, headers)


def etag_of(text: str) -> str:
    """Return the ETag for a text."""
    return f'"{hashlib.sha256(f"{_STAMP} {text}".encode()).hexdigest()[:20]}"'
