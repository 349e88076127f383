"""IDS where the arms on offer change with a context (Hao, Lattimore, Qin, ICML 2022).

Alternatives are indexed by context and arm: parameters under which another arm of that context is
best.  All contexts share the estimates, so what is learned in one tells something about the
others.  The policy commits while the evidence against every alternative of every context passes
the test of Algorithm 1; until then

- *contextual* IDS minimises the ratio (expected gap)^2 / (expected gain) of all contexts together,
  the gain being about the alternatives of all of them: it explores where that is cheapest
  (:mod:`sightline.core.information.marginal`);
- *conditional* IDS minimises the ratio of the present context, the gain being about its own
  alternatives.  Where these are settled, it plays the best arm and does not learn.

Guarantees: none is proved for contexts with this gain.  With one context both are the algorithm of
the paper (Kirschner, Lattimore, Vernade, Szepesvari, COLT 2021), bit for bit.

Cost per exploration round: as IDS with the arms of all contexts, O(p (k d + d^2) + C d^2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, first_largest_between, first_largest_offered
from sightline.core.alternatives.comparison import Comparison, compare, restrict_alternatives
from sightline.core.alternatives.half_spaces import HalfSpaces, half_spaces
from sightline.core.clock import Clock, is_before, tick
from sightline.core.confidence.rules import local_beta
from sightline.core.estimation.context_distribution import (
    ContextDistribution,
    context_distribution,
    note_action_set,
    sample_of_sets,
    show_sets,
)
from sightline.core.estimation.estimate import LeastSquares
from sightline.core.information.gains import gains_on_offer
from sightline.core.information.gaps import upper_bound
from sightline.core.information.marginal import Marginal, marginal, of_context, walk_chains
from sightline.core.information.ratio import Mixture
from sightline.core.information.round import Round, Weighing, Workspace
from sightline.core.model import Model
from sightline.core.persistence import state_version
from sightline.jit import compiled, generic
from sightline.policies.base import (
    Choice,
    Evidence,
    choose_from,
    put_all_on,
    register_policy,
    spread,
)
from sightline.policies.ids.state import IDSState, Rules, ids_distribution
from sightline.policies.reports import best_on_offer, learn, report_evidence, settled_until_round

__all__ = ["ACROSS", "ContextIDSState", "in_contexts"]


class Contextual(NamedTuple):
    """The ratio of all contexts together."""

    chain: Marginal


class Conditional(NamedTuple):
    """The ratio of the present context."""

    code: int = 0  # numba knows no empty named tuples


ACROSS = ("contextual", "conditional")


@state_version(2)
class ContextIDSState(NamedTuple):
    """Estimates from exploration rounds in all contexts, and what a round computes from them."""

    estimate: LeastSquares
    confidence: Any
    rules: Rules
    alternatives: HalfSpaces
    weighing: Weighing
    work: Workspace
    frequencies: ContextDistribution
    across: Any  # Contextual or Conditional


def in_contexts(state: IDSState, model: Model, across: str, *, estimated: bool) -> ContextIDSState:
    """State with the same estimates and rules, for the contexts of a model."""
    contexts = model.contexts
    assert contexts is not None
    return ContextIDSState(
        estimate=state.estimate,
        confidence=state.confidence,
        rules=state.rules,
        alternatives=half_spaces(int(contexts.starts[-1]), contexts),
        weighing=state.weighing,
        work=state.work,
        frequencies=sample_of_sets(model)
        if model.stream
        else context_distribution(contexts, estimated),
        across=Contextual(marginal(len(contexts))) if across == "contextual" else Conditional(),
    )


@compiled
def _compare_all(state: ContextIDSState, offer: Any) -> Comparison:
    """Compare the arms of every context with its best."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    return compare(state.alternatives, state.estimate, best)


@compiled
def _weigh_contexts(state: ContextIDSState, comparison: Comparison) -> None:
    """Write gap estimates and information gains of the arms of all contexts."""
    estimate, work, starts = state.estimate, state.work, state.alternatives.starts
    learned = estimate.learned
    beta = local_beta(state.confidence, learned.log_det[0], learned.rounds[0] + 1)
    round_ = Round(
        estimate, state.alternatives, comparison, beta, comparison.best, state.weighing, work
    )
    gains_on_offer(state.rules.information, round_, estimate.arms.everything)
    bounds = estimate.scratch.products
    for x in range(bounds.shape[0]):
        bounds[x] = upper_bound(estimate, beta, x)
    for c in range(starts.shape[0] - 1):
        highest = bounds[first_largest_between(bounds, starts[c], starts[c + 1])]
        for x in range(starts[c], starts[c + 1]):
            work.gaps[x] = highest - estimate.arms.means[x]


@generic
def _mixture(
    across: Any, state: ContextIDSState, comparison: Comparison, clock: Clock, offer: ActionSet
) -> Mixture:
    """Law of an exploration round; of x-hat alone, with probability 1, where it is not learned."""
    raise TypeError(f"no way across contexts for {type(across).__name__}")


@_mixture.register(Contextual)
@compiled
def _contextual(
    across: Contextual,
    state: ContextIDSState,
    comparison: Comparison,
    clock: Clock,
    offer: ActionSet,
) -> Mixture:
    _weigh_contexts(state, comparison)
    starts, law, work = state.alternatives.starts, state.frequencies.probabilities, state.work
    walk = walk_chains(across.chain, starts, law, work.gaps, work.gains)
    return of_context(across.chain, walk, offer.context)


@_mixture.register(Conditional)
@compiled
def _conditional(
    across: Conditional,
    state: ContextIDSState,
    comparison: Comparison,
    clock: Clock,
    offer: ActionSet,
) -> Mixture:
    present = restrict_alternatives(offer, state.alternatives, comparison)
    if is_before(clock, settled_until_round(state, present, clock)):
        return Mixture(comparison.best, comparison.best, 1.0, 0.0)
    return ids_distribution(state, present, offer)[0]


@compiled
def _is_settled(mixture: Mixture) -> bool:
    """Whether only the other contexts are explored."""
    return mixture.first == mixture.second and mixture.probability == 1.0


@compiled
def choose_in_context(
    state: ContextIDSState, clock: Clock, offer: ActionSet, rng: np.random.Generator
) -> Choice:
    """Commit in all contexts while no alternative of any is left, else draw."""
    note_action_set(state.frequencies, offer, state.estimate, rng)
    comparison = _compare_all(state, offer)
    wake = settled_until_round(state, comparison, clock)
    if is_before(clock, wake):
        return Choice(comparison.best, 1.0, wake)
    mixture = _mixture(state.across, state, comparison, clock, offer)
    if _is_settled(mixture):
        return Choice(comparison.best, 1.0, tick(clock))
    return choose_from(mixture, clock, rng)


@compiled
def law_in_context(
    state: ContextIDSState,
    clock: Clock,
    offer: ActionSet,
    rng: np.random.Generator,
    probabilities: NDArray[np.float64],
) -> None:
    """Write the distribution that ``choose`` draws from."""
    comparison = _compare_all(state, offer)
    if is_before(clock, settled_until_round(state, comparison, clock)):
        put_all_on(comparison.best, probabilities)
    else:
        spread(_mixture(state.across, state, comparison, clock, offer), probabilities)


@compiled
def inspect_contexts(state: ContextIDSState, clock: Clock, offer: Any) -> Evidence:
    """Report the least evidence over all contexts, and until when all of them are settled."""
    return report_evidence(state, _compare_all(state, offer), clock)


@compiled
def show_contexts(state: ContextIDSState, rows: NDArray[np.float64], start: int, stop: int) -> None:
    """Put new arms into the table of a stream, and past ones beside them."""
    show_sets(state.frequencies, state.estimate, rows, start, stop)


register_policy(
    ContextIDSState,
    choose=choose_in_context,
    update=learn,
    inspect=inspect_contexts,
    law=law_in_context,
    best_of=best_on_offer,
    show=show_contexts,
)
