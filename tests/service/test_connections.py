"""Limits of connections before authentication: memory and time."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sightline.service.server import LimitedConnection
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running

GET = b"GET /v1/health HTTP/1.1\r\nHost: localhost\r\n"
PATIENCE = 20.0  # seconds, which tell a connection that is closed from one that is not


@pytest.fixture(scope="module")
def hasty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with short timeouts."""
    short: Any = dict.fromkeys(("header_time", "body_time", "answer_time", "idle_time"), 0.3)
    with running(f"sqlite:///{tmp_path_factory.mktemp('hasty')}/x.db", **short) as found:
        yield found


def connected(service: Service, sent: bytes = b"") -> socket.socket:
    found = socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE)
    found.sendall(sent)
    return found


def answered(connection: socket.socket) -> bytes:
    """All that is answered until the service closes the connection."""
    with connection:
        parts = []
        try:
            while part := connection.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:  # it has read no more
            pass
        return b"".join(parts)


def push(connection: socket.socket, part: bytes, times: int, pause: float) -> None:
    """Send something again and again."""
    for _ in range(times):
        connection.sendall(part)
        time.sleep(pause)


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize(
    "large",
    [
        b'Cookie: a="' + 60_000 * b"\\" + b'"\r\n',
        b"X: " + 16_384 * b"x" + b"\r\n",
        3_000 * b"X: x\r\n",
    ],
)
def test_headers_above_16_kb_get_431(nothing_begun: Service, large: bytes) -> None:
    answer = answered(connected(nothing_begun, GET + large + b"\r\n"))
    assert status_of(answer) == 431
    assert b"application/problem+json" in answer
    assert b"headers may have 16384 bytes in total" in answer


def test_headers_of_16_kb_are_read(nothing_begun: Service) -> None:
    few = {"Connection": "close", "X": 16_000 * "x"}
    assert nothing_begun("GET", "/v1/health", headers=few).status == 200
    assert nothing_begun("GET", f"/v1/health?{16_400 * 'x'}").status == 431


@pytest.mark.parametrize("part", [b"x" * 4096, 512 * b"x: y\r\n"])
@pytest.mark.parametrize(
    "beginning",
    [
        GET + b"Long: ",
        b"GET /",
        GET.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n0\r\nTrailing: ",
        GET.replace(b"GET", b"POST") + b"Transfer-Encoding: chunked\r\n\r\n1;extension=",
    ],
)
def test_headers_that_never_end_are_not_kept(
    nothing_begun: Service, beginning: bytes, part: bytes
) -> None:
    """Trailers are headers, too."""
    connection = connected(nothing_begun, beginning)
    with connection, pytest.raises(ConnectionError):
        push(connection, part, 2_000, 0.001)  # 8 MB


def test_a_header_after_the_body_is_no_header(nothing_begun: Service) -> None:
    """What was checked before the body does not change with it."""
    body = b"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\nHost: example.org\r\n\r\n"
    sent = b"POST /v1/nothing HTTP/1.1\r\nHost: localhost\r\n" + body
    assert status_of(answered(connected(nothing_begun, sent))) == 404


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"\r\n", None),
        (GET, 408),
        (b"GE", 408),
        (b"PUT /v1/experiments/x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{", 408),
        (b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
        (b"\x16\x03\x01", 400),
        (GET + b"\r\n", 200),  # and then idle
        (GET + b"\r\n\r\n", 200),
        (GET + b"\r\n" + GET, 200),
    ],
)
def test_what_does_not_come_is_not_waited_for(
    hasty: Service, sent: bytes, status: int | None
) -> None:
    answer = answered(connected(hasty, sent))
    assert (status_of(answer) if answer else None) == status
    assert hasty("GET", "/v1/health").status == 200


def test_a_connection_is_not_kept_by_a_byte_now_and_then(hasty: Service) -> None:
    for beginning, drop in ((GET, b"x"), (b"", b"\r\n"), (GET + b"\r\n", b"\r\n")):
        with connected(hasty, beginning) as connection, pytest.raises(ConnectionError):
            push(connection, drop, 200, 0.05)


def test_an_answer_that_is_not_taken_is_given_up(hasty: Service) -> None:
    """Pages are asked for, again and again, and never read."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", hasty.port))
    connection.settimeout(PATIENCE)
    ask = b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with connection, pytest.raises(ConnectionError):
        push(connection, 90 * ask, 400, 0.05)
    assert hasty("GET", "/v1/health").status == 200


def test_half_open_requests_leave_room_for_others(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", most_connections=10) as service:
        half = [connected(service, GET) for _ in range(50)]
        assert service("GET", "/v1/health").status == 200
        assert len(service.server.server_state.connections) <= 10
        for connection in half[:30]:
            assert answered(connection) == b""
        for connection in half[30:]:
            connection.close()


def test_a_connection_too_many_does_not_search_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else many that come at once keep the event loop busy for half a second."""
    visits = 0
    waits = vars(LimitedConnection)["waits"].fget

    def counted(one: LimitedConnection) -> bool:
        nonlocal visits
        visits += 1
        return bool(waits(one))

    with running(f"sqlite:///{tmp_path}/x.db", most_connections=50) as service:
        monkeypatch.setattr(LimitedConnection, "waits", property(counted))
        held = [connected(service, GET) for _ in range(150)]
        assert service("GET", "/v1/health").status == 200
        monkeypatch.undo()
        for one in held:
            one.close()
    assert 100 <= visits <= 1000


def test_connections_that_are_busy_are_not_closed_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", most_connections=2) as service:
        begun, go_on = threading.Barrier(3), threading.Event()

        def slow(*_: object) -> bool:
            begun.wait(PATIENCE)
            return go_on.wait(PATIENCE)

        monkeypatch.setattr(service.runtime.readers, "first_entries", slow)
        ask = b"GET /v1/experiments HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        busy = [connected(service, ask) for _ in range(2)]
        begun.wait(PATIENCE)
        refused = answered(connected(service))
        assert status_of(refused) == 503
        assert b"too many connections are open" in refused
        monkeypatch.undo()
        go_on.set()
        assert [status_of(answered(one)) for one in busy] == [500, 500]  # True is no list
        assert service("GET", "/v1/experiments").status == 200


def test_requests_that_wait_in_one_connection_are_few(nothing_begun: Service) -> None:
    answer = answered(connected(nothing_begun, 5_000 * (GET + b"\r\n")))
    assert answer.count(b"HTTP/1.1 ") < 200


def test_answers_to_a_connection_that_was_closed_are_no_defects(
    nothing_begun: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """Else everybody could fill the disk with our log."""
    errors = logging.getLogger("uvicorn.error")
    level = errors.level
    errors.addHandler(caplog.handler)
    errors.setLevel(logging.ERROR)
    try:
        for _ in range(5):
            answered(connected(nothing_begun, 5_000 * (GET + b"\r\n")))
        assert nothing_begun("GET", "/v1/health").status == 200
    finally:
        errors.setLevel(level)
        errors.removeHandler(caplog.handler)
    assert not caplog.records


def test_half_a_form_is_not_carried_out(nothing_begun: Service) -> None:
    """A connection that is lost within a body ends the request."""
    form = b"name=half&options=a%0Ab&reward=clicks&description=whole"
    head = (
        f"POST /experiments HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
        f"Content-Length: {len(form)}\r\n\r\n"
    )
    connected(nothing_begun, head.encode() + form[:-5]).close()
    deadline = time.monotonic() + PATIENCE
    while b'status="499"' not in nothing_begun("GET", "/metrics").body:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert nothing_begun("GET", "/v1/experiments/half").status == 404


def test_a_body_that_takes_long_but_comes_is_read(hasty: Service) -> None:
    """Limits are for every request alone: many in one connection are served."""
    with connected(hasty) as connection:
        for _ in range(3):
            connection.sendall(GET)
            time.sleep(0.15)
            connection.sendall(b"\r\n")
            assert status_of(connection.recv(1 << 16)) == 200
            time.sleep(0.15)


def test_a_service_with_half_open_requests_ends(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        assert service("PUT", "/v1/experiments/page", SPECIFICATION).status == 201
        half = [connected(service, GET) for _ in range(5)]
        began = time.monotonic()
    assert time.monotonic() - began < 8.0
    for connection in half:
        connection.close()
