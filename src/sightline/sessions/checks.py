"""Statistical checks of a live experiment, from its history in blocks of rounds.

Every check has a null hypothesis, such as "the mean reward of every option stays as it is", and a
p-value that is valid at all times: it ever falls to the level with a probability of at most the
level if the null hypothesis is true, however often it is looked at.  The p-value is 1 / E for an
e-process E of :mod:`sightline.core.e_processes`, where the formulas are.  The levels of all checks
add up to ``TOTAL_LEVEL``.  What each check assumes is on the page ``docs/checks.md``.

| symbol                              | here                          | shape     |
|-------------------------------------|-------------------------------|-----------|
| rewards of option a in block b      | ``Data.cells``                | (k, b)    |
| rewards before and after each change point | ``segments``           | (k, b - 1) |
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sightline.core import e_processes as e
from sightline.core.e_processes import Sample
from sightline.core.likelihood import Bernoulli, Likelihood, Poisson
from sightline.sessions.decisions import Check
from sightline.sessions.estimates import Estimates
from sightline.sessions.history import (
    COUNT,
    FIRST_LENGTH,
    HIGH,
    LOW,
    MEAN,
    MISSING,
    SQUARES,
    BlockStatistics,
)
from sightline.sessions.options import Options

Array = NDArray[np.float64]

#: Names of the checks, in the order of their sentences.
NAMES = ("scale", "drift", "fit", "missing", "outliers", "estimates", "traffic", "delays")
#: Probability of a false alarm of any check in the life of an experiment.
TOTAL_LEVEL = 0.01
#: Level of each check.
LEVEL = TOTAL_LEVEL / len(NAMES)

# Least number of rewards on both sides of a change point, if their distribution is not known.
_LEAST = 20
# Least number of blocks on both sides of a change of scale, and degrees of freedom of a block.
_LEAST_BLOCKS, _LEAST_SPARE = 3, 10
# Least ratio of standard deviations that is another scale, and of delays that have grown.
_OTHER_SCALE, _LONGER = 5.0, 1.5
# Most options of the saturated model, factors in pairs, and columns of a pair.
_MOST_FITTED, _MOST_FACTORS, _MOST_COLUMNS = 100, 10, 16
_MOST_NAMED = 3  # options in a sentence
# Least number of rewards, and least ratio to the second largest deviation, of an outlier.
_MANY, _ALONE = 100, 5.0
_DAYS = 2 * 86400.0  # a shorter history has times of day


@dataclass(frozen=True, eq=False)
class Data:
    """What the checks look at."""

    options: Options
    rows: Array  # shape (k, d): observation rows of the options, in the coordinates of the model
    likelihood: Likelihood | None  # None for normal rewards of a known level
    # Shape (k,): noise levels of the options; None if unknown.
    noise: Array | None
    weights: Array  # shape (k,): largest noise level over that of each option
    blocks: BlockStatistics
    most: int  # blocks that the table can have
    waits: bool  # whether rewards wait until their window closes
    unanswered: Array  # shape (k,): old decisions without a reward
    estimates: Estimates | None

    @functools.cached_property
    def cells(self) -> Sample:
        """Rewards of every option in every block, shape (k, b)."""
        return _sample(self.blocks.cells.transpose(1, 0, 2))

    @functools.cached_property
    def totals(self) -> Sample:
        """Rewards of every option, shape (k,)."""
        return _over_blocks(self.cells)

    @functools.cached_property
    def clicks(self) -> bool:
        """Whether all rewards are 0 or 1."""
        return self.options.observations is None and are_clicks(self.totals)


class Failure(NamedTuple):
    """Evidence against a null hypothesis: log E, and a sentence if it is large."""

    evidence: float
    sentence: Callable[[], tuple[str, tuple[str, ...]]]


class NotMade(Exception):  # noqa: N818 - no error: it carries the reason
    """The check cannot be made; the message says why."""


def _sample(cells: Array) -> Sample:
    return Sample(*(cells[..., i] for i in (COUNT, MEAN, SQUARES, LOW, HIGH)))


def _around(cells: Sample) -> tuple[Array, Array, Array]:
    """Mean of every option, shape (k, 1), and sums and squares of rewards less it, (k, b)."""
    total = cells.n.sum(axis=1, keepdims=True)
    centre = (cells.n * cells.mean).sum(axis=1, keepdims=True) / np.maximum(total, 1.0)
    apart = np.where(cells.n > 0.0, cells.mean - centre, 0.0)
    sums = cells.n * apart
    return centre, sums, cells.squares + sums * apart


def _combined(centre: Array, columns: list[Array], low: Array, high: Array) -> Sample:
    """Make a sample from number, sum and sum of squares of rewards less a centre."""
    n, sums, squares = columns
    mean = sums / np.maximum(n, 1.0)
    some = n > 0.0
    within = np.maximum(squares - sums * mean, 0.0)
    ends = (np.where(some, end, 0.0) for end in (low, high))
    return Sample(n, np.where(some, centre + mean, 0.0), within, *ends)


def _over_blocks(cells: Sample) -> Sample:
    """Pool all blocks."""
    if cells.n.shape[1] == 0:
        return Sample(*(np.zeros(len(cells.n)) for _ in Sample._fields))
    centre, sums, squares = _around(cells)
    low, high = _ends(cells)
    columns = [array.sum(axis=1) for array in (cells.n, sums, squares)]
    return _combined(centre[:, 0], columns, low.min(axis=1), high.max(axis=1))


def _ends(cells: Sample) -> tuple[Array, Array]:
    some = cells.n > 0.0
    return np.where(some, cells.low, np.inf), np.where(some, cells.high, -np.inf)


def segments(cells: Sample) -> tuple[Sample, Sample]:
    """Pool the blocks before and after every change point, shape (k, b - 1)."""
    centre, sums, squares = _around(cells)
    low, high = _ends(cells)
    found = []
    # forwards, and backwards from the end
    for order, kept in (
        (slice(None), slice(None, -1)),
        (slice(None, None, -1), slice(-2, None, -1)),
    ):
        columns = [
            np.cumsum(array[:, order], axis=1)[:, kept] for array in (cells.n, sums, squares)
        ]
        lows = np.minimum.accumulate(low[:, order], axis=1)[:, kept]
        highs = np.maximum.accumulate(high[:, order], axis=1)[:, kept]
        found.append(_combined(centre, columns, lows, highs))
    return found[0], found[1]


def are_clicks(totals: Sample) -> bool:
    """Whether all rewards are 0 or 1: then the sum of their squares is their sum."""
    within = totals.n * totals.mean * (1.0 - totals.mean)
    inside = (totals.low >= 0.0) & (totals.high <= 1.0)
    same = np.abs(totals.squares - within) <= 1e-9 * np.maximum(totals.n, 1.0)
    return bool((inside & same).all() and totals.n.sum() > 0)


def checks_of(data: Data) -> tuple[Check, ...]:
    """Make all checks, in the order of ``NAMES``."""
    found: dict[str, Check] = {}
    for name in NAMES:
        check: Callable[[Data], Failure] = _CHECKS[name]
        try:
            if name in ("fit", "estimates") and any(
                one in found and found[one].passed is False for one in ("scale", "drift")
            ):
                raise NotMade("Not checked while rewards change: means of all rewards mix both.")
            with np.errstate(all="ignore"):  # features and rewards near the limits of floats
                failure = check(data)
            if math.isnan(failure.evidence):
                raise NotMade(_TOO_LARGE)
        except (NotMade, np.linalg.LinAlgError) as reason:
            why = str(reason) if isinstance(reason, NotMade) else _TOO_LARGE
            found[name] = Check(name, None, math.nan, LEVEL, why)
            continue
        p_value = min(math.exp(-max(failure.evidence, 0.0)), 1.0)
        if p_value > LEVEL:
            found[name] = Check(name, True, p_value, LEVEL, _PASSED[name])
        else:
            found[name] = Check(name, False, p_value, LEVEL, *failure.sentence())
    return tuple(found.values())


_TOO_LARGE = "Not checked: numbers are too large or too small to compute with."
_PASSED = {
    "scale": "The scale of rewards has not changed.",
    "drift": "Rewards have not changed over time.",
    "fit": "Rewards agree with the model.",
    "missing": "Rewards are missing equally often for all options.",
    "outliers": "No single reward decides an estimate.",
    "estimates": "Estimates agree with the means of the rewards.",
    "traffic": "Options are chosen as often as their probabilities say.",
    "delays": "Rewards take as long as before.",
}


def _needs_cells(data: Data) -> None:
    if data.options.stream:
        raise NotMade("Not checked: options are new in every round, and have no history.")
    if data.blocks.cells.shape[1] == 0:
        raise NotMade("Not checked: there are too many options to keep their history.")


def _needs_rewards(data: Data) -> None:
    _needs_cells(data)
    if data.options.per_arm > 1:
        raise NotMade(f"Not checked: options show {data.options.per_arm} numbers.")


def _needs_blocks(data: Data) -> None:
    _needs_rewards(data)
    if len(data.blocks.made) < 2:
        raise NotMade("Not checked yet: there are too few rounds.")


def _weights(data: Data) -> Array:
    blocks = data.blocks
    doublings = (blocks.length // FIRST_LENGTH).bit_length() - 1
    return e.log_weights(len(blocks.made) - 1, doublings, data.most)


def _scaled(sample: Sample, weights: Array) -> Sample:
    """Rewards times the weights of their options, which have the same noise then."""
    w = weights if sample.n.ndim == 1 else weights[:, None]
    return Sample(
        sample.n, sample.mean * w, sample.squares * w * w, sample.low * w, sample.high * w
    )


def _drift(data: Data) -> Failure:
    """Test whether mean rewards of options change at some time."""
    _needs_blocks(data)
    before, after = segments(data.cells)
    if data.clicks:
        whole = data.totals.total[:, None], (data.totals.n - data.totals.total)[:, None]
        each = (
            e.log_clicks(before.total, before.n - before.total)
            + e.log_clicks(after.total, after.n - after.total)
            - e.best_clicks(*whole)
        )
    elif isinstance(data.likelihood, Poisson):
        each = (
            e.log_counts(before.total, before.n)
            + e.log_counts(after.total, after.n)
            - e.best_counts(data.totals.total[:, None], data.totals.n[:, None])
        )
    elif data.noise is not None:
        each = e.log_change_known(before, after, data.noise[:, None])
    else:
        each = _without_outliers(e.log_change_unknown, before, after)
    evidence, points, changed = e.log_any_change(each, _weights(data))
    return Failure(evidence, lambda: _changed(data, before, after, points, changed))


def _without_outliers(
    ratio: Callable[[Sample, Sample], Array], before: Sample, after: Sample
) -> Array:
    """Log E, or that without the extreme rewards of both samples, if it is smaller.

    A smaller number is valid as well.  It keeps one large reward of a short segment from being
    taken for a change, where the distribution of rewards is not known.
    """
    enough = np.minimum(before.n, after.n) >= _LEAST
    robust = ratio(before.without_extremes(), after.without_extremes())
    return np.where(enough, np.minimum(ratio(before, after), robust), -np.inf)


def _changed(
    data: Data, before: Sample, after: Sample, points: Array, changed: Array
) -> tuple[str, tuple[str, ...]]:
    """Sentence about the most probable change point: when, which options, and their means."""
    s = int(points.argmax())
    likely = np.flatnonzero(changed[:, s] >= 0.5)
    if len(likely) == 0:
        likely = np.array([changed[:, s].argmax()])
    likely = likely[np.argsort(-changed[likely, s], kind="stable")]
    when = date_of_block(data.blocks, s + 1)
    format_ = _number_format(data)
    parts = [
        f"{_label(data, arm)} {_verb(data)} {format_(after.mean[arm, s])} since about {when}, "
        f"{format_(before.mean[arm, s])} before"
        for arm in likely[:_MOST_NAMED]
    ]
    more = f"; so have {len(likely) - _MOST_NAMED} more" if len(likely) > _MOST_NAMED else ""
    return (
        f"Rewards have changed: {'; '.join(parts)}{more}. Estimates mix both times: find out what "
        "has changed, and begin again if it lasts.",
        tuple(_label(data, arm) for arm in likely),
    )


def date_of_block(blocks: BlockStatistics, row: int) -> str:
    """Date of the first decision of a block, in UTC; with the time in a short history."""
    known = blocks.made[np.isfinite(blocks.made[:, 0])]
    later = blocks.made[row:, 0]
    begins = later[np.isfinite(later)][0]
    moment = datetime.fromtimestamp(float(begins), UTC)
    text = f"{moment.day} {moment:%B %Y}"
    short = known[:, 1].max() - known[:, 0].min() < _DAYS
    return f"{text}, {moment:%H:%M} UTC" if short else text


def _label(data: Data, arm: Any) -> str:
    return data.options.labels[int(arm)]


def _verb(data: Data) -> str:
    if data.options.observations is not None:
        return "has a mean outcome of"
    return "converts" if data.clicks else "has a mean reward of"


def _number_format(data: Data) -> Callable[[float], str]:
    if data.clicks:
        return lambda mean: f"{100 * mean:.1f} %" if mean >= 0.01 else f"{100 * mean:.2g} %"
    return lambda mean: f"{mean:.4g}"


def _scale(data: Data) -> Failure:
    """Test whether the spread of rewards changes by a large factor at some time.

    The logarithm of the spread of every block is one number, and its variation from block to block
    is the noise, so that heavy tails do not look like a change.
    """
    _needs_blocks(data)
    if data.clicks:
        raise NotMade("Not checked: rewards are clicks, which have one scale.")
    cells = data.cells
    spare = np.maximum(cells.n - 1.0, 0.0)
    freedom = np.maximum(spare.sum(axis=0), 1.0)
    variance = (cells.squares * data.weights[:, None] ** 2).sum(axis=0) / freedom
    size = (cells.n * cells.mean**2).sum(axis=0) / np.maximum(cells.n.sum(axis=0), 1.0)
    known = (spare.sum(axis=0) >= _LEAST_SPARE) & (variance > 1e-24 * size) & (variance > 0.0)
    if known.sum() < 2 * _LEAST_BLOCKS:
        raise NotMade("Not checked yet: there are too few rewards.")
    logs = 0.5 * np.log(np.where(known, variance, 1.0))[None]
    before, after = segments(Sample(known[None] * 1.0, logs, 0.0 * logs, logs, logs))
    enough = np.minimum(before.n, after.n) >= _LEAST_BLOCKS
    other = np.abs(after.mean - before.mean) >= math.log(_OTHER_SCALE)
    each = np.where(enough & other, e.log_change_unknown(before, after), -np.inf)
    evidence, points, _ = e.log_any_change(each, _weights(data))

    def sentence() -> tuple[str, tuple[str, ...]]:
        s = int(points.argmax())
        factor = math.exp(after.mean[0, s] - before.mean[0, s])
        times = f"{factor:,.0f} times" if factor >= 1.0 else f"1/{1.0 / factor:,.0f} of"
        return (
            f"Rewards have another scale: since about {date_of_block(data.blocks, s + 1)} their "
            f"spread is about {times} that of before. Check their unit, such as percent in place "
            "of a fraction.",
            (),
        )

    return Failure(evidence, sentence)


def _fit(data: Data) -> Failure:
    """Test whether mean rewards of options are those of the linear model."""
    _needs_rewards(data)
    totals = data.totals
    played = totals.n > 0.0
    rows, totals = data.rows[played], Sample(*(column[played] for column in totals))
    if len(rows) <= np.linalg.matrix_rank(rows):
        raise NotMade("Not checked: every option has a mean of its own in the model.")
    saturated, with_columns = _fit_tests(data, rows, totals, played)
    pairs = missing_pairs(data.options, data.rows)
    found = {pair: with_columns(columns[played]) for pair, columns in pairs.items()}
    alternatives = [saturated()] if len(rows) <= _MOST_FITTED else []
    if found:
        alternatives.append(float(e.log_sum(np.array(list(found.values())))) - math.log(len(found)))
    if not alternatives:
        raise NotMade(f"Not checked: there are more than {_MOST_FITTED} options.")
    evidence = float(e.log_sum(np.array(alternatives))) - math.log(len(alternatives))

    def sentence() -> tuple[str, tuple[str, ...]]:
        best = max(found, key=lambda pair: found[pair], default=None)
        if best is not None and found[best] >= math.log(2.0 * len(found) / LEVEL):
            return f"Main effects are not enough: add the interaction {' x '.join(best)}.", ()
        return (
            "Rewards do not agree with the model: mean rewards of options are not linear in their "
            "features. Add features, or take options by name only.",
            (),
        )

    return Failure(evidence, sentence)


def _fit_tests(
    data: Data, rows: Array, totals: Sample, played: NDArray[np.bool_]
) -> tuple[Callable[[], float], Callable[[Array], float]]:
    """Log E of a mean for every option, and of further columns, against the linear model."""
    kind, count, total = data.likelihood, totals.n, totals.total
    link = None
    if isinstance(kind, Bernoulli) and kind.link == "logistic":
        link = e.CLICKS
        each = e.log_clicks(total, count - total)
    elif isinstance(kind, Poisson):
        link = e.COUNTS
        each = e.log_counts(total, count)
    if link is not None:
        best = e.best_linear(link, rows, count, total)
        return (
            lambda: float(each.sum()) - best,
            lambda columns: e.log_linear(link, rows, columns, count, total) - best,
        )
    weights = data.weights[played]
    noise: Array | None
    if data.clicks:  # their level follows from their rate; asymptotic
        rate = (total + 2.0) / (count + 4.0)
        noise, sample = np.sqrt(rate * (1.0 - rate)), totals
    elif data.noise is not None:
        noise, sample = data.noise[played], totals
    else:
        noise, sample, rows = None, _scaled(totals, weights), rows * weights[:, None]
    scale = np.ones(len(rows)) if noise is not None else weights

    def numbers(columns: Array) -> float:
        return e.log_fit_of_numbers(rows, columns * scale[:, None], sample, noise)

    return lambda: numbers(np.eye(len(rows))), numbers


#: Columns by options: they take singular value decompositions.
_PAIRS: WeakKeyDictionary[Options, dict[tuple[str, str], Array]] = WeakKeyDictionary()


def missing_pairs(options: Options, rows: Array) -> dict[tuple[str, str], Array]:
    """Columns of the interactions of two factors that the model has not.

    Orthonormal columns in the space of all cells of the two factors, without the span of the model,
    scaled to a mean square of 1.
    """
    if options.levels is None or len(options.levels[0]) > _MOST_FACTORS:
        return {}
    known = _PAIRS.get(options)
    if known is not None:
        return known
    found: dict[tuple[str, str], Array] = {}
    u, singular, _ = np.linalg.svd(rows, full_matrices=False)
    basis = u[:, singular > 1e-9 * singular[0]]
    for pair in itertools.combinations(options.levels[0], 2):
        cells = [tuple(row[factor] for factor in pair) for row in options.levels]
        names = sorted(set(cells), key=str)
        indicators = np.array([[float(cell == name) for name in names] for cell in cells])
        left = indicators - basis @ (basis.T @ indicators)
        u, singular, _ = np.linalg.svd(left, full_matrices=False)
        columns = u[:, singular > 1e-6][:, :_MOST_COLUMNS] * math.sqrt(len(rows))
        if columns.shape[1]:
            found[pair[0], pair[1]] = columns
    _PAIRS[options] = found
    return found


def _missing(data: Data) -> Failure:
    """Test whether rewards of some options are missing more often."""
    _needs_cells(data)
    k = len(data.options)
    table = data.blocks.cells.sum(axis=0) if len(data.blocks.cells) else np.zeros((k, 6))
    there, missing = table[:, COUNT], table[:, MISSING] + data.unanswered
    shown = there + missing > 0.0
    if shown.sum() < 2:
        raise NotMade("Not checked: fewer than two options have decisions that are closed.")
    evidence = e.log_different_shares(missing[shown], there[shown])

    def sentence() -> tuple[str, tuple[str, ...]]:
        share = np.where(shown, missing / np.maximum(there + missing, 1.0), np.nan)
        excess = missing - (there + missing) * missing.sum() / (there + missing).sum()
        arm = int((excess / np.sqrt(np.maximum(there + missing, 1.0))).argmax())
        others = shown & (np.arange(k) != arm)
        rest = missing[others].sum() / (there + missing)[others].sum()
        return (
            f"Rewards are missing for {100 * share[arm]:.3g} % of the decisions for "
            f"{_label(data, arm)}, and for {100 * rest:.3g} % of the others: whether a reward is "
            "told depends on the option. Check how its rewards are recorded.",
            (_label(data, arm),),
        )

    return Failure(evidence, sentence)


def _outliers(data: Data) -> Failure:
    """Test whether one reward decides the mean of an option."""
    _needs_rewards(data)
    totals = data.totals
    if data.clicks or isinstance(data.likelihood, Poisson):
        raise NotMade("Not checked: rewards are clicks or counts, which have no outliers.")
    if data.blocks.cells[..., 0].size < 2:
        raise NotMade("Not checked yet: there are too few rewards.")
    value = np.where(totals.high - totals.mean >= totals.mean - totals.low, totals.high, totals.low)
    without = totals.without(value)
    # it decides if it moves the mean by more than its standard error
    decides = np.abs(totals.mean - without.mean) * without.n >= np.sqrt(without.squares)
    if data.noise is None:
        each = e.log_outlier(totals)
        # of rewards with heavy tails, one is often the largest by far
        decides &= _is_alone(data.cells, totals.mean) & (totals.n.sum() >= _MANY)
    else:
        each = e.log_outlier_known(totals, data.noise)
    each = np.where(decides, each, 0.0) - math.log(len(totals.n))
    arm = int(each.argmax())

    def sentence() -> tuple[str, tuple[str, ...]]:
        return (
            f"One reward of {_label(data, arm)} is {value[arm]:.4g}: without it the mean would be "
            f"{without.mean[arm]:.4g} in place of {totals.mean[arm]:.4g}. Check it, and amend it "
            "if it is wrong.",
            (_label(data, arm),),
        )

    return Failure(float(each[arm]), sentence)


def _is_alone(cells: Sample, mean: Array) -> NDArray[np.bool_]:
    """Whether the largest deviation of an option is much larger than those of all other cells."""
    away = np.maximum(cells.high - mean[:, None], mean[:, None] - cells.low)
    largest = np.where(cells.n > 0.0, away, 0.0)
    first, second = np.sort(largest, axis=None)[:-3:-1]
    own = largest.max(axis=1)
    return np.asarray((own == first) & (own >= _ALONE * second))


def _estimates(data: Data) -> Failure:
    """Test whether the estimate of an option differs from the mean of its rewards."""
    _needs_rewards(data)
    found, totals = data.estimates, data.totals
    if data.options.observations is not None or found is None:
        raise NotMade("Not checked: the policy has no estimates of the rewards that were told.")
    n = float(totals.n.sum())
    # radius of an ellipsoid of the rewards that the policy has learned from
    radius = math.sqrt(2.0 * math.log(1.0 / LEVEL) + data.rows.shape[1] * math.log1p(n))
    reach = radius * found.standard_errors
    low, high = found.means - reach, found.means + reach
    total, count = totals.total, totals.n
    if data.clicks:
        each = e.log_other_clicks(total, count - total, low, high)
    elif isinstance(data.likelihood, Poisson):
        each = e.log_other_counts(total, count, low, high)
    else:
        each = e.log_other_mean(totals, low, high, data.noise)
    each = np.where(count > 0.0, each, -np.inf)
    arm = int(each.argmax())

    def sentence() -> tuple[str, tuple[str, ...]]:
        format_ = _number_format(data)
        return (
            f"The estimate of {_label(data, arm)} is {format_(float(found.means[arm]))}, and the "
            f"mean of its rewards is {format_(float(totals.mean[arm]))}: the model or the prior of "
            "the policy is wrong, or the policy learns from too few of the rewards.",
            (_label(data, arm),),
        )

    return Failure(float(e.log_sum(each)) - math.log(len(each)), sentence)


def _traffic(data: Data) -> Failure:
    """Test whether options are chosen as often as their probabilities say."""
    _needs_cells(data)
    drawn, surplus, variance = data.blocks.traffic
    if not variance.any():
        raise NotMade("Not checked: no decision was drawn with known probabilities of all options.")
    drawable = drawn > 0.0
    evidence = e.log_traffic(surplus[drawable], variance[drawable])

    def sentence() -> tuple[str, tuple[str, ...]]:
        arm = int((np.abs(surplus) / np.sqrt(np.maximum(variance, 1.0))).argmax())
        more = "more" if surplus[arm] > 0.0 else "fewer"
        return (
            f"{_label(data, arm)} was chosen {abs(surplus[arm]):,.0f} times {more} than the "
            "probabilities of the policy say: they cannot be used to evaluate other policies.",
            (_label(data, arm),),
        )

    return Failure(evidence, sentence)


def _delays(data: Data) -> Failure:
    """Test whether rewards of later decisions take longer."""
    if data.waits:
        raise NotMade("Not checked: rewards wait until their window closes.")
    if len(data.blocks.made) < 2:
        raise NotMade("Not checked yet: there are too few rounds.")
    count, mean, squares = data.blocks.delays.T[:, None, :]
    before, after = segments(Sample(count, mean, squares, mean, mean))
    each = e.log_change_unknown(before, after)
    enough = np.minimum(before.n, after.n) >= _LEAST
    longer = after.mean - before.mean >= math.log(_LONGER)
    each = np.where(enough & longer, each, -np.inf)
    evidence, points, _ = e.log_any_change(each, _weights(data))

    def sentence() -> tuple[str, tuple[str, ...]]:
        s = int(points.argmax())
        late, early = (_duration(math.expm1(part.mean[0, s])) for part in (after, before))
        when = date_of_block(data.blocks, s + 1)
        return f"Rewards take longer: typically {late} since about {when}, {early} before.", ()

    return Failure(evidence, sentence)


def _duration(seconds: float) -> str:
    for size, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.2g} {unit}"
    return f"{seconds:.2g} seconds"


_CHECKS: dict[str, Callable[[Data], Any]] = {
    "scale": _scale,
    "drift": _drift,
    "fit": _fit,
    "missing": _missing,
    "outliers": _outliers,
    "estimates": _estimates,
    "traffic": _traffic,
    "delays": _delays,
}
