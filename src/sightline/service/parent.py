"""Processes that a service starts end with it, however it ends."""

from __future__ import annotations

import os
import sys
import threading

__all__ = ["end_with_parent"]


def end_with_parent() -> None:
    """End this process when its input ends: the service holds the other end, and writes no more."""
    threading.Thread(target=_wait, daemon=True).start()


def _wait() -> None:
    sys.stdin.read()  # which returns when the service has ended, by SIGKILL as well
    os._exit(1)
