"""From a journal back to the state of its session, bit for bit."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import cast, get_args

from sightline.policies.catalogue import is_described
from sightline.sessions.archive import read_snapshot
from sightline.sessions.decisions import Pending
from sightline.sessions.games import several_numbers
from sightline.sessions.journal import Event, set_of_bytes, told_in_event
from sightline.sessions.ledger import Closing, Ending, Received, Told, is_nothing
from sightline.sessions.live import CHANGES, LiveState
from sightline.sessions.log import Log
from sightline.sessions.supports import Support

__all__ = ["Watch", "check_beginning", "replay"]


#: Called with every decision that was made again, and the event that tells of it.
Watch = Callable[[Event, Pending, Support | None], None]


def replay(live: LiveState, events: Iterable[Event], watch: Watch | None = None) -> None:
    """Do again what a journal tells, and compare what was decided.

    Parameters
    ----------
    live : LiveState
        The state before the events.
    events : iterable of Event
        What has happened.
    watch : callable, optional
        Called with every event about a decision, the decision as it was made again, and what it
        could have been, if the state says so.

    Raises
    ------
    ValueError
        If a decision comes out differently: the journal was changed, or a policy decides otherwise
        on this machine or in this version of the library.
    """
    remaining = iter(events)
    for event in remaining:
        if event.kind == "asked":
            batch = [event, *islice(remaining, (event.questions or 1) - 1)]
            _ask_again(live, batch, watch)
        elif event.kind in CHANGES:
            live.change(event.time, event.kind, json.loads(event.body or ""))
        elif event.kind == "late":
            live.perform(event.time, [], late=event.decision or "")
        elif event.kind == "received":
            _receive_again(live, event)
        else:
            _close_again(live, event)


def _ask_again(live: LiveState, batch: list[Event], watch: Watch | None) -> None:
    available = None if batch[0].body is None else tuple(json.loads(batch[0].body))
    ids = [event.decision or "" for event in batch]
    context = live.options.context_number(batch[0].context)
    content, d = batch[0].actions, live.options.features.shape[1]
    actions = live.new_rows(None if content is None else set_of_bytes(content, d))
    operation = live.perform(batch[0].time, [], ids, "", available, context, actions)
    supports = live.supports if live.states_probabilities else (None,) * len(batch)
    for made, event, support in zip(operation.decisions(), batch, supports, strict=True):
        if (made.round, made.arm, made.exploring) != (event.round, event.arm, event.exploring):
            raise ValueError(
                f"event {event.sequence} recorded arm {event.arm} in round {event.round}, and "
                f"replaying gives arm {made.arm} in round {made.round}: the journal was changed, "
                "or this version of the library decides otherwise"
            )
        if watch is not None:
            watch(event, made, support)


def _receive_again(live: LiveState, event: Event) -> None:
    decision = event.decision or ""
    if decision not in live.ledger.open or not live.ledger.window.holds:
        raise ValueError(f"event {event.sequence} tells a reward that no decision waits for")
    received = Received(_told_again(live, event), event.time)
    live.perform(event.time, [], received={decision: received})


def _close_again(live: LiveState, event: Event) -> None:
    decision = live.ledger.open.get(event.decision or "")
    if decision is None or event.kind not in get_args(Ending):
        raise ValueError(f"event {event.sequence} closes a decision that is not open")
    told = _told_again(live, event)
    live.perform(event.time, [Closing(decision, cast(Ending, event.kind), told, event.time)])


def _told_again(live: LiveState, event: Event) -> Told:
    """Read what an event tells: as many numbers as an option shows."""
    told = told_in_event(event)
    if live.options.per_arm > 1 and not is_nothing(told):
        told = several_numbers(told, live.options.per_arm)
    elif isinstance(told, tuple):
        raise ValueError(f"event {event.sequence} tells several numbers, and an option shows one")
    return told


def check_beginning(journal: Log, wanted: LiveState) -> None:
    """Refuse to continue a session with another configuration than it began with."""
    found = journal.snapshot(first=True)
    assert found is not None
    first = read_snapshot(io.BytesIO(found[1]))
    names = [name for name, value in wanted.describe().items() if first.header[name] != value]
    game = wanted.options.observations is not None
    same = is_described(wanted.policy, first.header["policy"], game=game)
    different = [name for name in names if name != "policy" or not same]
    for name, array in wanted.options_arrays().items():
        if name not in first.arrays or first.arrays[name].tolist() != array.tolist():
            different.append(name)
    if different:
        raise ValueError(
            f"{journal.path} was begun with another {', '.join(different)}: open it without, or "
            "begin another journal"
        )
