"""All attacks, by what they attack."""

from __future__ import annotations

from tests.attacks import (
    command_line,
    experiments,
    policies,
    problem_files,
    problems,
    session_files,
    sessions,
    simulations,
    stores,
)
from tests.attacks.attack import Attack

__all__ = ["KINDS"]

KINDS: dict[str, list[Attack]] = {
    "problems": problems.ATTACKS,
    "policies": policies.ATTACKS,
    "confidence rules": policies.RULES,
    "simulations": simulations.ATTACKS,
    "experiments": experiments.ATTACKS,
    "sessions": sessions.ATTACKS,
    "problem files": problem_files.ATTACKS,
    "states": session_files.STATES,
    "session files": session_files.ATTACKS,
    "stores": stores.ATTACKS,
    "command line": command_line.ATTACKS,
}
