"""One thread that changes experiments, many requests in one transaction.

While a transaction is being made durable, requests gather; the next one takes them all.  So a
request costs little more than its share of a write to disk.  Clients that were answered together
ask again one after another: as many requests as last time are waited for, a millisecond at most,
since one transaction of eight takes far less than one of one and one of seven.

Nothing is answered before its transaction is committed; if that fails, all states that it has
changed are thrown away.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from sightline.service import direct, rows
from sightline.service.desk import Desk
from sightline.service.direct import Need
from sightline.service.entries import Entry
from sightline.service.loading import load_desk
from sightline.service.metrics import Metrics
from sightline.service.outage import DatabaseAwayError
from sightline.service.problems import Problem, problem_of, unavailable
from sightline.service.rows import Kept
from sightline.service.settings import Settings
from sightline.service.store import Store

__all__ = ["Command", "Writer"]

_log = logging.getLogger("sightline.service")

#: Seconds that the first request of a transaction waits for as many as the last one had.
_PATIENCE = 0.001
#: Decisions whose experiment is remembered, so that the database need not be asked.
_REMEMBERED = 50_000

Answer = tuple[int, dict[str, Any]]
Verb = Callable[[Desk], dict[str, Any]]


@dataclass(eq=False, slots=True)
class Command:
    """Something to be done to an experiment.

    Attributes
    ----------
    verb : callable
        What to do, given the desk of the experiment.
    experiment : str or None
        Which; None where it is that of a decision.  Without either, something is written only to
        find out whether that is possible.
    decision : str or None
        Decision that it is about.
    key, unit : str or None
        Under which the same request may have come before.
    make : callable, optional
        Makes the desk of a new experiment.
    future : Any
        What waits for the answer; the writer does not look at it.
    answer : tuple, Problem or None
        Status and body, or a refusal, once it is known.
    """

    verb: Verb
    experiment: str | None = None
    decision: str | None = None
    key: str | None = None
    unit: str | None = None
    make: Callable[[], Desk] | None = None
    future: Any = field(default=None)
    answer: Answer | Problem | None = None


class Writer:
    """The thread that writes; see the module.

    Parameters
    ----------
    store : Store
        Where to.
    settings : Settings
        Limits.
    metrics : Metrics
        What is counted.
    deliver : callable
        Called with commands that have their answers, when these are durable.
    now : callable
        Clock in seconds since 1970.
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
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._desks: OrderedDict[str, Desk] = OrderedDict()
        self._ready: dict[str, Desk] = {}  # loaded by other threads
        self._where: OrderedDict[str, str] = OrderedDict()
        self._expected = 1  # requests
        self._thread = threading.Thread(target=self._run, name="sightline-writer", daemon=True)

    def start(self) -> None:
        """Begin to take commands."""
        self._thread.start()

    def stop(self) -> None:
        """Carry out what was submitted, and end."""
        self._queue.put(None)
        self._thread.join()

    def submit(self, command: Command) -> None:
        """Have a command carried out."""
        self._queue.put(command)

    def has(self, experiment: str) -> bool:
        """Whether an experiment is in memory."""
        return experiment in self._desks or experiment in self._ready

    def prepare(self, experiment: str) -> None:
        """Read an experiment in the calling thread, so that the writing one need not."""
        if self.has(experiment):  # somebody else has asked for it meanwhile
            return
        with self._store.reading() as connection:
            desk = load_desk(connection, experiment, self._settings, self._now)
        if desk is not None:
            self._ready[experiment] = desk

    def loaded(self) -> list[str]:
        """Experiments in memory."""
        return list(self._desks)

    def with_windows(self) -> list[str]:
        """Experiments in memory in which a reward window may end with time."""
        found = []
        for name, desk in list(self._desks.items()):
            if desk.session.limits.seconds is not None and desk.session.live.ledger.open:
                found.append(name)
        return found

    def _run(self) -> None:
        while True:
            batch = self._next_batch()
            stopping = None in batch
            commands = [command for command in batch if command is not None]
            if commands:
                try:
                    self._carry_out(commands)
                except BaseException:  # a defect of ours; all others go on
                    _log.exception("the writer failed")
                    self._fail(commands)
                self._deliver(commands)
            if stopping:
                return

    def _next_batch(self) -> list[Command | None]:
        batch = [self._queue.get()]
        until = time.monotonic() + _PATIENCE
        with contextlib.suppress(queue.Empty):
            while len(batch) < self._expected and batch[-1] is not None:
                batch.append(self._queue.get(timeout=max(until - time.monotonic(), 0.0)))
        with contextlib.suppress(queue.Empty):
            while len(batch) < self._settings.batch:
                batch.append(self._queue.get_nowait())
        self._expected = len(batch)
        return batch

    def _carry_out(self, commands: list[Command]) -> None:
        """Carry out commands in one transaction."""
        desks: dict[str, Desk] = {}
        began = time.perf_counter()
        try:
            with self._store.writing() as connection:
                self._locate(connection, commands)
                self._take(connection, commands, desks)
                broken = self._perform_all(connection, commands, desks)
                events = self._write(connection, desks)
        except DatabaseAwayError as error:  # before anything was done
            for command in commands:
                command.answer = unavailable(error.seconds)
            return
        except Exception as error:
            _log.warning("a transaction failed: %s", type(error).__name__)
            self._fail(commands)
            self._metrics.failures.inc()
            return
        finally:
            for desk in desks.values():
                desk.log.close()
        self._fail(command for command in commands if command.experiment in broken)
        for desk in desks.values():
            self._keep(desk)
        self._metrics.transaction(len(commands), events, time.perf_counter() - began)

    def _fail(self, commands: Iterable[Command]) -> None:
        """Answer that nothing was done, and forget what was.

        Refusals as well: they may be due to what was not done after all.
        """
        for command in commands:
            if command.experiment is not None:
                self._desks.pop(command.experiment, None)
            command.answer = unavailable(self._store.outage.left)

    def _keep(self, desk: Desk) -> None:
        for entry in desk.log.waiting:
            if entry.event.kind == "asked":
                self._where[entry.event.decision or ""] = desk.experiment
        while len(self._where) > _REMEMBERED:
            self._where.popitem(last=False)
        desk.committed()
        self._desks[desk.experiment] = desk
        self._desks.move_to_end(desk.experiment)
        while len(self._desks) > self._settings.loaded:
            self._desks.popitem(last=False)

    def _locate(self, connection: Connection, commands: list[Command]) -> None:
        """Find the experiments of decisions."""
        unknown = []
        for command in commands:
            if command.experiment is None and command.decision is not None:
                command.experiment = self._where.get(command.decision)
                if command.experiment is None:
                    unknown.append(command)
        ids = sorted({command.decision for command in unknown if command.decision is not None})
        found = rows.experiments_of(connection, ids)
        for command in unknown:
            command.experiment = found.get(command.decision or "")

    def _take(
        self, connection: Connection, commands: list[Command], desks: dict[str, Desk]
    ) -> None:
        """Take the desks of experiments, up to date and nobody else's until the commit.

        They are told of requests that came before under the same keys, or for the same units.
        """
        by_name: dict[str, list[Command]] = {}
        for command in commands:
            if command.experiment is not None:
                by_name.setdefault(command.experiment, []).append(command)
        names = sorted(by_name)  # in one order, so that no two processes wait for each other
        needs = [self._need(name, by_name[name]) for name in names]
        for need, found in zip(needs, direct.take(connection, needs), strict=True):
            desk = self._desk(connection, need, found.later)
            if desk is not None:
                desk.log.connection = connection
                desks[need.experiment] = desk
                for entry in found.known:
                    desk.remember(entry)

    def _need(self, name: str, commands: list[Command]) -> Need:
        """Say what must be known of an experiment beyond what is in memory."""
        desk, ready = self._desks.get(name), self._ready.pop(name, None)
        behind = not self._store.alone
        if desk is None and ready is not None:
            desk = self._desks[name] = ready
            behind = True
        keys = {one.key for one in commands if one.key}
        units = {one.unit for one in commands if one.unit}
        if desk is not None:
            keys = {key for key in keys if not desk.knows("key", key)}
            units = {unit for unit in units if not desk.knows("unit", unit)}
        after = desk.log.last if desk is not None and behind else None
        return Need(name, after, sorted(keys), sorted(units))

    def _desk(self, connection: Connection, need: Need, later: list[Entry]) -> Desk | None:
        desk = self._desks.get(need.experiment)
        if desk is None:
            return load_desk(connection, need.experiment, self._settings, self._now)
        if len(later) == direct.MOST_LATER:
            last = later[-1].event.sequence
            more = rows.later_entries(connection, need.experiment, last)
            desk.catch_up(itertools.chain(later, more))
        elif later:
            desk.catch_up(later)
        return desk

    def _perform_all(
        self, connection: Connection, commands: list[Command], desks: dict[str, Desk]
    ) -> set[str | None]:
        """Carry out commands in their order; name experiments that a defect of ours has spoilt."""
        broken: set[str | None] = set()
        for command in commands:
            if command.experiment in broken:
                continue
            try:
                self._perform(connection, command, desks)
            except SQLAlchemyError:
                raise
            except Exception:
                _log.exception("a command failed")
                broken.add(command.experiment)
                desks.pop(command.experiment or "", None)
        return broken

    def _perform(self, connection: Connection, command: Command, desks: dict[str, Desk]) -> None:
        if command.experiment is command.decision is None:
            rows.beat(connection, self._now())
            command.answer = 200, {}
            return
        desk = desks.get(command.experiment or "")
        try:
            if desk is None and command.make is not None and command.experiment is not None:
                desk = desks[command.experiment] = command.make()
                desk.log.connection = connection
                command.answer = 201, desk.begin()
                desk.settle()
                return
            if desk is None:
                what = "decision" if command.experiment is None else "experiment"
                named = command.decision if command.experiment is None else command.experiment
                raise Problem(404, f"unknown-{what}", f"there is no {what} {named!r}")
            command.answer = 200, command.verb(desk)
        except SQLAlchemyError:  # of the transaction, which is lost for all
            raise
        except Exception as error:
            refused = problem_of(error)
            if refused is None:
                raise
            command.answer = refused
        if desk is not None:
            desk.settle()

    def _write(self, connection: Connection, desks: dict[str, Desk]) -> int:
        entries = [(name, entry) for name, desk in desks.items() for entry in desk.log.waiting]
        count = direct.append(connection, entries)
        for name, desk in desks.items():
            if desk.log.content is not None:
                notes = desk.session.notes.written()
                kept = Kept(desk.log.kept, desk.log.content, notes)
                rows.write_snapshot(connection, name, kept)
            if desk.look is not None:
                rows.write_look(connection, name, desk.log.last, desk.look)
        return count
