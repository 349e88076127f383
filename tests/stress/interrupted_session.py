"""A session under signals: python -m tests.stress.interrupted_session POLICY COUNT [--journal].

While an actor does everything that can be done to a session, signals come whose handlers raise.
After every interruption a twin that is never interrupted does what the session says it has done,
and must then have the same bits.  Prints one line of JSON; how the process ends is seen outside.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import faulthandler
import json
import random
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sightline as sl
from sightline.sessions import state
from sightline.sessions.decisions import is_missing
from sightline.sessions.journal import replay
from tests.stress.actor import POLICIES, Actor, begin, bits, where
from tests.stress.books import Deed, judge, left_over, record
from tests.stress.sender import Interrupted, Interruptions

STUCK_AFTER = 60.0  # seconds without an interruption


#: What a stream computes of the options of a question, which an interrupted question replaces.
SCRATCH = ("means", "squared_widths", "seen_widths", "refreshed_widths")


def _same(session: sl.Session, twin: sl.Session, names: bool) -> None:
    ours, others = (bits(one._live, names=names) for one in (session, twin))
    different = [name for name, value in ours.items() if others[name] != value]
    if session.options.stream:
        scratch = {f"state.estimate.arms.{name}" for name in SCRATCH}
        different = [name for name in different if name not in scratch]
    if different:
        raise AssertionError(f"differ in {different}: {session.status()}, {twin.status()}")


def _balanced(status: sl.types.Status, learned: int) -> None:
    closed = status.told + status.expired + status.given_up
    if status.round - 1 != closed + status.pending + status.waiting:
        raise AssertionError(f"decisions are missing: {status}")
    if status.explorations != learned:
        raise AssertionError(f"learned from {learned}: {status}")


def _counts(session: sl.Session) -> tuple[int, ...]:
    status, table = session.status(), session._live.table
    closed = (status.told, status.expired, status.given_up, status.late)
    options = len(table.options), len(table.retired)
    waits = status.pending, status.waiting
    return (status.round, status.explorations, *waits, *closed, *options)


class Twin:
    """Follows a session by doing the same."""

    def __init__(self, actor: Actor, policy: sl.extend.Policy) -> None:
        self._actor, self._session = actor, actor.session
        self._twin = begin(policy)
        self._learned = 0

    def compare(self) -> str:
        """Do what was done, compare, and say what became of what was interrupted."""
        actor = self._actor
        status = self._session.status()  # the next call succeeds
        for deed in actor.done:
            self._follow(deed)
        actor.done.clear()
        found = "between calls" if actor.doing is None else self._finish(actor.doing, status)
        actor.doing = None
        self._look()
        _same(self._session, self._twin, names=False)
        _balanced(status, self._learned)
        actor.refresh()
        return found

    def _finish(self, deed: Deed, status: sl.types.Status) -> str:
        if deed.kind == "save":
            self._actor.check_file()
        if deed.kind in ("save", "look"):
            return deed.kind
        self._look()
        if _counts(self._session) == _counts(self._twin):
            return f"{deed.kind}: before"
        self._follow(deed)
        self._look()
        if _counts(self._session) != _counts(self._twin):
            raise AssertionError(f"{deed} is half done: {status}, {self._twin.status()}")
        if deed.kind in ("tell", "late"):
            for t in deed.argument if deed.kind == "tell" else [deed.argument]:
                self._actor.open.pop(t, None)
        return f"{deed.kind}: after"

    def _follow(self, deed: Deed) -> None:
        twin, decisions = self._twin, self._twin._live.decisions
        if deed.kind == "ask":
            count, arguments = deed.argument
            several = {} if count == 1 else {"count": count}
            self._watched(lambda: twin.ask(**several, **arguments))
        elif deed.kind == "tell":
            ids = {one.round: one.id for one in decisions.open.values()}
            pairs = [(ids[t], reward) for t, reward in deed.argument.items()]
            self._watched(lambda: twin.tell_many(pairs))
        elif deed.kind == "give up":
            self._watched(lambda: twin.give_up(before=deed.argument))
        elif deed.kind == "late":
            self._look()
            (id_,) = [
                id_ for id_, one in decisions.closed.items() if one.decision.round == deed.argument
            ]
            try:
                twin.tell(id_, 0.5)
            except sl.types.ExpiredDecisionError:
                return
            raise AssertionError(f"the twin accepts a late reward: {deed}")
        elif deed.kind == "add":
            self._watched(lambda: twin.add(f"new {len(twin.options)}", deed.argument))
        elif deed.kind == "retire":
            self._watched(lambda: twin.retire(deed.argument))
        elif deed.kind == "look":
            self._look()

    def _look(self) -> None:
        self._watched(self._twin.status)

    def _watched(self, call: Callable[[], object]) -> None:
        """Count rewards learned from, by what becomes of open decisions."""
        decisions = self._twin._live.decisions
        before = list(decisions.open)
        call()
        for id_ in before:
            if id_ not in decisions.open:
                closing = decisions.closed[id_]
                self._learned += closing.decision.exploring and not is_missing(closing.reward)


class Journaled:
    """Follows a session by its journal, which tells the order of what several threads do."""

    def __init__(self, actors: list[Actor], policy: sl.extend.Policy) -> None:
        self._actors, self._session = actors, actors[0].session
        self._twin = begin(policy)
        self._twin._live.states_probabilities = True  # as sessions with a journal
        self._seen = self._learned = 0
        self._exploring: dict[str, bool] = {}

    def compare(self) -> str:
        """Replay what has been written, compare, and say what became of what was interrupted."""
        status = self._session.status()  # the next call succeeds
        events = self._session.events(after=self._seen)
        self._seen += len(events)
        for event in events:
            if event.kind == "asked":
                self._exploring[event.decision or ""] = bool(event.exploring)
            elif event.reward is not None and event.kind != "received":
                self._learned += self._exploring[event.decision or ""]
        replay(self._twin._live, events)
        _same(self._session, self._twin, names=True)
        _balanced(status, self._learned)
        first = self._actors[0]
        acknowledged = [one for actor in self._actors for one in actor.acknowledged]
        left = left_over(events, acknowledged)
        if len(self._actors) > 1:  # some tell in vain what has expired since they asked
            left = [one for one in left if one[0] != "late"]
        found = judge(first.doing, left)
        if first.doing == Deed("save"):
            first.check_file()
        for actor in self._actors:
            actor.doing = None
            actor.done.clear()
            actor.acknowledged.clear()
        first.refresh() if len(self._actors) == 1 else first.open.clear()
        return found


class Crowd:
    """Threads that do the same as the main thread, and rest when they are told to."""

    def __init__(self, actors: list[Actor]) -> None:
        self._resting = [threading.Event() for _ in actors]
        self._go = threading.Event()
        self._error: BaseException | None = None
        for actor, resting in zip(actors, self._resting, strict=True):
            threading.Thread(target=self._work, args=(actor, resting), daemon=True).start()

    def _work(self, actor: Actor, resting: threading.Event) -> None:
        while True:
            if not self._go.is_set():
                resting.set()
                self._go.wait()
                resting.clear()
            try:
                actor.act()
            except BaseException as error:
                self._error = error

    def go(self) -> None:
        """Let all actors work."""
        self._go.set()
        while any(resting.is_set() for resting in self._resting):
            time.sleep(1e-5)

    def rest(self) -> None:
        """Wait until no actor works."""
        self._go.clear()
        for resting in self._resting:
            resting.wait()
        if self._error is not None:
            raise self._error


def survive(
    policy: sl.extend.Policy, count: int, seed: int, folder: Path, journal: bool, threads: int
) -> dict[str, Any]:
    """Interrupt a session so many times."""
    rng = random.Random(seed)
    state.SNAPSHOT_EVERY = 300
    session = begin(policy, folder / "journal.db" if journal else None)
    session.tell(session.ask(**where(session)), 0.5)  # compiles
    for look in (session.status, session.estimates):
        look()
    alone = threads == 0
    actors = [Actor(session, random.Random(rng.random()), folder, alone=alone)]
    actors += [
        Actor(session, random.Random(rng.random()), folder, alone=False) for _ in range(threads)
    ]
    first = actors[0]
    first.done += [Deed("ask", (1, where(session))), Deed("tell", {1: 0.5})]
    first.acknowledged += [record(event) for event in session.events()] if journal else []
    twin = Journaled(actors, policy) if journal else Twin(first, policy)
    crowd = Crowd(actors[1:])
    interruptions = Interruptions(seed)
    found = collections.Counter[str]()
    while interruptions.raised < count:
        faulthandler.dump_traceback_later(STUCK_AFTER, exit=True)
        crowd.go()
        interruptions.request(rng.choice([1, 1, 1, 1, 2, 3]))
        try:
            while interruptions.coming():
                first.act()
            found["swallowed"] += 1
        except Interrupted:
            pass
        while interruptions.coming():  # the next call is interrupted, too
            with contextlib.suppress(*Interrupted):
                session.status()
        crowd.rest()
        found[twin.compare()] += 1
    faulthandler.cancel_dump_traceback_later()
    session.close()
    return {"sent": interruptions.sent, "raised": interruptions.raised, "found": dict(found)}


def main() -> None:
    """Read arguments, and print what was found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", choices=POLICIES)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--journal", action="store_true")
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = survive(
            POLICIES[given.policy],
            given.count,
            given.seed,
            Path(folder),
            given.journal,
            given.threads,
        )
    print(json.dumps(found))


if __name__ == "__main__":
    main()
