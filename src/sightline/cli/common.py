"""Shared by commands: options, errors, executors, figure files, JSON, compilation notice."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import math
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

FAILURE, BAD_INPUT, INTERRUPTED = 1, 2, 130
_DASK_TIMEOUT = 10  # seconds to wait for the scheduler

# The exception class of the click version that Typer uses; some versions bundle their own copy.
_UsageError: Any = typer.BadParameter.__bases__[0]


# --- options of several commands ----------------------------------------------------------------

Threads = Annotated[
    int | None, typer.Option(min=1, max=1000, help="Threads; by default one per core.")
]
Dask = Annotated[str | None, typer.Option(help="Address of a Dask scheduler: tcp://host:8786.")]
ResultStore = Annotated[
    Path, typer.Option(help="Directory for the results; an interrupted run is resumed.")
]
Box = Annotated[
    float | None, typer.Option(help="Restrict the parameters to [-B, B] in each coordinate.")
]


# --- errors of a command ------------------------------------------------------------------------


@contextlib.contextmanager
def errors_as_messages(trouble: str = "", interrupted: str = "stopped") -> Iterator[None]:
    """Turn an error that the user can correct into one sentence on stderr and an exit code.

    ``trouble`` says what could not be done; it begins the message of an operating system or worker
    error.  ``interrupted`` is the message after Ctrl-C.  Warnings of this library are printed as
    one sentence, too.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _short_warnings(warnings.showwarning)
            yield
    except ValueError as error:
        _leave(str(error), BAD_INPUT)
    except (OSError, RuntimeError, ImportError) as error:
        reason = _reason(error, trouble)
        _leave(f"{trouble}: {reason}" if trouble else reason, FAILURE)
    except KeyboardInterrupt:
        _leave(interrupted, INTERRUPTED)


def _short_warnings(otherwise: Any) -> Any:
    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if category.__module__.startswith("sightline."):
            typer.echo(f"warning: {message}", err=True)
        else:
            otherwise(message, category, *place, **more)

    return show


def _reason(error: Exception, trouble: str) -> str:
    """Describe an error without its number, naming the file once."""
    if not isinstance(error, OSError) or not error.strerror:
        return str(error)
    named = not error.filename or trouble.endswith(f" {error.filename}")
    return error.strerror if named else f"{error.filename}: {error.strerror}"


def _leave(message: str, code: int) -> None:
    typer.echo(message, err=True)
    raise typer.Exit(code) from None


# --- errors in the arguments --------------------------------------------------------------------


class CommandGroup(TyperGroup):
    """The commands; a usage error is one line on stderr and exit code 2."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run a command and exit with its code."""
        self.suggest_commands = False  # _usage_message has a stricter suggestion
        others = prog_name, complete_var, False, windows_expand_args
        if not standalone_mode:
            return super().main(args, *others, **extra)
        try:
            code = super().main(args, *others, **extra)
        except _UsageError as error:
            typer.echo(_usage_message(error, sys.argv[1:] if args is None else args), err=True)
            sys.exit(error.exit_code)
        except typer.Abort:
            typer.echo("stopped", err=True)
            sys.exit(FAILURE)
        sys.exit(code if isinstance(code, int) else 0)


def _usage_message(error: Any, arguments: Sequence[str]) -> str:
    message: str = error.format_message()
    if "\n" in message or error.ctx is None:  # a help page, as for no arguments at all
        return message
    from sightline.validation import nearest, shown  # imports NumPy

    option = getattr(error, "option_name", None)
    command = re.match(r"No such command '(.*)'", message)
    if command is not None:
        meant = nearest(command[1], error.ctx.command.commands)
    elif option is not None and getattr(error, "possibilities", None):
        message = error.message
        meant = nearest(option, error.possibilities)
    else:
        meant = None
    if meant is not None:
        return f"{message.rstrip('.')}; did you mean {meant!r}?"
    value = _value_of(getattr(error, "param", None), arguments)
    got = "" if value is None or value in message else f", got {shown(value)}"
    return f"{message.rstrip('.')}{got}; {error.ctx.command_path} --help says what is allowed"


def _value_of(parameter: Any, arguments: Sequence[str]) -> str | None:
    """Find the value of an option among the arguments; not every version of Typer reports it."""
    for option in getattr(parameter, "opts", ()):
        for given, value in itertools.pairwise([*arguments, ""]):
            if given == option:
                return value
            if given.startswith(f"{option}="):
                return given.removeprefix(f"{option}=")
    return None


# --- executors, files, output --------------------------------------------------------------------


@contextlib.contextmanager
def chosen_executor(threads: int | None, dask: str | None) -> Iterator[Executor | None]:
    """Yield a thread pool, a Dask executor, or None for the default executor of experiments."""
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


def check_figure(path: Path) -> None:
    """Refuse a figure file that cannot be written, before the work that the figure shows.

    ValueError if the suffix is not a figure format, OSError if the file cannot be created.
    """
    from sightline.report.figures import check_format

    check_format(path)
    code = None
    if not path.parent.is_dir():
        code = errno.ENOENT
    elif path.is_dir():
        code = errno.EISDIR
    elif not os.access(path if path.exists() else path.parent, os.W_OK):
        code = errno.EACCES
    if code is not None:
        raise OSError(code, os.strerror(code), str(path))


def announce_compilation() -> None:
    """Announce the first compilation on a terminal; print nothing if any kernel is cached."""
    from sightline.jit import cache_directory, shipped_kernels

    directory = cache_directory()
    if not sys.stderr.isatty() or directory is None or shipped_kernels().found is not None:
        return
    if not any(directory.rglob("*.nbc")):
        typer.echo("First use: compiling, which takes half a minute or so, once.", err=True)


def json_text(values: Any) -> str:
    """Encode as JSON; arrays become lists, and values that JSON does not have are replaced.

    nan and infinity become null, integers beyond 2^53 text.
    """
    return json.dumps(_plain(values), allow_nan=False)


def _plain(value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return str(value) if isinstance(value, int) and value > 2**53 else value
