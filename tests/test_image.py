"""The container image: its build script without a container engine, and what its files say."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
NOBODY = 65534


def lines(instruction: str) -> list[str]:
    """Arguments of all lines of the Dockerfile with an instruction."""
    return re.findall(rf"^{instruction} +(.*)$", DOCKERFILE, re.MULTILINE)


def health_check() -> list[str]:
    """Command of the health check."""
    command: list[str] = json.loads(lines("HEALTHCHECK")[0].partition("CMD")[2])
    return command


def test_the_image_is_pinned_and_runs_as_a_user_of_its_own() -> None:
    (python,) = re.findall(r"^ARG PYTHON=(\S+)$", DOCKERFILE, re.MULTILINE)
    assert re.fullmatch(r"3\.1[1-4]\.\d+-slim-\w+", python), "a base with all its versions"
    assert lines("FROM") == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    assert ":latest" not in DOCKERFILE
    assert lines("USER")[-1] == "10001:10001"
    last = DOCKERFILE.rindex("\nFROM")
    for instruction in ("USER", "HEALTHCHECK", "ENTRYPOINT", "VOLUME"):
        assert DOCKERFILE.index(f"\n{instruction}") > last, instruction
    assert json.loads(lines("ENTRYPOINT")[0]) == ["sightline"]
    assert "/v1/health" in health_check()[-1]
    assert not re.search(r"password|secret|token", DOCKERFILE, re.IGNORECASE)


def test_what_is_copied_into_the_image_is_there_and_sent_to_the_engine() -> None:
    sent = (ROOT / ".dockerignore").read_text().split("\n")
    for copied in lines("COPY"):
        if not copied.startswith("--from"):
            source = copied.split()[0]
            assert f"!{source}" in sent or f"!{source}*.whl" in sent, source
            assert source == "dist/" or (ROOT / source).exists()


def test_the_composition_has_health_checks_and_no_password() -> None:
    text = (ROOT / "compose.yaml").read_text()
    composition: dict[str, Any] = yaml.safe_load(text)
    services = composition["services"]
    database, service = services["postgres"], services["sightline"]
    assert re.fullmatch(r"postgres:\d+\.\d+-\w+", database["image"])
    assert database["healthcheck"]["test"][:2] == ["CMD", "pg_isready"]
    assert service["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    for one in services.values():
        for name, value in one["environment"].items():
            if "PASSWORD" in name:
                assert value.startswith("${SIGHTLINE_DATABASE_PASSWORD:?"), name
        for volume in one["volumes"]:
            assert volume.partition(":")[0] in composition["volumes"]
    assert "@postgres" in service["environment"]["SIGHTLINE_DATABASE"]
    assert ".env" in (ROOT / ".gitignore").read_text().split("\n")


class Unprivileged:
    """Runs commands as a user who can write to one directory only."""

    def __init__(self, folder: Path) -> None:
        self.state, home = folder / "state", folder / "home"
        self.state.mkdir(mode=0o700)
        home.mkdir()
        (home / "kept").write_text("as it was")
        home.chmod(0o555)
        self._prefix: list[str] = []
        if os.getuid() == 0:
            # reading is left to it, because the interpreter may belong to root
            may_read = "+dac_read_search"
            self._prefix = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
            self._prefix += [f"--inh-caps={may_read}", f"--ambient-caps={may_read}"]
            os.chown(self.state, NOBODY, NOBODY)
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "SIGHTLINE_DATABASE": f"sqlite:///{self.state}/experiments.db",
            "NUMBA_CACHE_DIR": str(self.state / "cache"),
            "NUMBA_DISABLE_JIT": "1",  # what is compiled is tested elsewhere
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def run(self, *command: object) -> str:
        done = subprocess.run(self._arguments(command), **self._options(), capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        return str(done.stdout.decode().strip())

    def start(self, *command: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._arguments(command), **self._options())

    def _arguments(self, command: tuple[object, ...]) -> list[str]:
        return [*self._prefix, *map(str, command)]

    def _options(self) -> dict[str, Any]:
        return {"cwd": self.state, "env": self.environment}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Build the wheel, and install it as the Dockerfile does, without compiled kernels."""
    folder = tmp_path_factory.mktemp("image")
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir"]
    built = subprocess.run([*pip, folder / "dist", ROOT], capture_output=True)
    if built.returncode:
        pytest.skip(f"no wheel can be built here: {built.stderr.decode()[-300:]}")
    environment = {**os.environ, "SIGHTLINE_EXTRAS": "service", "PYTHON": sys.executable}
    environment.pop("PYTHONPATH", None)
    script = [ROOT / "release" / "image.sh", folder / "sightline", folder / "dist"]
    subprocess.run(script, env=environment, check=True)
    yield folder / "sightline"
    subprocess.run(["chmod", "-R", "u+w", folder / "sightline"], check=True)


def request(port: int, token: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    connection.request(method, path, json.dumps(body), headers)
    answer = connection.getresponse()
    content = json.loads(answer.read())
    connection.close()
    return answer.status, content


def written_since(folder: Path, moment: float) -> list[Path]:
    return [path for path in folder.rglob("*") if path.lstat().st_mtime > moment]


@pytest.mark.slow
@pytest.mark.thorough
@pytest.mark.skipif(sys.platform == "win32", reason="the image is for Linux")
@pytest.mark.skipif(
    hasattr(os, "getuid") and os.getuid() == 0 and shutil.which("setpriv") is None,
    reason="root cannot run a command as another user here, as it has no setpriv",
)
def test_the_service_runs_unprivileged_with_a_read_only_home(
    installed: Path, tmp_path: Path
) -> None:
    began = time.time()
    user = Unprivileged(tmp_path)
    command = installed / "bin" / "sightline"
    for folder in (user.home, installed, installed / "bin"):
        attempt = f"import os; print(os.getuid(), os.access({str(folder)!r}, os.W_OK))"
        assert user.run(installed / "bin" / "python", "-c", attempt).split()[1:] == ["False"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = user.run(command, "token", "create", "operator", "--role", "admin")
    arguments = json.loads(lines("CMD")[-1])
    assert arguments[:3] == ["serve", "--host", "0.0.0.0"]
    service = user.start(command, *arguments[:-1], port)
    try:
        check = [part.replace(":8000/", f":{port}/") for part in health_check()]
        check[0] = str(installed / "bin" / check[0])
        while subprocess.run(check, capture_output=True).returncode:
            assert service.poll() is None, "the service has ended"
            assert time.time() < began + 120.0, "the service does not answer"
            time.sleep(0.2)
        body = {"options": {"a": [1.0, 0.0], "b": [0.0, 1.0]}, "policy": "LinUCB"}
        assert request(port, token, "PUT", "/v1/experiments/page", body)[0] == 201
        status, made = request(port, token, "POST", "/v1/experiments/page/decisions", {})
        assert (status, made["round"]) == (200, 1)
        assert request(port, "wrong", "POST", "/v1/experiments/page/decisions", {})[0] == 401
    finally:
        service.send_signal(signal.SIGTERM)
        service.wait(30)
    assert not written_since(installed, began)
    assert (user.home / "kept").read_text() == "as it was"
    assert sorted(path.name for path in user.home.iterdir()) == ["kept"]
    assert (user.state / "experiments.db").stat().st_size > 0
