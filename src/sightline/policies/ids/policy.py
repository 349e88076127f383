"""Asymptotically optimal information-directed sampling (Algorithm 1 of the paper) and its family.

Guarantees: regret O(d sqrt(n) log n) in the worst case, O(d^3 log(n)^2 / Delta_min) given the
smallest gap, and c* log n + o(log n), the best possible, as n grows (Kirschner, Lattimore,
Vernade, Szepesvari, COLT 2021).  The paper extends them to the gains on half-spaces and cells,
with the optimistic term for all arms or for the UCB arm; not to the other gains.

Clicks and counts: the same algorithm with divergences in place of squared distances, which are
the same thing for normal rewards.  Alternatives are nearest in log-likelihood
(:mod:`sightline.core.alternatives.law_half_spaces`).  The gain is
sum_z q(z) (sqrt(2 d(x, z)) + sqrt(beta) w(x))^2 / 2, with the divergence d(x, z) of what x shows
under nu-hat(z) and the width w(x) of what it shows by the curvature at theta-hat.  Gaps are those
of mean rewards.  Proven is that the test of exploitation is right: it compares a likelihood ratio
with a threshold that holds in all rounds at once (:mod:`sightline.core.estimation.likelihood`),
given a bound on the norm of theta, for all links but the identity.  That regret is optimal in the
limit is measured and not proven.

Cost per exploration round: O(p (k d + d^2)) for ``"halfspace"``, where p <= k is the number of
alternatives whose weight is not negligible, O(k d^2) for ``"halfspace-ucb"``, and k quadratic
programs more for cells or a constrained parameter set.  A whole stretch of exploitation costs as
much as one test, whatever its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The two modules of gains are imported for what they register.
import sightline.core.information.gains_of_alternatives
import sightline.core.information.gains_of_widths  # noqa: F401
from sightline.core.alternatives.comparison import Comparison
from sightline.core.alternatives.half_spaces import HalfSpaces
from sightline.core.alternatives.law_half_spaces import LawHalfSpaces, half_spaces_for
from sightline.core.alternatives.parameter_set import Polytope
from sightline.core.alternatives.projections import Projections, projections
from sightline.core.clock import Clock, first_after, is_before
from sightline.core.confidence.log_det import LogDet
from sightline.core.confidence.rules import ConfidenceRule, valid_regulariser, valid_rule
from sightline.core.estimation.context_distribution import SETS_KEPT
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.information.gains import INFORMATION
from sightline.core.information.gaps import GAPS
from sightline.core.information.ratio import SAMPLING
from sightline.core.information.round import weighing, workspace
from sightline.core.information.weights import learning_rate_rule
from sightline.core.model import Model
from sightline.jit import compiled, generic
from sightline.policies.appointments import Appointment, appoint, cancel, keep, no_appointment
from sightline.policies.base import Choice, Policy, choose_from, put_all_on, register_policy, spread
from sightline.policies.ids.contextual import ACROSS, in_contexts
from sightline.policies.ids.state import (
    EXPLOITATION,
    Discards,
    IDSState,
    Keeps,
    Never,
    Rules,
    ids_distribution,
)
from sightline.policies.reports import (
    begin,
    best_on_offer,
    compare_to_best,
    learn,
    report_commitment,
    settled_until_round,
)
from sightline.validation import one_of, shown

__all__ = ["IDS", "IDSState", "ids_distribution"]


#: Options of contextual IDS: the others look at one context.
_CONTEXTUAL = {
    "information": ("halfspace", "log-det"),
    "sampling": ("pair", "exact"),
    "gaps": ("auto", "value"),
}


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
        can be added by :func:`sightline.register_information`.
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
        :func:`sightline.register_gaps`.
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
        or that of the present one (:mod:`sightline.policies.ids.contextual`).  On a stream, past
        sets of arms stand for those to come.
    context_law : {"known", "estimated"}
        How often each context comes: as the problem says, or as counted.
    exploitation : {"discard", "keep"}
        What becomes of the data of exploitation rounds: discarded as in Algorithm 1, or kept, which
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
    context_law: str = "known"
    exploitation: str = "discard"

    takes_observations = takes_late_rewards = True

    @property
    def commits(self) -> bool:
        """Whether choices can reach ahead."""
        return self.exploitation == "discard"

    @property
    def any_horizon(self) -> bool:
        """Whether the configuration keeps looking for information once gaps are small.

        Without randomisation x-hat ends up being explored in nearly every round, as by LinUCB, and
        with gaps that fall to zero in of the order of sqrt(n) rounds.
        """
        randomises = self.sampling != "deterministic" and self.gaps != "difference-unlifted"
        return self.commits and randomises and INFORMATION[self.information].any_horizon

    def __post_init__(self) -> None:
        one_of("information", self.information, INFORMATION)
        one_of("sampling", self.sampling, SAMPLING)
        one_of("gaps", self.gaps, ("auto", *GAPS))
        valid_rule(self.confidence)
        learning_rate_rule(self.learning_rate, 2)
        valid_regulariser(self.regulariser, self.confidence)
        one_of("contexts", self.contexts, ACROSS)
        one_of("context_law", self.context_law, ("known", "estimated"))
        one_of("exploitation", self.exploitation, EXPLOITATION)
        if not isinstance(self.parameter_set, Polytope | None):
            raise ValueError(
                f"parameter_set must be a Polytope or None, got {shown(self.parameter_set)}"
            )

    @property
    def takes_some_arms(self) -> bool:
        """Whether it can choose when only some arms are on offer."""
        cells = self.parameter_set is not None or INFORMATION[self.information].cells
        known = self.gaps in ("auto", "value", "thresholded")
        return not cells and known and self.exploitation == "discard"

    @property
    def takes_streams(self) -> bool:
        """Whether it can choose among arms that are new in every round."""
        return self.takes_some_arms

    @property
    def takes_laws(self) -> bool:
        """Whether it can learn from clicks and counts, by their own likelihood."""
        cells = self.parameter_set is not None or INFORMATION[self.information].cells
        return not cells and self.gaps in ("auto", "value")

    @property
    def takes_unknown_noise(self) -> bool:
        """Whether it learns the noise level from the outcomes, where a model does not say it."""
        return True

    def start(self, model: Model) -> Any:
        """State before any data: an IDSState, or a ContextIDSState."""
        if model.law is not None and model.contexts is not None:
            model.needs_fixed_arms("IDS with clicks or counts")
        if (model.contexts is not None or model.stream) and not self.takes_some_arms:
            model.needs_fixed_arms(
                "IDS with cells, a parameter_set, gaps of differences or kept exploitation data"
            )
        if model.stream and self.contexts == "contextual":
            model = model.with_reservoir(SETS_KEPT)
        # M is given in the coordinates of the actions, so these must stay
        reduce = self.parameter_set is None
        estimate, confidence = begin(model, self.regulariser, self.confidence, reduce=reduce)
        k, d = estimate.arms.rewards.shape
        state = IDSState(
            estimate=estimate,
            confidence=confidence,
            rules=Rules(
                information=INFORMATION[self.information].rule,
                sampling=SAMPLING[self.sampling],
                gaps=GAPS[self._gaps(model)],
                exploitation=EXPLOITATION[self.exploitation],
            ),
            alternatives=self._alternatives(estimate),
            weighing=weighing(learning_rate_rule(self.learning_rate, model.count)),
            work=workspace(k, d),
            due=no_appointment() if _some_are_silent(estimate) else Never(),
        )
        if model.contexts is None or len(model.contexts) == 1:
            return state
        if self.contexts == "contextual":
            self._check_contextual()
        return in_contexts(state, model, self.contexts, estimated=self.context_law == "estimated")

    def _gaps(self, model: Model) -> str:
        """Name of the gap estimates."""
        if self.gaps != "auto":
            return self.gaps
        return "difference" if model.weights is None else "value"

    def _check_contextual(self) -> None:
        """Refuse what is not defined over several contexts."""
        for option, allowed in _CONTEXTUAL.items():
            if getattr(self, option) not in allowed:
                raise ValueError(
                    f"contextual IDS needs {option} to be one of {', '.join(map(repr, allowed))}, "
                    f"got {getattr(self, option)!r}; conditional IDS takes others"
                )

    def _alternatives(self, estimate: LeastSquares) -> HalfSpaces | LawHalfSpaces | Projections:
        """Alternatives that the gain weighs, in M."""
        k, d = estimate.arms.rewards.shape
        cells = INFORMATION[self.information].cells
        if self.parameter_set is None and not cells:
            return half_spaces_for(estimate)
        normals, bounds = np.zeros((0, d)), np.zeros(0)
        if self.parameter_set is not None:
            normals, bounds = self.parameter_set.arrays(d)
        return projections(k, d, cells, normals, bounds)


def _some_are_silent(estimate: LeastSquares) -> bool:
    """Whether some arms show nothing."""
    return bool(estimate.arms.observations.silent.any())


@compiled
def choose_ids(state: IDSState, clock: Clock, offer: Any, rng: np.random.Generator) -> Choice:
    """Commit to x-hat while m_s >= beta_{s, t log t} / 2, else draw from the IDS distribution."""
    comparison = compare_to_best(state, offer)
    wake = settled_until_round(state, comparison, clock)
    if is_before(clock, wake):
        return _exploit(state.rules.exploitation, comparison.best, clock, wake)
    return _explore(state.due, state, comparison, clock, offer, rng)


@generic
def _exploit(exploitation: Any, best: int, clock: Clock, wake: Clock) -> Choice:
    """Play x-hat, which is settled until a later round."""
    raise TypeError(f"no way to exploit by {type(exploitation).__name__}")


@_exploit.register(Discards)
@compiled
def _commit(exploitation: Discards, best: int, clock: Clock, wake: Clock) -> Choice:
    return Choice(best, 1.0, wake)


@_exploit.register(Keeps)
@compiled
def _look_on(exploitation: Keeps, best: int, clock: Clock, wake: Clock) -> Choice:
    return Choice(best, 1.0, clock)


@generic
def _explore(
    due: Any,
    state: IDSState,
    comparison: Comparison,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
) -> Choice:
    """Draw from the IDS distribution."""
    raise TypeError(f"no way to explore by a {type(due).__name__}")


@_explore.register(Never)
@compiled
def _explore_now(
    due: Never,
    state: IDSState,
    comparison: Comparison,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
) -> Choice:
    return choose_from(ids_distribution(state, comparison, offer)[0], clock, rng)


@_explore.register(Appointment)
@compiled
def _explore_when_due(
    due: Appointment,
    state: IDSState,
    comparison: Comparison,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
) -> Choice:
    """While x-hat shows nothing, draw in one step how long it is played.

    The test of exploitation, which fails now, fails at every later round as well: nothing but the
    time has changed, and the threshold grows with it.
    """
    best = comparison.best
    if due.t[0] > 0 and offer.mask.shape[0] == 0:
        choice = keep(due, best, clock, offer)
        if choice.arm >= 0:
            return choice
    mixture = ids_distribution(state, comparison, offer)[0]
    silent = state.estimate.arms.observations.silent[best] and mixture.first == best
    if not silent or offer.mask.shape[0] > 0:
        return choose_from(mixture, clock, rng)
    if mixture.second == best or mixture.probability == 0.0:  # there is nothing to be seen
        return Choice(best, 1.0, first_after(math.inf, clock))
    return appoint(due, best, mixture.second, math.log(mixture.probability), clock, offer, rng)


@compiled
def update_ids(state: IDSState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from an outcome, which ends an appointment."""
    learn(state, clock, arm, outcome)
    _cancel(state.due)


@generic
def _cancel(due: Any) -> None:
    """Drop an appointment that was made on grounds that have changed."""
    raise TypeError(f"nothing to cancel for {type(due).__name__}")


@_cancel.register(Never)
@compiled
def _cancel_nothing(due: Never) -> None:
    pass


_cancel.register(Appointment)(cancel)


@compiled
def law_ids(
    state: IDSState,
    clock: Clock,
    offer: Any,
    rng: np.random.Generator,
    probabilities: NDArray[np.float64],
) -> None:
    """Write the distribution that ``choose`` draws from."""
    comparison = compare_to_best(state, offer)
    if is_before(clock, settled_until_round(state, comparison, clock)):
        put_all_on(comparison.best, probabilities)
    else:
        spread(ids_distribution(state, comparison, offer)[0], probabilities)


register_policy(
    IDSState,
    choose=choose_ids,
    update=update_ids,
    inspect=report_commitment,
    law=law_ids,
    best_of=best_on_offer,
)
