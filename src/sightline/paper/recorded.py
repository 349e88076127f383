"""Verdicts recorded from the paper profile, for claims that a quick run cannot decide.

    python -m sightline.paper.recorded DIRECTORY [ITEM ...]

runs the missing parts of the paper profile in that directory, of all items or of some, decides the
claims, and writes the verdicts into ``recorded.json`` beside this file, with dates and sizes.
``with_records`` puts them beside the verdicts of a run.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from sightline.files import write_text_atomically
from sightline.paper.claim import Claim, Part, Verdict, decide
from sightline.paper.item import ItemResults
from sightline.simulation.simulate import rounds_text
from sightline.version import __version__

_FILE = "recorded.json"


class RecordedVerdict(NamedTuple):
    """A recorded verdict of the paper profile."""

    verdict: Verdict
    parts: tuple[Part, ...]
    settings: str  # runs and rounds
    date: str  # YYYY-MM-DD


class JudgedClaim(NamedTuple):
    """A claim, its verdict, and the recorded verdict if the runs cannot decide."""

    claim: Claim
    verdict: Verdict
    parts: tuple[Part, ...]
    record: RecordedVerdict | None


@functools.cache
def _content() -> dict[str, Any]:
    path = importlib.resources.files("sightline.paper") / _FILE
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def record_of(claim: Claim) -> RecordedVerdict | None:
    """Find the recorded verdict on a claim; None if its wording is newer than the record."""
    found = _content().get(claim.statement)
    if found is None:
        return None
    parts = tuple(
        Part(part["measured"], Verdict(part["verdict"]), part["reading"]) for part in found["parts"]
    )
    return RecordedVerdict(Verdict(found["verdict"]), parts, found["settings"], found["date"])


def with_records(claims: Iterable[Claim], outcomes: Mapping[str, ItemResults]) -> list[JudgedClaim]:
    """Decide the claims of all items that were run, and add a record that alone decides."""
    found = []
    for claim in claims:
        if claim.item in outcomes:
            verdict, parts = decide(claim, outcomes[claim.item])
            record = record_of(claim) if verdict is Verdict.UNDECIDED else None
            decides = record is not None and record.verdict is not Verdict.UNDECIDED
            found.append(JudgedClaim(claim, verdict, parts, record if decides else None))
    return found


def records(claims: Iterable[Claim], outcomes: Mapping[str, ItemResults]) -> dict[str, Any]:
    """Verdicts on the claims of all items that were run, by wording, as plain data."""
    return {
        judged.claim.statement: {
            "verdict": str(judged.verdict),
            "item": judged.claim.item,
            "settings": _settings(outcomes[judged.claim.item]),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "version": __version__,
            "parts": [part._asdict() for part in judged.parts],
        }
        for judged in with_records(claims, outcomes)
    }


def _settings(outcome: ItemResults) -> str:
    """Describe the runs and rounds of an item."""
    size = outcome.size
    if size.horizon == 1:
        return "computed, not sampled"
    counts = {len(results.grid.seeds) for results in outcome.results.values()}
    few, many = min(counts, default=size.replications), max(counts, default=size.replications)
    runs = f"{few:,}" if few == many else f"{few:,} to {many:,}"
    return f"{runs} runs to n = {rounds_text(size.horizon)}"


def _main(directory: Path, names: list[str]) -> None:
    """Run the missing parts of items in the paper profile, and record the verdicts."""
    from sightline.paper.catalogue import ITEMS
    from sightline.paper.claims import CLAIMS
    from sightline.paper.preparation import compile_kernels
    from sightline.paper.reproduce import ResultsFolder, run_item, selected

    (directory / "results").mkdir(parents=True, exist_ok=True)
    folder, items = ResultsFolder(directory / "results"), selected(names, ITEMS)
    compile_kernels([item for item in items if not folder.holds(item, "paper")], "paper")
    path = Path(__file__).with_name(_FILE)
    for item in items:
        began = time.perf_counter()
        found = records(CLAIMS, {item.name: run_item(item, "paper", folder)})
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        merged = known | found
        kept = {c.statement: merged[c.statement] for c in CLAIMS if c.statement in merged}
        write_text_atomically(path, json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
        print(f"{item.name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2:] or ["all"])
