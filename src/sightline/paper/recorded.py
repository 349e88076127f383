"""Verdicts recorded from the paper profile, for claims that a quick run cannot decide.

    python -m sightline.paper.recorded DIRECTORY

runs what is missing of the paper profile in that directory, decides all claims, and writes
``recorded.json`` beside this file, with date, versions and sizes.  ``with_records`` puts it beside
the verdicts of a run.
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

from sightline.engine.checkpoints import rounds_text
from sightline.files import write_atomically
from sightline.paper.item import Outcome
from sightline.paper.judge import Claim, decide
from sightline.paper.verdict import Part, Verdict
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
    content = _content()
    found = content["claims"].get(claim.statement)
    if found is None:
        return None
    parts = tuple(
        Part(part["measured"], Verdict(part["verdict"]), part["reading"]) for part in found["parts"]
    )
    return Record(Verdict(found["verdict"]), parts, found["settings"], content["date"])


def with_records(claims: Iterable[Claim], outcomes: Mapping[str, Outcome]) -> list[Judged]:
    """Decide all claims whose items were run, and add the record where the runs cannot decide."""
    found = []
    for claim in claims:
        if claim.item not in outcomes:
            continue
        verdict, parts = decide(claim, outcomes)
        record = record_of(claim) if verdict is Verdict.UNDECIDED else None
        found.append(Judged(claim, verdict, parts, record))
    return found


def records(claims: Iterable[Claim], outcomes: Mapping[str, Outcome]) -> dict[str, Any]:
    """Verdicts on all claims as plain data."""
    found: dict[str, Any] = {}
    for claim in claims:
        verdict, parts = decide(claim, outcomes)
        found[claim.statement] = {
            "verdict": str(verdict),
            "settings": _settings(outcomes[claim.item]),
            "parts": [
                {"measured": part.measured, "verdict": str(part.verdict), "reading": part.reading}
                for part in parts
            ],
        }
    date = time.strftime("%Y-%m-%d", time.gmtime())
    return {"profile": "paper", "version": __version__, "date": date, "claims": found}


def _settings(outcome: Outcome) -> str:
    """Say how many runs and rounds an item had."""
    size = outcome.size
    counts = [len(results.plan.seeds) for results in outcome.results.values()]
    counts = sorted({*counts, *([] if counts else [size.replications])})
    if size.horizon == 1:
        return "computed, not sampled"
    runs = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    return f"{runs} runs to n = {rounds_text(size.horizon)}"


def _main(directory: Path) -> None:
    """Run what is missing of the paper profile, and record its verdicts."""
    from sightline.paper.catalogue import ITEMS
    from sightline.paper.claims import CLAIMS
    from sightline.paper.compilation import compile_kernels
    from sightline.paper.reproduce import ResultsFolder, run_item

    (directory / "results").mkdir(parents=True, exist_ok=True)
    folder = ResultsFolder(directory / "results")
    compile_kernels([i for i in ITEMS.values() if not folder.holds(i, "paper")], "paper")
    outcomes = {}
    for name, item in ITEMS.items():
        began = time.perf_counter()
        outcomes[name] = run_item(item, "paper", folder)
        print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
    content = json.dumps(records(CLAIMS, outcomes), indent=1, ensure_ascii=False) + "\n"
    path = Path(__file__).with_name(_FILE)
    write_atomically(path, lambda file: file.write(content.encode()))
    print(path)


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
