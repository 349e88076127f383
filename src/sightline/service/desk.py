"""One experiment and all that can be done to it: each once, however often it is asked for."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from sightline.engine.ledger import reward_value
from sightline.service.answers import closing_answer, decision_answer, moment
from sightline.service.beginning import bounds_of
from sightline.service.bodies import Addition, Question, Specification
from sightline.service.entries import Entry
from sightline.service.hosted import Hosted
from sightline.service.log import PendingLog
from sightline.service.looks import look_at, next_look
from sightline.service.problems import Problem
from sightline.service.settings import Settings

__all__ = ["Desk"]

#: Requests whose first entry is remembered, so that the database need not be asked.
_REMEMBERED = 10_000
_WORDS = {"paused": "pause", "running": "resume", "stopped": "stop"}


class Desk:
    """The writing side of an experiment; one thread uses it, within transactions.

    Parameters
    ----------
    session : Hosted
        Its state.
    log : PendingLog
        Where the session writes.
    wanted : Specification
        How it was begun.
    settings : Settings
        Limits.
    now : callable
        Clock in seconds since 1970.
    """

    def __init__(
        self,
        session: Hosted,
        log: PendingLog,
        wanted: Specification,
        settings: Settings,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.session, self.log, self.wanted = session, log, wanted
        self._settings, self._now = settings, now
        self._bounds = bounds_of(wanted.reward)
        self._known: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._next_look = next_look(log.last)
        self._noted = 0  # entries that wait, and that the notes know
        self.look: str | None = None

    @property
    def experiment(self) -> str:
        """Its id."""
        return self.log.path

    def remember(self, entry: Entry) -> None:
        """Take note of the first entry of a request, found in the database or made just now."""
        for kind, value in (("key", entry.key), ("unit", entry.unit)):
            if value is not None:
                self._known[kind, value] = entry
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)

    def knows(self, kind: str, value: str) -> bool:
        """Whether the first entry of a request is remembered."""
        return (kind, value) in self._known

    def catch_up(self, entries: Iterable[Entry]) -> None:
        """Fold what others have written."""
        last = self.session.fold(entries, self.log.last)
        if last > self.log.last:
            self.log.last = last
            self._next_look = next_look(last)

    def settle(self) -> None:
        """Finish what one request has led to: notes, and a look if one is due."""
        for entry in self.log.waiting[self._noted :]:
            self.session.notes.follow(entry)
        self._noted = len(self.log.waiting)
        if self.log.last >= self._next_look:
            self.look = look_at(self.session, self._now())
            self._next_look = next_look(self.log.last)

    def committed(self) -> None:
        """Take note that all is in the database."""
        self.log.committed()
        self._noted, self.look = 0, None

    def begin(self) -> dict[str, Any]:
        """Write the first entry, which says how the experiment was begun."""
        body = json.dumps(self.wanted.model_dump(), allow_nan=False)
        self.log.note("created", self._now(), body=body)
        self.log.keep_snapshot(self.session.snapshot())
        return self.described()

    def described(self) -> dict[str, Any]:
        """Say what the experiment is."""
        options = self.session.options
        return {
            "id": self.experiment,
            "phase": self.session.notes.phase,
            "options": list(options.labels),
            "policy": type(self.session.policy).__name__,
            "description": self.wanted.description,
        }

    def ask(self, question: Question, key: str | None, digest: str) -> dict[str, Any]:
        """Decide, or say again what was decided under this key or for this unit."""
        if key is not None and (first := self._known.get(("key", key))) is not None:
            if first.extra.get("request") != digest:
                raise Problem(
                    422, "other-request", f"Idempotency-Key {key!r} came with another body before"
                )
            return self._answer(first)
        if question.unit is not None:
            if question.count is not None:
                raise Problem(422, "invalid", "count must be left out with a unit: it gets one")
            sticky = self._known.get(("unit", question.unit))
            if sticky is not None:
                if key is not None:  # so that another body under this key is refused
                    made = Entry(sticky.event, key, None, {"request": digest})
                    decision = sticky.event.decision
                    self.remember(self.log.note("recalled", self._now(), made, decision=decision))
                return self._answer(sticky)
        self._require_running()
        return self._answer(self._decide(question, key, digest))

    def _decide(self, question: Question, key: str | None, digest: str) -> Entry:
        count = question.count or 1
        if count > self._settings.most_decisions:
            most = self._settings.most_decisions
            raise Problem(422, "invalid", f"count must be {most} at most, got {count}")
        before = len(self.log.waiting)
        where: Any = {"available": question.available, "context": question.context}
        if question.count is None:
            self.session.ask(**where)
        else:
            self.session.ask(count, **where)
        extra: dict[str, Any] = {} if question.activate else {"active": False}
        if self.session.notes.version:
            extra["version"] = self.session.notes.version
        waiting = self.log.waiting
        first = len(waiting) - count  # windows that ended come before
        assert first >= before
        for i in range(first + 1, len(waiting)):
            waiting[i] = waiting[i]._replace(extra=extra)
        many = {} if question.count is None else {"many": True}
        head = Entry(waiting[first].event, key, question.unit, {**extra, "request": digest, **many})
        waiting[first] = head
        self.remember(head)
        return head

    def _answer(self, first: Entry) -> dict[str, Any]:
        """Answer a request whose first entry this is."""
        if first.event.kind == "recalled":
            first = self.log.entries_of(first.event.decision or "")[0]
        count = first.event.questions or 1
        entries = [first]
        if count > 1:
            entries = self.log.entries(first.event.sequence - 1, count)
        options, limits = self.session.options, self.session.limits
        answers = [decision_answer(self.experiment, one, options, limits) for one in entries]
        return {"decisions": answers} if first.extra.get("many") else answers[0]

    def tell(self, decision: str, reward: object) -> dict[str, Any]:
        """Learn a reward."""
        if self._bounds is not None:
            value, (low, high) = reward_value("reward", reward), self._bounds
            if not low <= value <= high:
                raise Problem(
                    422, "invalid", f"reward must be from {low:g} to {high:g}, got {value:g}"
                )
        if self.session.open_decision(decision) is None:
            self._refuse_late_again(decision)
        self.session.tell(decision, reward)  # type: ignore[arg-type]
        return self._closed(decision)

    def _refuse_late_again(self, decision: str) -> None:
        """Count a reward that comes too late once, however often it is sent."""
        kinds = {entry.event.kind for entry in self.log.entries_of(decision)}
        if {"expired", "late"} <= kinds:
            raise Problem(410, "expired-decision", f"the window of decision {decision} ended")

    def missing(self, decision: str) -> dict[str, Any]:
        """Stop waiting for a reward."""
        self.session.missing(decision)
        return self._closed(decision)

    def _closed(self, decision: str) -> dict[str, Any]:
        closing = self.session.closing(decision)
        assert closing is not None
        return {"experiment": self.experiment, **closing_answer(closing)}

    def activate(self, decision: str) -> dict[str, Any]:
        """Take note that a decision is used; a reward says so as well."""
        self.session.expire()
        if decision in self.session.notes.inactive:
            self.log.note("activated", self._now(), decision=decision)
        closing = self.session.closing(decision)
        if closing is not None and closing.ending != "told":
            raise Problem(
                410, "closed-decision", f"decision {decision} ended at {moment(closing.when)}"
            )
        return {"id": decision, "experiment": self.experiment, "activated": True}

    def expire(self) -> dict[str, Any]:
        """End reward windows that are over."""
        self.session.expire()
        return {}

    def add(self, option: Addition) -> dict[str, Any]:
        """Add an option; the same one again changes nothing."""
        self._require_running()
        options = self.session.options
        if option.name in options.names:
            arm = options.index(option.name)
            row = option.features
            known = options.levels is not None and options.levels[arm] == option.levels
            if known or (row is not None and options.features[arm].tolist() == row):
                return {**self.described(), "model_version": self.session.notes.version}
            raise Problem(409, "other-option", f"there is an option {option.name!r} already")
        if len(options) >= self._settings.most_options:
            most = self._settings.most_options
            raise Problem(422, "invalid", f"there may be {most} options at most")
        self.session.add(
            option.name, option.features, levels=option.levels, noise_std=option.noise_std
        )
        return {**self.described(), "model_version": self.log.last}

    def retire(self, option: str) -> dict[str, Any]:
        """Stop choosing an option; once more changes nothing."""
        try:
            before = self.log.last
            self.session.retire(option)
        except KeyError as error:
            raise Problem(404, "unknown-option", str(error.args[0])) from None
        changed = self.log.last if self.log.last > before else self.session.notes.version
        return {**self.described(), "model_version": changed}

    def change_phase(self, phase: str) -> dict[str, Any]:
        """Pause, resume or stop; an experiment that was stopped stays so."""
        now = self.session.notes.phase
        if now != phase:
            if now == "stopped":
                raise Problem(
                    409, "stopped", f"experiment {self.experiment} was stopped: no {_WORDS[phase]}"
                )
            self.log.note("resumed" if phase == "running" else phase, self._now())
        return {"id": self.experiment, "phase": phase}

    def _require_running(self) -> None:
        phase = self.session.notes.phase
        if phase != "running":
            raise Problem(409, phase, f"experiment {self.experiment} is {phase}")
