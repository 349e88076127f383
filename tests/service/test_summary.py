"""Summaries, forecasts and drawings of the pages."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from sightline.report.charts import ticks
from sightline.service.pages.figures import lines, traffic_figure
from sightline.service.pages.summary import duration_text, forecast, summary

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def points(evidence: list[float], threshold: float = 10.0) -> list[dict[str, Any]]:
    """Points of the history after every 10 decisions, an hour apart."""
    return [
        {
            "round": 10 * (i + 1),
            "at": (BEGIN + timedelta(hours=i)).isoformat(),
            "evidence": value,
            "threshold": threshold,
        }
        for i, value in enumerate(evidence)
    ]


def status(**changed: Any) -> dict[str, Any]:
    test = {"best": "<b>", "settled": False}
    first = {"best": "a", "bests": {}, "told": 5, "test": test, "phase": "running"}
    return {**first, **changed}


def test_a_steady_rise_is_continued() -> None:
    seen = forecast(points([0.25 * i for i in range(20)]))  # 4.75 at last: 21 hours are missing
    assert seen is not None
    assert seen.decisions == 210
    assert seen.seconds == pytest.approx(21 * 3600)


@pytest.mark.parametrize(
    "evidence",
    [
        [1.0, 2.0, 3.0],  # too few
        [2.0] * 20,  # no rise
        [5.0 - 0.1 * i for i in range(20)],
        [0.001 * i for i in range(20)],  # far beyond what has been seen
        [0.2 * i for i in range(15)] + [2.9] * 5,  # it has come to rest
    ],
)
def test_nothing_is_foreseen_where_the_data_do_not_say(evidence: list[float]) -> None:
    assert forecast(points(evidence)) is None
    words = summary(status(), points(evidence))
    assert words.startswith("Not settled: evidence ")
    assert words.endswith("; <bdi>&lt;b&gt;</bdi> is ahead.")


def test_what_stands_in_one_sentence() -> None:
    rising = points([0.25 * i for i in range(20)])
    assert summary(status(), rising) == (
        "<bdi>&lt;b&gt;</bdi> is ahead; about 21 hours more at this traffic until settled: "
        "evidence 4.8 of 10.0."
    )
    assert "more at this traffic" not in summary(status(phase="paused"), rising)
    assert "no reward has arrived" in summary(status(told=0), rising)
    settled = {"best": "<b>", "settled": True}
    words = summary(status(test=settled), points([12.0]))
    assert "is best. That is settled: evidence 12.0 of 10.0." in words
    words = summary(status(bests={"a": "b"}, test={"best": None, "settled": True}), rising)
    assert words == "Settled in every context."


def test_spans_as_people_say_them() -> None:
    spans = {10.0: "a minute", 150.0: "2 minutes", 3600.0: "60 minutes", 3e5: "3 days"}
    assert {span: duration_text(span) for span in spans} == spans


def test_axes_have_round_numbers() -> None:
    assert ticks(0.0, 7.35) == [0.0, 2.0, 4.0, 6.0]
    assert ticks(0.0, 1.0) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert ticks(0.0, 0.0) == [0.0]
    assert "nan" not in lines("x", [0.0, 0.0], {"gain": [None, 0.0]})


def test_traffic_adds_up_and_few_options_have_colours() -> None:
    names = [f"<{i}>" for i in range(9)]
    shares = [[1 / 9] * 9, None, [1.0, *[0.0] * 8]]
    history = [
        {"round": round_, "traffic": share}
        for round_, share in zip((9, 9, 20), shares, strict=True)
    ]
    drawn = traffic_figure({"options": names, "points": history})
    assert drawn is not None
    assert drawn.legend == [*((i, names[i]) for i in range(6)), (6, "3 others")]
    assert "<0>" not in drawn.figure
    assert traffic_figure({"options": names, "points": [{"round": 0, "traffic": None}]}) is None
