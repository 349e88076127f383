"""Runs before all tests."""

import os
import signal

from hypothesis import settings

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests of
# interruption would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a merge is not stopped by chance.  `make explore` draws new ones.
settings.register_profile("repeatable", derandomize=True)
settings.register_profile("explore", print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeatable"))
