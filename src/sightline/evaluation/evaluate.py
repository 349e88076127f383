"""``sl.evaluate``: what an option or a policy earns, from decisions that another policy made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict, Unpack, overload

import numpy as np
from numpy.typing import NDArray

from sightline.core.likelihood import Bernoulli, Poisson
from sightline.evaluation.estimators import (
    BIASED,
    METHODS,
    Scores,
    TargetPolicy,
    adaptive_weights,
    conditional_variances,
    informative,
    scores,
)
from sightline.evaluation.intervals import (
    FIRST,
    Bias,
    Biases,
    Test,
    asymptotic,
    bernstein,
    gamma_exponential,
    normal,
    ratio_limits,
    weighted,
)
from sightline.evaluation.log import DecisionLog, read_log
from sightline.policies.base import Policy
from sightline.sessions.session import Session
from sightline.sessions.view import SessionView
from sightline.validation import finite_array, flag, number, one_of

if TYPE_CHECKING:
    import pandas as pd

Array = NDArray[np.float64]

INTERVALS = ("anytime", "bernstein", "asymptotic", "normal")
WEIGHTS = ("stable", "two-point", "constant")
BEST, BEST_SO_FAR = "best", "best so far"

_ROUNDING = 1e-6  # of probabilities
_CONTRADICTION = 5.0  # standard errors by which mean weights differ from 1
_LARGEST_UPLIFT = 10.0  # in a sentence; beyond, it has the difference
_FEW = 30.0  # decisions on which an estimate rests
_MISSING_LEVEL = 1e-4  # of the test that missing rewards do not depend on the option
_GUARANTEES = {
    "betting": "valid whenever you look",
    "bernstein": "valid whenever you look",
    "asymptotic": "valid whenever you look, for large samples",
    "normal": "valid for one look at a time fixed beforehand",
}


class Interval(NamedTuple):
    """An estimate, and the ends of its interval."""

    value: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a target earns per decision: what :func:`sightline.evaluate` returns.

    Printed, it is a sentence.

    Attributes
    ----------
    target : str
        Name of the target.
    value, lower, upper : float
        Estimated mean reward per decision, and the ends of its interval.  All are nan if the log
        cannot tell; ``notes`` then says why.
    n : int
        Number of decisions with a reward that were used.
    missing : int
        Number of decisions without a reward, which were left out.
    effective_sample_size : float
        (sum w)^2 / sum w^2 for the importance weights w: about the number of decisions of the
        target itself on which the estimate rests.
    support : float
        Share of the decisions in which the target, and the control, could have been played.
    method : str
        Estimator.
    interval : {"betting", "bernstein", "asymptotic", "normal"}
        Kind of the interval.
    delta : float
        Probability that the interval of ``value`` misses.
    control : str or None
        Name of the control.
    control_value : Interval or None
        What the control earns per decision.
    difference : Interval or None
        Value of the target less that of the control.
    uplift : Interval or None
        Value of the target divided by that of the control, less 1; None if rewards can be negative.
    model : Interval or None
        The value by the linear model of a session, with an interval that holds at all rounds at
        once if the model is right.
    control_model : Interval or None
        The same for the control.
    notes : tuple of str
        Sentences on what the numbers rest on.
    clicks : bool
        Whether all rewards are 0 or 1, so that values are rates.
    segment : object
        Value of the column ``by``, if one was given.
    """

    target: str
    value: float
    lower: float
    upper: float
    n: int
    missing: int
    effective_sample_size: float
    support: float
    method: str
    interval: str
    delta: float
    control: str | None = None
    control_value: Interval | None = None
    difference: Interval | None = None
    uplift: Interval | None = None
    model: Interval | None = None
    control_model: Interval | None = None
    notes: tuple[str, ...] = ()
    clicks: bool = False
    segment: Any = None

    def frame(self) -> pd.DataFrame:
        """Return the numbers as a table with one row."""
        return _table([self])

    def __str__(self) -> str:
        return "\n".join([_sentence(self), *self.notes])


@dataclass(frozen=True, eq=False)
class Evaluations(Sequence[Evaluation]):
    """Evaluations of several targets or segments, in their order.

    Printed, they are a table in words.
    """

    results: tuple[Evaluation, ...]

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> Evaluation: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Evaluation]: ...
    def __getitem__(self, index: int | slice) -> Evaluation | Sequence[Evaluation]:
        return self.results[index]

    def frame(self) -> pd.DataFrame:
        """Return the numbers as a table with one row per target and segment."""
        return _table(self.results)

    def __str__(self) -> str:
        lines = []
        for one in self.results:
            where = "" if one.segment is None else f"{one.segment}: "
            lines.append(f"{where}{one}")
        return "\n".join(lines)


def _table(results: Sequence[Evaluation]) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for one in results:
        row: dict[str, Any] = {} if one.segment is None else {"segment": one.segment}
        row |= {"target": one.target, "value": one.value, "lower": one.lower, "upper": one.upper}
        row["control"] = one.control
        for name in ("control_value", "difference", "uplift", "model"):
            found: Interval | None = getattr(one, name)
            for part in Interval._fields:
                full = name if part == "value" else f"{name}_{part}"
                row[full] = math.nan if found is None else getattr(found, part)
        for name in [
            "n",
            "missing",
            "effective_sample_size",
            "support",
            "method",
            "interval",
            "delta",
        ]:
            row[name] = getattr(one, name)
        row["notes"] = " ".join(one.notes)
        rows.append(row)
    return pd.DataFrame(rows)


def _sentence(one: Evaluation) -> str:
    """Write the result in words."""

    def amount(value: float) -> str:
        return f"{100.0 * value:.3g} %" if one.clicks else f"{value:.4g}"

    def ends(found: Interval, show: Callable[[float], str]) -> str:
        return f"({100.0 * (1.0 - one.delta):.4g} %: {show(found.lower)} to {show(found.upper)})"

    verb = "converts" if one.clicks else "earns"
    if math.isnan(one.value) and math.isnan(one.lower):
        return f"What {one.target} {verb} cannot be estimated."
    per = "" if one.clicks else " per decision"
    guarantee = _GUARANTEES[one.interval]
    own = Interval(one.value, one.lower, one.upper)
    if one.control is None or one.control_value is None or one.difference is None:
        return f"{one.target} {verb} {amount(one.value)}{per} {ends(own, amount)}, {guarantee}."
    both = (
        f"{one.target} {verb} {amount(one.value)}, {one.control} {amount(one.control_value.value)}"
    )
    if one.uplift is not None and one.uplift.upper <= _LARGEST_UPLIFT:
        text = f"{_percent(one.uplift.value)} {ends(one.uplift, _percent)}"
    elif one.clicks:
        limits = ends(one.difference, lambda value: f"{100.0 * value:+.3g}")
        text = f"{100.0 * one.difference.value:+.3g} percentage points {limits}"
    else:
        text = f"{one.difference.value:+.4g} {ends(one.difference, '{:+.4g}'.format)}"
    return f"{both}{per}: {text}, {guarantee}."


def _percent(value: float) -> str:
    return f"{100.0 * value:+.3g} %"


class _Settings(NamedTuple):
    """Arguments of an evaluation, after checks."""

    method: str
    interval: str
    weights: str
    delta: float
    supported_only: bool
    floor: float
    cutoff: float
    decay: float
    bounds: tuple[float, float] | None = None  # range of the rewards
    clicks: bool = False
    fell_back: bool = False  # whether "anytime" is asymptotic


class EvaluationSettings(TypedDict, total=False):
    """Keywords of :func:`evaluate` that do not decide what it returns."""

    method: str
    interval: str
    weights: str
    delta: float
    reward_range: tuple[float, float] | None
    supported_only: bool
    min_probability: float
    cutoff: float
    decay: float
    columns: Mapping[str, Any] | None
    options: Sequence[Any] | None


@overload
def evaluate(
    data: Any,
    target: list[Any],
    control: Any = None,
    *,
    by: str | None = None,
    **settings: Unpack[EvaluationSettings],
) -> Evaluations: ...
@overload
def evaluate(
    data: Any, target: Any, control: Any = None, *, by: str, **settings: Unpack[EvaluationSettings]
) -> Evaluations: ...
@overload
def evaluate(
    data: Any,
    target: Any,
    control: Any = None,
    *,
    by: None = None,
    **settings: Unpack[EvaluationSettings],
) -> Evaluation: ...
def evaluate(
    data: Any,
    target: Any,
    control: Any = None,
    *,
    method: str = "dr",
    interval: str = "anytime",
    weights: str = "stable",
    delta: float = 0.05,
    reward_range: tuple[float, float] | None = None,
    by: str | None = None,
    supported_only: bool = False,
    min_probability: float = 0.0,
    cutoff: float = 10.0,
    decay: float = 0.5,
    columns: Mapping[str, Any] | None = None,
    options: Sequence[Any] | None = None,
) -> Evaluation | Evaluations:
    """Estimate what an option or a policy earns, from decisions that another policy made.

    The log must have the probability with which every chosen option was drawn.  The answer does
    not depend on a model of the rewards.  It assumes that the probabilities are right, that the
    reward of a decision does not depend on other decisions, and that whether a reward is missing
    depends neither on it nor on the option.  If mean rewards change over time, it is about their
    mean over the decisions of the log.

    A target that has positive probability where the log has probability 0 cannot be evaluated: its
    value is nan, and a note says so.

    Parameters
    ----------
    data : Session, DataFrame, path or mapping
        A session with a journal; its export (Parquet or CSV); any frame with one row per decision,
        in their order, with action, reward and probability; a log of Vowpal Wabbit (JSON lines); or
        a ``bandit_feedback`` of Open Bandit Pipeline.  Decisions without a reward are left out.
    target : object
        What to evaluate:

        - an option, by its name; a tuple of names, in equal shares; a mapping from names to
          probabilities; or an array of probabilities, shape (k,);
        - a policy: an array of probabilities, shape (n, k), with a row per decision of ``data``; a
          Series with the option that it would choose in each; a DataFrame of probabilities with a
          column per option; or a function that returns an option, a tuple or a mapping, given a
          mapping with the columns that were known before a decision, such as ``"context"``.  It
          must not have been made from the rewards in ``data``;
        - ``"best so far"``: the option with the best mean of the rewards known before each
          decision;
        - ``"best"``: the option with the largest estimate.  All intervals then hold for all options
          at once, those of the chosen one included;
        - a list of these, for a table.  Each interval then has the level 1 - delta by itself.
    control : object, optional
        Another target but ``"best"``, to compare with: the result has ``difference`` and
        ``uplift``.
    method : {"dr", "ips", "snips", "aipw", "switch", "shrinkage"}
        Doubly robust; inverse propensity scores, on rewards less the lower end of their range, and
        self-normalised; adaptively weighted doubly robust; and two doubly robust estimators that
        trade a bounded bias for less variance.  The fit of an option is the mean of its rewards in
        the same context that were known before the decision.
    interval : {"anytime", "bernstein", "asymptotic", "normal"}
        "anytime" and "bernstein" hold at all looks at once, for rewards in a known range, whichever
        policy chose; so does "asymptotic", for rewards of any range, in large samples; "normal"
        holds at one time that was fixed beforehand, approximately.  For rewards without a known
        range, and for "snips", "anytime" is "asymptotic".
    weights : {"stable", "two-point", "constant"}
        Weights of decisions for "aipw", which need the probabilities of all options; "two-point"
        needs ``interval="normal"``.
    delta : float
        Probability that the interval misses, for each quantity.
    reward_range : tuple of float, optional
        Smallest and largest possible reward.  By default (0, 1) if all rewards are 0 or 1, and
        otherwise unknown.
    by : str, optional
        Column, or recorded attribute, whose values are evaluated one by one.
    supported_only : bool
        Whether to leave out the decisions in which the target could not have been played.  The
        value is then the mean over the others: the same if mean rewards do not change over time.
    min_probability : float
        A probability that every option is known to have had in every decision, where the log does
        not have the probabilities of all options; intervals become shorter.
    cutoff : float
        Ratio of probabilities from which "switch" uses the fit only; squared, about that from which
        "shrinkage" does.
    decay : float
        For "two-point": probabilities of rare options fall like t^-decay.
    columns : mapping, optional
        Names of the columns ``"action"``, ``"reward"``, ``"probability"`` and ``"context"``; for
        ``"probabilities"``, a mapping from options to columns.
    options : sequence, optional
        Names of all options, in the order of arrays of probabilities; by default those in the log.

    Returns
    -------
    Evaluation or Evaluations
        One, or several if ``target`` is a list or ``by`` is given.
    """
    session = data if isinstance(data, Session) else None
    log = read_log(data, columns, options)
    given = _Settings(
        one_of("method", method, METHODS),
        one_of("interval", interval, INTERVALS),
        one_of("weights", weights, WEIGHTS),
        number("delta", delta, above=0.0),
        flag("supported_only", supported_only),
        number("min_probability", min_probability, at_least=0.0),
        number("cutoff", cutoff, above=0.0),
        number("decay", decay, at_least=0.0),
    )
    settings = _settings(log, session, reward_range, given)
    several = isinstance(target, list)
    goals = [_goal(log, one) for one in (target if several else [target])]
    if not goals:
        raise ValueError("target must not be an empty list")
    base = None if control is None else _target(log, control, "control")
    if base is not None and any(_are_same(goal, base) for goal in goals):
        raise ValueError(f"target and control must differ, got {base.name} twice")
    view = None if session is None else session._view()
    found = []
    for segment, rows in _segments(log, by):
        part = log if rows is None else log.take(rows)
        for goal in goals:
            one = _evaluate(part, view, _taken(goal, rows), _taken(base, rows), settings)
            found.append(dataclasses.replace(one, segment=segment))
    return Evaluations(tuple(found)) if several or by is not None else found[0]


def _settings(
    log: DecisionLog,
    session: Session | None,
    reward_range: Any,
    settings: _Settings,
) -> _Settings:
    """Check arguments against each other and the data."""
    if settings.delta >= 1.0:
        raise ValueError(f"delta must be below 1, got {settings.delta:g}")
    if settings.decay >= 1.0:
        raise ValueError(f"decay must be below 1, got {settings.decay:g}")
    lowest = float(np.nanmin(log.probability, initial=1.0))
    if settings.floor > lowest + _ROUNDING:
        raise ValueError(
            f"min_probability must not exceed the probabilities in data, got {settings.floor:g} "
            f"where {lowest:g} occurs"
        )
    told = log.rewards[~np.isnan(log.rewards)]
    likelihood = None if session is None else session._live.table.likelihood
    clicks = isinstance(likelihood, Bernoulli)
    if not isinstance(likelihood, Poisson):  # rare counts are 0 and 1 at first
        clicks = clicks or bool(np.isin(told, (0.0, 1.0)).all())
    bounds = (0.0, 1.0) if clicks else None
    if reward_range is not None:
        low, high = finite_array("reward_range", reward_range, (2,)).tolist()
        if not low < high:
            raise ValueError(f"reward_range must be two increasing numbers, got {reward_range!r}")
        if len(told) and not (low <= told.min() and told.max() <= high):
            raise ValueError(
                f"reward_range must contain all rewards, got {reward_range!r} where rewards are "
                f"between {told.min():g} and {told.max():g}"
            )
        bounds = (low, high)
        clicks = clicks and bounds == (0.0, 1.0)
    method, kind, adaptive = settings.method, settings.interval, settings.method == "aipw"
    has_wealth = bounds is not None and method != "snips"
    if kind == "bernstein" and (adaptive or not has_wealth):
        why = "give reward_range" if bounds is None else f"not possible for method={method!r}"
        raise ValueError(f"interval='bernstein' needs scores in a known range: {why}")
    if adaptive and settings.weights == "two-point" and kind != "normal":
        raise ValueError(
            "weights='two-point' needs interval='normal', because they depend on the number of "
            f"decisions, got interval={kind!r}"
        )
    fell_back = kind == "anytime" and not has_wealth
    if kind == "anytime":
        kind = "betting" if has_wealth else "asymptotic"
    return settings._replace(
        interval=kind,
        weights=settings.weights if adaptive else "constant",
        bounds=bounds,
        clicks=clicks,
        fell_back=fell_back,
    )


def _goal(log: DecisionLog, target: Any) -> TargetPolicy | None:
    """Return a target; None for the best option."""
    if isinstance(target, str) and target == BEST and target not in map(str, log.options):
        return None
    return _target(log, target, "target")


def _are_same(target: TargetPolicy | None, control: TargetPolicy) -> bool:
    if target is None:
        return False
    pairs = ((target.shared, control.shared), (target.rows, control.rows))
    return all(a is b or np.array_equal(a, b) for a, b in pairs)  # type: ignore[arg-type]


def _taken(target: TargetPolicy | None, rows: NDArray[np.int64] | None) -> TargetPolicy | None:
    return target if target is None or rows is None else target.take(rows)


def _target(log: DecisionLog, target: Any, argument: str) -> TargetPolicy:
    """Read a target other than the best option."""
    import pandas as pd

    if isinstance(target, Policy):
        raise ValueError(
            f"{argument} must not be a policy that learns, got {target}: its choices depend on "
            "rewards that it would have seen; give the option or the probabilities that it ends "
            "with, or simulate it"
        )
    if isinstance(target, np.ndarray):
        return _of_array(log, target, argument)
    if isinstance(target, pd.DataFrame):
        columns = {log.index(name): target[name].to_numpy(np.float64) for name in target.columns}
        table = np.zeros((len(target), log.k))
        for number_, column in columns.items():
            table[:, number_] = column
        return _of_array(log, table, argument)
    if isinstance(target, pd.Series):
        if len(target) != len(log):
            raise ValueError(
                f"{argument} must have an option for each of {len(log)} decisions, got "
                f"{len(target)}"
            )
        table = np.zeros((len(log), log.k))
        names = {name: log.index(name) for name in target.unique()}
        table[np.arange(len(log)), target.map(names).to_numpy(np.int64)] = 1.0
        return TargetPolicy("the policy", rows=table)
    if callable(target):
        rows = log.visible().to_dict("records")
        answers = (_shares(log, target(row), f"an answer of {argument}") for row in rows)
        return TargetPolicy("the policy", rows=np.array([shares for _, shares in answers]))
    is_name = isinstance(target, str) and target not in map(str, log.options)
    if is_name and target == BEST_SO_FAR:
        return TargetPolicy("the best so far")
    if is_name and target == BEST:
        raise ValueError(f"{argument} must not be {BEST!r}; {BEST_SO_FAR!r} is possible")
    name, shares = _shares(log, target, argument)
    return TargetPolicy(name, shared=shares)


def _shares(log: DecisionLog, given: Any, argument: str) -> tuple[str, Array]:
    """Name and probabilities of an option, a group in equal shares, or a distribution."""
    if isinstance(given, Mapping):
        shares = {
            name: number(f"{argument}[{name!r}]", p, at_least=0.0) for name, p in given.items()
        }
        name = "the mixture of " + ", ".join(f"{one} ({p:.3g})" for one, p in shares.items())
    elif isinstance(given, tuple):
        shares = dict.fromkeys(given, 1.0 / max(len(given), 1))
        name = " or ".join(map(str, given))
    else:
        shares, name = {given: 1.0}, str(given)
    found = np.zeros(log.k)
    for one, p in shares.items():
        found[log.index(one)] += p
    if abs(found.sum() - 1.0) > _ROUNDING:
        raise ValueError(f"{argument} must have probabilities that sum to 1, got {found.sum():g}")
    return name, found


def _of_array(log: DecisionLog, given: NDArray[Any], argument: str) -> TargetPolicy:
    shape = (log.k,) if given.ndim == 1 else (len(log), log.k)
    hint = f", one probability for each of {log.k} options"
    table = finite_array(argument, given, shape, hint)
    sums = table.sum(axis=-1)
    if (table < 0.0).any() or (abs(sums - 1.0) > _ROUNDING).any():
        raise ValueError(f"{argument} must have probabilities >= 0 that sum to 1")
    if given.ndim == 1:
        return TargetPolicy("the mixture", shared=table)
    return TargetPolicy("the policy", rows=table)


def _segments(log: DecisionLog, by: str | None) -> Iterator[tuple[Any, NDArray[np.int64] | None]]:
    """Values of a column with their decisions; all decisions without a column."""
    if by is None:
        yield None, None
        return
    found = next((name for name in (by, f"attribute:{by}") if name in log.frame.columns), None)
    if found is None:
        columns = list(log.visible().columns)
        raise ValueError(f"by must be a column or an attribute, got {by!r}: there are {columns}")
    for value, rows in log.frame.groupby(found, observed=True, dropna=False).indices.items():
        yield value, np.sort(np.asarray(rows, dtype=np.int64))


def _evaluate(
    log: DecisionLog,
    view: SessionView | None,
    target: TargetPolicy | None,
    control: TargetPolicy | None,
    settings: _Settings,
) -> Evaluation:
    if target is None:
        return _best(log, view, control, settings)
    told = ~np.isnan(log.rewards)
    notes = _missing_notes(log, told)
    model, control_model = (_by_model(log, view, one, settings.delta) for one in (target, control))
    rows = np.flatnonzero(told)
    used = log if told.all() else log.take(rows)
    target, control = target.take(rows), _taken(control, rows)
    empty = Evaluation(
        target.name,
        math.nan,
        math.nan,
        math.nan,
        n=len(used),
        missing=len(log) - len(used),
        effective_sample_size=0.0,
        support=math.nan,
        method=settings.method,
        interval=settings.interval,
        delta=settings.delta,
        control=None if control is None else control.name,
        model=model,
        control_model=control_model,
        clicks=settings.clicks,
    )
    if len(used) == 0:
        return dataclasses.replace(empty, notes=("No decision has a reward.", *notes))
    found = _of_supported(used, target, control, settings, empty)
    return dataclasses.replace(found, notes=(*found.notes, *notes, *_model_notes(found)))


def _of_supported(
    log: DecisionLog,
    target: TargetPolicy,
    control: TargetPolicy | None,
    settings: _Settings,
    empty: Evaluation,
) -> Evaluation:
    """Evaluate if the log supports it; otherwise say why it does not."""
    low, high = settings.bounds or (0.0, 1.0)
    y = (log.rewards - low) / (high - low)

    def score(one: TargetPolicy) -> Scores:
        return scores(
            log,
            y,
            one,
            settings.method,
            floor=settings.floor,
            cutoff=settings.cutoff,
            bounded=settings.bounds is not None,
        )

    sides = [score(target)] + ([] if control is None else [score(control)])
    supported = np.all([side.mass > 1.0 - _ROUNDING for side in sides], axis=0)
    support = float(supported.mean())
    sizes = [_effective_size(side.ratios) for side in sides]
    empty = dataclasses.replace(empty, support=support, effective_sample_size=sizes[0])
    names = target.name if control is None else f"{target.name} and {control.name}"
    notes: list[str] = []
    if support < 1.0:
        if not settings.supported_only or support == 0.0:
            return dataclasses.replace(empty, notes=(_unsupported(names, log, supported),))
        rows = np.flatnonzero(supported)
        found = _of_supported(
            log.take(rows), target.take(rows), _taken(control, rows), settings, empty
        )
        note = (
            f"This is the mean over the {len(rows):,} of {len(log):,} decisions in which {names} "
            "could have been played: that over all of them if mean rewards do not change over time."
        )
        return dataclasses.replace(found, support=support, notes=(note, *found.notes))
    for one, side in zip((target, control), sides, strict=False):
        assert one is not None
        doubt = _contradiction(one.name, side)
        if doubt:
            return dataclasses.replace(empty, notes=(doubt,))
    if not (log.recorded.known.all() or settings.floor > 0.0):
        notes.append(
            f"The log does not have the probabilities of all options: that {names} could have been "
            "played in every decision is an assumption."
        )
    if min(sizes) < _FEW:
        notes.append(f"The estimate rests on about {min(sizes):.0f} decisions.")
    weights = np.ones(len(log))
    if settings.weights != "constant":
        start = 0.0 if settings.bounds is None else 0.5
        variances = conditional_variances(log, y, target, control, start)
        if np.isnan(variances).any():
            raise ValueError(
                f"weights={settings.weights!r} needs the probabilities of all options in every "
                "decision; weights='constant' does not"
            )
        weights = adaptive_weights(variances, settings.weights, settings.decay)
        if not weights.any():
            return dataclasses.replace(empty, notes=(f"{names} never differ.",))
    return _results(log, sides, weights, settings, empty, notes)


def _results(
    log: DecisionLog,
    sides: list[Scores],
    weights: Array,
    settings: _Settings,
    empty: Evaluation,
    notes: list[str],
) -> Evaluation:
    """Compute values and intervals."""
    low, high = settings.bounds or (0.0, 1.0)
    scale = high - low
    within = (0.0, 1.0) if settings.bounds else (-math.inf, math.inf)
    values = [low + scale * float(side.phi @ weights / weights.sum()) for side in sides]
    if settings.interval == "asymptotic":
        notes += _asymptotic_notes(settings, sides, log.rewards)
    if settings.method in BIASED and not _bias(sides[0]):
        notes.append(
            f"method={settings.method!r} is biased, and what bounds its bias is not known: a range "
            "of the rewards and the probabilities of all options."
        )

    def interval(one: list[Scores], value: float) -> Interval:
        test = _test(one, log.rewards, weights, settings)
        if test is None:
            return Interval(value, math.nan, math.nan)
        ends = test.limits(0.0, within)
        return Interval(value, *(low + scale * float(end[0]) for end in ends))

    own = interval(sides[:1], values[0])
    result = dataclasses.replace(
        empty, n=len(log), value=own.value, lower=own.lower, upper=own.upper, notes=tuple(notes)
    )
    if len(sides) == 1:
        return result
    test = _test(sides, log.rewards, weights, settings)
    difference = Interval(values[0] - values[1], math.nan, math.nan)
    uplift = None
    is_positive = (low if settings.bounds else float(log.rewards.min())) >= 0.0
    if test is not None:
        apart = (-1.0, 1.0) if settings.bounds else within
        ends = [scale * float(end[0]) for end in test.limits(1.0, apart)]
        difference = Interval(difference.value, *ends)
        if is_positive and values[1] > 0.0:
            lower, upper = ratio_limits(test, -low / scale)
            uplift = Interval(values[0] / values[1] - 1.0, lower - 1.0, upper - 1.0)
    return dataclasses.replace(
        result,
        control_value=interval(sides[1:], values[1]),
        difference=difference,
        uplift=uplift,
    )


def _bias(side: Scores) -> Bias | None:
    """Bounds on the mean bias of a method; None if it has none that are known."""
    below, above = float(side.below.mean()), float(side.above.mean())
    return None if math.isnan(below + above) else Bias(below, above)


def _test(sides: list[Scores], rewards: Array, weights: Array, settings: _Settings) -> Test | None:
    """Return the test of a target and a control; None if the bias of a method is not known."""
    looks = np.array([len(weights)])
    biases = Biases()
    if settings.method in BIASED:
        bounds = [_bias(side) for side in sides]
        if settings.bounds is None or None in bounds:
            return None
        biases = Biases(*[one for one in bounds if one is not None])
    target, control = sides[0], sides[1] if len(sides) > 1 else None
    if settings.interval in ("betting", "bernstein"):
        legs, other = target.legs, None if control is None else control.legs
        assert legs is not None
        if settings.weights != "constant":
            return weighted(legs, other, weights, looks, settings.delta)
        build = gamma_exponential if settings.interval == "betting" else bernstein
        return build(legs, other, looks, settings.delta, biases)
    second = None if control is None else control.phi
    if settings.interval == "normal":
        return normal(target.phi, second, weights, looks, settings.delta, biases)
    counts = informative(np.sum([side.ratios for side in sides], axis=0), rewards)
    return asymptotic(target.phi, second, weights, counts, looks, settings.delta, biases)


def _best(
    log: DecisionLog, view: SessionView | None, control: TargetPolicy | None, settings: _Settings
) -> Evaluation:
    """Evaluate all options, and return the one with the largest estimate."""
    excluded = None if control is None or control.shared is None else control.name
    names = [name for name in log.options if str(name) != excluded]
    level = settings._replace(delta=settings.delta / len(names))
    found = [
        _evaluate(
            log, view, TargetPolicy(str(name), shared=_shares(log, name, "")[1]), control, level
        )
        for name in names
    ]
    known = [one for one in found if not math.isnan(one.value)]
    if not known:
        why = "No option can be estimated: each had probability 0 in some decisions, or no reward."
        unknown = dataclasses.replace(found[0], target="the best option", model=None)
        return dataclasses.replace(unknown, delta=settings.delta, notes=(why, *found[0].notes[:1]))
    chosen = max(known, key=lambda one: one.value)
    note = (
        f"It has the largest estimate of {len(known)} options; the intervals of all {len(names)} "
        f"hold together with probability {1.0 - settings.delta:g}, its own included."
    )
    left = [one.target for one in found if math.isnan(one.value)]
    if left:
        note += f" Not estimated, and possibly better: {', '.join(left)}."
    return dataclasses.replace(chosen, delta=settings.delta, notes=(note, *chosen.notes))


def _effective_size(ratios: Array) -> float:
    squares = float(ratios @ ratios)
    return float(ratios.sum() ** 2 / squares) if squares > 0.0 else 0.0


def _unsupported(names: str, log: DecisionLog, supported: NDArray[np.bool_]) -> str:
    """Sentences on a target that could not always have been played."""
    unknown = int(np.isnan(log.probability).sum())
    why = []
    if unknown:
        why.append(f"in {unknown:,} the probability of the chosen option is not known")
    if (~supported & ~np.isnan(log.probability)).any():
        why.append("in the others an option that is needed had probability 0")
    text = (
        f"{names} could have been played in {int(supported.sum()):,} of {len(log):,} decisions, as "
        f"far as the log tells: {', and '.join(why)}. Their rewards say nothing about it; "
        "min_probability= of a session prevents this."
    )
    if supported.any():
        text += " supported_only=True estimates the mean over the decisions that remain."
    return text


def _contradiction(name: str, side: Scores) -> str:
    """Sentence on weights whose mean is not 1; empty if that is chance."""
    n = len(side.ratios)
    if not side.ratios.any():
        return f"No decision that {name} could have made has a reward: its value is not known."
    error = float(side.ratios.std()) / math.sqrt(n)
    apart = float(side.ratios.mean()) - 1.0
    if abs(apart) <= max(_CONTRADICTION * error, _ROUNDING) or _effective_size(side.ratios) < 5.0:
        return ""
    why = "in some decisions its probability was 0" if apart < 0.0 else "they are wrong"
    return (
        f"The probabilities in the log do not fit its choices: importance weights of {name} should "
        f"average 1, and average {apart + 1.0:.3g}; probably {why}."
    )


def _missing_notes(log: DecisionLog, told: NDArray[np.bool_]) -> list[str]:
    """Sentences on decisions without a reward."""
    notes = []
    waiting = int((~told & log.open).sum())
    if waiting:
        notes.append(
            f"{waiting:,} open decisions are left out, as if whether a reward is late depended "
            "neither on it nor on the option."
        )
    lost = ~told & ~log.open
    if not lost.any():
        return notes
    notes.append(
        f"{int(lost.sum()):,} of {len(log):,} decisions have no reward and are left out, as if "
        "whether a reward is missing depended neither on it nor on the option."
    )
    closed = ~log.open
    every = np.bincount(log.actions[closed], minlength=log.k)
    without = np.bincount(log.actions[lost], minlength=log.k)
    seen = every > 0
    if seen.sum() > 1 and not lost.all() and 0 < lost.sum() < closed.sum():
        from scipy.stats import chi2_contingency

        table = np.array([without[seen], every[seen] - without[seen]])
        if chi2_contingency(table).pvalue < _MISSING_LEVEL:
            shares = without[seen] / every[seen]
            names = [str(one) for one, is_seen in zip(log.options, seen, strict=True) if is_seen]
            least, most = int(shares.argmin()), int(shares.argmax())
            notes.append(
                f"But it does depend on the option: rewards are missing in {shares[most]:.1%} of "
                f"the decisions for {names[most]} and in {shares[least]:.1%} of those for "
                f"{names[least]}, so that values are not to be trusted."
            )
    return notes


def _asymptotic_notes(settings: _Settings, sides: list[Scores], rewards: Array) -> list[str]:
    """Sentences on an asymptotic interval: why it is not another one, and when it begins."""
    notes = []
    if settings.fell_back:
        why = "the range of the rewards is not known (reward_range= gives it)"
        if settings.bounds is not None:
            why = f"method={settings.method!r} has no other that holds at every look"
        notes.append(f"The interval is asymptotic, because {why}.")
    if informative(np.sum([side.ratios for side in sides], axis=0), rewards).sum() < FIRST:
        notes.append(
            f"It begins when the target has {FIRST} rewards other than the most frequent one."
        )
    return notes


def _by_model(
    log: DecisionLog, view: SessionView | None, target: TargetPolicy | None, delta: float
) -> Interval | None:
    """Value of a target by the linear model of a session."""
    if view is None or target is None or log.arms is None or view.options.stream:
        return None
    if target.shared is None and target.rows is None:
        return None  # the best so far
    if view.options.items is not None or view.options.observations is not None:
        return None
    shares = np.zeros(len(view.options))
    blocks = view.options.blocks
    names = None if view.options.contexts is None else list(view.options.contexts.names)
    where = np.zeros(len(log), dtype=np.int64)
    if names is not None:
        where = np.array([names.index(one) for one in log.frame["context"]], dtype=np.int64)
    number_of = {name: i for i, name in enumerate(log.options)}
    for block, rows in enumerate(blocks):
        mine = where == block
        if not mine.any():
            continue
        pi = target.shared if target.rows is None else target.rows[mine].mean(axis=0)
        assert pi is not None
        for row in rows:
            shares[row] = mine.mean() * pi[number_of[view.options.names[row]]]
    if abs(shares.sum() - 1.0) > _ROUNDING:
        return None  # an option that some context does not have
    used = shares > 0.0
    found = view.intervals(delta)
    return Interval(*(float(shares[used] @ part[used]) for part in found))


def _model_notes(found: Evaluation) -> list[str]:
    """Sentences on what the model says if the log cannot tell, or says otherwise."""
    notes = []
    pairs = (
        (found.target, Interval(found.value, found.lower, found.upper), found.model),
        (found.control, found.control_value, found.control_model),
    )
    for name, own, model in pairs:
        if model is None or math.isnan(model.value):
            continue
        ends = f"{model.value:.4g} ({model.lower:.4g} to {model.upper:.4g})"
        if own is None or math.isnan(own.lower):
            notes.append(f"By the linear model, {name} earns {ends} per decision.")
        elif model.upper < own.lower or own.upper < model.lower:
            notes.append(
                f"The model may be wrong: by it, {name} earns {ends} per decision, which does not "
                "agree with the estimate above, for which no model is needed."
            )
    return notes
