"""What an operator can set."""

from __future__ import annotations

from dataclasses import dataclass

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
    rate : float
        Requests per second and token, on average; 0: no limit.
    burst : float
        Requests that may come at once, as seconds of the rate.
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
    """

    loopback: bool = True
    largest_body: int = 1 << 20
    rate: float = 1000.0
    burst: float = 2.0
    most_options: int = 10_000
    most_decisions: int = 1_000
    most_events: int = 1_000
    loaded: int = 1_000
    batch: int = 512
    sweep: float = 1.0
    bound_limit: float = 30.0
    token_refresh: float = 2.0
