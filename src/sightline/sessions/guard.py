"""Who may call a session: one thread at a time, of the process that made it, and no signal handler.

A signal handler runs in the middle of whatever the main thread was doing, a session at work
included.  The lock is taken by C code in one step, with the name of its holder: there is no moment
at which it is taken and nobody's.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

__all__ = ["Guard", "exclusive"]

P = ParamSpec("P")
R = TypeVar("R")


class Guard:
    """A lock that its own holder and other processes are refused, instead of waiting for ever."""

    def __init__(self) -> None:
        self.lock: Any = threading.RLock()
        self._process = os.getpid()

    def check(self) -> None:
        """Refuse whoever must not even wait for the lock."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this session belongs to process {self._process}, and this is process "
                f"{os.getpid()}, forked from it: both would give out the same decisions; let one "
                "process ask for all of them, or begin a session in each"
            )
        if self.lock._is_owned():
            raise RuntimeError(
                "the session was interrupted at work by a signal handler that calls it; "
                "let the handler set a flag, and act on it afterwards"
            )


class Guarded(Protocol):
    """What has a guard, and can put itself in order."""

    _guard: Guard

    def _recover(self) -> None:
        """Finish or drop what an exception has interrupted."""


G = TypeVar("G", bound=Guarded)


def exclusive(method: Callable[Concatenate[G, P], R]) -> Callable[Concatenate[G, P], R]:
    """Let a method run for one caller at a time, on an object that is in order."""

    @functools.wraps(method)
    def call(self: G, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._guard.check()
        with self._guard.lock:
            self._recover()
            return method(self, *args, **kwargs)

    return call
