"""Run the service until it is told to end."""

from __future__ import annotations

import ipaddress
import logging

import uvicorn
from fastapi import FastAPI

from sightline.service.pages.routes import create_dashboard
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.tokens import list_tokens

__all__ = ["is_loopback", "serve", "server_of"]

_log = logging.getLogger("sightline.service")


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def server_of(app: FastAPI, host: str, port: int, log_level: str = "info") -> uvicorn.Server:
    """Make the server of an application, which says nothing that strangers need not know."""
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level=log_level,
        access_log=False,  # addresses have ids of decisions
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    return uvicorn.Server(config)


def serve(database: str, host: str = "127.0.0.1", port: int = 8000, rate: float = 1000.0) -> None:
    """Serve experiments until SIGTERM or Ctrl-C.

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
        If everybody could connect, and there is no token.
    """
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
        app = create_dashboard(store, Settings(loopback=local, rate=rate))
        server_of(app, host, port).run()
    finally:
        store.close()
