"""Measure policies on the standard problems: python -m benchmarks.scoreboard [STORE [LABEL ...]].

Writes ``src/sightline/report/scoreboard.json``, which ``sightline scoreboard`` shows and compares
with.  100 replications to 10^6 rounds for policies that are good there, fewer or shorter runs for
others.  An interrupted run resumes from the store, and stored policies are not run again.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import sightline as sl
from sightline.files import write_atomically
from sightline.problems.instances import standard_suite
from sightline.report import scoreboard
from sightline.report.scoreboard import measured


class Entry(NamedTuple):
    """A policy, and how much of it is run."""

    policy: sl.extend.Policy
    horizon: int = 10**6
    replications: int = 100


LONG, MIDDLE = 10**6, 10**5
# Without PhasedElimination and E4: they begin with a batch of the first arm, which is the best one
# of most problems here, so that their regret at n = 100 is zero for no merit of theirs.
ENTRIES: dict[str, Entry] = {
    "Stakes": Entry(sl.Stakes()),
    "Stakes, deterministic": Entry(sl.Stakes(randomised=False), MIDDLE),
    "Stakes, noise estimated": Entry(sl.Stakes(noise="estimated"), MIDDLE),
    "ThompsonSampling": Entry(sl.ThompsonSampling()),
    "BayesianIDS": Entry(sl.BayesianIDS(), MIDDLE, 40),
    "IDS": Entry(sl.IDS(), MIDDLE),
    "IDS, matched": Entry(sl.IDS(regulariser="matched"), MIDDLE),
    "IDS, LogLog": Entry(sl.IDS(confidence=sl.LogLog()), MIDDLE),
    "IDS, half-space UCB": Entry(sl.IDS(information="halfspace-ucb"), MIDDLE),
    "LinUCB, matched": Entry(sl.LinUCB(regulariser="matched"), MIDDLE),
    "LinIMED": Entry(sl.LinIMED(), MIDDLE),
    "LinMED": Entry(sl.LinMED(), MIDDLE),
    "OAM": Entry(sl.OAM(horizon=MIDDLE), MIDDLE),
    "OSSB": Entry(sl.OSSB(), MIDDLE),
    "SOLID++": Entry(sl.SOLID(reset=False), MIDDLE, 40),
    "PrimalDual, matched": Entry(sl.PrimalDual(regulariser="matched"), MIDDLE),
    "ExploreThenAllocate": Entry(sl.ExploreThenAllocate(horizon=MIDDLE), MIDDLE),
    "TopTwo": Entry(sl.TopTwo(), MIDDLE, 40),
}


def _rounded(record: dict[str, Any]) -> dict[str, Any]:
    """Round to six digits, for readers of the file."""
    for name in ("means", "errors"):
        record[name] = {
            problem: [float(f"{value:.6g}") for value in values]
            for problem, values in record[name].items()
        }
    return record


def _write(text: str) -> None:
    write_atomically(scoreboard.RECORDS, lambda file: file.write(text.encode()))


def main() -> None:
    """Measure everything, or what is missing, and write the records."""
    store = Path(sys.argv[1] if len(sys.argv) > 1 else "results") / "scoreboard"
    only = sys.argv[2:] or list(ENTRIES)  # labels
    records = (
        {label: asdict(record) for label, record in scoreboard.recorded().items()}
        if scoreboard.RECORDS.is_file()
        else {}
    )
    for label in only:
        policy, horizon, replications = ENTRIES[label]
        found = measured(standard_suite(), {label: policy}, horizon, replications, store)
        records |= {name: _rounded(asdict(record)) for name, record in found.items()}
        ordered = {name: records[name] for name in ENTRIES if name in records}
        _write(json.dumps(ordered, allow_nan=False, indent=1) + "\n")
        print(label, flush=True)


if __name__ == "__main__":
    main()
