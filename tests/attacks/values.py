"""Values that are no numbers, or none that can be computed with."""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
from typing import Any

import numpy as np

__all__ = ["BEYOND", "NO_INTEGERS", "NO_NUMBERS", "NO_TEXTS", "TOO_FAR"]


class _Thing:
    """Anything else."""

    def __repr__(self) -> str:
        return "<a thing>"


#: Value by name, with what a sentence must say of it.
NO_NUMBERS: dict[str, tuple[Any, str]] = {
    "text": ("0.5", "'0.5'"),
    "empty text": ("", "''"),
    "none": (None, "None"),
    "true": (True, "True"),
    "numpy true": (np.True_, "True"),
    "complex": (1j, "1j"),
    "numpy complex": (np.complex128(1), "1+0j"),
    "bytes": (b"1", "b'1'"),
    "list": ([0.5], "[0.5]"),
    "dictionary": ({"value": 0.5}, "{'value': 0.5}"),
    "date": (datetime.date(2024, 2, 29), "2024"),
    "timedelta": (np.timedelta64(1, "s"), "timedelta64"),
    "datetime": (np.datetime64("2024-02-29"), "2024-02-29"),
    "class": (float, "class 'float'"),
    "thing": (_Thing(), "a thing"),
    "decimal": (decimal.Decimal("0.5"), "Decimal"),
    "fraction": (fractions.Fraction(1, 2), "Fraction"),
    "nan": (math.nan, "nan"),
    "infinity": (math.inf, "inf"),
    "minus infinity": (-math.inf, "-inf"),
    "10**400": (10**400, "10**400"),
    "-10**400": (-(10**400), "-10**400"),
    "10**5000": (10**5000, "10**5000"),
}

#: Numbers of whose squares or quotients some are no longer numbers.
TOO_FAR: dict[str, tuple[Any, str]] = {
    "1e300": (1e300, "1e+300"),
    "1e71": (1e71, "1e+71"),
    "largest float": (1.7e308, "1.7e+308"),
    "10**100": (10**100, "10**100"),
}

#: The same, of numbers that must be positive.
BEYOND: dict[str, tuple[Any, str]] = TOO_FAR | {
    "1e-300": (1e-300, "1e-300"),
    "1e-71": (1e-71, "1e-71"),
    "least float": (5e-324, "5e-324"),
    "zero": (0.0, "0.0"),
    "negative": (-0.5, "-0.5"),
}

#: What is no integer.
NO_INTEGERS: dict[str, tuple[Any, str]] = {
    "text": ("3", "'3'"),
    "none": (None, "None"),
    "true": (True, "True"),
    "numpy true": (np.True_, "True"),
    "float": (3.0, "3.0"),
    "nan": (math.nan, "nan"),
    "1e6": (1e6, "1000000.0"),
    "list": ([3], "[3]"),
    "timedelta": (np.timedelta64(3, "s"), "timedelta64"),
    "array": (np.array([3, 4]), "array([3, 4])"),
    "huge negative": (-(10**5000), "-10**5000"),
    "thing": (_Thing(), "a thing"),
}

#: What is no name.
NO_TEXTS: dict[str, tuple[Any, str]] = {
    "integer": (5, "5"),
    "none": (None, "None"),
    "bytes": (b"name", "b'name'"),
    "tuple": (("a", "b"), "('a', 'b')"),
    "array": (np.array(["halfspace", "cell"]), "array("),
    "thing": (_Thing(), "a thing"),
    "nan": (math.nan, "nan"),
    "list": (["halfspace"], "['halfspace']"),
}
