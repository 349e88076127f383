"""E-processes of checks: likelihood ratios that chance alone rarely makes large.

An e-process is at most a non-negative martingale that begins at 1, whatever parameter of the null
hypothesis is true.  By Ville's inequality it ever exceeds 1 / alpha with a probability of at most
alpha, so it can be looked at after every reward.  All of these are of one form (universal
inference: Wasserman, Ramdas, Balakrishnan, 2020),

    E = [ mixture over parameters of an alternative ] / [ supremum over the null hypothesis ].

With the true parameter in place of the supremum this is a ratio of likelihoods and a martingale,
and the supremum makes it smaller.  A factor of the ratio concerns one reward, given its option and
what was known when it was chosen.  So options may be chosen adaptively, rewards may come late, and
products over options remain e-processes.  Leaving out terms of a mixture, or replacing a mixture by
a lower bound, makes an e-process smaller and keeps it valid; which terms are kept may depend on the
data.

Rewards with the mean mu and a known level sigma need not be normal: for every mu', the expectation
of exp((mu' - mu)(r - mu) / sigma^2 - (mu' - mu)^2 / (2 sigma^2)) is at most 1 if r is sub-Gaussian
with parameter sigma.  With an unknown level the supremum is over that too, and E is an e-process if
rewards are normal.

| symbol                                     | here                     | shape       |
|--------------------------------------------|--------------------------|-------------|
| n, mean, sum of squared deviations         | ``Sample``               | any         |
| smallest and largest reward                | ``Sample.low``, ``high`` | any         |
| log E                                      | results                  |             |
| tau, prior deviation of a mean             | ``tau``                  |             |
| delta, kappa: change of a mean, and its prior deviation, in units of the noise | ``_CHANGES`` | |
| lambda, tilt of an indicator               | ``_TILTS``               |             |
| X, features; Z, further columns            | ``rows``, ``extra``      | (k, d), (k, q) |
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Prior deviations of a change, in units of the noise.
_CHANGES = (0.03, 0.1, 0.3, 1.0, 3.0)
# Scales of the prior of a mean count.
_RATES = tuple(10.0**j for j in range(-6, 7))
# Shape and scale of the prior of a variance, in units of a power of ten.
_SHAPE = 0.5
# Tilts of an indicator.
_TILTS = tuple(2.0**-j for j in range(12))
# Prior deviations of coefficients of the model of clicks and counts.
_COEFFICIENTS = (0.3, 1.0, 3.0)
_MOST_STEPS, _NEGLIGIBLE = 60, 1e-9
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(20)
_FARTHEST = 500.0  # exp of it is finite
_ROUNDING = 1e-13  # relative error of a mean


class Sample(NamedTuple):
    """Rewards by their number, mean, squared deviations from the mean, and range."""

    n: Array
    mean: Array
    squares: Array
    low: Array
    high: Array

    @property
    def total(self) -> Array:
        """Sums of rewards."""
        return self.n * self.mean

    def without(self, value: Array) -> Sample:
        """Leave out one reward of each sample, where there are several."""
        left = np.maximum(self.n - 1.0, 1.0)
        several = self.n > 1.0
        mean = np.where(several, self.mean - (value - self.mean) / left, self.mean)
        squares = self.squares - (value - self.mean) * (value - mean)
        return self._replace(
            n=np.where(several, left, self.n),
            mean=mean,
            squares=np.where(several, np.maximum(squares, 0.0), self.squares),
        )

    def without_extremes(self) -> Sample:
        """Leave out the smallest and the largest reward of each sample."""
        return self.without(self.low).without(self.high)


def pooled(one: Sample, two: Sample) -> Sample:
    """Combine samples."""
    count = one.n + two.n
    share = np.divide(two.n, count, out=np.zeros_like(count), where=count > 0.0)
    apart = two.mean - one.mean
    mean = np.where(one.n == 0.0, two.mean, one.mean + apart * share)
    squares = one.squares + two.squares + apart * apart * one.n * share
    low = np.where(one.n == 0.0, two.low, np.minimum(one.low, two.low))
    high = np.where(one.n == 0.0, two.high, np.maximum(one.high, two.high))
    low, high = np.where(two.n == 0.0, one.low, low), np.where(two.n == 0.0, one.high, high)
    return Sample(count, mean, squares, low, high)


def log_gamma(x: Any) -> Array:
    """Logarithm of the gamma function for x >= 1/2, to about 1e-14 relative (Stirling at x + 8)."""
    x = np.asarray(x, np.float64)
    ends = x * (x + 7.0)
    product = ends * (ends + 6.0) * (ends + 10.0) * (ends + 12.0)  # x (x + 1) ... (x + 7)
    z = x + 8.0
    inverse = 1.0 / (z * z)
    series = 1 / 1260 - inverse * (1 / 1680 - inverse / 1188)
    series = 1 / 12 - inverse * (1 / 360 - inverse * series)
    found = (z - 0.5) * np.log(z) - z + 0.5 * math.log(2.0 * math.pi) + series / z
    return np.asarray(found - np.log(product), np.float64)


def log_sum(values: Array, axis: Any = None) -> Any:
    """Logarithm of a sum of exponentials."""
    top = np.max(values, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        found = np.log(np.exp(values - top).sum(axis=axis, keepdims=True)) + top
    return found[()] if axis is None and found.ndim == 0 else np.squeeze(found, axis)


def _times_log(x: Array, y: Array) -> Array:
    """Compute x log(y), 0 where x is 0."""
    return x * np.log(np.where(x > 0.0, y, 1.0))


def _uneven(steps: Array) -> Array:
    """Logarithms of weights 1 / ((j + 1)(j + 2)), whose sum over j >= 0 is 1."""
    return -np.log((steps + 1.0) * (steps + 2.0))


# Clicks


def log_clicks(successes: Array, failures: Array) -> Array:
    """Likelihood of clicks, mixed over their rate with the prior Beta(1/2, 1/2)."""
    n = successes + failures
    of_data = log_gamma(successes + 0.5) + log_gamma(failures + 0.5) - log_gamma(n + 1.0)
    return of_data - math.log(math.pi)


def best_clicks(successes: Array, failures: Array) -> Array:
    """Log-likelihood of clicks, maximised over their rate."""
    n = np.maximum(successes + failures, 1.0)
    return _times_log(successes, successes / n) + _times_log(failures, failures / n)


# Counts; the factorials cancel


def log_counts(total: Array, n: Array) -> Array:
    """Likelihood of counts, mixed over their mean with priors Gamma(1/2) of several scales."""
    constant = log_gamma(total + 0.5) - 0.5 * math.log(math.pi) - math.log(len(_RATES))
    each = [0.5 * math.log(rate) - (total + 0.5) * np.log(n + rate) for rate in _RATES]
    return np.asarray(constant + log_sum(np.array(each), axis=0), np.float64)


def best_counts(total: Array, n: Array) -> Array:
    """Log-likelihood of counts, maximised over their mean."""
    return _times_log(total, total / np.maximum(n, 1.0)) - total


# Numbers


def _prior_of_location(distance: Any) -> tuple[Array, Array]:
    """Deviation of the prior of a mean at this distance from 0, and log weight of that prior.

    Both are in units of the noise; the deviation is a power of ten.
    """
    steps: Array = np.ceil(np.log10(np.maximum(distance, 1.0)))
    return np.power(10.0, steps), _uneven(steps)


def _change_terms(one: Sample, two: Sample, noise: Array) -> tuple[Array, Array, Array, Array]:
    """Compute sums of squares around one mean, and around a mean with a change of each kappa.

    Returns the log weight of the prior of the mean, the sum of squares around one mean without
    that within the samples, and with the axis of kappa first the penalised sums of squares with a
    change and the log determinants.  In units of the noise.
    """
    n = one.n + two.n
    share = np.divide(two.n, n, out=np.zeros_like(n), where=n > 0.0)
    centre = one.mean + (two.mean - one.mean) * share
    z1, z2, c = (one.mean - centre) / noise, (two.mean - centre) / noise, centre / noise
    around = one.n * z1 * z1 + two.n * z2 * z2
    tau, weight = _prior_of_location(np.abs(c))
    precision = 1.0 / (tau * tau)
    kappa = np.reshape(_CHANGES, (-1, *(1 for _ in np.shape(n))))
    top, low = precision + n, 1.0 / kappa**2 + two.n
    det = precision * low + n / kappa**2 + one.n * two.n
    b1, b2 = -c * precision, two.n * z2
    explained = (low * b1 * b1 - 2.0 * two.n * b1 * b2 + top * b2 * b2) / det
    residual = np.maximum(around + c * c * precision - explained, 0.0)
    return weight - math.log(len(_CHANGES)), around, residual, np.log((tau * kappa) ** 2 * det)


def log_change_known(one: Sample, two: Sample, noise: Array) -> Array:
    """Log E of a change of the mean from one sample to the other, at a known noise level."""
    weight, around, residual, log_det = _change_terms(one, two, noise)
    each = 0.5 * (around - residual - log_det)
    return np.asarray(weight + log_sum(each, axis=0), np.float64)


def best_numbers(sample: Sample) -> Array:
    """Log-likelihood of normal rewards, maximised over mean and level; infinite if all are equal.

    A level of the size of rounding errors is no level.
    """
    n = np.maximum(sample.n, 1.0)
    variance = sample.squares / n
    some = variance > (_ROUNDING * sample.mean) ** 2
    found = -0.5 * n * (np.log(2.0 * math.pi * np.where(some, variance, 1.0)) + 1.0)
    return np.asarray(np.where(some, found, np.inf), np.float64)


def _unit_of(spread: Array) -> tuple[Array, Array]:
    """Power of ten near a spread, and log weight of this unit: 1 / (1.5 (|j| + 1)(|j| + 2))."""
    power = np.asarray(np.round(np.log10(np.maximum(spread, 1e-70))), np.float64)
    return np.power(10.0, power), _uneven(np.abs(power)) - math.log(1.5)


def _log_normal(n: Array, squares: Array, log_det: Array, unit: Array) -> Array:
    """Mix the normal likelihood over coefficients and a variance with an inverse gamma prior.

    ``squares`` are penalised residuals in the unit; ``log_det`` is that of prior covariance times
    posterior precision.
    """
    half = _SHAPE + 0.5 * n
    return np.asarray(
        _SHAPE * math.log(_SHAPE)
        - log_gamma(_SHAPE)
        + log_gamma(half)
        - half * np.log(_SHAPE + 0.5 * squares)
        - 0.5 * log_det
        - n * (0.5 * math.log(2.0 * math.pi) + np.log(unit)),
        np.float64,
    )


def log_change_unknown(one: Sample, two: Sample) -> Array:
    """Log E of a change of the mean from one sample to the other, at an unknown noise level."""
    whole = pooled(one, two)
    within = one.squares + two.squares
    unit, weight = _unit_of(np.sqrt(within / np.maximum(whole.n, 1.0)))
    location, _, residual, log_det = _change_terms(one, two, unit)
    each = _log_normal(whole.n, within / unit**2 + residual, log_det, unit)
    mixture = log_sum(each, axis=0) + weight + location
    return np.asarray(mixture - best_numbers(whole), np.float64)


# Change points


def log_weights(boundaries: int, doublings: int, most: int) -> Array:
    """Log weights of the change points of a grid, after this many doublings of its length.

    All grids share the weight 1, whatever the number of rounds: each has at most ``most`` - 1
    change points with equal weights.
    """
    each = _uneven(np.array(float(doublings))) - math.log(most - 1)
    return np.full(boundaries, float(each))


def _share(part: Array, whole: Array) -> Array:
    """Compute exp(part - whole); 0 where both are -inf."""
    some = np.isfinite(whole)
    return np.asarray(np.exp(np.where(some, part, -np.inf) - np.where(some, whole, 0.0)))


def log_any_change(each: Array, weights: Array) -> tuple[float, Array, Array]:
    """Log E of a change of some options at some change point, from those of each option.

    ``each`` has shape (k, s): log E of every option and change point.  Options change one by one,
    with a prior probability of 1/k or of 1/2 (if something concerns them all); a factor of an
    option that does not change is 1.

    Returns
    -------
    evidence : float
        Log E.
    points : ndarray, shape (s,)
        Log E of each change point, with its weight.
    changed : ndarray, shape (k, s)
        Posterior probability that an option changes, by change point.
    """
    k = len(each)
    shares = np.array(sorted({1.0 / k, 0.5})) if k > 1 else np.array([1.0])
    with np.errstate(divide="ignore"):
        none, some = np.log1p(-shares)[:, None, None], np.log(shares)[:, None, None]
    factors = np.logaddexp(none, some + each)  # (shares, k, s)
    together = factors.sum(axis=1) - math.log(len(shares))
    by_point = log_sum(together, axis=0)
    posterior = _share(some + each, factors)
    changed = (_share(together, by_point)[:, None, :] * posterior).sum(axis=0)
    evidence = float(log_sum(by_point + weights))
    return evidence, by_point + weights, changed


# Lack of fit


class Link(NamedTuple):
    """Log-likelihood S u - n A(u) of a sum S of n rewards at the predictor u, by the kind of A."""

    clicks: bool  # A(u) = log(1 + exp(u)); otherwise of counts, A(u) = exp(u)

    def value(self, u: Array) -> Array:
        """A(u)."""
        return np.asarray(np.logaddexp(0.0, u) if self.clicks else np.exp(u), np.float64)

    def slope(self, u: Array) -> Array:
        """A'(u), the mean."""
        return np.asarray(np.exp(-np.logaddexp(0.0, -u)) if self.clicks else np.exp(u), np.float64)

    def curvature(self, u: Array) -> Array:
        """A''(u)."""
        mean = self.slope(u)
        return mean * (1.0 - mean) if self.clicks else mean

    def expected(self, u: Array, variance: Array) -> Array:
        """Mean of A at a normal predictor."""
        if not self.clicks:
            return np.asarray(np.exp(u + 0.5 * variance), np.float64)
        points = u[:, None] + np.sqrt(variance)[:, None] * _NODES
        return np.asarray(self.value(points) @ _WEIGHTS / _WEIGHTS.sum(), np.float64)


CLICKS, COUNTS = Link(clicks=True), Link(clicks=False)


def _maximum(
    link: Link, rows: Array, count: Array, total: Array, precision: Array
) -> tuple[Array, Array]:
    """Maximise the penalised log-likelihood by Newton's method; return coefficients and Hessian."""
    # begin near the mean rate, if the span has a constant
    rate = (total.sum() + 0.5) / (count.sum() + 1.0)
    start = math.log(rate / (1.0 - rate)) if link.clicks else math.log(rate)
    theta = np.asarray(np.linalg.lstsq(rows, np.full(len(rows), start), rcond=None)[0], np.float64)

    def objective(theta: Array) -> float:
        u = np.clip(rows @ theta, -_FARTHEST, _FARTHEST)
        return float(total @ u - count @ link.value(u) - 0.5 * precision @ (theta * theta))

    value = objective(theta)
    hessian = np.diag(precision)
    for _ in range(_MOST_STEPS):
        u = np.clip(rows @ theta, -_FARTHEST, _FARTHEST)
        slope = rows.T @ (total - count * link.slope(u)) - precision * theta
        hessian = (rows.T * (count * link.curvature(u))) @ rows + np.diag(precision)
        step = np.linalg.lstsq(hessian, slope, rcond=1e-13)[0]
        decrement = float(slope @ step)
        size = 1.0
        while size > 1e-6 and not objective(theta + size * step) >= value:
            size *= 0.5
        if size <= 1e-6:
            break
        theta = theta + size * step
        value = objective(theta)
        if decrement < _NEGLIGIBLE:
            break
    return theta, hessian


def best_linear(link: Link, rows: Array, count: Array, total: Array) -> float:
    """Log-likelihood of a linear predictor, maximised over its coefficients."""
    theta, _ = _maximum(link, rows, count, total, np.zeros(rows.shape[1]))
    u = np.clip(rows @ theta, -_FARTHEST, _FARTHEST)
    return float(total @ u - count @ link.value(u))


def log_linear(link: Link, rows: Array, extra: Array, count: Array, total: Array) -> float:
    """Lower bound on the likelihood of a predictor in rows and extra columns, mixed over both.

    Coefficients of the rows have a prior as wide as its data, those of the extra columns one of
    several deviations.  For every normal q, log of the mixture is at least E_q[log-likelihood] -
    KL(q, prior) (Jensen); q is the normal approximation at the maximum, where this is nearly equal.
    """
    whole = np.hstack([rows, extra])
    d, q = rows.shape[1], extra.shape[1]
    found = []
    for deviation in _COEFFICIENTS:
        for width in (3.0, 10.0):
            precision = np.concatenate([np.full(d, width**-2), np.full(q, deviation**-2)])
            theta, hessian = _maximum(link, whole, count, total, precision)
            covariance = np.linalg.inv(hessian)
            u = np.clip(whole @ theta, -_FARTHEST, _FARTHEST)
            variance = np.maximum(((whole @ covariance) * whole).sum(axis=1), 0.0)
            expected = float(total @ u - count @ link.expected(u, variance))
            _, log_det = np.linalg.slogdet(hessian)
            divergence = 0.5 * float(
                precision @ (theta * theta + np.diagonal(covariance))
                - (d + q)
                + log_det
                - np.log(precision).sum()
            )
            found.append(expected - divergence)
    return float(log_sum(np.array(found))) - math.log(len(found))


def _stacked(
    columns: Array, weights: Array, means: Array, deviations: Array
) -> tuple[float, float]:
    """Least penalised sum of squares of weighted means, and log det (prior covariance precision).

    By a QR decomposition, which loses half as many digits as factorising the sum of squares.
    """
    prior = np.hstack([np.diag(1.0 / deviations), np.zeros((len(deviations), 1))])
    data = np.column_stack([weights[:, None] * columns, weights * means])
    triangle: Array = np.asarray(np.linalg.qr(np.vstack([prior, data]), mode="r"))
    m = len(deviations)
    residual = float(triangle[m, m]) ** 2 if len(triangle) > m else 0.0
    return residual, 2.0 * float(np.log(np.abs(np.diagonal(triangle)[:m]) * deviations).sum())


def log_fit_of_numbers(rows: Array, extra: Array, sample: Sample, noise: Array | None) -> float:
    """Log E of extra columns beside the rows, for the means of options.

    ``noise`` are the levels of the options; None for one unknown level of all.
    """
    n, within = float(sample.n.sum()), float(sample.squares.sum())
    unit, weight = _unit_of(np.array(math.sqrt(within / max(n, 1.0))))
    levels = np.full(len(rows), float(unit)) if noise is None else noise
    relative = (levels.mean() / levels)[:, None]
    columns = np.hstack([relative * rows, relative * extra])
    weights, means = np.sqrt(sample.n), sample.mean / levels
    d, q = rows.shape[1], extra.shape[1]
    fitted = np.linalg.lstsq(weights[:, None] * columns[:, :d], weights * means, rcond=None)[0]
    around = float((weights**2 * (means - columns[:, :d] @ fitted) ** 2).sum())
    tau, location = _prior_of_location(np.array(math.sqrt(float(fitted @ fitted))))
    priors = [np.array([float(tau)] * d + [kappa] * q) for kappa in _CHANGES]
    residual, log_det = np.transpose(
        [_stacked(columns, weights, means, deviations) for deviations in priors]
    )
    if noise is None:
        each = _log_normal(np.array(n), within / unit**2 + residual, log_det, unit) + weight
    else:
        each = 0.5 * (around - residual - log_det)
    mixture = float(log_sum(each)) - math.log(len(_CHANGES)) + float(location)
    if noise is not None:
        return mixture
    whole = Sample(*map(np.array, (n, np.abs(sample.mean).max(), within + around * unit**2, 0, 0)))
    return mixture - float(best_numbers(whole))


# Estimates


def log_other_clicks(successes: Array, failures: Array, low: Array, high: Array) -> Array:
    """Log E of a rate outside an interval."""
    n = np.maximum(successes + failures, 1.0)
    rate = np.clip(successes / n, low, high)
    rate = np.clip(rate, 0.0, 1.0)
    with np.errstate(divide="ignore"):
        inside = _times_log(successes, rate) + _times_log(failures, 1.0 - rate)
    return np.asarray(log_clicks(successes, failures) - inside, np.float64)


def log_other_counts(total: Array, n: Array, low: Array, high: Array) -> Array:
    """Log E of a mean count outside an interval."""
    mean = np.clip(total / np.maximum(n, 1.0), np.maximum(low, 0.0), high)
    with np.errstate(divide="ignore"):
        return np.asarray(log_counts(total, n) - (_times_log(total, mean) - n * mean), np.float64)


def log_other_mean(sample: Sample, low: Array, high: Array, noise: Array | None) -> Array:
    """Log E of a mean outside an interval, at a known level or at an unknown one (None).

    There is one e-process for every mean in the interval, with a prior around it; this is the
    smallest.
    """
    n = np.maximum(sample.n, 1.0)
    inside = np.clip(sample.mean, low, high)
    squares = n * (sample.mean - inside) ** 2
    kappa = np.reshape(_CHANGES, (-1, *(1 for _ in np.shape(n))))
    shrunk = n * kappa**2
    constant = math.log(len(_CHANGES))
    if noise is not None:
        each = 0.5 * (squares / noise**2 * shrunk / (1.0 + shrunk) - np.log1p(shrunk))
        return np.asarray(log_sum(each, axis=0) - constant, np.float64)
    unit, weight = _unit_of(np.sqrt(sample.squares / n))
    left = (sample.squares + squares / (1.0 + shrunk)) / unit**2
    each = _log_normal(n, left, np.log1p(shrunk), unit) + weight
    around = sample._replace(squares=sample.squares + squares)
    return np.asarray(log_sum(each, axis=0) - constant - best_numbers(around), np.float64)


# Shares, traffic, outliers


def log_different_shares(yes: Array, no: Array) -> float:
    """Log E of a share that differs between options."""
    return float(log_clicks(yes, no).sum() - best_clicks(yes.sum()[None], no.sum()[None])[0])


def log_traffic(surplus: Array, variance: Array) -> float:
    """Log E of options that are chosen more or less often than their probabilities say.

    X = [chosen] - p is at most 1 and has the variance p (1 - p).  So exp(lambda X - (e^lambda - 1 -
    lambda) p (1 - p)) has an expectation of at most 1 (Freedman).
    """
    each = [
        sign * tilt * surplus - (math.exp(tilt) - 1.0 - tilt) * variance
        for tilt in _TILTS
        for sign in (1.0, -1.0)
    ]
    return float(log_sum(np.array(each))) - math.log(len(each) * len(surplus))


def log_outlier(sample: Sample) -> Array:
    """Minus the logarithm of a p-value of the largest deviation, at all numbers of rewards at once.

    The share of one squared deviation in the sum of all is Beta(1/2, (n - 2)/2) for normal rewards;
    its tail is bounded, multiplied by n for the largest of n, and by (n + 1)(n + 2) for all n.
    """
    n = np.maximum(sample.n, 3.0)
    largest = np.maximum(sample.high - sample.mean, sample.mean - sample.low)
    share = np.divide(
        largest**2 * n / (n - 1.0),
        sample.squares,
        out=np.zeros_like(n),
        where=sample.squares > 0.0,
    )
    share = np.clip(share, 0.0, 1.0 - 1e-16)
    half = 0.5 * (n - 2.0)
    constant = log_gamma(half + 0.5) - log_gamma(np.full_like(n, 0.5)) - log_gamma(half)
    tail = constant + half * np.log1p(-share) - np.log(half) - 0.5 * np.log(np.maximum(share, 1e-9))
    found = -(tail + np.log(n) + np.log((n + 1.0) * (n + 2.0)))
    return np.where(sample.n >= 3.0, np.maximum(found, 0.0), 0.0)


def log_outlier_known(sample: Sample, noise: Array) -> Array:
    """Compute :func:`log_outlier` for sub-Gaussian rewards of a known level.

    A deviation of D from the mean has a probability of at most 2 exp(-D^2 / (2 sigma^2)); a mean
    that the reward takes part in only makes D smaller.
    """
    n = np.maximum(sample.n, 1.0)
    largest = np.maximum(sample.high - sample.mean, sample.mean - sample.low)
    found = 0.5 * (largest / noise) ** 2 - np.log(2.0 * n * (n + 1.0) * (n + 2.0))
    return np.asarray(np.maximum(found, 0.0), np.float64)
