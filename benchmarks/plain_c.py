"""Policies in straightforward C: the first yardstick, compiled at run time if gcc is available."""

from __future__ import annotations

import ctypes
import functools
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import sightline as sl

__all__ = ["POLICIES", "runner"]

Array = NDArray[np.float64]

POLICIES: dict[str, sl.extend.Policy] = {
    "lin_ucb": sl.LinUCB(),
    "thompson": sl.ThompsonSampling(),
    "ids": sl.IDS(),
    "ids_ucb": sl.IDS(information="halfspace-ucb"),
}
_POINTER = ctypes.POINTER(ctypes.c_double)


@functools.cache
def library(*flags: str) -> ctypes.CDLL:
    """All yardsticks, optimised for this machine."""
    sources = [
        str(Path(__file__).with_name(f"{name}.c")) for name in ("lin_ucb", "thompson", "ids")
    ]
    with tempfile.TemporaryDirectory() as directory:
        target = f"{directory}/plain.so"
        options = ["-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", target]
        subprocess.run(["gcc", *options, *sources, "-lm"], check=True)
        return ctypes.CDLL(target)


def runner(
    policy_name: str,
    problem: sl.LinearBandit,
    rounds: int,
    *,
    tapes: tuple[Array, Array] | None = None,
) -> Callable[[int], tuple[float, int]]:
    """Call that plays one run in C and returns its regret and its exploration rounds.

    With two tapes, for decisions and for noise, these replace random numbers.
    """
    function = library(*(("-DREPLAY",) if tapes else ()))[policy_name]
    function.restype = ctypes.c_long
    arrays: list[Any] = [np.array(problem.actions), np.array(problem.theta), *(tapes or ())]
    pointers = [array.ctypes.data_as(_POINTER) for array in arrays]  # they keep the arrays alive
    actions, theta, decisions, noise = pointers if tapes else [*pointers, None, None]

    def run(seed: int) -> tuple[float, int]:
        pulls = np.zeros(problem.k)
        explorations: int = function(
            problem.k,
            problem.d,
            actions,
            theta,
            ctypes.c_double(problem.model.noise_std),
            ctypes.c_long(rounds),
            ctypes.c_uint64(seed),
            decisions,
            noise,
            pulls.ctypes.data_as(_POINTER),
        )
        return float(pulls @ problem.gaps), explorations

    return run
