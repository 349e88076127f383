"""Marks that several test files use."""

import pytest

from sightline.jit.numba_compat import is_disabled

# Where a test calls kernels from the interpreter, these are compiled for that alone.  Runs compile
# them too: such a test proves as much in the second run of `make test`, which compiles nothing.
without_compilation = pytest.mark.skipif(not is_disabled(), reason="in the run without compilation")

# What `make test` leaves to `make thorough` where kernels are compiled: policies that others stand
# for in a setting, and formulas, which the run without compilation compares in any case.
thorough = pytest.mark.thorough
