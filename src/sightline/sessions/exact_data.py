"""Rewards of a session as exact sums, from which an amendment recomputes what was learned.

Floating-point sums forget: after a reward of 1e18, taking it back leaves 0 of all others.  Here the
number of rewards of every option, their sum and their sum of squares are integers, in units of the
smallest float.  Adding and taking back are exact, in any order, and cost the same however long the
log is.

| symbol                                  | here             |
|-----------------------------------------|------------------|
| n, number of rewards                    | ``Sums.n``       |
| sum of r, in units of 2^-1074           | ``Sums.total``   |
| sum of r^2, in units of 2^-2148         | ``Sums.squares`` |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.ledger import Closing, Told, is_nothing, numbers_told
from sightline.validation import LARGEST, integer, number

__all__ = ["ExactData", "Planned", "Sums"]

Array = NDArray[np.float64]

_BITS = 1074  # the smallest float is 2^-1074
_ONE = 1 << _BITS
_ONE_SQUARED = 1 << 2 * _BITS
_LONGEST = 4 * _BITS  # bits of a sum that a file may hold


class Sums(NamedTuple):
    """Exact sums of the rewards of one option; see the table above."""

    n: int = 0
    total: int = 0
    squares: int = 0

    def plus(self, reward: float, count: int = 1) -> Sums:
        """Add a reward, or take it back (``count=-1``)."""
        numerator, denominator = reward.as_integer_ratio()
        shift = _BITS + 1 - denominator.bit_length()
        return Sums(
            self.n + count,
            self.total + (count * numerator << shift),
            self.squares + (count * numerator * numerator << 2 * shift),
        )

    def sum(self, origin: float = 0.0) -> float:
        """Sum of r - origin, correctly rounded."""
        return (self.total - self.n * _scaled(origin)) / _ONE

    def sum_of_squares(self, origin: float = 0.0) -> float:
        """Sum of (r - origin)^2, correctly rounded."""
        shift = _scaled(origin)
        squares = self.squares - 2 * shift * self.total + self.n * shift * shift
        return squares / _ONE_SQUARED

    def squared_deviations(self) -> float:
        """Sum of squared deviations from the mean, correctly rounded."""
        if self.n == 0:
            return 0.0
        return (self.n * self.squares - self.total**2) / (self.n * _ONE_SQUARED)


def _scaled(value: float) -> int:
    """Write a float in units of the smallest one."""
    numerator, denominator = value.as_integer_ratio()
    return numerator << (_BITS + 1 - denominator.bit_length())


_NONE = Sums()

#: Decision whose reward sets the origin or the unit of rewards, and that reward.
Setter = tuple[str, float]
#: Number that an option shows, and whether the policy has learned from it.
Place = tuple[int, bool]


class Planned(NamedTuple):
    """What data become after an operation."""

    first: Setter | None
    other: Setter | None
    sums: dict[Place, Sums]


class ExactData:
    """All rewards that were told, summed by option and by whether the policy has learned from them.

    Parameters
    ----------
    per_arm : int
        Numbers that an option shows.
    offset : bool
        Whether the first reward is the origin; it is 0 otherwise.

    Attributes
    ----------
    first, other : Setter or None
        The first reward, and the first one that differs from the origin.
    """

    def __init__(self, per_arm: int, offset: bool) -> None:
        self.per_arm, self.offset = per_arm, offset
        self.first: Setter | None = None
        self.other: Setter | None = None
        self._sums: dict[Place, Sums] = {}

    def planned(self, closings: Iterable[Closing]) -> Planned:
        """Plan what :meth:`enter` enters, once the closings have been learned."""
        first, other = self.first, self.other
        sums: dict[Place, Sums] = {}
        for closing in closings:
            if is_nothing(closing.reward):
                continue
            made, told = closing.decision, numbers_told(closing.reward)
            if first is None:
                first = made.id, told[0]
            if other is None and told[0] != (first[1] if self.offset else 0.0):
                other = made.id, told[0]
            for i, value in enumerate(told):
                place = made.arm * self.per_arm + i, made.exploring
                sums[place] = (sums.get(place) or self._sums.get(place, _NONE)).plus(value)
        return Planned(first, other, sums)

    def enter(self, planned: Planned) -> None:
        """Enter what was planned; to enter it again changes nothing."""
        self.first, self.other = planned.first, planned.other
        self._sums.update(planned.sums)

    def amended(self, decision: str, arm: int, exploring: bool, was: Told, now: Told) -> ExactData:
        """Copy the data with another reward in the place of one that was told."""
        data = ExactData(self.per_arm, self.offset)
        data._sums = dict(self._sums)
        before, after = numbers_told(was), numbers_told(now)
        for i, (old, new) in enumerate(zip(before, after, strict=True)):
            place = arm * self.per_arm + i, exploring
            data._sums[place] = self._sums[place].plus(old, -1).plus(new)
        data.first, data.other = (
            (decision, after[0]) if setter is not None and setter[0] == decision else setter
            for setter in (self.first, self.other)
        )
        return data

    def learned(self, place: int) -> Sums:
        """Find the sums of what the policy has learned from."""
        return self._sums.get((place, True), _NONE)

    def all(self, place: int) -> Sums:
        """Find the sums of all rewards."""
        pair = self.learned(place), self._sums.get((place, False), _NONE)
        return Sums(*(a + b for a, b in zip(*pair, strict=True)))

    def totals(self, places: int, origin: float = 0.0) -> list[float]:
        """Sum all rewards less an origin, by the number that is shown."""
        return [self.all(place).sum(origin) for place in range(places)]

    def squared_deviations(self, scales: Array) -> float:
        """Sum squared deviations of all rewards from the means of their options, scaled."""
        squares = (self.all(place).squared_deviations() for place in range(len(scales)))
        return math.fsum(square * s * s for square, s in zip(squares, scales.tolist(), strict=True))

    def origin(self) -> float:
        """Find the origin of rewards; nan before the first."""
        if not self.offset:
            return 0.0
        return math.nan if self.first is None else self.first[1]

    def unit(self) -> float:
        """Find the distance of the first other reward from the origin; nan while there is none.

        Where that one was amended to the origin, the root mean square distance takes its place.
        """
        origin = self.origin()
        distance = 0.0 if self.other is None else abs(self.other[1] - origin)
        if distance == 0.0 and self._sums:
            n = sum(sums.n for sums in self._sums.values())
            squares = (sums.sum_of_squares(origin) for sums in self._sums.values())
            distance = math.sqrt(math.fsum(squares) / n)
        return distance or math.nan

    def describe(self) -> dict[str, Any]:
        """Write the data as plain values, for a file."""
        return {
            "first": self.first,
            "other": self.other,
            "sums": [
                [place, learned, sums.n, _text(sums.total), _text(sums.squares)]
                for (place, learned), sums in sorted(self._sums.items())
            ],
        }

    def fill(self, described: Mapping[str, Any], places: int) -> None:
        """Read what :meth:`describe` has written of so many numbers."""
        self.first, self.other = (_setter(described[name]) for name in ("first", "other"))
        for place, learned, count, total, squares in described["sums"]:
            if type(learned) is not bool:
                raise ValueError(f"learned must be true or false, got {learned!r}")
            row = integer("place", place, at_least=0, at_most=places - 1)
            n = integer("count", count, at_least=0)
            self._sums[row, learned] = Sums(n, _integer(total), _integer(squares))


def _text(value: int) -> str:
    """Write an integer as a hexadecimal mantissa and the number of zero bits after it."""
    zeros = (value & -value).bit_length() - 1 if value else 0
    return f"{value >> zeros:x}p{zeros}"


def _integer(text: object) -> int:
    """Inverse of :func:`_text`."""
    mantissa, _, zeros = str(text).partition("p")
    if len(mantissa) > _LONGEST // 4 or len(zeros) > 4:
        raise ValueError("a sum of rewards has too many digits")
    return int(mantissa, 16) << int(zeros)


def _setter(value: Any) -> Setter | None:
    if value is None:
        return None
    id_, reward = value
    return str(id_), number("reward", reward, at_least=-LARGEST, at_most=LARGEST)
