"""Scores of off-policy estimators, whose means over rounds estimate the value of a target.

Everything here may depend on earlier rounds only, so that sums of scores minus their means are
martingales, whichever policy made the log.

| symbol                                             | here                        | shape  |
|----------------------------------------------------|-----------------------------|--------|
| y_t = (r_t - a) / (b - a), reward between a and b  | ``rewards``                 | (n,)   |
| pi_t(a), probability under the target              | ``Target.of``               | (B, k) |
| p_t(a), probability with which it was drawn        | ``Log``, ``Block.low``      | (B, k) |
| w_t = pi_t(a_t) / p_t(a_t)                         | ``Scores.ratios``           | (n,)   |
| q_t(a), mean reward of a in the rounds before      | ``Block.fit``               | (B, k) |
| q_t(pi) = sum_a pi_t(a) q_t(a)                     |                             | (B,)   |
| lambda                                             | ``cutoff``                  |        |

Scores phi_t of the methods:

- ips: w y
- snips: V + w (y - V) / mean w, where V = sum w y / sum w
- dr, aipw: q(pi) + w (y - q(a_t))
- switch: the same with w 1{w <= lambda}
- shrinkage: the same with lambda w / (lambda + w^2)

For tests by wealth, the doubly robust score needs a lower bound that is known beforehand.  With
q~(a) = min(q(a), k p(a) / pi(a)), the score q~(pi) + w (y - q~(a_t)) has mean v and is >= -k
(Waudby-Smith et al. 2022): k = 0 is ips, and a large k all of q.  Where p(a) is not recorded, a
lower bound on it replaces it, so that without any bound k does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.evaluation.intervals import Legs
from sightline.evaluation.log import DecisionLog

Array = NDArray[np.float64]

#: The k of doubly robust scores; evidence is averaged over them.
SHIFTS = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0)
METHODS = ("dr", "ips", "snips", "aipw", "switch", "shrinkage")
#: Methods whose scores have a mean that differs from the value, by at most a known bound.
BIASED = ("switch", "shrinkage")

_ENTRIES = 2**21  # of a table for some rounds
_MOST_CELLS = 4096  # of the fit: with more, contexts share it
_ALMOST = 1e-9  # rounding of probabilities


class TargetPolicy(NamedTuple):
    """Probabilities of the options: the same in all rounds, or of each; neither: the best so far.

    ``name`` is for sentences.
    """

    name: str
    shared: Array | None = None  # shape (k,)
    rows: Array | None = None  # shape (n, k)

    def of(self, block: LogBlock) -> Array:
        """Return probabilities in some rounds, shape (B, k)."""
        if self.rows is not None:
            return self.rows[block.rows]
        if self.shared is not None:
            return np.broadcast_to(self.shared, block.fit.shape)
        # the leader among options that could be played
        playable = (block.low > 0.0) | ~block.known[:, None]
        leaders = np.where(playable, block.fit, -np.inf).argmax(axis=1)
        table = np.zeros_like(block.fit)
        table[np.arange(len(leaders)), leaders] = 1.0
        return table

    def take(self, rows: NDArray[np.int64]) -> TargetPolicy:
        """Return the target in some rounds."""
        return self if self.rows is None else self._replace(rows=self.rows[rows])


class LogBlock(NamedTuple):
    """Some consecutive rounds."""

    rows: slice
    fit: Array  # shape (B, k)
    low: Array  # shape (B, k): lower bounds on probabilities; exact where known
    known: NDArray[np.bool_]  # shape (B,)


class Scores(NamedTuple):
    """Scores of one target, shape (n,) each."""

    phi: Array
    ratios: Array  # w
    mass: Array  # probability of options that could be played
    legs: Legs | None
    below: Array  # v - E phi is at least -below, at most above; nan if unknown
    above: Array


def blocks(log: DecisionLog, rewards: Array, floor: float, start: float) -> Iterator[LogBlock]:
    """Go through the rounds with the fit of each, from rewards that were known before it.

    The fit is the mean of an option in its context, shrunk to the mean of all by one pseudo-reward.
    Without any reward, it is ``start``.
    """
    k, n = log.k, len(log)
    groups = int(log.contexts.max()) + 1
    contexts = log.contexts if groups * k <= _MOST_CELLS else np.zeros(n, dtype=np.int64)
    groups = groups if groups * k <= _MOST_CELLS else 1
    size = max(1, _ENTRIES // (groups * k))
    cells = contexts[log.arrivals] * k + log.actions[log.arrivals]
    values = rewards[log.arrivals]
    counts, sums = np.zeros(groups * k), np.zeros(groups * k)
    known_before = 0
    for begin in range(0, n, size):
        rows = slice(begin, min(begin + size, n))
        before = log.before[rows]
        new = slice(known_before, int(before[-1]))
        tables = []
        for state, entries in ((counts, np.ones(new.stop - new.start)), (sums, values[new])):
            table = np.zeros((new.stop - new.start + 1, groups * k))
            table[0] = state
            table[np.arange(1, len(table)), cells[new]] += entries
            np.cumsum(table, axis=0, out=table)
            state[:] = table[-1]
            tables.append(table)
        seen, total = (table[before - known_before] for table in tables)
        known_before = new.stop
        every = seen.sum(axis=1)
        overall = np.where(every > 0.0, total.sum(axis=1) / np.maximum(every, 1.0), start)
        if groups > 1:
            own = contexts[rows, None] * k + np.arange(k)
            seen, total = (np.take_along_axis(table, own, axis=1) for table in (seen, total))
        fit = (total + overall[:, None]) / (seen + 1.0)
        low = log.recorded.dense(rows, k)
        known = log.recorded.known[rows]
        low[~known] = floor
        yield LogBlock(rows, fit, low, known)


def scores(
    log: DecisionLog,
    rewards: Array,
    target: TargetPolicy,
    method: str,
    *,
    floor: float = 0.0,
    cutoff: float = 10.0,
    bounded: bool = True,
) -> Scores:
    """Score every round; ``rewards`` are between 0 and 1 if ``bounded``."""
    n = len(log)
    phi, ratios, mass, below, above = (np.zeros(n) for _ in range(5))
    shifts = _shifts(log, method, floor, cutoff) if bounded else None
    low, high = (np.zeros((0 if shifts is None else len(shifts), n)) for _ in range(2))
    for block in blocks(log, rewards, floor, 0.5 if bounded else 0.0):
        rows = block.rows
        chosen = log.actions[rows, None]
        pi = target.of(block)
        y = rewards[rows]
        drawn = log.probability[rows]
        is_stated = ~np.isnan(drawn)
        w = np.where(is_stated, _at(pi, chosen) / drawn, 0.0)
        ratios[rows] = w
        # an option that is not recorded may have been playable
        playable = ~block.known[:, None] | (block.low > 0.0)
        mass[rows] = is_stated * np.where(playable, pi, 0.0).sum(axis=1)
        fit = np.zeros_like(block.fit) if method in ("ips", "snips") else block.fit
        fit_chosen, fit_target = _at(fit, chosen), (pi * fit).sum(axis=1)
        used = w
        if method in BIASED:
            with np.errstate(divide="ignore", invalid="ignore"):
                all_ratios = np.where(pi > 0.0, pi / block.low, 0.0)  # inf where not known
                lost = pi * (1.0 - _kept(method, all_ratios, cutoff))
            used = w * _kept(method, w, cutoff)
            below[rows] = (lost * block.fit).sum(axis=1)
            above[rows] = (lost * (1.0 - block.fit)).sum(axis=1)
            uncertain = ~block.known
            below[rows][uncertain] = np.nan
            above[rows][uncertain] = np.nan
        phi[rows] = fit_target + used * (y - fit_chosen)
        if shifts is None:
            continue
        if method in BIASED:
            low[:, rows] = (phi[rows] + shifts[:, None]) / (1.0 + shifts[:, None])
            high[:, rows] = (1.0 - phi[rows] + shifts[:, None]) / (1.0 + shifts[:, None])
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(pi > 0.0, block.low / pi, np.inf)  # 1 / w of every option, at least
        for j, k in enumerate(shifts.tolist()):
            limit = k * room if k > 0.0 else np.zeros_like(room)
            for out, values, fits in ((low, y, fit), (high, 1.0 - y, 1.0 - fit)):
                cut = np.minimum(fits, limit)
                score = w * (values - _at(cut, chosen)) + (pi * cut).sum(axis=1)
                out[j, rows] = (score + k) / (1.0 + k)
    if method == "snips":
        mean = ratios.mean()
        value = (ratios @ rewards) / ratios.sum() if mean > 0.0 else np.nan
        phi = value + ratios * (rewards - value) / mean if mean > 0.0 else np.full(n, np.nan)
    legs = None if shifts is None else Legs(low, high, shifts)
    return Scores(phi, ratios, mass, legs, below, above)


def _at(table: Array, columns: NDArray[np.int64]) -> Array:
    return np.asarray(np.take_along_axis(table, columns, axis=1)[:, 0])


def _kept(method: str, ratios: Array, cutoff: float) -> Array:
    """Share of a ratio that a biased method keeps."""
    if method == "switch":
        return np.where(ratios <= cutoff, 1.0, 0.0)
    return np.asarray(cutoff / (cutoff + ratios * ratios))


def _shifts(log: DecisionLog, method: str, floor: float, cutoff: float) -> Array | None:
    """Lower bounds -k of the scores; none if a method has no martingale of its scores."""
    if method == "snips":
        return None
    if method == "switch":
        return np.array([cutoff])
    if method == "shrinkage":  # the largest value of lambda w / (lambda + w^2)
        return np.array([0.5 * np.sqrt(cutoff)])
    if method == "ips" or (floor == 0.0 and not log.recorded.known.any()):
        return np.zeros(1)
    return np.array(SHIFTS)


def conditional_variances(
    log: DecisionLog,
    rewards: Array,
    target: TargetPolicy,
    control: TargetPolicy | None,
    start: float,
) -> Array:
    """Sum over options of (pi - pi')^2 / p, up to a factor the variance of a score; nan if unknown.

    Shape (n,); the weights of adaptively weighted estimators depend on it.
    """
    found = np.full(len(log), np.nan)
    for block in blocks(log, rewards, 0.0, start):
        apart = target.of(block) - (0.0 if control is None else control.of(block))
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(apart != 0.0, apart * apart / block.low, 0.0)
        found[block.rows] = np.where(block.known, terms.sum(axis=1), np.nan)
    return found


def informative(ratios: Array, rewards: Array) -> NDArray[np.bool_]:
    """Find rounds that tell how much scores vary: played, and not with the usual reward.

    The usual reward is the most frequent one: of rare clicks, those that were not clicked on tell
    nothing about the variance.
    """
    values, counts = np.unique(rewards, return_counts=True)
    return np.asarray((ratios > 0.0) & (rewards != values[counts.argmax()]))


def adaptive_weights(variances: Array, rule: str, decay: float) -> Array:
    """Weights h of rounds with given conditional variances.

    "stable" weights are inverse standard deviations; every round then has about the same share of
    the variance.  "two-point" weights (Hadad et al. 2021) give later rounds of rare options more,
    where probabilities fall like t^-decay.
    """
    if rule == "constant":
        return np.ones_like(variances)
    with np.errstate(divide="ignore"):
        p = np.where(variances > 0.0, 1.0 / variances, 0.0)
    shares = np.ones_like(p)
    if rule == "two-point":
        n = float(len(p))
        t = np.arange(1.0, n + 1.0)
        rest = 1.0 - decay
        bad = rest / (rest + n * (t / n) ** decay - t)
        good = 1.0 / (1.0 + n - t)
        q = np.minimum(p, 1.0)
        lam = (1.0 - q) * bad + q * good
        shares = lam * np.concatenate([[1.0], np.cumprod(1.0 - lam)[:-1]])
    return np.asarray(np.sqrt(p * shares))
