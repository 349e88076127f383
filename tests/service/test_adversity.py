"""Failing databases, slow readers and kills: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from sightline.service.store import Store
from sightline.service.tokens import Role, create_token
from sightline.service.writer import Writer
from tests.service.databases import OWN, Server
from tests.service.forked import SPECIFICATION
from tests.service.running import Service, running
from tests.stress.program import ROOT

pytestmark = pytest.mark.slow

PAGE = "/v1/experiments/page"


def killed(*arguments: object, server: str = "") -> dict[str, Any]:
    """Run the program that kills services, on a PostgreSQL of its own or another one."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.service.killed", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path, "SIGHTLINE_TEST_POSTGRESQL": server},
        capture_output=True,
        text=True,
        timeout=300,
        cwd=ROOT,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


def test_what_was_acknowledged_survives_kill_9() -> None:
    found = killed(20)
    assert found["kills"] == 20
    assert found["acknowledged"] > 15


def test_what_was_acknowledged_survives_kill_9_of_two_at_once(postgresql: Server) -> None:
    found = killed(10, "--postgresql", "--servers", 2, server=postgresql.url)
    assert found["kills"] == 20
    assert found["acknowledged"] > 15


@pytest.mark.skipif(OWN is not None, reason="a server of your own is not killed")
def test_what_was_acknowledged_survives_a_kill_of_postgresql() -> None:
    found = killed(2, "--postgresql", "--database-kills")
    assert found["acknowledged"] > 5


def decide(service: Service) -> int:
    made = service("POST", f"{PAGE}/decisions", {})
    if made.status != 200:
        return made.status
    path = f"/v1/decisions/{made.body['id']}/reward"
    return service("PUT", path, {"reward": 0.5}).status


def test_a_transaction_that_fails_changes_nothing(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state that was ahead of the database is thrown away, and read again."""
    with running(database) as service:
        service("PUT", PAGE, SPECIFICATION)
        for _ in range(5):
            assert decide(service) == 200
        before = service("GET", f"{PAGE}/status").body
        write = Writer._write

        def fails(self: Any, connection: Any, desks: Any) -> int:
            write(self, connection, desks)  # all is written, but will not be committed
            raise OperationalError("INSERT", {}, Exception("disk full"))

        monkeypatch.setattr(Writer, "_write", fails)
        refused = service("POST", f"{PAGE}/decisions", {}, "key")
        assert (refused.status, refused.headers["retry-after"]) == (503, "1")
        assert service("PUT", "/v1/decisions/nobody/reward", {"reward": 0.5}).status == 503
        monkeypatch.undo()
        assert service("GET", f"{PAGE}/status").body == before
        made = service("POST", f"{PAGE}/decisions", {}, "key").body
        assert made["round"] == before["round"]
        assert service("POST", f"{PAGE}/decisions", {}, "key").body == made


@pytest.mark.parametrize("where", ["_write", "_take"])
def test_a_transaction_that_fails_by_a_defect_is_not_to_be_sent_again(
    database: str, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(database) as service:
        service("PUT", PAGE, SPECIFICATION)

        def fails(self: Any, connection: Any, *_: Any) -> None:
            connection.execute(text("SELECT * FROM nowhere"))

        monkeypatch.setattr(Writer, where, fails)
        refused = service("POST", f"{PAGE}/decisions", {})
        assert (refused.status, refused.body["type"][22:]) == (500, "defect")
        assert "retry-after" not in refused.headers
        assert "Traceback" in caplog.text
        monkeypatch.undo()
        assert service("POST", f"{PAGE}/decisions", {}).body["round"] == 1


def test_a_defect_of_a_page_is_answered_and_logged(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError

    for name in ("first_entries", "newest"):
        monkeypatch.setattr(service.runtime.readers, name, broken)
    monkeypatch.setattr(service.runtime.tokens, "holder", broken)
    for path in ("/v1/experiments", "/"):
        answer = service("GET", path, headers={"Accept": "text/html"})
        assert answer.status == 500
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert b"defect" in answer.body if path == "/" else answer.body["type"][22:] == "defect"
        assert "Traceback" in caplog.text
        monkeypatch.setattr(service.runtime.tokens, "holder", lambda _: ("", Role.ADMIN))
        caplog.clear()
    assert b'status="500"' in service("GET", "/metrics").body


def test_nobody_who_asks_is_to_blame_for_a_log_that_cannot_be_read(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    other = PAGE.replace("page", "other")
    with running(database) as service:
        for path in (PAGE, other):
            service("PUT", path, SPECIFICATION)
        made = service("POST", f"{PAGE}/decisions", {}).body
        with service.store.writing() as connection:
            connection.execute(
                text("UPDATE events SET payload = :changed WHERE decision = :made"),
                {"changed": '{"arm": 7, "round": 1, "probability": 1.0}', "made": made["id"]},
            )
    with running(database) as service:
        for method, path, body in (
            ("GET", f"{PAGE}/status", None),
            ("GET", f"{PAGE}/export.parquet", None),
            ("POST", f"{PAGE}/decisions", {}),
            ("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5}),
        ):
            answer = service(method, path, body)
            assert (answer.status, answer.body["type"][22:]) == (500, "unreadable")
            assert answer.body["detail"].startswith("experiment page cannot be read: ")
            assert "experiment page cannot be read" in caplog.text
            caplog.clear()
        assert service("POST", f"{other}/decisions", {}).status == 200
        assert b"unreadable" in service("GET", "/").body


def test_a_defect_in_one_experiment_leaves_the_others_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", PAGE, SPECIFICATION)
        service("PUT", "/v1/experiments/other", SPECIFICATION)
        one = service.runtime._writer._loaded["page"]

        def broken(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(one.session, "ask", broken)
        assert service("POST", f"{PAGE}/decisions", {}).status == 500
        assert "Traceback" in caplog.text
        assert service("POST", "/v1/experiments/other/decisions", {}).status == 200
        assert service("POST", f"{PAGE}/decisions", {}).status == 200  # it was read again


def test_health_says_when_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        assert service("GET", "/v1/health").status == 200
        monkeypatch.setattr("sightline.service.runtime._HEALTH_LIFETIME", 0.0)
        with service.store.writing() as connection:
            connection.execute(text("ALTER TABLE heartbeat RENAME TO gone"))
        assert service("GET", "/v1/health").status == 503
        with service.store.writing() as connection:
            connection.execute(text("ALTER TABLE gone RENAME TO heartbeat"))
        assert service("GET", "/v1/health").status == 200


def test_nobody_is_told_of_locks_and_readers_block_nobody(tmp_path: Path) -> None:
    """Decisions go on while pages are read, tokens made and a reader holds its transaction."""
    url = f"sqlite:///{tmp_path}/x.db"
    statuses: list[int] = []
    slowest = [0.0]
    over = threading.Event()
    with running(url) as service:
        service("PUT", PAGE, SPECIFICATION)
        for _ in range(30):
            decide(service)

        def deciding() -> None:
            while not over.is_set():
                began = time.perf_counter()
                statuses.append(decide(service))
                slowest[0] = max(slowest[0], time.perf_counter() - began)

        def reading() -> None:
            views = ("status", "history", "effects", "events", "pending", "export.parquet")
            while not over.is_set():
                statuses.extend(service("GET", f"{PAGE}/{view}").status for view in views)

        threads = [threading.Thread(target=work) for work in (deciding, deciding, reading, reading)]
        for thread in threads:
            thread.start()
        with Store(url, serving=False) as other, other.reading() as connection:
            connection.execute(text("SELECT count(*) FROM events"))  # and does not end
            for i in range(10):
                create_token(other, f"token-{i}", "reader")
                if i == 0:  # or the tokens would be needed by those who decide
                    service.runtime.tokens._lifetime = 1e9
                time.sleep(0.15)
        over.set()
        for thread in threads:
            thread.join()
    assert set(statuses) == {200}
    assert len(statuses) > 50
    assert slowest[0] < 2.0


def test_one_process_serves_a_file(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url), pytest.raises(BlockingIOError, match="is open already"):
        Store(url)
    with Store(url):  # and then the next
        pass


@pytest.mark.parametrize(
    "url", ["", "x", "mysql://host/name", "sqlite://", "sqlite:///:memory:", "sqlite:////nowhere/x"]
)
def test_addresses_that_cannot_be_used(url: str) -> None:
    with pytest.raises((ValueError, OSError)):
        Store(url)


def test_databases_of_others_and_of_other_releases_are_refused(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    with Store(url) as store, store.writing() as connection:
        connection.execute(text("UPDATE sightline_version SET version = 99"))
    with pytest.raises(ValueError, match=r"has version 99, later than .*: upgrade"):
        Store(url)
    with Store(f"sqlite:///{tmp_path}/z.db") as store, store.writing() as connection:
        connection.execute(text("UPDATE sightline_version SET version = 0"))
    with pytest.raises(ValueError, match="has version 0; this release reads 1 only"):
        Store(f"sqlite:///{tmp_path}/z.db")
    with Store(f"sqlite:///{tmp_path}/y.db") as store, store.writing() as connection:
        connection.execute(text("DROP TABLE sightline_version"))
    with pytest.raises(ValueError, match="a table 'events' that is not of this service"):
        Store(f"sqlite:///{tmp_path}/y.db")
