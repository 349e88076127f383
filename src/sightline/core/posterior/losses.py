"""The expected loss of stopping now, and the gain of each arm: how much it lowers the log loss.

| symbol                                     | here                 | shape  |
|--------------------------------------------|----------------------|--------|
| u_z = x-hat - z, <u_z, theta-hat>          | ``alternatives.shortfalls`` | (k,) |
| s_z, the squared norm of u_z in V^-1       | ``alternatives.separations`` | (k,) |
| g_z, the gap of z in rewards               | ``gaps``             | (k,)   |
| a_z, the score of <u_z, theta-hat> / (sigma sqrt(s_z)) | ``a``    |        |
| log L_z                                    | ``log_losses``       | (k,)   |
| e_z = d log L_z / d log sqrt(s_z)          | ``elasticities``     | (k,)   |
| q_z                                        | ``weights``          | (k,)   |
| I(x)                                       | ``gains``            | (k,)   |
| log L, m                                   | ``ExpectedLoss``     | numbers |

**Loss.**  Under the posterior the expected advantage of z over x-hat is E (-<u_z, theta>)^+,

    L_z = sigma sqrt(s_z) psi(a_z),    psi(a) = E (Z - a)^+ = phi(a) h(a).                (1)

Playing x-hat permanently loses E max_z (-<u_z, theta>)^+ per round.  This lies between the largest
L_z and their sum, since several alternatives may be better at once.  With P_z the probability that
z is better than x-hat, it is about

    L = sum_z L_z / (1 + (sum_z P_z - max_z P_z) / 2).                                    (2)

If sigma is known, the score is its argument.  If sigma is estimated from nu outcomes, the score is
the normal quantile with about the same tail as Student's distribution (Wallace, 1959):

    a = (8 nu + 1) / (8 nu + 3) sqrt(nu log(1 + t^2 / nu)).                               (6)

**Gain.**  One more observation of x reduces s_z by <u_z, V^-1 y>^2 / (1 + |y|^2).  This is, in nats
of log L,

    I_z(x) = e_z |Y_x V^-1 u_z|^2 / (2 s_z (1 + |Y_x|^2)),     I(x) = sum_z q_z I_z(x),   (3)

with q_z proportional to L_z^eta, eta = 1 / sqrt(max(1, m)), m = min_z a_z^2 / 2.            (4)
For large a_z, e_z is a_z^2 and I_z(x) the gain of the paper: half of (<nu-hat(z) - theta-hat, x> /
sigma)^2.

**Contexts** have probabilities p_c.  Each z is compared with the best arm of its own context, L_z
is multiplied by p_c, and L is the sum over contexts.

**Clicks and counts.**  a_z is the signed root of the likelihood ratio, and I_z(x) is e_z / a_z^2
times the divergence between the outcomes of x under theta-hat and under nu-hat(z).  L_z and g_z are
in rewards: the slope of the mean reward between x-hat and z converts the predictor <x, theta>.
With contexts, normal rewards with the curvature of the likelihood replace all of this.

**Guard.**  A guard c in [0, 1] gives alternatives more weight: L_z (1 + b_z a_z^2 / 2) replaces
L_z,

    b_z = max(min(1, 2 c) j_z, 2 c - 1),    j_z = min(1, a_z^2 s_z / (2 + 2 s_z)).        (5)

j_z is the information in one direct observation of <u_z, theta>, at most 1 nat.  With b_z = 1 an
alternative is tried about as often as by Thompson sampling.  Up to c = 1/2 the guard only affects
what a few outcomes have settled: as data come in, j_z and with it the guard vanish.  Beyond 1/2 the
guard lasts; with c = 1 it holds permanently for all alternatives.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.action_set import withhold
from sightline.core.alternatives import (
    Comparison,
    compare,
    half_spaces,
    restrict_alternatives,
    rival_of,
)
from sightline.core.context_distribution import (
    ContextDistribution,
    context_distribution,
    log_probability,
)
from sightline.core.estimate import LeastSquares, Noise, quadratic_forms
from sightline.core.least_squares import apart, noise_variance
from sightline.core.likelihood_alternatives import LikelihoodHalfSpaces
from sightline.core.linalg import Array, inner_product
from sightline.core.model import Contexts
from sightline.core.persistence import persists
from sightline.jit import compiled

_LOG_ROOT_2_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_HALF_PI = math.sqrt(0.5 * math.pi)
_ROOT_HALF = math.sqrt(0.5)
# Beyond, 1 - a M(a) has lost two digits, and a few terms of its series are exact to rounding.
_FAR_OUT = 10.0
_TERMS = 16


@compiled
def log_density(a: float) -> float:
    """Logarithm of the standard normal density."""
    return -0.5 * a * a - _LOG_ROOT_2_PI


@compiled
def excess(a: float) -> float:
    """h(a): the mean of what exceeds a, over the density at a.

    Far out by its series 1/a^2 - 3/a^4 + 15/a^6 - ...
    """
    if a < _FAR_OUT:
        return 1.0 - a * (_ROOT_HALF_PI * math.exp(0.5 * a * a) * math.erfc(a * _ROOT_HALF))
    step = 1.0 / (a * a)
    term, total = step, 0.0
    for n in range(1, _TERMS):
        total += term
        term *= -(2.0 * n + 1.0) * step
    return total


@compiled
def mills_ratio(a: float) -> float:
    """M(a): the probability of exceeding a, over the density at a."""
    if a < _FAR_OUT:
        return _ROOT_HALF_PI * math.exp(0.5 * a * a) * math.erfc(a * _ROOT_HALF)
    return (1.0 - excess(a)) / a


@compiled
def noise_level(estimate: LeastSquares) -> float:
    """sigma, or its estimate."""
    return math.sqrt(noise_variance(estimate))


@compiled
def score(noise: Noise, a: float) -> tuple[float, float]:
    """Return the score of a >= 0, by (6), and a times its derivative."""
    if noise.known:
        return a, a
    nu = noise.prior_count + noise.weight[0]
    factor = (8.0 * nu + 1.0) / (8.0 * nu + 3.0)
    square = a * a
    normal = factor * math.sqrt(nu * math.log1p(square / nu))  # (6)
    if normal <= 0.0:
        return 0.0, 0.0
    return normal, factor * factor * square / ((1.0 + square / nu) * normal)


_NEGLIGIBLE_WEIGHT = 1e-20  # below the last bit of any gain
_TIED = 1e-6  # squared distance


@persists()
class Losses(NamedTuple):
    """Losses and gains of all arms under one estimate."""

    alternatives: Any  # HalfSpaces or LikelihoodHalfSpaces
    by_likelihood: Any  # the same LikelihoodHalfSpaces; None if they are HalfSpaces
    gaps: Array  # for normal rewards the same memory as the shortfalls
    frequencies: ContextDistribution
    log_losses: Array
    elasticities: Array
    weights: Array
    gains: Array
    differences: Array  # (d, k): u_z as columns
    form: Array  # (d, d)
    product: Array  # scratch (d, d)
    costs: Array  # scratch (k,): gaps with what a policy adds to them


def losses(
    k: int,
    d: int,
    contexts: Contexts | None = None,
    frequencies: ContextDistribution | None = None,
    by_likelihood: LikelihoodHalfSpaces | None = None,
) -> Losses:
    """Make arrays for k arms in d dimensions; by default with half-spaces of normal rewards."""
    plain = half_spaces(k, contexts)
    return Losses(
        alternatives=plain if by_likelihood is None else by_likelihood,
        by_likelihood=by_likelihood,
        gaps=plain.shortfalls if by_likelihood is None else np.zeros(k),
        frequencies=frequencies or context_distribution(contexts, False),
        log_losses=np.zeros(k),
        elasticities=np.zeros(k),
        weights=np.zeros(k),
        gains=np.zeros(k),
        differences=np.zeros((d, k)),
        form=np.zeros((d, d)),
        product=np.zeros((d, d)),
        costs=np.zeros(k),
    )


class ExpectedLoss(NamedTuple):
    """The sum over all alternatives."""

    best: int  # x-hat
    log_loss: float  # log L per round; -inf if no other arm on offer can be better
    evidence: float  # m: half the least squared score


@compiled
def _caution(guard: float, a: float, separation: float) -> float:
    """Compute b of (5)."""
    information = min(1.0, 0.5 * a * a * separation / (1.0 + separation))  # j
    return max(min(1.0, 2.0 * guard) * information, 2.0 * guard - 1.0)


@compiled
def expected_loss(
    out: Losses, view: LeastSquares, guard: float, best: int, offer: Any
) -> ExpectedLoss:
    """Write the losses of all alternatives on offer, and return their sum: O(k d)."""
    alternatives = out.alternatives
    restrict_alternatives(offer, alternatives, compare(alternatives, view, best))
    _write_gaps(out.by_likelihood, out.gaps, best)
    log_sigma = math.log(noise_level(view))
    largest, total, evidence = -math.inf, 0.0, math.inf
    starts = alternatives.starts
    for c in range(starts.shape[0] - 1):
        log_share = log_probability(out.frequencies, c)
        start, stop = starts[c], starts[c + 1]
        log_loss, m = _losses_of_block(
            out.by_likelihood, out, view, guard, log_sigma, log_share, start, stop
        )
        evidence = min(evidence, m)
        if log_loss > largest:
            total = total * math.exp(largest - log_loss) + 1.0
            largest = log_loss
        elif log_loss > -math.inf:
            total += math.exp(log_loss - largest)
    if largest == -math.inf:
        return ExpectedLoss(best, -math.inf, math.inf)
    return ExpectedLoss(best, largest + math.log(total), evidence)


@compiled
def _write_gaps(by_likelihood: LikelihoodHalfSpaces | None, gaps: Array, best: int) -> None:
    """Write the gaps in mean rewards; normal rewards share the memory of the shortfalls."""
    if by_likelihood is not None:
        rewards = by_likelihood.rewards
        for z in range(gaps.shape[0]):
            gaps[z] = max(rewards[best] - rewards[z], 0.0)


@compiled
def _losses_of_block(
    by_likelihood: LikelihoodHalfSpaces | None,
    out: Losses,
    view: LeastSquares,
    guard: float,
    log_sigma: float,
    log_share: float,
    start: int,
    stop: int,
) -> tuple[float, float]:
    """Write the losses of one context; return the logarithm of (2), and m."""
    alternatives = out.alternatives
    largest, evidence = -math.inf, math.inf
    better, most_likely = 0.0, 0.0
    for z in range(start, stop):
        out.log_losses[z] = -math.inf
        if alternatives.distances[z] == math.inf:  # x-hat, its twins, what is not on offer
            continue
        log_width = 0.5 * math.log(alternatives.separations[z]) + log_sigma
        if by_likelihood is None:
            deviations = alternatives.shortfalls[z] / math.exp(log_width)
        else:
            deviations = math.sqrt(alternatives.distances[z])  # the root of the likelihood ratio
        a, slope = score(view.noise, deviations)
        if by_likelihood is not None:
            log_width += math.log(_slope_of_reward(alternatives.shortfalls[z], out.gaps[z]))
        h, mills, log_phi = excess(a), mills_ratio(a), log_density(a)
        out.log_losses[z] = log_width + log_phi + math.log(h)  # (1)
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
def _slope_of_reward(shortfall: float, gap: float) -> float:
    """Slope that converts the predictor into rewards; nearly 0 for a tie."""
    slope = gap / shortfall if shortfall > 0.0 else 0.0
    return slope if slope > 0.0 else 1e-12


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
def loss_gains(out: Losses, view: LeastSquares, loss: ExpectedLoss, offer: Any) -> None:
    """Write I(x) of (3) for all arms; zero for those not on offer: O(k d^2)."""
    eta = 1.0 / math.sqrt(max(loss.evidence, 1.0))
    total = 0.0
    for z in range(out.weights.shape[0]):  # q of (4)
        out.weights[z] = math.exp(eta * (out.log_losses[z] - loss.log_loss))
        total += out.weights[z]
    for z in range(out.weights.shape[0]):
        out.weights[z] /= total
    _write_gains(out.by_likelihood, out, view, loss)
    for x in range(out.gains.shape[0]):
        out.gains[x] /= 1.0 + max(view.arms.seen_widths[x], 0.0)
    withhold(offer, out.gains, 0.0)


@compiled
def _normal_gains(out: Losses, view: LeastSquares, loss: ExpectedLoss) -> None:
    """Write sum_z q_z I_z(x) (1 + |Y_x|^2), half of tr(Y_x W Y_x^T), for normal rewards.

    W = V^-1 (sum_z q_z e_z / s_z u_z u_z^T) V^-1.
    """
    arms, differences, form = view.arms, out.differences, out.form
    products = view.scratch.products
    d, k = differences.shape
    comparison = Comparison(loss.best, 2.0 * loss.evidence)
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
    quadratic_forms(seen.several, seen.fit, arms, form, products, out.gains)


@compiled
def _write_gains(
    alternatives: LikelihoodHalfSpaces | None, out: Losses, view: LeastSquares, loss: ExpectedLoss
) -> None:
    """Write sum_z q_z I_z(x) (1 + |Y_x|^2); by likelihood from divergences d, with e_z / a_z^2 d.

    An alternative at no distance has no divergence; it is moved to a small distance.
    """
    if alternatives is None:
        _normal_gains(out, view, loss)
        return
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
                    u_j = arms.rewards[loss.best, j] - arms.rewards[z, j]
                    shift[i] += scale * view.learned.gram_inverse[i, j] * u_j
        apart(seen.several, seen.fit, arms, shift, products)
        share = 0.5 * out.weights[z] * out.elasticities[z] / distance
        for x in range(out.gains.shape[0]):
            out.gains[x] += share * products[x] * products[x]
