"""Response bodies about decisions: functions of the log alone, so that repeats are equal."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from sightline.service.events import Entry
from sightline.sessions.attributes import attributes_in
from sightline.sessions.decisions import Closing, Window
from sightline.sessions.journal import support_in
from sightline.sessions.options import Options

_OUTCOMES = {"told": "observed", "expired": "expired", "given up": "given up"}


def timestamp(seconds: float) -> str:
    """Format seconds since 1970 as RFC 3339, to the microsecond."""
    text = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    return text.replace("+00:00", "Z")


def finite(value: float) -> float | None:
    """Return a finite number, or None: JSON has no others."""
    return value if math.isfinite(value) else None


def decision_response(
    experiment: str, entry: Entry, options: Options, limits: Window
) -> dict[str, Any]:
    """Describe a decision as it was made."""
    event = entry.event
    arm = event.arm or 0
    blocks, pairs, support = options.contexts, options.pairs, support_in(event)
    context = None if blocks is None or event.context is None else blocks.names[event.context]
    probabilities = None
    if support is not None:
        names = [options.names[arm] for arm in support.arms]
        probabilities = dict(zip(names, support.probabilities, strict=True))
    seconds, rounds = limits.seconds, limits.rounds
    return {
        "id": event.decision,
        "experiment": experiment,
        "option": options.names[arm],
        "arm": arm,
        "levels": None if options.levels is None else options.levels[arm],
        "pair": None if pairs is None else pairs[arm],
        "context": context,
        "unit": entry.unit,
        "attributes": attributes_in(event.attributes),
        "probability": event.probability,
        "probabilities": probabilities,
        "exploring": event.exploring,
        "round": event.round,
        "sequence": event.sequence,
        "model_version": entry.extra.get("version", 0),
        "activated": entry.extra.get("active", True),
        "asked_at": timestamp(event.time),
        "expires_at": None if seconds is None else timestamp(event.time + seconds),
        "expires_after_round": None if rounds is None else (event.round or 0) + rounds,
    }


def closing_response(
    experiment: str, closing: Closing, amended: bool, waits: bool = False
) -> dict[str, Any]:
    """Describe how a decision was closed.

    ``amended``: another reward was reported before.  ``waits``: the reward was received, and waits
    for the end of its window.
    """
    told = closing.reward
    return {
        "experiment": experiment,
        "id": closing.decision.id,
        "outcome": "received" if waits else _OUTCOMES[closing.ending],
        "reward": list(told) if isinstance(told, tuple) else finite(told),
        "amended": amended,
        "closed_at": None if waits else timestamp(closing.when),
    }
