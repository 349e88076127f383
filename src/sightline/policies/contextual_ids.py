"""Information-directed sampling with contexts (Hao, Lattimore, Qin, ICML 2022).

| symbol                          | here                                      | shape |
|---------------------------------|-------------------------------------------|-------|
| rows of the arms of context c   | ``alternatives.starts[c : c + 2]``        |       |
| p_c                             | ``frequencies.probabilities``             | (C,)  |
| x-hat_c, the best arm of c      | ``alternatives.bests``                    | (k,)  |
| Delta-hat_s(c, a), I_s(c, a)    | ``work.gaps``, ``work.gains``             | (k,)  |

Other symbols are those of :mod:`sightline.policies.ids`.  Alternatives are indexed by context and
arm: parameters under which another arm of that context is best.  All contexts share the estimates,
so data from one context inform about the others.  The policy commits while the evidence against
every alternative of every context passes the test of Algorithm 1.  Otherwise

- *contextual* IDS minimises the ratio (expected gap)^2 / (expected gain) of all contexts together,
  with the gain about the alternatives of all of them: it explores where that is cheapest
  (:func:`sightline.core.contextual_ratio.walk_chains`);
- *conditional* IDS minimises the ratio of the present context, with the gain about its own
  alternatives.  Where these pass the test, it plays the best arm and does not learn.

Guarantees: none is proved for contexts with this gain.  With one context both are the algorithm of
the paper (Kirschner, Lattimore, Vernade, Szepesvari, COLT 2021), bit for bit.

Cost per exploration round: as IDS with the arms of all contexts, O(p (k d + d^2) + C d^2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.random import Generator

from sightline.core.action_set import ActionSet, first_largest_between, first_largest_offered
from sightline.core.alternatives import (
    Comparison,
    HalfSpaces,
    compare,
    half_spaces,
    restrict_alternatives,
)
from sightline.core.clock import Clock, is_before, tick
from sightline.core.context_distribution import (
    ContextDistribution,
    context_distribution,
    note_action_set,
    sample_of_sets,
    show_sets,
)
from sightline.core.contextual_ratio import Marginal, marginal, of_context, walk_chains
from sightline.core.estimate import LeastSquares
from sightline.core.gains import LearningRate, Workspace
from sightline.core.gaps import upper_bound
from sightline.core.linalg import Array
from sightline.core.model import Model
from sightline.core.ratio import Mixture
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Evidence,
    best_on_offer,
    choose_from,
    evidence_of,
    learn,
    put_all_on,
    register_policy,
    settled_before,
    spread,
)
from sightline.policies.ids import IDSState, ids_distribution, weigh


class ContextIDSState(NamedTuple):
    """Estimates from exploration rounds in all contexts, the rules, and a workspace."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces
    gap_rule: Any  # of a class in gaps.py, or one that was registered
    learning_rate: LearningRate
    gain_rule: Any  # of a class in gains.py, or one that was registered
    sampling: int  # a Sampling
    conditional: bool  # whether the ratio is that of the present context
    frequencies: ContextDistribution
    chain: Marginal
    work: Workspace


def in_contexts(
    state: IDSState, model: Model, conditional: bool, estimated: bool
) -> ContextIDSState:
    """State with the same estimates and rules, for the contexts of a model."""
    contexts = model.contexts
    assert contexts is not None
    frequencies = context_distribution(contexts, estimated)
    if model.stream:
        frequencies = sample_of_sets(model)
    return ContextIDSState(
        estimate=state.estimate,
        confidence=state.confidence,
        alternatives=half_spaces(int(contexts.starts[-1]), contexts),
        gap_rule=state.gap_rule,
        learning_rate=state.learning_rate,
        gain_rule=state.gain_rule,
        sampling=state.sampling,
        conditional=conditional,
        frequencies=frequencies,
        chain=marginal(len(contexts)),
        work=state.work,
    )


@compiled
def _compare_all(state: ContextIDSState, offer: ActionSet) -> Comparison:
    """Compare the arms of every context with its best."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    return compare(state.alternatives, state.estimate, best)


@compiled
def _choose(state: ContextIDSState, clock: Clock, offer: ActionSet, rng: Generator) -> Choice:
    """One round of Algorithm 1 with contexts."""
    note_action_set(state.frequencies, offer, state.estimate, rng)
    # x-hat_c of every context, and nu-hat_s(c, z)
    comparison = _compare_all(state, offer)
    # exploitation condition (E), over the alternatives of all contexts
    wake = settled_before(state, comparison, clock)
    if is_before(clock, wake):
        return Choice(comparison.best, 1.0, wake)
    # sample x_s from mu_s
    mixture = ids_distribution_of(state, comparison, clock, offer)
    if mixture.first == mixture.second and mixture.probability == 1.0:
        return Choice(comparison.best, 1.0, tick(clock))  # only other contexts are explored
    return choose_from(mixture, clock, rng)


@compiled
def ids_distribution_of(
    state: ContextIDSState, comparison: Comparison, clock: Clock, offer: ActionSet
) -> Mixture:
    """mu_s of the present context; x-hat twice, with probability 1, where nothing is learned."""
    if state.conditional:
        comparison = restrict_alternatives(offer, state.alternatives, comparison)
        if is_before(clock, settled_before(state, comparison, clock)):
            return Mixture(comparison.best, comparison.best, 1.0, 0.0)
        return ids_distribution(state, comparison, offer)[0]
    # I_s(c, a), and Delta-hat_s(c, a), which compares with the arms of the same context only
    beta = weigh(state, comparison, state.estimate.arms.everything)[0]
    _value_gaps_by_context(state, beta)
    # mu_s minimises the ratio of all contexts together
    starts, probabilities = state.alternatives.starts, state.frequencies.probabilities
    walk = walk_chains(state.chain, starts, probabilities, state.work.gaps, state.work.gains)
    return of_context(state.chain, walk, offer.context)


@compiled
def _value_gaps_by_context(state: ContextIDSState, beta: float) -> None:
    """Write max_z (<z, theta-hat_s> + beta^{1/2} |z|) - <x, theta-hat_s>, z in the context of x."""
    estimate, gaps, starts = state.estimate, state.work.gaps, state.alternatives.starts
    bounds = estimate.scratch.products
    for x in range(bounds.shape[0]):
        bounds[x] = upper_bound(estimate, beta, x)
    for c in range(starts.shape[0] - 1):
        highest = bounds[first_largest_between(bounds, starts[c], starts[c + 1])]
        for x in range(starts[c], starts[c + 1]):
            gaps[x] = highest - estimate.arms.means[x]


@compiled
def _probabilities(
    state: ContextIDSState, clock: Clock, offer: ActionSet, rng: Generator, probabilities: Array
) -> None:
    """Write the distribution that ``choose`` draws from."""
    comparison = _compare_all(state, offer)
    if is_before(clock, settled_before(state, comparison, clock)):
        put_all_on(comparison.best, probabilities)
    else:
        spread(ids_distribution_of(state, comparison, clock, offer), probabilities)


@compiled
def _inspect(state: ContextIDSState, clock: Clock, offer: ActionSet) -> Evidence:
    """Report the least evidence over all contexts, and until when all are settled."""
    comparison = _compare_all(state, offer)
    return evidence_of(state, comparison, clock, settled_before(state, comparison, clock))


@compiled
def _show(state: ContextIDSState, rows: Array, start: int, stop: int) -> None:
    """Put new arms into the table of a stream, with a sample of past ones beside them."""
    show_sets(state.frequencies, state.estimate, rows, start, stop)


register_policy(
    ContextIDSState,
    choose=_choose,
    update=learn,
    inspect=_inspect,
    probabilities=_probabilities,
    best_of=best_on_offer,
    show=_show,
)
