"""Validation of public arguments; ``tests/attacks`` has invalid ones."""

from __future__ import annotations

import itertools
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sightline.validation import (
    affordable,
    entries,
    file_path,
    finite_array,
    number,
    scale,
    shown,
    size_text,
)


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError


VALUES: list[tuple[Any, str]] = [
    (0, "0"),
    (-7, "-7"),
    (1_000_000, "1000000"),
    (10**9, "10**9"),
    (-(10**12), "-10**12"),
    (10**19 + 1, "10000000000000000001"),
    (2**400, "about 10**120"),
    (10**5000, "10**5000"),
    (-(10**5000) - 1, "about -10**5000"),
    (True, "True"),
    (0.1, "0.1"),
    ("a\nb", r"'a\nb'"),
    (" ", "' '"),
    (np.eye(2), "array([[1., 0.], [0., 1.]])"),
    ("x" * 100, "'" + "x" * 76 + "..."),
    (list(range(1000)), "a list of 1000 entries"),
    ([10**5000], "a list"),
    (Unprintable(), "a Unprintable"),
]


def test_values_are_shown_on_one_line() -> None:
    assert [shown(value) for value, _ in VALUES] == [text for _, text in VALUES]


def test_arrays_of_any_real_numbers() -> None:
    given = [[True, 2], [Decimal("0.5"), Fraction(1, 4)]]
    assert finite_array("x", given, (2, 2)).tolist() == [[1.0, 2.0], [0.5, 0.25]]  # type: ignore[arg-type]
    assert finite_array("x", [2**70, -(2**70)], (2,)).tolist() == [2.0**70, -(2.0**70)]
    assert finite_array("x", 3, (1,)).tolist() == [3.0]


def test_an_array_is_a_copy() -> None:
    given = np.eye(2)
    finite_array("x", given, (2, 2))[0, 0] = 5.0
    assert given[0, 0] == 1.0


def test_scales_are_numbers_with_room_for_their_powers() -> None:
    assert [scale("x", value) for value in (1e-70, 1, np.float32(2.0), 1e70)] == [1e-70, 1, 2, 1e70]
    assert scale("x", 1e-140, power=2) == 1e-140
    with pytest.raises(ValueError, match=r"x must be between 1e-140 and 1e\+140, got 1e-141"):
        scale("x", 1e-141, power=2)


def test_numbers_may_be_limited_in_size() -> None:
    assert number("x", -3.0, size=3.0) == -3.0
    with pytest.raises(ValueError, match="x must not exceed 3, got -4"):
        number("x", -4, size=3.0)


def test_entries_of_what_can_be_iterated() -> None:
    assert entries("x", (n for n in range(3)), "a list") == [0, 1, 2]
    assert entries("x", np.array([4, 5]), "a list") == [4, 5]
    with pytest.raises(ValueError, match="x must have at most 1000000 entries, got more"):
        entries("x", itertools.repeat(0), "a list")


def test_paths() -> None:
    assert file_path("path", "a/b") == file_path("path", Path("a") / "b")
    with pytest.raises(ValueError, match=r"path must be the path of a file, got b'a'"):
        file_path("path", b"a")


def test_what_is_affordable_depends_on_the_machine() -> None:
    affordable("this", 10**6)
    with pytest.raises(ValueError, match=r"^this would take 10\*\*12 TB of memory, this machine"):
        affordable("this", 10**24)


def test_sizes_are_rounded_down() -> None:
    assert [size_text(size) for size in (5, 1_999_999, 3 * 10**9, 48 * 10**12, 10**400)] == [
        "5 bytes",
        "1 MB",
        "3 GB",
        "48 TB",
        "10**388 TB",
    ]


def test_a_long_value_is_shown_at_once() -> None:
    """A body of a service may be one: all others wait meanwhile."""
    began = time.process_time()
    text = shown("é\n" * 5_000_000)
    assert time.process_time() - began < 0.5
    assert text.startswith("'é")
    assert (len(text), text[-3:]) == (80, "...")
