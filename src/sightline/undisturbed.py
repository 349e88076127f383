"""Calls that no signal handler interrupts.

Handlers run in the main thread, between any two instructions of the interpreter, and what they
raise comes out there.  Locks that are written in Python, such as those of numba, llvmlite and
``concurrent.futures``, can then be left taken, and whoever wants them next waits for ever.  Code
that uses them runs in a thread of its own here, while the main thread waits in one call of C.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["undisturbed"]

R = TypeVar("R")

_POLL_SECONDS = 0.2  # where a wait cannot be interrupted, Ctrl-C is seen this often


class _Call(Generic[R]):
    """A call in a thread of its own, and what became of it."""

    def __init__(self, function: Callable[[], R]) -> None:
        self._function = function
        self._results: list[R] = []
        self._error: BaseException | None = None
        self._returned = False
        self._pending = _thread.allocate_lock()
        self._pending.acquire()
        # The interpreter waits for it when it ends: LLVM must not be at work then.
        self._thread = threading.Thread(target=self.work, name="undisturbed", daemon=False)

    def start(self) -> None:
        """Begin; to be called from a thread that nothing interrupts."""
        try:
            self._thread.start()
        except RuntimeError:  # there can be no more threads
            self.work()

    def work(self) -> None:
        """Do it."""
        try:
            self._results.append(self._function())
        except BaseException as error:
            self._error = error
        finally:
            self._returned = True
            self._pending.release()

    def wait(self) -> None:
        """Wait until it has returned."""
        while not self._returned:  # a wait that is interrupted may have taken the lock already
            self._pending.acquire(timeout=_POLL_SECONDS)

    def result(self) -> R:
        """Return what was returned, or raise what was raised."""
        if self._error is not None:
            raise self._error
        return self._results[0]


def undisturbed(function: Callable[[], R], stop: Callable[[], object] | None = None) -> R:
    """Call a function where no signal handler interrupts it.

    Parameters
    ----------
    function : callable
        What is called.
    stop : callable, optional
        What is called if a handler raises meanwhile; then the end of the function is waited for,
        unless a second one raises.  It must be a C function, such as ``functools.partial`` of a
        queue's ``put``, for these are called whole.  Without it the exception comes out at once,
        and the function goes on to its end.
    """
    if _thread.get_ident() != threading.main_thread().ident:
        return function()  # handlers run elsewhere
    call = _Call(function)
    try:
        try:
            # One C function, after which the call is on its way: Thread.start() is Python.
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
