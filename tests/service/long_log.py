"""A long log, made by the writer of a service in large batches."""

from __future__ import annotations

from typing import Any

from sightline.service.experiment import ExperimentWriter
from sightline.service.runtime import Runtime
from sightline.service.schemas import DecisionRequest, Specification
from sightline.service.settings import Settings
from sightline.service.store import Store
from sightline.service.writer import Command

__all__ = ["fill"]


def fill(store: Store, experiment: str, specification: dict[str, Any], events: int) -> None:
    """Begin an experiment, and ask and tell until it has so many events."""
    runtime = Runtime(store, Settings(most_decisions=10_000))
    writer = runtime._writer
    make = runtime._build(experiment, Specification.model_validate(specification))
    writer._execute([Command(ExperimentWriter.expire, experiment, make=make)])
    question = DecisionRequest.model_validate({"count": min(1000, events // 4)})
    while writer._loaded[experiment].log.last < events:
        ask = Command(lambda one: one.ask(question, None, ""), experiment)
        writer._execute([ask])
        assert isinstance(ask.answer, tuple), ask.answer
        ids = [one["id"] for one in ask.answer[1]["decisions"]]
        for i in range(2):  # a transaction of its own each: it has little time
            writer._execute([_tells(experiment, ids[i::2])])


def _tells(experiment: str, ids: list[str]) -> Command:
    """Tell rewards of many decisions in one command."""

    def verb(one: ExperimentWriter) -> dict[str, Any]:
        one.session.tell_many([(id_, 0.5) for id_ in ids])
        return {}

    return Command(verb, experiment)
