"""Settings of a service: limits and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sightline.validation import shown


@dataclass(frozen=True)
class Settings:
    """Limits and intervals of a service: bytes, seconds and counts."""

    loopback: bool = True  # only this machine can connect; needed if there are no tokens
    largest_body: int = 1 << 20  # bytes of a request body
    header_size: int = 1 << 14  # bytes of the address and the headers of a request, in total
    header_time: float = 10.0  # seconds within which the headers must arrive
    body_time: float = 30.0  # seconds within which the body must arrive
    answer_time: float = 30.0  # seconds within which a client must read what was sent
    idle_time: float = 5.0  # seconds after which a connection without a request is closed
    most_connections: int = 800  # open at once; below the limit of open files of a process
    rate: float = 1000.0  # average requests per second and token; 0: no limit
    burst: float = 2.0  # requests that may arrive at once, in seconds of the rate
    guesses: float = 10.0  # average invalid tokens per second and address; 0: no limit
    most_options: int = 10_000  # of one experiment
    most_decisions: int = 1_000  # of one request
    most_events: int = 1_000  # of one page
    loaded: int = 1_000  # experiments in memory; others are loaded again on demand
    batch: int = 512  # requests of one transaction
    sweep: float = 1.0  # seconds between checks for expired reward windows; 0: no checks
    bound_limit: float = 30.0  # seconds after which the computation of a c* is aborted; 0: none
    token_refresh: float = 2.0  # seconds for which a revoked token may still work
    # operations of one request: about options times squared features times decisions, plus those
    # of the policy; all other experiments wait for them, about 1 ns each
    most_work: int = 50_000_000
    most_reported: int = 200_000  # decisions that a report reads
    most_open: int = 100_000  # decisions of one experiment that wait for their rewards
    experiment_memory: int = 1 << 28  # bytes of one experiment, by its options and features
    memory: int = 1 << 31  # bytes of all experiments in memory

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **given: Any) -> Settings:
        """Read settings that are not given from variables such as ``SIGHTLINE_HEADER_SIZE``.

        ValueError if a variable is not a number, or negative.
        """
        for field in fields(cls):
            name = f"SIGHTLINE_{field.name.upper()}"
            if field.name not in given and name in environment:
                given[field.name] = _number(name, environment[name], type(field.default))
        return cls(**given)


def _number(name: str, text: str, kind: Any) -> Any:
    try:
        value = kind(text)
        if not (math.isfinite(value) and value >= 0):
            raise ValueError
    except ValueError:
        what = "a whole number" if kind is int else "a number"
        raise ValueError(f"{name} must be {what}, 0 or larger, got {shown(text)}") from None
    return value
