"""Whether an experiment is settled at the level that it was begun with."""

from __future__ import annotations

from typing import Any

from sightline.service.answers import moment, plain
from sightline.service.bodies import Stop
from sightline.service.hosted import Notes
from sightline.sessions.view import SessionView

__all__ = ["named", "stop_answer", "winners"]


def winners(view: SessionView, stop: Stop) -> list[int]:
    """Options that are best at the level of the experiment, one for every context; none so far."""
    reports = view.tested_at(stop.delta)
    if not view.told.any() or any(one.evidence < one.threshold for one in reports):
        return []
    return [int(one.best) for one in reports]


def named(view: SessionView, arms: tuple[int, ...]) -> Any:
    """Name of an option, or those of every context by its name; None for none."""
    names, blocks = view.options.names, view.options.contexts
    if not arms or blocks is None:
        return names[arms[0]] if arms else None
    return {context: names[arm] for context, arm in zip(blocks.names, arms, strict=True)}


def stop_answer(view: SessionView, stop: Stop | None, notes: Notes) -> dict[str, Any] | None:
    """Say how far the experiment is from being settled, or what it was settled for."""
    if stop is None:
        return None
    nearest = min(view.tested_at(stop.delta), key=lambda one: one.evidence - one.threshold)
    return {
        "delta": stop.delta,
        "action": stop.action,
        "evidence": plain(float(nearest.evidence)),
        "threshold": plain(float(nearest.threshold)),
        "settled": bool(notes.settled),
        "best": named(view, notes.settled),
        "settled_at": moment(notes.settled_at) if notes.settled else None,
    }
