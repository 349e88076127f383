"""The decisions of a session as a tidy frame, and as a file for other programs."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sightline.policies.base import Policy
from sightline.policies.catalogue import describe
from sightline.sessions.attributes import attributes_in, column_of
from sightline.sessions.journal import (
    CHANGES,
    SUPPORT_ENTRY,
    Event,
    actions_from_bytes,
    amendment_in,
    told_in_event,
)
from sightline.sessions.options import Blocks, Options, pairs_of
from sightline.sessions.view import JournalContents, SessionView

if TYPE_CHECKING:
    import pandas as pd

    from sightline.sessions.decisions import Told


class Offers:
    """Options on offer, updated with every event of a journal.

    There are k options after all events; those that add an option determine how many there were at
    first.
    """

    def __init__(self, k: int, events: Iterable[Event], contexts: Blocks | None = None) -> None:
        self._contexts = contexts
        self._count = k - sum(event.kind == "added" for event in events)
        #: Options that were added and not retired.
        self.current: NDArray[np.bool_] = np.arange(k) < self._count
        #: Options that could be chosen in the last decision.
        self.asked = self.current

    def follow(self, event: Event) -> None:
        """Update with the next event."""
        if event.kind == "added":
            self.current = self.current.copy()
            self.current[self._count] = True
            self._count += 1
        elif event.kind == "retired":
            self.current = self.current.copy()
            self.current[json.loads(event.body or "")["arm"]] = False
        elif event.kind == "asked" and event.questions is not None:  # the first of a batch
            self.asked = self.current
            if event.body is not None:
                self.asked = self._only(json.loads(event.body))
            elif self._contexts is not None and event.context is not None:
                self.asked = self._only(list(self._contexts.rows(event.context)))

    def _only(self, rows: list[int]) -> NDArray[np.bool_]:
        """Rows that are not retired, among some rows."""
        named = np.zeros_like(self.current)
        named[rows] = True
        return self.current & named


#: Key of the metadata of a Parquet file, from which its decisions can be recomputed.
METADATA = b"sightline"
#: Version of this metadata, and of the columns.
VERSION = 1
_OUTCOMES = {"told": "observed", "expired": "expired", "given up": "given up"}
#: Kinds of events that close a decision.
ENDINGS = tuple(_OUTCOMES)


def decision_frame(
    events: Sequence[Event],
    view: SessionView,
    offers: Offers | None = None,
    later: Sequence[Event] | None = None,
) -> pd.DataFrame:
    """Make a frame with one row per decision, in their order.

    ``events`` are all events of a journal, or consecutive ones, and ``view`` is the session after
    all of them.  If the events are not the first, ``offers`` are the options on offer before them;
    if later events may close their decisions, ``later`` has these.
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
            **_supports(asked),
            "exploring": np.array([event.exploring for event in asked], dtype=np.bool_),
            "policy": pd.Categorical([type(view.policy).__name__] * len(asked)),
            "policy_config_hash": pd.Categorical([_config_hash(view.policy)] * len(asked)),
            "asked_at": times(event.time for event in asked),
            **_told(view.options, ends, amended),
            told_at: times(None if end is None else end.time for end in ends),
            # a reward may be told before its decision is closed
            "received_at": times(
                received.get(event.decision, end.time if end and end.kind == "told" else None)
                for event, end in zip(asked, ends, strict=True)
            ),
            "closed_sequence": _whole(None if end is None else end.sequence for end in ends),
            "questions": _whole(event.questions for event in asked),
            "available": _available(asked),
            "amended": np.array([event.decision in amended for event in asked], dtype=np.bool_),
            "outcome": pd.Categorical(outcomes, [*_OUTCOMES.values(), "open"]),
            **_attributes(view.attributes, asked),
        }
    )


def _config_hash(policy: Policy) -> str:
    """Hash of the configuration of a policy."""
    written = json.dumps(describe(policy), sort_keys=True)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _supports(asked: Sequence[Event]) -> dict[str, pd.Series]:
    """Two columns of lists: rows of positive probability, and their probabilities."""
    import pandas as pd
    import pyarrow as pa

    written = [event.support for event in asked]
    for i, event in enumerate(asked):
        if written[i] is None and event.probability == 1.0:
            written[i] = np.array((event.arm, 1.0), dtype=SUPPORT_ENTRY).tobytes()
    sizes = [0 if one is None else len(one) // SUPPORT_ENTRY.itemsize for one in written]
    ends = pa.array(np.concatenate([[0], np.cumsum(sizes)]), pa.int32())
    unknown = pa.array([one is None for one in written], pa.bool_())
    entries = np.frombuffer(b"".join(filter(None, written)), dtype=SUPPORT_ENTRY)
    columns = {
        "support": entries["arm"].astype(np.int64),
        "probabilities": entries["probability"].astype(np.float64),
    }
    lists = {
        name: pa.ListArray.from_arrays(ends, pa.array(values), mask=unknown)
        for name, values in columns.items()
    }
    return {name: pd.Series(one, dtype=pd.ArrowDtype(one.type)) for name, one in lists.items()}


def _attributes(kinds: Mapping[str, str], asked: Sequence[Event]) -> dict[str, pd.Series]:
    """One column per attribute, null where a decision has none."""
    import pandas as pd
    import pyarrow as pa

    if not kinds:
        return {}
    types = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "str": pa.string()}
    rows = [attributes_in(event.attributes) for event in asked]
    return {
        f"attribute:{name}": pd.Series(
            pa.array(column_of(name, kind, rows), types[kind]), dtype=pd.ArrowDtype(types[kind])
        )
        for name, kind in kinds.items()
    }


def _lists(rows: list[Any], item: str, which: NDArray[np.int64] | None = None) -> pd.Series:
    """Series of lists, or of those with the given numbers, without an object for each."""
    import pandas as pd
    import pyarrow as pa

    kind = pa.type_for_alias(item.removesuffix("[]"))
    column = pa.array(rows, pa.list_(pa.list_(kind) if item.endswith("[]") else kind))
    if which is not None:
        column = column.take(pa.array(which))
    return pd.Series(column, dtype=pd.ArrowDtype(column.type))


def _told(
    options: Options, ends: list[Event | None], amended: dict[str | None, Told]
) -> dict[str, Any]:
    """One column with rewards, or one for each number of an outcome."""
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
    """Available rows of a question, in its first decision; None for all."""
    rows = [None if event.body is None else json.loads(event.body) for event in asked]
    return _lists(rows, "int64")


def _floats(values: Iterable[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def times(seconds: Iterable[float | None]) -> pd.Series:
    """Convert to times in UTC, to the microsecond."""
    import pandas as pd

    values = _floats(seconds)
    known = np.isfinite(values)
    moments = np.full(len(values), np.datetime64("NaT", "us"))
    moments[known] = np.rint(values[known] * 1e6).astype(np.int64).astype("datetime64[us]")
    return pd.Series(moments).dt.tz_localize("UTC")


def _categories(labels: Sequence[str], rows: NDArray[np.int64]) -> pd.Categorical:
    """Labels of rows as a categorical; several rows may share a label."""
    import pandas as pd

    known = {label: code for code, label in enumerate(dict.fromkeys(labels))}
    codes = np.array([known[label] for label in labels], dtype=np.int64)
    return pd.Categorical.from_codes(codes[rows], categories=list(known))


def _contexts(options: Options, asked: Sequence[Event]) -> dict[str, Any]:
    """One column with the context of every decision, if there are contexts."""
    if options.contexts is None:
        return {}
    numbers = np.array([event.context for event in asked], dtype=np.int64)
    return {"context": _categories(options.contexts.names, numbers)}


def _pairs(options: Options, arms: NDArray[np.int64]) -> dict[str, Any]:
    """Two columns with the items of every decision, in a duel."""
    if options.items is None:
        return {}
    first, second = np.array(pairs_of(len(options.items)))[arms].T
    return {
        "first": _categories(options.items, first),
        "second": _categories(options.items, second),
    }


def _levels(options: Options, arms: NDArray[np.int64]) -> dict[str, Any]:
    """One column per factor; texts if its levels have several types."""
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


def _choices(
    options: Options,
    asked: Sequence[Event],
    arms: NDArray[np.int64],
    offered: list[NDArray[np.bool_]],
) -> dict[str, pd.Series]:
    """Features of the chosen option, and the options that it was chosen from."""
    if not options.stream:
        features = _lists(options.features.tolist(), "float64", arms)
        shows = {}
        if options.observations is not None:
            rows = options.observations.reshape(len(options), -1).tolist()
            shows = {"shows": _lists(rows, "float64", arms)}
        return {"features": features, **shows, "offered": _offered(offered)}
    d = options.features.shape[1]
    sets = [actions_from_bytes(event.actions or b"", d) for event in asked]
    chosen = [rows[arm] for rows, arm in zip(sets, arms, strict=True)]
    every = [list(rows) for rows in sets]
    return {"features": _lists(chosen, "float64"), "actions": _lists(every, "float64[]")}


def _offered(offered: list[NDArray[np.bool_]]) -> pd.Series:
    """Rows on offer in each decision; None for all."""
    known: dict[bytes, int] = {}
    lists: list[list[int] | None] = []
    for flags in offered:
        if known.setdefault(flags.tobytes(), len(known)) == len(lists):
            lists.append(None if flags.all() else np.flatnonzero(flags).tolist())
    which = [known[flags.tobytes()] for flags in offered]
    return _lists(lists, "int64", np.array(which, dtype=np.int64))


def parquet_pieces(frames: Iterable[pd.DataFrame], record: JournalContents) -> Iterator[bytes]:
    """Write frames to Parquet one by one, and yield the bytes written: one is in memory at a time.

    All frames have the same columns; the first determines their types.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    remaining = iter(frames)
    first = pa.Table.from_pandas(next(remaining), preserve_index=False)
    # not the metadata of pandas, which it cannot read again for lists
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
    """A write-only file whose content is taken in pieces."""

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


def _beginning(record: JournalContents) -> bytes:
    """Metadata for a replay: the first snapshot, and all changes since."""
    changes = [
        [event.sequence, event.kind, event.time, event.body]
        for event in record.events
        if event.kind in CHANGES
    ]
    first = base64.b64encode(record.first).decode()
    return json.dumps({"version": VERSION, "first": first, "changes": changes}).encode()


def _write_csv(frame: pd.DataFrame, record: JournalContents, file: BinaryIO) -> None:
    lists = ["features", "shows", "offered", "actions", "available", "support", "probabilities"]
    frame.drop(columns=lists, errors="ignore").to_csv(file, index=False)


#: Functions that write a frame, by the suffix of the file.
WRITERS: dict[str, Callable[[pd.DataFrame, JournalContents, BinaryIO], None]] = {
    ".parquet": lambda frame, record, file: file.writelines(parquet_pieces([frame], record)),
    ".csv": _write_csv,
}
