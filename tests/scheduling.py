"""Which worker runs which tests, where there are several.

Tests that need the same kernels stay together: two workers would compile them twice, at the same
time.  Marks for groups of pytest-xdist do this as well, but with pytest 9.2 they are ignored
without a word.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

__all__ = ["ByKernels", "group_of", "place_of"]

# Groups that take longest, by processor time from an empty cache: a worker that begins one of them
# at the end would be waited for.
LONGEST = [
    "runs of IDS",
    "tests/stress/test_signals.py",
    "tests/sessions/test_live_games.py",
    "tests/sessions/test_live_streams.py",
    "tests/policies/test_ids_games.py",
    "tests/simulation/test_contexts.py",
    "tests/sessions/test_live_contexts.py",
    "tests/stress/test_kills.py",
    "tests/test_examples.py",
    "runs of Stakes",
    "runs of PrimalDual",
    "tests/simulation/test_simulate.py",
    "tests/policies/test_arm_noise.py",
    "tests/policies/test_games.py",
    "tests/sessions/test_propensities.py",
    "tests/policies/test_ids.py",
]

# The class of the policy in the name of a test, in files whose tests are kept together by policy.
_CALL = re.compile(r"[\[-](\w+)\(")
_POLICY = {
    "tests/contracts/test_likelihoods.py": _CALL,
    "tests/contracts/test_policies.py": _CALL,
    "tests/test_recorded_runs.py": re.compile(r"\[(\w+)"),
}


def group_of(name: str) -> str:
    """Return what a test is kept together with: its file, or what else one policy runs."""
    path = name.partition("::")[0]
    policy = _POLICY[path].search(name) if path in _POLICY else None
    return f"runs of {policy[1]}" if policy else path


def place_of(name: str) -> int:
    """Return when a test begins: those of the longest group first."""
    group = group_of(name)
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


class ByKernels(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups of tests one by one, those that take longest first."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
