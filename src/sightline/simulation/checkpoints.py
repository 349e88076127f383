"""Rounds at which a simulation records, as Python integers of any size."""

from __future__ import annotations

import functools
import itertools
import math
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.validation import entries, integer, shown

__all__ = [
    "log_spaced",
    "parse_rounds",
    "power_of_ten",
    "round_array",
    "rounds_text",
    "valid_checkpoints",
]

_LARGEST_EXPONENT = 4000  # Python prints integers of at most 4300 digits


def log_spaced(horizon: int, per_decade: int = 20, at_most: int = 400) -> list[int]:
    """Choose rounds from 1 to ``horizon`` that are evenly spaced in log t.

    Parameters
    ----------
    horizon : int
        Last round.
    per_decade : int
        Rounds per factor of ten, fewer if that would be more than ``at_most`` in all.
    at_most : int
        Largest number of intervals.
    """
    horizon = integer("horizon", horizon, at_least=1)
    return list(_log_spaced(horizon, per_decade, at_most))


@functools.lru_cache(maxsize=64)  # replications share them
def _log_spaced(horizon: int, per_decade: int, at_most: int) -> tuple[int, ...]:
    log_horizon = math.log10(horizon)
    count = max(1, min(at_most, math.ceil(per_decade * log_horizon)))
    rounds = {min(power_of_ten(log_horizon * i / count), horizon) for i in range(count)}
    return tuple(sorted(rounds | {horizon}))


def power_of_ten(exponent: float) -> int:
    """10^exponent, rounded, also where it does not fit a float."""
    if exponent < 15:
        return round(math.pow(10.0, exponent))
    whole = math.floor(exponent)
    leading = round(math.pow(10.0, exponent - whole + 15))
    return leading * int(10 ** (whole - 15))


def valid_checkpoints(checkpoints: Iterable[int] | None, horizon: int) -> Sequence[int]:
    """Check the rounds to record, or choose them."""
    if checkpoints is None:
        return log_spaced(horizon)
    given = entries("checkpoints", checkpoints, "a list of rounds")
    rounds = [integer("checkpoints", t, at_least=1) for t in given]
    for earlier, later in itertools.pairwise(rounds):
        if earlier >= later:
            raise ValueError(
                f"checkpoints must be strictly increasing, got {shown(later)} after "
                f"{shown(earlier)}"
            )
    if rounds[-1] > horizon:
        raise ValueError(
            f"checkpoints must not exceed the horizon {shown(horizon)}, got {shown(rounds[-1])}"
        )
    return rounds


def round_array(rounds: Sequence[int]) -> NDArray[Any]:
    """Make an array of rounds; of Python integers where the last one exceeds 64 bits."""
    return np.array(rounds, dtype=np.int64 if rounds[-1] <= sys.maxsize else object)


def parse_rounds(name: str, value: Any) -> int:
    """Read a number of rounds from an integer or a text such as ``10^6``, ``2e6``, ``1_000``."""
    if not isinstance(value, str):
        return integer(name, value, at_least=1)
    found = re.fullmatch(r"(\d+)(?:(e|\^|\*\*)(\d{1,4}))?", value.replace("_", "").strip())
    if not found or len(found[1]) > _LARGEST_EXPONENT:
        raise ValueError(f"{name} must be a number of rounds such as 10^6, got {shown(value)}")
    base, sign, exponent = int(found[1]), found[2], int(found[3] or 1)
    if sign and exponent * (1 if sign == "e" else len(found[1])) > _LARGEST_EXPONENT:
        raise ValueError(f"{name} must be at most 10^{_LARGEST_EXPONENT}, got {shown(value)}")
    scale = int(10**exponent) if sign == "e" else 1
    return integer(name, base * scale if sign == "e" else int(base**exponent), at_least=1)


def rounds_text(rounds: int) -> str:
    """Write rounds so that :func:`parse_rounds` reads them: ``10^6``, or all digits."""
    exponent = round(math.log10(rounds))
    return f"10^{exponent}" if exponent > 2 and rounds == 10**exponent else str(rounds)
