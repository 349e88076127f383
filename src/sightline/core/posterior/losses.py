"""What stopping now is expected to lose, and how fast playing an arm makes it less.

| symbol                                     | here                 | shape  |
|--------------------------------------------|----------------------|--------|
| u_z = x-hat - z, g_z = <u_z, theta-hat>    | ``alternatives.shortfalls`` | (k,) |
| s_z, the squared norm of u_z in V^-1       | ``alternatives.separations`` | (k,) |
| a_z = g_z / (sigma sqrt(s_z)), its score   |                      |        |
| log L_z                                    | ``log_losses``       | (k,)   |
| e_z = d log L_z / d log sqrt(s_z)          | ``elasticities``     | (k,)   |
| q_z                                        | ``weights``          | (k,)   |
| I(x)                                       | ``gains``            | (k,)   |
| log L, m                                   | ``Prospect``         | numbers |
| what z pays less than x-hat: g_z           | ``falls``            | (k,)   |

Under the posterior, z is better than x-hat by L_z = E (-<u_z, theta>)^+ = sigma sqrt(s_z) psi(a_z)
on average, psi(a) = E (Z - a)^+.  The loss of playing x-hat for ever is E max_z (-<u_z, theta>)^+,
which lies between the largest L_z and their sum; alternatives overlap in the event that several
are better:

    L = sum_z L_z / (1 + (sum_z P_z - max_z P_z) / 2),        P_z = P(z is better than x-hat).

One more observation of x takes <u_z, V^-1 y>^2 / (1 + |y|^2) off s_z, hence, in nats of log L,

    I_z(x) = e_z |Y_x V^-1 u_z|^2 / (2 s_z (1 + |Y_x|^2)),     I(x) = sum_z q_z I_z(x),

with q_z proportional to L_z^eta, eta = 1 / sqrt(max(1, m)), m = min_z score^2 / 2.  For large a_z
e_z is a_z^2, and I_z(x) the paper's gain: half of (<nu-hat(z) - theta-hat, x> / sigma)^2.

With contexts, which come with probabilities p_c, every z is compared with the best arm of its own
context, L_z counts p_c times, and L is the sum over contexts.

Of clicks and counts a_z is the signed root of the likelihood ratio, I_z(x) is e_z / a_z^2 times the
divergence of what x shows under nu-hat(z), and L_z and g_z are in rewards: in units of the
predictor <x, theta>, times the slope of the mean between x-hat and z.  Where there are contexts,
the curvature of the likelihood is all that is used.

With a guard c in [0, 1] alternatives count for more: L_z (1 + b_z score_z^2 / 2) in place of L_z,

    b_z = max(min(1, 2 c) j_z, 2 c - 1),    j_z = min(1, score_z^2 s_z / (2 + 2 s_z)),

j_z being the nats that one direct observation of <u_z, theta> would tell, at most 1.  With b_z = 1
an alternative is tried about as often as by Thompson sampling.  Up to c = 1/2 that concerns what a
few outcomes have settled; as data come in, j_z vanishes and the guard with it.  Beyond, the guard
lasts; with c = 1 it is there for all alternatives and for ever.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import withhold
from sightline.core.alternatives.comparison import Comparison, compare, restrict_alternatives
from sightline.core.alternatives.half_spaces import (
    HalfSpaces,
    half_spaces,
    rival_of,
)
from sightline.core.alternatives.law_half_spaces import LawHalfSpaces
from sightline.core.estimation.context_distribution import (
    ContextDistribution,
    context_distribution,
    log_probability,
)
from sightline.core.estimation.estimate import LeastSquares, apart, quadratic_forms
from sightline.core.linalg.vectors import inner_product
from sightline.core.model import Contexts
from sightline.core.persistence import persists
from sightline.core.posterior.normal import excess, log_density, mills_ratio
from sightline.core.posterior.scores import noise_level, score
from sightline.jit import compiled, generic

__all__ = ["Outlook", "Prospect", "expected_loss", "loss_gains", "outlook"]

Array = NDArray[np.float64]

_NEGLIGIBLE_WEIGHT = 1e-20  # below the last bit of any gain
_TIED = 1e-6  # squared distance


@persists()
class Outlook(NamedTuple):
    """Arrays of one view of the estimates; see the table above."""

    alternatives: Any  # HalfSpaces or LawHalfSpaces
    falls: Array
    frequencies: ContextDistribution
    log_losses: Array
    elasticities: Array
    weights: Array
    gains: Array
    differences: Array  # (d, k): u_z as columns
    form: Array  # (d, d)
    product: Array  # scratch (d, d)
    gaps: Array  # scratch (k,)


def outlook(
    k: int,
    d: int,
    contexts: Contexts | None = None,
    frequencies: ContextDistribution | None = None,
    by_law: LawHalfSpaces | None = None,
) -> Outlook:
    """Arrays for k arms in d dimensions; alternatives by the law of the rewards, if given."""
    plain = half_spaces(k, contexts)
    return Outlook(
        alternatives=plain if by_law is None else by_law,
        falls=plain.shortfalls,
        frequencies=frequencies or context_distribution(contexts, False),
        log_losses=np.zeros(k),
        elasticities=np.zeros(k),
        weights=np.zeros(k),
        gains=np.zeros(k),
        differences=np.zeros((d, k)),
        form=np.zeros((d, d)),
        product=np.zeros((d, d)),
        gaps=np.zeros(k),
    )


class Prospect(NamedTuple):
    """That losses have been computed, and what they add up to.

    Attributes
    ----------
    best : int
        x-hat.
    log_loss : float
        log L per round; -inf if no other arm on offer can be better.
    evidence : float
        m: half the least squared score.
    """

    best: int
    log_loss: float
    evidence: float


@compiled
def _caution(guard: float, a: float, separation: float) -> float:
    """Find b: j is what one more observation would tell, at most one nat."""
    youth = min(1.0, 0.5 * a * a * separation / (1.0 + separation))
    return max(min(1.0, 2.0 * guard) * youth, 2.0 * guard - 1.0)


@compiled
def expected_loss(
    out: Outlook, view: LeastSquares, guard: float, best: int, offer: Any
) -> Prospect:
    """Write the losses of all alternatives on offer; return what they add up to: O(k d)."""
    alternatives = out.alternatives
    restrict_alternatives(offer, alternatives, compare(alternatives, view, best))
    _measure_falls(alternatives, out, view, best)
    log_sigma = math.log(noise_level(view))
    largest, total, evidence = -math.inf, 0.0, math.inf
    starts = alternatives.starts
    for c in range(starts.shape[0] - 1):
        log_share = log_probability(out.frequencies, c)
        start, stop = starts[c], starts[c + 1]
        log_loss, m = _losses_of_block(out, view, guard, log_sigma, log_share, start, stop)
        evidence = min(evidence, m)
        if log_loss > largest:
            total = total * math.exp(largest - log_loss) + 1.0
            largest = log_loss
        elif log_loss > -math.inf:
            total += math.exp(log_loss - largest)
    if largest == -math.inf:
        return Prospect(best, -math.inf, math.inf)
    return Prospect(best, largest + math.log(total), evidence)


@generic
def _measure_falls(alternatives: Any, out: Outlook, view: LeastSquares, best: int) -> None:
    """Write what every arm pays less than x-hat."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@_measure_falls.register(HalfSpaces)
@compiled
def _falls_are_shortfalls(alternatives: Any, out: Outlook, view: LeastSquares, best: int) -> None:
    pass  # the same memory


@_measure_falls.register(LawHalfSpaces)
@compiled
def _fall_by_law(alternatives: LawHalfSpaces, out: Outlook, view: LeastSquares, best: int) -> None:
    for z in range(out.falls.shape[0]):
        out.falls[z] = max(alternatives.rewards[best] - alternatives.rewards[z], 0.0)


@generic
def _standing_of(alternatives: Any, out: Outlook, z: int, log_width: float) -> tuple[float, float]:
    """Find a_z before its score, and the log of what the predictor is worth in rewards."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@_standing_of.register(HalfSpaces)
@compiled
def _normal_standing(
    alternatives: Any, out: Outlook, z: int, log_width: float
) -> tuple[float, float]:
    return alternatives.shortfalls[z] / math.exp(log_width), 0.0


@_standing_of.register(LawHalfSpaces)
@compiled
def _likelihood_standing(
    alternatives: LawHalfSpaces, out: Outlook, z: int, log_width: float
) -> tuple[float, float]:
    """Take the signed root of the likelihood ratio, which is as good as normal."""
    shortfall = alternatives.shortfalls[z]
    worth = out.falls[z] / shortfall if shortfall > 0.0 else 0.0
    if worth <= 0.0:  # a tie: at no distance, and as good as worth nothing
        worth = 1e-12
    return math.sqrt(alternatives.distances[z]), math.log(worth)


@compiled
def _losses_of_block(
    out: Outlook,
    view: LeastSquares,
    guard: float,
    log_sigma: float,
    log_share: float,
    start: int,
    stop: int,
) -> tuple[float, float]:
    """Write the losses of one context; return the logarithm of their sum, and m."""
    alternatives = out.alternatives
    largest, evidence = -math.inf, math.inf
    better, most_likely = 0.0, 0.0
    for z in range(start, stop):
        out.log_losses[z] = -math.inf
        if alternatives.distances[z] == math.inf:  # x-hat, its twins, what is not on offer
            continue
        log_width = 0.5 * math.log(alternatives.separations[z]) + log_sigma
        standing, log_slope = _standing_of(alternatives, out, z, log_width)
        a, slope = score(view, standing)
        log_width += log_slope
        h, mills, log_phi = excess(a), mills_ratio(a), log_density(a)
        out.log_losses[z] = log_width + log_phi + math.log(h)
        caution = _caution(guard, a, alternatives.separations[z])
        out.log_losses[z] += math.log1p(0.5 * a * a * caution)
        out.log_losses[z] += log_share
        out.elasticities[z] = 1.0 + slope * mills / h
        probability = mills * math.exp(log_phi)
        better += probability
        most_likely = max(most_likely, probability)
        largest = max(largest, out.log_losses[z])
        evidence = min(evidence, 0.5 * a * a)
    if largest == -math.inf:
        return -math.inf, math.inf
    total = 0.0
    for z in range(start, stop):
        total += math.exp(out.log_losses[z] - largest)
    overlap = 1.0 + 0.5 * (better - most_likely)
    return largest + math.log(total / overlap), evidence


@compiled
def _weigh(out: Outlook, prospect: Prospect) -> None:
    """Write q."""
    eta = 1.0 / math.sqrt(max(prospect.evidence, 1.0))
    total = 0.0
    for z in range(out.weights.shape[0]):
        out.weights[z] = math.exp(eta * (out.log_losses[z] - prospect.log_loss))
        total += out.weights[z]
    for z in range(out.weights.shape[0]):
        out.weights[z] /= total


@compiled
def _sandwich(inverse: Array, form: Array, product: Array) -> None:
    """Replace a symmetric A by V^-1 A V^-1."""
    d = form.shape[0]
    for i in range(d):
        for j in range(d):
            product[i, j] = inner_product(inverse[i], form[j], d)
    for i in range(d):
        for j in range(d):
            form[i, j] = inner_product(product[i], inverse[j], d)


@compiled
def loss_gains(out: Outlook, view: LeastSquares, prospect: Prospect, offer: Any) -> None:
    """Write I(x) for all arms; zero for those not on offer: O(k d^2).

    With W = V^-1 (sum_z q_z e_z / s_z u_z u_z^T) V^-1, I(x) is half of tr(Y_x W Y_x^T) over
    1 + |Y_x|^2.
    """
    _weigh(out, prospect)
    _gains_against(out.alternatives, out, view, prospect)
    for x in range(out.gains.shape[0]):
        out.gains[x] /= 1.0 + max(view.arms.seen_widths[x], 0.0)
    withhold(offer, out.gains, 0.0)


@generic
def _gains_against(alternatives: Any, out: Outlook, view: LeastSquares, prospect: Prospect) -> None:
    """Write the sum of q_z I_z(x), but for the denominator that all z share."""
    raise TypeError(f"{type(alternatives).__name__} are no alternatives")


@_gains_against.register(HalfSpaces)
@compiled
def _normal_gains(alternatives: Any, out: Outlook, view: LeastSquares, prospect: Prospect) -> None:
    arms, differences, form = view.arms, out.differences, out.form
    products = view.scratch.products
    d, k = differences.shape
    comparison = Comparison(prospect.best, 2.0 * prospect.evidence)
    for i in range(d):
        for z in range(k):
            rival = rival_of(out.alternatives, comparison, z)
            differences[i, z] = arms.columns[i, rival] - arms.columns[i, z]
    for z in range(k):
        out.gains[z] = 0.0
        if out.weights[z] > _NEGLIGIBLE_WEIGHT:
            share = out.weights[z] * out.elasticities[z]
            out.gains[z] = share / out.alternatives.separations[z]
    for i in range(d):
        for z in range(k):
            products[z] = out.gains[z] * differences[i, z]
        for j in range(i, d):
            form[i, j] = inner_product(products, differences[j], k)
            form[j, i] = form[i, j]
    _sandwich(view.learned.gram_inverse, form, out.product)
    seen = arms.observations
    quadratic_forms(seen.several, seen.likelihood, arms, form, products, out.gains)


@_gains_against.register(LawHalfSpaces)
@compiled
def _law_gains(
    alternatives: LawHalfSpaces, out: Outlook, view: LeastSquares, prospect: Prospect
) -> None:
    """Measure by divergences: I_z(x) = e_z / a_z^2 d(x, z), which is the same for normal rewards.

    An alternative at no distance tells nothing of divergences; it is moved to where they are small.
    """
    arms, theta, products = view.arms, view.learned.theta, view.scratch.products
    seen, shift = arms.observations, view.scratch.direction
    for x in range(out.gains.shape[0]):
        out.gains[x] = 0.0
    for z in range(out.weights.shape[0]):
        if out.weights[z] <= _NEGLIGIBLE_WEIGHT:
            continue
        distance = alternatives.distances[z]
        if distance > _TIED:
            for i in range(shift.shape[0]):
                shift[i] = alternatives.parameters[z, i] - theta[i]
        else:
            distance = _TIED
            scale = -math.sqrt(_TIED / alternatives.separations[z])
            for i in range(shift.shape[0]):
                shift[i] = 0.0
                for j in range(shift.shape[0]):
                    u_j = arms.rewards[prospect.best, j] - arms.rewards[z, j]
                    shift[i] += scale * view.learned.gram_inverse[i, j] * u_j
        apart(seen.several, seen.likelihood, arms, shift, products)
        share = 0.5 * out.weights[z] * out.elasticities[z] / distance
        for x in range(out.gains.shape[0]):
            out.gains[x] += share * products[x] * products[x]
