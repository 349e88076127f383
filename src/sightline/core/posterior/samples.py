"""Cells of the posterior from one fixed set of samples.

| symbol                    | here        | shape                         |
|---------------------------|-------------|-------------------------------|
| eta, with its mirror -eta | ``eta``     | (blocks, d or d + 1, width)   |
| M                         | ``samples`` | number                        |
| largest norm in a block   | ``radii``   | (blocks,)                     |
| cell of eta and of -eta   | ``labels``  | (blocks, 2, width)            |

The samples are mean + R^-1 eta with the same eta in every round, so a choice is a function of the
past.  Each eta is used with its mirror image: their mean is exactly zero, and one inner product
serves both.

The samples are sorted by norm, largest first.  By Cauchy-Schwarz z beats x-hat at eta only if
lag(z) < norm(eta) norm(edge(z)): each further block compares fewer arms.  After the first block
without any, all samples belong to x-hat; late in a run this saves most of the work.  Zeros that pad
the last block belong to x-hat as well and change no sum.

Scores are float32: only their order is used.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.linalg import Array, Ints, norm
from sightline.core.persistence import persists
from sightline.core.posterior.cells import Cells, measure_cells
from sightline.jit import compiled

Singles = NDArray[np.float32]
Labels = NDArray[np.int32]

WIDTH = 256  # samples per block: what one block reads and writes stays in the first-level cache
_LARGEST_SINGLE = 3e38  # float32 can hold
_ROUNDING = 1.0 + 1e-6  # by which a float32 score may exceed the bound


@persists()
class Samples(NamedTuple):
    """Standard normal samples, and their cells in one round."""

    eta: Singles
    radii: Array
    samples: int
    reach: float  # largest norm
    labels: Labels
    scored: Ints  # (1,): blocks that were labelled, the others belong to x-hat
    edges: Singles  # (c, d or d + 1), in a common unit
    lags: Singles  # (c,), in the same unit
    lengths: Array  # (c,): norms of the edges
    active: Ints  # (c,): arms tried in the current block
    scores: Singles  # (4, width): inner products with two edges, best of eta, best of -eta
    sums: Array  # (c, d + 1): of eta by cell, and counts; x-hat's are left out
    direction: Singles  # (d or d + 1,)


@functools.lru_cache(maxsize=2)  # replications share them
def _draw(samples: int, d: int) -> tuple[Singles, Array]:
    """Make eta and radii, which number and dimension determine.  An odd sample is the mean."""
    half = np.random.default_rng([samples, d]).standard_normal((samples // 2, d))
    half = half.astype(np.float32)
    norms = np.sqrt((half.astype(np.float64) ** 2).sum(axis=1))
    order = np.argsort(-norms)
    blocks = max(-(-half.shape[0] // WIDTH), 1)
    even = d + d % 2  # the kernel takes coordinates in pairs
    padded = np.zeros((blocks * WIDTH, even), dtype=np.float32)
    padded[: half.shape[0], :d] = half[order]
    radii = np.zeros(blocks * WIDTH)
    radii[: half.shape[0]] = norms[order]
    eta = padded.reshape(blocks, WIDTH, even).transpose(0, 2, 1)
    return np.ascontiguousarray(eta), np.ascontiguousarray(radii[::WIDTH])


def samples_size(samples: int, d: int) -> int:
    """Least number of bytes of so many samples: while they are drawn, in double precision."""
    return 8 * (samples // 2) * d


def fixed_samples(samples: int, d: int, vertices: int) -> Samples:
    """Set up the samples, the same in every run, with workspace for so many vertices."""
    eta, radii = _draw(samples, d)
    blocks, even, _ = eta.shape
    return Samples(
        eta=eta.copy(),
        radii=radii.copy(),
        samples=samples,
        reach=float(radii[0]),
        labels=np.zeros((blocks, 2, WIDTH), dtype=np.int32),
        scored=np.zeros(1, dtype=np.int64),
        edges=np.zeros((vertices, even), dtype=np.float32),
        lags=np.zeros(vertices, dtype=np.float32),
        lengths=np.zeros(vertices),
        active=np.zeros(vertices, dtype=np.int64),
        scores=np.zeros((4, WIDTH), dtype=np.float32),
        sums=np.zeros((vertices, d + 1)),
        direction=np.zeros(even, dtype=np.float32),
    )


@compiled
def _prepare(source: Samples, cells: Cells, leader: int) -> int:
    """Bring edges and lags to a unit that float32 can hold; return how many arms can win."""
    longest = 0.0
    for z in range(cells.lags.shape[0]):
        source.lengths[z] = norm(cells.edges[z])
        longest = max(longest, source.lengths[z])
    count = 0
    for z in range(cells.lags.shape[0]):
        if z != leader and source.lengths[z] > 0.0:
            source.active[count] = z
            count += 1
            source.lags[z] = min(cells.lags[z] / longest, _LARGEST_SINGLE)
            for i in range(cells.edges.shape[1]):
                source.edges[z, i] = cells.edges[z, i] / longest
    return count


@compiled
def _still_able(source: Samples, cells: Cells, radius: float, count: int) -> int:
    """Keep the arms that can beat x-hat within a radius; return their number."""
    kept = 0
    for j in range(count):
        z = source.active[j]
        if cells.lags[z] < radius * source.lengths[z] * _ROUNDING:
            source.active[kept] = z
            kept += 1
    return kept


@compiled
def _multiply(
    eta: Singles, edge: Singles, other: Singles, products: Singles, others: Singles
) -> None:
    """Inner products with two edges at once, which reads the samples once."""
    a, b, p, q = edge[0], edge[1], other[0], other[1]
    first, second = eta[0], eta[1]
    for j in range(WIDTH):
        products[j] = a * first[j] + b * second[j]
        others[j] = p * first[j] + q * second[j]
    for i in range(2, eta.shape[0], 2):
        a, b, p, q = edge[i], edge[i + 1], other[i], other[i + 1]
        first, second = eta[i], eta[i + 1]
        for j in range(WIDTH):
            products[j] += a * first[j] + b * second[j]
            others[j] += p * first[j] + q * second[j]


@compiled
def _compare(source: Samples, sign: Any, z: int, y: int, values: Singles, labels: Labels) -> None:
    """Compare two arms with the best so far, for every sample; without branches, as vector code."""
    products, others = source.scores[0], source.scores[1]
    lag, arm = source.lags[z], np.int32(z)
    other_lag, other_arm = source.lags[y], np.int32(y)
    for j in range(WIDTH):
        score = sign * products[j] - lag
        other = sign * others[j] - other_lag
        winner = other_arm if other > score else arm
        highest = other if other > score else score
        value = values[j]
        labels[j] = winner if highest > value else labels[j]
        values[j] = highest if highest > value else value


@compiled
def _label(source: Samples, block: int, leader: int, count: int) -> None:
    """Find the best arm of every sample of a block, and of its mirror image."""
    up, down = source.scores[2], source.scores[3]
    labels_up, labels_down = source.labels[block, 0], source.labels[block, 1]
    for j in range(WIDTH):
        up[j] = 0.0  # the score of x-hat
        down[j] = 0.0
        labels_up[j] = leader
        labels_down[j] = leader
    for n in range(0, count, 2):
        z = source.active[n]
        y = source.active[min(n + 1, count - 1)]  # the last arm may contend with itself
        _multiply(
            source.eta[block], source.edges[z], source.edges[y], source.scores[0], source.scores[1]
        )
        _compare(source, np.float32(1.0), z, y, up, labels_up)
        _compare(source, np.float32(-1.0), z, y, down, labels_down)


@compiled
def _accumulate(source: Samples, block: int, leader: int) -> None:
    """Add the samples of a block to counts and sums of their cells; x-hat's, the most, are not.

    A sample and its mirror image are rarely in the same cell, so neither addition waits for the
    other.
    """
    eta, sums = source.eta[block], source.sums
    labels_up, labels_down = source.labels[block, 0], source.labels[block, 1]
    d = sums.shape[1] - 1
    for j in range(WIDTH):
        z, y = labels_up[j], labels_down[j]
        if z != leader:
            sums[z, d] += 1.0
            for i in range(d):
                sums[z, i] += eta[i, j]
        if y != leader:
            sums[y, d] += 1.0
            for i in range(d):
                sums[y, i] -= eta[i, j]


@compiled
def _average(source: Samples, cells: Cells, leader: int) -> float:
    """Turn counts and sums into means; x-hat has what is left, because eta has mean zero."""
    c, d = cells.shifts.shape
    excess = 0.0
    rest = source.samples * 1.0
    for i in range(d):
        cells.shifts[leader, i] = 0.0
    for z in range(c):
        if z != leader:
            rest -= source.sums[z, d]
            cells.probabilities[z] = source.sums[z, d] / source.samples
            excess -= cells.probabilities[z] * cells.lags[z]
            for i in range(d):
                cells.shifts[z, i] = source.sums[z, i] / source.samples
                cells.shifts[leader, i] -= cells.shifts[z, i]
                excess += cells.edges[z, i] * cells.shifts[z, i]
    cells.probabilities[leader] = rest / source.samples
    return max(excess, 0.0)


@measure_cells.register(Samples)
@compiled
def sampled_cells(source: Samples, cells: Cells, leader: int) -> float:
    """Cells by the best arm of every sample: O(M c d) at first, less once some are clear."""
    for z in range(source.sums.shape[0]):
        for i in range(source.sums.shape[1]):
            source.sums[z, i] = 0.0
    count = _prepare(source, cells, leader)
    source.scored[0] = 0
    for block in range(source.radii.shape[0]):
        count = _still_able(source, cells, source.radii[block], count)
        if count == 0:
            break
        _label(source, block, leader, count)
        _accumulate(source, block, leader)
        source.scored[0] = block + 1
    return _average(source, cells, leader)
