"""Stakes: explore while the expected loss of stopping now is worth the price of information.

A design of this library (2026), the practical sibling of Algorithm 1: the same alternatives and, in
the limit, the same information gain, weighed by the expected loss of stopping now.
``docs/stakes.md`` has the derivation and the measurements.

| symbol                                              | here                              |
|-----------------------------------------------------|-----------------------------------|
| x-hat, the empirically best arm                     | ``ExpectedLoss.best``             |
| g_x, gap of x in rewards                            | ``Losses.gaps``                   |
| log L, L the expected loss per round of x-hat       | ``ExpectedLoss.log_loss``         |
| m, half the least squared score                     | ``ExpectedLoss.evidence``         |
| I(x), nats of log L that a round of x is worth      | ``Losses.gains``                  |
| Delta(x) = g_x + kappa L                            | ``Losses.costs``, ``KAPPA``       |
| L', I' after more rounds of x-hat                   | ``StakesState.lookahead``         |
| C = min g_x / I'(x), the price of a nat             | ``least_price``                   |

:mod:`sightline.core.posterior.losses` has L and I.  Both count open decisions as observed: means
come from known outcomes, V from all decided arms.

**Randomised form.**  Per round, exploration costs as much as exploitation is expected to lose.
x-hat is mixed with the arm x at which Delta^2 / I is least; x has the probability

    p = kappa L / g_x - 2 I(x-hat) / (I(x) - I(x-hat)),   clipped to [0, 1].                  (1)

The policy learns from x-hat while x-hat is informative.  Once p < e^-2, L is compared with L', the
loss if x-hat were known perfectly.  If that would hardly change it,

    log L - log L' <= min(0.02 m, sqrt(m) / 2),                                               (2)

the policy commits to x-hat and explores the arm of least price with the probability

    p' = kappa L' / g_x.                                                                      (3)

Nothing is learned before that, so p' is the same in every round.  The waiting time is geometric and
drawn in one step, to 10^300 rounds and beyond.  If x-hat itself is informative, (2) never holds.
The policy then learns from x-hat at longer and longer intervals, not before the round t at which

    t kappa L / (least g_x) = e^-2 / m^2.                                                     (4)

*Contexts.*  x-hat is the best arm of each context.  The ratio is that of expectations over all
contexts (:mod:`sightline.core.ratio`), so at most one context randomises.  During a
commitment it is the context in which exploration is cheapest, with another probability q:
rounds are marked with probability q, in every context.  At a marked round the policy explores
if the round has that context, and else draws the next mark.

*Streams.*  If arms are new in every round, a sample of past action sets stands for future ones
(:mod:`sightline.core.context_distribution`).  The policy never commits.

**Deterministic form.**  The stakes are H L, with the horizon H = 3 t.  Arm x is worth exploring if

    H L I(x) - g_x > H L I(x-hat),                                                            (5)

now, and also after t more rounds of x-hat: the policy does not pay for information that x-hat
gives for free.  Of the arms with g_x / I'(x) <= (1 + 1 / m') C it explores the one with the largest
H L' I'(x) - g_x.  Otherwise it plays x-hat, and does not learn from it while

    H L' <= C   and   H L <= C exp(sqrt(log t) / 2) / 2,                                      (6)

with L' and C as if x-hat were known perfectly.  Both can be solved for log t: the policy commits to
the round at which the first of them fails.

Guarantees: none is proved.  In every case measured regret per log n tends to c*, to 10^300 rounds,
and comes from below: at practical horizons it is that of the best policies known.

Cost per round: O(k d^2).  A commitment of any length costs as much as one round.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import ActionSet, first_largest_offered, is_offered
from sightline.core.alternatives import Comparison, context_of_arm, rival_of
from sightline.core.clock import Clock, first_after, is_before, log_round
from sightline.core.confidence_rules import LogDet
from sightline.core.context_distribution import (
    SAMPLED,
    SETS_KEPT,
    context_distribution,
    log_probability,
    note_action_set,
    sample_of_sets,
    show_sets,
)
from sightline.core.contextual_ratio import Marginal, marginal, of_context, walk_chains
from sightline.core.estimate import (
    LeastSquares,
    LikelihoodFit,
    StreamData,
    estimated_noise,
    weak_guess,
)
from sightline.core.least_squares import update_seen_widths
from sightline.core.likelihood import information
from sightline.core.likelihood_alternatives import half_spaces_for
from sightline.core.linalg import Array, Ints
from sightline.core.lookahead import Lookahead, add_gram_matrix, add_pulls, begin_now, lookahead_of
from sightline.core.model import Model
from sightline.core.persistence import invariant, none_if_unknown, persists, whole
from sightline.core.posterior.losses import ExpectedLoss, Losses, expected_loss, loss_gains, losses
from sightline.core.ratio import Mixture, pair_mixture
from sightline.jit import compiled
from sightline.policies.base import (
    EVERY_KIND,
    Choice,
    Policy,
    ScheduledExploration,
    Supports,
    begin,
    best_on_offer,
    cancel,
    choose_from,
    learn,
    nothing_scheduled,
    play_scheduled,
    register_policy,
    report,
    schedule,
    spread,
)
from sightline.validation import flag, number, one_of, scale

#: Cost of exploration per round, over the expected loss of exploitation.
KAPPA = 2.0

_LOG_KAPPA = math.log(KAPPA)
_LOG_RARE = -2.0
_RARE = math.exp(_LOG_RARE)  # probability of exploration below which a commitment is considered
_TEST_EVERY = 8  # outcomes: a test of (2) costs as much as a round
_SHARE, _ROOT_SHARE = 0.02, 0.5  # of m and sqrt(m), in (2)
_LEAST_LOG_LOSS = -300.0  # below, gaps and ratios have no floats; x-hat is played

_LOG_HORIZONS = math.log(3.0)  # H / t
_LOG_HALF = math.log(0.5)
_LARGEST = 700.0  # exponent of a float

_KNOWN_WIDTH = 1e-10  # part of a squared width that may be rounding

_NOISE = ("given", "estimated")
# A guess for the noise counts as one observation, and its prior for theta is wide: either may be
# wrong by a factor of ten.
_PRIOR_COUNT, _WIDENING = 1.0, 0.1
# Alternatives at this many times the least squared distance lose nothing beside the nearest.
_DECISIVE = 4.0


# Configuration


@dataclass(frozen=True)
class Stakes(Policy):
    """The default policy for practice: good at every horizon, without tuning.

    Parameters
    ----------
    norm_bound : float, optional
        S, about the norm of theta: the prior is N(0, S^2 I).  It matters for the first rounds only,
        and not at all if the problem does not say the noise level.
        With clicks theta is in log odds, with counts in logarithms.  None is a wide prior, for
        rewards of any scale; files write ``"unknown"`` for it.
    guard : float
        Caution in [0, 1].  With 1/2, alternatives that only a few outcomes speak against are tried
        as often as by Thompson sampling.  With 0 they are not: runs that stick to a wrong arm for
        long are then four times as frequent, and others lose up to 15 % less.  With 1 all
        alternatives are, permanently: such runs become as rare as with Thompson sampling also where
        gaps are small beside the noise, and all runs lose about 20 % more.
    noise : {"given", "estimated"}
        Whether the noise level of the problem is known, or a guess from which it is learned.  It is
        learned in any case if the problem does not say it, as with ``Gaussian(std=None)``.
    randomised : bool
        Whether to draw, with known probabilities; else the deterministic form.
    context_probabilities : {"known", "estimated"}
        How often each context comes, if there are any: as the problem says, or as counted.
    """

    norm_bound: float | None = 1.0
    guard: float = 0.5
    noise: str = "given"
    randomised: bool = True
    context_probabilities: str = "known"

    commits = True
    settles_by_committing = False

    def __post_init__(self) -> None:
        none_if_unknown(self, "norm_bound")
        if self.norm_bound is not None:
            scale("norm_bound", self.norm_bound)
        number("guard", self.guard, at_least=0, at_most=1)
        one_of("noise", self.noise, _NOISE)
        flag("randomised", self.randomised)
        one_of("context_probabilities", self.context_probabilities, ("known", "estimated"))

    @property
    def randomises(self) -> bool:
        """Whether choices are drawn at random given the state and the round."""
        return self.randomised

    @property
    def supports(self) -> Supports:
        """What the policy can play beyond a plain bandit."""
        streams, likelihoods = self.randomised, self.noise == "given"
        return replace(
            EVERY_KIND, masks_in_contexts=False, streams=streams, likelihoods=likelihoods
        )

    def start(self, model: Model) -> StakesState:
        """State before any data."""
        several = model.contexts is not None and len(model.contexts) > 1
        if (model.stream or several) and not self.randomised:
            model.needs_fixed_arms("deterministic Stakes")
        if model.stream:
            model = model.with_reservoir(SETS_KEPT)
        contexts = model.contexts if several or model.stream else None
        known = self.noise == "given" and model.noise_known
        if not known and model.observations_per_round > 1:
            raise ValueError(
                'noise="estimated" needs outcomes of one number; this problem shows '
                f"{model.observations_per_round}"
            )
        estimate, confidence = self._begin(model, known)
        k, d = estimate.arms.rewards.shape
        distribution = context_distribution(contexts, self.context_probabilities == "estimated")
        if model.stream:
            distribution = sample_of_sets(model)
        by_likelihood: list[Any] = [None, None]
        if model.likelihood is not None and contexts is None:  # only the nearest are refined
            by_likelihood = [half_spaces_for(estimate, far=_DECISIVE, near=0.0) for _ in range(2)]
        r = d if model.stream else 0
        open_decisions = OpenDecisions(
            stream=bool(model.stream),
            pulls=np.zeros(0 if model.stream else k),
            gram=np.zeros((r, r)),
            total=np.zeros(1 if model.stream else 0, dtype=np.int64),
        )
        now = losses(k, d, contexts, distribution, by_likelihood[0])
        reported = now.alternatives if by_likelihood[0] is None else half_spaces_for(estimate)
        return StakesState(
            estimate=estimate,
            confidence=confidence,
            alternatives=reported,
            guard=float(self.guard),
            due=nothing_scheduled() if self.randomised else None,
            open_decisions=open_decisions,
            now=now,
            expected=lookahead_of(estimate),
            lookahead=losses(k, d, contexts, distribution, by_likelihood[1]),
            later=lookahead_of(estimate),
            chain=marginal(0 if contexts is None else len(contexts)),
        )

    def _begin(self, model: Model, known: bool) -> tuple[LeastSquares, Any]:
        """Estimates before any data, and the coefficient for reports."""
        sigma, bound = model.noise_std, self.norm_bound
        free = LogDet(norm_bound=None)
        if bound is None:
            noise = None if known else weak_guess(sigma)
            return begin(model, "matched", free, noise=noise)
        if model.likelihood is not None:  # theta is in log odds, of which no bound is known
            return begin(model, bound**-2, free)
        if known:
            return begin(model, (sigma / bound) ** 2, LogDet(norm_bound=bound))
        if not model.noise_known:  # then S, in units of the reward, is not known either
            return begin(model, "matched", free)
        noise = estimated_noise(sigma, _PRIOR_COUNT)
        return begin(model, (_WIDENING * sigma / bound) ** 2, free, noise=noise)


# State


@persists("pulls", "gram", "total")
class OpenDecisions(NamedTuple):
    """Decisions whose outcomes are open: as counts per arm, or as a sum if arms are new.

    Unused arrays are empty.
    """

    stream: bool
    pulls: Array  # (k,): open decisions of each arm
    gram: Array  # (d, d): sum of x x^T over the open decisions of a stream
    total: Ints  # (1,): how many these are


@invariant(OpenDecisions)
def _check(part: OpenDecisions, name: str) -> None:
    whole(f"{name}.pulls", part.pulls)
    whole(f"{name}.total", part.total)


class StakesState(NamedTuple):
    """Estimates from all outcomes, and the losses that a round computes from them."""

    estimate: LeastSquares
    confidence: Any
    alternatives: Any  # for reports: those of ``now``, or by the likelihood of the rewards
    guard: float
    due: Any  # ScheduledExploration of a commitment; None in the deterministic form
    open_decisions: OpenDecisions
    now: Losses  # under ``expected``
    expected: Lookahead  # the estimate with all open decisions counted as observed
    lookahead: Losses  # under ``later``
    later: Lookahead  # the same after more rounds of x-hat
    chain: Marginal  # of the contexts


# Expected loss now


@compiled
def _losses_of(
    out: Losses, view: LeastSquares, guard: float, best: int, offer: ActionSet
) -> ExpectedLoss:
    """Losses and gains under a view, of the arms on offer or of those of all contexts."""
    if out.alternatives.starts.shape[0] > 2:
        offer = view.arms.everything
    loss = expected_loss(out, view, guard, best, offer)
    if loss.log_loss > -math.inf:
        loss_gains(out, view, loss, offer)
    return loss


@compiled
def loss_now(state: StakesState, offer: Any, guard: float) -> ExpectedLoss:
    """Losses and gains with all open decisions counted as observed."""
    best = first_largest_offered(offer, state.estimate.arms.means)
    view = state.expected.estimate
    count_open(state.open_decisions, state.estimate, view)
    return _losses_of(state.now, view, guard, best, offer)


# Expected loss after more rounds of x-hat


@compiled
def loss_after(state: StakesState, best: int, rounds: float, offer: Any) -> ExpectedLoss:
    """Losses and gains after more rounds of x-hat, possibly infinitely many.

    It starts from the view of :func:`loss_now`.  With contexts, each has its own x-hat.
    """
    view, known = state.later.estimate, state.expected.estimate
    begin_now(view, known)
    alternatives = state.now.alternatives
    for c in range(alternatives.starts.shape[0] - 1):
        comparison = Comparison(best, 0.0)
        arm = rival_of(alternatives, comparison, alternatives.starts[c])
        # what other arms show of it is known up to rounding, and must not be divided by
        if view.arms.seen_widths[arm] > _KNOWN_WIDTH * known.arms.seen_widths[arm]:
            add_pulls(view, arm, rounds)
    return _losses_of(state.lookahead, view, state.guard, best, offer)


# The price of information


@compiled
def least_price(out: Losses, best: int) -> tuple[int, float]:
    """Arm other than x-hat of least g / I, and this price; -1 and inf if none has a gain."""
    cheapest, price = -1, math.inf
    comparison = Comparison(best, 0.0)
    for x in range(out.gains.shape[0]):
        gap = out.gaps[x]
        other = x != rival_of(out.alternatives, comparison, x)
        if other and out.gains[x] > 0.0 and gap < price * out.gains[x]:
            cheapest, price = x, gap / out.gains[x]
    return cheapest, price


# Choice of the randomised form


class Exploration(NamedTuple):
    """Which arms are played, and with what probabilities."""

    best: int  # x-hat, which has the rest
    arm: int  # explores; x-hat if none does; in a commitment perhaps an arm of another context
    log_probability: float  # log p, in a round in which the arm is on offer
    committed: bool  # whether x-hat is not learned from
    log_until: float  # log t up to which x-hat is played surely and not learned from; or -inf


@compiled
def exploration(state: StakesState, offer: Any) -> Exploration:
    """Probability of an exploration in the next round: O(k d^2)."""
    now = loss_now(state, offer, state.guard)
    if now.log_loss == -math.inf:
        return _no_exploration(now.best)
    first, arm, probability, largest = _least_ratio(state.now, state.chain, now, offer)
    log_probability = math.log(probability) if probability > 0.0 else -math.inf
    found = Exploration(first, arm, log_probability, False, -math.inf)
    estimate = state.estimate
    # no outcome of a silent arm would bring the next test
    silent = estimate.arms.observations.silent[now.best]
    lasting = state.now.frequencies.kind != SAMPLED  # the next arms of a stream are unknown
    often = estimate.learned.rounds[0] % _TEST_EVERY != 0 and not silent
    if largest < _RARE and not often and lasting:
        return _commitment(state, now, offer, found)
    return found


@compiled
def _no_exploration(best: int) -> Exploration:
    return Exploration(best, best, -math.inf, True, math.inf)


@compiled
def _least_ratio(
    out: Losses, chain: Marginal, loss: ExpectedLoss, offer: ActionSet
) -> tuple[int, int, float, float]:
    """Minimise Delta^2 / I, as in (1); return two arms and the probability of the second.

    The fourth number is the largest probability with which any context does not play its best arm.
    """
    best = loss.best
    if loss.log_loss < _LEAST_LOG_LOSS:
        return best, best, 0.0, 0.0
    stake = KAPPA * math.exp(loss.log_loss)
    for x in range(out.costs.shape[0]):
        out.costs[x] = out.gaps[x] + stake
    starts, distribution = out.alternatives.starts, out.frequencies
    if starts.shape[0] == 2:
        pair = pair_mixture(out.costs, out.gains, best)
        return best, pair.second, pair.probability, pair.probability
    walk = walk_chains(chain, starts, distribution.probabilities, out.costs, out.gains)
    largest = walk.probability
    for c in range(chain.arms.shape[0]):
        if chain.arms[c] != out.alternatives.bests[starts[c]]:
            largest = 1.0
    mixture = of_context(chain, walk, offer.context)
    return mixture.first, mixture.second, mixture.probability, largest


@compiled
def _commitment(
    state: StakesState, now: ExpectedLoss, offer: Any, otherwise: Exploration
) -> Exploration:
    """Commit if knowing x-hat better would not change the losses."""
    limit = loss_after(state, now.best, math.inf, offer)
    m = now.evidence
    if now.log_loss - limit.log_loss <= min(_SHARE * m, _ROOT_SHARE * math.sqrt(m)):  # (2)
        arm, _ = least_price(state.lookahead, now.best)
        if arm < 0:  # no arm is informative
            return _no_exploration(now.best)
        gap = state.lookahead.gaps[arm]
        if gap <= 0.0:
            return otherwise
        context = context_of_arm(state.now.alternatives, arm)
        log_share = log_probability(state.now.frequencies, context)
        log_rate = _LOG_KAPPA + limit.log_loss - math.log(gap) - log_share  # (3)
        if log_share < 0.0 and log_rate > _LOG_RARE:  # its context is too rare to wait for
            return otherwise
        return Exploration(now.best, arm, log_rate, True, -math.inf)
    nearest = math.inf
    for z in range(state.now.log_losses.shape[0]):
        if state.now.log_losses[z] > -math.inf:
            nearest = min(nearest, state.now.gaps[z])
    if nearest <= 0.0:
        return otherwise
    log_rate = _LOG_KAPPA + now.log_loss - math.log(nearest)
    log_until = -2.0 - 2.0 * math.log(max(m, 1.0)) - log_rate  # (4)
    return Exploration(now.best, otherwise.arm, otherwise.log_probability, False, log_until)


@compiled
def _choose_randomised(
    due: ScheduledExploration, state: StakesState, clock: Clock, offer: Any, rng: Generator
) -> Choice:
    """Follow the scheduled commitment, or draw."""
    if due.t[0] > 0 and offer.mask.shape[0] == 0:
        best = first_largest_offered(offer, state.estimate.arms.means)
        choice = play_scheduled(due, best, clock, offer)
        if choice.arm >= 0:
            return choice
    found = exploration(state, offer)
    if offer.mask.shape[0] == 0:
        if found.log_until == math.inf or log_round(clock) <= found.log_until:
            return Choice(found.best, 1.0, first_after(found.log_until, clock))
        if found.committed:
            return schedule(due, found.best, found.arm, found.log_probability, clock, offer, rng)
    probability = math.exp(found.log_probability)
    return choose_from(Mixture(found.best, found.arm, probability, 0.0), clock, rng)


# Choice of the deterministic form


@compiled
def _choose_deterministic(state: StakesState, clock: Clock, offer: Any) -> Choice:
    """Commit to x-hat, explore, or learn from x-hat."""
    now = loss_now(state, offer, state.guard)
    best, log_t = now.best, log_round(clock)
    if now.log_loss == -math.inf:
        return Choice(best, 1.0, first_after(math.inf, clock))
    limit = loss_after(state, best, math.inf, offer)
    _, price = least_price(state.lookahead, best)
    wake = first_after(_committed_until(now, limit, price), clock)
    if is_before(clock, wake):
        return Choice(best, 1.0, wake)
    if _most_worth(state.now, now, log_t, math.inf) >= 0:
        later = loss_after(state, best, math.exp(min(log_t, _LARGEST)), offer)
        _, price = least_price(state.lookahead, best)
        cap = price * (1.0 + 1.0 / max(later.evidence, 1e-300))
        arm = _most_worth(state.lookahead, later, log_t, cap)
        if arm >= 0:
            return Choice(arm, 1.0, clock)
    return Choice(best, 1.0, clock)


@compiled
def _most_worth(out: Losses, loss: ExpectedLoss, log_t: float, cap: float) -> int:
    """Arm of at most this price that is most worth exploring by (5); -1 if none is."""
    stakes = math.exp(min(_LOG_HORIZONS + log_t + loss.log_loss, _LARGEST))  # H L
    most, found = stakes * out.gains[loss.best], -1
    for x in range(out.gains.shape[0]):
        gap, gain = out.gaps[x], out.gains[x]
        if x != loss.best and gain > 0.0 and gap <= cap * gain and stakes * gain - gap > most:
            most, found = stakes * gain - gap, x
    return found


@compiled
def _committed_until(now: ExpectedLoss, limit: ExpectedLoss, price: float) -> float:
    """Largest log t at which (6) holds."""
    if price <= 0.0:
        return -math.inf
    log_price = math.log(price) - _LOG_HORIZONS
    # log t + log L <= log(C / 3) + log(1/2) + sqrt(log t) / 2, a quadratic in sqrt(log t)
    slack = log_price + _LOG_HALF - now.log_loss
    if slack < 0.0:
        return -math.inf
    root = 0.25 + math.sqrt(0.0625 + slack)
    return min(log_price - limit.log_loss, root * root)


# Choose and update


@compiled
def _choose(state: StakesState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    note_action_set(state.now.frequencies, offer, state.estimate, rng)
    return _choose_by_form(state.due, state, clock, offer, rng)


# The type of ``due`` selects the form, so that only the one in use is compiled.
@compiled
def _choose_by_form(
    due: ScheduledExploration | None, state: StakesState, clock: Clock, offer: Any, rng: Generator
) -> Choice:
    if due is None:
        return _choose_deterministic(state, clock, offer)
    return _choose_randomised(due, state, clock, offer, rng)


@compiled
def _forget(due: ScheduledExploration | None) -> None:
    """Cancel an exploration that was scheduled with less data."""
    if due is not None:
        cancel(due)


@compiled
def _update(state: StakesState, clock: Clock, arm: int, outcome: Any) -> None:
    learn(state, clock, arm, outcome)
    _close(state.open_decisions, state.estimate, arm)
    _forget(state.due)


@compiled
def _show(state: StakesState, rows: Array, start: int, stop: int) -> None:
    """Put new arms into the table of a stream, with a sample of past ones beside them."""
    show_sets(state.now.frequencies, state.estimate, rows, start, stop)


# Open decisions


@compiled
def _decided(state: StakesState, clock: Clock, arm: int) -> None:
    decisions, estimate = state.open_decisions, state.estimate
    if decisions.stream:
        decisions.total[0] += 1
        _add_square(decisions.gram, estimate.arms.rewards[arm], 1.0)
    else:
        decisions.pulls[arm] += 1.0
    _forget(state.due)


@compiled
def _dropped(state: StakesState, clock: Clock, arm: int) -> None:
    """Remove an open decision with an outcome that will never come."""
    _close(state.open_decisions, state.estimate, arm)
    _forget(state.due)


@compiled
def _close(decisions: OpenDecisions, estimate: LeastSquares, arm: int) -> None:
    """Remove a decision from the open ones, if it is there."""
    if decisions.stream:
        if decisions.total[0] > 0:
            decisions.total[0] -= 1
            _add_square(decisions.gram, estimate.arms.rewards[arm], -1.0)
            if decisions.total[0] == 0:  # rounding errors remain
                for i in range(decisions.gram.shape[0]):
                    for j in range(decisions.gram.shape[0]):
                        decisions.gram[i, j] = 0.0
    elif decisions.pulls[arm] > 0.0:
        decisions.pulls[arm] -= 1.0


@compiled
def _add_square(gram: Array, row: Array, sign: float) -> None:
    for i in range(row.shape[0]):
        for j in range(row.shape[0]):
            gram[i, j] += sign * row[i] * row[j]


@compiled
def count_open(decisions: OpenDecisions, estimate: LeastSquares, view: LeastSquares) -> None:
    """Fill a view with the precision of the estimate once all open outcomes are known."""
    seen = estimate.arms.observations
    _count_open(seen.stream, seen.fit, decisions, estimate, view)


@compiled
def _count_open(
    stream: StreamData | None,
    fit: LikelihoodFit | None,
    decisions: OpenDecisions,
    estimate: LeastSquares,
    view: LeastSquares,
) -> None:
    if stream is not None:
        begin_now(view, estimate)
        if decisions.total[0] > 0:
            worth = 1.0  # information of an outcome, at the mean predictor of the present arms
            if fit is not None:
                total, means = 0.0, estimate.arms.means
                for x in range(means.shape[0]):
                    total += means[x]
                worth = information(fit.likelihood, total / means.shape[0])
            add_gram_matrix(view, stream.factor, decisions.gram, worth)
        return
    update_seen_widths(estimate)
    begin_now(view, estimate)
    for x in range(decisions.pulls.shape[0]):
        if decisions.pulls[x] > 0.0:
            add_pulls(view, x, decisions.pulls[x])


# Inspect, and action probabilities


@compiled
def _at_stake(state: StakesState, clock: Clock, offer: Any) -> tuple[float, float]:
    """Return L without the guard, and the least price; zeros if no other arm can be better."""
    now = loss_now(state, offer, 0.0)
    if now.log_loss == -math.inf:
        return 0.0, 0.0
    _, price = least_price(state.now, now.best)
    return math.exp(now.log_loss), price


@compiled
def _probabilities(
    state: StakesState, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    spread(_mixture(state.due, state, clock, offer), probabilities)


@compiled
def _mixture(
    due: ScheduledExploration | None, state: StakesState, clock: Clock, offer: Any
) -> Mixture:
    """Two arms, and the probability of the second."""
    if due is None:
        arm = _choose_deterministic(state, clock, offer).arm
        return Mixture(arm, arm, 0.0, 0.0)
    found = exploration(state, offer)
    if not is_offered(offer, found.arm):
        return Mixture(found.best, found.best, 0.0, 0.0)
    return Mixture(found.best, found.arm, math.exp(found.log_probability), 0.0)


register_policy(
    StakesState,
    choose=_choose,
    update=_update,
    inspect=report,
    decided=_decided,
    dropped=_dropped,
    probabilities=_probabilities,
    at_stake=_at_stake,
    best_of=best_on_offer,
    show=_show,
)
