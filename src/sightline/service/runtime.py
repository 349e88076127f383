"""The parts of a running service without HTTP: the writer, the readers and their threads."""

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
from sightline.service import errors, events
from sightline.service.events import TransactionLog
from sightline.service.experiment import ExperimentWriter
from sightline.service.loading import create_session, specification_in, warm_up
from sightline.service.metrics import Metrics
from sightline.service.readers import Readers
from sightline.service.schemas import Specification
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import TokenCache
from sightline.service.worker import run_worker
from sightline.service.writer import Answer, Command, Writer
from sightline.sessions.view import view_of

R = TypeVar("R")

_log = logging.getLogger("sightline.service")

#: Seconds for which a health check holds: any client may ask, and each check is a write.
_HEALTH_LIFETIME = 1.0
_HEALTH_TIMEOUT = 10.0
#: Seconds that stopping waits for readers.
_STOP_TIMEOUT = 2.0
#: How often an experiment is loaded for one request.
_MAX_TRIES = 5
#: Experiments that are created at the same time; each has a body in memory.
_MAX_CREATIONS = 16


class Runtime:
    """All parts of a running service; ``now`` is a clock in seconds since 1970."""

    def __init__(
        self, store: Store, settings: Settings, now: Callable[[], float] = time.time
    ) -> None:
        self.store, self.settings, self.now = store, settings, now
        self.metrics = Metrics()
        self.readers = Readers(store, settings)
        self.tokens = TokenCache(store, settings.loopback, settings.token_refresh)
        self._writer = Writer(store, settings, self.metrics, self._deliver, now)
        self.metrics.loaded.set_function(lambda: len(self._writer.loaded()))
        # separate pools, so that readers that wait for the disk take no thread from decisions
        self._pool = ThreadPoolExecutor(4, thread_name_prefix="sightline-reader")
        # one thread: eight exports at once held the interpreter lock for 0.3 s
        self._exporter = ThreadPoolExecutor(1, thread_name_prefix="sightline-exporter")
        # two each, so that a long task does not block all others
        self._loader = ThreadPoolExecutor(2, thread_name_prefix="sightline-loader")
        self._maker = ThreadPoolExecutor(2, thread_name_prefix="sightline-maker")
        self._compiler = ThreadPoolExecutor(1, thread_name_prefix="sightline-compiler")
        self._compiling: dict[str, asyncio.Future[None]] = {}
        self._process: subprocess.Popen[str] | None = None
        self._is_stopping = False
        self._creations = 0  # in progress
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sweeping: asyncio.Task[None] | None = None
        self._health = -float("inf"), True

    async def start(self) -> None:
        """Start to accept commands."""
        self._loop = asyncio.get_running_loop()
        self._writer.start()
        if self.settings.sweep > 0:
            self._sweeping = asyncio.create_task(self._sweep())

    async def stop(self) -> None:
        """Execute submitted commands, then stop all threads."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sweeping
        self._is_stopping = True
        if self._process is not None:
            self._process.kill()
        await asyncio.get_running_loop().run_in_executor(None, self._writer.stop)
        self.readers.bounds.close()
        closing = [
            threading.Thread(target=pool.shutdown, kwargs={"cancel_futures": True}, daemon=True)
            for pool in (self._pool, self._exporter, self._loader, self._maker, self._compiler)
        ]
        for thread in closing:
            thread.start()
        until = time.monotonic() + _STOP_TIMEOUT
        for thread in closing:  # no client waits for a task that takes longer
            thread.join(max(until - time.monotonic(), 0.0))

    def _deliver(self, commands: list[Command]) -> None:
        """Hand over answers; the writer thread calls this."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(_resolve, commands)

    async def perform(self, command: Command) -> Answer:
        """Execute a command, and wait until its effect is durable."""
        if (left := self.store.breaker.seconds_left) > 0.0:
            raise errors.unavailable(left)
        loop = asyncio.get_running_loop()
        for _ in range(_MAX_TRIES):
            name = command.experiment
            if name is not None and command.make is None and not self._writer.has(name):
                # loading may take seconds, which the writer does not have
                await self._refusing_to_compile(self._loader, name, self._writer.prepare, name)
            command.future, command.must_load = loop.create_future(), False
            self._writer.submit(command)
            await command.future
            if not command.must_load:
                break
            command.make = None  # another request has created it meanwhile
        if isinstance(command.answer, errors.ApiError):
            if command.answer.kind == "compiling":
                self._compile(command.experiment or "")
            raise command.answer
        if command.answer is None:
            raise errors.unavailable()
        return command.answer

    async def create(self, experiment: str, wanted: Specification) -> Answer:
        """Create an experiment; if it exists, compare its specification."""

        def compare(one: ExperimentWriter) -> dict[str, Any]:
            if one.wanted.model_dump() != wanted.model_dump():
                detail = f"experiment {experiment} exists with another specification"
                raise errors.ApiError(409, "other-experiment", detail)
            return one.describe()

        if self._creations >= _MAX_CREATIONS:
            detail = f"{_MAX_CREATIONS} experiments are being created: send the request again"
            raise errors.ApiError(503, "busy", detail, {"Retry-After": "2"})
        self._creations += 1
        try:
            make = await self._prepare_creation(experiment, wanted)
        finally:
            self._creations -= 1
        return await self.perform(Command(compare, experiment, make=make))

    async def _prepare_creation(
        self, experiment: str, wanted: Specification
    ) -> Callable[[], ExperimentWriter] | None:
        arguments = self._maker, experiment, self._build, experiment, wanted
        try:
            return await self._without_compiling(*arguments)
        except NotKeptError:
            await self._compile(experiment, wanted)
        try:
            return await self._without_compiling(*arguments)
        except NotKeptError:  # the worker process could not compile it
            self._writer.compiles.add(experiment)
            return await self._without_compiling(*arguments)

    def _build(
        self, experiment: str, wanted: Specification
    ) -> Callable[[], ExperimentWriter] | None:
        """Do everything that takes long before the writer is asked; None if it exists already."""
        with self.store.reading() as connection:
            if events.last_sequence(connection, experiment) > 0:
                return None
        session = create_session(wanted, self.settings)
        content = session.snapshot()
        warm_up(content)
        view_of(session.live)  # computes now what depends on the options only, and keeps it
        compressed = zlib.compress(content, 1)
        body = json.dumps(wanted.model_dump(), allow_nan=False)

        def make() -> ExperimentWriter:
            log, moment = TransactionLog(experiment), self._writer.moment
            session.write_to(log, moment)
            made = ExperimentWriter(session, log, wanted, self.settings, moment)
            log.record("created", moment(), body=body)
            log.keep_snapshot(compressed)
            return made

        return make

    async def _without_compiling(
        self, pool: ThreadPoolExecutor, experiment: str, function: Callable[..., R], *arguments: Any
    ) -> R:
        """Call a function in a thread; NotKeptError if a kernel must be compiled first."""
        only = experiment not in self._writer.compiles

        def call() -> R:
            with only_kept(only):
                return function(*arguments)

        return await self._run(pool, call)

    def _compile(
        self, experiment: str, wanted: Specification | None = None
    ) -> asyncio.Future[None]:
        """Start to compile the kernels of an experiment; without ``wanted`` it exists."""
        found = self._compiling.get(experiment)
        if found is None:
            loop = asyncio.get_running_loop()
            found = loop.run_in_executor(
                self._compiler, self._compile_in_worker, experiment, wanted
            )
            self._compiling[experiment] = found
            found.add_done_callback(lambda _: self._compiling.pop(experiment))
        return found

    def _compile_in_worker(self, experiment: str, wanted: Specification | None) -> None:
        """Wait for a worker process that compiles.

        For an existing experiment it compiles everything; what it misses is compiled here on use.
        """
        everything = wanted is None
        try:
            if wanted is None:
                with self.store.reading() as connection:
                    (first,) = events.entries_after(connection, experiment, 0, 1)
                wanted = specification_in(first)
            run_worker("compile", [everything, wanted.model_dump()], self._started)
        except Exception:
            _log.exception("code for experiment %s could not be compiled", experiment)
        if everything:
            self._writer.compiles.add(experiment)

    def _started(self, process: subprocess.Popen[str]) -> None:
        """Remember a worker process, which ends with the service."""
        self._process = process
        if self._is_stopping:
            process.kill()

    async def _refusing_to_compile(
        self, pool: ThreadPoolExecutor, experiment: str, function: Callable[..., R], *arguments: Any
    ) -> R:
        """Call a function in a thread; if a kernel is missing, start to compile it and refuse."""
        try:
            return await self._without_compiling(pool, experiment, function, *arguments)
        except NotKeptError:
            self._compile(experiment)
            raise errors.compiling(experiment) from None

    async def read(self, view: Callable[..., R], *arguments: Any) -> R:
        """Call a function of the readers in one of their threads."""
        experiment = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        return await self._refusing_to_compile(
            self._pool, experiment, view, self.readers, *arguments
        )

    async def read_long(self, view: Callable[..., R], *arguments: Any) -> R:
        """Call a function of the readers in the thread of exports, which takes long."""
        experiment = str(arguments[0])
        return await self._refusing_to_compile(
            self._exporter, experiment, view, self.readers, *arguments
        )

    async def export(self, pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Iterate over the pieces of an export; several exports alternate."""
        while (piece := await self._run(self._exporter, next, pieces, None)) is not None:
            yield piece

    async def _run(
        self, pool: ThreadPoolExecutor, function: Callable[..., R], *arguments: Any
    ) -> R:
        try:
            return await asyncio.get_running_loop().run_in_executor(pool, function, *arguments)
        except Exception as error:
            refused = errors.api_error_of(error)
            if refused is None:
                raise
            raise refused from None

    async def is_healthy(self) -> bool:
        """Whether the database accepts writes, now or a moment ago."""
        when, healthy = self._health
        if time.monotonic() - when > _HEALTH_LIFETIME:
            try:
                command = Command(ExperimentWriter.expire)  # of no experiment: the heartbeat
                await asyncio.wait_for(self.perform(command), _HEALTH_TIMEOUT)
                healthy = True
            except Exception:
                healthy = False
            self._health = time.monotonic(), healthy
        return healthy

    async def _sweep(self) -> None:
        """End reward windows of experiments without requests."""
        while True:
            await asyncio.sleep(self.settings.sweep)
            names = self._writer.with_windows()
            expiring = (self.perform(Command(ExperimentWriter.expire, name)) for name in names)
            await asyncio.gather(*expiring, return_exceptions=True)


def _resolve(commands: list[Command]) -> None:
    for command in commands:
        if command.future is not None and not command.future.done():
            command.future.set_result(None)
