"""Progress: what is counted, and when nothing is shown."""

from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

import sightline as sl
from sightline.experiments import block as lab_block
from sightline.experiments.block import Block, compute, tasks
from sightline.report import progress
from sightline.report.progress import Tally, magnitude
from tests.experiments.helpers import small
from tests.experiments.test_run import Recorder


@pytest.fixture(autouse=True)
def blocks_of_one_replication(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_block, "_FEWEST_ROUNDS", 0)


def finished(seconds: float) -> Block:
    task = next(tasks(small(), False))
    return compute(task)._replace(seconds=seconds)


def test_time_left_is_counted_cell_by_cell() -> None:
    """One second per run of IDS, ten of LinUCB, two workers."""
    now = [0.0]
    tally = Tally(lambda: now[0])
    work = list(tasks(small(problems={"eoo": small().problems["eoo"]}), False))
    for task in work:
        tally.note(task, None)
    tally.begin()
    assert tally.seconds_left is None
    assert tally.replications == (0, 12)
    tally.note(work[0], finished(1.0))
    tally.note(work[6], finished(10.0))
    now[0] = 5.5
    assert tally.replications == (2, 12)
    assert tally.seconds_left == pytest.approx((5 * 1.0 + 5 * 10.0) / 2)
    assert tally.rounds == 400
    assert tally.rate == f"{400 / 5.5:.3g}"
    assert tally.cell == work[6].cell


def test_a_cell_that_has_not_begun_is_taken_for_an_average_one() -> None:
    now = [0.0]
    tally = Tally(lambda: now[0])
    work = list(tasks(small(problems={"eoo": small().problems["eoo"]}), False))
    for task in work:
        tally.note(task, None)
    tally.begin()
    tally.note(work[0], finished(2.0))
    now[0] = 2.0
    assert tally.seconds_left == pytest.approx(11 * 2.0)


@pytest.mark.parametrize(
    ("count", "per", "text"),
    [
        (0, 1.0, "0"),
        (2500, 1.0, "2.5e+03"),
        (10**7, 4.0, "2.5e+06"),
        (2 * 10**1003, 1.0, "2e+1003"),
    ],
)
def test_counts_of_any_size(count: int, per: float, text: str) -> None:
    assert magnitude(count, per) == text


def test_nothing_is_shown_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    sl.run(small(), executor=Recorder())
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_rounds_rate_and_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    monkeypatch.setattr(
        "rich.console.Console", lambda stderr: Console(file=screen, force_terminal=True, width=200)
    )
    monkeypatch.setattr(sys, "stderr", screen)
    sl.run(small(policies={"[IDS]": sl.IDS()}), executor=Recorder())
    assert "12/12 runs, 2.4e+03 rounds" in screen.getvalue()
    assert "0:00 left; sphere / [IDS]" in screen.getvalue()


def test_durations_are_short() -> None:
    assert [progress._duration(s) for s in (0.4, 61, 3723)] == ["0:00", "1:01", "1:02:03"]
