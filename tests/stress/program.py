"""Workers of this package as processes, whose end is seen from outside."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ended", "run"]

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Ended:
    """How a worker has ended."""

    code: int
    found: dict[str, Any]
    errors: str

    @property
    def well(self) -> bool:
        """Whether it has found no errors."""
        return self.code == 0 and bool(self.found)


def run(name: str, *arguments: object, timeout: float = 600.0) -> Ended:
    """Run a module of this package, which prints what it has found as JSON."""
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), *sys.path])
    ended = subprocess.run(
        [sys.executable, "-m", f"tests.stress.{name}", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=timeout,
        cwd=ROOT,
    )
    found = json.loads(ended.stdout) if ended.stdout else {}
    return Ended(ended.returncode, found, ended.stderr)
