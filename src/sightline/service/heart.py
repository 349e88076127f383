"""The service without HTTP: its writer, its readers, and what connects them to an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import subprocess
import threading
import time
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sightline.jit import NotKeptError, only_kept
from sightline.service import rows
from sightline.service.beginning import begin
from sightline.service.bodies import Specification
from sightline.service.desk import Desk
from sightline.service.loading import begun_with, compile_apart, warm
from sightline.service.log import PendingLog
from sightline.service.metrics import Metrics
from sightline.service.problems import Problem, being_compiled, problem_of, unavailable
from sightline.service.readers import Readers
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import Tokens
from sightline.service.writer import Answer, Command, Writer
from sightline.sessions.view import view_of

__all__ = ["Heart"]

R = TypeVar("R")

_log = logging.getLogger("sightline.service")

#: Seconds for which a check of health holds: strangers may ask, and each check is a write.
_HEALTH_HOLDS = 1.0
_HEALTH_PATIENCE = 10.0
#: Seconds that are waited for readers when the service ends.
_LONGEST_END = 2.0
#: How often an experiment is read for one request, before it is refused.
_TRIES = 5
#: Experiments that are begun at the same time; each has a body in memory.
_MOST_CREATIONS = 16


class Heart:
    """All parts of a running service.

    Parameters
    ----------
    store : Store
        The database.
    settings : Settings
        Limits.
    now : callable
        Clock in seconds since 1970.
    """

    def __init__(
        self, store: Store, settings: Settings, now: Callable[[], float] = time.time
    ) -> None:
        self.store, self.settings, self.now = store, settings, now
        self.metrics = Metrics()
        self.readers = Readers(store, settings)
        self.tokens = Tokens(store, settings.loopback, settings.token_refresh)
        self._writer = Writer(store, settings, self.metrics, self._deliver, now)
        # of its own, so that readers who wait for the disk take no thread from those who decide
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="sightline-reader")
        # one: eight exports at once held the interpreter's lock for 0.3 s
        self._exporter = ThreadPoolExecutor(1, thread_name_prefix="sightline-exporter")
        # two each, so that one that takes long does not keep all others waiting
        self._loader = ThreadPoolExecutor(2, thread_name_prefix="sightline-loader")
        self._maker = ThreadPoolExecutor(2, thread_name_prefix="sightline-maker")
        self._compiler = ThreadPoolExecutor(1, thread_name_prefix="sightline-compiler")
        self._compiling: dict[str, asyncio.Future[None]] = {}
        self._process: subprocess.Popen[str] | None = None
        self._is_ending = False
        self._creations = 0  # under way
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._health = -float("inf"), True

    async def start(self) -> None:
        """Begin to take commands."""
        self._loop = asyncio.get_running_loop()
        self._writer.start()
        if self.settings.sweep > 0:
            self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Finish what was begun."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        self._is_ending = True
        if self._process is not None:
            self._process.kill()
        await asyncio.get_running_loop().run_in_executor(None, self._writer.stop)
        self.readers.bounds.close()
        ending = [
            threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
            for pool in (self._pool, self._exporter, self._loader, self._maker, self._compiler)
        ]
        for thread in ending:
            thread.start()
        until = time.monotonic() + _LONGEST_END
        for thread in ending:  # what takes longer has nobody who waits for it
            thread.join(max(until - time.monotonic(), 0.0))

    def _deliver(self, commands: list[Command]) -> None:
        """Hand over answers; called by the writing thread."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(_resolve, commands)

    async def perform(self, command: Command) -> Answer:
        """Have a command carried out, and wait until that is durable."""
        if (left := self.store.outage.left) > 0.0:
            raise unavailable(left)
        loop = asyncio.get_running_loop()
        for _ in range(_TRIES):
            name = command.experiment
            if name is not None and command.make is None and not self._writer.has(name):
                # reading it may take seconds, in which the writer can do something else
                await self._prepare(name)
            command.future, command.unread = loop.create_future(), False
            self._writer.submit(command)
            await command.future
            if not command.unread:
                break
            command.make = None  # it was begun by somebody else meanwhile
        if isinstance(command.answer, Problem):
            if command.answer.kind == "compiling":
                self._compile(command.experiment or "")
            raise command.answer
        if command.answer is None:
            raise unavailable()
        return command.answer

    async def _prepare(self, experiment: str) -> None:
        """Read an experiment, so that the writer need not."""
        try:
            await self._apart(self._loader, experiment, self._writer.prepare, experiment)
        except NotKeptError:
            self._compile(experiment)
            raise being_compiled(experiment) from None

    async def create(self, experiment: str, wanted: Specification) -> Answer:
        """Begin an experiment, or find that it was begun in the same way."""

        def compare(desk: Desk) -> dict[str, Any]:
            if desk.wanted.model_dump() != wanted.model_dump():
                raise Problem(
                    409, "other-experiment", f"experiment {experiment} was begun with another body"
                )
            return desk.described()

        if self._creations >= _MOST_CREATIONS:
            raise Problem(
                503,
                "busy",
                f"{_MOST_CREATIONS} experiments are being begun: send it again",
                {"Retry-After": "2"},
            )
        self._creations += 1
        try:
            make = await self._made(experiment, wanted)
        finally:
            self._creations -= 1
        return await self.perform(Command(compare, experiment, make=make))

    async def _made(self, experiment: str, wanted: Specification) -> Callable[[], Desk] | None:
        arguments = self._maker, experiment, self._make, experiment, wanted
        try:
            return await self._apart(*arguments)
        except NotKeptError:
            await self._compile(experiment, wanted)
        try:
            return await self._apart(*arguments)
        except NotKeptError:  # it could not be compiled elsewhere
            self._writer.compiles.add(experiment)
            return await self._apart(*arguments)

    def _make(self, experiment: str, wanted: Specification) -> Callable[[], Desk] | None:
        """Do all that takes long before the writer is asked; None if there is the experiment."""
        with self.store.reading() as connection:
            if rows.last_of(connection, experiment) > 0:
                return None
        session = begin(wanted, self.settings)
        content = session.snapshot()
        warm(content)
        view_of(session.live)  # which keeps what depends on options only, for the writer
        compressed = zlib.compress(content, 1)
        body = json.dumps(wanted.model_dump(), allow_nan=False)

        def make() -> Desk:
            log = PendingLog(experiment)
            session.write_to(log, self._writer.moment)
            desk = Desk(session, log, wanted, self.settings, self._writer.moment)
            log.note("created", self._writer.moment(), body=body)
            log.keep_snapshot(compressed)
            return desk

        return make

    async def _apart(
        self, pool: ThreadPoolExecutor, experiment: str, function: Callable[..., R], *arguments: Any
    ) -> R:
        """Call a function in a thread, where it compiles nothing that was not foreseen.

        Raises
        ------
        NotKeptError
            If a kernel of the experiment must be compiled first.
        """
        only = experiment not in self._writer.compiles

        def call() -> R:
            with only_kept(only):
                return function(*arguments)

        return await self._run(pool, call)

    def _compile(
        self, experiment: str, wanted: Specification | None = None
    ) -> asyncio.Future[None]:
        """Have the kernels of an experiment compiled, and say when that is done.

        Parameters
        ----------
        experiment : str
            Which.
        wanted : Specification, optional
            What it is; without it, it must have begun.
        """
        found = self._compiling.get(experiment)
        if found is None:
            loop = asyncio.get_running_loop()
            found = loop.run_in_executor(self._compiler, self._compile_apart, experiment, wanted)
            self._compiling[experiment] = found
            found.add_done_callback(lambda _: self._compiling.pop(experiment))
        return found

    def _compile_apart(self, experiment: str, wanted: Specification | None) -> None:
        """Wait for a process that compiles.

        For an experiment that has begun it compiles everything.  What that leaves out is compiled
        here, when it is used.
        """
        everything = wanted is None
        try:
            if wanted is None:
                with self.store.reading() as connection:
                    (first,) = rows.entries_after(connection, experiment, 0, 1)
                wanted = begun_with(first)
            compile_apart(wanted, everything, self._started)
        except Exception:
            _log.exception("code for experiment %s could not be compiled apart", experiment)
        if everything:
            self._writer.compiles.add(experiment)

    def _started(self, process: subprocess.Popen[str]) -> None:
        """Take note of a process, which is ended with the service."""
        self._process = process
        if self._is_ending:
            process.kill()

    async def read(self, view: Callable[..., R], *arguments: Any) -> R:
        """Call a function that reads, in a thread for readers."""
        experiment = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        try:
            return await self._apart(self._pool, experiment, view, self.readers, *arguments)
        except NotKeptError:
            self._compile(experiment)
            raise being_compiled(experiment) from None

    async def export(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Go through the pieces of an export; those of several exports take turns."""
        while (piece := await self._run(self._exporter, next, pieces, None)) is not None:
            yield piece

    async def _run(
        self, pool: ThreadPoolExecutor, function: Callable[..., R], *arguments: Any
    ) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
        except Exception as error:
            refused = problem_of(error)
            if refused is None:
                raise
            raise refused from None

    async def is_healthy(self) -> bool:
        """Whether something can be written, now or a moment ago."""
        when, well = self._health
        if time.monotonic() - when > _HEALTH_HOLDS:
            try:
                command = Command(Desk.expire)  # of no experiment: it only writes
                await asyncio.wait_for(self.perform(command), _HEALTH_PATIENCE)
                well = True
            except Exception:
                well = False
            self._health = time.monotonic(), well
        return well

    def gauges(self) -> None:
        """Bring those metrics up to date that are no counts."""
        self.metrics.loaded.set(len(self._writer.loaded()))

    async def _sweep(self) -> None:
        """End reward windows though nobody asks."""
        while True:
            await asyncio.sleep(self.settings.sweep)
            names = self._writer.with_windows()
            ended = (self.perform(Command(Desk.expire, name)) for name in names)
            await asyncio.gather(*ended, return_exceptions=True)


def _resolve(commands: list[Command]) -> None:
    for command in commands:
        if command.future is not None and not command.future.done():
            command.future.set_result(None)
