"""A service under attack: python -m benchmarks.attacks [bystander | fuzz | soak].

All are attacks on a service that this program starts, on the loopback and on a database in a
temporary folder.  A bystander with an experiment of its own asks and tells 20 times per second,
from a process of its own: asks on a connection that stays open, rewards on a new one each.

``bystander`` carries out one attack after another (``--only cookie greedy`` some of them) and
prints how long the bystander waited at most (net: without the time in which threads of the service
were ready to run and had no CPU, as on a machine that others use, too) and in 99 of 100 cases, the
peak of the service's memory, and what the attacker was answered.  ``fuzz`` sends requests with
random, extreme and adversarial values to every address of the OpenAPI document (``--requests``,
``--seed``) for at most ``--minutes``, and prints those that were answered with 500 and those during
which the bystander waited for more than a second.  ``soak`` keeps a service busy for some minutes
(``--minutes``) and prints its memory, open files and threads.

Compiled code is used as it is found; NUMBA_DISABLE_JIT=1 works without it, and fuzzes all policies
without waiting for compilations.  The attacker has a lower priority than the service (nice 10): it
stands for other machines.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import psutil
from tests.service.long_log import fill

from sightline.policies.catalogue import POLICIES
from sightline.service.store import Store
from sightline.service.tokens import create_token

PAGE: dict[str, Any] = {
    "factors": {"picture": ["large", "small"], "text": ["short", "long"]},
    "noise_std": 0.5,
}
SMALL: dict[str, Any] = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 1.0}
_TOKENS = 64  # of the attacker, so that no limit of one token protects others
_EVENTS = 200_000  # of the experiment that is exported
_PERIOD = 0.05  # seconds between two requests of the bystander
_LONG = 1.0  # seconds that nobody may have to wait


class Reply(NamedTuple):
    """What was answered; 0: the connection was closed without an answer."""

    status: int
    body: bytes

    @property
    def value(self) -> Any:
        """The body, of JSON."""
        return json.loads(self.body)

    @property
    def shown(self) -> str:
        """Status, and the kind of a refusal."""
        if self.status < 400:
            return str(self.status)
        with contextlib.suppress(ValueError, KeyError):
            return f"{self.status} {self.value['type'].rpartition(':')[2]}"
        return str(self.status)


class Target:
    """A service that runs, and its tokens."""

    def __init__(self, port: int, tokens: list[str], process: subprocess.Popen[bytes]) -> None:
        self.port, self.tokens, self.process = port, tokens, process
        self._own = threading.local()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        token: str | None = None,
        headers: dict[str, str] | None = None,
        timeout: float = 60.0,
    ) -> Reply:
        """Send one request, on the connection of this thread."""
        sent = {"Authorization": f"Bearer {token or self.tokens[0]}", **(headers or {})}
        content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        for is_last in (False, True):
            fresh = getattr(self._own, "connection", None) is None
            if fresh:
                self._own.connection = http.client.HTTPConnection("127.0.0.1", self.port)
            connection = self._own.connection
            connection.timeout = timeout
            try:
                connection.request(method, path, content, sent)
                response = connection.getresponse()
                return Reply(response.status, response.read())
            except (OSError, http.client.HTTPException):
                connection.close()
                self._own.connection = None
                if fresh or is_last:  # else it was idle for too long
                    return Reply(0, b"")
        raise AssertionError

    def repeat(
        self, seconds: float, workers: int, send: Callable[[int, str], Reply]
    ) -> Counter[str]:
        """Call a function again and again in some threads; count what was answered."""
        until = time.monotonic() + seconds
        numbers = itertools.count()

        def work(worker: int) -> Counter[str]:
            found: Counter[str] = Counter()
            while time.monotonic() < until:
                found[send(next(numbers), self.tokens[worker % _TOKENS]).shown] += 1
            return found

        with ThreadPoolExecutor(workers) as pool:
            return sum(pool.map(work, range(workers)), Counter())

    def open(self, head: bytes) -> socket.socket:
        """Open a connection, and send something."""
        made = socket.create_connection(("127.0.0.1", self.port), timeout=10.0)
        made.sendall(head)
        return made

    def reset_peak(self) -> None:
        """Forget the peak of its memory."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")

    def peak(self) -> float:
        """Peak of its memory in MB."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


@contextlib.contextmanager
def target(folder: Path, cold: bool = False, long: bool = False) -> Iterator[Target]:
    """Start a service; with an empty cache of kernels, or with a long experiment."""
    url = f"sqlite:///{folder}/x.db"
    with Store(url) as store:
        tokens = [create_token(store, f"attacker-{i}", "admin") for i in range(_TOKENS)]
        if long:
            fill(store, "long", PAGE, _EVENTS)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    environment = dict(os.environ)
    if cold:
        environment["NUMBA_CACHE_DIR"] = str(folder / "kernels")
    log = (folder / "service.log").open("wb")
    command = [sys.executable, "-m", "sightline", "serve", "--database", url, "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    found = Target(port, tokens, process)
    try:
        until = time.monotonic() + 60.0
        while found.call("GET", "/v1/health").status != 200:
            if time.monotonic() > until or process.poll() is not None:
                raise RuntimeError((folder / "service.log").read_text()[-3000:])
            time.sleep(0.1)
        yield found
    finally:
        process.terminate()
        began = time.monotonic()
        process.wait(30.0)
        log.close()
        if (took := time.monotonic() - began) > 10.0:
            print(f"SIGTERM took {took:.1f} s", flush=True)


# --- the bystander


def queued(pid: int) -> float:
    """Seconds for which threads of a process were ready to run and had no CPU."""
    total = 0
    for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):  # of a thread that has ended
            total += int(path.read_text().split()[1])
    return 1e-9 * total


def watch(port: int, token: str, file: Path, pid: int) -> None:
    """Ask and tell at a steady rate for ever, and write down how long each took."""
    here = Target(port, [token], None)  # type: ignore[arg-type]
    made, due = None, time.monotonic()
    with file.open("w", buffering=1) as out:
        while os.getppid() != 1:
            before = queued(pid) + queued(os.getpid())
            began = time.monotonic()
            if made is None:
                reply = here.call("POST", "/v1/experiments/bystander/decisions", {})
                made = reply.value["id"] if reply.status == 200 else None
            else:
                apart = Target(port, [token], None)  # type: ignore[arg-type]
                reply = apart.call("PUT", f"/v1/decisions/{made}/reward", {"reward": 0.5})
                made = None
            took = time.monotonic() - began
            lost = queued(pid) + queued(os.getpid()) - before  # less where a thread has ended
            net = min(max(took - lost, 0.0), took)
            out.write(f"{began} {took} {net} {reply.status}\n")
            due = max(due + _PERIOD, time.monotonic())
            time.sleep(max(due - time.monotonic(), 0.0))


class Wait(NamedTuple):
    """One answer that the bystander waited for."""

    began: float
    seconds: float
    net: float  # without the time in which the service had no CPU
    status: int


class Bystander:
    """The process above, and what it has found."""

    def __init__(self, service: Target, folder: Path) -> None:
        service.call("PUT", "/v1/experiments/bystander", PAGE, timeout=300.0)
        for _ in range(20):  # so that all that it needs is compiled, and in memory
            made = service.call("POST", "/v1/experiments/bystander/decisions", {})
            if made.status == 200:
                path = f"/v1/decisions/{made.value['id']}/reward"
                service.call("PUT", path, {"reward": 0.5})
            else:
                time.sleep(2.0)
        self._file = folder / "waits"
        module = [sys.executable, "-m", "benchmarks.attacks", "watch", str(service.port)]
        command = [*module, service.tokens[-1], str(self._file), str(service.process.pid)]
        self._process = subprocess.Popen(command)
        while not self._file.exists() or not self.waits():
            time.sleep(0.1)

    def waits(self, since: float = 0.0, until: float = float("inf")) -> list[Wait]:
        """What it waited for in some time."""
        lines = [line.split() for line in self._file.read_text().splitlines()]
        whole = [x for x in lines if len(x) == 4]
        found = [Wait(float(a), float(b), float(c), int(d)) for a, b, c, d in whole]
        return [one for one in found if one.began + one.seconds >= since and one.began <= until]

    def close(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait()


# --- attacks


def names(count: int) -> list[str]:
    return [str(i) for i in range(count)]


def counted(answers: Iterable[Reply]) -> Counter[str]:
    return Counter(one.shown for one in answers)


def nothing(service: Target, seconds: float) -> Counter[str]:
    time.sleep(seconds)
    return Counter()


def cookie(service: Target, seconds: float) -> Counter[str]:
    """Cookies of 60 kB, which are refused, and of 15 kB, which are read; without a token."""
    cookies = ['x="' + "\\" * size for size in (60_000, 15_000)]

    def send(i: int, _: str) -> Reply:
        return service.call(
            "GET", "/v1/experiments", None, "-", {"Authorization": "", "Cookie": cookies[i % 2]}
        )

    return service.repeat(seconds, 4, send)


def header(service: Target, seconds: float) -> Counter[str]:
    """A header of 134 MB."""
    block, sent = b"x" * (1 << 20), 0
    with contextlib.suppress(OSError), service.open(b"GET / HTTP/1.1\r\nX: ") as made:
        for _ in range(128):
            made.sendall(block)
            sent += 1
    time.sleep(seconds / 2)
    return Counter({f"closed after {sent} MB": 1})


def half_open(service: Target, seconds: float) -> Counter[str]:
    """1,200 requests without an end."""
    with contextlib.ExitStack() as stack:
        head = b"GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        made = [stack.enter_context(service.open(head)) for _ in range(1200)]
        time.sleep(max(seconds, 12.0))
        return answers_on(made)


def slow_bodies(service: Target, seconds: float) -> Counter[str]:
    """400 bodies of which a byte comes every second."""
    head = (
        f"POST /v1/experiments/bystander/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {service.tokens[0]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: 1000\r\n\r\n"
    ).encode()
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(service.open(head)) for _ in range(400)]
        for _ in range(33):  # body_time is 30 seconds
            for one in made:
                with contextlib.suppress(OSError):
                    one.send(b" ")
            time.sleep(1.0)
        return answers_on(made)


def answers_on(connections: list[socket.socket]) -> Counter[str]:
    found: Counter[str] = Counter()
    for one in connections:
        one.setblocking(False)
        try:
            said = one.recv(100)
            found[said[9:12].decode() if said else "closed"] += 1
        except BlockingIOError:
            found["open"] += 1
        except OSError:
            found["closed"] += 1
    return found


def pipelined(service: Target, seconds: float) -> Counter[str]:
    """Requests without end on one connection, whose answers nobody reads."""
    one = (
        f"GET /v1/experiments/long HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        f"Authorization: Bearer {service.tokens[0]}\r\n\r\n"
    )
    until, sent = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        with contextlib.suppress(OSError), service.open(b"") as made:
            made.settimeout(1.0)
            while time.monotonic() < until:
                made.sendall(one.encode() * 50)
                sent += 50
    return Counter({"sent": sent})


def counts(levels: int, **more: Any) -> Callable[[Target, float], Counter[str]]:
    """1,000 decisions at once with a factor of many levels, then as many as are allowed."""

    def attack(service: Target, seconds: float) -> Counter[str]:
        path = f"/v1/experiments/levels-{levels}{len(more)}"
        body = {"factors": {"a": names(levels)}, "noise_std": 1.0, **more}
        begun = service.call("PUT", path, body)
        found = counted([begun])
        if begun.status >= 400:
            return found
        asked = service.call("POST", f"{path}/decisions", {"count": 1000})
        found += counted([asked])
        most = 1000
        if asked.status == 422:
            most = int(asked.value["detail"].rpartition("must be ")[2].split()[0])

        def send(_: int, token: str) -> Reply:
            return service.call("POST", f"{path}/decisions", {"count": most}, token)

        many = service.repeat(seconds, 4, send)
        return found + Counter({f"{name} (count={most})": n for name, n in many.items()})

    attack.__doc__ = f"1,000 decisions, and as many as are allowed, {levels} levels"
    return attack


def creations(bodies: Callable[[int], Any]) -> Callable[[Target, float], Counter[str]]:
    """Begin experiments in a row, four at a time."""

    def attack(service: Target, seconds: float) -> Counter[str]:
        unique = f"c{random.randrange(10**9)}"

        def send(i: int, token: str) -> Reply:
            return service.call("PUT", f"/v1/experiments/{unique}-{i}", bodies(i), token)

        return service.repeat(seconds, 4, send)

    return attack


def large(i: int) -> Any:
    """Of several kinds, each near the limits."""
    return (
        {"options": names(180), "noise_std": 1.0},
        {"options": {n: [float(n), 1.0] for n in names(9_900)}, "policy": "LinUCB"},
        {"factors": {n: names(10) for n in names(4)}, "policy": "LinUCB", "noise_std": 1.0},
        {"duel": names(60)},
        {"stream": {"features": names(100), "max_arms": 1000}, "noise_std": 1.0},
        {"contexts": {n: names(10) for n in names(20)}, "noise_std": 1.0},
    )[i % 6]


def forbidden(_: int) -> Any:
    """As many comparisons as are allowed, of combinations that are all different."""
    levels = names(21)
    combinations = itertools.islice(itertools.product(levels[1:], repeat=3), 7000)
    return {
        "factors": {"a": levels, "b": levels, "c": levels},
        "forbidden": [dict(zip("abc", one, strict=True)) for one in combinations],
        "policy": "LinUCB",
        "noise_std": 1.0,
    }


_NESTED = b'{"factors":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001
_BRACKETS = b"[" * 1_000_000
_DIGITS = b'{"options":{"a":[' + b"9" * 1_000_000 + b"]}}"
_NUMBERS = b'{"options":{"a":[' + b"1e400," * 100_000 + b"1]}}"
_KEYS = b"{" + b",".join(b'"%d":0' % i for i in range(80_000)) + b"}"


def odd(i: int) -> bytes:
    """Bodies of 1 MB that are no experiments."""
    return (_NESTED, _BRACKETS, _DIGITS, _NUMBERS, _KEYS)[i % 5]


def available(service: Target, seconds: float) -> Counter[str]:
    """First question with available, of a policy whose kernels nobody has."""
    path = "/v1/experiments/first"
    body = {**SMALL, "policy": "ThompsonSampling"}
    found = counted([service.call("PUT", path, body, timeout=300.0)])
    until = time.monotonic() + 120.0
    while time.monotonic() < until:
        asked = service.call("POST", f"{path}/decisions", {"available": ["a"]}, timeout=300.0)
        found[asked.shown] += 1
        if asked.status == 200:
            break
        time.sleep(0.5)
    return found


def windows(service: Target, seconds: float) -> Counter[str]:
    """10^5 reward windows that end within some seconds, while nobody asks."""
    path = "/v1/experiments/windows"
    body = {**SMALL, "policy": "LinUCB", "reward_deadline": 40.0}
    service.call("PUT", path, body, timeout=300.0)  # it may be compiled
    began = time.monotonic()
    found: Counter[str] = Counter()
    for i in range(1000):
        if found["200"] == 500 or time.monotonic() - began > 35.0:
            break
        token = service.tokens[i % _TOKENS]
        asked = service.call("POST", f"{path}/decisions", {"count": 200}, token)
        found[asked.shown] += 1
        if asked.status == 503:  # it is being compiled
            time.sleep(1.0)
            began = time.monotonic()
    left = 1
    while left and time.monotonic() - began < 150.0:
        time.sleep(2.0)
        status = service.call("GET", f"{path}/status")
        left = status.value["pending"] if status.status == 200 else 1
    return found + Counter({f"{left} open after {time.monotonic() - began:.0f} s": 1})


def guesses(service: Target, seconds: float) -> Counter[str]:
    """Tokens that are not valid, on 16 connections."""
    return service.repeat(
        seconds, 16, lambda i, _: service.call("GET", "/v1/experiments", None, f"sl_{i}")
    )


def greedy(service: Target, seconds: float) -> Counter[str]:
    """64 connections, each with its token, that ask in one experiment."""
    path = "/v1/experiments/greedy"
    service.call("PUT", path, PAGE)
    return service.repeat(
        seconds, 64, lambda i, token: service.call("POST", f"{path}/decisions", {}, token)
    )


def reads(*paths: str) -> Callable[[Target, float], Counter[str]]:
    """Look at an experiment with 200,000 events, eight at a time."""

    def attack(service: Target, seconds: float) -> Counter[str]:
        return service.repeat(
            seconds,
            8,
            lambda i, token: service.call("GET", paths[i % len(paths)], None, token, timeout=120.0),
        )

    return attack


_LONG_PATH = "/v1/experiments/long"
_LOOKS = ("status", "history", "estimates", "effects", "events?limit=1000000", "pending?limit=1000")

ATTACKS: dict[str, Callable[[Target, float], Counter[str]]] = {
    "nothing": nothing,
    "cookie": cookie,
    "header": header,
    "half-open": half_open,
    "slow bodies": slow_bodies,
    "pipelined": pipelined,
    "count, 200 levels": counts(200),
    "count, 500 levels": counts(500),
    "count, 999 levels": counts(999),
    "count, 100 levels, LinUCB": counts(100, policy="LinUCB"),
    "45,000 factors": creations(
        lambda _: {"factors": {n: ["0", "1"] for n in names(45_000)}, "interactions": "pairs"}
    ),
    "duel of 20,000": creations(lambda _: {"duel": names(20_000)}),
    "duel of 9,999": creations(lambda _: {"duel": names(9_999)}),
    "samples": creations(lambda _: {**SMALL, "policy": {"type": "BayesianIDS", "samples": 10**9}}),
    "large creations": creations(large),
    "forbidden": creations(forbidden),
    "odd bodies": creations(odd),
    "bad tokens": guesses,
    "greedy": greedy,
    "exports": reads(f"{_LONG_PATH}/export.parquet"),
    "views": reads(*(f"{_LONG_PATH}/{name}" for name in _LOOKS)),
    "pages": reads("/experiments/long", "/"),
    "windows": windows,
}
_COLD = "available, cold"


def bystander(only: list[str], seconds: float) -> None:
    """Carry out attacks, and say what the bystander noticed."""
    columns = ("slowest ms", "net ms", "p99 ms", "peak MB", "load")
    print(f"{'attack':26}" + "".join(f"{column:>11}" for column in columns) + "  answers")
    wanted = [name for name in ATTACKS if not only or name in only]
    if wanted:
        long = not only or bool({"exports", "views", "pages", "pipelined"} & set(wanted))
        with besieged(long=long) as (service, other):
            for name in wanted:
                _carry_out(name, ATTACKS[name], service, other, seconds)
    if not only or _COLD in only:
        with besieged(cold=True) as (service, other):
            _carry_out(_COLD, available, service, other, seconds)


@contextlib.contextmanager
def besieged(cold: bool = False, long: bool = False) -> Iterator[tuple[Target, Bystander]]:
    """A service and its bystander."""
    with tempfile.TemporaryDirectory() as folder:
        with target(Path(folder), cold, long) as service:
            other = Bystander(service, Path(folder))
            os.nice(10 - os.nice(0))
            try:
                yield service, other
            finally:
                other.close()
        said = (Path(folder) / "service.log").read_text()
        if "Traceback" in said:
            print(f"the service has logged defects:\n{said[-6000:]}", flush=True)


def _carry_out(
    name: str,
    attack: Callable[[Target, float], Counter[str]],
    service: Target,
    other: Bystander,
    seconds: float,
) -> None:
    time.sleep(1.0)
    service.reset_peak()
    began = time.monotonic()
    try:
        answers = attack(service, seconds)
    except Exception:  # of this program
        traceback.print_exc()
        answers = Counter({"the attack failed": 1})
    ended = max(time.monotonic(), began + 2.0)
    time.sleep(ended + 1.0 - time.monotonic())
    waits = other.waits(began, ended) or [Wait(began, ended - began, ended - began, 0)]
    times = sorted(1e3 * one.seconds for one in waits)
    failed = Counter(one.status for one in waits if one.status != 200)
    said = ", ".join(f"{number} x {what}" for what, number in answers.most_common())
    beside = f"; bystander: {dict(failed)}" if failed else ""
    net, often = 1e3 * max(one.net for one in waits), times[int(0.99 * len(times))]
    numbers = "".join(f"{one:11.0f}" for one in (times[-1], net, often, service.peak()))
    print(f"{name:26}{numbers}{os.getloadavg()[0]:11.1f}  {said}{beside}", flush=True)


# --- random requests

_TEXTS = (
    "", " ", "a", "b", "bystander", "../../etc/passwd", "\x00", "a\x00b", "\ud800", "é" * 100,
    "x" * 201, "a" * 100_000, "'; DROP TABLE events; --", "<script>alert(1)</script>", "%00", "NaN",
    "1e400", "-0", "2 hours", "500 rounds", "1e300 rounds", "-1 s", "pairs", "none", "grand mean",
    "\u202e", "\r\nX: y", "a/b", "__class__", "{0}", "null",
)  # fmt: skip
_NUMBERS_TO_TRY = (
    0, -0.0, 1, -1, 2, 0.5, 1e-300, 5e-324, 1e70, 1e71, -1e70, 1e300, 1.7e308, 2**31, 2**53, 2**63,
    -(2**63), 2**64, 10**30, 10**400, 1e10, 1e11, 1000, 1001, 10_000, True, False,
)  # fmt: skip
_RAW = (
    b"", b"null", b"[]", b"{", b"NaN", b"Infinity", b'{"reward":NaN}', b'{"reward":1e999}',
    b'{"reward":-Infinity}', b"\xff\xfe", b"[" * 5000, b'{"a":' * 5000, b"9" * 5000, b'"\\ud800"',
    b'{"reward":' + b"1" * 5000 + b"}", b'{"count":' + b"1" * 400 + b"}", b'{"unit":"\\u0000"}',
    b'{"reward":1,"reward":2}', b'{"seed":' + b"7" * 4000 + b"}", b"{}" * 1000,
)  # fmt: skip
_SEEDS: tuple[dict[str, Any], ...] = (
    PAGE,
    SMALL,
    {**PAGE, "interactions": "pairs", "forbidden": [{"picture": "large", "text": "long"}]},
    {**PAGE, "interactions": [["picture", "text"]], "control": {"picture": "large"}},
    {"options": ["a", "b", "c"], "noise_std": 0.5, "control": "a", "stop": {"delta": 0.1}},
    {"options": ["a", "b"], "stop": {"delta": 0.99, "action": "commit"}, "noise_std": 0.01},
    {"options": ["a", "b", "c"], "reward": {"kind": "bernoulli"}, "min_probability": 0.1},
    {"options": ["a", "b"], "reward": {"kind": "poisson"}},
    {"options": ["a", "b"], "reward": {"kind": "bounded", "low": 0, "high": 1}},
    {"options": ["a", "b"], "reward": {"kind": "gaussian", "std": 1.0}, "seed": 1},
    {"contexts": {"x": ["a", "b"], "y": ["a", "c"]}, "noise_std": 1.0, "control": "a"},
    {"contexts": {"x": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "y": {"a": [1.0, 1.0]}}},
    {"duel": ["a", "b", "c"]},
    {"duel": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "noise_std": 0.5},
    {"stream": {"features": ["x", "y"], "max_arms": 5}, "noise_std": 1.0},
    {**SMALL, "reward_deadline": 0.01, "on_timeout": 0.0},
    {**SMALL, "reward_deadline": "3 rounds", "early_rewards": True},
    {**SMALL, "noise_std": [0.5, 2.0]},
)


class Generator:
    """Requests to every address of an OpenAPI document."""

    def __init__(self, document: dict[str, Any], seed: int, interpreted: bool) -> None:
        self._random = random.Random(seed)
        self._parts = document["components"]["schemas"]
        self._operations = [
            (method.upper(), path, operation)
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
            if method in ("get", "put", "post", "delete", "patch")
        ]
        self._operations += [("GET", "/", {}), ("GET", "/experiments/{experiment}", {})]
        self._interpreted = interpreted
        self.experiments, self.decisions = ["bystander"], ["0" * 26]
        self._keys = ["k1", "k2", "k3"]
        self._made = 0

    def __call__(self) -> tuple[str, str, bytes | None, dict[str, str]]:
        """Make the next one."""
        choose = self._random
        draw = choose.random()
        if draw < 0.30:  # those that reach deepest
            path = f"/v1/experiments/{{experiment}}{choose.choice(['', '/decisions'])}"
            method = "POST" if path.endswith("decisions") else "PUT"
            operation = self._operation(method, path)
        elif draw < 0.5:
            path = f"/v1/decisions/{{decision}}/{choose.choice(['reward', 'reward', 'give-up'])}"
            method, operation = "PUT", self._operation("PUT", path)
        else:
            method, path, operation = choose.choice(self._operations)
        address = self._address(method, path, operation)
        headers = {}
        if choose.random() < 0.3:
            headers["Idempotency-Key"] = choose.choice([*self._keys, self._text()])
        if choose.random() < 0.02:
            headers["Content-Type"] = choose.choice(["text/plain", "application/json; charset=x"])
        body = self._body(method, path, operation)
        clean = {
            name: value.encode("utf-8", "replace").decode("latin-1").translate({10: 32, 13: 32})
            for name, value in headers.items()
        }
        return method, address, body, {name: value[:3000] for name, value in clean.items()}

    def _operation(self, method: str, path: str) -> dict[str, Any]:
        return next(one for a, b, one in self._operations if (a, b) == (method, path))

    def _address(self, method: str, path: str, operation: dict[str, Any]) -> str:
        choose = self._random
        values = {}
        if "{experiment}" in path:
            if (method, path) == ("PUT", "/v1/experiments/{experiment}") and choose.random() < 0.8:
                self._made += 1
                name = f"e{self._made}"
            else:
                # never that of the bystander, which others must not change
                name = choose.choice(self.experiments[-50:]) if choose.random() < 0.95 else "none"
                while name == "bystander" or choose.random() < 0.03:
                    name = self._text()
            values["{experiment}"] = name
        if "{decision}" in path:
            recent = choose.choice(self.decisions[-100:])
            values["{decision}"] = recent if choose.random() < 0.95 else self._text()
        values["{option}"] = choose.choice(["a", "b", "0", "picture=large, text=long"])
        values["{name}"] = choose.choice(["reader", "other", self._text()])  # never the attacker's
        address = path
        for slot, value in values.items():
            address = address.replace(slot, _quoted(value))
        query = []
        for parameter in operation.get("parameters", ()):
            if parameter["in"] == "query" and choose.random() < 0.6:
                value = self._of(parameter["schema"], 0)
                query.append(f"{parameter['name']}={_quoted(str(value)[:2000])}")
        return address[:8000] + ("?" + "&".join(query) if query else "")

    def _body(self, method: str, path: str, operation: dict[str, Any]) -> bytes | None:
        choose = self._random
        content = operation.get("requestBody", {}).get("content", {})
        if not content:
            return None if choose.random() < 0.95 else choose.choice(_RAW)
        if choose.random() < 0.05:
            return choose.choice(_RAW)
        schema = content["application/json"]["schema"]
        if path == "/v1/experiments/{experiment}" and choose.random() < 0.85:
            value = self._experiment()
        elif path.endswith("/decisions") and choose.random() < 0.7:
            value = self._question()
        elif path.endswith("/reward") and choose.random() < 0.6:
            value = {"reward": choose.choice([0, 1, 0.5, "a", "b", [1.0], 1e6, -1e30, 1e70, 2])}
        else:
            value = self._of(schema, 0)
        return json.dumps(value).encode()

    def _experiment(self) -> dict[str, Any]:
        choose = self._random
        value = dict(choose.choice(_SEEDS))
        if choose.random() < (0.6 if self._interpreted else 0.1):
            name = choose.choice(sorted(POLICIES))
            value["policy"] = choose.choice([name, {"type": name}])
        properties = self._parts["Specification"]["properties"]
        for _ in range(choose.choice([0, 0, 1, 1, 2])):
            field = choose.choice(sorted(properties))
            value[field] = self._of(properties[field], 0)
        if isinstance(value.get("policy"), dict) and choose.random() < 0.5:
            policy = POLICIES.get(str(value["policy"].get("type")))
            fields = sorted(getattr(policy, "__dataclass_fields__", {})) or ["samples"]
            value["policy"][choose.choice(fields)] = self._any(1)
        return value

    def _question(self) -> dict[str, Any]:
        choose = self._random
        ways: list[dict[str, Any]] = [
            {},
            {},
            {"count": choose.choice([1, 2, 10, 300, 1000])},
            {"unit": f"u{choose.randrange(20)}"},
            {"available": choose.choice([["a"], [0, 1], ["a", "b"], [], [99], ["a", "a"], [-1]])},
            {"context": choose.choice(["x", "y", 0, 1, -1, "z"])},
            {"options": choose.choice([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 0.0]], [[1e70, 1e-300]]])},
            {"activate": False},
        ]
        return {**choose.choice(ways), **(choose.choice(ways) if choose.random() < 0.3 else {})}

    def _text(self) -> str:
        return self._random.choice(_TEXTS)

    def _any(self, depth: int) -> Any:
        """Anything."""
        choose = self._random
        draw = choose.random()
        if draw < 0.35:
            return choose.choice(_NUMBERS_TO_TRY)
        if draw < 0.65:
            return self._text()
        if draw < 0.75 or depth > 3:
            return None
        if draw < 0.88:
            return [self._any(depth + 1) for _ in range(choose.randrange(4))]
        return {self._text(): self._any(depth + 1) for _ in range(choose.randrange(4))}

    def _of(self, schema: dict[str, Any], depth: int) -> Any:
        """Something that mostly follows a schema."""
        choose = self._random
        if choose.random() < 0.08 or depth > 6:
            return self._any(depth)
        if "$ref" in schema:
            return self._of(self._parts[schema["$ref"].rpartition("/")[2]], depth + 1)
        for many in ("anyOf", "oneOf"):
            if many in schema:
                return self._of(choose.choice(schema[many]), depth + 1)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return choose.choice(schema["enum"])
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            size = choose.choice([0, 1, 2, 3, 5, 50 if depth < 2 else 4])
            return [self._of(schema.get("items", {}), depth + 1) for _ in range(size)]
        if kind == "string":
            return self._text()
        if kind in ("number", "integer"):
            return choose.choice(_NUMBERS_TO_TRY)
        if kind == "boolean":
            return choose.random() < 0.5
        return None if kind == "null" else self._any(depth)

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        choose = self._random
        if "properties" not in schema:
            inner = schema.get("additionalProperties")
            inner = inner if isinstance(inner, dict) else {}
            keys = [self._text() for _ in range(choose.choice([1, 2, 3, 8]))]
            return {key: self._of(inner, depth + 1) for key in keys}
        required = schema.get("required", ())
        return {
            name: self._of(part, depth + 1)
            for name, part in schema["properties"].items()
            if name in required or choose.random() < 0.25
        }


def _quoted(value: str) -> str:
    from urllib.parse import quote

    return quote(value, safe="", errors="replace")


class Sent(NamedTuple):
    """A request that was sent."""

    began: float
    seconds: float
    reply: Reply
    request: tuple[str, str, bytes | None, dict[str, str]]

    @property
    def shown(self) -> str:
        """What can be sent again."""
        method, address, body, headers = self.request
        return (
            f"{self.reply.shown} {self.seconds:.2f} s {method} {address[:300]} {headers} "
            f"{(body or b'')[:400]!r}"
        )


def fuzz(requests: int, seed: int, minutes: float) -> None:
    """Send random requests, and print those that were answered with 500 or delayed others.

    No request is sent after ``minutes``; what was sent until then is reported.
    """
    interpreted = os.environ.get("NUMBA_DISABLE_JIT") == "1"
    with besieged() as (service, other):
        document = service.call("GET", "/openapi.json").value
        generator, lock = Generator(document, seed, interpreted), threading.Lock()
        sent: list[Sent] = []
        limited = Counter[int]()
        numbers = itertools.count()

        def work(worker: int) -> None:
            while (number := next(numbers)) < requests and time.monotonic() < until:
                if number % 1_000 == 0:
                    print(f"{number} requests sent", file=sys.stderr, flush=True)
                with lock:
                    request = generator()
                method, address, body, headers = request
                for token in itertools.cycle(service.tokens[worker::8]):
                    began = time.monotonic()
                    reply = service.call(method, address, body, token, headers, timeout=300.0)
                    if reply.status != 429 or began > until:
                        break
                    time.sleep(0.1)  # a token has used up its share: the next one sends it
                    limited[worker] += 1
                sent.append(Sent(began, time.monotonic() - began, reply, request))
                with lock:
                    _learn(generator, method, address, reply)

        began = time.monotonic()
        until = began + 60.0 * minutes
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        took = time.monotonic() - began
        waits = other.waits(began, began + took)
        peak = service.peak()
    times = sorted(1e3 * one.seconds for one in waits)
    print(f"{len(sent)} requests in {took:.0f} s, seed {seed}, load {os.getloadavg()[0]:.1f}")
    print(dict(Counter(one.reply.status for one in sent).most_common()))
    print(f"{limited.total()} were refused by a rate limit first, and sent again with other tokens")
    print(f"slowest request {max(one.seconds for one in sent):.1f} s; peak {peak:.0f} MB")
    net = 1e3 * max(one.net for one in waits)
    print(
        f"bystander: {len(times)} requests, slowest {times[-1]:.0f} ms, net {net:.0f} ms, p99 "
        f"{times[int(0.99 * len(times))]:.0f} ms, {dict(Counter(one.status for one in waits))}"
    )
    bad = [one for one in sent if one.reply.status in (0, 500)]
    print(f"{len(bad)} requests answered with 500 or not at all")
    for one in bad[:20]:
        print(f"  {one.shown}")
    delays = [one for one in waits if one.seconds > _LONG]
    print(f"{len(delays)} delays of the bystander by more than {_LONG:g} s")
    for wait in delays[:5]:
        print(f"  {wait.seconds:.1f} s, net {wait.net:.1f} s, during:")
        end = wait.began + wait.seconds
        during = [one for one in sent if one.began < end and one.began + one.seconds > wait.began]
        for one in sorted(during, key=lambda one: -one.seconds)[:10]:
            print(f"    {one.shown}")


def _learn(generator: Generator, method: str, address: str, reply: Reply) -> None:
    """Remember what later requests can be about."""
    path = address.partition("?")[0].split("/")
    if method == "PUT" and len(path) == 4 and path[2] == "experiments" and reply.status == 201:
        generator.experiments.append(path[3])
    if method == "POST" and path[-1] == "decisions" and reply.status == 200:
        value = reply.value
        made = value.get("decisions", [value])
        generator.decisions += [one["id"] for one in made[:3]]


# --- mixed load


def soak(minutes: float) -> None:
    """Keep a service busy, and say what it holds at the beginning, in the middle and at the end."""
    with besieged(long=True) as (service, other):
        generator = Generator(service.call("GET", "/openapi.json").value, 0, False)
        lock, found = threading.Lock(), Counter[str]()
        until, began = time.monotonic() + 60.0 * minutes, time.monotonic()
        numbers = itertools.count()
        for i in range(4):
            service.call("PUT", f"/v1/experiments/soak-{i}", PAGE)

        def decide(worker: int) -> None:
            path = f"/v1/experiments/soak-{worker % 4}/decisions"
            while time.monotonic() < until:
                made = service.call("POST", path, {}, service.tokens[worker])
                found[made.shown] += 1
                if made.status == 200:
                    told = f"/v1/decisions/{made.value['id']}/reward"
                    found[service.call("PUT", told, {"reward": 0.5}).shown] += 1
                time.sleep(0.02)

        def look(worker: int) -> None:
            paths = ["/", "/experiments/long", *(f"{_LONG_PATH}/{name}" for name in _LOOKS)]
            paths += ["/experiments/soak-1", f"{_LONG_PATH}/export.parquet", "/metrics"]
            while time.monotonic() < until:
                path = paths[next(numbers) % len(paths)]
                found[service.call("GET", path, None, service.tokens[worker]).shown] += 1
                time.sleep(0.5)

        def disturb(worker: int) -> None:
            while time.monotonic() < until:
                with lock:
                    method, address, body, headers = generator()
                reply = service.call(method, address, body, service.tokens[worker], headers)
                found[reply.shown] += 1
                with lock:
                    _learn(generator, method, address, reply)
                with contextlib.suppress(OSError), service.open(b"GET / HTTP/1.1\r\n"):
                    time.sleep(0.05)

        print(f"{'minutes':>8}{'RSS MB':>9}{'files':>7}{'threads':>9}{'children':>10}{'load':>6}")
        watched = psutil.Process(service.process.pid)
        tasks = [decide] * 6 + [look] * 2 + [disturb] * 2
        with ThreadPoolExecutor(len(tasks)) as pool:
            running = [pool.submit(task, i) for i, task in enumerate(tasks)]
            for part in range(11):
                rest = began + 6.0 * minutes * part - time.monotonic()
                time.sleep(max(rest - (2.0 if part == 10 else 0.0), 0.0))
                rss, children = watched.memory_info().rss / 2**20, len(watched.children())
                line = f"{(time.monotonic() - began) / 60:8.1f}{rss:9.0f}{watched.num_fds():7}"
                load = os.getloadavg()[0]
                print(f"{line}{watched.num_threads():9}{children:10}{load:6.1f}", flush=True)
            for one in running:
                one.result()
        waits = other.waits(began)
    times = sorted(1e3 * one.seconds for one in waits)
    print(f"{sum(found.values())} requests: {dict(found.most_common())}")
    net = 1e3 * max(one.net for one in waits)
    often = times[int(0.99 * len(times))]
    print(f"bystander: slowest {times[-1]:.0f} ms, net {net:.0f} ms, p99 {often:.0f} ms")


def main() -> None:
    """Read arguments, and attack."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["bystander", "fuzz", "soak", "watch"])
    parser.add_argument("arguments", nargs="*")
    parser.add_argument("--only", nargs="*", default=[], choices=[*ATTACKS, _COLD])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the service ends with it
    if given.what == "watch":
        port, token, file, pid = given.arguments
        watch(int(port), token, Path(file), int(pid))
    elif given.what == "bystander":
        bystander(given.only, given.seconds)
    elif given.what == "fuzz":
        fuzz(given.requests, given.seed, given.minutes or 60.0)
    else:
        soak(given.minutes or 10.0)


if __name__ == "__main__":
    main()
