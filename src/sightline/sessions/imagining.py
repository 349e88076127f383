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

import numpy as np

from sightline.core.action_set import ActionSet
from sightline.sessions.estimates import estimates_in, mean_outcome_in
from sightline.sessions.turns import (
    Answers,
    Outcome,
    answer,
    blank_answers,
    take_outcome,
    take_outcomes,
)
from sightline.simulation.loop import raise_fault

if TYPE_CHECKING:
    from sightline.sessions.live import LiveState

__all__ = ["fill_imagining"]

#: Decisions made before that are taken into account, the last ones.
MOST_OPEN = 1000


def fill_imagining(live: LiveState, offer: ActionSet, answers: Answers) -> None:
    """Write answers for a batch, from a copy of everything."""
    standing, state, rng = copy.deepcopy((live.standing, live.state, live.rng))
    # what is imagined is in the units of the policy already
    standing = standing._replace(origin=np.zeros(1), unit=np.ones(1))

    def imagine(t: int, arm: int) -> None:
        take = take_outcome
        reward: Any = None
        weight: Any = live.weight_of(arm)
        if live.options.observations is None:
            means = estimates_in(state)
            if means is not None:
                reward = float(means.means[arm])
        else:
            weight = 1.0
            seen = mean_outcome_in(state, arm)  # which is something else than it pays
            if seen is not None and len(seen) > 1:
                take, reward, weight = take_outcomes, seen, np.ones(len(seen))
            elif seen is not None:
                reward = float(seen[0])
        if reward is not None:
            outcome = Outcome(t, arm, arm, reward, weight, learns=True)
            live.call(take, (standing, state, outcome, 0))

    for decision in islice(reversed(live.ledger.open.values()), MOST_OPEN):
        if decision.exploring:
            imagine(decision.round, decision.arm)
    for i in range(len(answers.arms)):
        one = blank_answers(1, live.policy)
        arguments: Any = (standing, state, offer, False, rng, one, 0)
        live.call(answer, arguments)
        raise_fault(one.fault, live.policy)
        for whole, single in zip(answers[:4], one[:4], strict=True):
            whole[i] = single[0]
        if one.exploring[0]:
            imagine(int(one.rounds[0]), int(one.arms[0]))
