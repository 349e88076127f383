"""Runs before all tests."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.scheduling import ByKernels

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests of
# interruption would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a merge is not stopped by chance.  `make explore` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByKernels:
    """Keep tests together that need the same kernels: each is then compiled by one worker only."""
    from tests.scheduling import ByKernels

    return ByKernels(config, log)
