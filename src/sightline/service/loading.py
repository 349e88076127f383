"""From the database back to an experiment: the last snapshot, and what came after it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import numpy as np
from sqlalchemy import Connection

from sightline.service import rows
from sightline.service.bodies import Specification
from sightline.service.desk import Desk
from sightline.service.entries import Entry
from sightline.service.hosted import Hosted
from sightline.service.log import PendingLog
from sightline.service.settings import Settings

__all__ = ["begun_with", "load_desk", "load_session", "warm"]


def begun_with(entry: Entry) -> Specification:
    """Read how an experiment was begun, in its first entry."""
    return Specification.model_validate(json.loads(entry.event.body or "{}"))


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
    return Desk(session, log, begun_with(first), settings, now)


def warm(content: bytes) -> None:
    """Compile or load the kernels of an experiment, by using a copy of it once."""
    copy = Hosted.from_snapshot(content, '["running", 0, []]')
    blocks, stream = copy.options.contexts, copy.options.stream
    new = np.zeros((1, copy.options.features.shape[1])) if stream else None
    made = copy.ask(context=None if blocks is None else blocks.names[0], actions=new)
    copy.tell(made, 1.0)  # which all laws can give
    if not stream:
        with contextlib.suppress(ValueError):  # of policies that keep no sums
            copy.amend(made, 0.0)
    copy.status()
