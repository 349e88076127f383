"""The decisions of a session as one tidy frame, and as a file for other programs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import repeat
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sightline.policies.base import Policy
from sightline.policies.catalogue import describe
from sightline.report.offers import Offers
from sightline.report.standing import Record, View
from sightline.sessions.journal import Event, amendment_in, set_of_bytes, told_in_event
from sightline.sessions.live import CHANGES
from sightline.sessions.options import Options, pairs_of
from sightline.sessions.supports import Support

if TYPE_CHECKING:
    import pandas as pd

    from sightline.sessions.ledger import Told

__all__ = ["ENDINGS", "METADATA", "WRITERS", "decision_frame", "parquet_pieces", "times"]

#: Key of the metadata of a Parquet file from which its decisions can be recomputed.
METADATA = b"sightline"

_OUTCOMES = {"told": "observed", "expired": "expired", "given up": "given up"}
#: Kinds of events that close a decision.
ENDINGS = tuple(_OUTCOMES)


def decision_frame(
    events: Sequence[Event],
    view: View,
    supports: Sequence[Support | None] | None = None,
    offers: Offers | None = None,
    later: Sequence[Event] | None = None,
) -> pd.DataFrame:
    """One row per decision, in their order.

    Parameters
    ----------
    events : sequence of Event
        All entries of a journal, or some that follow each other.
    view : View
        The session after all of them.
    supports : sequence of Support or None, optional
        What each decision could have been, where that was written down.
    offers : Offers, optional
        What was on offer before the first of the events, if there were others before.
    later : sequence of Event, optional
        What became of their decisions, if that may have been after these events.
    """
    import pandas as pd

    if offers is None:
        offers = Offers(len(view.options), events, view.options.contexts)
    ends_in = events if later is None else later
    closed = {event.decision: event for event in ends_in if event.kind in ENDINGS}
    received = {event.decision: event.time for event in ends_in if event.kind == "received"}
    corrections = [event for event in ends_in if event.kind == "amended"]
    amended = {event.decision: amendment_in(event).now for event in corrections}
    asked, offered = [], []
    for event in events:
        offers.follow(event)
        if event.kind == "asked":
            asked.append(event)
            offered.append(offers.asked)
    ends = [closed.get(event.decision) for event in asked]
    arms = np.array([event.arm for event in asked], dtype=np.int64)
    outcomes = ["open" if end is None else _OUTCOMES[end.kind] for end in ends]
    told_at = "rewarded_at" if view.options.observations is None else "observed_at"
    return pd.DataFrame(
        {
            "decision_id": pd.Series([event.decision for event in asked], dtype=object),
            "sequence": np.array([event.sequence for event in asked], dtype=np.int64),
            "round": np.array([event.round for event in asked], dtype=np.int64),
            **_contexts(view.options, asked),
            **_pairs(view.options, arms),
            "option": _categories(view.options.names, arms),
            "arm": arms,
            **_levels(view.options, arms),
            **_choices(view.options, asked, arms, offered),
            "probability": _floats(event.probability for event in asked),
            **_supports(supports),
            "exploring": np.array([event.exploring for event in asked], dtype=np.bool_),
            "policy": pd.Categorical([type(view.policy).__name__] * len(asked)),
            "policy_config_hash": pd.Categorical([_config_hash(view.policy)] * len(asked)),
            "asked_at": times(event.time for event in asked),
            **_told(view.options, ends, amended),
            told_at: times(None if end is None else end.time for end in ends),
            "received_at": times(map(_received, asked, ends, repeat(received))),
            "closed_sequence": _whole(None if end is None else end.sequence for end in ends),
            "questions": _whole(event.questions for event in asked),
            "available": _available(asked),
            "amended": np.array([event.decision in amended for event in asked], dtype=np.bool_),
            "outcome": pd.Categorical(outcomes, [*_OUTCOMES.values(), "open"]),
        }
    )


def _received(asked: Event, end: Event | None, received: dict[str | None, float]) -> float | None:
    """Find when a reward was told, which may be before its decision was closed."""
    told = None if end is None or end.kind != "told" else end.time
    return received.get(asked.decision, told)


def _config_hash(policy: Policy) -> str:
    """Tell configurations of a policy apart."""
    written = json.dumps(describe(policy), sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _supports(supports: Sequence[Support | None] | None) -> dict[str, pd.Series]:
    """Two columns of lists: rows that could be drawn, and their probabilities."""
    import pyarrow as pa

    if supports is None:
        return {}
    arms = [None if one is None else one.arms for one in supports]
    probabilities = [None if one is None else one.probabilities for one in supports]
    return {
        "support": _series(pa.array(arms, pa.list_(pa.int64()))),
        "probabilities": _series(pa.array(probabilities, pa.list_(pa.float64()))),
    }


def _series(column: Any) -> pd.Series:
    """Keep a column of lists as it is, without an object for each."""
    import pandas as pd

    return pd.Series(column, dtype=pd.ArrowDtype(column.type))


def _told(
    options: Options, ends: list[Event | None], amended: dict[str | None, Told]
) -> dict[str, Any]:
    """One column with what was told, or one for each number; rewards of a game are not seen."""
    values = [
        math.nan if end is None else amended.get(end.decision, told_in_event(end)) for end in ends
    ]
    if options.per_arm == 1:
        name = "reward" if options.observations is None else "observation"
        return {name: np.array(values, dtype=np.float64)}
    table = np.array([np.broadcast_to(value, options.per_arm) for value in values])
    columns = table.reshape(-1, options.per_arm).T
    return {f"observation:{i}": column for i, column in enumerate(columns)}


def _whole(values: Iterable[int | None]) -> pd.Series:
    import pandas as pd

    return pd.Series(list(values), dtype="Int64")


def _available(asked: Sequence[Event]) -> pd.Series:
    """Rows that a question was about, in its first decision; None for all."""
    import pyarrow as pa

    rows = [None if event.body is None else json.loads(event.body) for event in asked]
    return _series(pa.array(rows, pa.list_(pa.int64())))


def _floats(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def times(seconds: Iterable[float | None]) -> pd.Series:
    """Moments to the microsecond, in UTC."""
    import pandas as pd

    values = _floats(seconds)
    known = np.isfinite(values)
    moments = np.full(len(values), np.datetime64("NaT", "us"))
    moments[known] = np.rint(values[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return pd.Series(moments).dt.tz_localize("UTC")


def _categories(labels: Sequence[str], rows: NDArray[np.int64]) -> pd.Categorical:
    """Labels of rows, of which several may have the same."""
    import pandas as pd

    known = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([known[label] for label in labels], dtype=np.int64)
    return pd.Categorical.from_codes(codes[rows], categories=list(known))


def _contexts(options: Options, asked: Sequence[Event]) -> dict[str, Any]:
    """One column with the context of every decision, where there are contexts."""
    if options.contexts is None:
        return {}
    numbers = np.array([event.context for event in asked], dtype=np.int64)
    return {"context": _categories(options.contexts.names, numbers)}


def _pairs(options: Options, arms: NDArray[np.int64]) -> dict[str, Any]:
    """Two columns with the items of every decision, where options are pairs."""
    if options.items is None:
        return {}
    first, second = np.array(pairs_of(len(options.items)))[arms].T
    return {
        "first": _categories(options.items, first),
        "second": _categories(options.items, second),
    }


def _levels(options: Options, arms: NDArray[np.int64]) -> dict[str, Any]:
    """One column per factor; texts where its levels are of several kinds."""
    if options.levels is None:
        return {}
    columns = {}
    for factor in options.levels[0]:
        levels: list[Any] = [row[factor] for row in options.levels]
        if len({type(level) for level in levels}) > 1:
            levels = [str(level) for level in levels]
        kind = object if isinstance(levels[0], str) else None
        columns[f"level:{factor}"] = np.array(levels, dtype=kind)[arms]
    return columns


def _lists(known: list[Any], which: NDArray[np.int64], kind: type) -> pd.Series:
    """Return a list per decision, from the few that there are."""
    import pyarrow as pa

    item = pa.float64() if kind is float else pa.int64()
    return _series(pa.array(known, pa.list_(item)).take(pa.array(which)))


def _choices(
    options: Options,
    asked: Sequence[Event],
    arms: NDArray[np.int64],
    offered: list[NDArray[np.bool_]],
) -> dict[str, pd.Series]:
    """Features of what was chosen, and what it was chosen from."""
    import pyarrow as pa

    if not options.stream:
        features = _lists(options.features.tolist(), arms, float)
        shows = {}
        if options.observations is not None:
            rows = options.observations.reshape(len(options), -1).tolist()
            shows = {"shows": _lists(rows, arms, float)}
        return {"features": features, **shows, "offered": _offered(offered)}
    d = options.features.shape[1]
    sets = [set_of_bytes(event.actions or b"", d) for event in asked]
    rows = pa.list_(pa.float64())
    chosen = pa.array([rows_[arm] for rows_, arm in zip(sets, arms, strict=True)], rows)
    every = pa.array([list(rows_) for rows_ in sets], pa.list_(rows))
    return {"features": _series(chosen), "actions": _series(every)}


def _offered(offered: list[NDArray[np.bool_]]) -> pd.Series:
    """Rows that could be chosen in each decision; None for all."""
    known: dict[bytes, int] = {}
    lists: list[list[int] | None] = []
    for flags in offered:
        if known.setdefault(flags.tobytes(), len(known)) == len(lists):
            lists.append(None if flags.all() else np.flatnonzero(flags).tolist())
    which = [known[flags.tobytes()] for flags in offered]
    return _lists(lists, np.array(which, dtype=np.int64), int)


def parquet_pieces(frames: Iterable[pd.DataFrame], record: Record) -> Iterator[bytes]:
    """Write frames one after another, and hand out what was written: one is in memory at a time.

    Parameters
    ----------
    frames : iterable of DataFrame
        At least one, all with the same columns; of types that the first one tells.
    record : Record
        How it began; of the events only those that change the options are needed.

    Yields
    ------
    bytes
        Of the file, from its beginning to its end.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    remaining = iter(frames)
    first = pa.Table.from_pandas(next(remaining), preserve_index=False)
    # what pandas would add about its types it cannot read again for lists
    schema = first.schema.with_metadata({METADATA: _beginning(record)})
    pieces = _Pieces()
    with pq.ParquetWriter(pieces, schema) as writer:
        writer.write_table(first.cast(schema))
        yield pieces.taken()
        for frame in remaining:
            writer.write_table(pa.Table.from_pandas(frame, schema, preserve_index=False))
            yield pieces.taken()
    yield pieces.taken()


class _Pieces(io.RawIOBase):
    """A file that forgets what was taken from it."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._held.append(bytes(content))
        self._written += len(content)
        return len(content)

    def tell(self) -> int:
        return self._written

    def taken(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(held)


def _write_parquet(frame: pd.DataFrame, record: Record, file: BinaryIO) -> None:
    file.writelines(parquet_pieces([frame], record))


def _beginning(record: Record) -> bytes:
    """Write what rows do not have, and a replay needs: how it began, and all changes since."""
    changes = [
        [event.sequence, event.kind, event.time, event.body]
        for event in record.events
        if event.kind in CHANGES
    ]
    first = base64.b64encode(record.first).decode()
    return json.dumps({"version": 1, "first": first, "changes": changes}).encode()


def _write_csv(frame: pd.DataFrame, record: Record, file: BinaryIO) -> None:
    lists = ["features", "shows", "offered", "actions", "available", "support", "probabilities"]
    frame.drop(columns=lists, errors="ignore").to_csv(file, index=False)


#: By the suffix of the file.
WRITERS: dict[str, Callable[[pd.DataFrame, Record, BinaryIO], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
}
