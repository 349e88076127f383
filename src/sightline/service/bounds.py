"""c* at the present estimates: found beside the service, in a process that nobody waits for.

Whoever asks gets what is known, which may be a little older than the log; a new computation begins
if the log has grown by 2 % since.  There is one at a time, and it is ended after a while.
"""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from sightline.service.looks import next_look

__all__ = ["Bound", "Bounds"]

_log = logging.getLogger("sightline.service")
_MOST = 200_000  # features of all options: with more, describing them would take time of decisions
_KEPT = 1000  # experiments


class Bound(NamedTuple):
    """What is known of c* of an experiment.

    Attributes
    ----------
    values : dict or None
        ``value``, ``lower``, ``upper``, and ``sequence``, the entry after which it was estimated.
    reason : str or None
        Why there is none.
    again : int
        Number of the entry from which on it is computed anew.
    """

    values: dict[str, Any] | None
    reason: str | None
    again: int = 0


class Bounds:
    """What is known of all experiments.

    Parameters
    ----------
    limit : float
        Seconds after which a computation is given up; 0: nothing is computed.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._known: OrderedDict[str, Bound] = OrderedDict()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._is_busy = self._is_closed = False

    def of(
        self, experiment: str, sequence: int, size: int, describe: Callable[[], dict[str, Any]]
    ) -> Bound:
        """Say what is known, and see to it that more is known later.

        Parameters
        ----------
        experiment : str
            Which.
        sequence : int
            Number of its last entry.
        size : int
            Number of features of all its options.
        describe : callable
            Describes the estimated problem; it may raise ValueError.
        """
        if self._limit <= 0.0:
            return Bound(None, "this service computes no bounds")
        if size > _MOST:
            return Bound(None, f"there are more than {_MOST:,} features of all options together")
        with self._lock:
            known = self._known.get(experiment, Bound(None, "it is being computed: ask again"))
            begins = sequence >= known.again and not self._is_busy and not self._is_closed
            self._is_busy |= begins
        if begins:
            self._begin(experiment, sequence, describe)
        return known

    def _begin(
        self, experiment: str, sequence: int, describe: Callable[[], dict[str, Any]]
    ) -> None:
        try:
            written = json.dumps(describe())
        except ValueError as error:
            self._keep(experiment, Bound(None, str(error), next_look(sequence)))
            return
        arguments = (experiment, sequence, written)
        threading.Thread(target=self._compute, args=arguments, daemon=True).start()

    def _compute(self, experiment: str, sequence: int, written: str) -> None:
        found = Bound(None, "it could not be computed", 2 * sequence)
        try:
            found = self._ask(sequence, written)
        except subprocess.TimeoutExpired:
            reason = f"it takes longer than {self._limit:g} seconds"
            found = Bound(None, reason, 2 * sequence)  # which is not tried soon again
        except Exception:
            _log.exception("the bound of experiment %s could not be computed", experiment)
        finally:
            self._keep(experiment, found)

    def _ask(self, sequence: int, written: str) -> Bound:
        """Let a process compute; it is killed if it takes too long."""
        pipe = subprocess.PIPE
        command = [sys.executable, "-m", "sightline.service.bound_process"]
        with self._lock:
            if self._is_closed:
                return Bound(None, "the service ends")
            process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
            self._process = process
        until = time.monotonic() + self._limit
        limit = threading.Timer(self._limit, process.kill)
        limit.start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with contextlib.suppress(BrokenPipeError):  # of one that was killed
                process.stdin.write(f"{written}\n")
                process.stdin.flush()
            said = process.stdout.readline()  # its input stays open: it ends with us
        finally:
            limit.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    stream.close()
        if not said and time.monotonic() >= until:
            raise subprocess.TimeoutExpired(command, self._limit)
        answer = json.loads(said)
        if "reason" in answer:
            return Bound(None, answer["reason"], next_look(sequence))
        return Bound({**answer, "sequence": sequence}, None, next_look(sequence))

    def _keep(self, experiment: str, found: Bound) -> None:
        with self._lock:
            self._known[experiment] = found
            self._known.move_to_end(experiment)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            self._is_busy = False

    def close(self) -> None:
        """End what is under way."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
