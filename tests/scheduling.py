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
    "kills and signals",
    "runs of Stakes",
    "tests/test_own_likelihoods.py",
    "tests/test_own_parts.py",
    "tests/cli/test_compile.py",
    "tests/test_shipped.py",
    "runs of E4",
    "tests/test_jit.py",
    "tests/simulation/test_simulate.py",
    "tests/experiments/test_streams.py",
    "tests/service/test_adversity.py",
]
# Groups that need kernels of the others, and find them in the cache at the end.
_LAST = ["tests/test_examples.py", "tests/test_documents.py", "tests/cli/test_reproduce.py"]

# The class of the policy in the name of a test, in files whose tests are kept together by policy.
_CALL = re.compile(r"[\[-](\w+)\(")
_POLICY = {
    "tests/contracts/test_likelihoods.py": _CALL,
    "tests/contracts/test_policies.py": _CALL,
    "tests/test_recorded_runs.py": re.compile(r"\[(\w+)"),
}
_STRESS = ("tests/stress/test_kills.py", "tests/stress/test_signals.py")


def group_of(name: str) -> str:
    """Return what a test is kept together with: its file, or what else one policy runs."""
    path = name.partition("::")[0]
    if path in _STRESS:
        return "kills and signals"
    policy = _POLICY[path].search(name) if path in _POLICY else None
    return f"runs of {policy[1]}" if policy else path


def place_of(name: str) -> int:
    """Return when a test begins: those of the longest group first, those that gain by it last."""
    group = group_of(name)
    if group in _LAST:
        return len(LONGEST) + 1
    return LONGEST.index(group) if group in LONGEST else len(LONGEST)


class ByKernels(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out groups of tests one by one, those that take longest first."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
