"""The executor that the options of the command line ask for."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

__all__ = ["chosen_executor"]

_DASK_TIMEOUT = 10  # seconds to wait for the scheduler


@contextlib.contextmanager
def chosen_executor(threads: int | None, dask: str | None) -> Iterator[Executor | None]:
    """Yield threads, a Dask cluster, or None for the default of the lab."""
    if threads is not None and dask is not None:
        raise ValueError("give --threads or --dask, not both")
    if dask is not None:
        with _dask_client(dask) as client:
            yield client.get_executor()
    elif threads is not None:
        with ThreadPoolExecutor(threads) as pool:
            yield pool
    else:
        yield None


def _dask_client(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ImportError(
            "--dask needs the extra [dask]: pip install -e '.[dask]' in a checkout"
        ) from None
    try:
        return Client(address, timeout=_DASK_TIMEOUT)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise OSError(f"no Dask scheduler answers at {address}: {error}") from None
