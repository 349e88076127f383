"""Lower bounds c* at the present estimates, computed in a worker process.

A request gets the last result, which may be a little older than the log.  A new computation begins
if the log has grown by 2 % since.  One runs at a time, with a time limit.
"""

from __future__ import annotations

import json
import logging
import subprocess
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from sightline.service.experiment import next_history_point
from sightline.service.worker import run_worker

_log = logging.getLogger("sightline.service")
_MAX_SIZE = 200_000  # features of all options: to describe more would delay decisions
_MAX_RESULTS = 1000


class BoundResult(NamedTuple):
    """Lower bound of an experiment: value and bracket after some entry, or why there is none."""

    values: dict[str, Any] | None
    reason: str | None
    again: int = 0  # number of the entry from which on it is computed again


class BoundCache:
    """Lower bounds of all experiments; ``limit`` is in seconds, and 0 computes none."""

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._results: OrderedDict[str, BoundResult] = OrderedDict()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._timer: threading.Timer | None = None
        self._is_busy = self._is_closed = False

    def get(
        self, experiment: str, sequence: int, size: int, describe: Callable[[], dict[str, Any]]
    ) -> BoundResult:
        """Return the last result, and start a new computation if it is outdated.

        ``sequence`` is the number of the last entry, ``size`` that of the features of all options;
        ``describe`` describes the estimated problem, or raises ValueError.
        """
        if self._limit <= 0.0:
            return BoundResult(None, "this service computes no bounds")
        if size > _MAX_SIZE:
            return BoundResult(None, f"the options have more than {_MAX_SIZE:,} features together")
        with self._lock:
            known = self._results.get(experiment)
            if known is None:
                known = BoundResult(None, "it is being computed: ask again")
            begins = sequence >= known.again and not self._is_busy and not self._is_closed
            self._is_busy |= begins
        if not begins:
            return known
        try:
            arguments = (experiment, sequence, describe())
        except ValueError as error:
            self._keep(experiment, BoundResult(None, str(error), next_history_point(sequence)))
        else:
            threading.Thread(target=self._compute, args=arguments, daemon=True).start()
        return known

    def _compute(self, experiment: str, sequence: int, description: dict[str, Any]) -> None:
        """Compute in a worker, which is killed at the time limit."""
        found = BoundResult(None, "it could not be computed", 2 * sequence)  # not again soon
        until = time.monotonic() + self._limit
        try:
            text = run_worker("bound", description, self._started)
            if text:
                values = json.loads(text)
                reason = values.get("reason")
                known = None if reason else values | {"sequence": sequence}
                found = BoundResult(known, reason, next_history_point(sequence))
            elif time.monotonic() >= until:
                found = found._replace(reason=f"it takes longer than {self._limit:g} seconds")
        except Exception:
            _log.exception("the bound of experiment %s could not be computed", experiment)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            self._keep(experiment, found)

    def _started(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._process = process
            if self._is_closed:
                process.kill()
        self._timer = threading.Timer(self._limit, process.kill)
        self._timer.start()

    def _keep(self, experiment: str, found: BoundResult) -> None:
        with self._lock:
            self._results[experiment] = found
            self._results.move_to_end(experiment)
            while len(self._results) > _MAX_RESULTS:
                self._results.popitem(last=False)
            self._is_busy = False

    def close(self) -> None:
        """Abort the computation."""
        with self._lock:
            self._is_closed = True
            if self._process is not None:
                self._process.kill()
