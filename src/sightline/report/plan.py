"""``sl.plan``: the expected duration and reward of an experiment, from simulation."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.bounds.asymptotic import LowerBound, lower_bound
from sightline.core.clock import FAR, clock_at
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import LogDet, ridge
from sightline.core.estimate import span_of
from sightline.core.likelihood import Gaussian, Likelihood, valid_likelihood
from sightline.core.model import Model
from sightline.experiments.experiment import Experiment, label_of
from sightline.experiments.settling import settle_all
from sightline.policies.base import Evidence, Policy
from sightline.policies.stakes import Stakes
from sightline.problems.bandits import LinearBandit
from sightline.problems.noise import BernoulliNoise
from sightline.report.progress import counted
from sightline.sessions.effects import (
    bound_of,
    ellipsoid_of,
    evidence_by_likelihood,
    evidence_of,
    rule_of,
)
from sightline.sessions.options import Options, as_options
from sightline.sessions.rewards import augmented, units_of
from sightline.validation import finite_array, instance, integer, number, one_of

Array = NDArray[np.float64]

#: Names of the numbers of days after which a plan reports.
_PERIODS = {1: "a day", 7: "a week", 30: "a month"}
# By default a plan simulates so many visitors in each run at most, and in all runs together.
_MOST_VISITORS, _VISITORS = 100_000, 600_000
# Minimum probability whose price a plan states, and the fraction of decisions that it may draw from
# all options alike.
_FLOOR, _UNIFORM = 0.01, 0.1
_TOLERANCE = 1e-9  # relative to the largest number that was given


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of an experiment, from simulation: what ``sl.plan`` returns.

    Attributes
    ----------
    options : Options
        The options.
    problem : LinearBandit
        The assumed means, gaps and noise.  Its last feature is a constant where a session adds one.
    policy : Policy
        The simulated policy, as it acts in a session.
    traffic_per_day : float
        Visitors per day.
    marks : tuple of int
        Visitors after a day, a week and a month, as far as the horizon goes, and at the horizon.
    visitors : ndarray, shape (replications,)
        Visitors until each run was settled, up to 5 % too many; inf if it was not within the
        horizon, nan if the policy keeps no estimates.
    winners : ndarray, shape (replications,)
        Option that each run settled on; -1 if none.
    leaders : ndarray, shape (replications, marks)
        Option in front at each mark; -1 if the policy does not say.
    pulls : ndarray, shape (replications, marks, k)
        Visitors of each option by each mark.
    equal_split_visitors : float
        Visitors that an equal split needs for the same evidence, at expected rewards; inf if none
        suffice.
    bound : LowerBound
        c*: in the long run no consistent policy loses less than c* log n.
    """

    options: Options
    problem: LinearBandit
    policy: Policy
    traffic_per_day: float
    marks: tuple[int, ...]
    visitors: Array
    winners: NDArray[np.int64]
    leaders: NDArray[np.int64]
    pulls: Array
    equal_split_visitors: float
    bound: LowerBound

    @property
    def horizon(self) -> int:
        """Visitors in all."""
        return self.marks[-1]

    @property
    def settled(self) -> float:
        """Fraction of runs that settled within the horizon; nan if the policy cannot tell."""
        cannot = np.isnan(self.visitors).any()
        return math.nan if cannot else float(np.isfinite(self.visitors).mean())

    @property
    def right(self) -> float:
        """Fraction of the settled runs that settled on a best option; nan if none settled."""
        chosen = self.winners[np.isfinite(self.visitors)]
        return float((self.problem.gaps[chosen] == 0.0).mean()) if chosen.size else math.nan

    @property
    def in_front(self) -> Array:
        """Fraction of the runs in which a best option is in front, at every mark.

        nan if the policy does not say which option is.
        """
        best = (self.problem.gaps[self.leaders] == 0.0).mean(axis=0)
        return np.where((self.leaders < 0).any(axis=0), np.nan, best)

    @property
    def shortfall(self) -> Array:
        """Mean reward lost by each mark, against the best option from the beginning."""
        mean: Array = (self.pulls @ self.problem.gaps).mean(axis=0)
        return mean

    def visitors_quantile(self, level: float) -> float:
        """Visitors within which a fraction of the runs settled; inf if the horizon is too short."""
        return float(np.quantile(self.visitors, level, method="inverted_cdf"))

    def days_quantile(self, level: float) -> float:
        """Days within which a fraction of the runs settled; inf if the horizon is too short."""
        return self.visitors_quantile(level) / self.traffic_per_day

    @property
    def rewards(self) -> Array:
        """Expected total reward of what each run played within the horizon."""
        total: Array = self.pulls[:, -1] @ self.problem.means
        return total

    @property
    def reward(self) -> float:
        """Mean total reward within the horizon."""
        return float(self.rewards.mean())

    @property
    def reward_error(self) -> float:
        """Standard error of the mean total reward; nan for a single run."""
        n = len(self.rewards)
        return float(self.rewards.std(ddof=1)) / math.sqrt(n) if n > 1 else math.nan

    @property
    def equal_split_reward(self) -> float:
        """Expected total reward of an equal split, or of one option taken without any data."""
        return self.horizon * float(self.problem.means.mean())

    @property
    def best_reward(self) -> float:
        """Expected total reward of the best option."""
        return self.horizon * float(self.problem.means.max())

    @property
    def least_loss(self) -> float:
        """c* log n: what any consistent policy loses at least, as the horizon n grows."""
        return self.bound.value * math.log(self.horizon)

    @property
    def least_exploration(self) -> float:
        """Visitors of other options with which that loss is reached, as the horizon grows."""
        allocation = self.bound.allocation
        return float(allocation[np.isfinite(allocation)].sum()) * math.log(self.horizon)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def plan(
    options: Options | Mapping[str, ArrayLike] | ArrayLike,
    *,
    effects: Mapping[str, Any] | None = None,
    means: Mapping[str, float] | ArrayLike | None = None,
    noise_std: float | ArrayLike | None = None,
    noise: Any = None,
    rewards: Likelihood | None = None,
    traffic_per_day: float,
    policy: Policy | None = None,
    horizon: int | None = None,
    replications: int | None = None,
    seed: int = 0,
    progress: bool | None = None,
) -> Plan:
    """Simulate an experiment before it begins.

    The runs are those of a session with the same options, policy and kind of reward.  The plan says
    how likely the best option is in front after a day, a week and a month, how much reward is lost
    until then, and how many days pass until the answer is settled: as in ``Session.status``, until
    the evidence reaches its threshold.  Policies without such a test, such as ThompsonSampling, are
    judged by that of IDS on their data.

    Parameters
    ----------
    options : Options, mapping of name to features, or array_like of shape (k, d)
        The options.
    effects : mapping, optional
        Assumed effects by term and level: ``{"grand mean": 0.075, "picture": {"large": 0.02}}``.
        Levels that are not given follow from effects that sum to zero; effects that remain open are
        as small as the others allow.  For options without factors, by column: ``{"x0": 0.1}``.
    means : mapping of option to number, or array_like of shape (k,), optional
        Assumed mean rewards, in place of effects; they must be linear in the features.
    noise_std : float or array_like, shape (k,), optional
        Standard deviation of Gaussian rewards, 1 by default; not allowed beside ``noise``.
    noise : distribution, optional
        Other rewards: ``sl.problems.BernoulliNoise(0.5)`` for clicks, means being rates.
    rewards : Likelihood, optional
        Likelihood that the session is given: ``sl.Bernoulli()``, ``sl.Poisson()``.  Effects are
        then on log odds or logarithms, means are still means.  By default none: the policy learns
        the noise level, if it can.
    traffic_per_day : float
        Visitors per day.
    policy : Policy, optional
        :class:`Stakes` by default, as in a session.
    horizon : int, optional
        Visitors in all, below 2^53; by default those of 30 days, at most 100,000.
    replications : int, optional
        Number of runs; by default as many as take some seconds: 600,000 visitors in all, at
        least 6 runs and at most 100.
    seed : int
        Same seed, same plan.
    progress : bool, optional
        Whether to show progress on stderr; by default if that is a terminal.

    Returns
    -------
    Plan
        Prints as a table.
    """
    known = as_options(options)
    known.needs_fixed_options("a plan")
    traffic = number("traffic_per_day", traffic_per_day, above=0)
    if horizon is None:
        horizon = max(min(round(30 * traffic), _MOST_VISITORS), 1)
    horizon = integer("horizon", horizon, at_least=1)
    if horizon >= FAR:
        raise ValueError("horizon must be below 2**53 visitors")
    if replications is None:
        replications = min(max(_VISITORS // horizon, 6), 100)
    chosen = Stakes() if policy is None else policy
    instance("policy", chosen, Policy, "a Policy such as IDS()")
    family = None if rewards is None else valid_likelihood(rewards)
    theta = supposed_parameter(known, effects, means, family)
    if family is None and chosen.supports.unknown_noise and not chosen.tells_scale:
        family = Gaussian(std=None, guess=_largest_level(noise_std, noise))
    units = units_of("auto", known, chosen, family)
    features = augmented(known.features, units.intercept)
    theta = np.append(theta, 0.0)[: features.shape[1]]
    told = {"noise": noise, "rewards": family, "name": "plan"}
    problem = LinearBandit(features, theta, noise_std, **told)
    acting = chosen.with_unknown_scale() if units.learned else chosen
    model = dataclasses.replace(problem.model, intercept=units.intercept != 0.0)
    experiment = Experiment([problem], [acting], horizon, replications, seed)
    periods = [round(days * traffic) for days in _PERIODS]
    marks = tuple(sorted({*(n for n in periods if 1 <= n <= horizon), horizon}))
    with counted(experiment.replications, progress) as watch:
        runs = settle_all(experiment, marks, model, watch)
    return Plan(
        options=known,
        problem=problem,
        policy=acting,
        traffic_per_day=traffic,
        marks=marks,
        visitors=np.array([run.rounds for run in runs]),
        winners=np.array([run.best for run in runs]),
        leaders=np.array([run.leaders for run in runs]),
        pulls=np.array([run.pulls for run in runs]),
        equal_split_visitors=_equal_split(problem, model, rule_of(acting)),
        bound=lower_bound(problem),
    )


def _largest_level(noise_std: Any, noise: Any) -> float:
    """Guess of the noise level, of the size that the first rewards show."""
    level = getattr(noise, "noise_std", 1.0) if noise_std is None else noise_std
    return float(np.max(level))


def _equal_split(problem: LinearBandit, model: Model, rule: ConfidenceRule) -> float:
    """Visitors after which an equal split is settled, if every reward is its mean."""
    if _equally_good(problem) > 1:
        return math.inf
    basis = span_of(problem.actions)
    rows, bound = problem.actions @ basis, bound_of(rule)
    lambda_ = ridge("matched", LogDet(norm_bound=bound), model)

    def expected(visitors: float) -> Evidence:
        pulls = np.full(problem.k, visitors / problem.k)
        totals, clock = pulls * problem.means, clock_at(int(visitors) + 1)
        if problem.likelihood_tuple is not None:
            return evidence_by_likelihood(model, pulls, totals, clock, rule)
        squares = None
        if problem.unknown_noise is not None:
            squares = visitors * float(np.mean(_variances(problem)))
        noise = problem.noise_std
        ellipsoid = ellipsoid_of(rows, pulls, totals, noise, bound, squares, lambda_)
        return evidence_of(ellipsoid, rows, clock, rule)

    def is_settled(visitors: float) -> bool:
        report = expected(visitors)
        return report.evidence >= report.threshold

    low, high = 1.0, 2.0
    while not is_settled(high):
        low, high = high, 2.0 * high
        if high >= FAR:
            return math.inf
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_settled(middle) else (middle, high)
    return math.ceil(high)


def _equally_good(problem: LinearBandit) -> int:
    """How many options share the largest mean; no data can separate them."""
    return int((problem.gaps <= 1e-12 * max(np.abs(problem.means).max(), 1e-300)).sum())


def _variances(problem: LinearBandit) -> Array:
    """Variances of the rewards of all options; what policies are told may be more."""
    if isinstance(problem.noise, BernoulliNoise):
        return problem.means * (1.0 - problem.means)
    return np.broadcast_to(problem.noise_std, problem.k) ** 2


def _lines(plan: Plan) -> list[str]:
    """Lines of a table for readers."""
    problem, runs = plan.problem, len(plan.visitors)
    days = plan.horizon / plan.traffic_per_day
    worst, best = plan.horizon * float(problem.means.min()), plan.best_reward
    gained = plan.reward - plan.equal_split_reward
    error = f" ± {_count(plan.reward_error)} (standard error)" if runs > 1 else ""
    rows = [
        *_periods(plan),
        ("settled", _settled(plan)),
        ("days until settled", _quantiles(plan)),
        ("an equal split settles", _equal_split_settles(plan)),
        ("reward", f"{_count(plan.reward)}{error}"),
        ("by an equal split", f"{_count(plan.equal_split_reward)}, {_count(gained)} less"),
        ("by one option taken blindly", f"the same on average; {_count(worst)} to {_count(best)}"),
        ("by the best option", f"{_count(best)}, {_count(best - plan.reward)} more"),
        ("to evaluate other policies", _evaluation(plan)),
        (
            "least loss in the long run",
            f"c* log n = {_count(plan.least_loss)}, with "
            f"{_count(plan.least_exploration)} visitors of other options",
        ),
    ]
    head = (
        f"{problem.k} options, {_count(plan.horizon)} visitors, {_count(plan.traffic_per_day)} a "
        f"day for {_count(days)} days; {runs} simulated runs of {label_of(plan.policy)}"
    )
    return [head, *(f"  {label:<28}{text}" for label, text in rows)]


def _periods(plan: Plan) -> list[tuple[str, str]]:
    """List what is known and lost after a day, a week and a month."""
    names = {round(days * plan.traffic_per_day): name for days, name in _PERIODS.items()}
    rows = []
    for mark, chance, lost in zip(plan.marks, plan.in_front, plan.shortfall, strict=True):
        if mark not in names:
            continue
        front = "" if math.isnan(chance) else f"the best option is in front in {100 * chance:.0f} %"
        so_far = f"{_count(lost)} of {_count(mark * plan.problem.means.max())} lost"
        rows.append((f"after {names[mark]}", f"{front}{', ' if front else ''}{so_far}"))
    return rows


def _settled(plan: Plan) -> str:
    if math.isnan(plan.settled):
        return "unknown: the policy keeps no estimates to tell it from"
    right = "" if math.isnan(plan.right) else f", {100 * plan.right:.0f} % of them on a best option"
    return f"{100 * plan.settled:.0f} % of the runs{right}"


def _quantiles(plan: Plan) -> str:
    if math.isnan(plan.settled):
        return "unknown"
    median, late = plan.days_quantile(0.5), plan.days_quantile(0.9)
    if math.isinf(median):
        return "more than the horizon in most runs"
    end = "beyond the horizon" if math.isinf(late) else _count(late)
    return f"median {_count(median)}, 90 % quantile {end}, up to 5 % too late"


def _evaluation(plan: Plan) -> str:
    """Say what the log cannot evaluate, and what a minimum probability would cost."""
    problem = plan.problem
    floor = min(_FLOOR, _UNIFORM / problem.k)
    cost = floor * float(problem.gaps.sum()) * plan.horizon
    return (
        "the log says nothing about an option where its probability is 0; "
        f"min_probability={floor:.2g} costs up to {_count(cost)}"
    )


def _equal_split_settles(plan: Plan) -> str:
    visitors, ties = plan.equal_split_visitors, _equally_good(plan.problem)
    if ties > 1:
        return f"never: {ties} options are equally good"
    if math.isinf(visitors):
        return "never"
    days = _count(visitors / plan.traffic_per_day)
    return f"after about {_count(visitors)} visitors, {days} days"


def _count(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def supposed_parameter(
    options: Options,
    effects: Mapping[str, Any] | None,
    means: Mapping[str, float] | ArrayLike | None,
    likelihood: Likelihood | None = None,
) -> Array:
    """Compute theta from effects or from means: one of the two, not both.

    Effects are values of contrasts, by term or by term and level; other effects are as small as
    these allow.  Means are those of all options.  With a likelihood, effects are on the scale of
    its predictors, such as log odds.
    """
    if (effects is None) == (means is None):
        raise ValueError("give effects or means, one of the two")
    if effects is not None:
        return _from_effects(options, effects)
    return _from_means(options, means, likelihood)


def _from_effects(options: Options, effects: Any) -> Array:
    if not isinstance(effects, Mapping) or not effects:
        raise ValueError(f"effects must be a mapping such as {{'x0': 0.1}}, got {effects!r}")
    known: dict[str, dict[str, Array]] = {}
    for contrast in options.contrasts:
        known.setdefault(contrast.term, {})[contrast.level] = contrast.vector
    vectors, values = [], []
    for term, given in effects.items():
        levels = known[one_of("term of an effect", term, known)]
        for level, value in (given if isinstance(given, Mapping) else {"": given}).items():
            if str(level) not in levels and not isinstance(given, Mapping):
                example = f"{{{next(iter(levels))!r}: 0.1}}"
                raise ValueError(f"effects of {term!r} need levels, such as {example}")
            vectors.append(levels[one_of(f"level of {term!r}", str(level), levels)])
            values.append(number(f"effect of {term} {level}".strip(), value))
    table, wanted = np.array(vectors), np.array(values)
    theta, misfit = _solve(table, wanted)
    if misfit.max() > _TOLERANCE * np.abs(wanted).max():
        raise ValueError("effects contradict each other: those of a factor must sum to zero")
    return theta


def _solve(table: Array, wanted: Array) -> tuple[Array, Array]:
    """Shortest least-squares solution, with rounding errors set to 0, and its residuals."""
    theta: Array = np.asarray(np.linalg.lstsq(table, wanted)[0], np.float64)
    cleaned = np.where(np.abs(theta) > 1e-12 * np.abs(theta).max(), theta, 0.0)
    misfits = [np.abs(table @ solution - wanted) for solution in (theta, cleaned)]
    if misfits[1].max() <= max(misfits[0].max(), 1e-14 * np.abs(wanted).max()):
        return cleaned, misfits[1]
    return theta, misfits[0]


def _from_means(options: Options, means: Any, likelihood: Likelihood | None) -> Array:
    k = len(options)
    if isinstance(means, Mapping):
        rows = {}
        for name, value in means.items():
            rows[one_of("option", name, options.names)] = number(f"mean of {name!r}", value)
        missing = [name for name in options.names if name not in rows]
        if missing:
            raise ValueError(f"means must have one for every option, {missing[0]!r} is missing")
        means = [rows[name] for name in options.names]
    wanted = finite_array("means", means, (k,), hint=", one mean per option")
    if likelihood is not None:
        wanted = likelihood.predictors(wanted)
    theta, misfit = _solve(options.features, wanted)
    if misfit.max() > _TOLERANCE * np.abs(wanted).max():
        worst = options.names[int(misfit.argmax())]
        raise ValueError(
            f"means must be linear in the features, but {worst!r} is {misfit.max():.3g} off the "
            "nearest linear model: add interactions or features"
        )
    return theta
