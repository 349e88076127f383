"""A committed session plays one option, or one in every context, until options change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import sightline as sl
from tests.marks import without_compilation
from tests.stress.actor import bits

pytestmark = without_compilation

ROWS = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0]])
PAGES = {"a": {"x": [1.0, 0.0], "y": [0.0, 1.0]}, "b": {"x": [1.0, 0.5], "y": [0.2, 1.0]}}


def commit(session: sl.Session, *arms: int) -> None:
    session._live.change(0.0, "committed", {"arms": list(arms)})


def test_it_survives_and_the_policy_learns_nothing_more(tmp_path: Path) -> None:
    with sl.Session.open(tmp_path / "x.db", ROWS, sl.IDS(), 0.3, min_probability=0.1) as session:
        session.tell(session.ask(), 0.5)
        commit(session, 2)
        learned = session.status().explorations
        for decision in [session.ask(), *session.ask(3)]:
            assert (decision.arm, decision.probability, decision.exploring) == (2, 1.0, False)
            session.tell(decision, 0.1)
        assert session.status().explorations == learned
        assert session.status().next_exploration is None
        assert session._live.counters.told[2] >= 4
        assert session.ask(available=[0, 1]).arm != 2
        assert session.ask(available=[0, 2]).arm == 2
        live = bits(session._live)
        session.save(tmp_path / "saved.npz")
    with sl.Session.open(tmp_path / "x.db") as session:
        assert bits(session._live) == live
        assert session.ask().arm == 2
    assert sl.Session.load(tmp_path / "saved.npz").ask().arm == 2


def test_every_context_has_its_own() -> None:
    session = sl.Session(sl.contexts(PAGES), sl.LinUCB(), 0.3)
    commit(session, 1, 2)
    assert [session.ask(context=name).arm for name in ("a", "b")] == [1, 2]
    with pytest.raises(ValueError, match="2 arms are committed to at once, got 1"):
        commit(session, 1)
    with pytest.raises(ValueError, match="arm 2 cannot be committed to"):
        commit(session, 2, 3)


def test_options_that_come_and_go_end_it() -> None:
    session = sl.Session({"a": [1.0, 0.0], "b": [0.0, 1.0]}, sl.LinUCB(), 0.3)
    commit(session, 1)
    session.add("c", [1.0, 1.0])
    assert session._live.table.committed == ()
    commit(session, 1)
    session.retire("b")
    assert session.ask().option != "b"
    with pytest.raises(ValueError, match="arm 1 cannot be committed to: it is not on offer"):
        commit(session, 1)
    with pytest.raises(ValueError, match="needs options that last"):
        commit(sl.Session(sl.stream(2, max_arms=3), sl.LinUCB(), 0.3), 0)
