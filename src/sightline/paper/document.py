"""The report: claims on top, then every item with its figures, settings and how to run it again."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib
import numba
import numpy as np
import scipy

from sightline.engine.checkpoints import rounds_text
from sightline.paper.claims import CLAIMS
from sightline.paper.duration import duration_text
from sightline.paper.item import Findings, Item, Outcome
from sightline.paper.judge import CONFIDENCE, Part, Verdict
from sightline.paper.recorded import with_records
from sightline.report.page import Section, Table, write_page
from sightline.version import __version__

__all__ = ["claims_table", "write_report"]

_MARKS = {
    Verdict.CONFIRMED: "good",
    Verdict.NOT_CONFIRMED: "bad",
    Verdict.EQUAL: "open",
    Verdict.UNDECIDED: "open",
}


def claims_table(outcomes: Mapping[str, Outcome]) -> Table:
    """Verdicts on all claims whose items were run."""
    rows = []
    for claim, verdict, parts, record in with_records(CLAIMS, outcomes):
        lines = _lines(parts)
        mark = f"{verdict}|{_MARKS[verdict]}"
        if record is not None and record.verdict is not Verdict.UNDECIDED:
            mark = f"recorded: {record.verdict}|{_MARKS[record.verdict]}"
            lines += [f"Recorded on {record.date} from the paper profile, {record.settings}:"]
            lines += _lines(record.parts)
        statement = f"Ours: {claim.statement}" if claim.ours else claim.statement
        rows.append((statement, mark, "\n".join(lines), f"{claim.where}; {claim.item}"))
    title = (
        f"{len(rows)} claims; one-sided tests at {CONFIDENCE:.0%} confidence for each part, "
        "differences taken run by run under common noise"
    )
    return Table(title, ("claim", "verdict", "measured", "where; item"), tuple(rows))


def _lines(parts: Sequence[Part]) -> list[str]:
    """One line for each part: its reading, what was measured, and what that says."""
    return [
        f"{part.reading}: {part.measured} [{part.verdict}]".removeprefix(": ") for part in parts
    ]


def write_report(
    path: Path,
    profile: str,
    items: Mapping[str, Item],
    outcomes: Mapping[str, Outcome],
    findings: Mapping[str, Findings],
    pictures: Mapping[str, Mapping[str, str]],
) -> Table:
    """Write the page and return the table of claims.

    Parameters
    ----------
    path : Path
        File to write.
    profile : str
        Which sizes were run.
    items, outcomes, findings : mapping
        By the names of the items.
    pictures : mapping
        Figures of the findings as SVG, by the names of items and figures.
    """
    claims = claims_table(outcomes)
    counts = {v: sum(row[1].startswith(f"{v}|") for row in claims.rows) for v in Verdict}
    recorded = sum(row[1].startswith("recorded: ") for row in claims.rows)
    listed = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    listed += f", {recorded} as recorded from the paper profile" if recorded else ""
    lead = [
        "Every figure and table of Asymptotically Optimal Information-Directed Sampling "
        "(Kirschner, Lattimore, Vernade, Szepesvári, COLT 2021) computed anew, and its empirical "
        f"statements tested. Profile: {profile}. Claims: {listed}.",
    ]
    if profile == "quick":
        lead.append(
            "The quick profile has fewer runs than the paper. Where they cannot decide a claim, "
            "the verdict recorded from --profile paper is shown, and marked as such."
        )
    sections = [
        Section("claims", "Claims", (), (claims,)),
        *(
            _section(item, profile, outcomes[name], findings[name], pictures[name])
            for name, item in items.items()
        ),
        _environment(items, profile, outcomes),
    ]
    write_page(path, "Information-directed sampling: the paper, reproduced", lead, sections)
    return claims


def _section(
    item: Item, profile: str, outcome: Outcome, findings: Findings, pictures: Mapping[str, str]
) -> Section:
    work = duration_text(outcome.seconds)
    return Section(
        item.name,
        item.title,
        (
            item.about,
            *findings.remarks,
            f"In the paper: {item.where}. {_size(outcome)} {work} of work.",
        ),
        findings.tables,
        tuple((caption, pictures[name]) for name, (caption, _) in findings.figures.items()),
        f"sightline reproduce {item.name} --profile {profile}",
    )


def _size(outcome: Outcome) -> str:
    size = outcome.size
    if size.horizon == 1:
        return "Computed, not sampled;"
    runs = "1 run" if size.replications == 1 else f"{size.replications} runs"
    seeds = {results.plan.seeds for results in outcome.results.values()}
    origin = "seeds spawned from seed 0" if seeds else f"seeds 0 to {size.replications - 1}"
    return f"{runs} to n = {rounds_text(size.horizon)}, {origin};"


def _environment(
    items: Mapping[str, Item], profile: str, outcomes: Mapping[str, Outcome]
) -> Section:
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
    rows = tuple((name, duration_text(outcomes[name].seconds)) for name in items)
    total = ("all", duration_text(sum(outcome.seconds for outcome in outcomes.values())))
    return Section(
        "environment",
        "Versions, durations, and how to run this again",
        (
            "Durations are seconds of work summed over workers, without compilation. Results are "
            "the same bits for any number of workers, but for the runtimes of table 1.",
        ),
        (
            Table("Versions", ("what", "version"), tuple(versions.items())),
            Table("Seconds of work", ("item", "work"), (*rows, total)),
        ),
        command=f"sightline reproduce {' '.join(items)} --profile {profile}",
    )
