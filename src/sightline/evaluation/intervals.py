"""Confidence intervals for values, differences and ratios, from the scores of every round.

A test asks whether v - c v' = d, where v is the value of the target and v' that of the control:
c = 0 is a value, c = 1 a difference d, and d = 0 a ratio c.  An interval is the set of hypotheses
that its test does not reject.

| symbol                                | here                             | shape |
|---------------------------------------|----------------------------------|-------|
| Z_t >= 0, whose mean is at most 1     | ``low``, ``high``                | (J, n) |
| Z-hat_t <= 1, prediction of Z_t       | ``_predictions``                 | (J, n) |
| S = sum Z_t, V = sum (Z_t - Z-hat_t)^2 | ``_Side``, at every look        | (J, m) |
| phi_t, whose mean is v                | ``scores``                       | (n,)  |
| h_t, predictable weight of a round    | ``weights``                      | (n,)  |
| delta                                 | probability of a miss            |       |

**Betting.**  For xi >= -1 and 0 <= lam < 1, exp(lam xi - psi(lam) xi^2) <= 1 + lam xi, where
psi(lam) = -log(1 - lam) - lam (Fan et al. 2015).  With xi = Z_t - Z-hat_t, which needs no upper
bound on Z_t, exp(lam sum (Z_t - E Z_t) - psi(lam) V) is a nonnegative supermartingale, so that it
exceeds 1 / delta at any time with probability at most delta (Ville).  ``gamma_exponential`` mixes
over lam with a gamma density (Howard et al. 2021; Waudby-Smith et al. 2022), ``bernstein`` lets lam
depend on the past (Waudby-Smith and Ramdas 2020), and ``weighted`` takes lam h_t, averaged over
some lam.  Averages over J choices of Z are again such processes.

**Asymptotic confidence sequence.**  sum h (phi - v) is compared with a normal mixture of variance
rho^2 (Waudby-Smith et al. 2021).

**Normal.**  The same sum in units of its standard error, for one look at a time fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_STEPS = 60  # bisections: more than the digits of a float
_RATIOS = np.geomspace(1e-4, 1e4, 321)
_LARGEST_STAKE = 0.5
_STAKES = _LARGEST_STAKE * 0.5 ** np.arange(13)
# The asymptotic sequence begins at this number of informative rounds, and is tightest when the
# variance is this multiple of that at its beginning.
FIRST, _TIGHTEST = 50, 20.0


class Test(Protocol):
    """Test of v - c v' = d at every look; c and d have shapes that broadcast to (r, m)."""

    def excess(self, c: Array, d: Array) -> tuple[Array, Array]:
        """Return by how much the evidence for v - c v' > d, and for <, exceeds its threshold."""

    def limits(self, c: float, within: tuple[float, float]) -> tuple[Array, Array]:
        """Return the ends of the interval for v - c v' at every look, among possible values."""


class Legs(NamedTuple):
    """Scores of a target or a control, for tests of bounded rewards.

    ``low`` and ``high`` have shape (J, n), entries >= 0, and means at most 1: in row j,
    (v + k_j) / (1 + k_j) and (1 - v + k_j) / (1 + k_j).  ``shifts`` are the k_j, shape (J,).
    """

    low: Array
    high: Array
    shifts: Array


class Bias(NamedTuple):
    """Bounds on v - E phi: it is at least -below, at most above."""

    below: Array | float = 0.0
    above: Array | float = 0.0


class Biases(NamedTuple):
    """Bounds of target and control, at every look."""

    target: Bias = Bias()
    control: Bias = Bias()

    def of(self, c: Array) -> tuple[Array, Array]:
        """Return how far v - c v' can be below and above the mean of its scores."""
        return (
            np.asarray(self.target.below + c * self.control.above),
            np.asarray(self.target.above + c * self.control.below),
        )


UNBIASED = Biases()


class _Side(NamedTuple):
    """Sums at every look, shape (J, 1, m): of the first leg, of the second, and their products."""

    first: Array
    second: Array
    squares: Array
    products: Array
    second_squares: Array
    stakes: Array  # sum of lam, or number of rounds

    def at(self, c: Array) -> tuple[Array, Array]:
        """Return sums of (Z + c Z') / (1 + c), and of its squared deviations."""
        total = 1.0 + c
        squares = self.squares + 2.0 * c * self.products + c * c * self.second_squares
        return (self.first + c * self.second) / total, squares / (total * total)


def _predictions(scores: Array) -> Array:
    """Compute running means of the rounds before, with half a pseudo-round, at most 1."""
    rounds = np.arange(1, scores.shape[1] + 1)
    before = np.cumsum(scores, axis=1) - scores
    return np.asarray(np.minimum((before + 0.5) / rounds, 1.0))


def _starts(looks: Ints) -> Ints:
    return np.concatenate([[0], looks[:-1]])


def _at_looks(values: Array, looks: Ints) -> Array:
    """Sum the first rounds, as many as each look has."""
    parts = np.add.reduceat(values[..., : looks[-1]], _starts(looks), axis=-1)
    return np.asarray(np.cumsum(parts, axis=-1))


def _products_at_looks(factors: Array, values: Array, looks: Ints) -> Array:
    """Sum products of every row of one with every row of the other, shape (L J, m)."""
    pairs = zip(_starts(looks).tolist(), looks.tolist(), strict=True)
    parts = [factors[:, begin:end] @ values[:, begin:end].T for begin, end in pairs]
    return np.asarray(np.cumsum(np.stack(parts, axis=-1), axis=-1)).reshape(-1, len(looks))


def _side(first: Array, second: Array | None, looks: Ints, stakes: Wagers | None) -> _Side:
    """Compute sums for one side; ``stakes`` weight rounds by lam, for every row or several lam."""
    errors = first - _predictions(first)
    errors_2 = None if second is None else second - _predictions(second)
    if stakes is None:
        lam = price = np.ones((1, 1))
    else:
        lam = stakes(errors if errors_2 is None else 0.5 * (errors + errors_2))
        price = -np.log1p(-lam) - lam
    is_own = stakes is None or stakes.own

    def sums(factors: Array, values: Array | None) -> Array:
        if values is None:
            return np.zeros((1, 1, 1))
        found = (
            _at_looks(factors * values, looks)
            if is_own
            else _products_at_looks(factors, values, looks)
        )
        return np.asarray(found[:, None, :])

    both = None if errors_2 is None else errors * errors_2
    squares = None if errors_2 is None else errors_2**2
    return _Side(
        sums(lam, first),
        sums(lam, second),
        sums(price, errors**2),
        sums(price, both),
        sums(price, squares),
        sums(lam, np.ones_like(first)),
    )


class Wagers(NamedTuple):
    """Rule for lam, from errors of predictions, shape (J, n).

    Its result has shape (J, n) if every row has its ``own``; otherwise (L, n), for all rows.
    """

    rule: Callable[[Array], Array]
    own: bool

    def __call__(self, errors: Array) -> Array:
        """Return lam."""
        return self.rule(errors)


def _by_variance(errors: Array, delta: float) -> Array:
    """Lam of every round, from the variance of the rounds before."""
    rounds = np.arange(1, errors.shape[1] + 1)
    squares = errors**2
    variance = (0.25 + np.cumsum(squares, axis=1) - squares) / rounds
    log = 2.0 * math.log(2.0 / delta)
    return np.asarray(
        np.minimum(np.sqrt(log / (variance * rounds * np.log1p(rounds))), _LARGEST_STAKE)
    )


class Betting(NamedTuple):
    """Test by wealth, for bounded rewards: it holds at all looks at once."""

    low: _Side
    high: _Side
    shifts: Array  # shape (J, 1, 1)
    log_wealth: Callable[[_Side, Array, Array], Array]
    delta: float
    biases: Biases
    looks: int

    def excess(self, c: Array, d: Array) -> tuple[Array, Array]:
        """See :class:`Test`."""
        below, above = self.biases.of(c)
        # means of target.low + c control.high, and of target.high + c control.low
        return self._one(self.low, c, d + below + c), self._one(self.high, c, 1.0 - d + above)

    def _one(self, side: _Side, c: Array, mean: Array) -> Array:
        null = (mean + self.shifts * (1.0 + c)) / ((1.0 + self.shifts) * (1.0 + c))
        values = self.log_wealth(side, c, null)
        largest = np.maximum(values.max(axis=0), -1e300)
        mixed = largest + np.log(np.maximum(np.exp(values - largest).mean(axis=0), 1e-300))
        return np.asarray(mixed - math.log(2.0 / self.delta))

    def limits(self, c: float, within: tuple[float, float]) -> tuple[Array, Array]:
        """See :class:`Test`; by bisection, because wealth is monotone in d."""
        factor = np.full((1, self.looks), c)
        ends = []
        for side, outer, inner in ((0, *within), (1, *within[::-1])):
            rejected, kept = np.full_like(factor, outer), np.full_like(factor, inner)
            open_ = self.excess(factor, rejected)[side] <= 0.0
            for _ in range(_STEPS):
                middle = 0.5 * (rejected + kept)
                is_rejected = self.excess(factor, middle)[side] > 0.0
                rejected = np.where(is_rejected, middle, rejected)
                kept = np.where(is_rejected, kept, middle)
            ends.append(np.where(open_, outer, rejected)[0])
        return ends[0], ends[1]


def _betting(
    log_wealth: Callable[[_Side, Array, Array], Array],
    target: Legs,
    control: Legs | None,
    looks: Ints,
    delta: float,
    biases: Biases,
    stakes: Wagers | None,
) -> Betting:
    low = _side(target.low, None if control is None else control.high, looks, stakes)
    high = _side(target.high, None if control is None else control.low, looks, stakes)
    shifts = np.tile(target.shifts, low.first.shape[0] // len(target.shifts))[:, None, None]
    return Betting(low, high, shifts, log_wealth, delta, biases, len(looks))


def gamma_exponential(
    target: Legs,
    control: Legs | None,
    looks: Ints,
    delta: float,
    biases: Biases = UNBIASED,
) -> Betting:
    """Test bounded rewards at all looks at once, with no bound on the weights.

    A look is a number of rounds; looks increase.
    """

    def wealth(side: _Side, c: Array, null: Array) -> Array:
        sums, squares = side.at(c)
        return log_wealth(sums - side.stakes * null, squares)

    return _betting(wealth, target, control, looks, delta, biases, None)


def log_wealth(s: Array, v: Array) -> Array:
    """Logarithm of the mixture over lam, with rho = 1; -inf, a lower bound, where s < 0."""
    from scipy.special import gammainc

    a = v + 1.0
    gain = np.maximum(s, 0.0)
    # s + v - a log(a + s) + log Gamma(a), without cancellation between large terms
    found = gain - a * np.log1p(gain / a) + _stirling(a) - 1.0
    found = found + np.log(gammainc(a, a + gain)) - math.log(-math.expm1(-1.0))
    return np.where(s < 0.0, -np.inf, found)


def _stirling(a: Array) -> Array:
    """Log Gamma(a) - a log a + a, for a >= 1."""
    from scipy.special import gammaln

    small = np.minimum(a, 100.0)
    series = 0.5 * np.log(2.0 * math.pi / a) + 1.0 / (12.0 * a) - 1.0 / (360.0 * a**3)
    return np.where(a < 100.0, gammaln(small) - small * np.log(small) + small, series)


def bernstein(
    target: Legs,
    control: Legs | None,
    looks: Ints,
    delta: float,
    biases: Biases = UNBIASED,
) -> Betting:
    """Test bounded rewards at all looks at once, with a predictable lam per round."""
    stakes = Wagers(lambda errors: _by_variance(errors, delta), own=True)
    return _betting(_staked, target, control, looks, delta, biases, stakes)


def _staked(side: _Side, c: Array, null: Array) -> Array:
    sums, squares = side.at(c)
    return np.asarray(sums - side.stakes * null - squares)


def weighted(
    target: Legs,
    control: Legs | None,
    weights: Array,
    looks: Ints,
    delta: float,
    biases: Biases = UNBIASED,
) -> Betting:
    """Test bounded rewards at all looks at once, with stakes in proportion to the weights."""
    lam = np.minimum(_STAKES[:, None] * weights, _LARGEST_STAKE)
    stakes = Wagers(lambda errors: lam, own=False)
    return _betting(_staked, target, control, looks, delta, biases, stakes)


class _ScoreMoments(NamedTuple):
    """Sums at every look, shape (m,): of h, of h phi, and covariances of h phi, about means."""

    weight: Array
    first: Array
    second: Array
    variances: tuple[Array, Array, Array]

    def variance(self, c: Array) -> Array:
        """Sum of the squares of h (phi - c phi'), about its mean."""
        one, both, two = self.variances
        return np.asarray(np.maximum(one - 2.0 * c * both + c * c * two, 0.0))


def _moments(scores: Array, control: Array | None, weights: Array, looks: Ints) -> _ScoreMoments:
    second = np.zeros_like(scores) if control is None else control
    # about means of all rounds first, so that squares do not cancel
    total = weights.sum()
    centres = [float(x @ weights / total) for x in (scores, second)]
    one, two = scores - centres[0], second - centres[1]
    squared = weights * weights
    h, h2 = _at_looks(weights, looks), _at_looks(squared, looks)
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = _at_looks(weights * one, looks) / h, _at_looks(weights * two, looks) / h
    a2, b2 = _at_looks(squared * one, looks), _at_looks(squared * two, looks)
    return _ScoreMoments(
        h,
        h * (a + centres[0]),
        h * (b + centres[1]),
        (
            _at_looks(squared * one * one, looks) - 2.0 * a * a2 + a * a * h2,
            _at_looks(squared * one * two, looks) - a * b2 - b * a2 + a * b * h2,
            _at_looks(squared * two * two, looks) - 2.0 * b * b2 + b * b * h2,
        ),
    )


class Quadratic(NamedTuple):
    """Test by the distance of a sum from its mean, for rewards of any range."""

    moments: _ScoreMoments
    #: Largest distance that is not rejected, for every c and look; inf where nothing is known.
    radius: Callable[[Array], Array]
    biases: Biases

    def excess(self, c: Array, d: Array) -> tuple[Array, Array]:
        """See :class:`Test`."""
        below, above = self.biases.of(c)
        moments, radius = self.moments, self.radius(c)
        sums = moments.first - c * moments.second
        return (
            np.asarray(sums - (d + below) * moments.weight - radius),
            np.asarray((d - above) * moments.weight - sums - radius),
        )

    def limits(self, c: float, within: tuple[float, float]) -> tuple[Array, Array]:
        """See :class:`Test`."""
        factor = np.full_like(self.moments.weight, c)
        below, above = self.biases.of(factor)
        with np.errstate(invalid="ignore", divide="ignore"):
            centre = (self.moments.first - c * self.moments.second) / self.moments.weight
            margin = self.radius(factor) / self.moments.weight
        low, high = (
            np.clip(centre - margin - below, *within),
            np.clip(centre + margin + above, *within),
        )
        return np.where(np.isnan(low), within[0], low), np.where(np.isnan(high), within[1], high)


def asymptotic(
    scores: Array,
    control: Array | None,
    weights: Array,
    informative: NDArray[np.bool_],
    looks: Ints,
    delta: float,
    biases: Biases = UNBIASED,
) -> Quadratic:
    """Test rewards of any range at all looks at once, asymptotically.

    It begins when ``FIRST`` rounds are informative: when the target or the control was played.
    """
    from scipy.special import lambertw

    found = np.flatnonzero(np.cumsum(informative) >= FIRST)
    begin = int(found[0]) + 1 if len(found) else len(scores) + 1
    first = _moments(scores, control, weights, np.array([min(begin, len(scores))]))
    moments = _moments(scores, control, weights, looks)
    factor = -float(lambertw(-(delta**2) / math.e, -1).real) - 1.0

    def radius(c: Array) -> Array:
        scale = _TIGHTEST * first.variance(c)  # what V rho^2 = factor is at
        with np.errstate(divide="ignore", invalid="ignore"):
            v = moments.variance(c) / scale * factor
            squared = 2.0 * (1.0 + v) * scale / factor * (0.5 * np.log1p(v) - math.log(delta))
        known = (scale > 0.0) & (looks >= begin)
        return np.where(known, np.sqrt(np.where(known, squared, 0.0)), np.inf)

    return Quadratic(moments, radius, biases)


def normal(
    scores: Array,
    control: Array | None,
    weights: Array,
    looks: Ints,
    delta: float,
    biases: Biases = UNBIASED,
) -> Quadratic:
    """Test rewards of any range at one look, at a time that was fixed beforehand."""
    from scipy.special import ndtri

    moments, z = _moments(scores, control, weights, looks), -float(ndtri(0.5 * delta))

    def radius(c: Array) -> Array:
        error = np.sqrt(moments.variance(c))
        return np.where(error > 0.0, z * error, np.inf)  # without variance, nothing is known

    return Quadratic(moments, radius, biases)


def ratio_limits(test: Test, offset: float) -> tuple[float, float]:
    """Find the ends of an interval for the ratio of two positive values, at one look.

    Rewards are a + (b - a) y, where y has the scores of the test, and ``offset`` is -a / (b - a).
    The ends enclose all ratios that are not rejected.
    """

    def accepted(ratios: Array) -> NDArray[np.bool_]:
        one = ratios[:, None]
        low, high = test.excess(one, offset * (1.0 - one))
        return np.asarray(((low <= 0.0) & (high <= 0.0))[:, 0])

    fits = np.flatnonzero(accepted(_RATIOS))
    if len(fits) == 0:
        return math.nan, math.nan

    def edge(inside: float, outside: float) -> float:
        for _ in range(_STEPS):
            middle = math.sqrt(inside * outside)
            if accepted(np.array([middle]))[0]:
                inside = middle
            else:
                outside = middle
        return outside

    low, high = int(fits[0]), int(fits[-1])
    return (
        0.0 if low == 0 else edge(_RATIOS[low], _RATIOS[low - 1]),
        math.inf if high == len(_RATIOS) - 1 else edge(_RATIOS[high], _RATIOS[high + 1]),
    )
