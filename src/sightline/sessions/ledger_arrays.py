"""Decisions of a session as arrays, for files: a hundred thousand are written in milliseconds."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sightline.core.persistence import within
from sightline.sessions.archive import Snapshot
from sightline.sessions.decisions import Pending
from sightline.sessions.ledger import Closing, Ending, Ledger, Received, Tally, Told, is_nothing
from sightline.validation import LARGEST, integer

__all__ = ["fill_ledger", "ledger_arrays"]

Arrays = dict[str, NDArray[Any]]

#: The first fields of a decision.
_KINDS: dict[str, Any] = {
    "id": "S",
    "arm": np.int64,
    "exploring": np.bool_,
    "round": np.int64,
    "probability": np.float64,
    "made": np.float64,
}
_ENDINGS: tuple[Ending, ...] = get_args(Ending)


def _table(decisions: list[Pending], prefix: str) -> Arrays:
    return {
        f"{prefix}.{name}": _column([decision[i] for decision in decisions], name)
        for i, name in enumerate(_KINDS)
    }


def _column(values: list[Any], name: str) -> NDArray[Any]:
    if name != "id":
        return np.array(values, dtype=_KINDS[name])
    lengths = {len(id_) for id_ in values}
    if len(lengths) != 1:  # none, or some from a file of layout 2
        return np.array(values, dtype="S")
    return np.frombuffer("".join(values).encode(), dtype=f"S{lengths.pop()}")  # ten times as fast


def _decisions(arrays: Arrays, prefix: str, k: int, t: int) -> list[Pending]:
    """Read decisions, or say which are impossible: files come from anywhere."""
    columns = []
    for name in _KINDS:
        column = arrays[f"{prefix}.{name}"]
        kind = np.dtype(_KINDS[name]).kind
        if column.ndim != 1 or column.dtype.kind != kind:
            raise ValueError(f"its column {prefix}.{name} is of another kind")
        columns.append(
            [id_.decode() for id_ in column.tolist()] if kind == "S" else column.tolist()
        )
    decisions = [Pending(*row) for row in zip(*columns, strict=True)]
    for decision in decisions:
        if not (0 <= decision.arm < k and 1 <= decision.round < t and math.isfinite(decision.made)):
            raise ValueError(f"its decision {decision.id!r} is impossible")
    if len({decision.id for decision in decisions}) < len(decisions):
        raise ValueError("two of its decisions have the same id")
    return decisions


def _with_features(decisions: list[Pending], arrays: Arrays, d: int) -> list[Pending]:
    """Open decisions with the features of their arms, which came with the questions."""
    table = arrays["open.features"]
    if table.shape != (len(decisions), d) or table.dtype != np.float64:
        raise ValueError("its column open.features is of another kind")
    within("open.features", table, -LARGEST, LARGEST)
    rows = map(tuple, table.tolist())
    return [one._replace(features=row) for one, row in zip(decisions, rows, strict=True)]


def _told(closings: Sequence[Closing | Received], p: int) -> NDArray[np.float64]:
    """List what was told of decisions, p numbers each."""
    if p == 1:
        return np.array([one.reward for one in closings], dtype=np.float64)
    rows = [(math.nan,) * p if is_nothing(one.reward) else one.reward for one in closings]
    return np.array(rows, dtype=np.float64).reshape(-1, p)


def _told_in(column: NDArray[Any], p: int) -> list[Told]:
    """Inverse of :func:`_told`."""
    if column.dtype != np.float64 or column.shape[1:] != (() if p == 1 else (p,)):
        raise ValueError("its columns of rewards are of another kind")
    if p == 1:
        return list(column.tolist())
    return [math.nan if math.isnan(row[0]) else tuple(row) for row in column.tolist()]


def ledger_arrays(ledger: Ledger, d: int = 0, p: int = 1) -> Arrays:
    """Arrays of all decisions that a session remembers.

    Of open ones d features are kept, and of all of them the p numbers that were told.
    """
    closings, decisions = list(ledger.closed.values()), list(ledger.open.values())
    nothing = Received(math.nan, math.nan)
    received = [nothing] * len(decisions)
    if ledger.received:
        received = [ledger.received.get(one.id, nothing) for one in decisions]
    features: Arrays = {}
    if d:
        rows = np.array([one.features for one in decisions], dtype=np.float64)
        features["open.features"] = rows.reshape(-1, d)
    return {
        **_table(decisions, "open"),
        **features,
        "open.reward": _told(received, p),
        "open.received": np.array([one.when for one in received], dtype=np.float64),
        **_table([closing.decision for closing in closings], "closed"),
        "closed.ending": np.array([_ENDINGS.index(one.ending) for one in closings], dtype=np.int64),
        "closed.reward": _told(closings, p),
        "closed.when": np.array([one.when for one in closings], dtype=np.float64),
    }


def fill_ledger(ledger: Ledger, snapshot: Snapshot, k: int, t: int, d: int = 0, p: int = 1) -> None:
    """Enter the decisions of a file for k arms, at round t, into a new ledger.

    Of open ones it has d features, of closed ones p numbers.
    """
    arrays, counts = snapshot.arrays, snapshot.header["tally"]
    ledger.tally = Tally(*(integer("tally", count, at_least=0) for count in counts))
    if len(counts) != len(Tally._fields):
        raise ValueError(f"its tally has {len(counts)} numbers")
    decisions = _decisions(arrays, "open", k, t)
    if d:
        decisions = _with_features(decisions, arrays, d)
    ledger.open = OrderedDict((one.id, one) for one in decisions)
    told, times = _told_in(arrays["open.reward"], p), arrays["open.received"].tolist()
    ledger.received = {
        one.id: Received(reward, when)
        for one, reward, when in zip(decisions, told, times, strict=True)
        if not is_nothing(reward)
    }
    if ledger.received and not ledger.window.holds:
        raise ValueError("it has rewards that wait, and no window that they wait for")
    closed = _decisions(arrays, "closed", k, t)
    endings, times = (arrays[f"closed.{name}"].tolist() for name in ("ending", "when"))
    ends = zip(closed, endings, _told_in(arrays["closed.reward"], p), times, strict=True)
    ledger.closed = OrderedDict(
        (decision.id, Closing(decision, _ENDINGS[int(ending)], told, when))
        for decision, ending, told, when in ends
    )
