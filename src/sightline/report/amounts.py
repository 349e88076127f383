"""Numbers and times of a report in words: rates in percent, and as many digits as are known."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

MINUS = "\N{MINUS SIGN}"
UNKNOWN = "not known"
_LARGE = 1e15  # larger numbers are written with an exponent
_MOST_PLACES = 8
_MINUTE, HOUR, DAY = 60.0, 3600.0, 86400.0


class Amounts(NamedTuple):
    """How rewards are written: as rates in percent, or as numbers, with some decimal places."""

    rates: bool = False
    places: int = 2

    def fitting(self, ends: Iterable[tuple[float, float]]) -> Amounts:
        """Take the places that show two digits of the shortest interval."""
        widths = [high - low for low, high in ends if 0.0 < high - low < math.inf]
        if not widths:
            return self
        least = min(widths) * (100.0 if self.rates else 1.0)
        return self._replace(places=min(max(1 - math.floor(math.log10(least)), 0), _MOST_PLACES))

    def value(self, x: float, sign: bool = False) -> str:
        """Write a reward, such as ``5.7 %``."""
        text = self._digits(x, sign)
        return f"{text} %" if self.rates and math.isfinite(x) else text

    def range(self, low: float, high: float, sign: bool = False) -> str:
        """Write an interval, such as ``4.9 to 6.6 %``."""
        if math.isinf(low) and math.isinf(high):
            return UNKNOWN
        if math.isinf(low) or math.isinf(high):
            bound = f"at least {self.value(low, sign)}"
            return bound if math.isinf(high) else f"at most {self.value(high, sign)}"
        unit = " %" if self.rates and not sign else ""
        return f"{self._digits(low, sign)} to {self._digits(high, sign)}{unit}"

    def difference(self, x: float) -> str:
        """Write a difference in a sentence, such as ``1.1 percentage points``."""
        text = self._digits(x, False)
        return f"{text} percentage points" if self.rates and math.isfinite(x) else text

    def _digits(self, x: float, sign: bool) -> str:
        return number(100.0 * x if self.rates else x, self.places, sign)


def number(x: float, places: int, sign: bool = False) -> str:
    """Write a number with a sign that can be read; "not known" if it is not finite."""
    if not math.isfinite(x):
        return UNKNOWN
    if abs(x) >= _LARGE:
        text = f"{x:+.3g}" if sign else f"{x:.3g}"
    else:
        text = f"{x:+,.{places}f}" if sign else f"{x:,.{places}f}"
        if float(text.replace(",", "")) == 0.0:
            text = text.lstrip("+-")
    return text.replace("-", MINUS)


def total(x: float, width: float, sign: bool = False) -> str:
    """Write a total of rewards, to the digits that an interval of this width leaves."""
    places = 0
    if 0.0 < width < math.inf:
        places = min(max(1 - math.floor(math.log10(width)), 0), 3)
    return number(x, places, sign)


def count(n: int | float, one: str, several: str | None = None) -> str:
    """Write a number of things, such as ``1 decision``."""
    whole = round(n)
    return f"{whole:,} {one if whole == 1 else several or one + 's'}"


def share(part: float, whole: float) -> str:
    """Write a share in percent."""
    if whole <= 0.0:
        return "none"
    percent = 100.0 * part / whole
    return f"{percent:.1f} %" if 0.0 < percent < 10.0 else f"{percent:.0f} %"


def listed(names: Iterable[str], most: int = 5) -> str:
    """Write names for a sentence: the first ones, if they are many."""
    every = list(names)
    shown = every[:most]
    if len(every) > most:
        return f"{', '.join(shown)} and {len(every) - most:,} others"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def percent(x: float) -> str:
    """Write a probability in percent."""
    return f"{100.0 * x:.4g} %"


def moment(seconds: float) -> str:
    """Write a time in seconds since 1970 as a date and a time of day."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def duration(seconds: float) -> str:
    """Write a duration in its largest suitable unit."""
    for size, word in ((DAY, "day"), (HOUR, "hour"), (_MINUTE, "minute")):
        if seconds >= size:
            text = f"{seconds / size:.1f}".removesuffix(".0")
            return f"{text} {word}{'' if text == '1' else 's'}"
    return count(seconds, "second")
