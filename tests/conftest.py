"""Runs before all tests."""

import os
import signal

import pytest
from hypothesis import settings

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests of
# interruption would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a merge is not stopped by chance.  `make explore` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep tests together that need the same kernels: each is then compiled by one worker only."""
    for item in items:
        group = str(item.path)
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if "contracts" in item.path.parts and "policy" in parameters:
            policy = parameters["policy"]
            name = type(policy).__name__
            group += f": {policy if name == 'IDS' else name}"  # kernels of IDS differ by option
        item.add_marker(pytest.mark.xdist_group(group))
