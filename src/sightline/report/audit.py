"""Recompute every probability of an export from the export: decisions are what they say they are.

A Parquet file of :meth:`sightline.Session.export`, or of the service, has the whole log: decisions
and rewards in its rows, how the session began and changes of its options in its metadata.  The
session is begun again, everything is done again in its order, and what is decided is compared.
"""

from __future__ import annotations

import base64
import io
import json
import math
from collections.abc import Iterator
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

from sightline.engine import session as engine
from sightline.engine.archive import read_snapshot
from sightline.engine.journal import Event, set_to_bytes, told_to_event
from sightline.engine.live import LiveState
from sightline.engine.options import Options
from sightline.engine.replay import replay
from sightline.report.decision_frame import METADATA
from sightline.validation import file_path

if TYPE_CHECKING:
    from sightline.engine.ledger import Told

__all__ = ["Audit", "audit"]

_ENDINGS = {"observed": "told", "expired": "expired", "given up": "given up"}
_MOST_SHOWN = 5


class Audit(NamedTuple):
    """What an audit has found.

    Attributes
    ----------
    decisions : int
        In the file.
    recomputed : int
        Whose probability came out the same, to the last bit.
    unknown : int
        Among these, such as have none: the policy does not know it.
    differences : list of str
        A sentence each; empty if all is well.
    """

    decisions: int
    recomputed: int
    unknown: int
    differences: list[str]

    @property
    def well(self) -> bool:
        """Whether every decision was recomputed."""
        return self.recomputed == self.decisions and not self.differences

    def __str__(self) -> str:
        said = f"{self.recomputed} of {self.decisions} probabilities recomputed to the last bit"
        if self.unknown:
            said += f", {self.unknown} of them unknown to the policy"
        return "\n".join([said, *self.differences[:_MOST_SHOWN]])


def audit(path: str | PathLike[str]) -> Audit:
    """Recompute every probability of an export.

    Parameters
    ----------
    path : path
        Parquet file of ``Session.export`` or of ``GET .../export.parquet``.

    Raises
    ------
    ValueError
        If it is no such file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(file_path("path", path))
        written = json.loads((table.schema.metadata or {})[METADATA])
        content = base64.b64decode(written["first"])
        session = engine.Session._restored(read_snapshot(io.BytesIO(content)), None)
        events = _events(table, written["changes"], session.options)
    except (pa.ArrowInvalid, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} has no log: it must be a Parquet file of an export, of this version or a "
            f"later one ({type(error).__name__})"
        ) from None
    return _compare(session._live, events, len(table))


def _compare(live: LiveState, events: list[Event], decisions: int) -> Audit:
    recomputed = unknown = 0
    differences: list[str] = []
    for part in _parts(events):
        try:
            replay(live, part)
        except ValueError as error:  # from here on everything would differ
            differences.append(str(error))
            break
        for event in part:
            if event.kind != "asked":
                continue
            found = live.ledger.open[event.decision or ""].probability
            said = math.nan if event.probability is None else event.probability
            if found == said or (math.isnan(found) and math.isnan(said)):
                recomputed += 1
                unknown += math.isnan(said)
            else:
                differences.append(
                    f"decision {event.decision} says {said!r}, and was drawn with {found!r}"
                )
    return Audit(decisions, recomputed, unknown, differences)


def _parts(events: list[Event]) -> Iterator[list[Event]]:
    """Cut the log after every question: a decision may be closed by the next event."""
    part: list[Event] = []
    wanted = 0
    for event in events:
        part.append(event)
        wanted = event.questions or wanted
        if event.kind == "asked":
            wanted -= 1
        if wanted <= 0:
            yield part
            part = []
    if part:
        yield part


def _events(table: Any, changes: list[list[Any]], options: Options) -> list[Event]:
    """Put the log together again, in its order."""
    found = [Event(sequence, kind, time, body=body) for sequence, kind, time, body in changes]
    told_at = "rewarded_at" if options.observations is None else "observed_at"
    for batch in table.to_batches():
        for row in batch.to_pylist():
            found.append(_asked(row, options))
            if row["outcome"] != "open":
                ending, when = _ENDINGS[row["outcome"]], row[told_at].timestamp()
                values = told_to_event(_told(row, options))
                closed = row["closed_sequence"]
                found.append(Event(closed, ending, when, row["decision_id"], **values))
    return sorted(found, key=lambda event: event.sequence)


def _asked(row: dict[str, Any], options: Options) -> Event:
    import numpy as np

    probability = row["probability"]
    known = probability is not None and not math.isnan(probability)
    number = None if options.contexts is None else options.contexts.index(row["context"])
    return Event(
        row["sequence"],
        "asked",
        row["asked_at"].timestamp(),
        row["decision_id"],
        row["round"],
        row["arm"],
        probability if known else None,
        row["exploring"],
        questions=row["questions"],
        body=None if row["available"] is None else json.dumps(row["available"]),
        context=number,
        actions=set_to_bytes(np.array(row["actions"])) if options.stream else None,
    )


def _told(row: dict[str, Any], options: Options) -> Told:
    """Read what was told of a decision; nan if nothing."""
    if options.per_arm == 1:
        value = row["reward" if options.observations is None else "observation"]
        return math.nan if value is None else float(value)
    values = [row[f"observation:{i}"] for i in range(options.per_arm)]
    known = all(value is not None and not math.isnan(value) for value in values)
    return tuple(map(float, values)) if known else math.nan
