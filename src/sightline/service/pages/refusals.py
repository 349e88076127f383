"""Refusals for people: what programs get as JSON, browsers get as a page."""

from __future__ import annotations

import json
from typing import Any

from sightline.service.gate import Application, Message, Receive, Scope, Send
from sightline.service.pages.rendering import HEADERS, Visitor, rendered
from sightline.service.problems import MEDIA_TYPE

__all__ = ["Refusals"]

_FOR_PROGRAMS = ("/v1/", "/metrics", "/openapi.json")
_REPLACED = (b"content-type", b"content-length", *(name.lower().encode() for name in HEADERS))


class Refusals:
    """An ASGI application around another one, the gate included.

    Parameters
    ----------
    application : callable
        What is behind.
    """

    def __init__(self, application: Application) -> None:
        self._application = application

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let everything pass but refusals that a browser has asked for."""
        if scope["type"] != "http" or not _is_for_people(scope):
            await self._application(scope, receive, send)
            return
        held: Message | None = None
        parts: list[bytes] = []

        async def answer(message: Message) -> None:
            nonlocal held
            if message["type"] == "http.response.start" and _is_refusal(message):
                held = message
            elif held is None:
                await send(message)
            else:
                parts.append(message.get("body", b""))
                if not message.get("more_body", False):
                    await _send_page(scope, held, json.loads(b"".join(parts)), send)

        await self._application(scope, receive, answer)


def _is_for_people(scope: Scope) -> bool:
    accepted = dict(scope["headers"]).get(b"accept", b"")
    return b"text/html" in accepted and not scope["path"].startswith(_FOR_PROGRAMS)


def _is_refusal(start: Message) -> bool:
    kind: bytes = dict(start.get("headers", ())).get(b"content-type", b"")
    return kind.startswith(MEDIA_TYPE.encode())


async def _send_page(scope: Scope, start: Message, problem: dict[str, Any], send: Send) -> None:
    status = start["status"]
    values: dict[str, Any] = {"visitor": Visitor(False, False), "problem": problem}
    if status == 401:
        back = scope["path"] if scope["method"] == "GET" else "/"
        content = rendered("sign_in.html", {**values, "back": back, "wrong": False})
    else:
        content = rendered("refused.html", values)
    body = content.encode()
    kept = [pair for pair in start["headers"] if pair[0].lower() not in _REPLACED]
    headers = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body))}
    new = [(k.lower().encode(), v.encode()) for k, v in {**headers, **HEADERS}.items()]
    await send({"type": "http.response.start", "status": status, "headers": [*kept, *new]})
    await send({"type": "http.response.body", "body": body})
