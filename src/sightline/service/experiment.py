"""One experiment: its session, its lifecycle, and every request that changes it.

The log is the source of truth.  One :class:`ExperimentWriter` writes it; any number of
:class:`ServiceSession` objects replay it, to answer readers or to take over.
"""

from __future__ import annotations

import io
import json
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from sightline.policies.base import Evidence
from sightline.service import limits, responses
from sightline.service.errors import ApiError, invalid
from sightline.service.events import (
    PHASES,
    SESSION_KINDS,
    Entry,
    TransactionLog,
    request_digest,
)
from sightline.service.schemas import DecisionRequest, NewOption, Specification, StopRule
from sightline.service.settings import Settings
from sightline.sessions.decisions import Closing, Window, reward_value
from sightline.sessions.journal import Event, Log, amendment_in, replay, told_in_event
from sightline.sessions.session import Session
from sightline.sessions.snapshot import read_snapshot, write_snapshot
from sightline.sessions.state import LiveState, least_evident
from sightline.sessions.view import SessionView, view_of

#: Requests whose first entry is remembered, so that the database need not be asked.
_REMEMBERED = 10_000
#: Reward windows that end in one request; others wait for them about 20 ms.
_MAX_CLOSED = 250
#: Points of the history follow 1, 2, 3, ... events, and then each 2 %: 10^6 events have about 600.
_STEP = 1.02
#: With more options, a point of the history has no numbers of decisions.
_MAX_OPTIONS = 200
#: Level of the test of the best option, if there is no stop rule.
_LEVEL = 0.05
#: Phase of an experiment after each request that changes it.
VERBS = {"pause": "paused", "resume": "running", "stop": "stopped"}


@dataclass
class Lifecycle:
    """What the service knows of an experiment beyond its session, derived from the log as well.

    Applying an entry again changes nothing: the lifecycle of a snapshot may be some entries ahead.
    """

    phase: str = "running"  # or paused, or stopped
    version: int = 0  # number of the event that last added or retired an option
    inactive: set[str] = field(default_factory=set)  # open decisions that are not activated
    amended: int = 0  # number of amended rewards
    amended_last: int = 0  # number of the last event about one
    #: Options that are settled to be best at the level of ``stop``: a row, or one per context.
    #: Added and retired options and amended rewards reset it.
    settled: tuple[int, ...] = ()
    settled_at: float = 0.0  # seconds since 1970

    def apply(self, entry: Entry) -> None:
        """Apply the next entry."""
        event = entry.event
        if event.kind == "asked":
            if entry.extra.get("active") is False:
                self.inactive.add(event.decision or "")
        elif event.kind in ("received", "told", "expired", "given up", "activated"):
            self.inactive.discard(event.decision or "")
        elif event.kind in ("added", "retired", "amended"):
            self.settled = ()
            if event.kind != "amended":
                self.version = event.sequence
            elif event.sequence > self.amended_last:
                self.amended, self.amended_last = self.amended + 1, event.sequence
        elif event.kind in ("settled", "committed"):
            self.settled = tuple(json.loads(event.body or "")["arms"])
            self.settled_at = event.time
        else:
            self.phase = PHASES.get(event.kind, self.phase)

    def to_json(self) -> str:
        """Return it as JSON, for a snapshot."""
        return json.dumps(self.__dict__ | {"inactive": sorted(self.inactive)})

    @classmethod
    def from_json(cls, text: str) -> Lifecycle:
        """Inverse of :meth:`to_json`."""
        found = json.loads(text)
        sets = {"inactive": set(found["inactive"]), "settled": tuple(found["settled"])}
        return cls(**(found | sets))


class ServiceSession(Session):
    """A session whose log is in the database."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.lifecycle = Lifecycle()
        self.is_replica = False  # it only replays what another one writes
        self.asked: float | None = None  # time of the last decision that was replayed
        self._live.states_probabilities = True

    @classmethod
    def from_snapshot(cls, content: bytes, lifecycle: Lifecycle) -> Self:
        """Restore a snapshot."""
        session = cls._restored(read_snapshot(io.BytesIO(content)), None)
        session.lifecycle = lifecycle
        return session

    def snapshot(self) -> bytes:
        """Return everything but the lifecycle."""
        content = io.BytesIO()
        write_snapshot(content, self._live.snapshot())
        return content.getvalue()

    def replay(self, entries: Iterable[Entry], last: int = 0) -> int:
        """Replay entries of the log and compare the decisions; return the number of the last."""
        journal, self._live.journal = self._live.journal, None  # it has the entries already

        def session_events() -> Iterator[Event]:
            nonlocal last
            for entry in entries:
                last = entry.event.sequence
                self.lifecycle.apply(entry)
                if entry.event.kind == "asked":
                    self.asked = entry.event.time
                if entry.event.kind in SESSION_KINDS:
                    yield entry.event

        try:
            with self._guard.lock:
                replay(self._live, session_events())
        finally:
            self._live.journal = journal
        return last

    @property
    def live(self) -> LiveState:
        """State of the session; the caller must be its only user."""
        return self._live

    @property
    def limits(self) -> Window:
        """Reward window."""
        return self._live.decisions.window

    def write_to(self, log: Log, now: Callable[[], float]) -> None:
        """Write to a log from now on, by this clock."""
        self._live.journal, self._now = log, now

    def commit(self, arms: list[int]) -> None:
        """Choose one option, or one per context, from now on."""
        with self._guard.lock:
            self._recover()
            self._live.change(self._now(), "committed", {"arms": arms})

    def closing(self, decision: str) -> Closing | None:
        """Return how a decision was closed, or will be by its reward; else None."""
        return self._closing(decision)

    def expire(self, limit: int | None = None) -> None:
        """End reward windows that are over: the oldest, if there are more than the limit."""
        with self._guard.lock:
            self._recover()
            self._expire(limit)

    def _due(self, now: float, limit: int | None) -> list[Closing]:
        """Decisions to close; nothing is learned from one that was never activated."""
        if self.is_replica:
            return []
        return [
            one._replace(ending="given up", reward=math.nan)
            if one.decision.id in self.lifecycle.inactive
            else one
            for one in self._live.due(now, limit)
        ]


def next_history_point(events: int) -> int:
    """Return the number of events after which the next point of the history is due."""
    return max(events + 1, math.ceil(events * _STEP))


def test_level(stop: StopRule | None) -> float:
    """Return the level of the test of the best option: one for the stop rule and for pages."""
    return _LEVEL if stop is None else stop.delta


def evidence_in(view: SessionView, level: float) -> Evidence:
    """Compare the evidence of all rewards with the threshold of a level.

    With contexts, which have one threshold, in the one with the least; a stream has no test.
    """
    if view.options.stream:
        return view.report
    return least_evident(view.tested_at(level))


def history_point(
    session: ServiceSession, now: float, stop: StopRule | None = None
) -> dict[str, Any]:
    """Return what is known now, for figures over time."""
    view, level = view_of(session.live), test_level(stop)
    report = evidence_in(view, level)
    means = None if view.estimates is None else view.estimates.means
    split = None
    if means is not None and len(means) == len(view.offered):
        split = responses.finite(float(means[view.offered].mean()))
    return {
        "time": now,
        "round": int(view.clock.t) - 1,
        "level": level,
        "evidence": responses.finite(float(report.evidence)),
        "threshold": responses.finite(float(report.threshold)),
        "best": int(report.best),
        "told": int(view.told.sum()),
        "reward": responses.finite(float(view.totals.sum())),
        "split": split,
        "asked": view.asked.tolist() if len(view.options) <= _MAX_OPTIONS else None,
    }


def best_settled(view: SessionView, stop: StopRule) -> list[int]:
    """Return the options that are settled to be best, one per context; empty before that."""
    reports = view.tested_at(stop.delta)
    if not view.told.any() or any(one.evidence < one.threshold for one in reports):
        return []
    return [int(one.best) for one in reports]


class ExperimentWriter:
    """The writing side of an experiment; one thread uses it, within transactions."""

    def __init__(
        self,
        session: ServiceSession,
        log: TransactionLog,
        wanted: Specification,
        settings: Settings,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.session, self.log, self.wanted = session, log, wanted
        self.settings, self.now = settings, now
        self._bounds = None if wanted.reward is None else wanted.reward.bounds
        self._known: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._next_point = next_history_point(log.last)
        self._applied = 0  # uncommitted entries that the lifecycle has
        self.history: dict[str, Any] | None = None  # point that this transaction writes
        self.cost = 0.0  # average seconds of a request
        self.size = 0  # bytes of memory
        self.failed: frozenset[str] | None = None  # checks, None before the first request

    @property
    def id(self) -> str:
        """Id of the experiment."""
        return self.log.path

    def remember(self, entry: Entry) -> None:
        """Remember the first entry of a request."""
        for kind, value in (("key", entry.key), ("unit", entry.unit)):
            if value is not None:
                self._known[kind, value] = entry
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def knows(self, kind: str, value: str) -> bool:
        """Whether the first entry of a request is remembered."""
        return (kind, value) in self._known

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Replay what other processes have written."""
        last = self.session.replay(entries, self.log.last)
        if last > self.log.last:
            self.log.last = last
            self._next_point = next_history_point(last)

    def finish_request(self) -> None:
        """Update the lifecycle; if a point of the history is due, add it and test the stop rule.

        Checks are made at the first request, and then at every point of the history.
        """
        was_settled = self.session.lifecycle.settled
        self._update_lifecycle()
        is_due = self.log.last >= self._next_point
        if is_due:
            self.history = history_point(self.session, self.now(), self.wanted.stop)
        if is_due or (was_settled and not self.session.lifecycle.settled):
            self._test_stop_rule()
        if is_due:
            self._next_point = next_history_point(self.log.last)
        if is_due or self.failed is None:
            checks = view_of(self.session.live).checks
            self.failed = frozenset(one.name for one in checks if one.passed is False)

    def _update_lifecycle(self) -> None:
        for entry in self.log.uncommitted[self._applied :]:
            self.session.lifecycle.apply(entry)
        self._applied = len(self.log.uncommitted)

    def _test_stop_rule(self) -> None:
        stop, lifecycle = self.wanted.stop, self.session.lifecycle
        if stop is None or lifecycle.settled or lifecycle.phase == "stopped":
            return
        arms = best_settled(view_of(self.session.live), stop)
        if not arms:
            return
        if stop.action == "commit":
            self.session.commit(arms)
        else:
            self.log.record("settled", self.now(), body=json.dumps({"arms": arms}))
        self._update_lifecycle()

    def committed(self) -> None:
        """Forget what is now in the database."""
        self.log.committed()
        self._applied, self.history = 0, None

    def describe(self) -> dict[str, Any]:
        """Describe the experiment."""
        options = self.session.options
        return {
            "id": self.id,
            "phase": self.session.lifecycle.phase,
            "options": list(options.labels),
            "policy": type(self.session.policy).__name__,
            "description": self.wanted.description,
        }

    def _require_running(self) -> None:
        phase = self.session.lifecycle.phase
        if phase != "running":
            raise ApiError(409, phase, f"experiment {self.id} is {phase}")

    def ask(self, request: DecisionRequest, key: str | None, digest: str) -> dict[str, Any]:
        """Decide, or repeat the decision of this key or unit."""
        if key is not None and (first := self._first_entry(key, digest)) is not None:
            return self._decided(first)
        if request.unit is not None:
            if request.count is not None:
                raise invalid("count must be left out with a unit: it gets one decision")
            earlier = self._known.get(("unit", request.unit))
            if earlier is not None:
                if key is not None:  # so that another body under this key is refused
                    self.log.record("repeated", self.now(), decision=earlier.event.decision)
                    self._mark(-1, key, {"request": digest})
                return self._decided(earlier)
        self._require_running()
        return self._decided(self._decide(request, key, digest))

    def _first_entry(self, key: str, digest: str) -> Entry | None:
        """Return the first entry of a request; refuse another request under its key."""
        first = self._known.get(("key", key))
        if first is not None and first.extra.get("request") != digest:
            detail = f"Idempotency-Key {key!r} was used for another request"
            raise ApiError(422, "other-request", detail)
        return first

    def _mark(
        self, i: int, key: str | None, extra: dict[str, Any], unit: str | None = None
    ) -> Entry:
        """Make an uncommitted entry the first one of a request, and remember it."""
        marked = Entry(self.log.uncommitted[i].event, key, unit, extra)
        self.log.uncommitted[i] = marked
        self.remember(marked)
        return marked

    def _decide(self, request: DecisionRequest, key: str | None, digest: str) -> Entry:
        count = request.count or 1
        if count > self.settings.most_decisions:
            raise invalid(f"count must be {self.settings.most_decisions} at most, got {count}")
        live = self.session.live
        limits.check_count(live, count, self.settings)
        names = ("count", "available", "context", "options", "attributes")
        self.session.ask(**{name: getattr(request, name) for name in names})
        extra: dict[str, Any] = {} if request.activate else {"active": False}
        if self.session.lifecycle.version:
            extra["version"] = self.session.lifecycle.version
        entries = self.log.uncommitted
        first = len(entries) - count  # reward windows that ended come before
        if extra:
            entries[first:] = [entry._replace(extra=extra) for entry in entries[first:]]
        many = {} if request.count is None else {"many": True}
        values = {**extra, "request": digest, **many}
        return self._mark(first, key, values, request.unit)

    def _decided(self, first: Entry) -> dict[str, Any]:
        """Return the response to a request with this first entry."""
        if first.event.kind == "repeated":
            first = self.log.entries_of(first.event.decision or "")[0]
        count = first.event.questions or 1
        entries = [first]
        if count > 1:
            entries = self.log.entries(first.event.sequence - 1, count)
        options, window = self.session.options, self.session.limits
        made = [responses.decision_response(self.id, one, options, window) for one in entries]
        return {"decisions": made} if first.extra.get("many") else made[0]

    def _check_bounds(self, reward: object) -> None:
        if self._bounds is not None:
            value, (low, high) = reward_value("reward", reward), self._bounds
            if not low <= value <= high:
                raise invalid(f"reward must be from {low:g} to {high:g}, got {value:g}")

    def tell(self, decision: str, reward: object) -> dict[str, Any]:
        """Learn a reward."""
        self._check_bounds(reward)
        kinds: set[str] = set()
        if decision not in self.session.live.decisions.open:
            kinds = self._kinds(decision)
        if {"expired", "late"} <= kinds:  # it counts once, however often it is sent
            raise ApiError(410, "expired-decision", f"the window of decision {decision} ended")
        self.session.tell(decision, reward)  # type: ignore[arg-type]
        return self._closed(decision, "amended" in kinds)

    def _kinds(self, decision: str) -> set[str]:
        """Return the kinds of all entries about a decision."""
        return {entry.event.kind for entry in self.log.entries_of(decision)}

    def amend(self, decision: str, reward: object, key: str | None) -> dict[str, Any]:
        """Replace a reward that was told, or tell the first one."""
        digest = request_digest({"decision": decision, "amend": reward})
        if key is not None and (first := self._first_entry(key, digest)) is not None:
            return self._amended(first)
        self._check_bounds(reward)
        entries = self.log.uncommitted
        before = len(entries)
        self.session.amend(decision, reward)  # type: ignore[arg-type]
        # reward windows that ended come before
        new = [i for i in range(before, len(entries)) if entries[i].event.decision == decision]
        if not new:
            response = self._closed(decision, "amended" in self._kinds(decision))
            if key is not None:  # recorded, so that the same key gets the same response later
                self.log.record("repeated", self.now(), decision=decision)
                self._mark(-1, key, {"request": digest, "told": response})
            return response
        return self._amended(self._mark(new[-1], key, {"request": digest}))

    def _amended(self, first: Entry) -> dict[str, Any]:
        """Return the response to an amendment with this first entry."""
        event = first.event
        if event.kind == "repeated":
            return dict(first.extra["told"])
        closing = self.session.closing(event.decision or "")
        assert closing is not None
        is_amended = event.kind == "amended"
        told = amendment_in(event).now if is_amended else told_in_event(event)
        waits = event.kind == "received"
        return responses.closing_response(self.id, closing._replace(reward=told), is_amended, waits)

    def give_up(self, decision: str) -> dict[str, Any]:
        """Stop waiting for a reward."""
        self.session.give_up(decision)
        return self._closed(decision)

    def _closed(self, decision: str, amended: bool = False) -> dict[str, Any]:
        closing = self.session.closing(decision)
        assert closing is not None
        waits = decision in self.session.live.decisions.received
        return responses.closing_response(self.id, closing, amended, waits)

    def activate(self, decision: str) -> dict[str, Any]:
        """Record that a decision is used; a reward implies it."""
        self.session.expire()
        # the lifecycle follows at the end of a request: a window that ends now is not known there
        closing = self.session.closing(decision)
        if closing is not None and closing.ending != "told":
            when = responses.timestamp(closing.when)
            raise ApiError(410, "closed-decision", f"decision {decision} ended at {when}")
        if decision in self.session.lifecycle.inactive:
            self.log.record("activated", self.now(), decision=decision)
        return {"id": decision, "experiment": self.id, "activated": True}

    def expire(self) -> dict[str, Any]:
        """End reward windows that are over."""
        self.session.expire(_MAX_CLOSED)
        return {}

    @property
    def is_behind(self) -> bool:
        """Whether reward windows that are over remain after :meth:`expire`."""
        return bool(self.session.live.due(self.now(), 1))

    def add(self, option: NewOption) -> dict[str, Any]:
        """Add an option; the same option again changes nothing."""
        self._require_running()
        session = self.session
        options = session.options
        if option.name in options.names:
            arm = options.index(option.name)
            same_levels = options.levels is not None and options.levels[arm] == option.levels
            if same_levels or options.features[arm].tolist() == option.features:
                return {**self.describe(), "model_version": session.lifecycle.version}
            raise ApiError(409, "other-option", f"there is an option {option.name!r} already")
        k, d = options.features.shape
        live = session.live
        limits.check_shape(limits.Shape(k + 1, d), live.policy, live.min_probability, self.settings)
        session.add(option.name, option.features, levels=option.levels, noise_std=option.noise_std)
        return {**self.describe(), "model_version": self.log.last}

    def retire(self, option: str) -> dict[str, Any]:
        """Stop choosing an option; doing so again changes nothing."""
        before = self.log.last
        try:
            self.session.retire(option)
        except KeyError as error:
            raise ApiError(404, "unknown-option", str(error.args[0])) from None
        changed = self.log.last if self.log.last > before else self.session.lifecycle.version
        return {**self.describe(), "model_version": changed}

    def change_phase(self, verb: str) -> dict[str, Any]:
        """Pause, resume or stop; a stopped experiment stays stopped."""
        now, phase = self.session.lifecycle.phase, VERBS[verb]
        if now != phase:
            if now == "stopped":
                raise ApiError(409, "stopped", f"experiment {self.id} is stopped: it cannot {verb}")
            self.log.record("resumed" if verb == "resume" else phase, self.now())
        return {"id": self.id, "phase": phase}
