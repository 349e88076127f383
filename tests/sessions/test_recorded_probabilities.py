"""A session with a journal records the probabilities of all options in every decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sightline as sl
from sightline.report.audit import audit
from sightline.sessions.decisions import Decisions
from sightline.sessions.journal import Journal, support_in
from tests.marks import without_compilation
from tests.own_policies import EpsilonGreedy

ROWS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-0.6, 0.8]])
POLICIES: list[sl.extend.Policy] = [
    sl.Stakes(),
    sl.IDS(),
    sl.BayesianIDS(samples=100),
    sl.EpsilonGreedy(),
    sl.LinMED(),
    sl.LinUCB(),
]
of_every_policy = pytest.mark.parametrize("policy", POLICIES, ids=lambda one: type(one).__name__)


def played(session: sl.Session, rounds: int, **question: Any) -> list[Any]:
    rng = np.random.default_rng(3)
    decided = []
    for _ in range(rounds):
        made = session.ask(**question)
        decided.append((made.arm, made.exploring, made.round, repr(made.probability)))
        session.tell(made, float(0.3 * made.features[0] + 0.3 * rng.standard_normal()))
    return decided


def crash(session: sl.Session) -> None:
    journal = session._live.journal
    assert isinstance(journal, Journal)
    journal.close()


@without_compilation
@of_every_policy
@pytest.mark.parametrize("min_probability", [0.0, 0.05])
def test_exports_have_them_also_after_a_crash(
    policy: sl.extend.Policy, min_probability: float, tmp_path: Path
) -> None:
    """They are those with which the arms were drawn, and recording them changes no decision."""
    settings: Any = (ROWS, policy, 0.3, 2)
    path, floor = tmp_path / "x.db", dict[str, Any](min_probability=min_probability)
    decided = played(sl.Session(*settings, **floor), 40)
    session = sl.Session.open(path, *settings, **floor)
    assert played(session, 40) == decided
    crash(session)
    with sl.Session.open(path) as session:
        session.ask(3)
        session.export(tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert len(frame) == 43
    for row in frame.itertuples():
        arms, probabilities = row.support.tolist(), row.probabilities.tolist()
        assert probabilities[arms.index(row.arm)] == row.probability
        assert sum(probabilities) == pytest.approx(1.0, abs=1e-12)
        assert min(probabilities) >= max(min_probability, 1e-300)
        assert min_probability == 0.0 or arms == [0, 1, 2, 3]
    if policy.randomises:
        assert (frame.support.map(len) > 1).any()
    assert audit(tmp_path / "x.parquet").well


@without_compilation
def test_an_audit_notices_a_false_one(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, sl.EpsilonGreedy(), 0.3, seed=2) as session:
        played(session, 5)
        session.export(tmp_path / "x.parquet")
    table = pq.read_table(tmp_path / "x.parquet")
    lists = table.column("probabilities").to_pylist()
    lists[3][0] += 1e-15
    changed = table.set_column(
        table.column_names.index("probabilities"),
        "probabilities",
        pa.array(lists, table.schema.field("probabilities").type),
    )
    pq.write_table(changed, tmp_path / "false.parquet")
    found = audit(tmp_path / "false.parquet")
    assert (found.recomputed, len(found.differences)) == (4, 1)


@without_compilation
def test_a_certain_choice_takes_no_space(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, sl.LinUCB(), 0.3, seed=2) as session:
        played(session, 5)
        events = [event for event in session.events() if event.kind == "asked"]
    assert [event.support for event in events] == [None] * 5
    assert [support_in(event) for event in events] == [((event.arm,), (1.0,)) for event in events]


@without_compilation
@pytest.mark.parametrize("policy", [EpsilonGreedy(0.3), sl.ThompsonSampling()], ids=str)
def test_what_is_not_known_is_null(policy: sl.extend.Policy, tmp_path: Path) -> None:
    """A policy of one's own that does not say, and one that would draw thousands of times."""
    with sl.Session.open(tmp_path / "x.db", ROWS, policy, 0.3, seed=2) as session:
        played(session, 10)
        session.export(tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    unknown = frame.probability.to_numpy() != 1.0
    assert unknown.any()
    assert frame.support.isna().tolist() == unknown.tolist()
    assert frame.probabilities.isna().tolist() == unknown.tolist()


@pytest.mark.slow
def test_thompson_sampling_draws_them(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, sl.ThompsonSampling(), 0.3, seed=2) as session:
        played(session, 20)
        session.export(tmp_path / "x.parquet")
    frame = pd.read_parquet(tmp_path / "x.parquet")
    assert all(list(arms) == [0, 1, 2, 3] for arms in frame.support)
    assert audit(tmp_path / "x.parquet").well


@without_compilation
def test_an_interrupted_decision_records_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Recovery does not run the kernel again, and must not take those of another decision."""
    session = sl.Session.open(tmp_path / "x.db", ROWS, sl.EpsilonGreedy(4.0, "1/t"), 0.3, seed=2)
    played(session, 10)
    enter = Decisions.enter

    def interrupted(*arguments: Any) -> None:
        monkeypatch.setattr(Decisions, "enter", enter)
        raise KeyboardInterrupt

    monkeypatch.setattr(Decisions, "enter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.ask(attributes={"country": "DE"})
    (made,) = session.pending()
    assert made.attributes == {"country": "DE"}
    session.export(tmp_path / "x.parquet")
    session.close()
    last = pd.read_parquet(tmp_path / "x.parquet").iloc[-1]
    assert last["attribute:country"] == "DE"
    assert min(last.probabilities) == pytest.approx(4.0 / 11 / 4)
    assert audit(tmp_path / "x.parquet").well
