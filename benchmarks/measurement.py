"""Result of a measurement."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measurement"]


@dataclass(frozen=True)
class Measurement:
    """Seconds of one case, and of a yardstick timed in the same run.

    Attributes
    ----------
    what : str
        The case.
    size : dict
        k, d, n or other parameters of the case.
    seconds : float
        Time of this library.
    yardstick : str
        Name of the yardstick.
    yardstick_seconds : float
        Its time, or the limit if it is one.
    """

    what: str
    size: dict[str, int]
    seconds: float
    yardstick: str
    yardstick_seconds: float

    @property
    def ratio(self) -> float:
        """Our time over that of the yardstick."""
        return self.seconds / self.yardstick_seconds
