"""Runs before all tests."""

from __future__ import annotations

import os
import signal
from typing import Any

import pytest
from hypothesis import settings

from tests.marks import thorough, without_compilation
from tests.scheduling import ByKernels, place_of
from tests.selection import PATTERNS, is_thorough

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests of
# interruption would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a merge is not stopped by chance.  `make explore` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


# What the run without compilation ignores (Makefile).
COMPILED_ONLY = ("tests/attacks/", "tests/experiments/")


# before marks are selected by -m
@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse tests that would never run; begin with those that take longest."""
    if not (config.option.file_or_dir or config.option.ignore):  # all tests were collected
        names = [item.nodeid for item in items]
        for pattern in PATTERNS:
            if not any(name.startswith(pattern) for name in names):
                raise pytest.UsageError(f"tests/selection.py: no test begins with {pattern}")
    for item in items:
        is_slow = item.get_closest_marker("slow")
        is_compiled_only = is_slow or item.nodeid.startswith(COMPILED_ONLY)
        if is_compiled_only and without_compilation.mark in item.iter_markers():
            raise pytest.UsageError(f"{item.nodeid} is left out with compilation and without")
        if is_thorough(item.nodeid, is_slow is not None):
            item.add_marker(thorough)
    items.sort(key=lambda item: place_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByKernels:
    """Keep tests together that need the same kernels: each is then compiled by one worker only."""
    return ByKernels(config, log)
