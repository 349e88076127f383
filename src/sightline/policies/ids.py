"""Asymptotically optimal information-directed sampling (Algorithm 1 of the paper) and its family.

| symbol                          | here                                      | shape |
|---------------------------------|-------------------------------------------|-------|
| t                               | ``clock``                                 |       |
| s - 1, V_s^-1, theta-hat_s      | ``estimate.learned``                      |       |
| <x, theta-hat_s>                | ``estimate.arms.means``                   | (k,)  |
| x-hat_s                         | ``comparison.best``                       | int   |
| squared norm of nu-hat_s(z) - theta-hat_s in V_s | ``alternatives.distances`` | (k,) |
| 2 m_s                           | ``comparison.least``                      | number |
| beta_{s, s^2}                   | ``beta``                                  | number |
| Delta-hat_s(x)                  | ``work.gaps``                             | (k,)  |
| q_s(z), eta_s                   | ``work.weights``, ``learning_rate``       | (k,)  |
| I_s(x)                          | ``work.gains``                            | (k,)  |
| mu_s                            | ``Mixture``                               | two arms |

Guarantees: regret O(d sqrt(n) log n) in the worst case, O(d^3 log(n)^2 / Delta_min) given the
smallest gap, and c* log n + o(log n), the best possible, as n grows (Kirschner, Lattimore,
Vernade, Szepesvari, COLT 2021).  The paper extends them to the gains on half-spaces and cells,
with the optimistic term for all arms or for the UCB arm; not to the other gains.

Clicks and counts (generalised linear bandits): the same algorithm with divergences in place of
squared distances, which are equal for normal rewards.  Alternatives are nearest in log-likelihood
(:mod:`sightline.core.likelihood_alternatives`).  The gain is
sum_z q(z) (sqrt(2 d(x, z)) + sqrt(beta) w(x))^2 / 2, with the divergence d(x, z) of the outcomes of
x under nu-hat(z) and the width w(x) of an outcome by the curvature at theta-hat.  Gaps are those of
mean rewards.  The exploitation test is proven: it compares a likelihood ratio with a
threshold that holds in all rounds at once (:mod:`sightline.core.likelihood_fit`), given a
bound on the norm of theta, for all links but the identity.  That regret is optimal in the limit is
measured and not proven.

Finite classes of models: :mod:`sightline.policies.finite_ids`.

Cost per exploration round: O(p (k d + d^2)) for ``"halfspace"``, where p <= k is the number of
alternatives with a weight that is not negligible, O(k d^2) for ``"halfspace-ucb"``, and k quadratic
programs more for cells or a constrained parameter set.  A stretch of exploitation costs as
much as one test, whatever its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ActionSet, first_largest_offered, withhold
from sightline.core.alternatives import Comparison, HalfSpaces, compare, restrict_alternatives
from sightline.core.clock import Clock, first_after, is_before
from sightline.core.confidence import ConfidenceRule, local_beta, next_exploration
from sightline.core.confidence_rules import LogDet, valid_regulariser
from sightline.core.context_distribution import SETS_KEPT
from sightline.core.estimate import LeastSquares
from sightline.core.gains import (
    INFORMATION,
    LearningRate,
    Round,
    Workspace,
    check_weights,
    gains_on_offer,
    learning_rate_rule,
    workspace,
)
from sightline.core.gaps import GAPS, gap_estimates, optimistic_arm
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces, half_spaces_for
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.projections import Polytope, Projections, projections
from sightline.core.ratio import SAMPLING, Mixture, least_ratio
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    ScheduledExploration,
    Supports,
    begin,
    best_on_offer,
    cancel,
    choose_from,
    compare_to_best,
    learn,
    nothing_scheduled,
    play_scheduled,
    put_all_on,
    register_policy,
    report_commitment,
    schedule,
    settled_before,
    spread,
)
from sightline.validation import LARGEST, one_of, shown

# Options that are defined over several contexts: the others look at one context.
_CONTEXTUAL = {
    "information": ("halfspace", "log-det"),
    "sampling": ("pair", "exact"),
    "gaps": ("auto", "value"),
}
# Options that are defined with models as alternatives.
_ON_CLASS = {"information": ("halfspace", "plain"), "gaps": ("auto", "thresholded")}


@dataclass(frozen=True)
class IDS(Policy):
    """Information-directed sampling; the default is Algorithm 1 with M = R^d.

    Parameters
    ----------
    information : str
        Information gain.  ``"halfspace"`` and ``"cell"`` weigh alternatives of that kind, with an
        optimistic term for all arms; ``"halfspace-ucb"`` and ``"cell-ucb"`` have it for the UCB
        arm only; ``"plain"`` has it for none; ``"laplace"`` and ``"laplace-variance"`` are the
        Laplace approximations of the Bayesian mutual information and of the variance-based gain.
        ``"log-det"``, ``"ucb-directed"`` and ``"directed"`` are those of earlier work.  Others
        can be added by :func:`sightline.extend.register_information`.
    sampling : {"pair", "exact", "deterministic"}
        Minimise the information ratio over pairs with the empirically best arm, over all
        distributions, or over single arms.
    gaps : {"auto", "value", "thresholded", "difference", "difference-to-best", ...}
        Gap estimates: from upper bounds on values (the paper's), the same with an estimation
        error of at least sigma / sqrt(s), or from upper bounds on the differences of all arms or
        of those to the empirically best one, both with that threshold;
        ``"difference-unlifted"`` is without it.  ``"auto"`` is
        ``"value"`` where outcomes are rewards and ``"difference"`` in a game, where the value of
        an arm may never be seen although all differences are.  Others can be added by
        :func:`sightline.extend.register_gaps`.
    confidence : LogDet, LogLog, FixedBeta or another ConfidenceRule
        Confidence coefficient beta.
    learning_rate : {"paper", "algorithm", "inverse-sqrt-beta"} or float
        eta of the weights q.  ``"paper"``: log(k) / sqrt(max m) in exp(-eta/2 distance), the
        text; ``"algorithm"``: the same in exp(-eta distance), as Algorithm 1 is printed; or
        1 / sqrt(beta), or a fixed number, in exp(-eta/2 distance).  Distances and beta are in
        units of the noise variance.
    regulariser : float or "matched"
        lambda of the least squares estimate; ``"matched"`` is sigma^2 / S^2.
    parameter_set : Polytope, optional
        M, within which alternatives are sought; all of R^d by default.
    contexts : {"contextual", "conditional"}
        In a problem with contexts, whether the information ratio is that of all contexts together
        or that of the present one (:mod:`sightline.policies.contextual_ids`).  In a stream, a
        sample of past action sets stands for future ones.
    context_probabilities : {"known", "estimated"}
        How often each context comes: as the problem says, or as counted.
    exploitation : {"discard", "keep"}
        Whether the data of exploitation rounds are discarded, as in Algorithm 1, or kept, which
        the proofs do not cover.  s then counts all rounds, and a run costs every one of them.
    """

    information: str = "halfspace"
    sampling: str = "pair"
    gaps: str = "auto"
    confidence: ConfidenceRule = field(default_factory=LogDet)
    learning_rate: str | float = "paper"
    regulariser: float | str = 1.0
    parameter_set: Polytope | None = None
    contexts: str = "contextual"
    context_probabilities: str = "known"
    exploitation: str = "discard"

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead."""
        return self.exploitation == "discard"

    @property
    def any_horizon(self) -> bool:
        """Whether the configuration still seeks information once gaps are small.

        Without randomisation x-hat ends up being explored in nearly every round, as by LinUCB, and
        with gaps that fall to zero in of the order of sqrt(n) rounds.
        """
        randomises = self.sampling != "deterministic" and self.gaps != "difference-unlifted"
        return self.commits and randomises and INFORMATION[self.information].any_horizon

    def __post_init__(self) -> None:
        one_of("information", self.information, INFORMATION)
        one_of("sampling", self.sampling, SAMPLING)
        one_of("gaps", self.gaps, ("auto", *GAPS))
        learning_rate_rule(self.learning_rate, 2)
        valid_regulariser(self.regulariser, self.confidence)
        one_of("contexts", self.contexts, ("contextual", "conditional"))
        one_of("context_probabilities", self.context_probabilities, ("known", "estimated"))
        one_of("exploitation", self.exploitation, ("discard", "keep"))
        if not isinstance(self.parameter_set, Polytope | None):
            raise ValueError(
                f"parameter_set must be a Polytope or None, got {shown(self.parameter_set)}"
            )

    @property
    def supports(self) -> Supports:
        """Kinds of problems beyond a plain bandit."""
        cells = self.parameter_set is not None or INFORMATION[self.information].cells
        known = self.gaps in ("auto", "value", "thresholded")
        masks = not cells and known and self.exploitation == "discard"
        return Supports(
            masks=masks,
            contexts=masks,
            streams=masks,
            games=True,
            noise_per_arm=True,
            likelihoods=not cells and self.gaps in ("auto", "value"),
            unknown_noise=True,
            delays=True,
        )

    def start(self, model: Model) -> Any:
        """State before any data: an IDSState, a ContextIDSState or a FiniteIDSState."""
        from sightline.policies.contextual_ids import in_contexts  # it imports this module

        if model.models is not None:
            return self._on_class(model)
        if model.likelihood is not None and model.contexts is not None:
            model.needs_fixed_arms("IDS with clicks or counts")
        if model.stream and self.contexts == "contextual":
            model = model.with_reservoir(SETS_KEPT)
        # M is given in the coordinates of the actions: do not reduce these
        reduce = self.parameter_set is None
        estimate, confidence = begin(model, self.regulariser, self.confidence, reduce=reduce)
        k, d = estimate.arms.rewards.shape
        gaps = self.gaps
        if gaps == "auto":
            gaps = "difference" if model.weights is None else "value"
        state = IDSState(
            estimate=estimate,
            confidence=confidence,
            alternatives=self._alternatives(estimate),
            gap_rule=GAPS[gaps],
            learning_rate=learning_rate_rule(self.learning_rate, model.count),
            gain_rule=INFORMATION[self.information].rule,
            sampling=SAMPLING[self.sampling],
            keeps_data=self.exploitation == "keep",
            scheduled=nothing_scheduled(),
            work=workspace(k, d),
        )
        if model.contexts is None or len(model.contexts) == 1:
            return state
        conditional = self.contexts == "conditional"
        for option, allowed in _CONTEXTUAL.items():
            if not conditional and getattr(self, option) not in allowed:
                raise ValueError(
                    f"contextual IDS needs {option} to be one of {', '.join(map(repr, allowed))}, "
                    f"got {getattr(self, option)!r}; conditional IDS takes others"
                )
        estimated = self.context_probabilities == "estimated"
        return in_contexts(state, model, conditional, estimated)

    def _on_class(self, model: Model) -> Any:
        """State on a finite class of models."""
        from sightline.policies.finite_ids import on_class

        if self.parameter_set is not None:
            raise ValueError("parameter_set must be None on a finite class, which is one itself")
        for option, allowed in _ON_CLASS.items():
            if getattr(self, option) not in allowed:
                raise ValueError(
                    f"IDS on a finite class needs {option} to be one of "
                    f"{', '.join(map(repr, allowed))}, got {getattr(self, option)!r}"
                )
        return on_class(
            model,
            self.confidence,
            self.learning_rate,
            self.gaps == "thresholded",
            SAMPLING[self.sampling],
            self.exploitation == "keep",
        )

    def _alternatives(
        self, estimate: LeastSquares
    ) -> HalfSpaces | LikelihoodHalfSpaces | Projections:
        """Alternatives that the gain weighs, in M."""
        k, d = estimate.arms.rewards.shape
        cells = INFORMATION[self.information].cells
        if self.parameter_set is None and not cells:
            return half_spaces_for(estimate)
        normals, bounds = np.zeros((0, d)), np.zeros(0)
        if self.parameter_set is not None:
            normals, bounds = self.parameter_set.arrays(d)
        return projections(k, d, cells, normals, bounds)


class IDSState(NamedTuple):
    """Estimates from exploration rounds, the rules of a configuration, and a workspace."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces | LikelihoodHalfSpaces | Projections
    gap_rule: Any  # of a class in gaps.py, or one that was registered
    learning_rate: LearningRate
    gain_rule: Any  # of a class in gains.py, or one that was registered
    sampling: int  # a Sampling
    keeps_data: bool  # of exploitation rounds
    scheduled: ScheduledExploration
    work: Workspace


@compiled
def _choose(state: IDSState, clock: Clock, offer: ActionSet, rng: Generator) -> Choice:
    """One round t of Algorithm 1, with the estimates of exploration step s."""
    # theta-hat_s and V_s are those of the last update
    estimate, scheduled = state.estimate, state.scheduled
    # x-hat_s = argmax_x <x, theta-hat_s>
    best = first_largest_offered(offer, estimate.arms.means)
    # nu-hat_s(z) = argmin |nu - theta-hat_s|^2 over parameters under which z is better than x-hat_s
    comparison = compare(state.alternatives, estimate, best)
    comparison = restrict_alternatives(offer, state.alternatives, comparison)
    # exploitation condition (E): m_s >= beta_{s, t log t} / 2 until the round ``wake``
    log_det = estimate.learned.log_det[0]
    wake = next_exploration(state.confidence, log_det, comparison.least, clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, clock if state.keeps_data else wake)
    # while x-hat shows nothing, the round of the next exploration is drawn in one step (see below)
    silent = estimate.arms.observations.silent[best] and offer.mask.shape[0] == 0
    if silent and scheduled.t[0] > 0:
        choice = play_scheduled(scheduled, best, clock, offer)
        if choice.arm >= 0:
            return choice
    # sample x_s from mu_s
    mixture = ids_distribution(state, comparison, offer)[0]
    if not silent or mixture.first != best:
        return choose_from(mixture, clock, rng)
    # While a silent x-hat is played, nothing but the time changes.  The test of exploitation, which
    # fails now, fails at every later round as well, as the threshold grows with time; so the round
    # in which another arm is drawn from mu_s can be drawn in one step.
    if mixture.second == best or mixture.probability == 0.0:  # no arm shows anything
        return Choice(best, 1.0, first_after(math.inf, clock))
    return schedule(
        scheduled, best, mixture.second, math.log(mixture.probability), clock, offer, rng
    )


@compiled
def ids_distribution(
    state: Any, comparison: Comparison, offer: ActionSet
) -> tuple[Mixture, float, int]:
    """Return mu_s, beta_{s, s^2} and the UCB arm; gaps and gains are left in the workspace."""
    beta, ucb_arm = weigh(state, comparison, offer)
    # mu_s = argmin_mu Delta-hat_s(mu)^2 / I_s(mu)
    mixture = least_ratio(state.sampling, state.work.gaps, state.work.gains, comparison.best)
    return mixture, beta, ucb_arm


@compiled
def weigh(state: Any, comparison: Comparison, offer: ActionSet) -> tuple[float, int]:
    """Write gaps and gains of all arms into the workspace; return beta_{s, s^2} and the UCB arm.

    An arm outside of the action set gets a gain of zero at a huge gap, and is not played.
    """
    estimate, work = state.estimate, state.work
    # beta_{s, s^2}, and the UCB arm: argmax_z <z, theta-hat_s> + beta^{1/2} |z|
    beta = local_beta(state.confidence, estimate.learned.log_det[0], estimate.learned.rounds[0] + 1)
    ucb_arm = optimistic_arm(estimate, beta, offer)
    round_ = Round(
        estimate, state.alternatives, comparison, beta, ucb_arm, state.learning_rate, work
    )
    # Delta-hat_s(x) = max_z (<z, theta-hat_s> + beta^{1/2} |z|) - <x, theta-hat_s>
    gap_estimates(state.gap_rule, round_, work.gaps)
    # eta_s = log(k) / sqrt(max_l m_l);  q_s(z) = exp(-eta_s / 2 |nu-hat_s(z) - theta-hat_s|^2)
    # I_s(x) = 1/2 sum_z q_s(z) (|<nu-hat_s(z) - theta-hat_s, x>| + beta^{1/2} |x|)^2
    gains_on_offer(state.gain_rule, round_, offer)
    withhold(offer, work.gaps, LARGEST)
    check_weights(state.gap_rule, work.gaps)
    return beta, ucb_arm


@compiled
def _update(state: IDSState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from x_s and y_s, and s <- s + 1."""
    learn(state, clock, arm, outcome)
    cancel(state.scheduled)  # it was drawn from earlier estimates


@compiled
def _probabilities(
    state: IDSState, clock: Clock, offer: ActionSet, rng: Generator, probabilities: Array
) -> None:
    """Write the distribution that ``choose`` draws from."""
    comparison = compare_to_best(state, offer)
    if is_before(clock, settled_before(state, comparison, clock)):
        put_all_on(comparison.best, probabilities)
    else:
        spread(ids_distribution(state, comparison, offer)[0], probabilities)


register_policy(
    IDSState,
    choose=_choose,
    update=_update,
    inspect=report_commitment,
    probabilities=_probabilities,
    best_of=best_on_offer,
)
