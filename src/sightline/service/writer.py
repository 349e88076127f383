"""The writer: one thread that changes experiments, many requests per transaction.

All requests wait for this thread.  It therefore loads no experiment and compiles nothing, and a
transaction ends after some milliseconds, even if requests are left.  Experiments share its time
fairly.

While a transaction is being made durable, requests gather, and the next transaction takes them all:
a request costs little more than its share of a write to disk.  Clients that were answered together
send their next requests one after another.  The writer waits for as many requests as last time, for
a millisecond at most, because one transaction of eight takes far less time than one of one and one
of seven.

No request is answered before its transaction is committed.  If the commit fails, all states that
the transaction has changed are discarded.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import logging
import math
import queue
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from sightline.jit import NotKeptError, only_kept
from sightline.service import errors, events
from sightline.service.events import Entry, Lookup, StoredSnapshot
from sightline.service.experiment import ExperimentWriter
from sightline.service.limits import memory_of
from sightline.service.loading import load_experiment, reading_log
from sightline.service.metrics import Metrics
from sightline.service.settings import Settings
from sightline.service.store import Store

_log = logging.getLogger("sightline.service")

#: Seconds that the first request of a transaction waits for as many as the last one had.
_PATIENCE = 0.001
#: Seconds after which a transaction takes no more requests.
_SHARE = 0.02
#: Seconds to replay an entry of another process, at least; seconds that may take in all; and the
#: number of entries that are always replayed at once.
_REPLAY, _MAX_REPLAY, _FEW_ENTRIES = 5e-5, 0.05, 2
#: Decisions whose experiment is remembered, so that the database need not be asked.
_REMEMBERED = 50_000

T = TypeVar("T")
Answer = tuple[int, dict[str, Any]]
Change = Callable[[ExperimentWriter], dict[str, Any]]


class FairQueue(Generic[T]):
    """Waiting requests, one line per experiment; the one that has used the least time is next.

    An experiment with few requests never waits for the line of another one.  Within an experiment
    requests keep their order.
    """

    def __init__(self) -> None:
        self._lines: dict[str | None, deque[T]] = {}
        self._used: dict[str | None, float] = {}  # seconds, since the queue was last empty
        self._level = 0.0  # time used by the experiment that was served last
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, name: str | None, request: T) -> None:
        """Append a request to the line of its experiment."""
        line = self._lines.get(name)
        if line is None:
            line = self._lines[name] = deque()
            # an idle experiment saves up no time
            self._used[name] = max(self._used.get(name, 0.0), self._level)
        line.append(request)
        self._count += 1

    def put_back(self, requests: Iterable[tuple[str | None, T]]) -> None:
        """Return requests that were taken and not executed to the front of their lines."""
        for name, request in reversed(list(requests)):
            if name not in self._lines:
                self.add(name, request)
            else:
                self._lines[name].appendleft(request)
                self._count += 1

    def take(self, limit: int, seconds: float, cost: Callable[[str | None], float]) -> list[T]:
        """Take the next requests: at least one, and no more than fit into a time.

        ``cost`` returns the seconds that a request of an experiment takes.
        """
        taken: list[T] = []
        heap = [(self._used[name], i, name) for i, name in enumerate(self._lines)]
        heapq.heapify(heap)
        while heap and len(taken) < limit and seconds > 0.0:
            used, i, name = heapq.heappop(heap)
            line, price = self._lines[name], cost(name)
            if taken and price > seconds:  # those before it do not wait for it
                break
            self._level = max(self._level, used)
            taken.append(line.popleft())
            seconds -= price
            if line:
                heapq.heappush(heap, (used + price, i, name))
            else:
                del self._lines[name]
        self._count -= len(taken)
        if not self._lines:  # no experiment waits, and the past does not matter
            self._used, self._level = {}, 0.0
        return taken

    def spend(self, name: str | None, seconds: float) -> None:
        """Record time that an experiment has used."""
        self._used[name] = max(self._used.get(name, 0.0), self._level) + seconds


@dataclass(eq=False, slots=True)
class Command:
    """A request to change an experiment, or the experiment of a decision.

    Without either, the command only writes the heartbeat.
    """

    change: Change
    experiment: str | None = None
    decision: str | None = None
    key: str | None = None  # the same request may have come before under this key,
    unit: str | None = None  # or for this unit
    #: Creates a new experiment, with the first entry of its log.
    make: Callable[[], ExperimentWriter] | None = None
    future: Any = None  # of the caller; the writer ignores it
    answer: Answer | errors.ApiError | None = None  # once it is done
    must_load: bool = False  # it was not executed: the experiment must be prepared first


class Writer:
    """The thread that changes experiments; see the module.

    It calls ``deliver`` with commands once their answers are durable.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        metrics: Metrics,
        deliver: Callable[[list[Command]], None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self._store, self._settings, self._metrics = store, settings, metrics
        self._deliver, self._now = deliver, now
        self._submitted: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._queue: FairQueue[Command] = FairQueue()
        #: Experiments whose kernels may be compiled here: a worker has compiled what it could.
        self.compiles: set[str] = set()
        self._deadline = math.inf  # monotonic time after which the rest is refused
        self._moment = now()
        self._loaded: OrderedDict[str, ExperimentWriter] = OrderedDict()
        self._memory = 0  # bytes of all loaded experiments
        self._failed: dict[str, frozenset[str]] = {}  # failed checks in the metrics
        self._prepared: dict[str, ExperimentWriter] = {}  # by other threads
        self._outdated: dict[str, ExperimentWriter] = {}  # for other threads to catch up
        self._experiments: OrderedDict[str, str] = OrderedDict()  # by decision
        self._contested: set[str] = set()  # experiments whose lock could not be taken
        self._expected = 1  # requests
        self._thread = threading.Thread(target=self._run, name="sightline-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, patience: float = 1.0) -> None:
        """Execute submitted commands, refuse what is left after some seconds, and end."""
        self._deadline = time.monotonic() + patience
        self._submitted.put(None)
        if self._thread.is_alive():
            self._thread.join(2.0 * patience)

    def moment(self) -> float:
        """Return the time of the present command, in seconds since 1970."""
        return self._moment

    def submit(self, command: Command) -> None:
        """Queue a command."""
        self._submitted.put(command)

    def has(self, experiment: str) -> bool:
        """Whether an experiment is in memory."""
        return experiment in self._loaded or experiment in self._prepared

    def prepare(self, experiment: str) -> None:
        """Load an experiment in the calling thread, so that the writer need not."""
        if self.has(experiment):  # by another request
            return
        found = self._outdated.pop(experiment, None)
        with self._store.reading() as connection, reading_log(experiment):
            if found is None:
                found = load_experiment(connection, experiment, self._settings, self.moment)
            else:
                found.catch_up(events.later_entries(connection, experiment, found.log.last))
        if found is not None:
            self._prepared[experiment] = found

    def loaded(self) -> list[str]:
        """Return the experiments in memory."""
        return list(self._loaded)

    def with_windows(self) -> list[str]:
        """Return the experiments in memory in which reward windows end by time."""
        return [
            name
            for name, one in list(self._loaded.items())
            if one.session.limits.seconds is not None and one.session.live.decisions.open
        ]

    def _run(self) -> None:
        with only_kept():
            while commands := self._next_batch():
                try:
                    self._execute(commands)
                except BaseException:  # a defect; other commands are still executed
                    _log.exception("the writer failed")
                    self._fail(commands, errors.internal_error)
                self._deliver(commands)

    def _next_batch(self) -> list[Command]:
        """Take the next commands; none at the end."""
        with contextlib.suppress(queue.Empty):
            if not self._queue and self._deadline == math.inf:
                self._enqueue(self._submitted.get())
                until = time.monotonic() + _PATIENCE
                while len(self._queue) < self._expected and self._deadline == math.inf:
                    self._enqueue(self._submitted.get(timeout=max(until - time.monotonic(), 0.0)))
            while True:
                self._enqueue(self._submitted.get_nowait())
        if time.monotonic() > self._deadline:
            left = self._queue.take(len(self._queue), math.inf, self._cost)
            self._fail(left)
            self._deliver(left)
        taken = self._queue.take(self._settings.batch, _SHARE, self._cost)
        self._expected = len(taken)
        return taken

    def _enqueue(self, command: Command | None) -> None:
        """Enqueue a command; None marks the end."""
        if command is not None:
            if command.experiment is None and command.decision is not None:
                command.experiment = self._experiments.get(command.decision)
            self._queue.add(command.experiment, command)

    def _cost(self, experiment: str | None) -> float:
        """Return the average seconds of a command of an experiment."""
        found = self._loaded.get(experiment or "")
        return 0.0 if found is None else found.cost

    def _execute(self, commands: list[Command]) -> None:
        """Execute commands in one transaction."""
        taken: dict[str, ExperimentWriter] = {}
        began = time.perf_counter()
        try:
            with self._store.writing() as connection:
                self._locate(connection, commands)
                self._refuse_contested(connection, commands)
                self._take(connection, commands, taken)
                failures = self._apply_all(connection, commands, taken)
                count = self._write(connection, taken)
        except errors.CircuitOpenError as error:  # nothing was done
            for command in commands:
                command.answer = errors.unavailable(error.seconds)
            return
        except Exception as error:
            names = {command.experiment for command in commands if command.experiment is not None}
            if events.was_locked(error) and not names <= self._contested:
                self._contested |= names  # the next transaction does not wait for their locks
                for command in commands:
                    command.must_load = False
                self._queue.put_back((command.experiment, command) for command in commands)
                commands.clear()
            elif errors.is_outage(error):
                _log.warning("a transaction failed: %s", type(error).__name__)
                self._fail(commands)
            else:
                _log.exception("a transaction failed")
                self._fail(commands, errors.internal_error)
            for name in taken:  # also those of commands that wait again
                self._forget(name)
            self._metrics.failures.inc()
            return
        finally:
            for one in taken.values():
                one.log.close()
        self._fail(command for command in commands if command.experiment in failures)
        for experiment, (failed, answer) in failures.items():
            if answer.kind == "compiling":  # the other commands wait for that, not for an outage
                for command in commands:
                    if command.experiment == experiment:
                        command.answer = errors.compiling(experiment or "")
            failed.answer = answer
        for one in taken.values():
            self._keep(one)
        self._contested.difference_update(command.experiment or "" for command in commands)
        self._metrics.batches.observe(len(commands))
        self._metrics.commits.observe(time.perf_counter() - began)
        self._metrics.events.inc(count)

    def _fail(
        self, commands: Iterable[Command], make: Callable[[], errors.ApiError] | None = None
    ) -> None:
        """Answer with an error, by default an outage, and discard the states of the experiments.

        This replaces refusals as well: they may follow from what was not written after all.
        """
        for command in commands:
            if command.experiment is not None:
                self._forget(command.experiment)
            left = self._store.breaker.seconds_left
            command.answer = errors.unavailable(left) if make is None else make()
            command.must_load = False

    def _forget(self, experiment: str) -> None:
        """Remove an experiment from memory."""
        found = self._loaded.pop(experiment, None)
        if found is not None:
            self._memory -= found.size
        for check in self._failed.pop(experiment, ()):
            self._metrics.checks.remove(experiment, check)

    def _keep(self, one: ExperimentWriter) -> None:
        """Keep an experiment in memory after a commit, and drop the least recently used ones."""
        for entry in one.log.uncommitted:
            if entry.event.kind == "asked":
                self._experiments[entry.event.decision or ""] = one.id
        while len(self._experiments) > _REMEMBERED:
            self._experiments.popitem(last=False)
        one.committed()
        self._forget(one.id)
        one.size = memory_of(one.session.live)
        self._memory += one.size
        self._loaded[one.id] = one
        if one.failed:
            self._failed[one.id] = one.failed
            for check in one.failed:
                self._metrics.checks.labels(one.id, check).set(1)
        while len(self._loaded) > self._settings.loaded or (
            self._memory > self._settings.memory and len(self._loaded) > 1
        ):
            self._forget(next(iter(self._loaded)))

    def _locate(self, connection: Connection, commands: list[Command]) -> None:
        """Find the experiments of decisions."""
        lost = [one for one in commands if one.experiment is None and one.decision is not None]
        ids = sorted({one.decision for one in lost if one.decision is not None})
        found = events.experiments_of(connection, ids)
        for command in lost:
            command.experiment = found.get(command.decision or "")

    def _refuse_contested(self, connection: Connection, commands: list[Command]) -> None:
        """Refuse commands of experiments that another, perhaps suspended process keeps locked.

        They leave the list: all others would wait for the lock.
        """
        names = sorted(self._contested & {command.experiment or "" for command in commands})
        if names and (held := events.locked_elsewhere(connection, names)):
            refused = [command for command in commands if command.experiment in held]
            commands[:] = [command for command in commands if command.experiment not in held]
            self._fail(refused)
            self._deliver(refused)

    def _take(
        self, connection: Connection, commands: list[Command], taken: dict[str, ExperimentWriter]
    ) -> None:
        """Lock the experiments until the commit, and bring their states up to date.

        They also get the first entries of requests with the same keys and units.
        """
        by_name: dict[str, list[Command]] = {}
        for command in commands:
            if command.experiment is not None:
                by_name.setdefault(command.experiment, []).append(command)
        names = sorted(by_name)  # in one order, so that no two processes wait for each other
        lookups = [self._lookup(name, by_name[name]) for name in names]
        results = events.lock_and_look_up(connection, lookups)
        for name, (later, known) in zip(names, results, strict=True):
            one = self._caught_up(name, later)
            if one is not None:
                one.log.connection = connection
                taken[name] = one
                for entry in known:
                    one.remember(entry)

    def _lookup(self, name: str, commands: list[Command]) -> Lookup:
        """Return what must be known of an experiment beyond what is in memory."""
        one, prepared = self._loaded.get(name), self._prepared.pop(name, None)
        may_be_behind = not self._store.exclusive
        if one is None and prepared is not None:
            one = self._loaded[name] = prepared
            may_be_behind = True
        keys = {command.key for command in commands if command.key}
        units = {command.unit for command in commands if command.unit}
        if one is not None:
            keys = {key for key in keys if not one.knows("key", key)}
            units = {unit for unit in units if not one.knows("unit", unit)}
        after = one.log.last if one is not None and may_be_behind else None
        return Lookup(name, after, sorted(keys), sorted(units))

    def _caught_up(self, name: str, later: list[Entry]) -> ExperimentWriter | None:
        one = self._loaded.get(name)
        if one is None or not later:
            return one
        if len(later) > _FEW_ENTRIES and len(later) * max(one.cost, _REPLAY) > _MAX_REPLAY:
            self._forget(name)
            self._outdated[name] = one  # another thread catches up
            return None
        try:
            one.catch_up(later)
        except Exception:  # concerns this experiment only; another thread loads it again
            _log.exception("experiment %s could not be replayed", name)
            self._forget(name)
            return None
        return one

    def _apply_all(
        self, connection: Connection, commands: list[Command], taken: dict[str, ExperimentWriter]
    ) -> dict[str | None, tuple[Command, errors.ApiError]]:
        """Apply commands in their order, as many as there is time for.

        The others leave the list and wait again.  Returns the experiments with a corrupted state,
        of which nothing is written, and the command that has caused it, with its answer.
        """
        failures: dict[str | None, tuple[Command, errors.ApiError]] = {}
        later: dict[Command, None] = {}
        held_up: set[str | None] = set()
        began = then = time.perf_counter()
        for command in commands:
            name = command.experiment
            if name in failures:
                continue
            if name in held_up or then - began > _SHARE:
                later[command] = None
                continue
            try:
                with only_kept(name not in self.compiles):
                    is_done = self._apply(connection, command, taken)
                if not is_done:
                    later[command] = None
                    held_up.add(name)
            except SQLAlchemyError:  # the transaction is lost for all commands
                raise
            except NotKeptError:
                failures[name] = command, errors.compiling(name or "")
            except Exception:
                _log.exception("a request to experiment %s failed", name)
                failures[name] = command, errors.internal_error()
            last, then = then, time.perf_counter()
            self._queue.spend(name, then - last)
            one = taken.get(name or "")
            if one is not None:
                one.cost += 0.2 * (then - last - one.cost)
            if name in failures:
                taken.pop(name or "", None)
        if later:
            commands[:] = [command for command in commands if command not in later]
            self._queue.put_back((command.experiment, command) for command in later)
        return failures

    def _apply(
        self, connection: Connection, command: Command, taken: dict[str, ExperimentWriter]
    ) -> bool:
        """Apply a command; False if more reward windows must end first.

        An exception means that the state of its experiment is corrupted.
        """
        self._moment = self._now()
        if command.experiment is command.decision is None:
            events.write_heartbeat(connection, self._moment)
            command.answer = 200, {}
            return True
        one = taken.get(command.experiment or "")
        if one is None:
            self._create(connection, command, taken)
            return True
        one.expire()
        if one.is_behind:
            one.finish_request()
            return False
        before = len(one.log.uncommitted)
        try:
            command.answer = 200, command.change(one)
        except SQLAlchemyError:
            raise
        except Exception as error:
            refused = errors.api_error_of(error)
            # a refusal changes nothing, except for the count of late rewards
            added = one.log.uncommitted[before:]
            if refused is None or any(entry.event.kind != "late" for entry in added):
                raise
            command.answer = refused
        one.finish_request()
        return True

    def _create(
        self, connection: Connection, command: Command, taken: dict[str, ExperimentWriter]
    ) -> None:
        """Create an experiment, or answer that it must be loaded first, or does not exist."""
        name = command.experiment
        command.must_load = name is not None and events.last_sequence(connection, name) > 0
        if command.must_load:
            return
        if name is not None and command.make is not None:
            one = taken[name] = command.make()
            one.log.connection = connection
            command.answer = 201, one.describe()
            one.finish_request()
        elif name is not None:
            command.answer = errors.unknown("experiment", name)
        else:
            command.answer = errors.unknown("decision", command.decision)

    def _write(self, connection: Connection, taken: dict[str, ExperimentWriter]) -> int:
        """Write all entries, snapshots and points of the history; return the number of entries."""
        entries = [(name, entry) for name, one in taken.items() for entry in one.log.uncommitted]
        count = events.append(connection, entries)
        for name, one in taken.items():
            if one.log.new_snapshot is not None:
                lifecycle = one.session.lifecycle.to_json()
                snapshot = StoredSnapshot(one.log.kept, one.log.new_snapshot, lifecycle)
                events.write_snapshot(connection, name, snapshot)
            if one.history is not None:
                content = json.dumps(one.history)
                events.write_history(connection, name, one.log.last, content)
        return count
