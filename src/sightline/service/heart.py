"""The service without HTTP: its writer, its readers, and what connects them to an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sightline.service import rows
from sightline.service.beginning import begin
from sightline.service.bodies import Specification
from sightline.service.desk import Desk
from sightline.service.loading import warm
from sightline.service.log import PendingLog
from sightline.service.metrics import Metrics
from sightline.service.problems import Problem, problem_of, unavailable
from sightline.service.readers import Readers
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import Tokens
from sightline.service.writer import Answer, Command, Writer

__all__ = ["Heart"]

R = TypeVar("R")

#: Seconds for which a check of health holds: strangers may ask, and each check is a write.
_HEALTH_HOLDS = 1.0
_HEALTH_PATIENCE = 10.0


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
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="sightline-loader")
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
        await asyncio.get_running_loop().run_in_executor(None, self._writer.stop)
        self.readers.bounds.close()
        self._pool.shutdown()
        self._loader.shutdown()

    def _deliver(self, commands: list[Command]) -> None:
        """Hand over answers; called by the writing thread."""
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            self._loop.call_soon_threadsafe(_resolve, commands)

    async def perform(self, command: Command) -> Answer:
        """Have a command carried out, and wait until that is durable."""
        if (left := self.store.outage.left) > 0.0:
            raise unavailable(left)
        name = command.experiment
        if name is not None and command.make is None and not self._writer.has(name):
            # reading it may take seconds, in which the writer can do something else
            await self._run(self._loader, self._writer.prepare, name)
        command.future = asyncio.get_running_loop().create_future()
        self._writer.submit(command)
        await command.future
        if isinstance(command.answer, Problem):
            raise command.answer
        assert command.answer is not None
        return command.answer

    async def create(self, experiment: str, wanted: Specification) -> Answer:
        """Begin an experiment, or find that it was begun in the same way."""

        def compare(desk: Desk) -> dict[str, Any]:
            if desk.wanted.model_dump() != wanted.model_dump():
                raise Problem(
                    409, "other-experiment", f"experiment {experiment} was begun with another body"
                )
            return desk.described()

        make = await self._run(self._loader, self._make, experiment, wanted)
        return await self.perform(Command(compare, experiment, make=make))

    def _make(self, experiment: str, wanted: Specification) -> Callable[[], Desk] | None:
        """Do all that takes long before the writer is asked; None if there is the experiment."""
        with self.store.reading() as connection:
            if rows.last_of(connection, experiment) > 0:
                return None
        session = begin(wanted, self.settings.most_options)
        warm(session.snapshot())

        def make() -> Desk:
            log = PendingLog(experiment)
            session.write_to(log, self.now)
            return Desk(session, log, wanted, self.settings, self.now)

        return make

    async def read(self, view: Callable[..., R], *arguments: Any) -> R:
        """Call a function that reads, in a thread for readers."""
        return await self._run(self._pool, view, self.readers, *arguments)

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
            for name in self._writer.with_windows():
                with contextlib.suppress(Problem):
                    await self.perform(Command(Desk.expire, name))


def _resolve(commands: list[Command]) -> None:
    for command in commands:
        if command.future is not None and not command.future.done():
            command.future.set_result(None)
