"""Recorded verdicts: shown where the runs at hand cannot decide, never instead of them."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sightline.paper import recorded
from sightline.paper.claim import Claim, Part, Verdict
from sightline.paper.claims import CLAIMS
from sightline.paper.item import ItemResults, Size
from sightline.paper.recorded import record_of, records, with_records

OUTCOMES = {"item": ItemResults(Size(1000, 7), {}, {}, 0.0)}


def claim(name: str, verdict: Verdict) -> Claim:
    part = Part(f"measured {name}", verdict, "text")
    return Claim(name, "page 1", "item", {"text": [lambda outcome: part]})


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Verdicts as if they had been recorded."""
    content = records([claim("A", Verdict.CONFIRMED), claim("B", Verdict.EQUAL)], OUTCOMES)
    monkeypatch.setattr(recorded, "_content", lambda: content)
    return content


def test_a_record_is_read_as_it_was_written(known: dict[str, Any]) -> None:
    record = record_of(claim("A", Verdict.UNDECIDED))
    assert record is not None
    assert record.verdict is Verdict.CONFIRMED
    assert record.parts == (Part("measured A", Verdict.CONFIRMED, "text"),)
    assert record.settings == "7 runs to n = 10^3"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", record.date)
    assert record_of(claim("a new wording", Verdict.UNDECIDED)) is None


def test_a_record_stands_beside_what_is_undecided_only(known: dict[str, Any]) -> None:
    claims = [
        claim("A", Verdict.NOT_CONFIRMED),
        claim("B", Verdict.UNDECIDED),
        claim("C", Verdict.UNDECIDED),
        Claim("D", "page 1", "not run", claim("D", Verdict.CONFIRMED).tests),
    ]
    first, second, third = with_records(claims, OUTCOMES)
    assert first.verdict is Verdict.NOT_CONFIRMED
    assert first.record is None
    assert second.verdict is Verdict.UNDECIDED
    assert second.record is not None
    assert second.record.verdict is Verdict.EQUAL
    assert third.record is None


def test_what_is_shipped_belongs_to_claims() -> None:
    content = recorded._content()
    assert content
    by_wording = {claim.statement: claim for claim in CLAIMS}
    for wording, entry in content.items():
        assert entry["item"] == by_wording[wording].item
        record = record_of(by_wording[wording])
        assert record is not None
        assert len(record.parts) >= sum(map(len, by_wording[wording].tests.values()))
