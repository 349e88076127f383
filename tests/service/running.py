"""A service in a thread of the tests, and plain requests to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI

from sightline.service.pages.routes import create_dashboard
from sightline.service.runtime import Runtime
from sightline.service.server import create_server
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

    def __init__(self, app: FastAPI, store: Store, server: uvicorn.Server) -> None:
        self.app, self.store, self.server = app, store, server
        port = self.port = server.servers[0].sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._own = threading.local()

    @property
    def runtime(self) -> Runtime:
        """Its parts."""
        runtime: Runtime = self.app.state.runtime
        return runtime

    def __call__(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request, and again while code is being compiled for it."""
        until = time.monotonic() + 120.0
        while True:
            answer = self.once(method, path, body, key, token, headers)
            compiling = answer.status == 503 and "problem:compiling" in str(answer.body)
            if not compiling or time.monotonic() > until:
                return answer
            time.sleep(0.2)

    def once(
        self,
        method: str,
        path: str,
        body: Any = None,
        key: str | None = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send one request, once."""
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
        # c* costs a process
        chosen = Settings(**{"rate": 0.0, "guesses": 0.0, "bound_limit": 0.0, **settings})
        app = create_dashboard(store, chosen)
        server = create_server(app, "127.0.0.1", 0, "critical", chosen)
        thread = threading.Thread(target=server.run)
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.005)
        try:
            yield Service(app, store, server)
        finally:
            server.should_exit = True
            thread.join()
