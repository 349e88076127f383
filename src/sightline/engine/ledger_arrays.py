"""Decisions of a session as arrays, for files: a hundred thousand are written in milliseconds."""

from __future__ import annotations

import math
from collections import OrderedDict
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from sightline.engine.archive import Snapshot
from sightline.engine.decisions import Pending
from sightline.engine.ledger import Closing, Ending, Ledger, Tally
from sightline.validation import integer

__all__ = ["fill_ledger", "ledger_arrays"]

Arrays = dict[str, NDArray[Any]]

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
        for i, name in enumerate(Pending._fields)
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
    for name in Pending._fields:
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


def ledger_arrays(ledger: Ledger) -> Arrays:
    """Arrays of all decisions that a session remembers."""
    closings = list(ledger.closed.values())
    return {
        **_table(list(ledger.open.values()), "open"),
        **_table([closing.decision for closing in closings], "closed"),
        "closed.ending": np.array([_ENDINGS.index(one.ending) for one in closings], dtype=np.int64),
        "closed.reward": np.array([one.reward for one in closings], dtype=np.float64),
        "closed.when": np.array([one.when for one in closings], dtype=np.float64),
    }


def fill_ledger(ledger: Ledger, snapshot: Snapshot, k: int, t: int) -> None:
    """Enter the decisions of a file for k arms, at round t, into a new ledger."""
    arrays, counts = snapshot.arrays, snapshot.header["tally"]
    ledger.tally = Tally(*(integer("tally", count, at_least=0) for count in counts))
    if len(counts) != len(Tally._fields):
        raise ValueError(f"its tally has {len(counts)} numbers")
    ledger.open = OrderedDict((one.id, one) for one in _decisions(arrays, "open", k, t))
    closed = _decisions(arrays, "closed", k, t)
    ends = (arrays[f"closed.{name}"].tolist() for name in ("ending", "reward", "when"))
    ledger.closed = OrderedDict(
        (decision.id, Closing(decision, _ENDINGS[int(ending)], reward, when))
        for decision, ending, reward, when in zip(closed, *ends, strict=True)
    )
