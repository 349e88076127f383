"""Bayesian gaps and information gains of every arm, from the cells of the posterior.

| symbol                                        | here                      | shape  |
|-----------------------------------------------|---------------------------|--------|
| Delta(x) = E max_z <z, theta> - <x, mean>     | ``gaps[x]``               | (k,)   |
| sum_z p(z) (E[<x, theta>; z] / p(z) - <x, mean>)^2 | ``Variance``         | (k,)   |
| the same, summed over the rows y of Y_x in place of x | ``RowVariance``   | (k,)   |
| I(x*; y), y = <x, theta> + noise              | ``MutualInformation``     | (k,)   |
| E[mu(<x, theta>); x* = z]                     | ``within[x, z]``          | (k, c) |
| E mu(<x, theta>)                              | ``averages[x]``           | (k,)   |

**Variance.**  With S(z) = E[eta; z] the gain is the quadratic form sum_z S(z) S(z)^T / p(z) of
R^-T x.

**Mutual information.**  It is sum_z p(z) KL(p(y | z), p(y)).  The joint distribution of <x, theta>
and the cell is put on an even grid, convolved with the noise, and summed.  The step is a quarter of
the noise level, or else a 64th of the reach of the posterior; less noise than half of that counts
as about that much.  With these numbers the error is below half a percent.  Dividing a value between
its two neighbours on the grid spreads it; that variance is subtracted from the noise.

For any Gaussian posterior with variance v of <x, theta> and noise sigma^2,
variance gain / (2 (v + sigma^2)) <= mutual information <= log(1 + v / sigma^2) / 2, and the mutual
information is at most the entropy of x*.

**Clicks and counts** (:class:`LikelihoodVariance`).  Gaps and gains are those of mean rewards,

    Delta(x) = E max_z mu(<z, theta>) - E mu(<x, theta>),
    I(x) = sum_z p(z) (E[mu(<x, theta>) | z] - E mu(<x, theta>))^2 / Var(x).

All expectations are those of the Laplace approximation, and Var(x) is the variance of a reward at
theta-hat: the less a reward varies, the more it tells.  At equal rates the gain is that of Russo
and Van Roy up to a constant.  Since the mean reward grows with <x, theta>, the best arm of a sample
is the one with the largest predictor, and cells are those of normal rewards.  mu is evaluated on
the grid only: a linear interpolation in steps of a 64th of the reach of the samples.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from sightline.core.action_set import first_largest_offered, is_offered
from sightline.core.likelihood import mean_of, variance_of
from sightline.core.linalg import Array, inner, norm, solve_transposed
from sightline.core.persistence import persists
from sightline.core.posterior.cells import Angles, Cells, is_settled, normal_cdf, normal_pdf, sector
from sightline.core.posterior.samples import WIDTH, Samples, Singles
from sightline.jit import compiled, generic

_SLICES = 256  # lines across the posterior, for the exact distribution
# A line through the apex of all sectors does not separate them; its neighbours do.
_APEX = 1e-12


@generic
def joint_distribution(
    source: object, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """Write the joint distribution of u = <x, theta - mean> and cell; return the variance of u."""
    raise TypeError(f"no joint distribution is known to a {type(source).__name__}")


@compiled
def _add(table: Array, z: int, position: float, weight: float) -> None:
    """Divide a weight between the two nearest nodes, which keeps its mean."""
    node = int(position)
    share = position - node
    table[z, node] += weight * (1.0 - share)
    table[z, node + 1] += weight * share


@compiled
def _multiply(eta: Singles, direction: Singles, products: Singles) -> None:
    """Inner products of a direction with every sample of a block, (d, width)."""
    a, b = direction[0], direction[1]
    first, second = eta[0], eta[1]
    for j in range(WIDTH):
        products[j] = a * first[j] + b * second[j]
    for i in range(2, eta.shape[0], 2):
        a, b = direction[i], direction[i + 1]
        first, second = eta[i], eta[i + 1]
        for j in range(WIDTH):
            products[j] += a * first[j] + b * second[j]


@joint_distribution.register(Samples)
@compiled
def sampled_distribution(
    source: Samples, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """One entry for every sample and one for its mirror image: O(M d)."""
    _clear(table)
    d = cells.shifts.shape[1]
    length = norm(cells.whitened[x])
    for i in range(d):
        source.direction[i] = cells.whitened[x, i] / length
    weight = 1.0 / source.samples
    square = 0.0
    for block in range(source.radii.shape[0]):
        products = source.scores[0]
        _multiply(source.eta[block], source.direction, products)
        known = block < source.scored[0]
        for j in range(min(WIDTH, source.samples // 2 - block * WIDTH)):  # not the padding
            one, other = int(source.labels[block, 0, j]), int(source.labels[block, 1, j])
            u = length * float(products[j])  # not in float32
            square += u * u
            _add(table, one if known else leader, half + u / step, weight)
            _add(table, other if known else leader, half - u / step, weight)
    if source.samples % 2 == 1:
        table[leader, half] += weight
    return 2.0 * weight * square


@compiled
def _clear(table: Array) -> None:
    for z in range(table.shape[0]):
        for i in range(table.shape[1]):
            table[z, i] = 0.0


@compiled
def _interval(low: float, high: float) -> float:
    """Probability of low < standard normal < high, precise in both tails."""
    if low > 0.0:
        return normal_cdf(-low) - normal_cdf(-high)
    return normal_cdf(high) - normal_cdf(low)


@compiled
def _visible(start: float, width: float) -> tuple[float, float]:
    """Part of a sector in front: tangents of its ends, equal if there is none."""
    low = max(start, -0.5 * math.pi)
    high = min(start + width, 0.5 * math.pi)
    if low >= high:  # or it enters from behind
        low = -0.5 * math.pi
        high = min(start + width - 2.0 * math.pi, 0.5 * math.pi)
    return (math.tan(low), math.tan(high)) if low < high else (0.0, 0.0)


@joint_distribution.register(Angles)
@compiled
def angular_distribution(
    source: Angles, cells: Cells, leader: int, x: int, step: float, half: int, table: Array
) -> float:
    """In whitened coordinates u fixes a line, and a sector cuts an interval out of it."""
    _clear(table)
    arm = cells.whitened[x]
    length = norm(arm)
    direction = math.atan2(arm[1], arm[0])
    along = cells.means[x] / length
    across = (arm[0] * cells.centre[1] - arm[1] * cells.centre[0]) / length
    for z in range(table.shape[0]):
        start, width = sector(source.rays, z, direction)
        low, high = _visible(start, width)
        start, width = sector(source.rays, z, direction + math.pi)
        back_low, back_high = _visible(start, width)
        for i in range(_SLICES):
            u = source.reach * ((2 * i + 1) / _SLICES - 1.0)
            at = along + u
            if abs(at) < _APEX:
                at = _APEX
            if at > 0.0:
                inside = _interval(at * low - across, at * high - across)
            else:
                inside = _interval(at * back_high - across, at * back_low - across)
            weight = 2.0 * source.reach / _SLICES * normal_pdf(u) * inside
            _add(table, z, half + u * length / step, weight)
    return length * length


# A grid of this many values reaches from end to end; noise extends it on both sides.
_HALF = 64
_NODES = 2 * _HALF + 4  # with what rounding may add
# The step is at most this part of the noise level.
_PER_NOISE = 4
# Noise beyond this many standard deviations has no weight.
_CUT = 5
_PAD = _CUT * _PER_NOISE


@persists()
class Variance(NamedTuple):
    """Variance-based information gain."""

    form: Array  # (d, d)
    precisions: Array  # (k,): squared weight of an observation of each arm


@persists()
class RowVariance(NamedTuple):
    """Variance-based information gain where outcomes are not rewards."""

    form: Array  # (d, d)
    rows: Array  # (k, p, d)
    factor: Array  # (d, d): R of the posterior, the same memory
    whitened: Array  # scratch (d,)


@persists()
class MutualInformation(NamedTuple):
    """Mutual information between the best arm and the outcome."""

    noise_stds: Array  # (k,): of the reward of each arm
    table: Array  # (c, nodes): joint distribution of value and cell
    smooth: Array  # (c + 1, nodes + 2 pad): of reward and cell; in the last row of the reward
    kernel: Array  # (2 pad + 1,): density of the noise


def variance(d: int, weights: Array) -> Variance:
    """Workspace of the variance-based gain; the weights are those of the model."""
    return Variance(np.zeros((d, d)), weights**2)


def row_variance(observations: Array, factor: Array) -> RowVariance:
    """Workspace of the variance-based gain of a game, beside the factor of its posterior."""
    d = len(factor)
    return RowVariance(np.zeros((d, d)), observations, factor, np.zeros(d))


def mutual_information(vertices: int, noise_stds: Array) -> MutualInformation:
    """Workspace of the mutual information."""
    return MutualInformation(
        noise_stds,
        np.zeros((vertices, _NODES)),
        np.zeros((vertices + 1, _NODES + 2 * _PAD)),
        np.zeros(2 * _PAD + 1),
    )


@generic
@compiled
def bayesian_gaps(
    information: Any, source: Any, cells: Cells, leader: int, excess: float, offer: Any, gaps: Array
) -> int:
    """Write Delta; return the arm on offer with the least, the first one among equals."""
    best = first_largest_offered(offer, cells.means)
    for x in range(gaps.shape[0]):
        gaps[x] = excess + (cells.means[best] - cells.means[x])
    return best


@generic
def bayesian_gains(
    information: object, source: object, cells: Cells, leader: int, gains: Array
) -> None:
    """Write I(x) of every arm."""
    raise TypeError(f"no information gain is known to a {type(information).__name__}")


@bayesian_gains.register(Variance)
@compiled
def variance_gain(
    information: Variance, source: object, cells: Cells, leader: int, gains: Array
) -> None:
    """Quadratic form of the whitened arms: O((c + k) d^2)."""
    _write_form(information.form, cells)
    for x in range(gains.shape[0]):
        gains[x] = _value(information.form, cells.whitened[x]) * information.precisions[x]


@bayesian_gains.register(RowVariance)
@compiled
def row_variance_gain(
    information: RowVariance, source: object, cells: Cells, leader: int, gains: Array
) -> None:
    """Sum of the quadratic forms of the whitened rows: O((c + k p) d^2)."""
    rows, whitened = information.rows, information.whitened
    _write_form(information.form, cells)
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        for n in range(rows.shape[1]):
            for i in range(whitened.shape[0]):
                whitened[i] = rows[x, n, i]
            solve_transposed(information.factor, whitened)
            gains[x] += _value(information.form, whitened)


@compiled
def _write_form(form: Array, cells: Cells) -> None:
    """Write sum_z S(z) S(z)^T / p(z)."""
    shifts = cells.shifts
    c, d = shifts.shape
    for i in range(d):
        for j in range(d):
            form[i, j] = 0.0
    for z in range(c):
        if cells.probabilities[z] > 0.0:
            for i in range(d):
                scaled = shifts[z, i] / cells.probabilities[z]
                for j in range(d):
                    form[i, j] += scaled * shifts[z, j]


@compiled
def _value(form: Array, vector: Array) -> float:
    """Value of a quadratic form that is not negative."""
    total = 0.0
    for i in range(vector.shape[0]):
        total += vector[i] * inner(form, i, vector)
    return max(total, 0.0)


@compiled
def _noise_kernel(kernel: Array, variance: float, step: float) -> int:
    """Weights of a Gaussian at -last, ..., last steps, summing to one; return last."""
    last = 0
    if variance > 0.01 * step * step:
        last = min(math.ceil(_CUT * math.sqrt(variance) / step), _PAD)
    total = 0.0
    for j in range(2 * last + 1):
        lag = (j - last) * step
        kernel[j] = math.exp(-0.5 * lag * lag / variance) if last > 0 else 1.0
        total += kernel[j]
    for j in range(2 * last + 1):
        kernel[j] /= total
    return last


@compiled
def _excess_variance(table: Array, nodes: int, half: int, step: float, variance: float) -> float:
    """By how much the grid has spread the values."""
    total = 0.0
    for z in range(table.shape[0]):
        for i in range(nodes):
            u = (i - half) * step
            total += table[z, i] * u * u
    return total - variance


@compiled
def _smooth(information: MutualInformation, nodes: int, last: int) -> None:
    """Convolve each row with the noise; the last row is their sum."""
    table, smooth, kernel = information.table, information.smooth, information.kernel
    c = table.shape[0]
    for i in range(nodes + 2 * last):
        smooth[c, i] = 0.0
    for z in range(c):
        row = smooth[z]
        for i in range(nodes + 2 * last):
            row[i] = 0.0
        for i in range(nodes):
            weight = table[z, i]
            if weight != 0.0:
                reached = row[i:]
                for j in range(2 * last + 1):
                    reached[j] += weight * kernel[j]
        for i in range(nodes + 2 * last):
            smooth[c, i] += row[i]


@compiled
def _divergence(part: float, whole: float) -> float:
    """For r = part / whole, r log r - r + 1: never negative, and precise near r = 1."""
    ratio = part / whole
    if ratio < 0.5:
        return ratio * math.log(ratio) - ratio + 1.0 if ratio > 0.0 else 1.0
    e = (part - whole) / whole
    if abs(e) < 1e-4:
        return e * e * (0.5 - e / 6.0)
    return max(ratio * math.log1p(e) - e, 0.0)


@compiled
def _sum_divergences(information: MutualInformation, nodes: int, last: int) -> float:
    """Mutual information; the terms - r + 1 add up to zero and keep each summand positive."""
    smooth = information.smooth
    c = information.table.shape[0]
    total = 0.0
    for z in range(c):
        mass = 0.0
        for i in range(nodes):
            mass += information.table[z, i]
        if mass > 0.0:
            for i in range(nodes + 2 * last):
                whole = mass * smooth[c, i]
                if whole > 0.0:
                    total += whole * _divergence(smooth[z, i], whole)
    return total


@bayesian_gains.register(MutualInformation)
@compiled
def mutual_information_gain(
    information: MutualInformation, source: Any, cells: Cells, leader: int, gains: Array
) -> None:
    """On a grid, arm by arm."""
    for x in range(gains.shape[0]):
        gains[x] = 0.0
        sigma = information.noise_stds[x]
        deviation = norm(cells.whitened[x])
        if deviation > 0.0:
            reach = source.reach * deviation * (1.0 + 1e-6)
            step = max(reach / _HALF, sigma / _PER_NOISE)
            half = math.ceil(reach / step)
            nodes = 2 * half + 2
            square = joint_distribution(source, cells, leader, x, step, half, information.table)
            spread = _excess_variance(information.table, nodes, half, step, square)
            last = _noise_kernel(information.kernel, sigma * sigma - spread, step)
            _smooth(information, nodes, last)
            gains[x] = _sum_divergences(information, nodes, last)


# --- clicks and counts --------------------------------------------------------------------------


@persists()
class LikelihoodVariance(NamedTuple):
    """Variance-based information gain about mean rewards."""

    likelihood: Any
    within: Array
    averages: Array
    table: Array  # (c, nodes): joint distribution of predictor and cell
    rewards: Array  # (nodes,): mean rewards on the grid


def likelihood_variance(likelihood: Any, k: int, vertices: int) -> LikelihoodVariance:
    """Workspace of the gain, for k arms."""
    return LikelihoodVariance(
        likelihood,
        np.zeros((k, vertices)),
        np.zeros(k),
        np.zeros((vertices, _NODES)),
        np.zeros(_NODES),
    )


@compiled
def _average(part: LikelihoodVariance, source: Any, cells: Cells, leader: int, x: int) -> None:
    """Write the mean reward of an arm, overall and within every cell: O(M d + c)."""
    c = part.table.shape[0]
    deviation = norm(cells.whitened[x])
    part.averages[x] = 0.0
    if deviation == 0.0:
        for z in range(c):
            part.within[x, z] = cells.probabilities[z] * mean_of(part.likelihood, cells.means[x])
            part.averages[x] += part.within[x, z]
        return
    step = source.reach * deviation * (1.0 + 1e-6) / _HALF
    joint_distribution(source, cells, leader, x, step, _HALF, part.table)
    for i in range(_NODES):
        part.rewards[i] = mean_of(part.likelihood, cells.means[x] + (i - _HALF) * step)
    for z in range(c):
        part.within[x, z] = inner(part.table, z, part.rewards)
        part.averages[x] += part.within[x, z]


@bayesian_gaps.register(LikelihoodVariance)
@compiled
def _likelihood_gaps(
    information: LikelihoodVariance,
    source: Any,
    cells: Cells,
    leader: int,
    excess: float,
    offer: Any,
    gaps: Array,
) -> int:
    """Once one arm is best in all samples, the means suffice."""
    averages, settled = information.averages, is_settled(cells, leader)
    for x in range(gaps.shape[0]):
        if settled:
            averages[x] = mean_of(information.likelihood, cells.means[x])
        elif is_offered(offer, x):
            _average(information, source, cells, leader, x)
    best = first_largest_offered(offer, averages)
    highest = averages[best]
    if not settled:
        highest = 0.0
        for z in range(cells.vertices.shape[0]):
            highest += information.within[cells.vertices[z], z]
        highest = max(highest, averages[best])
    for x in range(gaps.shape[0]):
        gaps[x] = highest - averages[x]
    return best


@bayesian_gains.register(LikelihoodVariance)
@compiled
def _likelihood_gains(
    information: LikelihoodVariance, source: Any, cells: Cells, leader: int, gains: Array
) -> None:
    """Spread of the averages over the cells, as written by the gaps."""
    for x in range(gains.shape[0]):
        total = 0.0
        for z in range(cells.probabilities.shape[0]):
            p = cells.probabilities[z]
            if p > 0.0:
                shift = information.within[x, z] / p - information.averages[x]
                total += p * shift * shift
        gains[x] = total / variance_of(information.likelihood, cells.means[x])
