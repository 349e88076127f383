"""``sl.plan``: how long an experiment will take and what it will earn, before it begins."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.bounds.asymptotic import LowerBound, lower_bound
from sightline.core.clock import FAR, clock_at
from sightline.core.confidence.rules import ConfidenceRule
from sightline.core.likelihood.families import Likelihood, valid_likelihood
from sightline.engine.ellipsoid import Residuals, ellipsoid_of, evidence_of
from sightline.engine.options import Options, as_options
from sightline.engine.settling import bound_of, evidence_by_law, rule_of
from sightline.lab.experiment import Experiment, label_of
from sightline.lab.settling import settle_all
from sightline.policies.base import Evidence, Policy
from sightline.policies.ids.policy import IDS
from sightline.problems.bandit import LinearBandit
from sightline.problems.noise import Bernoulli
from sightline.report.progress import counted
from sightline.report.supposed import supposed_parameter
from sightline.validation import integer, number

__all__ = ["Plan", "plan"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plan:
    """What to expect of an experiment, from simulation: what ``sl.plan`` returns.

    Attributes
    ----------
    options : Options
        What can be played.
    problem : LinearBandit
        What was supposed: means, gaps, noise.
    policy : Policy
        What was simulated.
    traffic_per_day : float
        Visitors per day.
    horizon : int
        Visitors in all.
    visitors : ndarray, shape (replications,)
        Visitors until each run was settled, up to 5 % too many; inf if it was not within the
        horizon, nan if the policy keeps nothing to tell it from.
    winners : ndarray, shape (replications,)
        Option that each run settled on; -1 if none.
    rewards : ndarray, shape (replications,)
        Expected total reward of what each run played within the horizon.
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
    horizon: int
    visitors: Array
    winners: NDArray[np.int64]
    rewards: Array
    equal_split_visitors: float
    bound: LowerBound

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

    def visitors_quantile(self, level: float) -> float:
        """Visitors within which a fraction of the runs settled; inf if the horizon is too short."""
        return float(np.quantile(self.visitors, level, method="inverted_cdf"))

    def days_quantile(self, level: float) -> float:
        """Days within which a fraction of the runs settled; inf if the horizon is too short."""
        return self.visitors_quantile(level) / self.traffic_per_day

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
    horizon: int = 100_000,
    replications: int = 100,
    seed: int = 0,
    progress: bool | None = None,
) -> Plan:
    """Simulate an experiment before it begins: days until settled, and what it will earn.

    Settled is what ``Session.status`` calls so: evidence reaches its threshold.  Policies without
    such a test, as ThompsonSampling, are judged by that of IDS on their data.

    Parameters
    ----------
    options : Options, mapping of name to features, or array_like of shape (k, d)
        What can be played.
    effects : mapping, optional
        Supposed effects by term and level: ``{"grand mean": 0.075, "picture": {"large": 0.02}}``.
        Levels that are not given follow from effects that sum to zero; what is left open is as
        small as the rest allows.  For options without factors, by column: ``{"x0": 0.1}``.
    means : mapping of option to number, or array_like of shape (k,), optional
        Supposed mean rewards, in place of effects; they must be linear in the features.
    noise_std : float or array_like, shape (k,), optional
        Standard deviation of Gaussian rewards, 1 by default; not allowed beside ``noise``.
    noise : distribution, optional
        Other rewards: ``sl.problems.Bernoulli(0.5)`` for clicks, means being rates.  Its parameter
        is what the policy is told.
    rewards : Likelihood, optional
        Rewards of a law that the policy knows: ``sl.Bernoulli()``, ``sl.Poisson()``, as in a
        session.  Effects are then on log odds or logarithms, means are still means.  With
        ``sl.Gaussian(std=None)`` beside a noise the policy is not told its level.
    traffic_per_day : float
        Visitors per day.
    policy : Policy, optional
        ``IDS(regulariser="matched")`` by default.
    horizon : int
        Visitors in all, below 2^53.
    replications : int
        Number of runs.
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
    family = None if rewards is None else valid_likelihood(rewards)
    theta = supposed_parameter(known, effects, means, family)
    told = {"noise": noise, "rewards": family, "name": "plan"}
    problem = LinearBandit(known.features, theta, noise_std, **told)
    traffic = number("traffic_per_day", traffic_per_day, above=0)
    chosen = IDS(regulariser="matched") if policy is None else policy
    if integer("horizon", horizon, at_least=1) >= FAR:
        raise ValueError("horizon must be below 2**53 visitors")
    experiment = Experiment([problem], [chosen], horizon, replications, seed)
    with counted(experiment.replications, progress) as watch:
        runs = settle_all(experiment, watch)
    return Plan(
        options=known,
        problem=problem,
        policy=chosen,
        traffic_per_day=traffic,
        horizon=experiment.horizon,
        visitors=np.array([run.rounds for run in runs]),
        winners=np.array([run.best for run in runs]),
        rewards=np.array([run.pulls for run in runs]) @ problem.means,
        equal_split_visitors=_equal_split(problem, rule_of(chosen)),
        bound=lower_bound(problem),
    )


def _equal_split(problem: LinearBandit, rule: ConfidenceRule) -> float:
    """Visitors after which an equal split is settled, if every reward is its mean."""

    def expected(visitors: float) -> Evidence:
        pulls = np.full(problem.k, visitors / problem.k)
        totals, clock = pulls * problem.means, clock_at(int(visitors) + 1)
        if problem.law is not None:
            return evidence_by_law(problem.model, pulls, totals, clock, rule)
        ellipsoid = ellipsoid_of(problem.actions, pulls, totals, problem.noise_std, bound)
        if problem.unknown_noise is not None:
            errors = visitors * float(np.mean(_variances(problem)))
            ellipsoid = ellipsoid._replace(residuals=Residuals(errors, int(visitors)))
        return evidence_of(ellipsoid, problem.actions, clock, rule)

    def is_settled(visitors: float) -> bool:
        report = expected(visitors)
        return report.evidence >= report.threshold

    bound = bound_of(rule)
    low, high = 1.0, 2.0
    while not is_settled(high):
        low, high = high, 2.0 * high
        if high >= FAR:
            return math.inf
    while high > low * 1.001:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_settled(middle) else (middle, high)
    return math.ceil(high)


def _variances(problem: LinearBandit) -> Array:
    """Of the rewards of every option; what policies are told may be more."""
    if isinstance(problem.noise, Bernoulli):
        return problem.means * (1.0 - problem.means)
    return np.broadcast_to(problem.noise_std, problem.k) ** 2


def _lines(plan: Plan) -> list[str]:
    """Readable table."""
    problem, runs = plan.problem, len(plan.visitors)
    days = plan.horizon / plan.traffic_per_day
    worst, best = plan.horizon * float(problem.means.min()), plan.best_reward
    gained = plan.reward - plan.equal_split_reward
    error = f" ± {_count(plan.reward_error)} (standard error)" if runs > 1 else ""
    rows = [
        ("settled", _settled(plan)),
        ("visitors until settled", _quantiles(plan, plan.visitors_quantile)),
        ("days until settled", _quantiles(plan, plan.days_quantile)),
        ("an equal split settles", _equal_split_settles(plan.equal_split_visitors)),
        ("reward", f"{_count(plan.reward)}{error}"),
        ("by an equal split", f"{_count(plan.equal_split_reward)}, {_count(gained)} less"),
        ("by one option taken blindly", f"the same on average; {_count(worst)} to {_count(best)}"),
        ("by the best option", f"{_count(best)}, {_count(best - plan.reward)} more"),
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


def _settled(plan: Plan) -> str:
    if math.isnan(plan.settled):
        return "unknown: the policy keeps no estimates to tell it from"
    right = "" if math.isnan(plan.right) else f", {100 * plan.right:.0f} % of them on a best option"
    return f"{100 * plan.settled:.0f} % of the runs{right}"


def _quantiles(plan: Plan, quantile: Callable[[float], float]) -> str:
    if math.isnan(plan.settled):
        return "unknown"
    median, late = quantile(0.5), quantile(0.9)
    if math.isinf(median):
        return "more than the horizon in most runs"
    end = "beyond the horizon" if math.isinf(late) else _count(late)
    return f"median {_count(median)}, 90 % quantile {end}, up to 5 % too late"


def _equal_split_settles(visitors: float) -> str:
    return "never" if math.isinf(visitors) else f"after about {_count(visitors)} visitors"


def _count(value: float) -> str:
    """Three digits, or all of those before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
