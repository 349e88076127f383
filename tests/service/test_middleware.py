"""Large bodies and computing threads do not delay small requests."""

from __future__ import annotations

import asyncio
import gc
import itertools
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from sightline.service import server
from sightline.service.metrics import Metrics
from sightline.service.middleware import (
    AccessMiddleware,
    GuessLimiter,
    Message,
    Receive,
    Scope,
    Send,
)
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import TokenCache


def test_large_bodies_leave_half_of_the_time_to_others(tmp_path: Path) -> None:
    begun: list[tuple[str, float, float]] = []

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        body = (await receive())["body"]
        began = time.perf_counter()
        time.sleep(0.05 if len(body) > 1000 else 0.0)  # it is understood
        begun.append((scope["path"], began, time.perf_counter()))

    def request(path: str, body: bytes) -> Any:
        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(_: Message) -> None:
            raise AssertionError

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "PUT", "path": path, "headers": headers}
        return middleware(scope, receive, send)

    async def all_at_once() -> None:
        large = [request("/large", b"x" * 1_000_000) for _ in range(4)]
        await asyncio.gather(*large, request("/small", b"x"))

    settings = Settings()
    with Store(f"sqlite:///{tmp_path}/x.db") as store:
        tokens = TokenCache(store, True, 60.0)
        tokens.refresh()
        middleware = AccessMiddleware(
            application, tokens, settings, Metrics(), GuessLimiter(settings), ()
        )
        asyncio.run(all_at_once())
    assert sorted(path for path, *_ in begun) == ["/large"] * 4 + ["/small"]
    assert [path for path, *_ in begun].index("/small") <= 1
    ends = [(began, ended) for path, began, ended in begun if path == "/large"]
    for (began, ended), (after, _) in itertools.pairwise(ends):
        assert after - ended > 0.8 * (ended - began)


def test_neither_threads_nor_collections_keep_others_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    class Server:
        def run(self) -> None:
            found.append((sys.getswitchinterval(), gc.get_freeze_count(), gc.get_threshold()))

    monkeypatch.setattr(server, "create_server", lambda *_, **__: Server())
    before, thresholds = sys.getswitchinterval(), gc.get_threshold()
    try:
        server.serve(f"sqlite:///{tmp_path}/x.db")
    finally:
        sys.setswitchinterval(before)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
    ((interval, frozen, collections),) = found
    assert collections > thresholds
    assert interval == pytest.approx(0.0005)
    assert frozen > 10_000
