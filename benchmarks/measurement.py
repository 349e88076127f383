"""What a benchmark measures, as data."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Measurement"]


@dataclass(frozen=True)
class Measurement:
    """Seconds for one thing, beside a yardstick that was timed in the same run.

    Attributes
    ----------
    what : str
        What was timed.
    size : dict
        k, d, n or whatever distinguishes it from others of its kind.
    seconds : float
        Ours.
    yardstick : str
        What it is compared with.
    yardstick_seconds : float
        Its time, or the aim where the yardstick is a limit.
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
