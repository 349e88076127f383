"""Calls that signal handlers do not interrupt.

Handlers run in the main thread, between any two instructions of the interpreter, and raise their
exceptions there.  Locks written in Python, such as those of numba, llvmlite and
``concurrent.futures``, may then stay locked permanently.  Code that uses them runs in a separate
thread here, while the main thread waits in one C call.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["call_uninterrupted"]

R = TypeVar("R")

_POLL_SECONDS = 0.2  # interval at which Ctrl-C is noticed where a wait cannot be interrupted


class _Call(Generic[R]):
    """A call in a separate thread, and its result."""

    def __init__(self, function: Callable[[], R]) -> None:
        self._function = function
        self._results: list[R] = []
        self._error: BaseException | None = None
        self._returned = False
        self._pending = _thread.allocate_lock()
        self._pending.acquire()
        # not a daemon: LLVM must not be at work when the interpreter exits
        self._thread = threading.Thread(target=self.work, name="uninterrupted", daemon=False)

    def start(self) -> None:
        """Start the thread; call this only from a thread without signal handlers."""
        try:
            self._thread.start()
        except RuntimeError:  # the system refuses another thread
            self.work()

    def work(self) -> None:
        """Call the function and store its result or exception."""
        try:
            self._results.append(self._function())
        except BaseException as error:
            self._error = error
        finally:
            self._returned = True
            self._pending.release()

    def wait(self) -> None:
        """Wait until the function has returned."""
        while not self._returned:  # an interrupted wait may have acquired the lock already
            self._pending.acquire(timeout=_POLL_SECONDS)

    def result(self) -> R:
        """Return the result, or raise the exception."""
        if self._error is not None:
            raise self._error
        return self._results[0]


def call_uninterrupted(function: Callable[[], R], stop: Callable[[], object] | None = None) -> R:
    """Call a function where no signal handler interrupts it.

    If a handler raises during the call, ``stop`` is called, and the exception is raised once the
    function has ended or another handler raises.  ``stop`` must be a C function, such as
    ``functools.partial`` of a queue's ``put``, since handlers do not interrupt these.  Without
    ``stop`` the exception is raised at once, while the function runs to its end.
    """
    if _thread.get_ident() != threading.main_thread().ident:
        return function()  # handlers run in the main thread only
    call = _Call(function)
    try:
        try:
            # One C function starts the call; Thread.start() is Python and could be interrupted.
            _thread.start_new_thread(call.start, ())
        except RuntimeError:
            call.work()
        call.wait()
    except BaseException:
        if stop is not None:
            stop()
            call.wait()
        raise
    return call.result()
