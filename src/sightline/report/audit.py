"""Audit of an export: recompute every probability from the export itself.

A Parquet file of :meth:`sightline.Session.export`, or of the service, has the whole log: decisions
and rewards in its rows, the beginning of the session and later changes in its metadata.  The audit
begins the session again, replays the log, and compares the decisions.
"""

from __future__ import annotations

import base64
import io
import json
import math
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sightline.archives import read_parquet
from sightline.report.decision_frame import METADATA, VERSION
from sightline.sessions.decisions import Pending
from sightline.sessions.journal import Event, actions_to_bytes, amendment_in, replay, told_to_event
from sightline.sessions.kernels import Support
from sightline.sessions.options import Options
from sightline.sessions.session import Session
from sightline.sessions.snapshot import read_snapshot
from sightline.sessions.state import LiveState
from sightline.validation import file_path

if TYPE_CHECKING:
    from sightline.sessions.decisions import Told

_ENDINGS = {"observed": "told", "expired": "expired", "given up": "given up"}
_MOST_SHOWN = 5
#: Bytes of memory that even a small file may use.
_MOST_BYTES = 2**28


class Audit(NamedTuple):
    """Result of an audit."""

    decisions: int  # number of decisions in the file
    # Number of decisions with the same probability, to the last bit, and the same probabilities of
    # all other options if the file has them.
    recomputed: int
    unknown: int  # number of these whose probability is unknown to the policy
    differences: list[str]  # a sentence for each

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
    """Recompute every probability of ``Session.export`` or ``GET .../export.parquet``."""
    import pyarrow as pa

    try:
        table = read_parquet(file_path("path", path), _MOST_BYTES)
        written = json.loads((table.schema.metadata or {})[METADATA])
        _check_version(path, written["version"])
        content = base64.b64decode(written["first"])
        session = Session._restored(read_snapshot(io.BytesIO(content)), None)
        events, differences = _events(table, written["changes"], session.options)
        supports = _supports(table)
    except (pa.ArrowInvalid, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} has no log: it must be a Parquet file of an export ({type(error).__name__})"
        ) from None
    session._live.states_probabilities = bool(supports)
    found = _compare(session._live, events, supports, len(table))
    return found._replace(differences=differences + found.differences)


def _check_version(path: str | PathLike[str], version: int) -> None:
    if version > VERSION:
        raise ValueError(f"{path} has version {version}, later than {VERSION}: upgrade sightline")


def _compare(
    live: LiveState, events: list[Event], supports: dict[str, Support], decisions: int
) -> Audit:
    recomputed = unknown = 0
    differences: list[str] = []

    def watch(event: Event, made: Pending, support: Support | None) -> None:
        nonlocal recomputed, unknown
        said = math.nan if event.probability is None else event.probability
        known = supports.get(made.id)
        if not (made.probability == said or (math.isnan(made.probability) and math.isnan(said))):
            differences.append(
                f"decision {made.id} says {said!r}, and was drawn with {made.probability!r}"
            )
        elif known is not None and known != support:
            differences.append(
                f"decision {made.id} says {_written(known)}, and was drawn from {_written(support)}"
            )
        else:
            recomputed += 1
            unknown += math.isnan(said)

    try:
        replay(live, events, watch)
    except ValueError as error:  # everything after it would differ, too
        differences.append(str(error))
    return Audit(decisions, recomputed, unknown, differences)


def _written(support: Support | None) -> str:
    if support is None:
        return "unknown probabilities"
    return str(dict(zip(support.arms, support.probabilities, strict=True)))


def _supports(table: Any) -> dict[str, Support]:
    """Read the probabilities of all options in each decision, if the file has them."""
    names = ["decision_id", "support", "probabilities"]
    if not set(names) <= set(table.column_names):
        return {}
    rows = zip(*(table.column(name).to_pylist() for name in names), strict=True)
    return {
        decision: Support(tuple(arms), tuple(probabilities))
        for decision, arms, probabilities in rows
        if arms is not None and probabilities is not None
    }


def _events(
    table: Any, changes: list[list[Any]], options: Options
) -> tuple[list[Event], list[str]]:
    """Restore the log in its order; list disagreements of rows and amendments."""
    found = [Event(sequence, kind, time, body=body) for sequence, kind, time, body in changes]
    found.sort(key=lambda event: event.sequence)
    amended: dict[str, list[Told]] = {}  # all rewards of a decision
    for event in found:
        if event.kind == "amended":
            one = amendment_in(event)
            amended.setdefault(json.loads(event.body or "")["decision"], [one.was]).append(one.now)
    differences = []
    told_at = "rewarded_at" if options.observations is None else "observed_at"
    for batch in table.to_batches():
        for row in batch.to_pylist():
            found.append(_asked(row, options))
            if row["outcome"] == "open":
                continue
            last = _told(row, options)
            all_ = amended.get(row["decision_id"], [last])
            if all_[-1] != last and len(all_) > 1:
                differences.append(
                    f"decision {row['decision_id']} has the reward {last!r}, and was amended to "
                    f"{all_[-1]!r}"
                )
            ending, when = _ENDINGS[row["outcome"]], row[told_at].timestamp()
            values = told_to_event(all_[0])
            found.append(Event(row["closed_sequence"], ending, when, row["decision_id"], **values))
    return sorted(found, key=lambda event: event.sequence), differences


def _asked(row: dict[str, Any], options: Options) -> Event:
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
        actions=actions_to_bytes(np.array(row["actions"])) if options.stream else None,
    )


def _told(row: dict[str, Any], options: Options) -> Told:
    """Reward or outcome of a decision; nan if there is none."""
    if options.per_arm == 1:
        value = row["reward" if options.observations is None else "observation"]
        return math.nan if value is None else float(value)
    values = [row[f"observation:{i}"] for i in range(options.per_arm)]
    known = all(value is not None and not math.isnan(value) for value in values)
    return tuple(map(float, values)) if known else math.nan
