"""Runs before all tests."""

import signal

# A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests of
# interruption would then wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
