"""A service in a thread of the tests, and plain requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from fastapi import FastAPI

from sightline.service.heart import Heart
from sightline.service.pages.routes import create_dashboard
from sightline.service.serving import server_of
from sightline.service.settings import Settings
from sightline.service.store import Store

__all__ = ["Answer", "Service", "running"]


class Answer(NamedTuple):
    """What was answered."""

    status: int
    body: Any
    headers: dict[str, str]


class Service:
    """A service that runs, at a port of this machine."""

    def __init__(self, app: FastAPI, store: Store, port: int) -> None:
        self.app, self.store, self.port = app, store, port
        self.url = f"http://127.0.0.1:{port}"
        self._own = threading.local()

    @property
    def heart(self) -> Heart:
        """Its parts."""
        heart: Heart = self.app.state.heart
        return heart

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request."""
        sent = dict(headers or {})
        if body is not None:
            sent.setdefault("Content-Type", "application/json")
        if key is not None:
            sent["Idempotency-Key"] = key
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        content = body if isinstance(body, bytes | None) else json.dumps(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, path, content, sent)
            response = connection.getresponse()
            said = response.read()
            kind = response.headers.get_content_type()
            value = json.loads(said) if kind.endswith("json") else said
            return Answer(response.status, value, dict(response.headers))
        finally:
            connection.close()


@contextlib.contextmanager
def running(url: str, **settings: Any) -> Iterator[Service]:
    """Run a service in a thread."""
    with Store(url) as store:
        chosen = Settings(**{"rate": 0.0, "bound_limit": 0.0, **settings})  # c* costs a process
        app = create_dashboard(store, chosen)
        server = server_of(app, "127.0.0.1", 0, "critical")
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        try:
            yield Service(app, store, port)
        finally:
            server.should_exit = True
            thread.join()
