"""Clients that keep a service busy: python -m benchmarks.service_load URL CLIENTS SECONDS WHAT.

Each client has one connection and sends its next request when the last one is answered.  What it
sends is written once, so that the clients cost little beside the service they measure.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
import uuid
from urllib.parse import urlsplit

__all__ = ["main"]


async def _answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    at = head.lower().index(b"content-length:") + 15
    length = int(head[at : head.index(b"\r", at)])
    return status, await reader.readexactly(length)


def _request(method: str, path: str, body: bytes, more: str = "") -> bytes:
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"{more}Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class Load:
    """All clients of one measurement."""

    def __init__(self, url: str, seconds: float, what: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname, parts.port
        self.end = time.perf_counter() + seconds
        self.what = what
        self.latencies: list[float] = []
        self.sent = self.failed = 0

    async def client(self) -> None:
        """Send requests one after another."""
        reader, writer = await asyncio.open_connection(self.host, self.port)

        async def call(request: bytes, counts: bool = True) -> bytes:
            began = time.perf_counter()
            writer.write(request)
            status, body = await _answer(reader)
            self.sent += 1
            if counts:
                self.latencies.append(time.perf_counter() - began)
            self.failed += status != 200
            return body

        while time.perf_counter() < self.end:
            if self.what == "floor":
                await call(_request("POST", "/floor", b'{"value":0.5}'))
                continue
            key = f"Idempotency-Key: {uuid.uuid4().hex}\r\n"
            path = "/v1/experiments/load/decisions"
            body = await call(_request("POST", path, b"{}", key), self.what != "tell")
            if self.what != "ask":
                path = f"/v1/decisions/{json.loads(body)['id']}/reward"
                await call(_request("PUT", path, b'{"reward":0.5}'), self.what != "decide")
        writer.close()


async def main(url: str, clients: int, seconds: float, what: str) -> dict[str, float]:
    """Measure, after some practice."""
    practice = Load(url, 0.2 * seconds, what)
    await asyncio.gather(*(practice.client() for _ in range(clients)))
    load = Load(url, seconds, what)
    began = time.perf_counter()
    await asyncio.gather(*(load.client() for _ in range(clients)))
    took = time.perf_counter() - began
    ordered = sorted(load.latencies)
    return {
        "clients": clients,
        "per second": round(len(ordered) / took, 1),
        "p50 ms": round(1e3 * ordered[len(ordered) // 2], 2),
        "p99 ms": round(1e3 * ordered[int(0.99 * len(ordered))], 2),
        "requests": len(ordered),
        "sent": practice.sent + load.sent,
        "failed": load.failed,
    }


if __name__ == "__main__":
    given = sys.argv[1:]
    print(json.dumps(asyncio.run(main(given[0], int(given[1]), float(given[2]), given[3]))))
