"""Verdicts recorded from the paper profile, for claims that a quick run cannot decide.

    python -m sightline.paper.recorded DIRECTORY [ITEM ...]

runs what is missing of the paper profile in that directory, of all items or of some, decides the
claims on them, and writes the verdicts into ``recorded.json`` beside this file, each with its date
and sizes.  ``with_records`` puts them beside the verdicts of a run.
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

from sightline.files import write_atomically
from sightline.paper.item import Outcome
from sightline.paper.judge import Claim, decide
from sightline.paper.verdict import Part, Verdict
from sightline.simulation.simulate import rounds_text
from sightline.version import __version__

__all__ = ["Judged", "Record", "record_of", "records", "with_records"]

_FILE = "recorded.json"


class Record(NamedTuple):
    """A verdict of the paper profile, as it was recorded.

    Attributes
    ----------
    verdict : Verdict
        What the runs said.
    parts : tuple of Part
        What was measured.
    settings : str
        Runs and rounds.
    date : str
        When, as YYYY-MM-DD.
    """

    verdict: Verdict
    parts: tuple[Part, ...]
    settings: str
    date: str


class Judged(NamedTuple):
    """A claim, what the runs at hand say, and what was recorded if they cannot decide."""

    claim: Claim
    verdict: Verdict
    parts: tuple[Part, ...]
    record: Record | None


@functools.cache
def _content() -> dict[str, Any]:
    path = importlib.resources.files("sightline.paper") / _FILE
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def record_of(claim: Claim) -> Record | None:
    """Find the recorded verdict on a claim; None if its wording is newer than the record."""
    found = _content().get(claim.statement)
    if found is None:
        return None
    parts = tuple(
        Part(part["measured"], Verdict(part["verdict"]), part["reading"]) for part in found["parts"]
    )
    return Record(Verdict(found["verdict"]), parts, found["settings"], found["date"])


def with_records(claims: Iterable[Claim], outcomes: Mapping[str, Outcome]) -> list[Judged]:
    """Decide all claims whose items were run, and add the record where it alone decides."""
    found = []
    for claim in claims:
        if claim.item not in outcomes:
            continue
        verdict, parts = decide(claim, outcomes)
        record = record_of(claim) if verdict is Verdict.UNDECIDED else None
        if record is not None and record.verdict is Verdict.UNDECIDED:
            record = None
        found.append(Judged(claim, verdict, parts, record))
    return found


def records(claims: Iterable[Claim], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Verdicts on the claims whose items were run, by wording, as plain data."""
    found: dict[str, Any] = {}
    for claim in claims:
        if claim.item not in outcomes:
            continue
        verdict, parts = decide(claim, outcomes)
        found[claim.statement] = {
            "verdict": str(verdict),
            "item": claim.item,
            "settings": _settings(outcomes[claim.item]),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "version": __version__,
            "parts": [
                {"measured": part.measured, "verdict": str(part.verdict), "reading": part.reading}
                for part in parts
            ],
        }
    return found


def _settings(outcome: Outcome) -> str:
    """Say how many runs and rounds an item had."""
    size = outcome.size
    counts = [len(results.plan.seeds) for results in outcome.results.values()]
    counts = sorted({*counts, *([] if counts else [size.replications])})
    if size.horizon == 1:
        return "computed, not sampled"
    runs = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{runs} runs to n = {rounds_text(size.horizon)}"


def _write(path: Path, text: str) -> None:
    write_atomically(path, lambda file: file.write(text.encode()))


def _main(directory: Path, names: list[str]) -> None:
    """Run what is missing of items in the paper profile, and record the verdicts."""
    from sightline.paper.catalogue import ITEMS
    from sightline.paper.claims import CLAIMS
    from sightline.paper.compilation import compile_kernels
    from sightline.paper.reproduce import ResultsFolder, run_item, selected

    (directory / "results").mkdir(parents=True, exist_ok=True)
    folder, items = ResultsFolder(directory / "results"), selected(names, ITEMS)
    compile_kernels([item for item in items if not folder.holds(item, "paper")], "paper")
    path = Path(__file__).with_name(_FILE)
    for item in items:
        began = time.perf_counter()
        found = records(CLAIMS, {item.name: run_item(item, "paper", folder)})
        known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        order = {claim.statement: None for claim in CLAIMS}  # what is no claim any more is dropped
        merged = {name: (known | found)[name] for name in order if name in known | found}
        _write(path, json.dumps(merged, indent=1, ensure_ascii=False) + "\n")
        print(f"{item.name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2:] or ["all"])
