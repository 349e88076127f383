"""One thread that changes experiments, many requests in one transaction.

All wait for this thread: it reads no experiment, compiles nothing, and a transaction ends after
some milliseconds, though requests are left.  Experiments take turns.

While a transaction is being made durable, requests gather; the next one takes them all.  So a
request costs little more than its share of a write to disk.  Clients that were answered together
ask again one after another: as many requests as last time are waited for, a millisecond at most,
since one transaction of eight takes far less than one of one and one of seven.

Nothing is answered before its transaction is committed; if that fails, all states that it has
changed are thrown away.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from sightline.jit import NotKeptError, only_kept
from sightline.service import direct, rows
from sightline.service.costs import size_held
from sightline.service.desk import Desk
from sightline.service.direct import Need
from sightline.service.entries import Entry
from sightline.service.loading import load_desk, reading_log
from sightline.service.metrics import Metrics
from sightline.service.outage import DatabaseAwayError
from sightline.service.problems import (
    Problem,
    being_compiled,
    defect,
    is_away,
    problem_of,
    unavailable,
)
from sightline.service.rows import Kept
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.turns import Turns

__all__ = ["Command", "Writer"]

_log = logging.getLogger("sightline.service")

#: Seconds that the first request of a transaction waits for as many as the last one had.
_PATIENCE = 0.001
#: Seconds after which a transaction takes no more requests.
_SHARE = 0.02
#: Seconds that it takes to fold what other services have written, for an entry and at most, and
#: entries that are always folded at once.
_FOLD, _LONGEST_FOLD, _FEW_LATER = 5e-5, 0.05, 2
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
        Makes the desk of a new experiment, whose log has its first entry.
    future : Any
        What waits for the answer; the writer does not look at it.
    answer : tuple, Problem or None
        Status and body, or a refusal, once it is known.
    unread : bool
        Whether there is no answer, since its experiment must be read: :meth:`Writer.prepare`.
    """

    verb: Verb
    experiment: str | None = None
    decision: str | None = None
    key: str | None = None
    unit: str | None = None
    make: Callable[[], Desk] | None = None
    future: Any = field(default=None)
    answer: Answer | Problem | None = None
    unread: bool = False


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

    Attributes
    ----------
    compiles : set of str
        Experiments for which kernels may be compiled, though others wait: what could be foreseen
        was compiled elsewhere.
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
        self._turns: Turns[Command] = Turns()
        self.compiles: set[str] = set()
        self._ends = math.inf  # when what is left is refused, by the monotonic clock
        self._moment = now()
        self._desks: OrderedDict[str, Desk] = OrderedDict()
        self._held = 0  # bytes of all desks
        self._ready: dict[str, Desk] = {}  # loaded by other threads
        self._behind: dict[str, Desk] = {}  # to be brought up to date by other threads
        self._where: OrderedDict[str, str] = OrderedDict()
        self._contested: set[str] = set()  # experiments of a transaction that waited for another
        self._expected = 1  # requests
        self._thread = threading.Thread(target=self._run, name="sightline-writer", daemon=True)

    def start(self) -> None:
        """Begin to take commands."""
        self._thread.start()

    def stop(self, patience: float = 1.0) -> None:
        """Carry out what was submitted, refuse what is left after some seconds, and end."""
        self._ends = time.monotonic() + patience
        self._queue.put(None)
        if self._thread.is_alive():
            self._thread.join(2.0 * patience)

    def moment(self) -> float:
        """Time of the present command, in seconds since 1970: one for all that it does."""
        return self._moment

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
        desk = self._behind.pop(experiment, None)
        with self._store.reading() as connection, reading_log(experiment):
            if desk is None:
                desk = load_desk(connection, experiment, self._settings, self.moment)
            else:
                desk.catch_up(rows.later_entries(connection, experiment, desk.log.last))
        if desk is not None:
            self._ready[experiment] = desk

    def loaded(self) -> list[str]:
        """Experiments in memory."""
        return list(self._desks)

    def with_windows(self) -> list[str]:
        """Experiments in memory in which a reward window may end with time."""
        found = []
        for name, desk in list(self._desks.items()):
            if desk.session.limits.seconds is not None and desk.session.live.decisions.open:
                found.append(name)
        return found

    def _run(self) -> None:
        with only_kept():
            while commands := self._next_batch():
                try:
                    self._carry_out(commands)
                except BaseException:  # a defect of ours; all others go on
                    _log.exception("the writer failed")
                    self._fail(commands, defect)
                self._deliver(commands)

    def _next_batch(self) -> list[Command]:
        """Take the next commands; none at the end."""
        with contextlib.suppress(queue.Empty):
            if not self._turns and self._ends == math.inf:
                self._enter(self._queue.get())
                until = time.monotonic() + _PATIENCE
                while len(self._turns) < self._expected and self._ends == math.inf:
                    self._enter(self._queue.get(timeout=max(until - time.monotonic(), 0.0)))
            while True:
                self._enter(self._queue.get_nowait())
        if time.monotonic() > self._ends:
            left = self._turns.take(len(self._turns), math.inf, self._cost)
            self._fail(left)
            self._deliver(left)
        taken = self._turns.take(self._settings.batch, _SHARE, self._cost)
        self._expected = len(taken)
        return taken

    def _enter(self, command: Command | None) -> None:
        """Let a command wait for its turn; None: there are no more."""
        if command is not None:
            if command.experiment is None and command.decision is not None:
                command.experiment = self._where.get(command.decision)
            self._turns.add(command.experiment, command)

    def _cost(self, experiment: str | None) -> float:
        """Seconds that a command of an experiment takes, about."""
        desk = self._desks.get(experiment or "")
        return 0.0 if desk is None else desk.cost

    def _carry_out(self, commands: list[Command]) -> None:
        """Carry out commands in one transaction."""
        desks: dict[str, Desk] = {}
        began = time.perf_counter()
        try:
            with self._store.writing() as connection:
                self._locate(connection, commands)
                self._leave_contested(connection, commands)
                self._take(connection, commands, desks)
                broken, culprits = self._perform_all(connection, commands, desks)
                events = self._write(connection, desks)
        except DatabaseAwayError as error:  # before anything was done
            for command in commands:
                command.answer = unavailable(error.seconds)
            return
        except Exception as error:
            names = {command.experiment for command in commands if command.experiment is not None}
            if direct.was_locked(error) and not names <= self._contested:
                self._contested |= names  # of which all that can be is done next, without waiting
                for command in commands:
                    command.unread = False
                self._turns.put_back((command.experiment, command) for command in commands)
                commands.clear()
            elif is_away(error):
                _log.warning("a transaction failed: %s", type(error).__name__)
                self._fail(commands)
            else:
                _log.exception("a transaction failed")
                self._fail(commands, defect)
            for name in desks:  # of commands that wait again, too
                self._forget(name)
            self._metrics.failures.inc()
            return
        finally:
            for desk in desks.values():
                desk.log.close()
        self._fail(command for command in commands if command.experiment in broken)
        compiling = {one.experiment for one, why in culprits if why.kind == "compiling"}
        for command in commands:
            if command.experiment in compiling:  # so that nobody looks for an outage
                command.answer = being_compiled(command.experiment or "")
        for command, answer in culprits:
            command.answer = answer
        for desk in desks.values():
            self._keep(desk)
        self._contested.difference_update(command.experiment or "" for command in commands)
        self._metrics.transaction(len(commands), events, time.perf_counter() - began)

    def _fail(
        self, commands: Iterable[Command], problem: Callable[[], Problem] | None = None
    ) -> None:
        """Answer why nothing was done, by default an outage, and forget what was.

        Refusals as well: they may be due to what was not done after all.
        """
        for command in commands:
            if command.experiment is not None:
                self._forget(command.experiment)
            command.answer = problem() if problem else unavailable(self._store.outage.left)
            command.unread = False

    def _forget(self, experiment: str) -> None:
        """Take a desk out of memory."""
        desk = self._desks.pop(experiment, None)
        if desk is not None:
            self._held -= desk.size

    def _keep(self, desk: Desk) -> None:
        for entry in desk.log.waiting:
            if entry.event.kind == "asked":
                self._where[entry.event.decision or ""] = desk.experiment
        while len(self._where) > _REMEMBERED:
            self._where.popitem(last=False)
        desk.committed()
        self._forget(desk.experiment)
        desk.size = size_held(desk.session.live)
        self._held += desk.size
        self._desks[desk.experiment] = desk
        while len(self._desks) > self._settings.loaded or (
            self._held > self._settings.memory and len(self._desks) > 1
        ):
            self._forget(next(iter(self._desks)))

    def _locate(self, connection: Connection, commands: list[Command]) -> None:
        """Find the experiments of decisions."""
        unknown = []
        for command in commands:
            if command.experiment is None and command.decision is not None:
                unknown.append(command)
        ids = sorted({command.decision for command in unknown if command.decision is not None})
        found = rows.experiments_of(connection, ids)
        for command in unknown:
            command.experiment = found.get(command.decision or "")

    def _leave_contested(self, connection: Connection, commands: list[Command]) -> None:
        """Refuse commands of experiments that another process, halted perhaps, does not release.

        They are taken out of the list: all others would wait for it.
        """
        names = sorted(self._contested & {command.experiment or "" for command in commands})
        if names and (held := direct.held_elsewhere(connection, names)):
            refused = [command for command in commands if command.experiment in held]
            commands[:] = [command for command in commands if command.experiment not in held]
            self._fail(refused)
            self._deliver(refused)

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
        if desk is None or not later:
            return desk
        if len(later) > _FEW_LATER and len(later) * max(desk.cost, _FOLD) > _LONGEST_FOLD:
            self._forget(need.experiment)
            self._behind[need.experiment] = desk  # of which another thread takes care
            return None
        try:
            desk.catch_up(later)
        except Exception:  # which concerns nobody else: read it again, elsewhere
            _log.exception("experiment %s could not be followed", need.experiment)
            self._forget(need.experiment)
            return None
        return desk

    def _perform_all(
        self, connection: Connection, commands: list[Command], desks: dict[str, Desk]
    ) -> tuple[set[str | None], list[tuple[Command, Problem]]]:
        """Carry out commands in their order, as many as there is time for.

        Others wait again, and are taken out of the list.  Names experiments that were spoilt, of
        which nothing is written, and which commands have done that, with their answers.
        """
        broken: set[str | None] = set()
        culprits: list[tuple[Command, Problem]] = []
        later: dict[Command, None] = {}
        held_up: set[str | None] = set()
        began = then = time.perf_counter()
        for command in commands:
            name = command.experiment
            if name in broken:
                continue
            if name in held_up or then - began > _SHARE:
                later[command] = None
                continue
            try:
                with only_kept(name not in self.compiles):
                    is_done = self._perform(connection, command, desks)
                if not is_done:
                    later[command] = None
                    held_up.add(name)
            except SQLAlchemyError:  # of the transaction, which is lost for all
                raise
            except Exception as error:
                broken.add(name)
                culprits.append((command, _answer_to(error, name)))
            last, then = then, time.perf_counter()
            self._turns.spend(name, then - last)
            desk = desks.get(name or "")
            if desk is not None:
                desk.cost += 0.2 * (then - last - desk.cost)
            if name in broken:
                desks.pop(name or "", None)
        if later:
            commands[:] = [command for command in commands if command not in later]
            self._turns.put_back((command.experiment, command) for command in later)
        return broken, culprits

    def _perform(self, connection: Connection, command: Command, desks: dict[str, Desk]) -> bool:
        """Carry out a command; return False if there is something to be done before.

        Raises
        ------
        Exception
            If its experiment is spoilt.
        """
        self._moment = self._now()
        if command.experiment is command.decision is None:
            rows.beat(connection, self._moment)
            command.answer = 200, {}
            return True
        desk = desks.get(command.experiment or "")
        if desk is None:
            self._begin(connection, command, desks)
            return True
        desk.expire()
        if desk.is_behind:
            desk.settle()
            return False
        before = len(desk.log.waiting)
        try:
            command.answer = 200, command.verb(desk)
            desk.settle()
            return True
        except SQLAlchemyError:
            raise
        except Exception as error:
            refused = problem_of(error)
            # a refusal changes nothing, but for the count of rewards that come too late
            if refused is None or any(e.event.kind != "late" for e in desk.log.waiting[before:]):
                raise
            command.answer = refused
        desk.settle()
        return True

    def _begin(self, connection: Connection, command: Command, desks: dict[str, Desk]) -> None:
        """Begin an experiment, or say that it must be read first, or that there is none."""
        name = command.experiment
        command.unread = name is not None and rows.last_of(connection, name) > 0
        if command.unread:
            return
        if name is not None and command.make is not None:
            desk = desks[name] = command.make()
            desk.log.connection = connection
            command.answer = 201, desk.described()
            desk.settle()
            return
        what = "decision" if name is None else "experiment"
        named = command.decision if name is None else name
        command.answer = Problem(404, f"unknown-{what}", f"there is no {what} {named!r}")

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


def _answer_to(error: Exception, experiment: str | None) -> Problem:
    """Answer to a request that has spoilt its experiment, of which nothing is written then."""
    if isinstance(error, NotKeptError):
        return being_compiled(experiment or "")
    _log.error("a request to experiment %s failed", experiment, exc_info=error)
    return defect()
