"""Recorded attributes of decisions: kept, returned, exported, and never seen by a policy."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sightline as sl
from sightline.report.audit import audit
from sightline.sessions import session as session_module
from sightline.sessions.journal import Journal
from sightline.sessions.snapshot import Snapshot, read_snapshot, write_snapshot
from tests.marks import without_compilation

pytestmark = without_compilation

ROWS = {"a": [1.0, 0.0], "b": [0.8, 0.6], "c": [0.0, 1.0]}
POLICIES: list[sl.extend.Policy] = [sl.Stakes(), sl.IDS(), sl.ThompsonSampling(), sl.LinUCB()]
GERMAN: dict[str, Any] = {"country": "DE", "visits": 3}


def crash(session: sl.Session) -> None:
    """Leave as a killed process does: no snapshot is written."""
    journal = session._live.journal
    assert isinstance(journal, Journal)
    journal.close()


def played(session: sl.Session, recorded: list[Any], **question: Any) -> list[Any]:
    """Decide and tell; return what was decided."""
    rng = np.random.default_rng(3)
    made = []
    for attributes in recorded:
        one = session.ask(attributes=attributes, **question)
        assert one.attributes == (attributes or {})
        session.tell(one, float(one.features[0] + 0.3 * rng.standard_normal()))
        made.append((one.arm, one.round, one.exploring, repr(one.probability), one.made))
    return made


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: type(policy).__name__)
@pytest.mark.parametrize("where", [{}, {"context": "new"}], ids=["bandit", "contexts"])
def test_decisions_are_the_same_with_and_without(
    policy: sl.extend.Policy, where: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = itertools.cycle(f"id {i}" for i in range(40))  # the same in both sessions
    monkeypatch.setattr(session_module, "new_ids", lambda count: [next(ids) for _ in range(count)])
    options: Any = sl.contexts({"new": ROWS, "old": ROWS}) if where else ROWS
    sessions = [sl.Session(options, policy, 0.3, seed=2, now=lambda: 7.0) for _ in range(2)]
    countries = ["DE", "FR", True, 1, 2.5]
    plain = played(sessions[0], [None] * 40, **where)
    recorded = played(sessions[1], [{"is": countries[i % 5]} for i in range(40)], **where)
    assert plain == recorded
    without, beside = (session._live.snapshot() for session in sessions)
    assert without.header | {"attributes": {"is": "str"}} == beside.header
    for name, array in without.arrays.items():
        assert array.tobytes() == beside.arrays[name].tobytes(), name


def test_open_decisions_keep_them(tmp_path: Path) -> None:
    """Through a crash, a snapshot, a saved file; a closed decision needs them no more."""
    several: list[dict[str, Any]] = [{"visits": 4.5}, {}, {"é": "two\nlines", "vip": True}]
    wanted = [GERMAN, GERMAN, *several, {}]
    session = sl.Session.open(tmp_path / "x.db", ROWS, seed=1)
    made = session.ask(2, attributes=GERMAN) + session.ask(3, attributes=several)
    made.append(session.ask())
    for _ in range(2):  # replayed, then read from the snapshot
        assert [one.attributes for one in made] == wanted
        assert [one.attributes for one in session.pending()] == wanted
        crash(session)
        session = sl.Session.open(tmp_path / "x.db")
        assert session._live.decisions.attributes == {
            "country": "str",
            "visits": "float",
            "é": "str",
            "vip": "bool",
        }
    session.save(tmp_path / "saved")
    assert [one.attributes for one in sl.Session.load(tmp_path / "saved").pending()] == wanted
    session.tell(made[0].id, 1.0)
    assert not session._live.decisions.closed[made[0].id].decision.attributes
    session.close()


def test_what_a_session_returns_can_be_changed() -> None:
    session, given = sl.Session(ROWS), dict(GERMAN)
    made = session.ask(attributes=given)
    bare = session.ask()
    for one in (
        given,
        made.attributes,
        bare.attributes,
        *(p.attributes for p in session.pending()),
    ):
        one["country"] = "FR"  # type: ignore[index]
    assert [one.attributes for one in session.pending()] == [GERMAN, {}]


def test_exports_have_a_column_for_each(tmp_path: Path) -> None:
    rows: list[dict[str, Any] | None] = [
        {"country": "DE", "vip": True, "visits": 3, "spent": 1, "mixed": 1},
        None,
        {"country": "", "vip": np.False_, "visits": np.int64(-(2**63) + 1), "spent": 0.5},
        {"mixed": "one"},
        {"mixed": False},
    ]
    path = tmp_path / "x.parquet"
    with sl.Session.open(tmp_path / "x.db", ROWS, sl.IDS(), 0.3, seed=1) as session:
        played(session, rows)
        session.export(path)
        session.export(tmp_path / "x.csv")
        written = [event.attributes for event in session.events() if event.kind == "asked"]
    assert written[1] is None
    assert written[3] == '{"mixed":"one"}'
    frame = pd.read_parquet(path, dtype_backend="pyarrow")
    found = {name: frame[f"attribute:{name}"].tolist() for name in rows[0] or {}}
    assert found == {
        "country": ["DE", pd.NA, "", pd.NA, pd.NA],
        "vip": [True, pd.NA, False, pd.NA, pd.NA],
        "visits": [3, pd.NA, -(2**63) + 1, pd.NA, pd.NA],
        "spent": [1.0, pd.NA, 0.5, pd.NA, pd.NA],
        "mixed": ["1", pd.NA, pd.NA, "one", "False"],
    }
    kinds = [str(frame[f"attribute:{name}"].dtype).removesuffix("[pyarrow]") for name in found]
    assert kinds == ["string", "bool", "int64", "double", "string"]
    assert "attribute:country" in (tmp_path / "x.csv").read_text().splitlines()[0]
    assert audit(path).well


def test_an_export_without_any_has_no_column(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, seed=1) as session:
        played(session, [None, None])
        session.export(tmp_path / "x.parquet")
    assert not [one for one in pd.read_parquet(tmp_path / "x.parquet") if "attribute" in one]


NOT_ATTRIBUTES: list[tuple[Any, str]] = [
    ("DE", "attributes must be a mapping such as {'country': 'DE'}, got 'DE'"),
    ([{"x": 1}], "attributes must be a mapping such as"),
    ({1: "x"}, "attribute must be printable text, got 1"),
    ({"": "x"}, "attribute must be printable text, got ''"),
    ({"a\nb": "x"}, "attribute must be printable text"),
    ({"x": None}, "attribute 'x' must be Unicode text, a bool, a finite number"),
    ({"x": [1]}, r"attribute 'x' must be .* got \[1\]"),
    ({"x": float("nan")}, "attribute 'x' must be .*finite.* got nan"),
    ({"x": np.inf}, "attribute 'x' must be .*finite.* got inf"),
    ({"x": 2**63}, r"attribute 'x' must be .* integer of 64 bits, got 9223372036854775808"),
    ({"x": "\ud800"}, "attribute 'x' must be Unicode text"),
    ({f"x{i}": i for i in range(21)}, "attributes must be at most 20, got 21"),
    ({"x": "é" * 500}, "attributes must take at most 1000 bytes as JSON, got 1008"),
]


@pytest.mark.parametrize(("given", "message"), NOT_ATTRIBUTES)
def test_others_are_refused_and_nothing_happens(given: Any, message: str, tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, seed=1) as session:
        for refused in (
            lambda: session.ask(attributes=given),
            lambda: session.ask(2, attributes=[{"y": 1}, given]),
        ):
            with pytest.raises(ValueError, match=message):
                refused()
        assert session.status().round == 1
        assert session.events() == []


def test_a_list_has_one_mapping_for_each_decision() -> None:
    session = sl.Session(ROWS)
    with pytest.raises(ValueError, match="attributes must be 3 mappings, one per decision, got 2"):
        session.ask(3, attributes=[{}, {}])
    with pytest.raises(ValueError, match="or a list of 3 mappings, got 5"):
        session.ask(3, attributes=5)  # type: ignore[call-overload]
    largest = {"x": "é" * 496}  # 1000 bytes
    assert session.ask(attributes=largest).attributes == largest


def test_a_session_has_a_hundred_names(tmp_path: Path) -> None:
    session = sl.Session(ROWS)
    session.ask(5, attributes=[{f"x{20 * i + j}": 1 for j in range(20)} for i in range(5)])
    session.ask(attributes={"x7": "again"})
    with pytest.raises(ValueError, match="must have at most 100 names, got another: 'y'"):
        session.ask(attributes={"y": 1})
    session.save(tmp_path / "x")
    loaded = sl.Session.load(tmp_path / "x")
    with pytest.raises(ValueError, match="at most 100 names"):
        loaded.ask(attributes={"y": 1})


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    session, path = sl.Session(ROWS), tmp_path / "x"
    session.ask(2, attributes=GERMAN)
    session.save(path)
    with path.open("rb") as file:
        saved = read_snapshot(file)
    lines = saved.arrays["open.attributes"]

    def refuses(header: dict[str, Any], array: Any) -> None:
        with path.open("wb") as file:
            changed = saved.arrays | {"open.attributes": array}
            write_snapshot(file, Snapshot(saved.header | header, changed))
        with pytest.raises(ValueError, match="is not a readable session"):
            sl.Session.load(path)

    for content in (b"", b"\n\n", b"[1]\n", b'{"x": NaN}\n', b"{\n}"):
        refuses({}, np.frombuffer(content, dtype=np.uint8))
    refuses({}, lines.astype(np.int64))
    refuses({"attributes": {"x": "list"}}, lines)
    refuses({"attributes": {f"x{i}": "int" for i in range(101)}}, lines)
