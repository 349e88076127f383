"""SOLID and SOLID++: solve the lower bound's program by primal-dual steps, one per exploration.

While the best arm is settled at the level 1/(t log t), it is played.  Otherwise an arm is drawn
from a distribution w that climbs the Lagrangian of the program behind c*, by exponential weights
against a multiplier for the constraint on information (``steps.py``).  SOLID starts w and
the multiplier afresh in every phase; SOLID++ (``reset=False``) keeps them and its step sizes.

Guarantees: SOLID as published has regret c* log n + o(log n), the best possible, and a bound in the
worst case (Tirinzoni, Pirotta, Restelli, Lazaric, NeurIPS 2020).  Here it goes without projecting
theta-hat onto a known set, and with the confidence coefficients of the other policies, so that
methods are compared at equal beta.  SOLID++ has no guarantee.

Cost: O(k d^2) per exploration round and O(k d + d^2) per exploitation round.  It learns from every
round, so it never commits; its own exploration rounds are ``SOLIDState.pair.explorations``.

With contexts it keeps a distribution for each, counts how often they come, and explores while an
alternative of any is left.

Its steps are in units of the reward: they suit means of order one, as the published bounds do.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import withhold
from sightline.core.alternatives.comparison import Comparison
from sightline.core.alternatives.half_spaces import HalfSpaces, half_spaces
from sightline.core.clock import Clock, log_round
from sightline.core.confidence.log_det import LogDet
from sightline.core.confidence.rules import (
    ConfidenceRule,
    global_beta,
    needs_norm_bound,
    valid_regulariser,
    valid_rule,
)
from sightline.core.estimation.context_distribution import (
    ContextDistribution,
    context_distribution,
    note_action_set,
)
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.least_squares import observe
from sightline.core.linalg.vectors import norm
from sightline.core.model import Model
from sightline.core.persistence import persists, state_version
from sightline.jit import compiled
from sightline.policies.base import Choice, Policy, choose_among, put_all_on, register_policy
from sightline.policies.reports import begin, best_on_offer, compare_to_best, report_commitment
from sightline.policies.solid.steps import (
    BY_PHASE,
    SaddlePoint,
    Steps,
    primal_dual,
    primal_dual_step,
)
from sightline.validation import LARGEST, number, one_of, scale, shown

__all__ = ["SOLID", "SOLIDState"]

_PRIMAL_STEP, _DUAL_STEP = 0.5, 0.1  # of SOLID++


@persists()
@state_version(2)
class SOLIDState(NamedTuple):
    """Estimates from all rounds, and what exploration rounds have made of them."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces
    frequencies: ContextDistribution
    steps: Steps
    pair: SaddlePoint
    law: NDArray[np.float64]  # scratch (k,)


@dataclass(frozen=True)
class SOLID(Policy):
    """Primal-dual tracking of the optimal allocation.

    Parameters
    ----------
    reset : bool
        Whether every phase starts from uniform weights and the first multiplier: SOLID, the one
        with a guarantee.  ``False`` is SOLID++.
    constraint_bonus : float, optional
        Weight of the confidence widths in the constraint, times the noise variance (kappa
        sigma^2, in units of the reward).  None is 2 S L as published for SOLID (S the norm bound
        of the confidence rule, L the longest arm), and 0 for SOLID++: with the published bonus
        the constraint looks satisfied at all horizons that can be run, and no information is
        sought (docs/solid.md).  SOLID still gets some: its small steps leave restarts slowly.
    primal_step, dual_step : float or "phase", optional
        Step sizes of the weights and of the multiplier; ``"phase"`` is 1 / sqrt(p_k).  None is
        ``"phase"`` for SOLID, as published, and 0.5 and 0.1 for SOLID++, those of the plots that
        introduced it.
    first_normaliser : float
        z_0, in z_k = z_0 e^k and p_k = z_k e^(2k).  1, the least published value: a larger one
        asks for less information and delays it (docs/solid.md).
    first_multiplier : float
        lambda_1, from which every phase starts under ``reset``.  0, as published.
    multiplier_bound : float, optional
        lambda_max.  None is 2 S L z_k, above the optimal multiplier as soon as z_k is twice what
        makes the program feasible (Slater's condition); a fixed number fails where c* is larger.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient: at 1/(t log t) in the exploitation test, as in IDS and LinUCB, and
        at the local level with S_t, the exploration rounds, in the steps.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    """

    reset: bool = True
    constraint_bonus: float | None = None
    primal_step: float | str | None = None
    dual_step: float | str | None = None
    first_normaliser: float = 1.0
    first_multiplier: float = 0.0
    multiplier_bound: float | None = None
    confidence: ConfidenceRule = field(default_factory=LogDet)
    regulariser: float | str = 1.0

    takes_observations = takes_late_rewards = True

    def __post_init__(self) -> None:
        if not isinstance(self.reset, bool):
            raise ValueError(
                f"reset must be True (SOLID) or False (SOLID++), got {shown(self.reset)}"
            )
        if self.constraint_bonus is not None:
            number("constraint_bonus", self.constraint_bonus, at_least=0, at_most=LARGEST)
        for name in ("primal_step", "dual_step"):
            step = getattr(self, name)
            if isinstance(step, str):
                one_of(name, step, ["phase"])
            elif step is not None:
                scale(name, step)
        number("first_normaliser", self.first_normaliser, at_least=1, at_most=LARGEST)
        first = number("first_multiplier", self.first_multiplier, at_least=0, at_most=LARGEST)
        if self.multiplier_bound is not None:
            number("multiplier_bound", self.multiplier_bound, above=0, at_least=first)
            scale("multiplier_bound", self.multiplier_bound)
        valid_rule(self.confidence)
        valid_regulariser(self.regulariser, self.confidence)

    @property
    def takes_contexts(self) -> bool:
        """Whether it can choose where arms on offer change with a context."""
        return True

    def start(self, model: Model) -> SOLIDState:
        """State before any data."""
        model.needs_weights("SOLID")
        model.needs_lasting_arms("SOLID")
        contexts = model.contexts
        if contexts is not None and len(contexts) == 1:
            contexts = None
        estimate, confidence = begin(model, self.regulariser, self.confidence)
        actions = estimate.arms.rewards
        alternatives = half_spaces(len(actions), contexts)
        steps = self._steps(actions, model.noise_std)
        return SOLIDState(
            estimate=estimate,
            confidence=confidence,
            alternatives=alternatives,
            frequencies=context_distribution(contexts, estimated=True),
            steps=steps,
            pair=primal_dual(estimate.arms.observations.rows, alternatives, steps),
            law=np.zeros(len(actions)),
        )

    def _steps(self, actions: NDArray[np.float64], noise_std: float) -> Steps:
        """Numbers for one problem, defaults filled in."""
        span = (
            2.0 * needs_norm_bound(self.confidence, "SOLID") * max(norm(x) for x in actions)
        )  # of the means: 2 S L
        bonus, bound = self.constraint_bonus, self.multiplier_bound
        if bonus is None:
            bonus = span if self.reset else 0.0
        return Steps(
            reset=self.reset,
            primal=self._step(self.primal_step, _PRIMAL_STEP),
            dual=self._step(self.dual_step, _DUAL_STEP),
            bonus=bonus / noise_std**2,
            first_multiplier=float(self.first_multiplier),
            multiplier_bound=span if bound is None else float(bound),
            bound_grows=bound is None,
            first_normaliser=float(self.first_normaliser),
        )

    def _step(self, step: float | str | None, plus: float) -> float:
        if step is None:
            return BY_PHASE if self.reset else plus
        return BY_PHASE if isinstance(step, str) else float(step)


@compiled
def _explores(state: SOLIDState, comparison: Comparison, clock: Clock) -> bool:
    """Whether m < beta_{s, t log t} / 2."""
    log_det = state.estimate.learned.log_det[0]
    return bool(comparison.least < global_beta(state.confidence, log_det, log_round(clock)))


@compiled
def choose_solid(state: SOLIDState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    """Play x-hat if it is settled, else draw from w."""
    note_action_set(state.frequencies, offer, state.estimate, rng)
    if not _explores(state, compare_to_best(state, state.estimate.arms.everything), clock):
        return Choice(best_on_offer(state, clock, offer), 1.0, clock)
    _write_law(state, offer, state.law)
    return choose_among(state.law, clock, rng)


@compiled
def _write_law(state: SOLIDState, offer: Any, probabilities: NDArray[np.float64]) -> None:
    """Write w, of the arms on offer."""
    for x in range(probabilities.shape[0]):
        probabilities[x] = state.pair.weights[x]
    withhold(offer, probabilities, 0.0)


@compiled
def update_solid(state: SOLIDState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round; w and lambda move first, by the estimates behind the draw.

    They move if the policy would still explore in the round of the decision.  In simulation that
    is whether it did; where rewards are told late, a step is thus taken on what is known then, and
    none once the best arm is settled.
    """
    comparison = compare_to_best(state, state.estimate.arms.everything)
    if _explores(state, comparison, clock):
        primal_dual_step(state, comparison)
    observe(state.estimate, arm, outcome)


@compiled
def law_solid(
    state: SOLIDState,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
    probabilities: NDArray[np.float64],
) -> None:
    """Write the distribution that ``choose`` draws from."""
    if _explores(state, compare_to_best(state, state.estimate.arms.everything), clock):
        _write_law(state, offer, probabilities)
    else:
        put_all_on(best_on_offer(state, clock, offer), probabilities)


register_policy(
    SOLIDState,
    choose=choose_solid,
    update=update_solid,
    inspect=report_commitment,
    law=law_solid,
)
