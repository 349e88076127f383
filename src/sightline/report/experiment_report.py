"""Report on an experiment for readers who have not run it: one page, as HTML or Markdown.

All statements about options rest on one statistic: the confidence ellipsoid of the parameter at
level 1 - delta, from all rewards (:mod:`sightline.sessions.effects`).  An option is settled to be
best if the intervals of its differences to all other options exclude 0, which is the same as
``SessionView.tested_at(delta)``.  All intervals of the page that use the model hold together, at
all rounds.  Beside them stand intervals that need no model (:func:`sightline.evaluate`), where the
log supports them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood import Bernoulli, Gaussian, LikelihoodKind, Poisson, kind_of
from sightline.evaluation.evaluate import Evaluation, evaluate
from sightline.files import write_text_atomically
from sightline.report import charts
from sightline.report.amounts import (
    DAY,
    HOUR,
    MINUS,
    Amounts,
    count,
    duration,
    listed,
    moment,
    number,
    share,
    total,
)
from sightline.report.document import (
    Chart,
    Document,
    DocumentPart,
    TableCell,
    TableOfCells,
    to_html,
    to_markdown,
)
from sightline.report.earnings import MOST_ENTRIES, Earnings, earnings
from sightline.report.experiment_analysis import Analysis, ContextBlock, Facts
from sightline.sessions.designs import GRAND_MEAN
from sightline.sessions.options import pairs_of
from sightline.sessions.state import least_evident
from sightline.validation import one_of
from sightline.version import __version__

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

_NONE = "\N{EN DASH}"  # a cell without a number
_MOST_ROWS = 20  # of a table of options or effects
_MOST_CONTEXTS = 10  # tables of options
_MOST_NAMES = 12  # in a list
_COLOURS = 6  # options with a colour of their own
_MOST_DATES = 31  # rows of the table of days
_MOST_BINS = 92  # days of a chart; more are weeks
_WEEK = 7 * DAY
_MOST_EVALUATED = 10_000_000  # decisions times options that are evaluated without the model


@dataclass(frozen=True, eq=False)
class Report:
    """A report on an experiment: what :meth:`sightline.Session.report` returns.

    Printed, it is Markdown; notebooks show it as HTML.

    Attributes
    ----------
    html : str
        A page that needs no other files and can be printed.
    markdown : str
        The same without charts.
    """

    html: str
    markdown: str

    def __str__(self) -> str:
        return self.markdown

    def _repr_html_(self) -> str:
        import html

        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" style="width:100%;height:40em;border:0"></iframe>'


def experiment_report(
    facts: Facts, delta: float = 0.05, path: str | PathLike[str] | None = None
) -> Report:
    """Make the report; the suffix of ``path``, ``.html`` or ``.md``, decides what is written."""
    suffix = None
    if path is not None:
        suffix = one_of("suffix of the file", Path(path).suffix.lower(), (".html", ".md"))
    document = _document(facts, delta)
    report = Report(to_html(document), to_markdown(document))
    if path is not None:
        write_text_atomically(path, report.html if suffix == ".html" else report.markdown)
    return report


def _document(facts: Facts, delta: float) -> Document:
    one = Analysis(facts, delta)
    answer, *more = _answer(one)
    parts = (
        _question(one),
        DocumentPart("Answer", tuple(more), lead=answer),
        _options(one),
        _earned(one),
        _traffic(one),
        _effects(one),
        _checks(one),
        _missing(one),
        _method(one),
    )
    return Document(facts.title, facts.description, parts)


# 1. What was asked


def _question(one: Analysis) -> DocumentPart:
    options, facts = one.options, one.facts
    rows = [("Options", _options_in_words(one))]
    grids: list[TableOfCells] = []
    if options.levels is not None:
        levels: dict[str, list[str]] = {}
        for row in options.levels:
            for factor, level in row.items():
                known = levels.setdefault(factor, [])
                if str(level) not in known:
                    known.append(str(level))
        cells = tuple(
            (TableCell(f), TableCell(listed(values, _MOST_NAMES))) for f, values in levels.items()
        )
        grids.append(TableOfCells(("Factor", "Levels"), cells))
    if facts.control:
        names = dict.fromkeys(one.name(row) for row in facts.control)
        rows.append(("Control", listed(names)))
    rows.append(("Reward", _reward_in_words(one)))
    period = _period(one)
    if period is not None:
        first, last = period
        span = duration(last - first)
        rows.append(("Period", f"{moment(first)} to {moment(last)} UTC ({span})"))
    counts = f"{count(one.asked, 'decision')}, {count(one.told, one.options.told)}"
    rows.append(("Size", counts))
    if one.told and options.observations is None and not one.is_stream:
        sum_ = float(one.view.totals.sum())
        mean = sum_ / one.told
        amounts = one.amounts.fitting([(0.0, abs(mean) or 1.0)])
        amounts = amounts._replace(places=amounts.places + (not one.amounts.rates))
        if one.amounts.rates:
            text = f"{sum_:,.0f}: {amounts.value(mean)} of decisions with a reward"
        else:
            text = f"{total(sum_, abs(sum_) / 10.0)}: {amounts.value(mean)} per decision"
        rows.append(("Conversions" if one.amounts.rates else "Total reward", text))
    first_grid = TableOfCells(("", ""), tuple((TableCell(a), TableCell(b)) for a, b in rows))
    return DocumentPart("What was asked", grids=(first_grid, *grids))


def _options_in_words(one: Analysis) -> str:
    options = one.options
    k, d = options.features.shape
    if one.is_stream:
        text = f"new in every decision, at most {k:,}, described by {count(d, 'feature')}"
        return f"{text}: {listed(options.columns, _MOST_NAMES)}"
    names = listed(dict.fromkeys(one.names), _MOST_NAMES)
    if one.is_duel:
        return f"{len(one.names):,}, compared in pairs: {names}"
    if options.contexts is not None:
        contexts = listed(options.contexts.names, _MOST_NAMES)
        distinct = len(set(one.names))
        return f"{distinct:,} in {count(len(options.contexts), 'context')} ({contexts}): {names}"
    if options.levels is not None:
        factors = len(options.levels[0])
        return f"{k:,}: combinations of {count(factors, 'factor')}"
    return f"{k:,}: {names}"


def _reward_in_words(one: Analysis) -> str:
    likelihood = one.view.likelihood
    if one.is_duel:
        return "which of the two shown options wins"
    if one.options.observations is not None:
        shown = count(one.options.per_arm, "number")
        return f"not observed itself; {shown} per decision tell about it"
    if isinstance(likelihood, Bernoulli):
        return "yes or no, such as a click (1 or 0)"
    if isinstance(likelihood, Poisson):
        return "counts"
    if one.amounts.rates:
        return "numbers; all were 0 or 1, so that means are shown as rates"
    return "numbers"


def _period(one: Analysis) -> tuple[float, float] | None:
    """Find the times of the first and the last decision."""
    frame = one.facts.decisions
    if frame is not None and len(frame):
        seconds = _seconds(frame)
        return float(seconds.min()), float(seconds.max())
    blocks = one.view.blocks
    if blocks is None or len(blocks.made) == 0 or not np.isfinite(blocks.made).any():
        return None
    made = blocks.made[np.isfinite(blocks.made).all(axis=1)]
    return float(made[:, 0].min()), float(made[:, 1].max())


def _seconds(frame: pd.DataFrame) -> Array:
    moments = frame["asked_at"].dt.tz_localize(None).to_numpy("datetime64[us]")
    return np.asarray(moments.astype(np.int64) / 1e6)


# 2. Answer


def _answer(one: Analysis) -> tuple[str, ...]:
    """Sentences: the answer, then what is not known, and what is at stake."""
    if one.is_stream:
        return ("Options are new in every decision, so that none is best: see the effects.",)
    if one.told == 0:
        return (f"Nothing is known yet: no {one.options.told} has arrived.",)
    sentences: list[str] = []
    if one.options.contexts is None:
        sentences += _best_in_words(one, one.blocks[0])
    else:
        settled = sum(block.settled for block in one.blocks)
        n = len(one.blocks)
        sentences.append(f"The best option is settled in {settled} of {count(n, 'context')}.")
        for block in one.blocks[:_MOST_CONTEXTS]:
            sentences.append(f"{block.name}: {' '.join(_best_in_words(one, block))}")
        if n > _MOST_CONTEXTS:
            sentences.append(f"{n - _MOST_CONTEXTS:,} more contexts are not listed.")
    if one.view.contradiction:
        sentences.append(
            f"Caution: {one.view.contradiction} Nothing counts as settled, and intervals that use "
            "the model may be wrong."
        )
    if not math.isnan(one.facts.status.expected_loss):
        sentences.append(one.facts.status.at_stake(max(one.asked, 1)))
    return tuple(sentences)


def _best_in_words(one: Analysis, block: ContextBlock) -> list[str]:
    if block.best < 0:
        return ["Nothing is known yet: no reward tells about these options."]
    best = block.best
    name = one.name(best)
    offered = [row for row in block.rows.tolist() if one.offered[row]]
    if len(offered) == 1:
        return [f"{name} is the only option: {_amount_in_words(one, best)}."]
    other = block.base
    if other == best:
        ranked = [row for row in one.order(block) if row != best and one.offered[row]]
        other = ranked[0]
    apart = _difference_in_words(one, best, other)
    own = "" if one.is_duel else f": {_amount_in_words(one, best)}"
    if block.settled:
        return [f"{name} is best{own}{apart}."]
    rivals = [one.name(row) for row in block.rivals]
    first = f"Not settled yet. {name} is ahead{own}{apart}."
    if not rivals:
        return [first]
    which = (
        f"{listed(rivals)} may be better"
        if len(rivals) < len(offered) - 1
        else (
            "any of the other options may be better"
            if len(offered) > 2
            else f"{rivals[0]} may be better"
        )
    )
    return [first, f"Not known yet: {which}, by the intervals below."]


def _amount_in_words(one: Analysis, row: int) -> str:
    value, low, high = one.values[row], one.lower[row], one.upper[row]
    if math.isnan(value):
        return "how well it does is not known"
    amounts = one.amounts.fitting([(low, high)])
    ends = f"({one.level}: {amounts.range(low, high)})"
    if one.amounts.rates:
        return f"it converts {amounts.value(value)} {ends}"
    what = "events per decision" if isinstance(one.view.likelihood, Poisson) else "per decision"
    return f"it earns {amounts.value(value)} {what} {ends}"


def _difference_in_words(one: Analysis, best: int, other: int) -> str:
    if one.is_duel:
        if math.isnan(one.values[other]):
            return ""
        amounts = one.amounts.fitting([(one.lower[other], one.upper[other])])
        chances = (1.0 - one.values[other], 1.0 - one.upper[other], 1.0 - one.lower[other])
        ends = amounts.range(*chances[1:])
        return (
            f": it wins {amounts.value(chances[0])} of its duels with {one.name(other)} "
            f"({one.level}: {ends})"
        )
    value, low, high = (float(x[0]) for x in one.differences([best], other))
    if math.isnan(value) or not math.isfinite(high - low):
        return ""
    amounts = one.amounts.fitting([(low, high)])
    word = "more" if value >= 0.0 else "less"
    return (
        f", {amounts.difference(abs(value))} {word} than {one.name(other)} "
        f"({one.level}: {amounts.range(low, high, sign=True)})"
    )


# 3. Options


def _options(one: Analysis) -> DocumentPart:
    title = "Options"
    if one.is_stream:
        return DocumentPart(title, ("Options are new in every decision and are not listed.",))
    notes: list[str] = []
    grids = []
    most = _MOST_ROWS if len(one.blocks) == 1 else max(2 * _MOST_ROWS // len(one.blocks), 3)
    free = _model_free(one, most, notes)
    for block in one.blocks[:_MOST_CONTEXTS]:
        grids.append(_options_grid(one, block, most, free))
        if len(block.rows) > most:
            where = f" of {block.name}" if block.name else ""
            notes.append(
                f"The table has {most} of {len(block.rows):,} options{where}: those with "
                "the largest estimates, and the control."
            )
    if len(one.blocks) > _MOST_CONTEXTS:
        notes.append(f"Only {_MOST_CONTEXTS} of {len(one.blocks):,} contexts are shown.")
    if one.is_duel:
        notes.insert(
            0,
            "Estimates are chances to win a duel with the best option so far; shares "
            "are those of all decisions in which an option was shown.",
        )
    notes.insert(
        0,
        f"All {one.level} intervals hold together and at all times: you may look as "
        "often as you like.",
    )
    return DocumentPart(title, (), grids=tuple(grids), notes=tuple(notes))


def _shown_rows(one: Analysis, block: ContextBlock, most: int) -> list[int]:
    rows = one.order(block)
    shown = rows[:most]
    if block.base >= 0 and block.base not in shown:
        shown = [*shown[:-1], block.base]
    return shown


def _options_grid(
    one: Analysis, block: ContextBlock, most: int, free: dict[int, Evaluation]
) -> TableOfCells:
    rows = _shown_rows(one, block, most)
    everything = one.asked_of[block.rows].sum()
    if one.is_duel:
        everything = one.asked
    ends = [(one.lower[row], one.upper[row]) for row in rows if not math.isnan(one.values[row])]
    amounts = one.amounts.fitting(ends)
    axis = _axis(one, rows)
    head = ["Option", "Share", "Decisions", "Rewards", f"Estimate, {one.level} interval"]
    compares = not one.is_duel and block.base >= 0 and len(rows) > 1 and one.told > 0
    found = tuple(np.zeros(len(rows)) for _ in range(3))
    apart = one.amounts
    if compares:
        head.append("Difference to the control" if one.facts.control else "Difference to the best")
        found = one.differences(rows, block.base)
        apart = apart.fitting(zip(found[1].tolist(), found[2].tolist(), strict=True))
    has_free = any(row in free for row in rows)
    if has_free:
        head.append("Without the model")
    if one.options.told != "reward":
        head[3] = "Outcomes"
    table = []
    for i, row in enumerate(rows):
        cells = [_name_cell(one, block, row)]
        cells.append(TableCell(share(one.asked_of[row], everything)))
        cells += [
            TableCell(f"{round(one.asked_of[row]):,}"),
            TableCell(f"{round(one.told_of[row]):,}"),
        ]
        cells.append(_estimate_cell(one, amounts, row, axis))
        if compares:
            cells.append(_difference_cell(one, apart, block, row, [float(x[i]) for x in found]))
        if has_free:
            cells.append(_free_cell(amounts, free.get(row)))
        table.append(tuple(cells))
    return TableOfCells(tuple(head), tuple(table), block.name, frozenset((1, 2, 3)))


def _name_cell(one: Analysis, block: ContextBlock, row: int) -> TableCell:
    said = []
    if row == block.best:
        said.append("best" if block.settled else "best so far")
    if one.facts.control and row == block.base:
        said.append("control")
    if not one.offered[row]:
        said.append("retired")
    return TableCell(one.name(row), ", ".join(said))


def _axis(one: Analysis, rows: Sequence[int]) -> tuple[float, float]:
    """Return the ends of an axis, on which long intervals do not hide short ones."""
    known = [row for row in rows if not math.isnan(one.values[row])]
    if not known:
        return 0.0, 1.0
    values, lower, upper = (x[known] for x in (one.values, one.lower, one.upper))
    widths = upper - lower
    reach = 3.0 * float(np.median(widths)) if len(known) else 1.0
    low = max(float(lower.min()), float(values.min()) - reach)
    return low, min(float(upper.max()), float(values.max()) + reach)


def _estimate_cell(
    one: Analysis, amounts: Amounts, row: int, axis: tuple[float, float]
) -> TableCell:
    value, low, high = (float(x[row]) for x in (one.values, one.lower, one.upper))
    if math.isnan(value):
        return TableCell("not known")
    if one.is_duel and high == low:
        return TableCell(amounts.value(value))
    drawing = charts.interval(value, (low, high), axis)
    return TableCell(amounts.value(value), amounts.range(low, high), drawing)


def _difference_cell(
    one: Analysis, amounts: Amounts, block: ContextBlock, row: int, found: Sequence[float]
) -> TableCell:
    value, low, high = found
    if row == block.base:
        return TableCell(_NONE)
    if math.isnan(value) or math.isinf(high - low) or math.isnan(one.values[row]):
        return TableCell("not known")
    unit = " points" if one.amounts.rates else ""
    text = number(100.0 * value if one.amounts.rates else value, amounts.places, sign=True)
    return TableCell(text + unit, amounts.range(low, high, sign=True))


def _free_cell(amounts: Amounts, found: Evaluation | None) -> TableCell:
    if found is None or math.isnan(found.value):
        return TableCell("not known")
    if not math.isfinite(found.lower + found.upper):
        return TableCell(amounts.value(found.value), "interval not known yet")
    return TableCell(amounts.value(found.value), amounts.range(found.lower, found.upper))


def _model_free(one: Analysis, most: int, notes: list[str]) -> dict[int, Evaluation]:
    """Evaluate the options of the tables from the log alone; add notes on how, or why not."""
    log = one.log
    if log is None:
        if one.told and not one.is_duel:
            notes.append(f"There is no estimate without the model: {one.why_no_log}.")
        return {}
    blocks = one.blocks[:_MOST_CONTEXTS]
    shown = {i: _shown_rows(one, block, most) for i, block in enumerate(blocks)}
    if len(log) * log.k > _MOST_EVALUATED:
        notes.append(
            "There is no estimate without the model on this page, because there are many decisions "
            "and options: sl.evaluate computes it from an export."
        )
        return {}
    level = one.delta / len(one.names)
    method = "aipw" if log.recorded.known.all() else "dr"
    where = np.zeros(len(log), np.int64)
    if one.options.contexts is not None:
        number_of = {name: i for i, name in enumerate(one.options.contexts.names)}
        where = log.frame["context"].astype(object).map(number_of).to_numpy(np.int64)
    found: dict[int, Evaluation] = {}
    for i in shown:
        rows = np.flatnonzero(where == i)
        if len(rows) == 0:
            continue
        part = log if len(rows) == len(log) else log.take(rows)
        targets = [one.options.names[row] for row in shown[i]]
        results = evaluate(part, targets, method=method, delta=level)
        found |= dict(zip(shown[i], results, strict=True))
    known = {row: result for row, result in found.items() if math.isfinite(result.value)}
    if not known:
        notes.append(
            "The log cannot tell without the model: options had probability 0 in some decisions, "
            "or their probabilities are not known. A min_probability at the beginning of an "
            "experiment prevents this."
        )
        return {}
    notes.append(_agreement(one, known))
    if len(known) < len(found):
        notes.append(
            "Options that had probability 0 in some decisions cannot be estimated "
            "without the model."
        )
    return found


def _agreement(one: Analysis, known: dict[int, Evaluation]) -> str:
    bounded = {row: x for row, x in known.items() if math.isfinite(x.lower + x.upper)}
    if not bounded:
        return "Too few rewards have arrived for intervals without the model."
    apart = [
        one.name(row)
        for row, result in bounded.items()
        if result.upper < one.lower[row] or one.upper[row] < result.lower
    ]
    if apart:
        return (
            f"The two intervals of {listed(apart)} do not agree: the model may be wrong, and the "
            "column without the model needs no model."
        )
    return "Intervals with and without the model agree."


# 4. What it earned


def _equal_split(one: Analysis) -> Array | None:
    """Probabilities of an equal split: of every decision, or on average if that is too large."""
    view, frame = one.view, one.facts.decisions
    k = len(view.options)
    if frame is None or len(frame) * k > MOST_ENTRIES:
        shares = np.zeros(k)
        for rows in view.options.blocks:
            block = np.array(rows)
            offered = block[view.offered[block]]
            shares[offered] = view.told[block].sum() / max(one.told, 1) / max(len(offered), 1)
        return shares
    table = np.zeros((len(frame), k))
    kept: dict[bytes, Array] = {}
    for i, rows in enumerate(frame["offered"]):
        listed_ = None if rows is None or not hasattr(rows, "__len__") else np.asarray(rows)
        key = b"" if listed_ is None else listed_.tobytes()
        if key not in kept:
            share_ = np.zeros(k)
            chosen = np.arange(k) if listed_ is None else listed_
            share_[chosen] = 1.0 / len(chosen)
            kept[key] = share_
        table[i] = kept[key]
    return table


def _earned(one: Analysis) -> DocumentPart:
    title = "What it earned against an equal split"
    if one.is_stream or one.is_duel:
        what = "options that are new in every decision" if one.is_stream else "duels"
        return DocumentPart(title, (f"Not defined for {what}.",))
    if one.told == 0:
        return DocumentPart(title, (f"Not known: no {one.options.told} has arrived.",))
    equal = _equal_split(one)
    assert equal is not None
    usable = one.log if equal.ndim == 2 else None
    if equal.ndim == 2 and one.log is None and one.facts.decisions is not None:
        outcomes = (one.facts.decisions["outcome"] != "open").to_numpy()
        equal = equal[outcomes].mean(axis=0) if outcomes.any() else equal.mean(axis=0)
    found = earnings(one.view, usable, equal, one.delta, one.why_no_log)
    assert found is not None
    return DocumentPart(title, _earned_in_words(one, found), notes=_earned_notes(one, found))


def _earned_in_words(one: Analysis, found: Earnings) -> tuple[str, ...]:
    n = found.decisions
    value, low, high = found.value, found.lower, found.upper
    if one.amounts.rates:
        low, high = max(low, -1.0), min(high, 1.0)
    if math.isnan(value) or math.isinf(high - low):
        return ("Not known yet: too few rewards have arrived.",)
    if low == high == 0.0:
        return ("The options were split equally: nothing was earned or lost against that.",)
    amounts = one.amounts.fitting([(low, high)])
    width = n * (high - low)
    what = "more" if value >= 0.0 else "less"
    if one.amounts.rates or isinstance(one.view.likelihood, Poisson):
        unit = "conversions" if one.amounts.rates else "events"
        what = f"{unit} {'more' if value >= 0.0 else 'fewer'}"
    amount = total(abs(n * value), width)
    ends = f"{total(n * low, width, True)} to {total(n * high, width, True)}"
    unit = " percentage points" if one.amounts.rates else ""
    size = number((100.0 if one.amounts.rates else 1.0) * value, amounts.places, True)
    per = f"{size}{unit} per decision ({amounts.range(low, high, sign=True)})"
    sentence = (
        f"The {count(n, 'decision')} with a reward earned about {amount} {what} than an "
        f"equal split of the same traffic would have ({one.level}: {ends}): {per}."
    )
    if low <= 0.0 <= high:
        sentence += " The interval contains 0: whether it earned more is not known yet."
    return (sentence,)


def _earned_notes(one: Analysis, found: Earnings) -> tuple[str, ...]:
    if found.by_log:
        how = (
            "Estimated from the log without the model: the interval holds at all times, whichever "
            "options are good."
        )
        if found.asymptotic:
            how += " It is asymptotic, because the range of the rewards is not known."
        if found.model is not None and math.isfinite(found.model[2] - found.model[1]):
            n = found.decisions
            value, low, high = (n * x for x in found.model)
            width = high - low
            how += (
                f" By the model it is {total(value, width, True)} "
                f"({total(low, width, True)} to {total(high, width, True)})."
            )
    else:
        why = f" ({found.why_model.rstrip('.')})" if found.why_model else ""
        how = (
            f"Estimated by the model, because the log alone does not tell{why}. The interval holds "
            "at all times if the model is right."
        )
    text = "It compares expected rewards of the decisions that were made, without their luck."
    return how, text


# 5. Traffic


class _Bins(NamedTuple):
    """Periods of equal length, and the decisions in them."""

    word: str
    starts: NDArray[np.datetime64]
    labels: list[str]
    periods: NDArray[np.int64]  # shape (n,): of each decision


def _bins(seconds: Array) -> _Bins:
    first, last = float(seconds.min()), float(seconds.max())
    span = last - first
    unit, word, text = DAY, "day", "%Y-%m-%d"
    if span < 2 * HOUR:
        unit, word, text = 60.0, "minute", "%H:%M"
    elif span < 2 * DAY:
        unit, word, text = HOUR, "hour", "%m-%d %H:00"
    elif span > _MOST_BINS * DAY:
        unit, word = _WEEK, "week"
        if span > _MOST_BINS * _WEEK:
            unit, word = 52 * _WEEK, "year"
    begin = math.floor(first / unit) if word != "week" else math.floor((first - 4 * DAY) / unit)
    origin = begin * unit + (4 * DAY if word == "week" else 0.0)  # weeks begin on Monday
    index = np.floor((seconds - origin) / unit).astype(np.int64)
    starts = np.array(
        [np.datetime64(round((origin + i * unit) * 1e6), "us") for i in range(int(index.max()) + 1)]
    )
    labels = [f"{start.astype('datetime64[s]').item():{text}}" for start in starts]
    return _Bins(word, starts, labels, index)


def _traffic(one: Analysis) -> DocumentPart:
    title = "Traffic and rewards over time"
    frame = one.facts.decisions
    if frame is None:
        return DocumentPart(title, (f"Not shown: {one.facts.why_none}.",))
    if len(frame) == 0:
        return DocumentPart(title, ("There are no decisions yet.",))
    bins = _bins(_seconds(frame))
    n = len(bins.labels)
    made = np.bincount(bins.periods, minlength=n)
    told = (frame["outcome"] == "observed").to_numpy() | (frame["outcome"] == "expired").to_numpy()
    drawn = [
        Chart(
            f"Decisions per {bins.word}",
            charts.bars(f"Decisions per {bins.word}", bins.labels, made.tolist()),
        )
    ]
    mean = None
    if "reward" in frame.columns:
        rewards = frame["reward"].to_numpy(np.float64)
        told = ~np.isnan(rewards)
        sums = np.bincount(bins.periods[told], rewards[told], minlength=n)
        counts = np.bincount(bins.periods[told], minlength=n)
        mean = np.divide(sums, counts, out=np.full(n, np.nan), where=counts > 0)
        label = "Conversion rate" if one.amounts.rates else "Mean reward"
        if counts.any():
            drawn.append(
                Chart(
                    f"{label} by {bins.word} of the decision",
                    charts.points(label, bins.labels, mean.tolist(), one.amounts.rates),
                )
            )
    rewards_in = np.bincount(bins.periods[told], minlength=n)
    shares, legend = _shares(one, frame, bins)
    if shares is not None:
        drawn.append(
            Chart(
                "Share of every option",
                charts.stacks("Share of every option", bins.labels, shares.tolist()),
                legend,
            )
        )
    grid = _days(one, bins, made, rewards_in, mean, shares, legend)
    notes = ["Times are UTC. Rewards count at the time of their decision."]
    if n > _MOST_DATES:
        notes.append(f"The table has the last {_MOST_DATES} of {n:,} {bins.word}s.")
    return DocumentPart(title, charts=tuple(drawn), grids=(grid,), notes=tuple(notes))


def _shares(
    one: Analysis, frame: pd.DataFrame, bins: _Bins
) -> tuple[Array | None, tuple[str, ...]]:
    """Shares of the most frequent options in every bin, and their names."""
    if one.is_stream:
        return None, ()
    arms, n = frame["arm"].to_numpy(np.int64), len(bins.labels)
    distinct = list(dict.fromkeys(one.names))  # in contexts, one name has several rows
    place = {name: i for i, name in enumerate(distinct)}
    if one.is_duel:
        pairs = np.array(pairs_of(len(one.names)))[arms]
        which, weights, index = pairs.ravel(), 0.5, np.repeat(bins.periods, 2)
    else:
        which = np.array([place[name] for name in one.names])[arms]
        weights, index = 1.0, bins.periods
    totals = weights * np.bincount(which, minlength=len(distinct))
    order = np.argsort(-totals, kind="stable")
    order = order[totals[order] > 0.0]
    shown = np.sort(order[:_COLOURS])
    column = np.full(len(distinct), len(shown))
    column[shown] = np.arange(len(shown))
    width = len(shown) + (len(order) > len(shown))
    flat = np.bincount(index * width + column[which], minlength=n * width)
    counts = weights * flat.reshape(n, width)
    totals_in = counts.sum(axis=1, keepdims=True)
    names = [distinct[i] for i in shown]
    if width > len(shown):
        names.append(f"{len(order) - len(shown):,} others")
    return np.divide(counts, totals_in, out=np.zeros_like(counts), where=totals_in > 0), tuple(
        names
    )


def _days(
    one: Analysis,
    bins: _Bins,
    made: NDArray[np.int64],
    told: NDArray[np.int64],
    mean: Array | None,
    shares: Array | None,
    legend: tuple[str, ...],
) -> TableOfCells:
    head = [f"{bins.word.capitalize()}", "Decisions", f"{one.options.told.capitalize()}s"]
    if mean is not None:
        head.append("Conversion rate" if one.amounts.rates else "Mean reward")
    amounts = Amounts(one.amounts.rates, 1 if one.amounts.rates else 3)
    if shares is not None:
        head.append("Most frequent option")
    rows = []
    last = len(bins.labels)
    days = bins.starts.astype("datetime64[D]")
    for i in range(max(last - _MOST_DATES, 0), last):
        label = bins.labels[i]
        if bins.word == "minute":
            label = f"{days[i]} {label}"
        cells = [TableCell(label), TableCell(f"{made[i]:,}"), TableCell(f"{told[i]:,}")]
        if mean is not None:
            cells.append(TableCell(_NONE if math.isnan(mean[i]) else amounts.value(float(mean[i]))))
        if shares is not None:
            most = int(shares[i].argmax())
            cells.append(
                TableCell(legend[most], share(shares[i, most], 1.0))
                if made[i]
                else TableCell(_NONE)
            )
        rows.append(tuple(cells))
    return TableOfCells(tuple(head), tuple(rows), numbers=frozenset((1, 2, 3)), compact=True)


# 6. Effects


def _effects(one: Analysis) -> DocumentPart:
    title = "Effects"
    view, options = one.view, one.options
    features = options.features
    if (
        not one.is_stream
        and features.shape[0] == features.shape[1]
        and np.array_equal(features, np.eye(len(features)))
    ):
        return DocumentPart(
            title, ("The options share no features: their estimates are in the table above.",)
        )
    if one.is_duel and np.count_nonzero(features) <= 2 * len(features):
        return DocumentPart(title, ("The options share no features: see the table above.",))
    if one.told == 0:
        return DocumentPart(title, (f"Not known: no {options.told} has arrived.",))
    try:
        found = view.effects(one.delta)
    except ValueError as error:
        return DocumentPart(title, (f"Not known: {error}.",))
    kind, found, text = _in_units(one, found)
    rest = [effect for effect in found if effect.term != GRAND_MEAN]
    notes = []
    if len(rest) > _MOST_ROWS:
        sizes = np.nan_to_num([abs(effect.effect) for effect in rest], nan=-1.0)
        kept = np.sort(np.argsort(-sizes, kind="stable")[:_MOST_ROWS])
        notes.append(f"The largest {_MOST_ROWS} of {len(rest):,} effects.")
        rest = [rest[i] for i in kept]
    notes.append(text)
    amounts = Amounts(kind in ("points", "percent"))
    bounded = [(e.lower, e.upper) for e in rest if not math.isnan(e.effect)]
    amounts = amounts.fitting(bounded)
    has_levels = any(effect.level for effect in rest)
    unit = {"points": " points", "percent": " %", "number": ""}[kind]
    known = [e for e in rest if math.isfinite(e.effect) and math.isfinite(e.upper - e.lower)]
    axis = (
        min([0.0, *(e.lower for e in known)]),
        max([0.0, *(e.upper for e in known)]),
    )
    rows = []
    for effect in rest:
        cells = [TableCell(effect.term)]
        if has_levels:
            cells.append(TableCell(effect.level))
        if effect not in known:
            cells.append(TableCell("not known"))
        else:
            scale = 100.0 if amounts.rates else 1.0
            value = number(scale * effect.effect, amounts.places, True) + unit
            ends = amounts.range(effect.lower, effect.upper, sign=True)
            drawing = charts.interval(effect.effect, (effect.lower, effect.upper), axis)
            cells.append(TableCell(value, ends, drawing))
        rows.append(tuple(cells))
    first = "Factor" if has_levels else "Feature"
    effect_head = f"Effect, {one.level} interval"
    head = (first, "Level", effect_head) if has_levels else (first, effect_head)
    return DocumentPart(
        title, grids=(TableOfCells(head, tuple(rows)),) if rows else (), notes=tuple(notes)
    )


def _in_units(one: Analysis, found: list[Any]) -> tuple[str, list[Any], str]:
    """Effects in percentage points, percent or units of the reward, and a sentence on which."""
    view, options = one.view, one.options
    rule = (
        "An effect is the difference to the average over the levels of its factor"
        if options.levels is not None
        else "An effect is what one unit more of a feature adds"
    )
    kind = None if view.model.likelihood is None else kind_of(view.model.likelihood)
    if kind is None or kind in (LikelihoodKind.IDENTITY, LikelihoodKind.OWN):
        if one.amounts.rates and not one.is_duel and kind != LikelihoodKind.OWN:
            return "points", found, f"{rule}, in percentage points."
        if one.is_duel:
            return (
                "number",
                found,
                f"{rule} to the value of an option, in units of 2 P(win) {MINUS} 1.",
            )
        scale = "" if view.likelihood is None else view.likelihood.scale
        return "number", found, f"{rule}, on the {scale}." if scale else f"{rule} to the reward."
    if kind == LikelihoodKind.LOGISTIC and not options.stream:
        average = next((c.vector for c in options.contrasts if c.term == GRAND_MEAN), None)
        if average is None:
            average = options.features[view.offered].mean(axis=0)
        vectors = np.array([average, *(average + c.vector for c in options.contrasts)])
        shares = np.array(
            [1.0, *(1.0 + view.scale.shares(np.array([c.vector for c in options.contrasts])))]
        )
        weights = np.hstack([-np.ones((len(options.contrasts), 1)), np.eye(len(options.contrasts))])
        rows = zip(*view.sums_of_means(vectors, weights, one.delta, shares), strict=True)
        changed = [
            effect._replace(effect=float(v), lower=float(low), upper=float(high))
            if not math.isnan(effect.effect)
            else effect
            for effect, (v, low, high) in zip(found, rows, strict=True)
        ]
        rate = view.sums_of_means(average[None], np.ones((1, 1)), one.delta)[0][0]
        text = (
            f"{rule}, in percentage points: by how much the rate of the average option, "
            f"{Amounts(True, 1).value(float(rate))}, changes with it. The model adds effects on "
            "the log odds; the average option is the one with the average log odds."
        )
        return "points", changed, text
    changed = [
        effect._replace(
            **{
                name: math.expm1(min(getattr(effect, name), 700.0))
                for name in ("effect", "lower", "upper")
            }
        )
        for effect in found
    ]
    what = "odds of a success" if kind == LikelihoodKind.LOGISTIC else "mean count"
    return "percent", changed, f"{rule}, in percent of the {what}."


# 7. to 9.


def _checks(one: Analysis) -> DocumentPart:
    words = {True: "passed", False: "failed", None: "not made"}
    ordered = sorted(one.view.checks, key=lambda c: (c.passed is not False, c.passed is None))
    marks = tuple((words[c.passed], f"{c.name.capitalize()}: {c.sentence}") for c in ordered)
    failed = sum(c.passed is False for c in ordered)
    made = sum(c.passed is not None for c in ordered)
    if made == 0:
        first = "No check could be made."
    elif failed == 0:
        first = f"All {made} checks that could be made passed."
    else:
        first = f"{failed} of {made} checks failed."
    note = "While nothing is wrong, the probability that any check ever fails is at most 1 %."
    return DocumentPart("Checks", (first,), marks=marks, notes=(note,))


def _missing(one: Analysis) -> DocumentPart:
    status, window = one.facts.status, one.facts.window
    told = one.options.told
    rows = [
        (f"{told.capitalize()}s told", status.told),
        (f"{told.capitalize()}s that wait for the end of their window", status.waiting),
        (f"Open decisions, whose {told} may still come", status.pending),
        ("Given up", status.given_up),
        ("Expired: the window closed without one", status.expired),
        ("Refused, because the window was over", status.late),
    ]
    cells = tuple(
        (TableCell(name), TableCell(f"{n:,}")) for name, n in rows if n or name.endswith("told")
    )
    if window.seconds is None and window.rounds is None:
        text = f"There is no window: a {told} may come at any time."
        if told == "outcome":
            text = "There is no window: an outcome may come at any time."
    else:
        length = (
            duration(window.seconds)
            if window.seconds is not None
            else count(window.rounds or 0, "decision")
        )
        then = (
            "nothing is learned"
            if window.reward is None
            else f"the {told} counts as {window.reward:g}"
        )
        text = f"A {told} must come within {length}; without one, {then}."
        if told == "outcome":
            text = "An" + text[1:]
    lost = status.given_up + (status.expired if window.reward is None else 0)
    notes: tuple[str, ...] = ()
    if lost:
        notes = (
            f"Decisions without a {told} are left out of all estimates, as if whether it is "
            f"missing did not depend on it: {lost:,} of {one.asked:,} ({share(lost, one.asked)}).",
        )
    grid = TableOfCells(("", ""), cells, numbers=frozenset((1,)))
    return DocumentPart(f"Missing {told}s", (text,), grids=(grid,), notes=notes)


def _method(one: Analysis) -> DocumentPart:
    view, facts = one.view, one.facts
    likelihood = view.likelihood
    if one.is_stream:
        statistic = "Intervals of effects hold at all rounds at once."
    else:
        statistic = (
            f"One test decides: an option is settled to be best if the {one.level} intervals of "
            "its differences to all other options exclude 0. " + _evidence(one)
        )
    asymptotic = ""
    if view.model.likelihood is not None:
        asymptotic = " For clicks and counts they are asymptotic."
    assumption = (
        "Intervals that use the model come from a confidence ellipsoid of its parameter from all "
        f"rewards, and hold together, for all rounds, with probability {one.level}, if mean "
        "rewards are linear in the features on the scale of the model and do not change, and "
        f"whether a reward is missing does not depend on it.{asymptotic}"
    )
    noise = view.noise_std
    reward = (
        str(likelihood)
        if likelihood is not None
        else (
            f"noise_std={noise:g}" if isinstance(noise, float) else "a noise level for every option"
        )
    )
    if isinstance(likelihood, Gaussian) and likelihood.std is None:
        reward = "normal with a learned noise level"
    settings = (
        f"Policy: {view.policy}. Rewards: {reward}. Minimum probability: "
        f"{facts.min_probability:g}. Seed: {facts.seed}. Level: {one.delta:g}. "
        f"Sightline {__version__}."
    )
    free = (
        "Estimates without the model are adaptively weighted doubly robust scores with intervals "
        "that hold at all times, corrected for the number of options."
    )
    pages = (
        "Documentation: “Evaluate options and policies”, “Checks of a live experiment”, “Run an "
        "adaptive experiment”."
    )
    texts = [statistic, assumption]
    if one.log is not None:
        texts.append(free)
    return DocumentPart("Method", notes=(*texts, settings, pages))


def _evidence(one: Analysis) -> str:
    reports = one.view.tested_at(one.delta)
    if one.told == 0 or not reports:
        return ""
    nearest = least_evident(reports)
    if not math.isfinite(nearest.threshold):
        return "At present nothing can be settled: too few rewards, or a check failed."
    evidence = f"{nearest.evidence:.1f}" if math.isfinite(nearest.evidence) else "unlimited"
    where = "" if one.options.contexts is None else " in the context with the least"
    return f"The evidence{where} is {evidence} of {nearest.threshold:.1f}."
