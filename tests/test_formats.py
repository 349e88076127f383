"""Files in every public format, of every version, can be read; later versions say to upgrade."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sightline as sl
from sightline.experiments import store
from sightline.files import sealed
from sightline.report import decision_frame
from sightline.report.audit import audit
from sightline.service import schema
from sightline.service.store import Store
from sightline.sessions import journal, snapshot
from sightline.sessions.snapshot import Snapshot, read_snapshot, write_snapshot
from tests import formats
from tests.marks import without_compilation

pytestmark = without_compilation  # sessions of all policies

ROOT = Path(__file__).parents[1]
VERSIONS = sorted(path.name for path in formats.FORMATS.iterdir())
CURRENT = formats.FORMATS / "1"


def expected(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "expected.json").read_text())
    return found


@pytest.fixture(params=VERSIONS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Copy the files of a version: opening a database writes to it."""
    copy = tmp_path / "files"
    shutil.copytree(formats.FORMATS / request.param, copy)
    with zipfile.ZipFile(copy / "sessions.zip") as archive:
        archive.extractall(copy / "sessions")
    return copy


def same(found: Any, wanted: Any) -> bool:
    """Whether values are equal, numbers up to rounding on another platform."""
    if isinstance(wanted, dict):
        return set(found) == set(wanted) and all(same(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        return len(found) == len(wanted) and all(map(same, found, wanted))
    if isinstance(wanted, float):
        return bool(np.isclose(found, wanted, rtol=1e-9, atol=1e-12))
    return bool(found == wanted)


def test_saved_sessions_are_read_and_continue(folder: Path) -> None:
    wanted = expected(folder)["sessions.zip"]
    assert len(wanted) > 25
    for name, values in wanted.items():
        session = sl.Session.load(folder / "sessions" / name)
        found = formats.found_in_session(session)
        assert same(found, values), (name, found, values)
        before = session.status().told
        several = session.options.per_arm > 1
        session.tell(found["open ids"][0], [1.0] * session.options.per_arm if several else 1.0)
        assert session.status().told + session.status().waiting > before, name


def test_every_policy_has_a_saved_session() -> None:
    saved = {values["policy"] for values in expected(CURRENT)["sessions.zip"].values()}
    assert saved == set(sl.policies.catalogue.POLICIES)


@pytest.mark.parametrize("policy", [None, sl.EpsilonGreedy()], ids=["alone", "with its arguments"])
def test_a_journal_is_replayed(folder: Path, policy: sl.extend.Policy | None) -> None:
    wanted = expected(folder)["journal.db"]
    arguments: tuple[Any, ...] = () if policy is None else (formats.FEATURES, policy, 0.5, 1)
    with sl.Session.open(folder / "journal.db", *arguments) as session:
        found = formats.found_in_session(session)
        assert same(found, wanted), found
        assert len(session.events()) == wanted["round"] - 1 + wanted["told"]
        session.tell(found["open ids"][0], 1.0)


@pytest.mark.parametrize("name", ["export.parquet", "service.parquet"])
def test_exports_are_read_and_audited(folder: Path, name: str) -> None:
    found, wanted = formats.found_in_export(folder / name), expected(folder)[name]
    assert same(found, wanted), found
    recomputed = audit(folder / name)
    assert recomputed.well, recomputed
    assert recomputed.decisions == len(wanted["arms"])


def test_results_are_read(folder: Path) -> None:
    found, wanted = formats.found_in_store(folder / "store"), expected(folder)["store"]
    assert same(found, wanted), found
    results = sl.types.Results.load(folder / "store")
    assert len(results.lower_bounds) == 1, "the specification is read as well"


def test_a_database_of_the_service_is_served(folder: Path) -> None:
    found = formats.found_in_service(folder / "service.db")
    assert same(found, expected(folder)["service.db"]), found


def test_new_files_have_the_columns_of_the_old_ones(tmp_path: Path) -> None:
    formats.write(tmp_path / "new")
    found, wanted = expected(tmp_path / "new"), expected(CURRENT)
    for name in ("export.parquet", "service.parquet", "store"):
        lost = set(wanted[name]["columns"]) - set(found[name]["columns"])
        assert not lost, "a renamed column needs a new version"
    assert found["service.db"]["kinds"] == wanted["service.db"]["kinds"]
    kinds = {name: values["open"] for name, values in found["sessions.zip"].items()}
    assert kinds == {name: values["open"] for name, values in wanted["sessions.zip"].items()}


def change_database(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def test_files_of_a_later_version_ask_for_an_upgrade(folder: Path) -> None:
    saved = folder / "sessions" / "IDS.session"
    with saved.open("rb") as file:
        read = read_snapshot(file)
    kind = read.header["state"]
    for header in (
        read.header | {"version": 2},
        read.header | {"state": kind | {"version": kind["version"] + 1}},
    ):
        with saved.open("wb") as file:
            write_snapshot(file, Snapshot(header, read.arrays))
        with pytest.raises(ValueError, match="2, later than 1: upgrade sightline"):
            sl.Session.load(saved)

    change_database(folder / "journal.db", "PRAGMA user_version = 2")
    with pytest.raises(ValueError, match="has version 2, later than 1: upgrade sightline"):
        sl.Session.open(folder / "journal.db")

    manifest = folder / "store" / "manifest.json"
    changed = sealed(json.loads(manifest.read_text()) | {"version": 2})
    manifest.write_text(json.dumps(changed))
    with pytest.raises(ValueError, match="its version 2 is later than 1: upgrade sightline"):
        sl.types.Results.load(folder / "store")

    table = pq.read_table(folder / "export.parquet")
    metadata = json.loads(table.schema.metadata[decision_frame.METADATA]) | {"version": 2}
    changed_table = table.replace_schema_metadata(
        {decision_frame.METADATA: json.dumps(metadata).encode()}
    )
    pq.write_table(changed_table, folder / "export.parquet")
    with pytest.raises(ValueError, match="has version 2, later than 1: upgrade sightline"):
        audit(folder / "export.parquet")

    change_database(folder / "service.db", "UPDATE sightline_version SET version = 2")
    with pytest.raises(ValueError, match="has version 2, later than 1: upgrade sightline"):
        Store(f"sqlite:///{folder}/service.db")


def test_the_page_states_the_version_of_every_format() -> None:
    current = {
        "Saved session": snapshot.VERSION,
        "Journal": journal._VERSION,
        "Store of results": store.VERSION,
        "Export": decision_frame.VERSION,
        "Database of the service": schema.VERSION,
    }
    page = (ROOT / "docs" / "formats.md").read_text()
    rows = dict(re.findall(r"^\| ([A-Z][\w ]+) \|.*\| (\d+) \|", page, re.MULTILINE))
    assert {name: int(version) for name, version in rows.items()} == current
