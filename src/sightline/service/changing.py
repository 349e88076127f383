"""Changes of an experiment that runs: options that come and go, and its phases."""

from __future__ import annotations

from typing import Any

from sightline.service.bodies import Addition
from sightline.service.costs import Shape, check_shape
from sightline.service.desk import Desk
from sightline.service.problems import Problem

__all__ = ["add", "change_phase", "retire"]

_WORDS = {"paused": "pause", "running": "resume", "stopped": "stop"}


def add(desk: Desk, option: Addition) -> dict[str, Any]:
    """Add an option; the same one again changes nothing."""
    desk.require_running()
    options = desk.session.options
    if option.name in options.names:
        arm = options.index(option.name)
        row = option.features
        known = options.levels is not None and options.levels[arm] == option.levels
        if known or (row is not None and options.features[arm].tolist() == row):
            return {**desk.described(), "model_version": desk.session.notes.version}
        raise Problem(409, "other-option", f"there is an option {option.name!r} already")
    k, d = options.features.shape
    live = desk.session.live
    check_shape(Shape(k + 1, d), live.policy, live.floor, desk.settings)
    desk.session.add(option.name, option.features, levels=option.levels, noise_std=option.noise_std)
    return {**desk.described(), "model_version": desk.log.last}


def retire(desk: Desk, option: str) -> dict[str, Any]:
    """Stop choosing an option; once more changes nothing."""
    try:
        before = desk.log.last
        desk.session.retire(option)
    except KeyError as error:
        raise Problem(404, "unknown-option", str(error.args[0])) from None
    changed = desk.log.last if desk.log.last > before else desk.session.notes.version
    return {**desk.described(), "model_version": changed}


def change_phase(desk: Desk, phase: str) -> dict[str, Any]:
    """Pause, resume or stop; an experiment that was stopped stays so."""
    now = desk.session.notes.phase
    if now != phase:
        if now == "stopped":
            raise Problem(
                409, "stopped", f"experiment {desk.experiment} was stopped: no {_WORDS[phase]}"
            )
        desk.log.note("resumed" if phase == "running" else phase, desk.now())
    return {"id": desk.experiment, "phase": phase}
