"""LinUCB, also known as OFUL: play the arm with the largest upper confidence bound.

It plays argmax_x <x, theta-hat> + sqrt(beta_{s, t log t}) |x|, the norm taken in V^-1.

Guarantees: regret O(d sqrt(n) log n) in the worst case (Abbasi-Yadkori, Pal, Szepesvari,
NeurIPS 2011).  Not asymptotically optimal: on the end-of-optimism problem its regret per log n
exceeds c* without bound (Lattimore, Szepesvari, AISTATS 2017).  In a game, where what an arm shows
is not what it pays, there is no guarantee: an optimistic arm that shows nothing stays optimistic,
and regret grows linearly.  Or it is lucky: of silent arms that are equally wide it always plays the
first one, and if that is the best one, as in some named games, its regret is 0.
List the arms in another order before interpreting that.

With clicks and counts the ellipsoid is that of the curvature at the maximum of the likelihood, and
the arm with the largest bound on <x, theta> has the largest bound on its mean: GLM-UCB with local
curvature.  The ellipsoid is asymptotic.

On a finite class of models it is UCB-S (:mod:`sightline.policies.finite_ucb`).

Cost per round: O(k d + d^2).  It learns from every round and never commits.

Rarely switching (``switch_growth`` = C, from the same paper): the arm is computed again
only when det V has grown by the factor 1 + C, O(d log(n) / log(1 + C)) times in
all.  The regret bound grows by the factor sqrt(1 + C).  It saves switches rather than time: the
estimate follows every round in either case.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.alternatives import HalfSpaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, acting_beta
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.estimate import LeastSquares
from sightline.core.gaps import optimistic_arm
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.linalg import Array, Ints
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant
from sightline.jit import compiled
from sightline.policies.base import (
    EVERY_KIND,
    Choice,
    Evidence,
    Policy,
    Supports,
    begin,
    learn,
    register_policy,
    report,
)
from sightline.validation import scale, shown


@dataclass(frozen=True)
class LinUCB(Policy):
    """Optimism in the face of uncertainty for linear models (OFUL).

    In games it always plays an arm that shows nothing if that arm looks best at first:
    regret is then linear, or 0 by luck where the first arm is the best.

    Parameters
    ----------
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient, used at delta = 1/(t log t): the level of the exploitation test
        of IDS, so that the two are compared at equal confidence.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    switch_growth : float, optional
        C > 0: keep the arm until det V has grown by the factor 1 + C.  By default the arm is
        computed in every round, which has the smaller regret.
    """

    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = 1.0
    switch_growth: float | None = None

    randomises = False

    def __post_init__(self) -> None:
        valid_regulariser(self.regulariser, self.confidence)
        if self.switch_growth is not None:
            scale("switch_growth", self.switch_growth)

    @property
    def supports(self) -> Supports:
        """What the policy can play beyond a plain bandit."""
        if self.switch_growth is None:
            return EVERY_KIND
        # the arm that is kept must be on offer
        return replace(
            EVERY_KIND, masks=False, contexts=False, masks_in_contexts=False, streams=False
        )

    def start(self, model: Model) -> Any:
        """State before any data: a LinUCBState, a RareState, or on a class a FiniteUCBState."""
        if model.models is not None:
            from sightline.policies.finite_ucb import optimism_on_class

            if self.switch_growth is not None:
                raise ValueError(
                    f"switch_growth must be None on a finite class, got {shown(self.switch_growth)}"
                )
            return optimism_on_class(model, self.confidence)
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        always = LinUCBState(
            estimate=estimate, confidence=confidence, alternatives=half_spaces_for(estimate)
        )
        if self.switch_growth is None:
            return always
        return RareState(
            always=always,
            least_growth=math.log1p(self.switch_growth),
            held_arm=np.zeros(1, dtype=np.int64),
            held_log_det=np.array([-math.inf]),
        )


class LinUCBState(NamedTuple):
    """Estimates from all rounds."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces | LikelihoodHalfSpaces  # for reports only


class RareState(NamedTuple):
    """LinUCB that keeps its arm; a separate class, since two more arrays double LinUCB's time."""

    always: LinUCBState
    least_growth: float  # of log det, before the arm is computed again
    held_arm: Ints  # (1,)
    held_log_det: Array  # (1,): when the arm was computed


@invariant(RareState)
def _check(state: RareState, name: str) -> None:
    indices(f"{name}.held_arm", state.held_arm, len(state.always.estimate.arms.rewards))


@compiled
def _choose(state: LinUCBState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Largest upper confidence bound."""
    estimate = state.estimate
    beta = acting_beta(state.confidence, estimate.learned.log_det[0], log_round(clock))
    return Choice(optimistic_arm(estimate, beta, offer), 1.0, clock)


@compiled
def _choose_rarely(state: RareState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Arm that had the largest upper confidence bound when it was last computed.

    The arm is a function of the data and the rounds of earlier decisions: a repeated question gives
    the same arm.
    """
    log_det = state.always.estimate.learned.log_det[0]
    if log_det - state.held_log_det[0] >= state.least_growth:
        state.held_arm[0] = _choose(state.always, clock, offer, rng).arm
        state.held_log_det[0] = log_det
    return Choice(state.held_arm[0], 1.0, clock)


@compiled
def _update_rarely(state: RareState, clock: Clock, arm: int, outcome: Any) -> None:
    learn(state.always, clock, arm, outcome)


@compiled
def _inspect_rarely(state: RareState, clock: Clock, offer: Any) -> Evidence:
    return report(state.always, clock, offer)


register_policy(LinUCBState, choose=_choose, update=learn, inspect=report)
register_policy(RareState, choose=_choose_rarely, update=_update_rarely, inspect=_inspect_rarely)
