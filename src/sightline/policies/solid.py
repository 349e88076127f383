"""SOLID and SOLID++: solve the lower bound's program by primal-dual steps, one per exploration.

While the best arm is settled at the level 1/(t log t), it is played.  Otherwise an arm is drawn
from a distribution w that climbs the Lagrangian of the program behind c*, by exponential weights
against a multiplier for the constraint on information.  SOLID restarts w and the multiplier in
every phase; SOLID++ (``reset=False``) keeps them and its step sizes.

| symbol     | here                   | meaning                                                   |
|------------|------------------------|-----------------------------------------------------------|
| w_t        | ``weights``            | distribution from which exploration rounds draw           |
| lambda_t   | ``multiplier[0]``      | price of the constraint on information                    |
| S_t        | ``explorations[0]``    | exploration rounds so far                                 |
| k          | ``phase[0]``           | phase, from 0                                             |
| z_k, p_k   | z_0 e^k, z_k e^(2k)    | normaliser of phase k, and its exploration rounds         |
| kappa      | ``Steps.bonus``        | weight of the widths in the constraint                    |
| cw(x)      | ``optimism[x]``        | sqrt(gamma) norm of x in V^-1, gamma at the level of S_t  |
| y_x        | ``rows``               | (k, d), what an observation of x shows                    |
| V_w = sum w(x) y_x y_x^T = R^T R | ``factor`` | (d, d)                                  |
| nu - theta-hat | ``shift``          | (d,), nu the nearest alternative in V_w                   |
| <nu - theta-hat, y_x>^2 | ``rates[x]`` | (k,)                                                   |

The program of a phase is: maximise f(w) = sum w(x) mu(x) over distributions w, subject to
g(w) = I(w) - 1 / z_k >= 0, where I(w), half the squared distance to the nearest alternative in V_w
over the noise variance, is the information of a round drawn from w.  As z_k grows, w leaves x*
with the rates of the optimal allocation and the optimal multiplier falls to c*.  Both functions
are replaced by optimistic ones: cw(x) is added to mu(x), and kappa cw(x) to the information.

The squared distance in V_w is the minimum over z of <u_z, theta-hat>^2 / |u_z|^2, u_z = x-hat - z,
the norm taken in V_w^-1.  It equals sum w(x) rates[x]: a minimum of functions linear in w, so the
rates at the minimiser are a subgradient (Danskin).

With contexts there is a distribution for each, f and g are averages over the contexts by how often
they came so far, and the policy explores while an alternative of any context is left.  A step of
exponential weights takes the derivative in units of the probability of the context: rare contexts
move as fast as others.

Guarantees: SOLID as published has regret c* log n + o(log n), the best possible, and a bound in the
worst case (Tirinzoni, Pirotta, Restelli, Lazaric, NeurIPS 2020).  This implementation does not
project theta-hat onto a known set and uses the confidence coefficients of the other policies, so
that methods are compared at equal beta.  SOLID++ has no guarantee.

Cost: O(k d^2) per exploration round and O(k d + d^2) per exploitation round.  It learns from every
round, so it never commits; ``SOLIDState.pair.explorations`` counts its exploration rounds.

Its steps are in units of the reward: they suit means of order one, as the published bounds do.
The measurements behind the defaults are in docs/solid.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from sightline.core.action_set import withhold
from sightline.core.alternatives import Comparison, HalfSpaces, half_spaces, rival_of
from sightline.core.clock import Clock, log_round
from sightline.core.confidence import ConfidenceRule, global_beta, local_beta
from sightline.core.confidence_rules import LogDet, needs_norm_bound, valid_regulariser
from sightline.core.context_distribution import (
    ContextDistribution,
    context_distribution,
    log_probability,
    note_action_set,
)
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import noise_variance, observe
from sightline.core.linalg import (
    Array,
    Ints,
    inner,
    norm,
    rank_one_update,
    solve,
    solve_transposed,
    squared_length,
)
from sightline.core.model import Model
from sightline.core.persistence import indices, invariant, persists, within
from sightline.jit import compiled
from sightline.policies.base import (
    Choice,
    Policy,
    Supports,
    begin,
    best_on_offer,
    choose_among,
    compare_to_best,
    put_all_on,
    register_policy,
    report_commitment,
)
from sightline.validation import LARGEST, number, one_of, scale, shown

_BY_PHASE = 0.0  # in place of a step size: 1 / sqrt(p_k)
_PRIMAL_STEP, _DUAL_STEP = 0.5, 0.1  # of SOLID++

# V_w is singular where w leaves out a direction.  Within V_w only, w therefore has this share of
# the uniform distribution, which unlike a multiple of I fits every scale and basis of the arms.
UNIFORM_SHARE = 1e-6
# First diagonal of the factor, relative to the longest arm: rotations need one that is not 0.
_FIRST_DIAGONAL = 1e-12


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

    supports = Supports(contexts=True, noise_per_arm=True, delays=True)

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
        valid_regulariser(self.regulariser, self.confidence)

    def start(self, model: Model) -> SOLIDState:
        """State before any data."""
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
            pair=_saddle_point(estimate.arms.observations.rows, alternatives, steps),
            probabilities=np.zeros(len(actions)),
        )

    def _steps(self, actions: Array, noise_std: float) -> Steps:
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
        """Step size of the weights or of the multiplier; the default of SOLID++ is ``plus``."""
        if step is None:
            return _BY_PHASE if self.reset else plus
        return _BY_PHASE if isinstance(step, str) else float(step)


class Steps(NamedTuple):
    """Numbers of a configuration."""

    reset: bool
    primal: float
    dual: float
    bonus: float
    first_multiplier: float
    multiplier_bound: float  # of lambda, or of lambda / z_k
    bound_grows: bool
    first_normaliser: float


@persists()
class InformationRates(NamedTuple):
    """Workspace of one evaluation."""

    factor: Array
    shift: Array
    rates: Array
    vector: Array  # (d,)
    rows: Array  # (k, d): what an observation of each arm shows
    longest: float  # norm of the longest of them


def rates_workspace(rows: Array) -> InformationRates:
    """Workspace for arms of which an observation shows these rows."""
    k, d = rows.shape
    longest = max(norm(row) for row in rows)
    return InformationRates(np.zeros((d, d)), np.zeros(d), np.zeros(k), np.zeros(d), rows, longest)


@persists("explorations", "in_phase", "phase", "multiplier", "log_weights", "weights")
class SaddlePoint(NamedTuple):
    """What exploration rounds change."""

    explorations: Ints  # (1,)
    in_phase: Ints  # (1,): exploration rounds of this phase
    phase: Ints  # (1,)
    multiplier: Array  # (1,)
    log_weights: Array  # (k,)
    weights: Array  # (k,): those of a context sum to 1
    optimism: Array  # (k,), scratch
    joint: Array  # (k,), scratch: weights times the probability of the context
    work: InformationRates


@invariant(SaddlePoint)
def _check(pair: SaddlePoint, name: str) -> None:
    within(f"{name}.weights", pair.weights, 0.0, 1.0)
    total = float(pair.weights.sum())  # one for every context
    if round(total) < 1 or abs(total - round(total)) > 1e-6:
        raise ValueError(f"{name}.weights must sum to 1 in every context, got {total:g}")
    within(f"{name}.multiplier", pair.multiplier, 0.0, ends=False)
    within(f"{name}.log_weights", pair.log_weights, most=1e-6)
    indices(f"{name}.in_phase", pair.in_phase, int(pair.explorations[0]) + 1)


@persists()
class SOLIDState(NamedTuple):
    """Estimates from all rounds, and the state of the primal-dual method."""

    estimate: LeastSquares
    confidence: Any
    alternatives: HalfSpaces
    frequencies: ContextDistribution
    steps: Steps
    pair: SaddlePoint
    probabilities: Array  # scratch (k,)


def _saddle_point(rows: Array, alternatives: Any, steps: Steps) -> SaddlePoint:
    """State at the start: uniform weights, first multiplier, phase 0."""
    k = rows.shape[0]
    pair = SaddlePoint(
        explorations=np.zeros(1, dtype=np.int64),
        in_phase=np.zeros(1, dtype=np.int64),
        phase=np.zeros(1, dtype=np.int64),
        multiplier=np.zeros(1),
        log_weights=np.zeros(k),
        weights=np.zeros(k),
        optimism=np.zeros(k),
        joint=np.zeros(k),
        work=rates_workspace(rows),
    )
    _restart(pair, alternatives, steps)
    return pair


@compiled
def _restart(pair: SaddlePoint, alternatives: Any, steps: Steps) -> None:
    """Begin with uniform weights in every context and the first multiplier."""
    pair.multiplier[0] = steps.first_multiplier
    for c in range(alternatives.starts.shape[0] - 1):
        start, stop = alternatives.starts[c], alternatives.starts[c + 1]
        for x in range(start, stop):
            pair.weights[x] = 1.0 / (stop - start)
            pair.log_weights[x] = 0.0


@compiled
def _choose(state: SOLIDState, clock: Clock, offer: Any, rng: Generator) -> Choice:
    """Play x-hat if it is settled, else draw from w."""
    note_action_set(state.frequencies, offer, state.estimate, rng)
    if not _explores(state, compare_to_best(state, state.estimate.arms.everything), clock):
        return Choice(best_on_offer(state, clock, offer), 1.0, clock)
    _weights_of(state, offer, state.probabilities)
    return choose_among(state.probabilities, clock, rng)


@compiled
def _explores(state: SOLIDState, comparison: Comparison, clock: Clock) -> bool:
    """Whether m < beta_{s, t log t} / 2."""
    log_det = state.estimate.learned.log_det[0]
    return bool(comparison.least < global_beta(state.confidence, log_det, log_round(clock)))


@compiled
def _weights_of(state: SOLIDState, offer: Any, probabilities: Array) -> None:
    for x in range(probabilities.shape[0]):
        probabilities[x] = state.pair.weights[x]
    withhold(offer, probabilities, 0.0)


@compiled
def _probabilities(
    state: SOLIDState, clock: Clock, offer: Any, rng: Generator, probabilities: Array
) -> None:
    if _explores(state, compare_to_best(state, state.estimate.arms.everything), clock):
        _weights_of(state, offer, probabilities)
    else:
        put_all_on(best_on_offer(state, clock, offer), probabilities)


@compiled
def _update(state: SOLIDState, clock: Clock, arm: int, outcome: Any) -> None:
    """Learn from every round; w and lambda move first, by the estimates behind the draw.

    They move if the policy would still explore in the round of the decision.  Without delays that
    is whether it did; a late outcome is judged by the estimates at its arrival.
    """
    comparison = compare_to_best(state, state.estimate.arms.everything)
    if _explores(state, comparison, clock):
        _primal_dual_step(state, comparison)
    observe(state.estimate, arm, outcome)


@compiled
def _primal_dual_step(state: SOLIDState, comparison: Comparison) -> None:
    """Move w and lambda once, and end the phase if it is over."""
    pair, steps = state.pair, state.steps
    pair.explorations[0] += 1
    pair.in_phase[0] += 1
    z = steps.first_normaliser * math.exp(float(pair.phase[0]))
    length = z * math.exp(2.0 * pair.phase[0])
    by_phase = 1.0 / math.sqrt(length)
    slack = _optimistic_information(state, comparison) - 1.0 / z
    primal = steps.primal if steps.primal != _BY_PHASE else by_phase
    dual = steps.dual if steps.dual != _BY_PHASE else by_phase
    bound = steps.multiplier_bound * (z if steps.bound_grows else 1.0)
    for c in range(state.alternatives.starts.shape[0] - 1):
        start, stop = state.alternatives.starts[c], state.alternatives.starts[c + 1]
        _exponential_weights(pair, state.estimate.arms.means, primal, steps.bonus, start, stop)
    # g at w_t, with the weights before their step, as the primal step has lambda_t
    pair.multiplier[0] = min(max(pair.multiplier[0] - dual * slack, 0.0), bound)
    if pair.in_phase[0] >= length:
        pair.in_phase[0] = 0
        pair.phase[0] += 1
        if steps.reset:
            _restart(pair, state.alternatives, steps)


@compiled
def _optimistic_information(state: SOLIDState, comparison: Comparison) -> float:
    """Optimistic I(w_t), which is g + 1 / z_k; writes the widths, and the rates in units of I."""
    estimate, pair = state.estimate, state.pair
    per_variance = 0.5 / noise_variance(estimate)
    gamma = local_beta(state.confidence, estimate.learned.log_det[0], pair.explorations[0])
    alternatives = state.alternatives
    for c in range(alternatives.starts.shape[0] - 1):
        share = math.exp(log_probability(state.frequencies, c))
        for x in range(alternatives.starts[c], alternatives.starts[c + 1]):
            pair.joint[x] = share * pair.weights[x]
    least = information_rates(estimate, alternatives, comparison, pair.joint, pair.work)
    width = 0.0
    for x in range(pair.weights.shape[0]):
        pair.work.rates[x] *= per_variance
        pair.optimism[x] = math.sqrt(gamma * max(estimate.arms.squared_widths[x], 0.0))
        width += pair.joint[x] * pair.optimism[x]
    return float(per_variance * least + state.steps.bonus * width)


@compiled
def information_rates(
    estimate: LeastSquares,
    alternatives: Any,
    comparison: Comparison,
    weights: Array,
    work: InformationRates,
) -> float:
    """Write the rates of all arms, and return the squared distance to nu in V_w: O(k d^2).

    The least distance must be finite: some arm then differs from x-hat.
    """
    actions, factor, vector = estimate.arms.rewards, work.factor, work.vector
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    k, d = actions.shape
    # the factor of V_w by rotating the rows into it, which loses fewest digits: O(k d^2)
    for i in range(d):
        for j in range(d):
            factor[i, j] = _FIRST_DIAGONAL * work.longest if i == j else 0.0
    for x in range(k):
        root = math.sqrt((1.0 - UNIFORM_SHARE) * weights[x] + UNIFORM_SHARE / k)
        for i in range(d):
            vector[i] = root * work.rows[x, i]
        rank_one_update(factor, vector)
    nearest, least, nearest_norm = -1, math.inf, 1.0
    for z in range(k):
        if separations[z] > 0.0:
            _difference(actions, rival_of(alternatives, comparison, z), z, vector)
            solve_transposed(factor, vector)
            squared_norm = squared_length(vector)
            distance = shortfalls[z] * shortfalls[z] / squared_norm
            if distance < least:
                nearest, least, nearest_norm = z, distance, squared_norm
    _difference(actions, rival_of(alternatives, comparison, nearest), nearest, vector)
    solve_transposed(factor, vector)
    solve(factor, vector)
    scale = shortfalls[nearest] / nearest_norm
    for i in range(d):
        work.shift[i] = -scale * vector[i]
    for x in range(k):
        change = inner(work.rows, x, work.shift)
        work.rates[x] = change * change
    return least


@compiled
def _difference(actions: Array, best: int, z: int, vector: Array) -> None:
    for i in range(vector.shape[0]):
        vector[i] = actions[best, i] - actions[z, i]


@compiled
def _exponential_weights(
    pair: SaddlePoint, means: Array, step: float, kappa: float, start: int, stop: int
) -> None:
    """Multiply w(x) by exp(step * derivative of the Lagrangian), for the arms of one context.

    Kept as logarithms, of which the largest is 0: a weight that underflows to 0 can return.
    """
    multiplier = pair.multiplier[0]
    highest = -math.inf
    for x in range(start, stop):
        gradient = pair.work.rates[x] + kappa * pair.optimism[x]
        pair.log_weights[x] += step * (means[x] + pair.optimism[x] + multiplier * gradient)
        highest = max(highest, pair.log_weights[x])
    total = 0.0
    for x in range(start, stop):
        pair.log_weights[x] -= highest
        pair.weights[x] = math.exp(pair.log_weights[x])
        total += pair.weights[x]
    for x in range(start, stop):
        pair.weights[x] /= total


register_policy(
    SOLIDState,
    choose=_choose,
    update=_update,
    inspect=report_commitment,
    probabilities=_probabilities,
)
