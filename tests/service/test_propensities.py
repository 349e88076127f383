"""Logged probabilities are those of the draws, and an audit detects any that is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from sightline.cli import app
from sightline.report.audit import audit
from tests.service.forked import SPECIFICATION
from tests.service.running import running

PAGE = "/v1/experiments/page"
ROUNDS = 1000


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment with a min_probability: every option can be evaluated on its log."""
    folder = tmp_path_factory.mktemp("propensities")
    rng = np.random.default_rng(0)
    means = {"a": 0.5, "b": 0.55, "c": 0.3}
    with running(f"sqlite:///{folder}/x.db") as service:
        service("PUT", PAGE, {**SPECIFICATION, "min_probability": 0.1})
        for _ in range(ROUNDS // 10):
            made = service("POST", f"{PAGE}/decisions", {"count": 10}).body["decisions"]
            for one in made[:2]:  # other rewards never come
                reward = means[one["option"]] + 0.3 * rng.standard_normal()
                service("PUT", f"/v1/decisions/{one['id']}/reward", {"reward": reward})
        content = service("GET", f"{PAGE}/export.parquet").body
    path = folder / "export.parquet"
    path.write_bytes(content)
    return path


def test_every_probability_is_recomputed(export: Path) -> None:
    found = audit(export)
    assert found.well, found
    assert (found.decisions, found.unknown) == (ROUNDS, 0)
    result = CliRunner().invoke(app, ["audit", str(export)])
    assert result.exit_code == 0
    assert f"{ROUNDS} of {ROUNDS} probabilities recomputed" in result.output


def excess(frame: Any, option: str, probability: Any) -> float:
    """Sum of inverse probabilities of an option less the decisions, in standard deviations.

    Given the past, 1{arm = a} / p - 1 has mean 0 and variance 1 / p - 1, which is the mean of
    1{arm = a} (1 / p) (1 / p - 1).
    """
    inverse = 1.0 / probability[frame.option == option]
    return float((inverse.sum() - len(frame)) / np.sqrt((inverse * (inverse - 1.0)).sum()))


def test_frequencies_are_the_probabilities(export: Path) -> None:
    """Within five standard deviations, but for one case in a million; others would not be."""
    frame = pd.read_parquet(export)
    assert frame.probability.between(0.1, 1.0).all()
    for option in ("a", "b", "c"):
        assert (frame.option == option).sum() > 50
        assert abs(excess(frame, option, frame.probability)) < 5.0
    assert max(abs(excess(frame, one, np.sqrt(frame.probability))) for one in "abc") > 5.0


def changed(export: Path, path: Path, change: Any) -> Path:
    table = pq.read_table(export)
    frame = change(table.to_pandas(types_mapper=pd.ArrowDtype))
    again = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(again.replace_schema_metadata(table.schema.metadata), path)
    return path


def test_an_audit_notices_what_was_changed(export: Path, tmp_path: Path) -> None:
    def other_probability(frame: Any) -> Any:
        frame.loc[700, "probability"] = np.nextafter(frame.loc[700, "probability"], 0.0)
        return frame

    found = audit(changed(export, tmp_path / "p.parquet", other_probability))
    assert (found.recomputed, len(found.differences)) == (ROUNDS - 1, 1)

    def other_reward(frame: Any) -> Any:
        first = frame.index[frame.outcome == "observed"][0]
        frame.loc[first, "reward"] = 0.9
        return frame

    assert not audit(changed(export, tmp_path / "r.parquet", other_reward)).well

    def other_arm(frame: Any) -> Any:
        frame.loc[3, "arm"] = (frame.loc[3, "arm"] + 1) % 3
        return frame

    path = changed(export, tmp_path / "a.parquet", other_arm)
    result = CliRunner().invoke(app, ["audit", str(path)])
    assert result.exit_code == 1
    assert "and replaying gives arm" in result.output
    assert audit(changed(export, tmp_path / "same.parquet", lambda frame: frame)).well


def test_an_audit_notices_other_probabilities(export: Path, tmp_path: Path) -> None:
    """Those of options that were not chosen as well."""

    def other_law(frame: Any) -> Any:
        distributions = [list(row) for row in frame.probabilities]
        distributions[700][0], distributions[700][2] = (
            distributions[700][0] - 0.01,
            distributions[700][2] + 0.01,
        )
        frame["probabilities"] = pd.Series(distributions, dtype=object)
        return frame

    found = audit(changed(export, tmp_path / "l.parquet", other_law))
    assert (found.recomputed, len(found.differences)) == (ROUNDS - 1, 1)
    assert "and was drawn from {0: " in found.differences[0]


def test_every_option_has_its_probability(export: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(export)
    assert all(list(support) == [0, 1, 2] for support in frame.support)
    distributions = np.array(frame.probabilities.tolist())
    assert np.array_equal(distributions[np.arange(ROUNDS), frame.arm], frame.probability)
    assert distributions.sum(axis=1) == pytest.approx(np.ones(ROUNDS))
    with running(f"sqlite:///{tmp_path}/x.db") as service:
        service("PUT", PAGE, SPECIFICATION)
        for _ in range(8):
            made = service("POST", f"{PAGE}/decisions", {}).body
            assert made["probabilities"][made["option"]] == made["probability"]
            assert 1 <= len(made["probabilities"]) <= 2  # IDS mixes two at most
            assert sum(made["probabilities"].values()) == pytest.approx(1.0)
            service("PUT", f"/v1/decisions/{made['id']}/reward", {"reward": 0.5})
        batch = service("POST", f"{PAGE}/decisions", {"count": 2}, "key").body
        assert service("POST", f"{PAGE}/decisions", {"count": 2}, "key").body == batch
        pending = service("GET", f"{PAGE}/pending").body
        assert pending["decisions"] == batch["decisions"]


def test_files_that_are_no_export(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="has no log"):
        audit(path)
    pq.write_table(pa.table({"x": [1]}), path)
    with pytest.raises(ValueError, match="has no log"):
        audit(path)
    assert CliRunner().invoke(app, ["audit", str(tmp_path / "none.parquet")]).exit_code == 1
