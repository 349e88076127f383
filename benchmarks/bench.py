"""``sightline bench``: groups of measurements, as a table, as JSON and as a picture."""

from __future__ import annotations

import importlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np

import sightline as sl
from benchmarks.measurement import Measurement
from sightline.files import write_atomically
from sightline.validation import one_of

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["GROUPS", "bench"]

# Group: module, and denominator of its ratio.
GROUPS = {
    "c": ("against_c", "a plain loop in C"),
    "numpy": ("against_numpy", "plain NumPy"),
    "published": ("published", "the authors' code"),
    "growth": ("growth", "the expected growth"),
    "start": ("cold_start", "the longest time we accept"),
}


def bench(names: Sequence[str], out: Path, repeats: int, console: Console) -> None:
    """Measure groups, print each as a table, write ``bench.json`` and ``growth.svg``.

    Parameters
    ----------
    names : sequence of str
        Groups; all of them if empty.
    out : path
        Directory to write to.
    repeats : int
        How often to time everything; the fastest counts.
    console : rich.console.Console
        Where to print.
    """
    for name in names:
        one_of("group", name, GROUPS)
    out.mkdir(parents=True, exist_ok=True)
    found: dict[str, list[Measurement]] = {}
    for name in names or GROUPS:
        module, yardstick = GROUPS[name]
        if name == "c" and shutil.which("gcc") is None:
            console.print("c: left out, since there is no gcc")
            continue
        heading = f"\n{name}: against {yardstick}\n{_line(*_HEADINGS)}"
        console.print(heading, markup=False, highlight=False, soft_wrap=True)
        found[name] = []
        for row in importlib.import_module(f"benchmarks.{module}").measure(repeats):
            found[name].append(row)
            console.print(_line(*_cells(row)), markup=False, highlight=False, soft_wrap=True)
        _write(out / "bench.json", found)
    if "growth" in found:
        from benchmarks.picture import growth_figure

        growth_figure(found["growth"]).savefig(out / "growth.svg")


def machine() -> dict[str, Any]:
    """What the times depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "numba": numba.__version__,
        "gcc": _first_line("gcc", "--version"),
        "sightline": sl.__version__,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _first_line(*command: str) -> str | None:
    if shutil.which(command[0]) is None:
        return None
    return subprocess.run(command, capture_output=True, text=True).stdout.splitlines()[0]


def _write(path: Path, found: dict[str, list[Measurement]]) -> None:
    groups = {
        name: [asdict(row) | {"ratio": row.ratio} for row in rows] for name, rows in found.items()
    }
    text = json.dumps({"machine": machine(), "groups": groups}, indent=2)
    write_atomically(path, lambda file: file.write(text.encode()))


def in_units(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _power(n: int) -> str:
    return f"10^{len(str(n)) - 1}" if n >= 10**4 and str(n).strip("0") == "1" else str(n)


_HEADINGS = ("what", "size", "ours", "yardstick", "its time", "ratio", "times faster")


def _cells(row: Measurement) -> tuple[str, ...]:
    size = " ".join(f"{name}={_power(value)}" for name, value in row.size.items())
    times = in_units(row.seconds), row.yardstick, in_units(row.yardstick_seconds)
    return row.what, size, *times, f"{row.ratio:.3g}", f"{1 / row.ratio:.3g}"


def _line(*cells: str) -> str:
    what, size, *numbers = cells
    return f"{what:<50}{size:<16}" + "".join(f"{cell:>13}" for cell in numbers)
