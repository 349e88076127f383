"""Pretending that a file of the package has changed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from unittest import mock

from sightline import sources


@contextlib.contextmanager
def changed(module: str) -> Iterator[None]:
    """Let a module have another line of code."""
    assert module in sources._files(), module
    read = sources._code

    def code(name: str) -> bytes:
        return read(name) + (b"CHANGED = 1\n" if name == module else b"")

    sources.hash_of.cache_clear()
    try:
        with mock.patch.object(sources, "_code", code):
            yield
    finally:
        sources.hash_of.cache_clear()
