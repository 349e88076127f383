"""Logged decisions: which option was chosen, with which probability, and its reward.

Logs are read from sessions, their exports, any data frame, and files of Vowpal Wabbit and of the
Open Bandit Dataset.

| symbol                                        | here                          | shape |
|-----------------------------------------------|-------------------------------|-------|
| a_t, option of decision t                     | ``Log.actions``               | (n,)  |
| r_t, its reward                               | ``Log.rewards``               | (n,)  |
| p_t(a_t)                                      | ``Log.probability``           | (n,)  |
| p_t(a) of all options, where recorded         | ``Log.recorded``              | sparse (n, k) |
| number of rewards known before decision t     | ``Log.before``                | (n,)  |
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.sessions.options import unknown_name
from sightline.sessions.session import Session
from sightline.validation import one_of, shown

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
_TOLERANCE = 1e-6  # of sums of probabilities in files, which may be rounded

#: Roles of columns, and the names under which they are found.
ROLES = {
    "action": ("option", "action", "arm", "item_id"),
    "reward": ("reward", "click"),
    "probability": ("probability", "pscore", "propensity_score", "propensity"),
    "context": ("context",),
    "probabilities": (),
}
# What a policy that is evaluated may not see: it is known after the decision only, or is about it.
_HIDDEN = frozenset((
    "decision_id", "sequence", "closed_sequence", "option", "arm", "action", "item_id",
    "features", "shows", "reward", "click", "probability", "pscore", "propensity_score",
    "propensity", "support", "probabilities", "exploring", "policy", "policy_config_hash",
    "first", "second", "rewarded_at", "received_at", "observed_at", "amended", "outcome",
))  # fmt: skip


class Recorded(NamedTuple):
    """Probabilities of all options in each decision, by rows: those of positive probability."""

    starts: Ints  # shape (n + 1,): first entry of each row
    columns: Ints  # options
    values: Array  # their probabilities
    known: NDArray[np.bool_]  # shape (n,): whether the probabilities of a row are known

    def dense(self, rows: slice, k: int) -> Array:
        """Return probabilities of some rows, shape (rows, k); 0 where they are not known."""
        begin, end = self.starts[rows.start], self.starts[rows.stop]
        counts = np.diff(self.starts[rows.start : rows.stop + 1])
        table = np.zeros((len(counts), k))
        which = np.repeat(np.arange(len(counts)), counts)
        table[which, self.columns[begin:end]] = self.values[begin:end]
        return table

    def take(self, rows: Ints) -> Recorded:
        """Return some rows."""
        counts = np.diff(self.starts)[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[rows] - starts[:-1], counts)
        return Recorded(starts, self.columns[entries], self.values[entries], self.known[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class DecisionLog:
    """Decisions in their order, with what is known of each."""

    options: tuple[Any, ...]  # names
    actions: Ints
    rewards: Array  # nan where missing
    probability: Array
    recorded: Recorded
    contexts: Ints  # number of the context of each decision
    before: Ints
    arrivals: Ints  # decisions with a reward, in the order in which their rewards became known
    open: NDArray[np.bool_]  # whether the reward may still come
    frame: pd.DataFrame
    hidden: frozenset[str]  # columns of the frame that were not known before the decision
    arms: Ints | None = None  # rows of the options in the table of a session

    @property
    def k(self) -> int:
        """Number of options."""
        return len(self.options)

    def __len__(self) -> int:
        return len(self.actions)

    def index(self, name: Any) -> int:
        """Return the number of an option, given its name."""
        for number, option in enumerate(self.options):
            if type(option) is type(name) and option == name:
                return number
        for number, option in enumerate(self.options):
            if str(option) == str(name):
                return number
        raise ValueError(unknown_name("option", str(name), [str(one) for one in self.options]))

    def take(self, rows: Ints) -> DecisionLog:
        """Return some decisions, in order; the fit then uses their rewards only."""
        position = np.full(len(self), -1)
        position[rows] = np.arange(len(rows))
        kept = position[self.arrivals] >= 0
        counts = np.concatenate([[0], np.cumsum(kept)])
        return dataclasses.replace(
            self,
            actions=self.actions[rows],
            rewards=self.rewards[rows],
            probability=self.probability[rows],
            recorded=self.recorded.take(rows),
            contexts=self.contexts[rows],
            before=counts[self.before[rows]],
            arrivals=position[self.arrivals[kept]],
            open=self.open[rows],
            frame=self.frame.iloc[rows],
            arms=None if self.arms is None else self.arms[rows],
        )

    def visible(self) -> pd.DataFrame:
        """Columns that were known before each decision."""
        columns = [
            name
            for name in self.frame.columns
            if name not in self.hidden and not str(name).startswith(("level:", "observation"))
        ]
        return self.frame[columns]


def read_log(
    data: Any, columns: Mapping[str, Any] | None = None, options: Sequence[Any] | None = None
) -> DecisionLog:
    """Read a session, a frame, a file, or the feedback of Open Bandit Pipeline."""
    if isinstance(data, DecisionLog):
        return data
    names: Sequence[Any] | None = options
    if isinstance(data, Session):
        data, names = data.decisions(), tuple(data.options.names)
    elif isinstance(data, str | os.PathLike):
        data = _read_file(Path(data))
    elif isinstance(data, Mapping):
        data = _from_feedback(data)
    return _from_frame(data, dict(columns or {}), names)


def _read_file(path: Path) -> pd.DataFrame:
    import pandas as pd

    kinds = (".parquet", ".csv", ".json", ".jsonl", ".dsjson")
    kind = one_of("suffix of the file", path.suffix.lower(), kinds)
    if kind == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path) if kind == ".csv" else read_vw(path)


def read_vw(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a log of Vowpal Wabbit: one JSON object per line (dsjson), as a frame.

    Parameters
    ----------
    path : path
        Lines with ``_label_cost``, ``_label_probability``, ``_labelIndex`` or ``_label_Action``,
        and the actions ``a`` with their probabilities ``p``.  Actions are numbered from 0, as by
        ``_labelIndex``.  Logs with dropped events (``pdrop``) are refused.

    Returns
    -------
    pandas.DataFrame
        Columns ``action``; ``reward``, the negative cost; ``probability``; ``support`` and
        ``probabilities``, lists; and ``c``, the context as it is in the file.
    """
    import pandas as pd

    rows = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                rows.append(_vw_row(json.loads(line), f"line {number} of {os.fspath(path)}"))
    if not rows:
        raise ValueError(f"{os.fspath(path)} has no decisions")
    return pd.DataFrame(rows)


def _vw_row(line: dict[str, Any], where: str) -> dict[str, Any]:
    if float(line.get("pdrop", 0.0)) != 0.0:
        raise ValueError(f"{where} has pdrop={line['pdrop']}: events that were dropped are missing")
    try:
        action = line["_labelIndex"] if "_labelIndex" in line else line["_label_Action"] - 1
        return {
            "action": int(action),
            "reward": -float(line["_label_cost"]),
            "probability": float(line["_label_probability"]),
            "support": [int(one) - 1 for one in line["a"]],
            "probabilities": [float(one) for one in line["p"]],
            "c": line.get("c"),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{where} is not a decision of Vowpal Wabbit: {error!r}") from None


def read_open_bandit(path: str | os.PathLike[str]) -> pd.DataFrame:
    """Read a file of the Open Bandit Dataset (CSV), as a frame.

    Parameters
    ----------
    path : path
        With the columns ``item_id``, ``position``, ``click`` and ``propensity_score``.

    Returns
    -------
    pandas.DataFrame
        All columns, and ``context``, the position: the probability is that of the item there.
    """
    import pandas as pd

    return _with_position(pd.read_csv(path))


def _with_position(frame: pd.DataFrame) -> pd.DataFrame:
    if {"item_id", "position"} <= set(frame.columns) and "context" not in frame.columns:
        return frame.assign(context=frame["position"])
    return frame


def _from_feedback(feedback: Mapping[str, Any]) -> pd.DataFrame:
    """Frame of a ``bandit_feedback`` of Open Bandit Pipeline."""
    import pandas as pd

    missing = [name for name in ("action", "reward", "pscore") if feedback.get(name) is None]
    if missing:
        raise ValueError(
            f"data must have action, reward and pscore if it is a mapping, got none for {missing}"
        )
    n = len(feedback["action"])
    columns = {name: np.asarray(feedback[name]) for name in ("action", "reward", "pscore")}
    if feedback.get("position") is not None:
        columns["context"] = np.asarray(feedback["position"])
    frame = pd.DataFrame(columns)
    every = feedback.get("pi_b")
    if every is not None and np.shape(every)[0] == n and np.shape(every)[2:] in ((), (1,)):
        table = np.asarray(every, dtype=np.float64).reshape(n, -1)
        frame["support"] = [np.flatnonzero(row) for row in table]
        frame["probabilities"] = [row[row > 0.0] for row in table]
    return frame


def _column(frame: pd.DataFrame, role: str, columns: Mapping[str, Any]) -> str | None:
    """Name of the column with a role, as given or the first that is known."""
    if role in columns:
        if columns[role] not in frame.columns:
            raise ValueError(
                f"columns[{role!r}] must be a column, got {shown(columns[role])}: there are "
                f"{', '.join(map(str, frame.columns[:20]))}"
            )
        return str(columns[role])
    return next((name for name in ROLES[role] if name in frame.columns), None)


def _needed(frame: pd.DataFrame, role: str, columns: Mapping[str, Any]) -> str:
    found = _column(frame, role, columns)
    if found is None:
        hint = ""
        if role == "reward" and any(str(name).startswith("observation") for name in frame.columns):
            hint = "; a game shows observations and no rewards"
        raise ValueError(
            f"data must have a column with the {role}, such as {ROLES[role][0]!r}{hint}; "
            f"columns={{{role!r}: ...}} names it"
        )
    return found


def _from_frame(frame: Any, columns: Mapping[str, Any], names: Sequence[Any] | None) -> DecisionLog:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise ValueError(f"data must be a session, a data frame or a file, got {shown(frame)}")
    for role in columns:
        one_of("key of columns", role, ROLES)
    frame = _with_position(frame).reset_index(drop=True)
    n = len(frame)
    if "sequence" in frame.columns and not frame["sequence"].is_monotonic_increasing:
        raise ValueError("decisions must be in their order, that of the column 'sequence'")
    if n == 0:
        raise ValueError("data must have at least one decision, got none")
    chosen = frame[_needed(frame, "action", columns)]
    if chosen.isna().any():
        raise ValueError("actions must not be missing")
    rewards = _numbers(frame, _needed(frame, "reward", columns))
    probability = _numbers(frame, _needed(frame, "probability", columns))
    bad = ~(np.isnan(probability) | ((probability > 0.0) & (probability <= 1.0 + _TOLERANCE)))
    if bad.any():
        raise ValueError(
            f"probabilities of chosen options must be > 0 and at most 1, got "
            f"{probability[bad][0]:g} in row {int(np.flatnonzero(bad)[0])}"
        )
    if np.isinf(rewards).any():
        raise ValueError("rewards must be finite, got inf")
    rows = frame["arm"].to_numpy(np.int64) if "arm" in frame.columns else None
    if names is None and isinstance(columns.get("probabilities"), Mapping):
        names = tuple(columns["probabilities"])
    labels = _labels(chosen, rows, names)
    actions = pd.Index(labels).get_indexer(chosen.astype(object).to_numpy())
    if (actions < 0).any():
        raise ValueError(unknown_name("option", str(chosen[actions < 0].iloc[0]), labels))
    actions = actions.astype(np.int64)
    table, extra = _recorded(frame, columns, labels, actions, rows, names)
    labels = (*labels, *extra)
    _check_recorded(table, actions, probability)
    table = _with_certain(table, actions, probability)
    context = _column(frame, "context", columns)
    contexts = np.zeros(n, dtype=np.int64)
    if context is not None:
        contexts = pd.factorize(frame[context])[0].astype(np.int64)
        if (contexts < 0).any():
            raise ValueError(f"column {context!r} must not be missing")
    before, arrivals = _arrivals(frame, rewards)
    is_open = np.zeros(n, dtype=np.bool_)
    if "outcome" in frame.columns:
        is_open = (frame["outcome"] == "open").to_numpy(np.bool_)
    return DecisionLog(
        labels,
        actions,
        rewards,
        np.minimum(probability, 1.0),
        table,
        contexts,
        before,
        arrivals,
        is_open,
        frame,
        _HIDDEN | _named(columns),
        rows,
    )


def _named(columns: Mapping[str, Any]) -> frozenset[str]:
    """Columns that were named, except that of the context."""
    names: set[str] = {
        columns[role] for role in ("action", "reward", "probability") & columns.keys()
    }
    return frozenset(names | set(columns.get("probabilities", {}).values()))


def _numbers(frame: pd.DataFrame, name: str) -> Array:
    import pandas as pd

    try:
        found: Array = pd.to_numeric(frame[name]).to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} must have numbers: {error}") from None
    return found


def _labels(chosen: pd.Series, rows: Ints | None, names: Sequence[Any] | None) -> tuple[Any, ...]:
    """Names of the options: as given, of a categorical, by rows, or sorted."""
    import pandas as pd

    if names is not None:
        return tuple(dict.fromkeys(names))
    if rows is not None:
        first = pd.DataFrame({"option": chosen.astype(object), "arm": rows})
        return tuple(dict.fromkeys(first.drop_duplicates().sort_values("arm")["option"]))
    if isinstance(chosen.dtype, pd.CategoricalDtype):
        return tuple(chosen.cat.categories)
    return tuple(sorted(chosen.unique().tolist()))


def _recorded(
    frame: pd.DataFrame,
    columns: Mapping[str, Any],
    labels: tuple[Any, ...],
    actions: Ints,
    rows: Ints | None,
    names: Sequence[Any] | None,
) -> tuple[Recorded, tuple[Any, ...]]:
    """Probabilities of all options, and options that were never chosen and have no name."""
    n = len(frame)
    if "probabilities" in columns:
        return _by_columns(frame, columns["probabilities"], labels), ()
    if not {"support", "probabilities"} <= set(frame.columns):
        none = np.zeros(n, dtype=np.bool_)
        return Recorded(np.zeros(n + 1, np.int64), np.zeros(0, np.int64), np.zeros(0), none), ()
    starts, entries, known = _flat(frame["support"])
    same, values, _ = _flat(frame["probabilities"])
    if not np.array_equal(starts, same):
        raise ValueError("support and probabilities must be lists of the same lengths")
    # the lists have rows of the table of options; in other frames, numbers of options
    entries = entries.astype(np.int64)
    if rows is None:
        number = {label: i for i, label in enumerate(labels)}
        found = {entry: number.get(entry, entry) for entry in np.unique(entries).tolist()}
    else:
        found = dict(zip(rows.tolist(), actions.tolist(), strict=True))
        if names is not None:
            number = {name: i for i, name in enumerate(dict.fromkeys(names))}
            found |= {row: number[name] for row, name in enumerate(names)}
    extra: list[Any] = []
    for entry in np.unique(entries).tolist():
        if not 0 <= found.get(entry, -1) < len(labels):
            found[entry] = len(labels) + len(extra)
            extra.append(f"option {entry}")
    if len(entries):
        ordered = np.array(sorted(found), dtype=np.int64)
        numbers = np.array([found[one] for one in ordered.tolist()], dtype=np.int64)
        entries = numbers[np.searchsorted(ordered, entries)]
    return Recorded(starts, entries, values.astype(np.float64), known), tuple(extra)


def _flat(column: pd.Series) -> tuple[Ints, NDArray[Any], NDArray[np.bool_]]:
    """Return starts and entries of a column of lists, and which of them are not null."""
    import pyarrow as pa

    lists = pa.array(column, from_pandas=True)
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    if pa.types.is_null(lists.type):
        return np.zeros(len(lists) + 1, np.int64), np.zeros(0), np.zeros(len(lists), np.bool_)
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    lengths = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return starts, lists.flatten().to_numpy(zero_copy_only=False), known


def _by_columns(frame: pd.DataFrame, given: Any, labels: tuple[Any, ...]) -> Recorded:
    """Probabilities in one column per option."""
    if not isinstance(given, Mapping) or set(given) != set(labels):
        raise ValueError(
            f"columns['probabilities'] must map every option to a column, got {shown(given)}; "
            f"options are {shown(list(labels))}"
        )
    table = np.stack([_numbers(frame, given[label]) for label in labels], axis=1)
    known = np.asarray(np.isfinite(table).all(axis=1))
    positive = (table > 0.0) & known[:, None]
    starts = np.concatenate([[0], np.cumsum(positive.sum(axis=1))])
    return Recorded(starts, np.nonzero(positive)[1], table[positive], known)


def _check_recorded(table: Recorded, actions: Ints, probability: Array) -> None:
    """Refuse probabilities that contradict each other."""
    if not table.known.any():
        return
    if (table.values < 0.0).any() or np.isnan(table.values).any():
        raise ValueError("probabilities must be >= 0")
    counts = np.diff(table.starts)
    rows = np.repeat(np.arange(len(counts)), counts)
    sums = np.bincount(rows, table.values, len(counts))
    own = table.columns == actions[rows]
    stated = np.bincount(rows[own], table.values[own], len(counts))
    wrong = table.known & (abs(sums - 1.0) > 1e3 * _TOLERANCE)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(f"probabilities must sum to 1, got {sums[row]:g} in row {row}")
    wrong = table.known & (abs(stated - probability) > _TOLERANCE + 1e-3 * probability)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"the probability of the chosen option must be that in the list, got "
            f"{probability[row]:g} and {stated[row]:g} in row {row}"
        )


def _with_certain(table: Recorded, actions: Ints, probability: Array) -> Recorded:
    """Add decisions in which the chosen option had probability 1: all others had 0."""
    certain = np.flatnonzero(~table.known & (probability >= 1.0))
    rows = np.repeat(np.arange(len(actions)), np.diff(table.starts))
    rows = np.concatenate([rows, certain])
    order = np.argsort(rows, kind="stable")
    known = np.asarray(table.known | (probability >= 1.0))
    return Recorded(
        np.searchsorted(rows[order], np.arange(len(actions) + 1)).astype(np.int64),
        np.concatenate([table.columns, actions[certain]])[order],
        np.concatenate([table.values, np.ones(len(certain))])[order],
        known,
    )


def _arrivals(frame: pd.DataFrame, rewards: Array) -> tuple[Ints, Ints]:
    """How many rewards were known before each decision, and their decisions, as they came."""
    told = np.flatnonzero(~np.isnan(rewards))
    if not {"sequence", "closed_sequence"} <= set(frame.columns):
        return np.concatenate([[0], np.cumsum(~np.isnan(rewards))[:-1]]).astype(np.int64), told
    closed = frame["closed_sequence"].to_numpy(np.float64, na_value=np.inf)[told]
    order = np.argsort(closed, kind="stable")
    asked = frame["sequence"].to_numpy(np.float64)
    return np.searchsorted(closed[order], asked).astype(np.int64), told[order]
