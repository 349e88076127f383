"""Command line of benchmarks with several parts."""

from __future__ import annotations

import argparse
from collections.abc import Callable

__all__ = ["Parts", "run_parts"]

#: Function that runs and prints a part, and its default number of runs.
Parts = dict[str, tuple[Callable[[int], None], int]]


def run_parts(description: str | None, parts: Parts) -> None:
    """Print some parts, or all: ``[--runs N] [PART ...]``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("parts", nargs="*", help=", ".join(parts))
    parser.add_argument("--runs", type=int)
    arguments = parser.parse_args()
    for part in arguments.parts or parts:
        run, count = parts[part]
        print(f"\n{part}")
        run(arguments.runs or count)
