"""From the database back to an experiment: the last snapshot, and what came after it."""

from __future__ import annotations

import contextlib
import json
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sightline.service import rows
from sightline.service.bodies import Specification
from sightline.service.desk import Desk
from sightline.service.entries import Entry
from sightline.service.hosted import Hosted
from sightline.service.log import PendingLog
from sightline.service.looks import look_at
from sightline.service.problems import Problem, defect
from sightline.service.settings import Settings
from sightline.service.stopping import winners
from sightline.sessions.decisions import Window
from sightline.sessions.view import view_of

__all__ = ["begun_with", "compile_apart", "load_desk", "load_session", "reading_log", "warm"]

_log = logging.getLogger("sightline.service")

#: Notes of an experiment that runs.
_NOTES = '["running", 0, []]'


def begun_with(entry: Entry) -> Specification:
    """Read how an experiment was begun, in its first entry."""
    return Specification.model_validate(json.loads(entry.event.body or "{}"))


@contextlib.contextmanager
def reading_log(experiment: str) -> Iterator[None]:
    """Say that a log cannot be read, for which no request is to blame.

    Such as that of an experiment which a new release would continue otherwise.
    """
    try:
        yield
    except ValueError as error:
        _log.exception("experiment %s cannot be read", experiment)
        detail = f"experiment {experiment} cannot be read: {error}"
        raise Problem(500, "unreadable", detail) from error
    except KeyError as error:
        _log.exception("experiment %s cannot be read", experiment)
        raise defect() from error


def load_session(
    connection: Connection, experiment: str, *, first: bool = False
) -> tuple[Hosted, int, int] | None:
    """Make the session of an experiment, with the last entry it knows and that of its snapshot.

    None if there is no such experiment.  From its first snapshot, the whole log is done again.
    """
    found = rows.kept(connection, experiment, first=first)
    if found is None:
        return None
    session = Hosted.from_snapshot(found.content, found.notes)
    entries = rows.later_entries(connection, experiment, found.sequence)
    return session, session.fold(entries, found.sequence), found.sequence


def load_desk(
    connection: Connection, experiment: str, settings: Settings, now: Callable[[], float]
) -> Desk | None:
    """Make the writing side of an experiment; None if there is none."""
    found = load_session(connection, experiment)
    if found is None:
        return None
    session, last, sequence = found
    (first,) = rows.entries_after(connection, experiment, 0, 1)
    log = PendingLog(experiment, last, sequence)
    session.write_to(log, now)
    view_of(session.live)  # which keeps what depends on options only, for the writer
    return Desk(session, log, begun_with(first), settings, now)


def warm(content: bytes, wanted: Specification | None = None) -> None:
    """Compile or load the kernels of an experiment, by using a copy of it once.

    Parameters
    ----------
    content : bytes
        Snapshot of the experiment.
    wanted : Specification, optional
        Use it in every way that this allows: in batches, among some options, and when it is
        settled.  By default only as most experiments are.
    """
    copy = Hosted.from_snapshot(content, _NOTES)
    copy.live.decisions.window = Window()  # so that rewards are learned at once
    options = copy.options
    where: dict[str, Any] = {}
    if options.contexts is not None:
        where["context"] = options.contexts.names[0]
    if options.stream:
        where["actions"] = np.zeros((1, options.features.shape[1]))
    made = copy.ask(**where)
    copy.tell(made, 1.0)  # which all laws can give
    look_at(copy, 0.0)
    copy.status()
    if options.stream:
        return
    with contextlib.suppress(ValueError):  # of policies that keep no sums
        copy.amend(made, 0.0)
    if wanted is None:
        return
    for one in copy.ask(2, **where):
        copy.missing(one)
    with contextlib.suppress(ValueError):  # of policies that choose among all only
        copy.ask(available=[made.arm], **where)
    copy.effects()
    if wanted.stop is not None:
        winners(view_of(copy.live), wanted.stop)
        copy.commit([0] if options.contexts is None else list(options.contexts.starts[:-1]))
        copy.ask(**where)
    if len(options) > 1:
        with contextlib.suppress(ValueError):  # of policies and options that stay as they are
            copy.retire(len(options) - 1)
            look_at(copy, 0.0)
            copy.status()
    Hosted.from_snapshot(copy.snapshot(), _NOTES)


def compile_apart(
    wanted: Specification, everything: bool, started: Callable[[subprocess.Popen[str]], None]
) -> None:
    """Have a process of its own compile kernels of an experiment: they are then on disk.

    Parameters
    ----------
    wanted : Specification
        The experiment.
    everything : bool
        Whether those are compiled, too, that only some experiments need.
    started : callable
        Called with the process, which may be killed.
    """
    command = [sys.executable, "-m", "sightline.service.compile_process"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        started(process)
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # of one that was killed
            process.stdin.write(f"{json.dumps([everything, wanted.model_dump()])}\n")
            process.stdin.flush()
            process.wait()  # its input stays open: it ends with us
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
