"""Batches of a policy that does not randomise: it would give the same answer every time.

Each answer is therefore found as if the outcomes of all that are still open had come, at their
estimated means.  Means do not move by that, but what is left to learn does: the next answer is
about something else.  (Desautels, Krause and Burdick, 2014, do so for upper confidence bounds.)
The policy itself learns nothing from what was imagined.
"""

from __future__ import annotations

import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

from sightline.engine.changes import Offer
from sightline.engine.estimates import estimates_in, mean_outcome_in
from sightline.engine.turns import (
    NOTHING_NEW,
    Answers,
    Outcome,
    answer,
    blank_answers,
    take_outcome,
)

if TYPE_CHECKING:
    from sightline.engine.live import LiveState

__all__ = ["fill_imagining"]

#: Decisions made before that are taken into account, the last ones.
MOST_OPEN = 1000


def fill_imagining(live: LiveState, offer: Offer, answers: Answers) -> None:
    """Write answers for a batch, from a copy of everything."""
    standing, state, rng = copy.deepcopy((live.standing, live.state, live.rng))

    def imagine(t: int, arm: int) -> None:
        if live.options.observations is None:
            means = estimates_in(state)
            mean, weight = (None if means is None else means.means[arm]), live.weight_of(arm)
        else:  # an arm shows something else than it pays
            seen = mean_outcome_in(state, arm)
            mean, weight = (None if seen is None else seen[0]), 1.0
        if mean is not None:
            outcome = Outcome(t, arm, float(mean), weight, True)
            live.call(take_outcome, (standing, state, outcome, 0))

    for decision in islice(reversed(live.ledger.open.values()), MOST_OPEN):
        if decision.exploring:
            imagine(decision.round, decision.arm)
    for i in range(len(answers.arms)):
        one = blank_answers(1)
        arguments: Any = (standing, state, offer, NOTHING_NEW, rng, one, 0)
        live.call(answer, arguments)
        for whole, single in zip(answers, one, strict=True):
            whole[i] = single[0]
        if one.exploring[0]:
            imagine(int(one.rounds[0]), int(one.arms[0]))
