"""One malformed input, and one judge of what became of it."""

from __future__ import annotations

import contextlib
import functools
import linecache
import signal
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

__all__ = ["SECONDS", "Attack", "Verdict", "accepted", "each", "judge", "refused"]

SECONDS = 5.0  # more is a hang: what is refused is refused before any work
_MEMORY = 4 * 2**30  # bytes beyond those in use
_LONGEST = 600  # characters of a sentence
_SOURCES = Path(__file__).parents[2]


@dataclass(frozen=True)
class Attack:
    """An input, and what is expected of the library.

    Attributes
    ----------
    name : str
        Unique among its kind.
    call : callable
        Gives the input to the library; gets an empty directory.
    says : tuple of str
        What the sentence must contain: the parameter and the value.  None: it is to be accepted.
    raises : type
        Class of the error that carries the sentence.
    kernels : bool
        Whether it calls kernels, which are then not compiled for it alone.
    """

    name: str
    call: Callable[[Path], object]
    says: tuple[str, ...] | None
    raises: type[Exception] = ValueError
    kernels: bool = False

    def __str__(self) -> str:
        return self.name


def refused(name: str, call: Callable[[], object], *says: str, **options: Any) -> Attack:
    """Input that is refused with a sentence."""
    return Attack(name, lambda _: call(), says, **options)


def each(
    title: str,
    call: Callable[[Any], object],
    values: Mapping[str, tuple[Any, str]],
    *says: str,
    without: Collection[str] = (),
    **options: Any,
) -> list[Attack]:
    """Values for one argument that are refused, each with what is said of it."""
    return [
        refused(f"{title}: {name}", functools.partial(call, value), *says, text, **options)
        for name, (value, text) in values.items()
        if name not in without
    ]


def accepted(name: str, call: Callable[[], object], **options: Any) -> Attack:
    """Input at the edge of what is allowed."""
    return Attack(name, lambda _: call(), None, **options)


@dataclass(frozen=True)
class Verdict:
    """What became of an attack."""

    outcome: str  # "sentence", "accepted", "no sentence", "traceback", "silent", "hang"
    detail: str
    as_expected: bool


class _HangError(BaseException):
    """No Exception: what is attacked may catch those."""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Limit time and memory, and treat warnings as errors."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise _HangError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        with _limited_memory(), warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def _limited_memory() -> Iterator[None]:
    """Let an allocation that is far too large fail, where the system knows such a limit."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + _MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def judge(attack: Attack, directory: Path) -> Verdict:
    """Give an input to the library, and say what became of it."""
    try:
        with _limited():
            attack.call(directory)
    except _HangError:
        return Verdict("hang", f"no answer within {SECONDS:g} s", False)
    except Exception as error:
        said = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
        detail = f"{type(error).__name__}: {said}"
        if not isinstance(error, attack.raises) or not _is_deliberate(error):
            return Verdict("traceback", detail, False)
        if not _is_sentence(said) or not all(text in said for text in attack.says or ()):
            return Verdict("no sentence", detail, False)
        return Verdict("sentence", detail, attack.says is not None)
    if attack.says is None:
        return Verdict("accepted", "", True)
    return Verdict("silent", "accepted without a word", False)


def _is_sentence(said: str) -> bool:
    return 10 <= len(said) <= _LONGEST and said.isprintable()  # a line break is not printable


def _is_deliberate(error: Exception) -> bool:
    """Whether a ``raise`` of the library, or of a test of it, made the error."""
    if isinstance(error, OSError):  # the system names the file and says what is wrong with it
        return True
    traceback = error.__traceback__
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    file = traceback.tb_frame.f_code.co_filename
    line = linecache.getline(file, traceback.tb_lineno).strip()
    return Path(file).is_relative_to(_SOURCES) and line.startswith("raise")
