"""Audits recompute exports of sessions with all kinds of options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import sightline as sl
from sightline.report.audit import audit
from sightline.report.decision_frame import METADATA
from tests.marks import without_compilation


@without_compilation
@pytest.mark.parametrize("kind", ["contexts", "stream", "duel", "game", "expiring"])
def test_exports_of_sessions_can_be_audited(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    features = {"a": [1.0, 0.0], "b": [0.0, 1.0], "c": [0.7, 0.7]}
    options: Any = {
        "contexts": sl.contexts({"m": features, "d": features}),
        "stream": sl.stream(2, 3),
        "duel": sl.duel(features),
        "game": sl.game(np.eye(2), np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2)),
        "expiring": features,
    }[kind]
    more: Any = {"reward_window": "5 rounds", "on_timeout": 0.1} if kind == "expiring" else {}
    with sl.Session.open(tmp_path / "x.db", options, sl.LinUCB(), 0.5, **more) as session:
        for i in range(30):
            where: Any = {"context": ("m", "d")[i % 2]} if kind == "contexts" else {}
            if kind == "stream":
                where = {"options": rng.standard_normal((3, 2))}
            made = session.ask(**where)
            told: Any = [0.5, 0.1] if kind == "game" else float(rng.uniform())
            if i % 4:
                session.tell(made, told)
        session.export(tmp_path / "export.parquet")
    found = audit(tmp_path / "export.parquet")
    assert found.well, found
    assert found.decisions == 30
    written = pq.read_schema(tmp_path / "export.parquet").metadata[METADATA]
    assert json.loads(written)["version"] == 1
