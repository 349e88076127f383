"""What the service answers, made of entries of the log alone: again and again the same."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from sightline.service.entries import Entry
from sightline.sessions.decisions import Closing, Window
from sightline.sessions.options import Options

__all__ = ["closing_answer", "decision_answer", "moment", "plain"]

_OUTCOMES = {"told": "observed", "expired": "expired", "given up": "missing"}


def moment(seconds: float) -> str:
    """Write a moment as RFC 3339 does, to the microsecond."""
    written = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")
    return written.replace("+00:00", "Z")


def plain(value: float) -> float | None:
    """Return a number that JSON has; None for all others."""
    return value if math.isfinite(value) else None


def decision_answer(
    experiment: str, entry: Entry, options: Options, limits: Window
) -> dict[str, Any]:
    """Describe a decision as it was made."""
    event = entry.event
    arm = event.arm or 0
    blocks, pairs = options.contexts, options.pairs
    context = None if blocks is None or event.context is None else blocks.names[event.context]
    ends = None if limits.seconds is None else moment(event.time + limits.seconds)
    return {
        "id": event.decision,
        "experiment": experiment,
        "option": options.names[arm],
        "arm": arm,
        "levels": None if options.levels is None else options.levels[arm],
        "pair": None if pairs is None else pairs[arm],
        "context": context,
        "unit": entry.unit,
        "probability": event.probability,
        "probabilities": _probabilities(entry, options),
        "exploring": event.exploring,
        "round": event.round,
        "sequence": event.sequence,
        "model_version": entry.extra.get("version", 0),
        "activated": entry.extra.get("active", True),
        "asked_at": moment(event.time),
        "expires_at": ends,
        "expires_after_round": None
        if limits.rounds is None
        else (event.round or 0) + limits.rounds,
    }


def _probabilities(entry: Entry, options: Options) -> dict[str, float] | None:
    """Probabilities of all options that a decision could have been, by name."""
    support = entry.support
    if support is None:
        return None
    names = [options.names[arm] for arm in support.arms]
    return dict(zip(names, support.probabilities, strict=True))


def closing_answer(closing: Closing, amended: bool, waits: bool = False) -> dict[str, Any]:
    """Describe how a decision was closed, and whether it was told another reward before.

    A reward that waits until the window of its decision closes has been received.
    """
    told = closing.reward
    reward = list(told) if isinstance(told, tuple) else plain(told)
    return {
        "id": closing.decision.id,
        "outcome": "received" if waits else _OUTCOMES[closing.ending],
        "reward": reward,
        "amended": amended,
        "closed_at": None if waits else moment(closing.when),
    }
