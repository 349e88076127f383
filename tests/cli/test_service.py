"""``sightline serve``, ``token`` and ``copy``."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from typer.testing import CliRunner

import sightline as sl
from sightline.cli import app
from tests.marks import without_compilation

runner = CliRunner()


def invoke(*arguments: str) -> tuple[int, str]:
    result = runner.invoke(app, list(arguments))
    return result.exit_code, result.output


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    database = ("--database", f"sqlite:///{tmp_path}/x.db")
    code, secret = invoke("token", "create", "website", *database)
    assert (code, secret[:3], len(secret.strip())) == (0, "sl_", 46)
    code, said = invoke("token", "create", "website", *database)
    assert (code, "there is a token 'website' already" in said) == (2, True)
    code, said = invoke("token", "create", "x", "--role", "king", *database)
    assert (code, "role must be one of" in said) == (2, True)
    assert invoke("token", "create", "a b", *database)[0] == 2
    code, listed = invoke("token", "list", *database)
    assert code == 0
    assert listed.split()[:2] == ["website", "client"]
    assert secret.strip() not in listed
    assert invoke("token", "revoke", "website", *database) == (0, "revoked website\n")
    assert "revoked" in invoke("token", "list", *database)[1]
    assert invoke("token", "revoke", "website", *database)[0] == 2


def test_addresses_that_everybody_reaches_need_a_token(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/x.db"
    code, said = invoke("serve", "--database", database, "--host", "0.0.0.0")
    assert code == 2
    assert "there is no token yet" in said
    code, said = invoke("serve", "--database", "mysql://x")
    assert (code, "database must be" in said) == (2, True)
    code, said = invoke("serve", "--database", f"sqlite:///{tmp_path}/nowhere/x.db")
    assert code == 1


def test_copying_needs_an_experiment(tmp_path: Path) -> None:
    here, there = f"sqlite:///{tmp_path}/x.db", f"sqlite:///{tmp_path}/y.db"
    code, said = invoke("copy", "page", "--database", here, "--to", there)
    assert (code, "has no experiment 'page'" in said) == (2, True)


@without_compilation
def test_a_service_that_is_started_and_ended(tmp_path: Path) -> None:
    """As an operator does: with the command, and SIGTERM."""
    command = [sys.executable, "-m", "sightline", "serve", "--port", "0", "--database"]
    url = f"sqlite:///{tmp_path}/x.db"
    process = subprocess.Popen(
        [*command, url], stderr=subprocess.PIPE, text=True, bufsize=1, cwd=tmp_path
    )
    assert process.stderr is not None
    said = []
    try:
        for line in process.stderr:
            said.append(line)
            if "running on" in line:
                break
        assert any("there is no token" in line for line in said)
        address = said[-1].split("running on ")[1].split()[0]
        client = sl.Client(address)
        options = {"a": [1.0, 0.0], "b": [0.9, 0.3], "c": [0.0, 1.0]}
        client.create("page", options=options, noise_std=0.3, policy="IDS")
        decision = client.ask("page")
        client.tell(decision, 0.5)
        assert client.status("page")["told"] == 1
        client.close()
        began = time.monotonic()
        process.terminate()
        process.wait(20)
        assert time.monotonic() - began < 15
    finally:
        process.kill()
        process.wait()
        process.stderr.close()
