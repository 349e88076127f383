"""Sessions under signals and kills: python -m benchmarks.survival [--signals N] [--kills N].

Signals come at random moments, the handlers raise, and after each one the session is compared with
a twin, bit for bit; processes are killed (SIGKILL) while they write a journal; several contend for
one journal.  The programs are those of ``tests/stress``.  Deaths, locks that are stuck and wrong
states are counted from outside; each must be 0.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

from tests.stress.actor import POLICIES
from tests.stress.program import Ended, run

HEADINGS = ("what", "tried", "calls interrupted", "deaths", "stuck", "wrong", "seconds")


class Trial(NamedTuple):
    """A program and its arguments, with what it tries."""

    what: str
    program: str
    arguments: tuple[object, ...]


def trials(signals: int, kills: int, seed: int) -> Iterator[Trial]:
    """All programs, with their shares of the signals."""

    def share(part: float) -> int:
        return max(round(part * signals), 1)

    def session(name: str, part: float, *options: object) -> Trial:
        words = " ".join(str(option).strip("-") for option in options)
        arguments = (name, share(part), "--seed", seed, *options)
        return Trial(f"session, {name} {words}".strip(), "interrupted_session", arguments)

    for name in POLICIES:
        yield session(name, 0.12)
    for name in POLICIES:
        yield session(name, 0.03, "--journal")
    for name in ("LinUCB", "BayesianIDS", "EpsilonGreedy"):
        yield session(name, 0.03, "--journal", "--threads", 4)
    options: tuple[object, ...] = ("--seed", seed)
    yield Trial("open and close", "interrupted_opening", (share(0.06), *options))
    for kind, part in (("simulate", 0.05), ("threads", 0.05), ("processes", 0.003)):
        what = kind if kind == "simulate" else f"run, {kind}"
        yield Trial(what, "interrupted_runs", (kind, share(part), *options))
    processes = max(round(0.003 * signals), 1)
    yield Trial("compilation", "interrupted_compilation", (processes, *options))
    yield Trial("kernels read", "interrupted_compilation", (processes, "--cached", *options))
    if kills:
        yield Trial("kill -9", "killed", (kills, *options))
        yield Trial("2 processes", "racing", (max(kills // 5, 1), "--processes", 2))
        yield Trial("4 threads", "racing", (max(kills // 5, 1), "--processes", 1, "--threads", 4))


def row(trial: Trial, ended: Ended, seconds: float) -> tuple[str, ...]:
    """Line of the table."""
    found = ended.found
    if "kills" in found:
        tried = f"{found['kills']} kills"
        interrupted = f"{found['acknowledged']} acknowledged"
    elif "opened" in found:
        tried, interrupted = f"{found['opened']} openings", ""
    else:
        tried, interrupted = f"{found.get('sent', '?')} signals", str(found.get("raised", "?"))
    stuck = "Timeout (" in ended.errors
    wrong = found.get("other decisions", 0) + found.get("no thread could compile", 0)
    wrong += not (ended.well or stuck or ended.code < 0)
    died = int(ended.code < 0)
    died += sum(count for name, count in found.items() if name.startswith("ended with -"))
    numbers = (died, int(stuck), wrong, round(seconds))
    return (trial.what, tried, interrupted, *map(str, numbers))


def main() -> None:
    """Read arguments, try everything, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--signals", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    widths = (42, 16, 20, 8, 8, 8, 8)

    def line(cells: tuple[str, ...]) -> str:
        return "".join(f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True))

    print(line(HEADINGS), flush=True)
    failed = sent = raised = 0
    for trial in trials(given.signals, given.kills, given.seed):
        began = time.perf_counter()
        ended = run(trial.program, *trial.arguments, timeout=3600.0)
        cells = row(trial, ended, time.perf_counter() - began)
        print(line(cells), flush=True)
        sent += ended.found.get("sent", 0)
        raised += ended.found.get("raised", 0)
        if any(int(cell) for cell in cells[3:6]):
            failed += 1
            print(ended.errors[-3000:], flush=True)
    print(f"{sent} signals sent, {raised} calls interrupted, {failed} programs failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
