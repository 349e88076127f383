"""A process that sends signals to its parent, at moments that the parent asks for.

It is a process of its own because a thread would need the interpreter to send anything, and would
get it when a kernel runs: most moments would never be tried.
"""

from __future__ import annotations

import itertools
import mmap
import os
import random
import signal
import sys
import time
from types import FrameType

import sightline as sl

__all__ = ["SIGNALS", "Interrupted", "Interruptions"]

SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: What the handlers raise.
Interrupted = (KeyboardInterrupt, SystemExit)

_WANTED, _SENT = 0, 1  # places on the board; one process writes to each
_HERE, _LIBRARY = (os.path.dirname(file) for file in (__file__, sl.__file__))
_LOST_AFTER = 0.02  # seconds: of two equal signals that come together, one is delivered


class Interruptions:
    """Handlers of SIGINT and SIGTERM that raise, and a process that sends these in turn.

    A handler raises if it interrupts a call of the library; else another signal is sent.

    Parameters
    ----------
    seed : int
        Of the moments.
    longest : float
        Seconds from the request to the signal, at most; the least is a microsecond, and all orders
        of magnitude between them are as likely.

    Attributes
    ----------
    raised : int
        Exceptions, each in the middle of a call.
    """

    def __init__(self, seed: int, longest: float = 3e-3) -> None:
        self.raised = 0
        self._left = 0
        self._requested = 0.0
        self._longest = longest
        self._board = memoryview(mmap.mmap(-1, 16)).cast("q")  # shared with the sender
        for number in SIGNALS:
            signal.signal(number, self._handle)
        worker = os.getpid()
        if os.fork() == 0:
            _send(worker, self._board, seed, longest)

    @property
    def sent(self) -> int:
        """Signals that were sent."""
        return self._board[_SENT]

    def request(self, count: int = 1) -> None:
        """Ask for signals, the second and later ones microseconds after the first."""
        self._left = count
        self._ask_for(count)

    def _ask_for(self, count: int) -> None:
        self._requested = time.perf_counter()
        self._board[_WANTED] += count

    def coming(self) -> bool:
        """Whether signals that were asked for have still to raise."""
        late = time.perf_counter() - self._requested > self._longest + _LOST_AFTER
        if self._left and late and self._board[_SENT] == self._board[_WANTED]:
            self._ask_for(self._left)
        return self._left > 0

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._left == 0:
            return
        if not _in_library(frame):
            self._ask_for(1)
            return
        self._left -= 1
        self.raised += 1
        if number == signal.SIGTERM:
            sys.exit(3)
        raise KeyboardInterrupt


def _in_library(frame: FrameType | None) -> bool:
    """Whether a frame is of a call of the library, and not yet back in a file of this package."""
    while frame is not None and not frame.f_code.co_filename.startswith(_HERE):
        if frame.f_code.co_filename.startswith(_LIBRARY):
            return True
        frame = frame.f_back
    return False


def _send(worker: int, board: memoryview, seed: int, longest: float) -> None:
    for number in SIGNALS:  # a terminal sends Ctrl-C to all
        signal.signal(number, signal.SIG_IGN)
    rng = random.Random(seed)
    numbers = itertools.cycle(SIGNALS)
    while os.getppid() == worker:
        count = board[_WANTED] - board[_SENT]
        if count == 0:
            time.sleep(2e-5)
            continue
        _wait(1e-6 * (longest / 1e-6) ** rng.random())
        for _ in range(count):
            os.kill(worker, next(numbers))
            board[_SENT] += 1
            _wait(1e-6 * 200.0 ** rng.random())
    os._exit(0)


def _wait(seconds: float) -> None:
    """Spin: a sleep is never as short as what is wanted here."""
    end = time.perf_counter() + seconds
    if seconds > 0.02:
        time.sleep(seconds - 0.01)
    while time.perf_counter() < end:
        pass
