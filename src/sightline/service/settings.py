"""Settings of a service: limits and intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from sightline.validation import shown

__all__ = ["Settings"]


@dataclass(frozen=True)
class Settings:
    """Limits and intervals of a service.

    Attributes
    ----------
    loopback : bool
        Whether only this machine can connect.  A service without tokens responds only then.
    largest_body : int
        Bytes of a request body.
    header_size : int
        Bytes of the address and the headers of a request, in total.
    header_time, body_time : float
        Seconds within which the headers, and then the body, must arrive.
    answer_time : float
        Seconds within which a client must read what was sent, before more is sent.
    idle_time : float
        Seconds after which a connection without a request is closed.
    most_connections : int
        Open connections; below the number of files that a process may open.
    rate : float
        Average requests per second and token; 0: no limit.
    burst : float
        Requests that may arrive at once, in seconds of the rate.
    guesses : float
        Average requests with invalid tokens per second and address; 0: no limit.
    most_options : int
        Options of one experiment.
    most_decisions : int
        Decisions of one request.
    most_events : int
        Events of one page.
    loaded : int
        Experiments in memory; others are loaded again on demand.
    batch : int
        Requests of one transaction.
    sweep : float
        Seconds between checks for expired reward windows; 0: only requests check.
    bound_limit : float
        Seconds after which the computation of a c* is aborted; 0: none is computed.
    token_refresh : float
        Seconds between reads of the tokens: a revoked one may work for this long.
    most_work : int
        Approximate operations of one request: options times squared features times decisions, plus
        what the policy computes.  All other experiments wait for them, about 1 ns each.
    most_open : int
        Decisions of one experiment that wait for their rewards.
    experiment_memory : int
        Bytes of memory of one experiment, by its numbers of options and features.
    memory : int
        Bytes of memory of all experiments: the least recently used are loaded again on demand.
    """

    loopback: bool = True
    largest_body: int = 1 << 20
    header_size: int = 1 << 14
    header_time: float = 10.0
    body_time: float = 30.0
    answer_time: float = 30.0
    idle_time: float = 5.0
    most_connections: int = 800
    rate: float = 1000.0
    burst: float = 2.0
    guesses: float = 10.0
    most_options: int = 10_000
    most_decisions: int = 1_000
    most_events: int = 1_000
    loaded: int = 1_000
    batch: int = 512
    sweep: float = 1.0
    bound_limit: float = 30.0
    token_refresh: float = 2.0
    most_work: int = 50_000_000
    most_open: int = 100_000
    experiment_memory: int = 1 << 28
    memory: int = 1 << 31

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], **given: Any) -> Settings:
        """Read settings from variables such as ``SIGHTLINE_HEADER_SIZE``.

        Parameters
        ----------
        environment : mapping
            Environment variables.
        **given : Any
            Settings that take precedence.

        Raises
        ------
        ValueError
            If a variable is not a number, or negative.
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
