"""Optimism on a finite class of models: UCB-S (Lattimore, Munos, NIPS 2014).

It plays the best arm of the model with the largest mean reward in the confidence set
{g : L_g - L_f-hat <= log(M t log t)}, the likeliest such model among equals.

Guarantees: regret stays bounded where the best arm itself tells all models apart from the true one
(Lattimore, Munos, 2014, for confidence sets of their form).  Not asymptotically optimal: an arm
that is best under no model is never played, however much it shows.

Cost per round: O(M).  It learns from every round and never commits.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.random import Generator

from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, acting_beta
from sightline.core.finite_class import (
    ClassEstimate,
    class_confidence,
    class_estimate,
    least_evidence,
    likeliest,
    log_square,
    optimistic_model,
)
from sightline.core.model import Model
from sightline.jit import compiled
from sightline.policies.base import Choice, Evidence, register_policy
from sightline.policies.finite_ids import evidence_on_class, learn_from_class


class FiniteUCBState(NamedTuple):
    """Likelihoods from all rounds."""

    estimate: ClassEstimate
    confidence: Any
    log_square: float  # 2 log M, which beta has in place of log det V


def optimism_on_class(model: Model, rule: ConfidenceRule) -> FiniteUCBState:
    """State before any data, on the class of a model."""
    estimate = class_estimate(model, "LinUCB")
    return FiniteUCBState(estimate, class_confidence(rule, estimate), log_square(estimate))


@compiled
def _choose(state: FiniteUCBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Best arm of the most optimistic model of the confidence set."""
    beta = acting_beta(state.confidence, state.log_square, log_round(clock))
    model = optimistic_model(state.estimate, likeliest(state.estimate), beta)
    return Choice(state.estimate.bests[model], 1.0, clock)


@compiled
def _inspect(state: FiniteUCBState, clock: Clock, offer: Any) -> Evidence:
    """Report the evidence against models with another best arm, on which it does not act."""
    model = likeliest(state.estimate)
    least = least_evidence(state.estimate, model, state.estimate.bests[model])
    return evidence_on_class(state, clock, clock, model, least)


register_policy(FiniteUCBState, choose=_choose, update=learn_from_class, inspect=_inspect)
