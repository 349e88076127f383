"""What readers and pages are told of an experiment: where it stands, and how it got there."""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from sightline.core.clock import FAR
from sightline.problems.descriptions import describe
from sightline.report.estimated import estimated_problem, regret_spent
from sightline.report.standing import View, view_of
from sightline.service import rows
from sightline.service.answers import decision_answer, moment, plain
from sightline.service.beginning import control_of
from sightline.service.bounds import Bound, Bounds
from sightline.service.loading import begun_with
from sightline.service.looks import look_at
from sightline.service.readers import Follower, Readers
from sightline.service.stopping import stop_answer
from sightline.sessions.decisions import Status
from sightline.sessions.ledger import Window
from sightline.sessions.options import pairs_of

__all__ = [
    "effects_view",
    "estimates_view",
    "experiment_view",
    "experiments_view",
    "history_view",
    "pending_view",
    "status_view",
]


def experiments_view(readers: Readers) -> dict[str, Any]:
    """List all experiments, the oldest first."""
    found = []
    for name, first in readers.beginnings():
        wanted = begun_with(first)
        created = moment(first.event.time)
        found.append({"id": name, "created_at": created, "description": wanted.description})
    return {"experiments": found}


def experiment_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Say what an experiment is."""
    with readers.following(experiment) as (follower, _):
        session = follower.session
        options = session.options
        return {
            "id": experiment,
            "phase": session.notes.phase,
            "created_at": moment(follower.created),
            "specification": follower.wanted.model_dump(),
            "policy": str(session.policy),
            "options": list(options.labels),
            "levels": options.levels,
            "features": None if options.stream else options.features.tolist(),
            "retired": sorted(session.live.table.retired),
            "model_version": session.notes.version,
        }


def status_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Say where an experiment stands."""
    with readers.following(experiment) as (follower, connection):
        session, view = follower.session, view_of(follower.session.live)
        status, options = session.status(), session.options
        names = options.labels
        looks = [json.loads(look) for look in rows.looks_of(connection, experiment)[-20:]]
        answer: dict[str, Any] = {
            "id": experiment,
            "phase": session.notes.phase,
            "best": None if status.best is None else names[options.index(status.best)],
            "bests": {c: names[options.index(best, c)] for c, best in status.bests.items()},
            "settled": status.settled,
            "evidence": plain(status.evidence),
            "threshold": plain(status.threshold),
            "round": status.round,
            "next_exploration": _round(status),
            "explorations": status.explorations,
            "pending": status.pending,
            "waiting": status.waiting,
            "waiting_until": _until(status, session.limits),
            "inactive": len(session.notes.inactive),
            "told": status.told,
            "expired": status.expired,
            "missing": status.given_up,
            "late": status.late,
            "amended": session.notes.amended,
            "reward": plain(float(view.totals.sum())),
            "expected_loss": plain(status.expected_loss),
            "price": plain(status.price),
            "unit": status.unit,
            "at_stake": status.at_stake(max(status.round - 1, 1)),
            "advice": status.advice,
            "model_version": session.notes.version,
            "sequence": follower.last,
            "control": follower.wanted.control,
            "stop": stop_answer(view, follower.wanted.stop, session.notes),
            "next": _next(follower, status, looks),
        }
    # what takes long is found when nobody waits for this experiment any more
    return answer | _regret(readers.bounds, experiment, answer["sequence"], view)


def _regret(bounds: Bounds, experiment: str, sequence: int, view: View) -> dict[str, Any]:
    """Estimate the regret so far, and c*, both at the present estimates."""
    try:
        spent = plain(regret_spent(view))
    except ValueError as error:
        return {"regret_spent": None, "bound": None, "bound_reason": str(error)}
    found = Bound(None, "no reward has come yet")
    if view.told.any():
        size, make = view.options.features.size, estimated_problem
        found = bounds.of(experiment, sequence, size, lambda: describe(make(view)))
    return {"regret_spent": spent, "bound": found.values, "bound_reason": found.reason}


def _until(status: Status, limits: Window) -> str | int | None:
    """Say when the last reward that waits enters the estimate: a moment, or a round."""
    if status.waiting_until is None:
        return None
    return moment(status.waiting_until) if limits.rounds is None else int(status.waiting_until)


def _round(status: Status) -> int | None:
    """Round of the next exploration, where a program in any language has such a number."""
    found = status.next_exploration
    return None if found is None or found >= FAR else found


def _next(follower: Follower, status: Status, looks: list[dict[str, Any]]) -> dict[str, Any]:
    """Say what happens next, and when: at the pace of the last looks."""
    phase = follower.session.notes.phase
    options = follower.session.options
    names = options.labels
    found = status.next_exploration
    committed = follower.session.live.table.committed
    best = "the best option" if status.best is None else names[options.index(status.best)]
    if phase != "running":
        waits = f"; {status.pending} decisions still wait for their rewards"
        text, when = f"The experiment is {phase}{waits if status.pending else ''}.", None
    elif committed:
        best = names[committed[0]] if len(committed) == 1 else "the best option of every context"
        text, when = f"{best} is played from now on: the experiment is settled.", None
    elif found is not None and found <= status.round:
        text, when = "The next decision may explore.", None
    elif found is None or found >= FAR:
        text = f"{best} is played from now on, unless rewards that are still to come change that."
        when = None
    else:
        count = found - status.round
        text = f"{best} is played for {count:,} more decisions; then the policy explores again."
        when = _when(looks, found)
    return {"text": text[0].upper() + text[1:], "round": _round(status), "at": when}


def _when(looks: list[dict[str, Any]], round_: int) -> str | None:
    """Say when a round comes, if decisions go on as they did."""
    if len(looks) < 2:
        return None
    first, last = looks[0], looks[-1]
    made, seconds = last["round"] - first["round"], last["time"] - first["time"]
    if made <= 0 or seconds <= 0:
        return None
    then = last["time"] + (round_ - last["round"]) * seconds / made
    return moment(then) if then < 4e9 else None


def estimates_view(readers: Readers, experiment: str, delta: float) -> dict[str, Any]:
    """Estimate every option; with a control, its difference to that."""
    with readers.following(experiment) as (follower, _):
        view, wanted = view_of(follower.session.live), follower.wanted
    found, options = view.estimates, view.options
    labels = options.labels if options.items is None else options.items
    if options.stream:
        labels = options.columns
    counts = [{} for _ in labels] if options.stream else _counts(view)
    differences = _differences(view, control_of(wanted, options), delta)
    estimates = []
    for i, label in enumerate(labels):
        known = found is not None and i < len(found.means)
        mean = plain(float(found.means[i])) if known and found is not None else None
        error = plain(float(found.standard_errors[i])) if known and found is not None else None
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


def _counts(view: View) -> list[dict[str, Any]]:
    """Decisions, rewards and their mean of every option; in a duel, of every item."""
    asked, told, totals = view.asked, view.told, view.totals
    mean = "mean_reward"
    if view.options.items is not None:
        asked, told, totals = _of_items(view)
        mean = "mean_outcome"
    return [
        {
            "offered": bool(view.offered[i]),
            "asked": int(asked[i]),
            "told": int(told[i]),
            mean: plain(float(totals[i]) / int(told[i])) if told[i] else None,
        }
        for i in range(len(asked))
    ]


def _of_items(view: View) -> tuple[Any, Any, Any]:
    """Decisions that showed an item, their outcomes, and the sum of these: 1 where it has won."""
    first, second = np.array(pairs_of(len(view.options.items or ()))).T
    found = []
    for values, sign in ((view.asked, 1), (view.told, 1), (view.totals, -1)):
        sums = np.zeros(len(view.options.items or ()), dtype=values.dtype)
        np.add.at(sums, first, values)
        apart = first != second  # what is shown alone is shown once
        np.add.at(sums, second[apart], sign * values[apart])
        found.append(sums)
    return found[0], found[1], found[2]


def _differences(view: View, control: tuple[int, ...], delta: float) -> list[dict[str, Any]]:
    """Differences to the control, if there is one, with intervals that hold at all rounds."""
    if not control:
        return []
    ends = zip(*view.differences(control, delta), strict=True)
    return [
        {"estimate": plain(float(value)), "lower": plain(float(low)), "upper": plain(float(high))}
        for value, low, high in ends
    ]


def effects_view(readers: Readers, experiment: str, delta: float) -> dict[str, Any]:
    """Estimate every effect, with intervals that hold at all rounds at once."""
    with readers.following(experiment) as (follower, _):
        view = view_of(follower.session.live)
    found = [
        {
            "term": one.term,
            "level": one.level,
            "effect": plain(one.effect),
            "lower": plain(one.lower),
            "upper": plain(one.upper),
        }
        for one in view.effects(delta)
    ]
    return {"id": experiment, "delta": delta, "effects": found}


def pending_view(readers: Readers, experiment: str, most: int) -> dict[str, Any]:
    """List decisions that wait for their rewards, the oldest first."""
    with readers.following(experiment) as (follower, connection):
        session = follower.session
        waiting = list(session.live.ledger.open.values())
        options, limits = session.options, session.limits
        found = [rows.entries_of(connection, experiment, one.id)[0] for one in waiting[:most]]
        inactive = set(session.notes.inactive)
    answers = [decision_answer(experiment, entry, options, limits) for entry in found]
    for answer in answers:
        answer["activated"] = answer["id"] not in inactive
    return {"id": experiment, "count": len(waiting), "decisions": answers}


def history_view(readers: Readers, experiment: str) -> dict[str, Any]:
    """Say what was known when, and now: evidence, reward and traffic, in the order of time."""
    with readers.following(experiment) as (follower, connection):
        looks = [json.loads(look) for look in rows.looks_of(connection, experiment)]
        looks.append(json.loads(look_at(follower.session, time.time())))
        names = follower.session.options.labels
    k = len(names)
    before = np.zeros(k)
    points = []
    for look in looks:
        share = None
        if look["asked"] is not None:
            asked = np.zeros(k)
            asked[: len(look["asked"])] = look["asked"]
            made = (asked - before).sum()
            share = ((asked - before) / made).tolist() if made > 0 else None
            before = asked
        points.append(
            {
                "at": moment(look["time"]),
                "round": look["round"],
                "evidence": look["evidence"],
                "threshold": look["threshold"],
                "told": look["told"],
                "reward": look["reward"],
                "fixed_split": _product(look["split"], look["told"]),
                "traffic": share,
            }
        )
    return {"id": experiment, "options": list(names), "points": points}


def _product(split: float | None, told: int) -> float | None:
    """Estimate the sum of rewards of an equal split, by what was known then."""
    return None if split is None else plain(split * told)
