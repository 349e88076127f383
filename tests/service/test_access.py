"""Access control: tokens, roles, origins, and limits of requests."""

from __future__ import annotations

import http.cookies
import logging
import socket
import sqlite3
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from sightline.service.middleware import GuessLimiter
from sightline.service.server import is_loopback, serve
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import TokenConflictError, create_token, list_tokens, revoke_token
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running

PAGE = "/v1/experiments/page"
ROLES = ("reader", "client", "experimenter", "admin")


class Closed:
    """A service with a token of every role."""

    def __init__(self, service: Service, tokens: dict[str, str]) -> None:
        self.service, self.tokens = service, tokens


@pytest.fixture
def closed(tmp_path: Path) -> Iterator[Closed]:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        tokens = {role: create_token(store, role, role) for role in ROLES}
    with running(url, token_refresh=0.0) as service:
        made = service("PUT", PAGE, SPECIFICATION, token=tokens["experimenter"])
        assert made.status == 201
        yield Closed(service, tokens)


def requests(service: Service, token: str) -> list[tuple[str, str]]:
    """Every address of the OpenAPI document, filled in."""
    found = service("GET", "/openapi.json", token=token).body["paths"]
    filled = [
        (method.upper(), path.replace("{experiment}", "page").replace("{option}", "a"))
        for path, verbs in found.items()
        for method in verbs
    ]
    return [
        (method, path.replace("{decision}", "x").replace("{name}", "reader"))
        for method, path in filled
    ]


def test_a_stranger_gets_nothing(closed: Closed) -> None:
    listed = requests(closed.service, closed.tokens["reader"])
    assert len(listed) > 18
    strange = [None, "", "x", "sl_" + 43 * "A", closed.tokens["admin"][:-1]]
    for method, path in [*listed, ("GET", "/"), ("GET", "/openapi.json"), ("GET", "/nothing")]:
        if path == "/v1/health":
            continue
        for token in strange:
            answer = closed.service(method, path, {} if method != "GET" else None, token=token)
            assert answer.status == 401, (method, path)
            assert set(answer.body) == {"type", "title", "status", "detail"}
            assert "page" not in str(answer.body)
    health = closed.service("GET", "/v1/health")
    assert (health.status, health.body) == (200, {"status": "ok"})


@pytest.mark.parametrize(
    ("method", "path", "least"),
    [
        ("GET", f"{PAGE}/status", "reader"),
        ("GET", f"{PAGE}/events", "reader"),
        ("GET", "/metrics", "reader"),
        ("POST", f"{PAGE}/decisions", "client"),
        ("PUT", "/v1/decisions/x/reward", "client"),
        ("PUT", "/v1/decisions/x/give-up", "client"),
        ("PUT", "/v1/decisions/x/activation", "client"),
        ("PUT", "/v1/experiments/other", "experimenter"),
        ("POST", f"{PAGE}/options", "experimenter"),
        ("POST", f"{PAGE}/options/a:retire", "experimenter"),
        ("POST", f"{PAGE}/pause", "experimenter"),
        ("POST", f"{PAGE}/resume", "experimenter"),
        ("POST", f"{PAGE}/stop", "experimenter"),
        ("GET", "/v1/tokens", "admin"),
        ("POST", "/v1/tokens", "admin"),
        ("DELETE", "/v1/tokens/nobody", "admin"),
    ],
)
def test_roles(closed: Closed, method: str, path: str, least: str) -> None:
    for role in ROLES:
        body: Any = None if method == "GET" or path.endswith(("retire", "pause", "resume")) else {}
        answer = closed.service(method, path, body, token=closed.tokens[role])
        allowed = ROLES.index(role) >= ROLES.index(least)
        assert (answer.status != 403) == allowed, (role, answer)


def test_a_revoked_token_is_a_strangers(closed: Closed) -> None:
    token = closed.tokens["client"]
    assert closed.service("GET", f"{PAGE}/status", token=token).status == 200
    revoke_token(closed.service.store, "client")
    time.sleep(0.01)
    assert closed.service("GET", f"{PAGE}/status", token=token).status == 401
    with pytest.raises(ValueError, match="no token 'client' that could be revoked"):
        revoke_token(closed.service.store, "client")
    with pytest.raises(ValueError, match="there is a token 'client' already"):
        create_token(closed.service.store, "client", "client")


def test_tokens_over_http(closed: Closed) -> None:
    """An admin makes and revokes tokens; a secret is told once, and never listed."""
    service, admin = closed.service, closed.tokens["admin"]
    made = service("POST", "/v1/tokens", {"name": "new", "role": "client"}, token=admin)
    assert (made.status, set(made.body)) == (201, {"name", "role", "token"})
    secret = made.body["token"]
    assert service("POST", f"{PAGE}/decisions", {}, token=secret).status == 200
    again = service("POST", "/v1/tokens", {"name": "new", "role": "client"}, token=admin)
    assert (again.status, again.body["type"][22:]) == (409, "token-exists")
    listed = service("GET", "/v1/tokens", token=admin).body["tokens"]
    assert [one["name"] for one in listed] == [*ROLES, "new"]
    assert set(listed[0]) == {"name", "role", "created_at", "revoked_at"}
    assert secret not in str(listed)
    revoked = service("DELETE", "/v1/tokens/new", token=admin)
    assert revoked.status == 200
    assert revoked.body["revoked_at"] is not None
    assert service("DELETE", "/v1/tokens/new", token=admin).body == revoked.body
    assert service("POST", f"{PAGE}/decisions", {}, token=secret).status == 401
    assert service("DELETE", "/v1/tokens/none", token=admin).status == 404
    last = service("DELETE", "/v1/tokens/admin", token=admin)
    assert (last.status, last.body["type"][22:]) == (409, "last-admin")
    for body in ({"name": "a/b", "role": "client"}, {"name": "x", "role": "king"}, {}):
        refused = service("POST", "/v1/tokens", body, token=admin)
        assert refused.status == 422
        assert refused.headers["content-type"] == "application/problem+json"


def test_the_first_token_closes_the_service(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        made = service("POST", "/v1/tokens", {"name": "ops", "role": "admin"})
        assert made.status == 201
        assert service("GET", "/v1/tokens").status == 401
        assert service("GET", "/v1/tokens", token=made.body["token"]).status == 200


def test_a_service_does_not_open_when_its_last_token_is_revoked(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db", token_refresh=0.0) as service:
        assert service("GET", "/v1/experiments").status == 200
        create_token(service.store, "one", "admin")
        assert service("GET", "/v1/experiments").status == 401
        revoke_token(service.store, "one")
        assert service("GET", "/v1/experiments").status == 401


def test_without_a_token_only_this_machine_is_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="without one the service listens on the loopback"):
            serve(f"sqlite:///{tmp_path}/x.db", host)
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    with running(f"sqlite:///{tmp_path}/y.db", loopback=False) as service:
        assert service("GET", "/v1/experiments").status == 401


def test_secrets_are_neither_stored_nor_logged(
    closed: Closed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for token in closed.tokens.values():
            closed.service("GET", f"{PAGE}/status", token=token)
            closed.service("GET", f"{PAGE}/nothing", token=token)
    with sqlite3.connect(tmp_path / "x.db") as connection:
        stored = "".join(map(str, connection.execute("SELECT * FROM tokens").fetchall()))
    connection.close()
    for token in closed.tokens.values():
        assert token not in caplog.text
        assert token not in stored
        assert token[3:20] not in stored
    listed = list_tokens(closed.service.store)
    assert [one.role.name.lower() for one in listed] == list(ROLES)


def test_pages_of_other_sites_are_refused(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", PAGE, SPECIFICATION)
        own = {"Origin": service.url}
        assert service("POST", f"{PAGE}/pause", headers=own).status == 200
        for headers in (
            {"Origin": "https://example.org"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            assert service("POST", f"{PAGE}/stop", headers=headers).status == 403
        renamed = service("GET", "/v1/experiments", headers={"Host": "example.org:8000"})
        assert renamed.status == 403
        plain = service("POST", f"{PAGE}/decisions", b"{}", headers={"Content-Type": "text/plain"})
        assert plain.status == 422
        preflight = service("OPTIONS", f"{PAGE}/stop", headers={"Origin": "https://example.org"})
        assert "access-control-allow-origin" not in {name.lower() for name in preflight.headers}


@pytest.mark.parametrize(
    "cookies",
    [
        "sightline_token={}",
        "x[y]=1; sightline_token={}",
        'a=b; sightline_token={}; x="; y',
        ";;=;sightline_token={};,;\\",
        '"\\"; x sightline_token=1; sightline_token={}',
        'a="' + 15_000 * "\\" + '"; sightline_token={}',
    ],
)
def test_cookies_of_others_sign_nobody_out(closed: Closed, cookies: str) -> None:
    cookie = {"Cookie": cookies.format(closed.tokens["reader"])}
    assert closed.service("GET", f"{PAGE}/status", headers=cookie).status == 200
    wrong = {"Cookie": cookies.format("x")}
    assert closed.service("GET", f"{PAGE}/status", headers=wrong).status == 401


def test_only_our_cookie_is_parsed(closed: Closed, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser of the standard library takes a second for 16 kB, and everybody waits."""

    def slow(text: str) -> str:
        raise AssertionError(text)

    monkeypatch.setattr(http.cookies, "_unquote", slow)
    cookie = {"Cookie": f'a="\\\\"; sightline_token={closed.tokens["admin"]}'}
    for path in ("/v1/health", "/v1/experiments", "/", "/sign-in"):
        assert closed.service("GET", path, headers=cookie).status == 200


def raw(service: Service, *headers: str) -> int:
    """Send headers as they are, and return the status."""
    lines = ["GET /v1/tokens HTTP/1.1", *headers, "Connection: close", "", ""]
    with socket.create_connection(("127.0.0.1", service.port), timeout=20.0) as connection:
        connection.sendall("\r\n".join(lines).encode())
        return int(connection.recv(100).split()[1])


def test_without_a_token_no_proxy_is_served(tmp_path: Path) -> None:
    """Through a proxy on this machine everybody would be local."""
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        assert raw(service, "Host: localhost") == 200
        for header in (
            "X-Forwarded-For: 192.0.2.1",
            "X-Forwarded-Host: example.org",
            "x-forwarded-proto: https",
            "Forwarded: for=192.0.2.1",
            "X-Real-IP: 192.0.2.1",
            "Via: 1.1 proxy",
        ):
            assert raw(service, "Host: localhost", header) == 403
        assert raw(service) == 403
        for hosts in (("localhost", "example.org"), ("example.org", "localhost"), 2 * ("::1",)):
            assert raw(service, *(f"Host: {host}" for host in hosts)) == 400
        token = service("POST", "/v1/tokens", {"name": "a", "role": "admin"}).body["token"]
        bearer = f"Authorization: Bearer {token}"
        assert raw(service, "Host: example.org", "X-Forwarded-For: 192.0.2.1", bearer) == 200
        assert raw(service, "Host: example.org", "Host: example.org", bearer) == 400


def test_invalid_tokens_are_refused_by_address(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url, serving=False) as store:
        token = create_token(store, "a", "admin")
    with running(url, guesses=0.01, burst=500.0) as service:

        def guess(address: str) -> int:
            sent = {"X-Forwarded-For": address}
            return service("GET", "/v1/tokens", token="x", headers=sent).status

        assert [guess("192.0.2.1") for _ in range(5)] == 5 * [401]
        assert 429 in [guess("192.0.2.1") for _ in range(5)]
        assert guess("192.0.2.2") == 401
        assert [guess(f"2001:db8::{i}") for i in range(9)].count(401) < 9  # one network
        assert [guess(f"2001:db8:0:{i}::") for i in range(1, 10)].count(401) == 9
        same = {"X-Forwarded-For": "192.0.2.1"}
        for _ in range(9):
            assert service("GET", "/v1/tokens", token=token, headers=same).status == 200
            assert service("GET", "/v1/tokens", headers=same).status == 401  # it guesses nothing
        form = {"Origin": "http://example.org", "Host": "example.org"}
        tried = [
            service("POST", "/sign-in", f"token={one}".encode(), headers=same | form).status
            for one in (*range(9), token)
        ]
        assert set(tried[:-1]) <= {401, 429}
        assert 429 in tried
        assert tried[-1] == 303


def test_guesses_take_little_memory() -> None:
    guesses = GuessLimiter(Settings(guesses=1e9))
    for i in range(25_000):
        guesses.count({"client": (f"10.0.{i >> 8}.{i & 255}", 1)})
        guesses.count({"client": (f"no address {i}", 1)})
        guesses.count({"client": None})
    assert len(guesses._buckets) == 10_000


def test_admins_who_revoke_each_other_leave_one(database: str) -> None:
    with Store(database, serving=False) as store:
        for i in range(8):
            pair = [f"{i}{letter}" for letter in "ab"]
            for name in pair:
                create_token(store, name, "admin")
            at_once = threading.Barrier(2)

            def revoke(name: str, at_once: threading.Barrier = at_once) -> bool:
                at_once.wait(20.0)
                try:
                    revoke_token(store, name, keep_admin=True)
                except TokenConflictError:
                    return False
                return True

            with ThreadPoolExecutor(2) as pool:
                assert sorted(pool.map(revoke, pair)) == [False, True]
            (left,) = [one.name for one in list_tokens(store) if one.revoked is None]
            revoke_token(store, left)


def test_of_two_tokens_with_one_name_one_is_made(database: str) -> None:
    with running(database) as service:
        admin = service("POST", "/v1/tokens", {"name": "a", "role": "admin"}).body["token"]

        def create(_: int) -> int:
            body = {"name": "b", "role": "client"}
            return service("POST", "/v1/tokens", body, token=admin).status

        with ThreadPoolExecutor(8) as pool:
            assert sorted(pool.map(create, range(8))) == [201, *7 * [409]]


def test_limits(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with running(url, largest_body=2000, most_options=3, most_decisions=5) as service:
        large = {**SPECIFICATION, "description": "x" * 2000}
        assert service("PUT", PAGE, large).status == 413
        chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
        body = b"%x\r\n%s\r\n0\r\n\r\n" % (3000, b" " * 3000)
        assert service("PUT", PAGE, body, headers=chunked).status == 413
        assert service("PUT", PAGE, SPECIFICATION).status == 201
        many = {"factors": {"a": ["x", "y"], "b": ["x", "y"]}}
        assert "3 options at most" in service("PUT", "/v1/experiments/m", many).body["detail"]
        extra = {"name": "d", "features": [1.0, 1.0]}
        assert service("POST", f"{PAGE}/options", extra).status == 422
        assert service("POST", f"{PAGE}/decisions", {"count": 6}).status == 422
    with running(url, rate=5.0, burst=1.0) as service:
        answers = [service("GET", "/v1/experiments") for _ in range(12)]
        refused = [one for one in answers if one.status == 429]
        assert 3 <= len(refused) < 10
        assert refused[0].headers["retry-after"] == "1"


def test_limits_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = Settings.from_environment(
        {"SIGHTLINE_HEADER_SIZE": "4096", "SIGHTLINE_BODY_TIME": "2.5", "SIGHTLINE_DATABASE": "x"},
        rate=3.0,
    )
    assert found == Settings(header_size=4096, body_time=2.5, rate=3.0)
    for name, value in (("BODY_TIME", "soon"), ("IDLE_TIME", "-1"), ("MOST_CONNECTIONS", "1.5")):
        with pytest.raises(ValueError, match=f"SIGHTLINE_{name} must be a .*number, 0 or larger"):
            Settings.from_environment({f"SIGHTLINE_{name}": value})
    monkeypatch.setenv("SIGHTLINE_ANSWER_TIME", "nan")
    with pytest.raises(ValueError, match="SIGHTLINE_ANSWER_TIME must be a number"):
        serve(f"sqlite:///{tmp_path}/x.db")


def test_every_answer_has_security_headers(tmp_path: Path) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        for path in ("/v1/experiments", "/nothing", "/v1/health"):
            headers = service("GET", path).headers
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["x-frame-options"] == "DENY"
            assert "default-src 'self'" in headers["content-security-policy"]
            assert "server" not in headers
