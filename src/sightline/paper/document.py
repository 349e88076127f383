"""The HTML report: a figure and the scoreboard of claims, then every item with its evidence."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import matplotlib
import numba
import numpy as np
import scipy

from sightline.paper.claim import CONFIDENCE, Part, Verdict, verdict_by_reading
from sightline.paper.claims import CLAIMS
from sightline.paper.item import Findings, Item, ItemResults
from sightline.paper.recorded import JudgedClaim, with_records
from sightline.paper.reproduce import write_findings
from sightline.report.page import Opening, Section, Table, Tile, write_page
from sightline.report.picture import Picture
from sightline.report.style import drawing
from sightline.simulation.simulate import rounds_text
from sightline.version import __version__

# Colour and sign of a verdict.
_MARKS = {
    Verdict.CONFIRMED: ("good", "\N{CHECK MARK}"),
    Verdict.NOT_CONFIRMED: ("bad", "\N{MULTIPLICATION X}"),
    Verdict.EQUAL: ("same", "\N{ALMOST EQUAL TO}"),
    Verdict.UNDECIDED: ("open", "?"),
}
FIRST = "far-horizon"  # the first figure of this item opens the page
_RELOAD = 15  # seconds after which a browser reloads an unfinished page
_LEAD = (
    "A bandit algorithm learns which option is best while using it, and every other choice costs "
    "regret. In the long run regret is at least c* log n, and information-directed sampling (IDS) "
    "reaches this bound. "
    "This page recomputes every figure and table of the paper that proves it, and tests its "
    "claims one by one.",
)
_PAPER = (
    "The paper: Kirschner, Lattimore, Vernade, Szepesvári, Asymptotically Optimal "
    "Information-Directed Sampling, COLT 2021."
)
_QUICK = (
    " The quick profile has fewer runs than the paper. If they cannot decide a claim, the page "
    "shows the verdict recorded from --profile paper, and marks it."
)
_UNFINISHED = "The others are being computed; this page reloads itself until they are finished."


class Finished(NamedTuple):
    """An item and everything that the page shows of it."""

    outcome: ItemResults
    findings: Findings
    pictures: Sequence[Picture]
    tiles: Sequence[Tile]


def finished(item: Item, outcome: ItemResults, out: Path) -> Finished:
    """Write the figures and curves of an item, and decide its claims."""
    with drawing():
        findings = item.show(outcome)
        pictures = write_findings(item, findings, out)
    tiles = [_tile(judged) for judged in with_records(CLAIMS, {item.name: outcome})]
    return Finished(outcome, findings, pictures, tiles)


def _tile(judged: JudgedClaim) -> Tile:
    """Tile of a claim; if the runs cannot decide, in the colour of the recorded verdict."""
    claim, record = judged.claim, judged.record
    decided = judged.verdict if record is None else record.verdict
    kind, mark = _MARKS[decided]
    evidence = _evidence(judged.parts)
    more = _by_reading(judged.parts if record is None else record.parts)
    if record is not None:
        kind += " recorded"
        more += f", recorded on {record.date}"
        evidence = (
            *_evidence(record.parts, f"Recorded from {record.settings}: "),
            *(f"Here: {line}" for line in evidence),
        )
    return Tile(claim.statement, str(decided), mark, kind, evidence, claim.where, more, claim.ours)


def _by_reading(parts: Sequence[Part]) -> str:
    """Text with the verdicts of both readings, if they differ."""
    found = verdict_by_reading(parts)
    if len(set(found.values())) < 2:
        return ""
    return " (" + ", ".join(f"by the {reading}: {said}" for reading, said in found.items()) + ")"


def _evidence(parts: Sequence[Part], source: str = "") -> tuple[str, ...]:
    lines = []
    for part in parts:
        reading = f"By the {part.reading}: " if part.reading else ""
        verdict = f" [{part.verdict}]" if len(parts) > 1 else ""
        lines.append(f"{source}{reading}{part.measured}{verdict}")
    return tuple(lines)


def write_report(
    path: Path, profile: str, items: Sequence[Item], done: Mapping[str, Finished]
) -> None:
    """Write the page of those items that are finished, in the order of all."""
    shown = [item for item in items if item.name in done]
    notice, reload = "", 0
    if len(shown) < len(items):
        notice = f"{len(shown)} of {len(items)} parts are finished. {_UNFINISHED}"
        reload = _RELOAD
    picture = done[FIRST].pictures[0] if FIRST in done else None
    opening = Opening(
        "Information-directed sampling: the paper, reproduced",
        _LEAD,
        picture,
        _PAPER + _QUICK if profile == "quick" else _PAPER,
        notice,
        reload,
    )
    sections = [_section(item, profile, done[item.name], picture) for item in shown]
    write_page(path, opening, [*sections, _environment(shown, profile, done)])


def _section(item: Item, profile: str, part: Finished, opening: Picture | None) -> Section:
    work = duration_text(part.outcome.seconds)
    return Section(
        item.name,
        item.title,
        item.see,
        tuple(picture for picture in part.pictures if picture is not opening),
        item.formula,
        tuple(part.tiles),
        (
            item.about,
            *part.findings.remarks,
            f"In the paper: {item.where}. {_size(part.outcome)} {work} of work.",
        ),
        part.findings.tables,
        f"sightline reproduce {item.name} --profile {profile}",
        item.short,
    )


def duration_text(seconds: float) -> str:
    """Write seconds as seconds, minutes or hours."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    minutes = seconds / 60.0
    return f"{minutes:.0f} min" if minutes < 100 else f"{minutes / 60.0:.1f} h"


def _size(outcome: ItemResults) -> str:
    size = outcome.size
    if size.horizon == 1:
        return "Computed, not sampled;"
    runs = "1 run" if size.replications == 1 else f"{size.replications} runs"
    seeds = {results.grid.seeds for results in outcome.results.values()}
    origin = "seeds spawned from seed 0" if seeds else f"seeds 0 to {size.replications - 1}"
    return f"{runs} to n = {rounds_text(size.horizon)}, {origin};"


def _environment(items: Sequence[Item], profile: str, done: Mapping[str, Finished]) -> Section:
    versions = {
        "sightline": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "matplotlib": matplotlib.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "written": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }
    seconds = {item.name: done[item.name].outcome.seconds for item in items}
    rows = tuple((name, duration_text(value)) for name, value in seconds.items())
    total = ("all", duration_text(sum(seconds.values())))
    return Section(
        "environment",
        "Tests, versions, durations, and how to run this again",
        text=(
            f"Claims are tested one-sided at {CONFIDENCE:.0%} confidence for each part, on "
            "differences run by run under common noise. "
            "Durations are seconds of work summed over workers, without compilation. Results do "
            "not depend on the number of workers, except for the runtimes of table 1.",
        ),
        tables=(
            Table("Versions", ("what", "version"), tuple(versions.items())),
            Table("Seconds of work", ("item", "work"), (*rows, total)),
        ),
        command=f"sightline reproduce {' '.join(item.name for item in items)} --profile {profile}",
    )
