"""Read access: sessions that replay the log on read-only connections, and the views of the API.

Readers and the writer never wait for each other.  A reader sees everything that was acknowledged.
Docstrings of views are texts of the OpenAPI document.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sightline.core.clock import FAR
from sightline.problems.descriptions import describe
from sightline.service import events
from sightline.service.bounds import BoundCache, BoundResult
from sightline.service.errors import unknown
from sightline.service.events import Entry
from sightline.service.experiment import (
    Lifecycle,
    ServiceSession,
    evidence_in,
    history_point,
    test_level,
)
from sightline.service.limits import memory_of
from sightline.service.loading import control_rows, load_session, reading_log, specification_in
from sightline.service.responses import decision_response, finite, timestamp
from sightline.service.schemas import Specification, StopRule
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.sessions.decisions import Status, Window
from sightline.sessions.options import pairs_of
from sightline.sessions.view import SessionView, estimated_problem, regret_spent, view_of


@dataclass(eq=False)
class Replica:
    """An experiment as far as its log has been read; times are seconds since 1970."""

    session: ServiceSession
    wanted: Specification
    created: float
    last: int  # number of the last entry
    lock: threading.Lock = field(default_factory=threading.Lock)


class Readers:
    """Replicas of the experiments that clients read, and lower bounds on their regret."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self.store, self._settings = store, settings
        self.bounds = BoundCache(settings.bound_limit)
        self._replicas: OrderedDict[str, Replica] = OrderedDict()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def replica(self, experiment: str) -> Iterator[tuple[Replica, Connection]]:
        """Use an experiment in its present state; ApiError if it does not exist.  Others wait."""
        with self.store.reading() as connection:
            replica = self._replica(connection, experiment)
            with replica.lock:
                entries = events.later_entries(connection, experiment, replica.last)
                try:
                    with reading_log(experiment):
                        replica.last = replica.session.replay(entries, replica.last)
                except BaseException:  # it is incomplete: load it again
                    with self._lock:
                        self._replicas.pop(experiment, None)
                    raise
                yield replica, connection

    def _replica(self, connection: Connection, experiment: str) -> Replica:
        with self._lock:
            found = self._replicas.get(experiment)
            if found is not None:
                self._replicas.move_to_end(experiment)
                return found
        with reading_log(experiment):
            loaded = load_session(connection, experiment)
        if loaded is None:
            raise unknown("experiment", experiment)
        session, last, _ = loaded
        session.is_replica = True
        (first,) = events.entries_after(connection, experiment, 0, 1)
        session.asked = events.last_asked(connection, experiment)
        made = Replica(session, specification_in(first), first.event.time, last)
        with self._lock:
            kept = self._replicas.setdefault(experiment, made)
            memory = sum(memory_of(one.session.live) for one in self._replicas.values())
            while len(self._replicas) > self._settings.loaded or (
                memory > self._settings.memory and len(self._replicas) > 1
            ):
                _, oldest = self._replicas.popitem(last=False)
                memory -= memory_of(oldest.session.live)
        return kept

    def first_entries(self) -> list[tuple[str, Entry]]:
        """Return the first entry of every experiment."""
        with self.store.reading() as connection:
            return events.first_entries(connection)

    def newest(self, offset: int, limit: int) -> tuple[list[str], int]:
        """Return experiments, the newest first, and the number of all."""
        with self.store.reading() as connection:
            return events.newest_experiments(connection, offset, limit)


def experiments_view(readers: Readers) -> dict[str, Any]:
    """List all experiments, the oldest first."""
    return {
        "experiments": [
            {
                "id": name,
                "created_at": timestamp(first.event.time),
                "description": specification_in(first).description,
            }
            for name, first in readers.first_entries()
        ]
    }


def experiment_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Return the specification of an experiment and its options."""
    with readers.replica(experiment) as (replica, _):
        session = replica.session
        options = session.options
        return {
            "id": experiment,
            "phase": session.lifecycle.phase,
            "created_at": timestamp(replica.created),
            "specification": replica.wanted.model_dump(),
            "policy": str(session.policy),
            "options": list(options.labels),
            "levels": options.levels,
            "features": None if options.stream else options.features.tolist(),
            "retired": sorted(session.live.table.retired),
            "model_version": session.lifecycle.version,
        }


def status_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Return the status of an experiment."""
    with readers.replica(experiment) as (replica, connection):
        session, view = replica.session, view_of(replica.session.live)
        status, options, lifecycle = session.status(), session.options, session.lifecycle
        names = options.labels
        history = events.history_of(connection, experiment)[-20:]
        answer: dict[str, Any] = {
            "id": experiment,
            "phase": lifecycle.phase,
            "best": None if status.best is None else names[options.index(status.best)],
            "bests": {c: names[options.index(best, c)] for c, best in status.bests.items()},
            "settled": status.settled,
            "evidence": finite(status.evidence),
            "threshold": finite(status.threshold),
            "round": status.round,
            "next_exploration": _next_exploration(status),
            "explorations": status.explorations,
            "pending": status.pending,
            "waiting": status.waiting,
            "waiting_until": _waiting_until(status, session.limits),
            "inactive": len(lifecycle.inactive),
            "told": status.told,
            "expired": status.expired,
            "given_up": status.given_up,
            "late": status.late,
            "amended": lifecycle.amended,
            "reward": finite(float(view.totals.sum())),
            "expected_loss": finite(status.expected_loss),
            "price": finite(status.price),
            "unit": status.unit,
            "at_stake": status.at_stake(max(status.round - 1, 1)),
            "advice": status.advice,
            "checks": [one._asdict() | {"p_value": finite(one.p_value)} for one in status.checks],
            "model_version": lifecycle.version,
            "sequence": replica.last,
            "control": replica.wanted.control,
            "test": _test_view(view, replica.wanted.stop),
            "stop": _stop_view(view, replica.wanted.stop, lifecycle),
            "next": _next_step(replica, status, history),
        }
    # this takes longer: the replica is free for other readers
    return answer | _regret(readers.bounds, experiment, answer["sequence"], view)


def _regret(
    bounds: BoundCache, experiment: str, sequence: int, view: SessionView
) -> dict[str, Any]:
    """Estimate the regret so far, and c*, both at the present estimates."""
    try:
        spent = finite(regret_spent(view))
    except ValueError as error:
        return {"regret_spent": None, "bound": None, "bound_reason": str(error)}
    found = BoundResult(None, "no reward has arrived yet")
    if view.told.any():
        size = view.options.features.size
        found = bounds.get(experiment, sequence, size, lambda: describe(estimated_problem(view)))
    return {"regret_spent": spent, "bound": found.values, "bound_reason": found.reason}


def _waiting_until(status: Status, limits: Window) -> str | int | None:
    """Return when the last waiting reward enters the estimate: a time, or a round."""
    if status.waiting_until is None:
        return None
    if limits.rounds is None:
        return timestamp(status.waiting_until)
    return int(status.waiting_until)


def _next_exploration(status: Status) -> int | None:
    """Return the round of the next exploration, if it fits the integers of all languages."""
    found = status.next_exploration
    return None if found is None or found >= FAR else found


def _test_view(view: SessionView, stop: StopRule | None) -> dict[str, Any] | None:
    """Compare the evidence of all rewards with its threshold; None in a stream.

    This is the test of the stop rule, of the pages and of reports.
    """
    if view.options.stream:
        return None
    found = evidence_in(view, test_level(stop))
    evidence, threshold = float(found.evidence), float(found.threshold)
    has_best = view.options.contexts is None and view.told.any()
    return {
        "delta": test_level(stop),
        "best": view.options.labels[found.best] if has_best else None,
        "evidence": finite(evidence),
        "threshold": finite(threshold),
        "settled": bool(view.told.any()) and evidence >= threshold,
    }


def _stop_view(
    view: SessionView, stop: StopRule | None, lifecycle: Lifecycle
) -> dict[str, Any] | None:
    """Compare the evidence with the threshold of the stop rule, or name the settled options."""
    if stop is None:
        return None
    names, blocks, settled = view.options.names, view.options.contexts, lifecycle.settled
    best: Any = names[settled[0]] if settled else None
    if settled and blocks is not None:
        best = {context: names[arm] for context, arm in zip(blocks.names, settled, strict=True)}
    return {
        **(_test_view(view, stop) or {}),
        "action": stop.action,
        "settled": bool(settled),
        "best": best,
        "settled_at": timestamp(lifecycle.settled_at) if settled else None,
    }


def _next_step(replica: Replica, status: Status, history: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what happens next, and when, at the recent pace."""
    phase, options = replica.session.lifecycle.phase, replica.session.options
    names = options.labels
    found = status.next_exploration
    committed = replica.session.live.table.committed
    best = "the best option" if status.best is None else names[options.index(status.best)]
    when = None
    if phase != "running":
        waiting = f"; {status.pending} decisions still wait for their rewards"
        text = f"The experiment is {phase}{waiting if status.pending else ''}."
    elif committed:
        best = names[committed[0]] if len(committed) == 1 else "the best option of every context"
        text = f"{best} is chosen from now on: the experiment is settled."
    elif found is not None and found <= status.round:
        text = "The next decision may explore."
    elif found is None or found >= FAR:
        text = f"{best} is chosen from now on, unless further rewards change that."
    else:
        count = found - status.round
        text = f"{best} is chosen for {count:,} more decisions; then the policy explores again."
        when = _time_of_round(history, found)
    return {"text": text[0].upper() + text[1:], "round": _next_exploration(status), "at": when}


def _time_of_round(history: list[dict[str, Any]], round_: int) -> str | None:
    """Extrapolate the time of a round."""
    if len(history) < 2:
        return None
    first, last = history[0], history[-1]
    made, seconds = last["round"] - first["round"], last["time"] - first["time"]
    if made <= 0 or seconds <= 0:
        return None
    then = last["time"] + (round_ - last["round"]) * seconds / made
    return timestamp(then) if then < 4e9 else None


def estimates_view(readers: Readers, experiment: str, delta: float) -> dict[str, Any]:
    """Estimate all options; with a control, also their differences to it, with intervals."""
    with readers.replica(experiment) as (replica, _):
        view, wanted = view_of(replica.session.live), replica.wanted
    found, options = view.estimates, view.options
    labels = options.labels if options.items is None else options.items
    if options.stream:
        labels = options.columns
    counts = [{} for _ in labels] if options.stream else _counts(view)
    differences = _differences(view, control_rows(wanted, options), delta)
    estimates = []
    for i, label in enumerate(labels):
        mean = error = None
        if found is not None and i < len(found.means):
            mean, error = finite(float(found.means[i])), finite(float(found.standard_errors[i]))
        one = {"option": label, "mean": mean, "standard_error": error, **counts[i]}
        if differences:
            one["difference"] = differences[i]
        estimates.append(one)
    return {
        "id": experiment,
        "control": wanted.control,
        "delta": delta if differences else None,
        "estimates": estimates,
    }


def _counts(view: SessionView) -> list[dict[str, Any]]:
    """Count decisions and rewards of every option; in a duel, of every item."""
    asked, told, totals = view.asked, view.told, view.totals
    mean = "mean_reward"
    if view.options.items is not None:
        asked, told, totals = _counts_of_items(view)
        mean = "mean_outcome"
    return [
        {
            "offered": bool(view.offered[i]),
            "asked": int(asked[i]),
            "told": int(told[i]),
            mean: finite(float(totals[i]) / int(told[i])) if told[i] else None,
        }
        for i in range(len(asked))
    ]


def _counts_of_items(view: SessionView) -> tuple[Any, Any, Any]:
    """Count the decisions that showed each item, count their outcomes, and sum these (win: 1)."""
    first, second = np.array(pairs_of(len(view.options.items or ()))).T
    found = []
    for values, sign in ((view.asked, 1), (view.told, 1), (view.totals, -1)):
        sums = np.zeros(len(view.options.items or ()), dtype=values.dtype)
        np.add.at(sums, first, values)
        apart = first != second  # an item that is shown alone is shown once
        np.add.at(sums, second[apart], sign * values[apart])
        found.append(sums)
    return found[0], found[1], found[2]


def _differences(view: SessionView, control: tuple[int, ...], delta: float) -> list[dict[str, Any]]:
    """Return the differences to the control, with intervals that hold at all rounds at once."""
    if not control:
        return []
    ends = zip(*view.differences(control, delta), strict=True)
    names = ("estimate", "lower", "upper")
    return [{name: finite(float(x)) for name, x in zip(names, row, strict=True)} for row in ends]


def effects_view(readers: Readers, experiment: str, delta: float) -> dict[str, Any]:
    """Estimate all effects; their intervals hold at all rounds at once."""
    with readers.replica(experiment) as (replica, _):
        view = view_of(replica.session.live)
    numbers = ("effect", "lower", "upper")
    found = [
        {"term": one.term, "level": one.level}
        | {name: finite(getattr(one, name)) for name in numbers}
        for one in view.effects(delta)
    ]
    return {"id": experiment, "delta": delta, "effects": found}


def pending_view(readers: Readers, experiment: str, limit: int) -> dict[str, Any]:
    """List decisions that wait for their rewards, the oldest first."""
    with readers.replica(experiment) as (replica, connection):
        session = replica.session
        waiting = list(session.live.decisions.open)
        found = [events.entries_of(connection, experiment, id_)[0] for id_ in waiting[:limit]]
        inactive = set(session.lifecycle.inactive)
        options, limits = session.options, session.limits
    decisions = [decision_response(experiment, entry, options, limits) for entry in found]
    for one in decisions:
        one["activated"] = one["id"] not in inactive
    return {"id": experiment, "count": len(waiting), "decisions": decisions}


def history_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Return evidence, reward and traffic over time."""
    with readers.replica(experiment) as (replica, connection):
        history = events.history_of(connection, experiment)
        history.append(history_point(replica.session, time.time(), replica.wanted.stop))
        names = replica.session.options.labels
    k = len(names)
    before = np.zeros(k)
    points = []
    for point in history:
        share = split = None
        if point["asked"] is not None:
            asked = np.zeros(k)
            asked[: len(point["asked"])] = point["asked"]
            made = (asked - before).sum()
            share = ((asked - before) / made).tolist() if made > 0 else None
            before = asked
        if point["split"] is not None:  # by what was known then
            split = finite(point["split"] * point["told"])
        names_kept = ("round", "evidence", "threshold", "told", "reward")
        kept = {name: point[name] for name in names_kept}
        if point.get("level") != history[-1]["level"]:  # by an earlier version: another test
            kept |= {"evidence": None, "threshold": None}
        at = timestamp(point["time"])
        points.append({"at": at, **kept, "fixed_split": split, "traffic": share})
    return {"id": experiment, "options": list(names), "points": points}
