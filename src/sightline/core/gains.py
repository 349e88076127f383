"""Information gains: how much one more observation of an arm would tell, and how to add a gain.

| symbol                         | here                        | shape  |
|--------------------------------|-----------------------------|--------|
| I_s(x), I_s^UCB(x)             | ``gains[x]``                | (k,)   |
| q_s(z)                         | ``weights[z]``              | (k,)   |
| eta_s                          | ``LearningRate``            | number |
| max_l m_l, l <= s              | ``LearningRate.largest_m``  | (1,), in units of sigma^2 |
| nu-hat_s(z) - theta-hat_s      | ``shifts``                  | (d, m) |
| beta_{s, s^2}^{1/2} norm of Y_x in V_s^-1 | ``optimism[x]``  | (k,)   |

A gain is a named tuple with a kernel that :func:`register_information` registers for its class.
Three classes are built in.  :class:`OptimisticGain` (Algorithm 1) and :class:`QuadraticGain`
measure how well an observation tells theta-hat from the alternatives nu-hat(z), weighed by q; the
alternatives may be half-spaces or cells.  :class:`WidthGain` measures how much an observation
reduces the uncertainty: log det V^-1, or the width in one direction (Kirschner, Krause, COLT 2018;
Kirschner, Lattimore, Krause, COLT 2020).

With several observations per arm, |Y_x (nu - theta-hat)| is the norm of all of them, and the
optimistic term takes the sum of their squared norms in V^-1: a bound on what theta may add.
"""

from __future__ import annotations

import enum
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from sightline.core.action_set import ActionSet, withhold
from sightline.core.alternatives import (
    Comparison,
    Shifts,
    locate_alternatives,
    shifts,
    write_shifts,
)
from sightline.core.estimate import (
    LeastSquares,
    LikelihoodFit,
    SeveralRows,
    factorise_seen,
    quadratic_forms,
    seen_by_arm,
    whiten_seen,
)
from sightline.core.least_squares import apart, noise_variance, update_seen_widths
from sightline.core.linalg import Array, inner_product, inner_products, multiply_symmetric
from sightline.core.persistence import invariant, persists, within
from sightline.jit import compiled, generic, guarded, is_ours, wrong_numbers
from sightline.validation import LARGEST, number, one_of

F = TypeVar("F", bound=Callable[..., Any])

# m_1 = 0 would make eta infinite: in units of the noise variance, m is taken as at least this.
LEAST_M = 0.5
# An alternative of smaller weight adds less than the last bit: by Cauchy-Schwarz its term is at
# most q(z) |Y_x|^2 (sqrt(distance) + sqrt(beta))^2, against at least |Y_x|^2 beta in the whole
# gain (for I^UCB, in that of the UCB arm, which the ratio of any other arm has to beat).
NEGLIGIBLE_WEIGHT = 1e-20


@persists()
class Workspace(NamedTuple):
    """Arrays that one exploration round fills, allocated once."""

    weights: Array  # (k,)
    gaps: Array  # (k,)
    gains: Array  # (k,)
    optimism: Array  # (k,)
    direction: Array  # (d,)
    form: Array  # (d, d)
    shifts: Shifts


def workspace(k: int, d: int) -> Workspace:
    """Arrays for k arms in d dimensions."""
    weights, gaps, gains, optimism = (np.zeros(k) for _ in range(4))
    return Workspace(weights, gaps, gains, optimism, np.zeros(d), np.zeros((d, d)), shifts(k, d))


class RateKind(enum.IntEnum):
    """Formulas of the learning rate eta, in units of the noise variance."""

    EVIDENCE = 0  # log(k) / sqrt(max m)
    BETA = 1  # 1 / sqrt(beta)
    FIXED = 2  # the same number in every round


class LearningRate(NamedTuple):
    """The learning rate eta of the weights q, and the largest m so far, on which it may depend."""

    kind: int  # a RateKind
    value: float  # log(k), or eta itself where it is fixed
    exponent: float  # what eta is multiplied by: 1/2 in the text of the paper, 1 in Algorithm 1
    largest_m: Array  # (1,): max m_l so far, in units of the noise variance


@invariant(LearningRate)
def _check(part: LearningRate, name: str) -> None:
    within(f"{name}.largest_m", part.largest_m, 0.0)


def learning_rate_rule(learning_rate: str | float, k: int) -> LearningRate:
    """Learning rate before any data, from its name or a fixed number, with k arms."""
    least = np.array([LEAST_M])
    if not isinstance(learning_rate, str):
        fixed = number("learning_rate", learning_rate, at_least=0, at_most=LARGEST)
        return LearningRate(int(RateKind.FIXED), fixed, 0.5, least)
    one_of("learning_rate", learning_rate, ["paper", "algorithm", "inverse-sqrt-beta"])
    if learning_rate == "inverse-sqrt-beta":
        return LearningRate(int(RateKind.BETA), 1.0, 0.5, least)
    exponent = 1.0 if learning_rate == "algorithm" else 0.5
    return LearningRate(int(RateKind.EVIDENCE), math.log(k), exponent, least)


class Round(NamedTuple):
    """Input of gap estimates and information gains.

    Attributes
    ----------
    estimate : LeastSquares
        Estimates from the data; ``estimate.arms`` is the table of arms.
    alternatives : HalfSpaces or Projections
        Distances to the parameters under which another arm is best.
    comparison : Comparison
        x-hat as ``best``, and the least of the distances.
    beta : float
        Confidence coefficient at local time s.
    ucb_arm : int
        Arm with the largest upper confidence bound.
    learning_rate : LearningRate
        Learning rate of the weights of alternatives.
    work : Workspace
        Arrays that a gain may overwrite, except ``gaps``.
    """

    estimate: LeastSquares
    alternatives: Any
    comparison: Comparison
    beta: float
    ucb_arm: int
    learning_rate: LearningRate
    work: Workspace


class Gain(NamedTuple):
    """A registered information gain."""

    rule: Any
    cells: bool
    any_horizon: bool


#: Information gains of IDS, by name.
INFORMATION: dict[str, Gain] = {}


@generic
def information_gains(rule: Any, round_: Round, gains: Array) -> None:
    """Write the information gains of all arms."""
    raise TypeError(f"no information gain is registered for {type(rule).__name__}")


def register_information(
    name: str, rule: Any, *, cells: bool = False, any_horizon: bool = True
) -> Callable[[F], F]:
    """Add an information gain: ``IDS(information=name)`` uses the kernel that this decorates.

    Parameters
    ----------
    name : str
        Its name.
    rule : named tuple
        Its numbers, an instance of a class of its own (with one field at least).
    cells : bool
        Whether ``round.alternatives`` are those in the cells of the arms, by quadratic programs,
        instead of half-spaces.
    any_horizon : bool
        Whether it keeps asking for information about other arms once gaps are small, so that
        runs beyond 2^53 rounds end.

    Returns
    -------
    callable
        Decorator of ``kernel(rule, round, gains)``, compiled or plain, which writes one gain >= 0
        per arm; ``round`` is a :class:`~sightline.core.gains.Round`.
    """

    def register(kernel: F) -> F:
        information_gains.register(type(rule))(kernel)
        guard_weights(f"information gain {name!r}", rule, kernel)
        INFORMATION[name] = Gain(rule, cells, any_horizon)
        return kernel

    return register


@generic
@compiled
def check_weights(rule: Any, weights: Array) -> None:
    """Refuse invalid gaps or gains of arms on offer; those of the library are not checked."""


def guard_weights(what: str, rule: Any, kernel: Callable[..., Any]) -> None:
    """Check what a kernel writes, unless it is part of the library."""
    if is_ours(kernel):
        return
    nan, negative, infinite = wrong_numbers(f"{what} of an arm", 0.0, sys.float_info.max)

    def guard(kernel: Callable[..., Any], cls: type) -> Any:
        def check(rule: Any, weights: Array) -> None:
            for x in range(weights.shape[0]):
                if weights[x] < 0.0:
                    raise ValueError(negative)
                if weights[x] == math.inf:
                    raise ValueError(infinite)
                if math.isnan(weights[x]):
                    raise ValueError(nan)

        return check

    check_weights.register(type(rule))(guarded(kernel, type(rule), guard))


@compiled
def gains_on_offer(rule: Any, round_: Round, offer: ActionSet) -> None:
    """Write the gains of arms on offer into the workspace; zero for others.

    Where this gain is zero for all arms, as before any data, the log-det gain replaces it.
    """
    gains = round_.work.gains
    update_seen_widths(round_.estimate)
    information_gains(rule, round_, gains)
    withhold(offer, gains, 0.0)
    check_weights(rule, gains)
    largest = 0.0
    for x in range(gains.shape[0]):
        largest = max(largest, gains[x])
    if largest == 0.0:
        log_det_gains(round_.estimate, gains)
        withhold(offer, gains, 0.0)


# --- weights of the alternatives ----------------------------------------------------------------


class Weights(enum.IntEnum):
    """Weights q of the alternatives in an information gain."""

    SOFTMIN = 0  # exp(-eta/2 distance), normalised
    POSTERIOR = 1  # exp(-distance / (2 sigma^2)), normalised: the Laplace approximation
    ENTROPY = 2  # the same times distance / (2 sigma^2): the derivative of the entropy


@compiled
def rate_of(rule: LearningRate, beta: float, variance: float) -> float:
    """Find eta times its factor in the exponent, over sigma^2."""
    if rule.kind == RateKind.EVIDENCE:
        eta = rule.value / math.sqrt(rule.largest_m[0])
    elif rule.kind == RateKind.BETA:
        eta = math.sqrt(variance / beta)
    else:
        eta = rule.value
    return rule.exponent * eta / variance


@compiled
def weigh_alternatives(kind: int, round_: Round) -> None:
    """Write the weights of all alternatives into the workspace."""
    alternatives, weights = round_.alternatives, round_.work.weights
    variance = noise_variance(round_.estimate)
    least = locate_alternatives(alternatives, round_.estimate, round_.comparison)
    if kind == Weights.SOFTMIN:
        largest = round_.learning_rate.largest_m
        largest[0] = max(largest[0], 0.5 * least / variance)  # max_l m_l
        rate = rate_of(round_.learning_rate, round_.beta, variance)
    else:
        rate = 0.5 / variance
    mixing_weights(alternatives.distances, least, rate, weights)
    if kind == Weights.ENTROPY:
        # q(z) log(q(x-hat) / q(z)) = q(z) distance(z) / (2 sigma^2)
        for z in range(weights.shape[0]):
            if weights[z] > 0.0:
                weights[z] *= rate * alternatives.distances[z]


@compiled
def mixing_weights(distances: Array, least: float, rate: float, weights: Array) -> None:
    """Write q(z) proportional to exp(-rate distance(z)) into ``weights``; x-hat gets none.

    Shifting by the least distance keeps the largest weight at 1 before normalisation, so the
    weights cannot all underflow.
    """
    total = 0.0
    for z in range(weights.shape[0]):
        finite = distances[z] < math.inf  # 0 * inf would be no weight
        weights[z] = math.exp(-rate * (distances[z] - least)) if finite else 0.0
        total += weights[z]
    for z in range(weights.shape[0]):
        weights[z] /= total


# --- gains that weigh alternatives --------------------------------------------------------------


@compiled
def _next_weighty(work: Workspace, start: int) -> tuple[int, int]:
    """List a block of alternatives of more than negligible weight; return how many, and the end."""
    arms, count, k = work.shifts.arms, 0, work.weights.shape[0]
    for z in range(np.uint64(start), np.uint64(k)):  # unsigned: no index counts from the end
        if count == arms.shape[0]:
            return count, z
        if work.weights[z] >= NEGLIGIBLE_WEIGHT:
            arms[count] = z
            count += 1
    return count, k


# OptimisticGain and QuadraticGain are two classes so that IDS does not compile both.  As one class,
# together with all gap estimates, a first run of IDS compiled 155 functions in 34 s of processor
# time instead of 147 in 29 s (busy machine).
class OptimisticGain(NamedTuple):
    """I(x) = 1/2 sum_z q(z) (|Y_x shift(z)| + sqrt(beta) |Y_x|)^2: optimism for all arms."""

    weights: int  # a Weights


@register_information("halfspace", OptimisticGain(int(Weights.SOFTMIN)))
@register_information("cell", OptimisticGain(int(Weights.SOFTMIN)), cells=True)
@compiled
def _optimistic_gain(rule: OptimisticGain, round_: Round, gains: Array) -> None:
    """O(k d) per alternative."""
    weigh_alternatives(rule.weights, round_)
    estimate, work = round_.estimate, round_.work
    seen, products, optimism = estimate.arms.observations, estimate.scratch.products, work.optimism
    arms, columns = work.shifts.arms, work.shifts.columns
    k = gains.shape[0]
    for x in range(k):
        gains[x] = 0.0
        optimism[x] = math.sqrt(round_.beta * max(estimate.arms.seen_widths[x], 0.0))
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(round_.alternatives, estimate, round_.comparison, count, work.shifts)
        for n in range(count):
            apart(seen.several, seen.fit, estimate.arms, columns[:, n], products)
            half = 0.5 * work.weights[arms[n]]
            for x in range(k):
                term = abs(products[x]) + optimism[x]
                gains[x] += half * term * term


class QuadraticGain(NamedTuple):
    """I(x) = 1/2 sum_z q(z) (|Y_x shift(z)| + optimism [x = UCB arm])^2.

    Without optimism this is the asymptotic gain: the proofs for IDS need some optimism, those for
    the primal-dual method do not.  With the weights of a posterior it is the Laplace approximation
    of the variance-based gain, halved; with those of the entropy, of the mutual information.
    """

    optimistic: bool  # for the UCB arm
    weights: int  # a Weights


_UCB_ARM = QuadraticGain(True, int(Weights.SOFTMIN))
_VARIANCE = QuadraticGain(False, int(Weights.POSTERIOR))
_ENTROPY = QuadraticGain(False, int(Weights.ENTROPY))


@register_information("halfspace-ucb", _UCB_ARM)
@register_information("cell-ucb", _UCB_ARM, cells=True)
@register_information("plain", QuadraticGain(False, int(Weights.SOFTMIN)))
@register_information("laplace-variance", _VARIANCE, cells=True)
@register_information("laplace", _ENTROPY, cells=True)
@compiled
def _quadratic_gain(rule: QuadraticGain, round_: Round, gains: Array) -> None:
    """O(k d^2).

    With W = sum_z q(z) shift(z) shift(z)^T the gain of every other arm is tr(Y_x W Y_x^T) / 2.
    """
    weigh_alternatives(rule.weights, round_)
    estimate, work, optimist = round_.estimate, round_.work, round_.ucb_arm
    optimism = 0.0
    if rule.optimistic:
        optimism = math.sqrt(round_.beta * max(estimate.arms.seen_widths[optimist], 0.0))
    seen, form, products = estimate.arms.observations, work.form, estimate.scratch.products
    arms, columns = work.shifts.arms, work.shifts.columns
    k, d = estimate.arms.rewards.shape
    for i in range(d):
        for j in range(i, d):
            form[i, j] = 0.0
    optimistic_gain = 0.0
    z = 0
    while z < k:
        count, z = _next_weighty(work, z)
        write_shifts(round_.alternatives, estimate, round_.comparison, count, work.shifts)
        for n in range(count):
            shown = seen_by_arm(seen.several, seen.fit, estimate.arms, optimist, columns[:, n])
            term = abs(shown) + optimism
            optimistic_gain += 0.5 * work.weights[arms[n]] * term * term
        for i in range(d):
            for n in range(count):
                products[n] = work.weights[arms[n]] * columns[i, n]
            for j in range(i, d):
                form[i, j] += inner_product(products, columns[j], count)
    for i in range(d):
        for j in range(i):
            form[i, j] = form[j, i]
    quadratic_forms(seen.several, seen.fit, estimate.arms, form, products, gains)
    gains[optimist] = optimistic_gain


# --- gains of widths ----------------------------------------------------------------------------


@compiled
def log_det_gains(estimate: LeastSquares, gains: Array) -> None:
    """Write log det(I + Y_x V^-1 Y_x^T), by which log det V would grow: O(k), or O(k p d^2)."""
    _log_det_gains(estimate.arms.observations.several, estimate, gains)


@compiled
def _log_det_gains(several: SeveralRows | None, estimate: LeastSquares, gains: Array) -> None:
    if several is None:
        widths = estimate.arms.seen_widths
        for x in range(gains.shape[0]):
            gains[x] = math.log1p(max(widths[x], 0.0))
        return
    factorise_seen(several, estimate.learned.gram_inverse)
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        for a in range(estimate.arms.observations.per_arm):
            gains[x] += 2.0 * math.log(several.factors[a, a, x])


class WidthKind(enum.IntEnum):
    """Measures of uncertainty that an observation reduces."""

    LOG_DET = 0  # log det V^-1
    UCB_ARM = 1  # the width of the UCB arm
    DIFFERENCE = 2  # the width of a difference to x-hat


class WidthGain(NamedTuple):
    """Growth of log det V, or decrease of the log of a squared width."""

    kind: int  # a WidthKind


@compiled
def gains_along(estimate: LeastSquares, direction: Array, gains: Array) -> None:
    """Write the decrease of the log of the squared width in a direction: O(k d).

    For u the direction, b = Y_x V^-1 u and G = Y_x V^-1 Y_x^T it is -log(1 - b^T (I + G)^-1 b /
    |u|^2), the norm taken in V^-1; for p > 1 rows per arm that costs O(k p d^2).
    """
    inverse, image = estimate.learned.gram_inverse, estimate.scratch.direction
    norm = multiply_symmetric(inverse, direction, image, 0.0)
    seen = estimate.arms.observations
    if norm > 0.0:
        _write_shares(seen.several, seen.fit, estimate, norm, gains)
    for x in range(gains.shape[0]):
        gains[x] = -math.log1p(-min(gains[x], 1.0 - 1e-16)) if norm > 0.0 else 0.0


@compiled
def _write_shares(
    several: SeveralRows | None,
    fit: LikelihoodFit | None,
    estimate: LeastSquares,
    norm: float,
    shares: Array,
) -> None:
    """Write b^T (I + G)^-1 b / |u|^2 for all arms; ``scratch.direction`` holds V^-1 u."""
    arms, image, k = estimate.arms, estimate.scratch.direction, shares.shape[0]
    if several is None:
        products = estimate.scratch.products
        inner_products(arms.observations.columns, image, products)
        if fit is not None:
            for x in range(k):
                products[x] *= fit.roots[x]
        for x in range(k):
            width = max(arms.seen_widths[x], 0.0)
            shares[x] = products[x] * products[x] / (norm * (1.0 + width))
        return
    factorise_seen(several, estimate.learned.gram_inverse)
    whiten_seen(several, image)
    for x in range(k):
        shares[x] = 0.0
    for a in range(arms.observations.per_arm):
        for x in range(k):
            shares[x] += several.images[a * k + x] * several.images[a * k + x] / norm


@compiled
def write_widest(
    estimate: LeastSquares, alternatives: Any, comparison: Comparison, beta: float, direction: Array
) -> None:
    """Write the widest difference between x-hat and an arm that may be better, or nearly is.

    If confidence at the level of beta has refuted every other arm, this is the difference to the
    arm nearest to refuting x-hat: without a direction there would be nothing to learn, and
    exploration at the level of the exploitation test would never end.
    """
    separations, shortfalls = alternatives.separations, alternatives.shortfalls
    best, actions = comparison.best, estimate.arms.rewards
    widest, nearest = best, best
    width, ratio = 0.0, math.inf
    for z in range(separations.shape[0]):
        if separations[z] <= 0.0:
            continue
        distance = shortfalls[z] * shortfalls[z] / separations[z]
        if distance < ratio:
            nearest, ratio = z, distance
        if distance <= beta and separations[z] > width:
            widest, width = z, separations[z]
    z = widest if widest != best else nearest
    for i in range(direction.shape[0]):
        direction[i] = actions[best, i] - actions[z, i]


# With information on the UCB arm alone, nearly every round ends up exploring x-hat.
@register_information("log-det", WidthGain(int(WidthKind.LOG_DET)))
@register_information("ucb-directed", WidthGain(int(WidthKind.UCB_ARM)), any_horizon=False)
@register_information("directed", WidthGain(int(WidthKind.DIFFERENCE)))
@compiled
def _gain_of_widths(rule: WidthGain, round_: Round, gains: Array) -> None:
    if rule.kind == WidthKind.LOG_DET:
        log_det_gains(round_.estimate, gains)
        return
    estimate, direction = round_.estimate, round_.work.direction
    if rule.kind == WidthKind.UCB_ARM:
        for i in range(direction.shape[0]):
            direction[i] = estimate.arms.rewards[round_.ucb_arm, i]
    else:
        write_widest(estimate, round_.alternatives, round_.comparison, round_.beta, direction)
    gains_along(estimate, direction, gains)
