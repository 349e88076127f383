"""Stakes: explore while what is at stake is worth the price of finding out.

A design of this library (2026), the practical sibling of Algorithm 1: the same alternatives and, in
the limit, the same information gain, but weighed by what stopping now is expected to lose
(:mod:`sightline.core.posterior.losses`).  ``docs/stakes.md`` has what is known of it.

Guarantees: none is proved.  In every case measured regret per log n tends to c*, to 10^300 rounds,
and comes from below: at horizons that people have it is that of the best policies known.

Cost per round: O(k d^2).  While x-hat has nothing to teach, a stretch of any length costs as much
as one round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import is_offered
from sightline.core.alternatives.law_half_spaces import LawHalfSpaces, half_spaces_for
from sightline.core.clock import Clock
from sightline.core.confidence.log_det import LogDet
from sightline.core.estimation.context_distribution import (
    SETS_KEPT,
    context_distribution,
    note_action_set,
    sample_of_sets,
    show_sets,
)
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.foreseen import foreseen
from sightline.core.estimation.noise import estimated_noise, weak_guess
from sightline.core.model import Model
from sightline.core.posterior.losses import outlook
from sightline.core.ratio import Mixture, marginal
from sightline.core.unknown import none_if_unknown
from sightline.jit import compiled, generic
from sightline.policies.base import Choice, Evidence, Policy, register_policy, spread
from sightline.policies.reports import begin, best_on_offer, learn, report
from sightline.policies.scheduled_exploration import cancel
from sightline.policies.stakes.deterministic import Deterministic, choose_surely
from sightline.policies.stakes.flight import in_flight, land, new_in_flight, take_off
from sightline.policies.stakes.parts import StakesState, least_price, look_now
from sightline.policies.stakes.randomised import (
    Randomised,
    choose_randomly,
    randomised,
    stakes_law,
)
from sightline.validation import flag, number, one_of, scale

__all__ = ["Stakes"]

_NOISE = ("given", "estimated")
# A guess for the noise counts as one observation, and its prior for theta is wide: either may be
# wrong by a factor of ten.
_PRIOR_COUNT, _WIDENING = 1.0, 0.1
# Alternatives at this many times the least squared distance lose nothing beside the nearest.
_DECISIVE = 4.0


@dataclass(frozen=True)
class Stakes(Policy):
    """The default policy for practice: good at every horizon, without tuning.

    Parameters
    ----------
    norm_bound : float, optional
        S, about the norm of theta: the prior is N(0, S^2 I).  It matters for the first rounds only,
        and not at all where the problem does not say the noise level.
        With clicks theta is in log odds, with counts in logarithms.  None is a wide prior, for
        rewards of any scale; files have ``"unknown"`` for it.
    guard : float
        Caution in [0, 1].  With 1/2, alternatives that only a few outcomes speak against are tried
        as often as by Thompson sampling.  With 0 they are not: runs that stick to a wrong arm for
        long are then four times as frequent, and others lose up to 15 % less.  With 1 all
        alternatives are, for ever: such runs become as rare as with Thompson sampling also where
        gaps are small beside the noise, and all runs lose about 20 % more.
    noise : {"given", "estimated"}
        Whether the noise level of the problem is known, or a guess from which it is learned.  It is
        learned in any case where the problem does not say it, as with ``Gaussian(std=None)``.
    randomised : bool
        Whether to draw, with known probabilities; else the form without chance.
    context_law : {"known", "estimated"}
        How often each context comes, where there are any: as the problem says, or as counted.
    """

    norm_bound: float | None = 1.0
    guard: float = 0.5
    noise: str = "given"
    randomised: bool = True
    context_law: str = "known"

    takes_observations = takes_late_rewards = True

    def __post_init__(self) -> None:
        none_if_unknown(self, "norm_bound")
        if self.norm_bound is not None:
            scale("norm_bound", self.norm_bound)
        number("guard", self.guard, at_least=0, at_most=1)
        one_of("noise", self.noise, _NOISE)
        flag("randomised", self.randomised)
        one_of("context_law", self.context_law, ("known", "estimated"))

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead."""
        return True

    @property
    def settles_by_committing(self) -> bool:
        """Whether it commits only where its test says that the best arm is settled."""
        return False

    @property
    def randomises(self) -> bool:
        """Whether choices are drawn at random given the state and the round."""
        return self.randomised

    @property
    def takes_some_arms(self) -> bool:
        """Whether it can choose when only some arms are on offer."""
        return True

    @property
    def takes_streams(self) -> bool:
        """Whether it can choose among arms that are new in every round."""
        return self.randomised

    @property
    def takes_laws(self) -> bool:
        """Whether it can learn from clicks and counts, by their own likelihood."""
        return self.noise == "given"

    @property
    def takes_unknown_noise(self) -> bool:
        """Whether it learns the noise level from the outcomes, where a model does not say it."""
        return True

    def start(self, model: Model) -> StakesState:
        """State before any data."""
        if model.stream:
            if not self.randomised:
                model.needs_lasting_arms("deterministic Stakes")
            model = model.with_reservoir(SETS_KEPT)
        contexts = model.contexts
        if contexts is not None and len(contexts) == 1:
            contexts = None
        if contexts is not None and not self.randomised:
            model.needs_fixed_arms("deterministic Stakes")
        known = self.noise == "given" and model.noise_known
        if not known and model.observations_per_round > 1:
            raise ValueError(
                'noise="estimated" needs outcomes of one number; this problem shows '
                f"{model.observations_per_round}"
            )
        estimate, confidence = self._begin(model, known)
        k, d = estimate.arms.rewards.shape
        law = context_distribution(contexts, self.context_law == "estimated")
        if model.stream:
            law = sample_of_sets(model)
        by_law = [_by_law(estimate) if contexts is None else None for _ in range(2)]
        now = outlook(k, d, contexts, law, by_law[0])
        return StakesState(
            estimate=estimate,
            confidence=confidence,
            alternatives=now.alternatives if by_law[0] is None else half_spaces_for(estimate),
            rule=randomised() if self.randomised else Deterministic(),
            guard=float(self.guard),
            flight=new_in_flight(estimate) if model.stream else in_flight(estimate),
            now=now,
            ahead=outlook(k, d, contexts, law, by_law[1]),
            space=foreseen(estimate),
            chain=marginal(0 if contexts is None else len(contexts)),
        )

    def _begin(self, model: Model, known: bool) -> tuple[LeastSquares, Any]:
        """Estimates before any data, and the coefficient for reports."""
        sigma, bound = model.noise_std, self.norm_bound
        free = LogDet(norm_bound=None)
        if bound is None:
            noise = None if known else weak_guess(sigma)
            return begin(model, "matched", free, noise=noise)
        if model.law is not None:  # theta is in log odds, of which nobody knows a bound
            return begin(model, bound**-2, free)
        if known:
            return begin(model, (sigma / bound) ** 2, LogDet(norm_bound=bound))
        if not model.noise_known:  # then S, in units of the reward, is not known either
            return begin(model, "matched", free)
        noise = estimated_noise(sigma, _PRIOR_COUNT)
        return begin(model, (_WIDENING * sigma / bound) ** 2, free, noise=noise)


def _by_law(estimate: LeastSquares) -> LawHalfSpaces | None:
    """Alternatives by likelihood, if rewards have a law; only those that decide are refined."""
    found = half_spaces_for(estimate, far=_DECISIVE, near=0.0)
    return found if isinstance(found, LawHalfSpaces) else None


@generic
def _decide(
    rule: Any, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Choice:
    """Choose by one of the two forms."""
    raise TypeError(f"no way to choose by a {type(rule).__name__}")


_decide.register(Randomised)(choose_randomly)
_decide.register(Deterministic)(choose_surely)


@generic
def _forget(rule: Any) -> None:
    """Drop what was decided on grounds that have changed."""
    raise TypeError(f"nothing to forget for {type(rule).__name__}")


@_forget.register(Randomised)
@compiled
def _cancel(rule: Randomised) -> None:
    cancel(rule.due)


@_forget.register(Deterministic)
@compiled
def _nothing_to_forget(rule: Deterministic) -> None:
    pass


@compiled
def choose_stakes(state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    """Choose by the form that is configured."""
    note_action_set(state.now.frequencies, offer, state.estimate, rng)
    return _decide(state.rule, state, clock, offer, rng)


@compiled
def update_stakes(state: StakesState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from an outcome."""
    learn(state, clock, arm, outcome)
    land(state.flight, state.estimate, arm)
    _forget(state.rule)


@compiled
def decide_stakes(state: StakesState, clock: Clock, arm: int) -> None:
    """Count on an outcome that is still open."""
    take_off(state.flight, state.estimate, arm)
    _forget(state.rule)


@compiled
def drop_stakes(state: StakesState, clock: Clock, arm: int) -> None:
    """Count no longer on an outcome that will never come."""
    land(state.flight, state.estimate, arm)
    _forget(state.rule)


@generic
def _law(
    rule: Any, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Mixture:
    """Two arms from which the form that is configured draws."""
    raise TypeError(f"no law of a {type(rule).__name__}")


@_law.register(Deterministic)
@compiled
def _certainty(
    rule: Deterministic, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Mixture:
    arm = choose_surely(rule, state, clock, offer, rng).arm
    return Mixture(arm, arm, 0.0, 0.0)


@_law.register(Randomised)
@compiled
def _chance(
    rule: Randomised, state: StakesState, clock: Clock, offer: Any, rng: np.random.Generator
) -> Mixture:
    law = stakes_law(state, offer)
    if not is_offered(offer, law.arm):
        return Mixture(law.best, law.best, 0.0, 0.0)
    return Mixture(law.best, law.arm, math.exp(law.log_probability), 0.0)


@compiled
def law_stakes(
    state: StakesState,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
    probabilities: NDArray[np.float64],
) -> None:
    """Write the probability of every arm."""
    spread(_law(state.rule, state, clock, offer, rng), probabilities)


@compiled
def inspect_stakes(state: StakesState, clock: Clock, offer: Any) -> Evidence:
    """Report m_s against beta / 2, on which the policy itself does not act."""
    return report(state, clock, offer)


@compiled
def stakes_at_stake(state: StakesState, clock: Clock, offer: Any) -> tuple[float, float]:
    """L without the guard, and the least gap per gain; nothing where no other arm is better."""
    now = look_now(state, offer, 0.0)
    if now.log_loss == -math.inf:
        return 0.0, 0.0
    _, price = least_price(state.now, now.best)
    return math.exp(now.log_loss), price


@compiled
def show_stakes(state: StakesState, rows: NDArray[np.float64], start: int, stop: int) -> None:
    """Put new arms into the table of a stream, and past ones beside them."""
    show_sets(state.now.frequencies, state.estimate, rows, start, stop)


register_policy(
    StakesState,
    choose=choose_stakes,
    update=update_stakes,
    inspect=inspect_stakes,
    decided=decide_stakes,
    dropped=drop_stakes,
    law=law_stakes,
    at_stake=stakes_at_stake,
    best_of=best_on_offer,
    show=show_stakes,
)
