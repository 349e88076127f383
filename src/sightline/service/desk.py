"""One experiment and all that can be done to it: each once, however often it is asked for."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Any

from sightline.service.answers import closing_answer, decision_answer, moment
from sightline.service.beginning import bounds_of
from sightline.service.bodies import Question, Specification
from sightline.service.costs import check_count, check_open
from sightline.service.entries import Entry, request_digest, support_fields
from sightline.service.hosted import Hosted
from sightline.service.log import PendingLog
from sightline.service.looks import look_at, next_look
from sightline.service.problems import Problem
from sightline.service.settings import Settings
from sightline.service.stopping import winners
from sightline.sessions.decisions import reward_value
from sightline.sessions.journal import Event, amendment_in, told_in_event
from sightline.sessions.view import view_of

__all__ = ["Desk"]

#: Requests whose first entry is remembered, so that the database need not be asked.
_REMEMBERED = 10_000
#: Reward windows that are ended at once; others wait for them about 20 ms.
_MOST_CLOSED = 250


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
        self.settings, self.now = settings, now
        self._bounds = bounds_of(wanted.reward)
        self._known: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        self._next_look = next_look(log.last)
        self._noted = 0  # entries that wait, and that the notes know
        self.look: str | None = None
        self.cost = 0.0  # seconds of a request, about
        self.size = 0  # bytes, about

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
        was_settled = self.session.notes.settled
        self._take_note()
        is_due = self.log.last >= self._next_look
        if is_due:
            self.look = look_at(self.session, self.now())
        if is_due or (was_settled and not self.session.notes.settled):
            self._judge()
        if is_due:
            self._next_look = next_look(self.log.last)

    def _take_note(self) -> None:
        for entry in self.log.waiting[self._noted :]:
            self.session.notes.follow(entry)
        self._noted = len(self.log.waiting)

    def _judge(self) -> None:
        """Find out whether the experiment is settled at its level, and do what it says then."""
        stop, notes = self.wanted.stop, self.session.notes
        if stop is None or notes.settled or notes.phase == "stopped":
            return
        arms = winners(view_of(self.session.live), stop)
        if not arms:
            return
        if stop.action == "commit":
            self.session.commit(arms)
        else:
            self.log.note("settled", self.now(), body=json.dumps({"arms": arms}))
        self._take_note()

    def committed(self) -> None:
        """Take note that all is in the database."""
        self.log.committed()
        self._noted, self.look = 0, None

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
        if key is not None and (first := self._recalled(key, digest)) is not None:
            return self._answer(first)
        if question.unit is not None:
            if question.count is not None:
                raise Problem(422, "invalid", "count must be left out with a unit: it gets one")
            sticky = self._known.get(("unit", question.unit))
            if sticky is not None:
                if key is not None:  # so that another body under this key is refused
                    made = Entry(sticky.event, key, None, {"request": digest})
                    decision = sticky.event.decision
                    self.remember(self.log.note("recalled", self.now(), made, decision=decision))
                return self._answer(sticky)
        self.require_running()
        return self._answer(self._decide(question, key, digest))

    def _recalled(self, key: str, digest: str) -> Entry | None:
        """Find the first entry of the same request under a key; another request is refused."""
        first = self._known.get(("key", key))
        if first is not None and first.extra.get("request") != digest:
            raise Problem(
                422, "other-request", f"Idempotency-Key {key!r} came with another request before"
            )
        return first

    def _decide(self, question: Question, key: str | None, digest: str) -> Entry:
        count = question.count or 1
        if count > self.settings.most_decisions:
            most = self.settings.most_decisions
            raise Problem(422, "invalid", f"count must be {most} at most, got {count}")
        check_count(self.session.live, count, self.settings)
        check_open(self.session.live, count, self.settings)
        before = len(self.log.waiting)
        where: Any = {"available": question.available, "context": question.context}
        if question.actions is not None:
            where["actions"] = question.actions
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
        for i, support in enumerate(self.session.supports, first):
            waiting[i] = waiting[i]._replace(extra={**extra, **support_fields(support)})
        many = {} if question.count is None else {"many": True}
        known = {**waiting[first].extra, "request": digest, **many}
        head = Entry(waiting[first].event, key, question.unit, known)
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

    def _check_bounds(self, reward: object) -> None:
        if self._bounds is not None:
            value, (low, high) = reward_value("reward", reward), self._bounds
            if not low <= value <= high:
                raise Problem(
                    422, "invalid", f"reward must be from {low:g} to {high:g}, got {value:g}"
                )

    def tell(self, decision: str, reward: object) -> dict[str, Any]:
        """Learn a reward."""
        self._check_bounds(reward)
        kinds: set[str] = set()
        if self.session.open_decision(decision) is None:
            kinds = self._kinds(decision)
        if {"expired", "late"} <= kinds:  # it is counted once, however often it is sent
            raise Problem(410, "expired-decision", f"the window of decision {decision} ended")
        self.session.tell(decision, reward)  # type: ignore[arg-type]
        return self._closed(decision, "amended" in kinds)

    def _kinds(self, decision: str) -> set[str]:
        """Kinds of all entries about a decision."""
        return {entry.event.kind for entry in self.log.entries_of(decision)}

    def amend(self, decision: str, reward: object, key: str | None) -> dict[str, Any]:
        """Put another reward in the place of what was told, or tell it if nothing was."""
        digest = request_digest({"decision": decision, "amend": reward})
        if key is not None and (first := self._recalled(key, digest)) is not None:
            return self._amended(first)
        self._check_bounds(reward)
        before = len(self.log.waiting)
        self.session.amend(decision, reward)  # type: ignore[arg-type]
        new = [
            i
            for i in range(before, len(self.log.waiting))  # windows that ended come before
            if self.log.waiting[i].event.decision == decision
        ]
        if not new and key is None:
            return self._closed(decision, "amended" in self._kinds(decision))
        if not new:  # it is noted, so that it changes nothing later either
            answer = self._closed(decision, "amended" in self._kinds(decision))
            entry = Entry(Event(0, "", 0.0), key, None, {"request": digest, "told": answer})
            self.remember(self.log.note("recalled", self.now(), entry, decision=decision))
            return answer
        head = self.log.waiting[new[-1]]._replace(key=key, extra={"request": digest})
        self.log.waiting[new[-1]] = head
        if key is not None:
            self.remember(head)
        return self._amended(head)

    def _amended(self, first: Entry) -> dict[str, Any]:
        """Answer a request to amend whose entry this is: with what it has led to then."""
        if first.event.kind == "recalled":
            return dict(first.extra["told"])
        is_amended, waits = first.event.kind == "amended", first.event.kind == "received"
        closing = self.session.closing(first.event.decision or "")
        assert closing is not None
        told = amendment_in(first.event).now if is_amended else told_in_event(first.event)
        answer = closing_answer(closing._replace(reward=told), is_amended, waits)
        return {"experiment": self.experiment, **answer}

    def missing(self, decision: str) -> dict[str, Any]:
        """Stop waiting for a reward."""
        self.session.missing(decision)
        return self._closed(decision)

    def _closed(self, decision: str, amended: bool = False) -> dict[str, Any]:
        closing, waits = self.session.closing(decision), self.session.waits(decision)
        assert closing is not None
        return {"experiment": self.experiment, **closing_answer(closing, amended, waits)}

    def activate(self, decision: str) -> dict[str, Any]:
        """Take note that a decision is used; a reward says so as well."""
        self.session.expire()
        if decision in self.session.notes.inactive:
            self.log.note("activated", self.now(), decision=decision)
        closing = self.session.closing(decision)
        if closing is not None and closing.ending != "told":
            raise Problem(
                410, "closed-decision", f"decision {decision} ended at {moment(closing.when)}"
            )
        return {"id": decision, "experiment": self.experiment, "activated": True}

    def expire(self) -> dict[str, Any]:
        """End reward windows that are over."""
        self.session.expire(_MOST_CLOSED)
        return {}

    @property
    def is_behind(self) -> bool:
        """Whether reward windows are over that were not ended yet, after many were."""
        return bool(self.session.live.due(self.now(), 1))

    def require_running(self) -> None:
        """Refuse what an experiment that is paused or stopped does not do."""
        phase = self.session.notes.phase
        if phase != "running":
            raise Problem(409, phase, f"experiment {self.experiment} is {phase}")
