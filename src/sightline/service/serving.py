"""Run the service until it is told to end."""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import ipaddress
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import uvicorn
from fastapi import FastAPI

from sightline.service.connections import protocol_of
from sightline.service.pages.routes import create_dashboard
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import list_tokens
from sightline.signals import call_uninterrupted

__all__ = ["is_loopback", "serve", "server_of"]

_log = logging.getLogger("sightline.service")

#: Seconds after which a thread that computes lets another one go on.  The writing thread waits so
#: long after every call of the database: with Python's 5 ms, a decision takes 100 ms and more while
#: another thread begins an experiment.
_SWITCH = 0.0005
#: Thresholds of the garbage collector.  By default exports led to a full collection per second,
#: of 0.1 s each; what is dropped here seldom has cycles.
_COLLECTIONS = 10_000, 20, 100
#: Seconds from a signal to the end of the process, at most.
_LONGEST_END = 9.0


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_of(
    app: FastAPI,
    host: str,
    port: int,
    log_level: str = "info",
    settings: Settings = Settings(),  # noqa: B008 - it is frozen
) -> uvicorn.Server:
    """Make the server of an application, which says nothing that strangers need not know."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        http=protocol_of(settings),
        ws="none",
        access_log=False,  # addresses have ids of decisions
        server_header=False,
        timeout_keep_alive=settings.idle_time,  # type: ignore[arg-type]
        timeout_graceful_shutdown=3,
    )
    return _Server(config)


class _Server(uvicorn.Server):
    """A server that ends soon after a signal, whatever is under way."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order if that can be done in time; what was answered is on disk anyhow."""
        faulthandler.dump_traceback_later(_LONGEST_END, exit=True)  # by a thread of C
        super().handle_exit(sig, frame)


class _Terminated(BaseException):
    """SIGTERM, as an exception."""


def _raise(*_: object) -> None:
    raise _Terminated


@contextlib.contextmanager
def _ending_in_order() -> Iterator[None]:
    """Close what is open before SIGTERM ends the process.

    When the server has ended, it raises the signal again that has ended it.
    """
    if threading.current_thread() is not threading.main_thread():  # others get no signals
        yield
        return
    before = signal.signal(signal.SIGTERM, _raise)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def serve(database: str, host: str = "127.0.0.1", port: int = 8000, rate: float = 1000.0) -> None:
    """Serve experiments until SIGTERM or Ctrl-C, with limits from the environment.

    Parameters
    ----------
    database : str
        ``sqlite:///experiments.db`` or ``postgresql://user@host/name``.
    host : str
        Address to listen on; another one than the loopback needs a token.
    port : int
        Port to listen on; 0: any that is free.
    rate : float
        Requests per second and token; 0: no limit.

    Raises
    ------
    ValueError
        If everybody could connect, and there is no token; or a limit is no number.
    """
    with _ending_in_order():
        _serve(database, host, port, rate)


def _serve(database: str, host: str, port: int, rate: float) -> None:
    store = Store(database)
    try:
        local = is_loopback(host)
        if not list_tokens(store):
            if not local:
                raise ValueError(
                    f"there is no token yet: without one the service listens on the loopback "
                    f"only, not on {host}; make one with: sightline token create NAME --role admin "
                    f"--database {store.name}"
                )
            _log.warning("there is no token: whoever is on this machine may do everything")
        settings = Settings.from_environment(os.environ, loopback=local, rate=rate)
        app = create_dashboard(store, settings)
        sys.setswitchinterval(_SWITCH)
        gc.collect()
        gc.freeze()  # else every full collection looks at all modules: 0.1 s, in which all wait
        gc.set_threshold(*_COLLECTIONS)
        server_of(app, host, port, settings=settings).run()
    finally:
        call_uninterrupted(store.close, stop=list)  # a second signal changes nothing
        if not any(thread.name.startswith("sightline") for thread in threading.enumerate()):
            faulthandler.cancel_dump_traceback_later()  # else Python would wait for it to end
