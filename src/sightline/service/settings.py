"""What an operator can set."""

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
        Whether only this machine can connect.  Without any token the service answers only then.
    largest_body : int
        Bytes of a request.
    header_size : int
        Bytes of its address and headers, in total.
    header_time, body_time : float
        Seconds within which its headers, and then its body, must be received.
    answer_time : float
        Seconds within which a client must take what was sent to it, before more is sent.
    idle_time : float
        Seconds after which a connection without a request is closed.
    most_connections : int
        Connections that are open at once; below the number of files that a process may open.
    rate : float
        Requests per second and token, on average; 0: no limit.
    burst : float
        Requests that may come at once, as seconds of the rate.
    guesses : float
        Requests per second and address with tokens that are not valid, on average; 0: no limit.
    most_options : int
        Options of one experiment.
    most_decisions : int
        Decisions of one request.
    most_events : int
        Events of one page.
    loaded : int
        Experiments whose state is kept in memory; others are read again when they are asked for.
    batch : int
        Requests of one transaction at most.
    sweep : float
        Seconds after which reward windows are looked at, though nobody asks; 0: never.
    bound_limit : float
        Seconds after which a computation of c* is given up; 0: it is not computed.
    token_refresh : float
        Seconds after which tokens are read again: so long a revoked one may still work.
    most_work : int
        Operations of one request, about: options times squared features times decisions, and what
        else its policy computes.  All other experiments wait for them, about 1 ns each.
    most_open : int
        Decisions of one experiment that wait for their rewards.
    experiment_memory : int
        Bytes of memory that one experiment may take, by its numbers of options and features.
    memory : int
        Bytes of memory for experiments: those that were used least are read again when they are
        asked for.
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
            Variables; others are ignored.
        **given : Any
            Settings that are not read.

        Raises
        ------
        ValueError
            If a variable is no number, or negative.
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
