"""Services and clients as processes that are forked, so that a kill costs milliseconds.

The parent has imported and compiled everything, and has no threads.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from sightline.service.app import create_app
from sightline.service.server import create_server
from sightline.service.settings import Settings
from sightline.service.store import Store

__all__ = ["SPECIFICATION", "Book", "begin_service", "clients", "end", "fork"]

SPECIFICATION = {
    "options": {"a": [1.0, 0.0], "b": [0.9, 0.3], "c": [0.0, 1.0]},
    "noise_std": 0.3,
    "policy": {"type": "IDS"},
    "reward_deadline": "400 rounds",
    "early_rewards": True,
    "seed": 1,
}


def fork(work: Callable[[], object]) -> int:
    """Call in a forked process, and return its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    return child


def end(process: int) -> None:
    """Kill a process, and wait for it."""
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)


def begin_service(url: str) -> tuple[int, int]:
    """Start a service; its process and its port."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen(128)  # clients wait until it is ready

    def serve() -> None:
        settings = Settings(rate=0, sweep=0.05)
        app = create_app(Store(url), settings)
        create_server(app, "127.0.0.1", 0, "critical").run(sockets=[listening])

    process = fork(serve)
    port = listening.getsockname()[1]
    listening.close()
    return process, port


class Book:
    """A file to which every client writes what it does, and what was answered."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, **line: Any) -> None:
        """Write a line, as a whole."""
        os.write(self._file, json.dumps(line).encode() + b"\n")


class _Client:
    """Sends requests to services, and notes them before and after."""

    def __init__(self, book: Book, ports: list[int], experiment: str, seed: float) -> None:
        self._book, self._ports, self._experiment = book, ports, experiment
        self._rng = random.Random(seed)
        self._connections = [http.client.HTTPConnection("127.0.0.1", port) for port in ports]
        self._open: list[str] = []
        self._told: dict[str, float] = {}

    def send(self, method: str, path: str, body: Any, key: str | None = None) -> tuple[int, Any]:
        """Send a request, again while the database is away; an error if the service is gone."""
        headers = {"Content-Type": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        while True:
            connection = self._rng.choice(self._connections)
            connection.request(method, path, json.dumps(body), headers)
            response = connection.getresponse()
            status, answer = response.status, json.loads(response.read())
            if status != 503:
                return status, answer
            time.sleep(0.05)

    def create(self) -> None:
        """Begin the experiment, or find it."""
        status, answer = self.send("PUT", f"/v1/experiments/{self._experiment}", SPECIFICATION)
        assert status in (200, 201), answer

    def ask(self, key: str, body: dict[str, Any]) -> None:
        """Ask under a key."""
        self._book.write(doing="ask", key=key, body=body)
        path = f"/v1/experiments/{self._experiment}/decisions"
        status, answer = self.send("POST", path, body, key)
        assert status == 200, answer
        made = answer.get("decisions", [answer])
        self._open += [one["id"] for one in made]
        self._book.write(done="ask", key=key, decisions=made)

    def tell(self, decision: str, reward: float) -> None:
        """Tell a reward."""
        self._book.write(doing="tell", decision=decision, reward=reward)
        path = f"/v1/decisions/{decision}/reward"
        status, answer = self.send("PUT", path, {"reward": reward})
        if status == 200:
            assert answer["reward"] == reward, answer
            self._told[decision] = reward
            self._book.write(done="tell", decision=decision, reward=reward)
        else:
            assert status == 410, answer
            self._book.write(done="late", decision=decision)

    def amend(self, key: str, decision: str, reward: float) -> None:
        """Amend a reward under a key."""
        self._book.write(doing="amend", key=key, decision=decision, reward=reward)
        path = f"/v1/decisions/{decision}/reward?amend=1"
        status, answer = self.send("PUT", path, {"reward": reward}, key)
        assert (status, answer["reward"]) == (200, reward), answer
        self._told[decision] = reward
        self._book.write(done="amend", key=key, decision=decision, reward=reward)

    def act(self) -> None:
        """Do something."""
        dice = self._rng.random()
        if dice < 0.45 or not self._open:
            body: dict[str, Any] = {}
            if self._rng.random() < 0.1:
                body["count"] = self._rng.randint(1, 4)
            elif self._rng.random() < 0.2:
                body["unit"] = f"unit {self._rng.randrange(10**6)}"
            elif self._rng.random() < 0.05:
                body["available"] = ["a", "c"]
            self.ask(self._key(), body)
        elif dice < 0.9:
            chosen = self._open.pop(self._rng.randrange(len(self._open)))
            self.tell(chosen, self._rng.gauss(0.3, 0.3))
        elif self._told:
            chosen = self._rng.choice(list(self._told))
            if dice < 0.95:
                self.amend(self._key(), chosen, self._rng.gauss(0.3, 0.3))
            else:
                self.tell(chosen, self._told[chosen])

    def _key(self) -> str:
        return f"{self._rng.getrandbits(96):x}"


def clients(
    book: Book, ports: list[int], experiment: str, again: list[dict[str, Any]], seed: float
) -> None:
    """Keep services busy with several clients until they are gone; first send again what failed."""

    def run(i: int) -> None:
        client = _Client(book, ports, experiment, seed + i)
        try:
            client.create()
            for line in again[i::6]:
                if line["doing"] == "ask":
                    client.ask(line["key"], line["body"])
                elif line["doing"] == "amend":
                    client.amend(line["key"], line["decision"], line["reward"])
                else:
                    client.tell(line["decision"], line["reward"])
            while True:
                client.act()
        except (OSError, http.client.HTTPException):
            return
        except BaseException:
            book.write(failed=traceback.format_exc())

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
