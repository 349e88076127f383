"""A long log, made by the writer of a service in large batches."""

from __future__ import annotations

from typing import Any

from sightline.service.bodies import Question, Specification
from sightline.service.desk import Desk
from sightline.service.heart import Heart
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command

__all__ = ["fill"]


def fill(store: Store, experiment: str, specification: dict[str, Any], events: int) -> None:
    """Begin an experiment, and ask and tell until it has so many events."""
    heart = Heart(store, Settings(most_decisions=10_000))
    writer = heart._writer
    make = heart._make(experiment, Specification.model_validate(specification))
    writer._carry_out([Command(Desk.expire, experiment, make=make)])
    question = Question.model_validate({"count": min(1000, events // 4)})
    while writer._desks[experiment].log.last < events:
        ask = Command(lambda desk: desk.ask(question, None, ""), experiment)
        writer._carry_out([ask])
        assert isinstance(ask.answer, tuple), ask.answer
        ids = [one["id"] for one in ask.answer[1]["decisions"]]
        for i in range(2):  # a transaction of its own each: it has little time
            writer._carry_out([_tells(experiment, ids[i::2])])


def _tells(experiment: str, ids: list[str]) -> Command:
    """Tell rewards of many decisions in one command."""

    def verb(desk: Desk) -> dict[str, Any]:
        desk.session.tell_many([(id_, 0.5) for id_ in ids])
        return {}

    return Command(verb, experiment)
