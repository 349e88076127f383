"""The primal-dual steps of SOLID: a distribution over the arms, a multiplier, and their phases.

| symbol     | here                   | meaning |
|------------|------------------------|-----------------------------------------------------------|
| w_t        | ``weights``            | distribution from which exploration rounds draw |
| lambda_t   | ``multiplier[0]``      | price of the constraint on information |
| S_t        | ``explorations[0]``    | exploration rounds so far |
| k          | ``phase[0]``           | phase, from 0 |
| z_k, p_k   | z_0 e^k, z_k e^(2k)    | normaliser of phase k, and its exploration rounds |
| kappa      | ``Steps.bonus``        | weight of the widths in the constraint |
| cw(x)      | ``optimism[x]``        | sqrt(gamma) norm of x in V^-1, gamma at the level of S_t |

The program of a phase is: maximise f(w) = sum w(x) mu(x) over distributions w, subject to
g(w) = I(w) - 1 / z_k >= 0, where I(w), half the squared distance to the nearest alternative in V_w
over the noise variance, is the information of a round drawn from w.  As z_k grows, w leaves x*
with the rates of the optimal allocation and the optimal multiplier falls to c*.  Both functions
are replaced by optimistic ones: cw(x) is added to mu(x), and kappa cw(x) to the information.

With contexts there is a distribution for each, f and g are averaged over them, and a step of
exponential weights takes the derivative in units of the probability of the context: rare contexts
move as fast as others.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline.core.allocation.proportions import Sampling, information_rates, sampling
from sightline.core.alternatives.comparison import Comparison
from sightline.core.confidence.rules import local_beta
from sightline.core.consistency import indices, invariant, within
from sightline.core.estimation.context_distribution import log_probability
from sightline.core.estimation.noise import noise_variance
from sightline.core.persistence import persists
from sightline.jit import compiled
from sightline.policies.reports import StateWithAlternatives

__all__ = ["BY_PHASE", "SaddlePoint", "Steps", "primal_dual", "primal_dual_step"]

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

BY_PHASE = 0.0  # in place of a step: 1 / sqrt(p_k)


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


@persists("explorations", "in_phase", "phase", "multiplier", "log_weights", "weights")
class SaddlePoint(NamedTuple):
    """What exploration rounds change; see the table above."""

    explorations: Ints  # (1,)
    in_phase: Ints  # (1,): exploration rounds of this phase
    phase: Ints  # (1,)
    multiplier: Array  # (1,)
    log_weights: Array  # (k,)
    weights: Array  # (k,): those of a context sum to 1
    optimism: Array  # (k,), scratch
    joint: Array  # (k,), scratch: weights times the probability of the context
    work: Sampling


@invariant(SaddlePoint)
def _check(pair: SaddlePoint, name: str) -> None:
    within(f"{name}.weights", pair.weights, 0.0, 1.0)
    total = float(pair.weights.sum())  # one for every context
    if round(total) < 1 or abs(total - round(total)) > 1e-6:
        raise ValueError(f"{name}.weights must sum to 1 in every context, got {total:g}")
    within(f"{name}.multiplier", pair.multiplier, 0.0, ends=False)
    within(f"{name}.log_weights", pair.log_weights, most=1e-6)
    indices(f"{name}.in_phase", pair.in_phase, int(pair.explorations[0]) + 1)


class TrackingState(StateWithAlternatives, Protocol):
    """A state with a pair of weights and multiplier to move."""

    @property
    def frequencies(self) -> Any:
        """How often contexts come."""

    @property
    def steps(self) -> Steps:
        """Numbers of the configuration."""

    @property
    def pair(self) -> SaddlePoint:
        """What is moved."""


def primal_dual(rows: Array, alternatives: Any, steps: Steps) -> SaddlePoint:
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
        work=sampling(rows),
    )
    _restart(pair, alternatives, steps)
    return pair


@compiled
def _restart(pair: SaddlePoint, alternatives: Any, steps: Steps) -> None:
    pair.multiplier[0] = steps.first_multiplier
    for c in range(alternatives.starts.shape[0] - 1):
        start, stop = alternatives.starts[c], alternatives.starts[c + 1]
        for x in range(start, stop):
            pair.weights[x] = 1.0 / (stop - start)
            pair.log_weights[x] = 0.0


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


@compiled
def _slack(state: TrackingState, comparison: Comparison) -> float:
    """Optimistic g(w_t) + 1 / z_k; writes the widths, and the rates in units of I."""
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
def primal_dual_step(state: TrackingState, comparison: Comparison) -> None:
    """Move w and lambda once, and end the phase if it is over."""
    pair, steps = state.pair, state.steps
    pair.explorations[0] += 1
    pair.in_phase[0] += 1
    z = steps.first_normaliser * math.exp(float(pair.phase[0]))
    length = z * math.exp(2.0 * pair.phase[0])
    by_phase = 1.0 / math.sqrt(length)
    slack = _slack(state, comparison) - 1.0 / z
    primal = steps.primal if steps.primal != BY_PHASE else by_phase
    dual = steps.dual if steps.dual != BY_PHASE else by_phase
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
