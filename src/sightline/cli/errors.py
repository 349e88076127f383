"""Errors on the command line: one sentence and an exit code, never a traceback."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from typing import Any

import typer

__all__ = ["BAD_INPUT", "FAILURE", "INTERRUPTED", "in_a_sentence"]

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130


@contextlib.contextmanager
def in_a_sentence(trouble: str = "", interrupted: str = "stopped") -> Iterator[None]:
    """Turn an error that a user can correct into a message and an exit code.

    Warnings of this library are one sentence on stderr.

    Parameters
    ----------
    trouble : str
        What could not be done, for an error of the operating system or of a worker.
    interrupted : str
        What to say after Ctrl-C.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _sentence(warnings.showwarning)
            yield
    except ValueError as error:
        _leave(str(error), BAD_INPUT)
    except (OSError, RuntimeError, ImportError) as error:
        reason = _reason(error, trouble)
        _leave(f"{trouble}: {reason}" if trouble else reason, FAILURE)
    except KeyboardInterrupt:
        _leave(interrupted, INTERRUPTED)


def _sentence(otherwise: Any) -> Any:
    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if category.__module__.startswith("sightline."):
            typer.echo(f"warning: {message}", err=True)
        else:
            otherwise(message, category, *place, **more)

    return show


def _reason(error: Exception, trouble: str) -> str:
    """Say what went wrong without the number of the error, and name the file once."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    named = not error.filename or trouble.endswith(f" {error.filename}")
    return error.strerror if named else f"{error.filename}: {error.strerror}"


def _leave(message: str, code: int) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None
