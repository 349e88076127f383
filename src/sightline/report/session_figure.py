"""Figure of a session: estimates, effects, and the history of evidence and traffic."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from os import PathLike
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import clock_at
from sightline.policies.base import Evidence
from sightline.report.decision_frame import Offers
from sightline.report.style import new_figure, saved
from sightline.sessions.decisions import Closing, Pending, RewardSums, is_missing
from sightline.sessions.designs import GRAND_MEAN
from sightline.sessions.effects import Effect
from sightline.sessions.journal import Event, amendment_in, replay, told_in_event
from sightline.sessions.options import pairs_of
from sightline.sessions.state import LiveState
from sightline.sessions.view import SessionView

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[np.float64]
# Number of points of evidence over time, and of intervals of traffic.
_POINTS = 60


class History(NamedTuple):
    """Evidence and traffic over time."""

    # Shape (m,): number of decisions, evidence and threshold at each point.
    rounds: Array
    evidence: Array
    threshold: Array
    # Whether they reach to the end: another version of the library may decide otherwise, and cannot
    # replay the journal then.
    whole: bool
    edges: Array  # shape (n + 1,): number of decisions at the ends of n intervals
    shares: Array  # shape (n, k): share of every option in each of them


def history_of(first: LiveState, events: list[Event], view: SessionView) -> History:
    """Compute evidence and traffic at points that are evenly spread over the journal.

    The replay changes ``first``, the session as it began; ``view`` is the session after all events.
    """
    # without a test in the policy no replay is needed, which can take long
    found = _by_replay(first, events) if view.has_test else _by_counts(events, view)
    points, whole = [], True
    try:
        for point in found:
            points.append(point)  # kept if the replay fails later
    except ValueError:
        whole = False
    edges, shares = _traffic(events, len(view.options))
    return History(
        rounds=np.array([rounds for rounds, _ in points], dtype=np.float64),
        evidence=np.array([report.evidence for _, report in points]),
        threshold=np.array([report.threshold for _, report in points]),
        whole=whole,
        edges=edges,
        shares=shares,
    )


def _by_replay(live: LiveState, events: list[Event]) -> Iterator[tuple[int, Evidence]]:
    """Evidence of the policy, from a replay."""
    yield live.clock.t - 1, live.evidence()
    for part in _parts(events):
        replay(live, part)
        yield live.clock.t - 1, live.evidence()


def _by_counts(events: list[Event], view: SessionView) -> Iterator[tuple[int, Evidence]]:
    """Apply the test of IDS to all rewards told by then."""
    data = RewardSums(view.options.per_arm, offset=False)
    told = np.zeros(len(view.options), np.int64)
    scales = view.weights.ravel() / view.scale.unit
    made: dict[str | None, Pending] = {}
    offers = Offers(len(view.options), events, view.options.contexts)
    asked = 0

    def evidence() -> Evidence:
        squares = data.squared_deviations(scales) if data.per_arm == 1 else 0.0
        sums = np.array(data.totals(len(scales), view.scale.origin))
        return view.tested(told, sums, squares, offers.current, clock_at(asked + 1))

    yield asked, evidence()
    for part in _parts(events):
        for event in part:
            offers.follow(event)
            reward = told_in_event(event)
            if event.kind == "asked":
                asked += 1
                id_, arm = event.decision or "", event.arm or 0
                made[event.decision] = Pending(id_, arm, False, asked, math.nan, event.time)
            elif event.kind in ("told", "expired") and not is_missing(reward):
                decision = made.pop(event.decision)
                data.enter(data.plan([Closing(decision, "told", reward, event.time)]))
                told[decision.arm] += 1
            elif event.kind == "amended":
                arm, was, now = amendment_in(event)
                data = data.amended(event.decision or "", arm, False, was, now)
        yield asked, evidence()


def _parts(events: list[Event]) -> Iterator[list[Event]]:
    """Cut the events into parts, but not between decisions that were made at once."""
    begin = 0
    for mark in np.linspace(0, len(events), _POINTS + 1).astype(np.int64)[1:].tolist():
        end = max(mark, begin)
        while end < len(events) and events[end].kind == "asked" and events[end].questions is None:
            end += 1
        if end > begin:
            yield events[begin:end]
        begin = end


def _traffic(events: list[Event], k: int) -> tuple[Array, Array]:
    """Intervals of equally many decisions, and the share of every option in them."""
    arms = np.array([event.arm for event in events if event.kind == "asked"], dtype=np.int64)
    edges = np.linspace(0, len(arms), min(_POINTS, len(arms)) + 1).astype(np.int64)
    counts = [np.bincount(arms[low:high], minlength=k) for low, high in pairwise(edges)]
    shares = np.array(counts, dtype=np.float64).reshape(-1, k) / np.diff(edges)[:, None]
    return edges.astype(np.float64), shares


_MOST_ROWS = 20  # options or effects; more are not legible
_LONGEST_LABEL = 42
_COLOURS = [f"C{i}" for i in (0, 1, 2, 3, 4, 5, 6, 8, 9)]  # C7 is grey
_OTHERS = "0.75"
_NO_HISTORY = "no history, as there is no journal: begin with Session.open"


def session_figure(
    view: SessionView,
    effects: Sequence[Effect],
    delta: float,
    past: History | None,
    path: str | PathLike[str] | None = None,
) -> Figure:
    """Draw estimates and effects on the left, evidence and traffic over time on the right.

    In a stream, only effects; in a duel, items in place of pairs.  ``past`` is None without a
    journal. The suffix of ``path`` decides the format.
    """
    if view.options.items is not None:
        view, past = _of_items(view, past)
    shown = _shown_effects(effects)
    if view.options.stream:
        figure = new_figure(7, 1.5 + 0.25 * max(len(shown), 6))
        _draw_effects(figure.subplots(), view, effects, shown, delta)
    else:
        colours = _colours(view.asked)
        rows = (min(len(view.asked), _MOST_ROWS), len(shown))
        heights = [max(count, 6) + 3 for count in rows]
        figure = new_figure(12, 0.6 + 0.25 * sum(heights))
        grid = figure.subplots(2, 2, height_ratios=heights)
        _draw_means(grid[0, 0], view, colours)
        _draw_effects(grid[1, 0], view, effects, shown, delta)
        _draw_evidence(grid[0, 1], view, past)
        _draw_traffic(grid[1, 1], view, past, colours)
    figure.suptitle(_headline(view))
    return saved(figure, path)


def _of_items(view: SessionView, past: History | None) -> tuple[SessionView, History | None]:
    """Traffic by item: a pair is half a decision for each of its items."""
    items = view.options.items or ()
    halves = np.zeros((len(view.options), len(items)))
    for row, pair in enumerate(pairs_of(len(items))):
        np.add.at(halves[row], list(pair), 0.5)
    shown = dataclasses.replace(view, asked=view.asked @ halves)
    return shown, None if past is None else past._replace(shares=past.shares @ halves)


def _headline(view: SessionView) -> str:
    """Say how many decisions and rewards there are, and which option is best."""
    start = (
        f"Decisions: {round(view.asked.sum()):,}, {view.options.told}s: {int(view.told.sum()):,}"
    )
    if view.options.stream:
        return start
    report = view.evidence
    if report.best < 0 or not view.told.any():
        return start
    settled = "settled" if report.evidence >= report.threshold else "not settled"
    if view.options.contexts is not None:
        return f"{start}. Best option of every context: {settled}"
    return f"{start}. Best so far: {_label(view.options.names[report.best])} ({settled})"


def _label(text: str) -> str:
    """Text of bounded length, with dollar signs escaped."""
    if len(text) > _LONGEST_LABEL:
        text = f"{text[: _LONGEST_LABEL - 12]} … {text[-9:]}"
    return text.replace("$", r"\$")


def _colours(asked: NDArray[Any]) -> dict[int, str]:
    """Colours of all options, or of those with the most traffic if they are many."""
    rows = np.arange(len(asked))
    if len(asked) > len(_COLOURS):
        most = np.argsort(-asked, kind="stable")[: len(_COLOURS)]
        rows = np.sort(most[asked[most] > 0])
    return {int(row): colour for row, colour in zip(rows, _COLOURS, strict=False)}


def _shown_effects(effects: Sequence[Effect]) -> list[Effect]:
    """Largest effects in their order, without the grand mean, which has another scale."""
    rest = [effect for effect in effects if effect.term != GRAND_MEAN]
    if len(rest) <= _MOST_ROWS:
        return rest
    sizes = np.nan_to_num([abs(effect.effect) for effect in rest], nan=-1.0)
    return [rest[i] for i in np.sort(np.argsort(-sizes, kind="stable")[:_MOST_ROWS])]


def _draw_means(axes: Axes, view: SessionView, colours: dict[int, str]) -> None:
    """Draw options, the best on top, in the colours of their traffic."""
    k = len(view.asked)
    if view.estimates is not None:
        means, errors = view.estimates.means, view.estimates.standard_errors
        pairs = view.options.items is not None
        what = "estimated outcome against the best" if pairs else "estimated reward"
        axes.set_xlabel(f"{what}, 2 standard errors")
    elif view.options.observations is not None:
        means, errors = np.full(k, np.nan), np.zeros(k)
        axes.set_xlabel("the policy keeps no estimates, and no rewards are observed")
    else:
        told = np.maximum(view.told, 1)
        means = np.where(view.told > 0, view.totals / told, np.nan)
        errors = np.zeros(k)
        axes.set_xlabel("mean of the rewards (the policy keeps no estimates)")
    axes.set_title(f"{_MOST_ROWS} of {k:,} options" if k > _MOST_ROWS else "Options")
    rows = _shown_options(means, colours)
    likelihood = view.likelihood
    least, most = (-math.inf, math.inf) if likelihood is None else likelihood.range_of_means
    # bars end at the limits of means: a rate is not below 0
    below = np.clip(means - least, 0.0, 2.0 * errors)
    above = np.clip(most - means, 0.0, 2.0 * errors)
    for y, row in enumerate(rows):
        colour, bar = colours.get(row, _OTHERS), [[below[row]], [above[row]]]
        axes.errorbar(means[row], y, xerr=bar, fmt="o", color=colour)
    labels = view.options.labels
    gone = ["" if offered else " (retired)" for offered in view.offered]
    _name_rows(axes, [_label(labels[row]) + gone[row] for row in rows])


def _shown_options(means: Array, colours: dict[int, str]) -> list[int]:
    """Options with a colour, then those with the highest means; the best first."""
    order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable").tolist()
    others = [row for row in order if row not in colours]
    shown = {*colours, *others[: _MOST_ROWS - len(colours)]}
    return [row for row in order if row in shown]


def _finite(values: Array) -> Array:
    """Values with nan in place of infinity, which cannot be drawn."""
    return np.where(np.isfinite(values), values, np.nan)


def _draw_effects(
    axes: Axes, view: SessionView, effects: Sequence[Effect], shown: Sequence[Effect], delta: float
) -> None:
    """Draw effects with their intervals; those that differ from zero are black."""
    scale = "" if view.likelihood is None else view.likelihood.scale
    on_scale = f" on the {scale}" if scale else ""
    means = [effect.effect for effect in effects if effect.term == GRAND_MEAN]
    count = len(effects) - len(means)
    number = f"The largest {len(shown)} of {count:,} effects" if count > len(shown) else "Effects"
    axes.set_title(f"{number}, {GRAND_MEAN} {means[0]:.3g}" if means else number)
    level = f"{100 * (1 - delta):.4g} %"
    valid = f"effect{on_scale}, interval valid at every round at once ({level})"
    unbounded = any(math.isinf(one.upper) and not math.isnan(one.effect) for one in shown)
    axes.set_xlabel(f"{valid}; dotted: unbounded" if unbounded else valid)
    for y, effect in enumerate(shown):
        if math.isnan(effect.effect):
            axes.text(0.0, y, "no data about these options can tell", va="center", ha="center")
            continue
        colour = "0.6" if effect.lower <= 0.0 <= effect.upper else "k"
        reach = effect.upper - effect.effect
        if math.isinf(reach):  # few data, and an unknown norm or noise level
            axes.axhline(y, color=colour, linestyle=":")
            reach = 0.0
        axes.errorbar(effect.effect, y, xerr=reach, fmt="o", color=colour, capsize=3)
    names = [_label(f"{one.term}: {one.level}" if one.level else one.term) for one in shown]
    axes.axvline(0.0, color="k", linewidth=0.8)
    _name_rows(axes, names)


def _name_rows(axes: Axes, names: list[str]) -> None:
    """Label rows from the top, and the common axis with few numbers."""
    axes.set_yticks(range(len(names)), labels=names, fontsize=9)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)
    axes.locator_params(axis="x", nbins=6)
    axes.grid(axis="x", alpha=0.3)


def _draw_evidence(axes: Axes, view: SessionView, past: History | None) -> None:
    what = "Evidence" if view.options.contexts is None else "Least evidence of any context"
    test = "" if view.has_test else f", by the test of IDS on all {view.options.told}s"
    axes.set_title(f"{what}{test}")
    # infinite evidence: no other option can be best; infinite threshold: too few data
    evidence, threshold = (_finite(values) for values in np.array([view.evidence[1:3]]).T)
    if past is None:
        axes.plot([0.5], evidence, "o", label="for the best option", clip_on=False)
        axes.axhline(threshold[0], color="k", linestyle="--", label="needed to be settled")
        _leave_out_time(axes)
    else:
        evidence, threshold = _finite(past.evidence), _finite(past.threshold)
        at_end: dict[str, Any] = {"marker": "o", "markersize": 4, "markevery": slice(-1, None)}
        axes.plot(past.rounds, evidence, label="for the best option", **at_end)
        axes.plot(past.rounds, threshold, "k--", label="needed to be settled", **at_end)
        _count_decisions(axes, view)
        if not past.whole:
            axes.set_xlabel("decisions (what was decided later cannot be replayed by this version)")
    if not np.isfinite(threshold[-1:]).all():
        said = "too few rewards to settle anything"
        axes.text(0.5, 0.5, said, ha="center", va="center", transform=axes.transAxes)
    axes.set_ylim(0.0, _top(evidence, threshold))
    axes.legend(loc="best")


def _top(evidence: Array, threshold: Array) -> float:
    """Upper limit of an axis with evidence and its threshold.

    A threshold that came down from infinity may have been enormous; its beginning is cut off.
    """
    highest, lately = (
        np.nan_to_num([*evidence, *shown]).max(initial=0.0) for shown in (threshold, threshold[-1:])
    )
    return float(min(1.1 * highest, 3.0 * lately or math.inf)) or 1.0


def _count_decisions(axes: Axes, view: SessionView) -> None:
    axes.set_xlim(0.0, max(float(view.asked.sum()), 1.0))
    axes.set_xlabel("decisions")
    axes.locator_params(axis="x", nbins=5, integer=True)
    axes.xaxis.set_major_formatter("{x:,.0f}")


def _leave_out_time(axes: Axes) -> None:
    axes.set(xlim=(0.0, 1.0), xticks=[], xlabel=_NO_HISTORY)


def _draw_traffic(
    axes: Axes, view: SessionView, past: History | None, colours: dict[int, str]
) -> None:
    title = "Traffic, in the colours of the options"
    axes.set(title=title, ylim=(0.0, 1.0), ylabel="share of decisions")
    if past is None:
        edges, shares = np.array([0.4, 0.6]), (view.asked / max(view.asked.sum(), 1))[None, :]
        _leave_out_time(axes)
    else:
        edges, shares = past.edges, past.shares
        _count_decisions(axes, view)
    if not view.asked.any():
        axes.text(0.5, 0.5, "no decisions were counted", ha="center", transform=axes.transAxes)
        return
    bottom = np.zeros(len(shares))
    for row in sorted(colours, key=lambda row: -view.asked[row]):
        _layer(axes, edges, bottom, shares[:, row], colours[row])
        bottom = bottom + shares[:, row]
    if len(colours) < len(view.asked):
        _layer(axes, edges, bottom, 1.0 - bottom, _OTHERS)


def _layer(axes: Axes, edges: Array, bottom: Array, share: Array, colour: str) -> None:
    """Draw one layer of a stack of steps."""
    low, high = (np.append(values, values[-1]) for values in (bottom, bottom + share))
    axes.fill_between(edges, low, high, step="post", color=colour, linewidth=0)
