"""Views of sessions: a session at one moment, from which tables, figures and intervals are made.

A view is an immutable copy, so that slow work is done without the lock of the session.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import LogDet, ridge
from sightline.core.estimate import basis_of_differences
from sightline.core.likelihood import Bernoulli, Gaussian, Likelihood, Poisson, mean_of
from sightline.core.model import Model, common_noise
from sightline.jit import interpreted
from sightline.policies.base import Evidence, Policy
from sightline.problems.bandits import ContextualBandit, LinearBandit, LinearGame
from sightline.problems.base import TableProblem
from sightline.sessions.checks import Data, checks_of
from sightline.sessions.decisions import Check, doubt_in
from sightline.sessions.effects import (
    Effect,
    Ellipsoid,
    bound_of,
    effects,
    ellipsoid_by_likelihood,
    ellipsoid_in,
    ellipsoid_of,
    evidence_at,
    evidence_of,
    intervals,
    least_norm,
    limits_of_sum,
    parameter,
    radius,
    valid_bound,
    whiten,
)
from sightline.sessions.estimates import Estimates
from sightline.sessions.history import BlockStatistics
from sightline.sessions.journal import Event
from sightline.sessions.options import Options
from sightline.sessions.rewards import Scale, augmented, constant_in
from sightline.sessions.state import LiveState, least_evident

_MOST_OPEN = 10_000  # open decisions, the oldest, that a check counts
_FARTHEST = 700.0  # exp of it is finite
# Least number of rewards for a comparison of their variance with the given one, and the logarithm
# of the inverse level of that test.
_LEAST_REWARDS, _DOUBT_LEVEL = 20, math.log(1e6)
Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class JournalContents(NamedTuple):
    """Contents of a journal: its first snapshot, and all events since."""

    first: bytes
    events: list[Event]


@dataclass(frozen=True, eq=False)
class SessionView:
    """A session at one moment."""

    options: Options  # all options, including retired ones
    offered: NDArray[np.bool_]  # shape (k,): which options are not retired
    policy: Policy  # policy of the session
    # Rule of intervals and tests: that of the policy, without assumptions about the scale of
    # rewards where that is learned.
    rule: ConfidenceRule
    model: Model  # model of the options for the policy
    # Shape (k,) or (k, p): sub-Gaussian parameter of the rewards or, in a game, of the outcomes.
    noise_std: float | Array
    clock: Clock  # round of the next decision
    # Shape (k,): for each option, numbers of decisions and of rewards, and the sum of rewards; in a
    # game, of outcomes, where totals have shape (k p,).
    asked: NDArray[Any]
    told: Ints
    totals: Array
    # Shape (k p,): sums of rewards less the origin, from exact sums; ``totals`` lose small
    # differences between large rewards.
    sums: Array
    # Sum of squared deviations of rewards from the mean of their option, in units of the noise; in
    # a stream, sum of squares of what the policy has received.
    squares: float
    weights: Array  # shape (k, p): largest noise level over that of each option
    scale: Scale  # coordinates and units of what the policy has learned
    estimates: Estimates | None  # estimates of the policy, if it keeps any
    # Evidence of the policy; its threshold is nan if the policy has no test.  With contexts, that
    # of the context with the least evidence.
    report: Evidence
    # In a stream, what the policy has learned; no other data are kept.
    learned: Ellipsoid | None = None
    # Likelihood of the rewards; None for normal ones of a known level.
    likelihood: Likelihood | None = None
    # Types of the recorded attributes of decisions, by name.
    attributes: Mapping[str, str] = field(default_factory=dict)
    blocks: BlockStatistics | None = None  # closed decisions by block of rounds
    most_blocks: int = 0  # blocks that this can have
    waits: bool = False  # whether rewards wait until their window closes
    # Shape (k,): decisions of the first half of all rounds that are still open, where nothing
    # closes them, and rewards arrive much sooner.
    unanswered: Array | None = None

    @functools.cached_property
    def checks(self) -> tuple[Check, ...]:
        """Results of all checks; see :meth:`sightline.Session.checks`."""
        if self.blocks is None:
            return ()
        k, options = len(self.options), self.options
        levels = None
        if self.likelihood is None and options.per_arm == 1 and not self._noise_contradiction():
            levels = np.broadcast_to(np.ravel(self.noise_std), k)
        data = Data(
            options,
            augmented(options.seen, self.scale.intercept),
            self.likelihood,
            levels,
            self.weights[:, 0],
            self.blocks,
            self.most_blocks,
            self.waits,
            np.zeros(k) if self.unanswered is None else self.unanswered,
            self.estimates,
        )
        return checks_of(data)

    @functools.cached_property
    def doubt(self) -> str:
        """Sentences on failed checks that contradict the model; usually empty."""
        return doubt_in(self.checks)

    @property
    def has_test(self) -> bool:
        """Whether the policy tests which option is best."""
        return not math.isnan(self.report.threshold)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """Evidence of the policy, or of the test of IDS on all rewards if it has no test.

        The threshold is infinite while the data contradict an assumption.
        """
        found = self.report
        if not self.has_test:
            found = self.tested(self.told, self.sums, self.squares, self.offered, self.clock)
        return found._replace(threshold=math.inf) if self.contradiction else found

    def tested(
        self, told: Ints, sums: Array, squares: float, offered: NDArray[np.bool_], clock: Clock
    ) -> Evidence:
        """Apply the test of IDS to data and options of any moment.

        With contexts, return the evidence of the context with the least.
        """
        data = self._data(told, sums, squares, bound_of(self.rule))
        return least_evident(
            self._each(offered, lambda rows: evidence_of(data, rows, clock, self.rule))
        )

    def _each(
        self, offered: NDArray[np.bool_], test: Callable[[Array], Evidence]
    ) -> list[Evidence]:
        """Apply a test to the features of the options on offer, in every context."""
        reports = []
        for block in self.options.blocks:
            rows = np.array(block)[offered[block]]
            found = test(self._features[rows])
            reports.append(found._replace(best=int(rows[found.best])))
        return reports

    @functools.cached_property
    def _features(self) -> Array:
        """Features of all options, in the coordinates of the ellipsoid."""
        return self.scale.features(self.options.features)

    @property
    def contradiction(self) -> str:
        """Sentence on what the data contradict; usually empty.

        An assumption about rewards, or that they do not change and agree with the model.
        """
        return self.assumption or self.doubt

    @functools.cached_property
    def assumption(self) -> str:
        """Sentence on the assumption about rewards that the data contradict; usually empty.

        Each call raises a false alarm with a probability below 1e-6.
        """
        if self.options.per_arm > 1 or self.told.sum() == 0:
            return ""
        if self.options.stream:
            return self._stream_contradiction()
        return self._noise_contradiction() or self.norm_contradiction(bound_of(self.rule))

    def _noise_contradiction(self) -> str:
        """Compare the variance of rewards of the same option with the given one."""
        spare = np.maximum(self.told - 1, 0)
        count = int(spare.sum())
        if count < _LEAST_REWARDS or isinstance(self.likelihood, Gaussian | Bernoulli):
            return ""
        if isinstance(self.likelihood, Poisson):
            means = self.totals / np.maximum(self.told, 1)
            expected, variance = float(spare @ means), float(spare @ (2.0 * means**2 + means))
            if self.squares <= _largest_sum(expected, variance, max(float(means.max()), 1.0)):
                return ""
            return (
                f"Counts vary more than Poisson() allows: their variance is about "
                f"{self.squares / expected:.2g} times their mean, so that intervals are too short; "
                "rewards=Gaussian(std=None) learns how much they vary."
            )
        if self.model.likelihood is not None:
            return ""
        return self._wider_noise(self.squares / count / common_noise(self.noise_std) ** 2, count)

    def _wider_noise(self, ratio: float, count: int) -> str:
        """Sentence on a variance that is ``ratio`` times the given one; empty if that is chance."""
        if ratio * count <= _largest_sum(count, 2.0 * count, 1.0):
            return ""
        factor = math.sqrt(ratio)
        if not isinstance(self.noise_std, float):
            return (
                f"Rewards vary more than noise_std allows: about {factor:.3g} times as much as "
                "these levels say; without noise_std it is learned."
            )
        return (
            f"Rewards vary more than noise_std={self.noise_std:g} allows: their standard deviation "
            f"is about {factor * self.noise_std:.3g}; without noise_std it is learned."
        )

    def _stream_contradiction(self) -> str:
        """Compare the variance of rewards around the fit with the given noise level.

        The residual sum of squares has no regulariser, so that a long theta is no contradiction.
        """
        data, count = self.learned, int(self.told.sum())
        if data is None or self.likelihood is not None or count < _LEAST_REWARDS:
            return ""
        d = data.factor.shape[0]
        gram = data.factor.T @ data.factor - data.regulariser * np.eye(d)
        target = data.factor.T @ data.whitened
        explained = float(target @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ target)
        ratio = max(self.squares - explained, 0.0) / (count * data.noise_std**2)
        return self._wider_noise(ratio, count)

    def norm_contradiction(self, bound: float | None) -> str:
        """Compare the norm of the parameter with a given bound."""
        if bound is None or self.options.stream:
            return ""
        # with a weak prior: one that follows the bound would hide a contradiction
        data = self._data(self.told, self.sums, self.squares, None)._replace(norm_bound=bound)
        shortest = least_norm(data, _DOUBT_LEVEL)
        if shortest <= bound:
            return ""
        return (
            f"The parameter is longer than norm_bound={bound:g} allows: its norm is at least "
            f"{shortest:.3g}; without norm_bound it is learned."
        )

    def tested_at(self, delta: float) -> list[Evidence]:
        """Compare the evidence of all rewards with the threshold of a fixed level.

        For the options on offer, or for every context in their order.  With probability at least 1
        - delta, evidence never passes the threshold for an option that is not best; for clicks and
        counts that is asymptotic.  While data contradict an assumption, the threshold is infinite.
        """
        self.options.needs_lasting_options("a test of the best option")
        offered = self.offered
        if self.options.items is not None:  # a pair is never better than the better of the two
            offered = np.arange(len(self.options)) < len(self.options.items)
        found = self._each(offered, lambda rows: evidence_at(self.data, rows, self.clock, delta))
        if self.contradiction:
            found = [one._replace(threshold=math.inf) for one in found]
        return found

    def effects(self, delta: float, norm_bound: float | None = None) -> list[Effect]:
        """Estimate effects with intervals; see :meth:`sightline.Session.effects`."""
        bound = bound_of(self.rule)
        if norm_bound is not None:
            bound = valid_bound(norm_bound)
            if self.scale.intercept != 0.0:
                raise ValueError(
                    "norm_bound must be left out where the session learns the scale of rewards; "
                    f"with units='given' it bounds all of theta, got {norm_bound!r}"
                )
        if self.learned is not None:
            data = self.learned._replace(norm_bound=bound)
        elif self.options.stream:
            raise ValueError(f"{self.policy} keeps no estimates, from which effects are found")
        else:
            data = self._data(self.told, self.sums, self.squares, bound)
        return effects(self.options, data, delta, self.scale)

    def intervals(self, delta: float) -> tuple[Array, Array, Array]:
        """Estimate the mean reward of every option, with intervals that hold at all rounds at once.

        From all rewards, including those that the policy did not learn from.  In a duel, the mean
        outcome of every item against the best so far.  For clicks and counts the guarantee is
        asymptotic, as that of :meth:`effects`.  Returns estimates, nan if not identifiable, and the
        ends of the intervals.
        """
        options = self.options
        options.needs_lasting_options("an interval for every option")
        vectors, constant = self._values, 1.0
        if options.items is not None:
            vectors, constant = vectors - vectors[self.evidence.best], 0.0
        found = intervals(options.seen, vectors, self.data, delta, self.scale, constant)
        likelihood = self.model.likelihood
        if likelihood is None:
            return found
        values, lower, upper = (_rewards_of(likelihood, predictors) for predictors in found)
        return values, lower, upper

    def differences(self, control: Sequence[int], delta: float) -> tuple[Array, Array, Array]:
        """Estimate differences to a control, with intervals as of :meth:`intervals`.

        The control is a row, or an item in a duel; one for every context.  For clicks and counts
        they are differences of log odds, or of logarithms of means.
        """
        self.options.needs_lasting_options("a control")
        vectors, blocks = self._values, self.options.contexts
        base = np.full(len(vectors), control[0])
        if blocks is not None:
            for rows, row in zip(blocks.blocks(), control, strict=True):
                base[list(rows)] = row
        differences = vectors - vectors[base]
        return intervals(self.options.seen, differences, self.data, delta, self.scale, 0.0)

    def sums_of_means(
        self, vectors: Array, weights: Array, delta: float, shares: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Estimate sums of weighted mean rewards, with intervals as of :meth:`intervals`.

        Sum i is that of ``weights[i, j]`` times the mean reward of an option with the features
        ``vectors[j]``.  For clicks and counts it is in units of the reward: the interval is the
        range of the sum over the ellipsoid of the parameter.  ``shares`` are those of the constant
        in each vector, by default 1, as for options.
        """
        likelihood = self.model.likelihood
        seen, scale = self.options.seen, self.scale
        if shares is None:
            shares = np.ones(len(vectors))
        if likelihood is None:
            return intervals(seen, weights @ vectors, self.data, delta, scale, weights @ shares)
        predictors = intervals(seen, vectors, self.data, delta, scale, shares)[0]
        reach = scale.unit * radius(self.data, -math.log(delta))
        whitened = whiten(self.data, scale.contrasts(vectors, shares))
        # an infinite radius, times a zero, would be nan
        directions = np.where(whitened == 0.0, 0.0, reach * whitened)
        rows = []
        for row in weights:
            used = row != 0.0
            means = _rewards_of(likelihood, predictors[used])
            limits = limits_of_sum(
                predictors[used],
                directions[used],
                row[used],
                functools.partial(_rewards_of, likelihood),
                self.likelihood.range_of_means if self.likelihood else (-math.inf, math.inf),
            )
            rows.append((float(row[used] @ means), *limits))
        values, lower, upper = np.array(rows).reshape(-1, 3).T
        return values, lower, upper

    @property
    def _values(self) -> Array:
        """Vectors whose products with theta are the values of options; in a duel, of items."""
        if self.options.items is None:
            return self.options.features
        return 0.5 * self.options.features[: len(self.options.items)]  # an item alone pays twice

    @functools.cached_property
    def data(self) -> Ellipsoid:
        """Ellipsoid of all rewards; in a stream, of those that the policy has learned from."""
        if self.learned is not None:
            return self.learned
        return self._data(self.told, self.sums, self.squares, bound_of(self.rule))

    def _data(self, told: Ints, sums: Array, squares: float, norm_bound: float | None) -> Ellipsoid:
        """Ellipsoid of rewards, in the coordinates and units of the policy."""
        ridge_ = ridge("matched", LogDet(norm_bound=norm_bound), self.model)
        values = self.model.likelihood
        if values is not None:
            return ellipsoid_by_likelihood(self._features, values, told, sums, norm_bound, ridge_)
        k, p = len(self.options), self.options.per_arm
        noise = self.noise_std
        if not isinstance(noise, float):
            noise = np.broadcast_to(noise.reshape(k, -1), (k, p)).ravel()
        rows = self.scale.features(self.options.seen)
        counts = np.repeat(told, p)
        unknown = squares if isinstance(self.likelihood, Gaussian) else None
        return ellipsoid_of(
            rows, counts, sums / self.scale.unit, noise, norm_bound, unknown, ridge_
        )


def _largest_sum(mean: float, variance: float, largest: float) -> float:
    """Bound a sum of squared deviations, whose terms have a mean of at most ``largest``.

    Sub-Gaussian rewards with the given parameter pass it with a probability of at most 1e-6,
    whatever their distribution (Hsu, Kakade and Zhang, 2012).  For counts it is an approximation.
    """
    return mean + math.sqrt(2.0 * _DOUBT_LEVEL * variance) + 2.0 * _DOUBT_LEVEL * largest


def _rewards_of(likelihood: Any, predictors: Array) -> Array:
    """Mean rewards by their likelihood; predictors are clipped to where exp is finite."""
    kept = np.clip(predictors, -_FARTHEST, _FARTHEST)
    return np.array([interpreted(mean_of)(likelihood, float(u)) for u in kept])


def view_of(live: LiveState, report: Evidence | None = None) -> SessionView:
    """Copy a session; it may go on afterwards.  ``report`` is its evidence, if that is known."""
    counters, exact = live.counters, live.table.sums
    counts = np.repeat(counters.told, live.options.per_arm)
    sums = counters.totals - live.origin * counts
    if exact is not None:
        sums = np.array(exact.totals(len(sums), live.origin))
    offered = np.ones(len(live.options), dtype=np.bool_)
    offered[list(live.table.retired)] = False
    return SessionView(
        options=live.options,
        offered=offered,
        policy=live.policy,
        rule=_rule(live),
        model=live.table.model,
        noise_std=live.table.noise_std,
        clock=live.clock,
        asked=counters.asked.copy(),
        told=counters.told.copy(),
        totals=counters.totals.copy(),
        sums=sums,
        squares=counters.squares.item(),
        weights=live.table.weights,
        scale=_scale(live),
        estimates=live.estimates(),
        report=live.evidence() if report is None else report,
        learned=_learned(live),
        likelihood=live.table.likelihood,
        attributes=dict(live.decisions.attributes),
        blocks=live.table.history.blocks(),
        most_blocks=live.table.history.most,
        waits=live.decisions.window.holds,
        unanswered=_unanswered(live),
    )


def _unanswered(live: LiveState) -> Array:
    """Count open decisions of the first half of all rounds, by option.

    Only where no window closes them, and rewards arrive in a twentieth of the second half.
    """
    found = np.zeros(len(live.options))
    limits, open_ = live.decisions.window, live.decisions.open
    if not (open_ and limits.seconds is None and limits.rounds is None):
        return found
    blocks, half = live.table.history.blocks(), live.clock.t // 2
    row = half // blocks.length
    later = blocks.made[row:]
    later = later[np.isfinite(later[:, 0])]
    if blocks.delays[:, 0].sum() < _LEAST_REWARDS or len(later) == 0:
        return found
    delay = math.expm1(float(blocks.delays[:, 1].max()))
    if 20.0 * delay > float(later[:, 1].max() - later[0, 0]):
        return found
    for decision in itertools.islice(open_.values(), _MOST_OPEN):
        if decision.round <= half and len(found) > decision.arm:
            found[decision.arm] += 1.0
    return found


def _rule(live: LiveState) -> ConfidenceRule:
    rule = getattr(live.acting, "confidence", None)
    if isinstance(rule, ConfidenceRule):
        return rule
    if live.table.units.learned or not live.table.model.noise_known:
        return LogDet(norm_bound=None)  # S is in units of the reward, too
    return LogDet(norm_bound=getattr(live.acting, "norm_bound", 1.0))


def _scale(live: LiveState) -> Scale:
    """Scale of what a session has learned; effects in a stream are slopes, without a constant."""
    features, intercept = live.options.features, live.table.units.intercept
    d = features.shape[1]
    if live.options.stream:  # future options are unknown
        basis = np.eye(d + (intercept != 0.0))
        return Scale(live.origin, live.unit, intercept, np.zeros(d), basis)
    return Scale(live.origin, live.unit, intercept, *_coordinates(live.options, intercept))


#: Intercept, constant and basis by options: they take a singular value decomposition.
_COORDINATES: WeakKeyDictionary[Options, tuple[float, Array, Array]] = WeakKeyDictionary()


def _coordinates(options: Options, intercept: float) -> tuple[Array, Array]:
    """Constant and basis of a scale, cached by options."""
    found = _COORDINATES.get(options)
    if found is None or found[0] != intercept:
        features = options.features
        constant = constant_in(features) if intercept != 0.0 else np.zeros(features.shape[1])
        rows = augmented(features, intercept), augmented(options.seen, intercept)
        found = _COORDINATES[options] = intercept, constant, basis_of_differences(*rows)
    return found[1], found[2]


def _learned(live: LiveState) -> Ellipsoid | None:
    """Ellipsoid of what the policy has learned in a stream, where no other data are kept."""
    if not live.options.stream:
        return None
    table, outcomes = live.table, int(live.counters.explorations[0])
    found = ellipsoid_in(live.state, table.model.rewards[:-1], table.noise_std, outcomes=outcomes)
    return None if found is None else found._replace(noise_std=table.model.noise_std)


def estimated_problem(view: SessionView) -> TableProblem:
    """Make a problem with the parameter estimated from all rewards, and the options on offer.

    The probabilities of contexts are proportional to their past number of decisions plus one.
    """
    return _problem(view, view.offered)


def regret_spent(view: SessionView) -> float:
    """Estimate the cumulative regret of all decisions against the best option on offer.

    In a duel, the regret of both options that were shown.
    """
    whole = _problem(view, np.ones(len(view.options), dtype=np.bool_))
    means, total = whole.means, 0.0
    for rows in view.options.blocks:
        block = np.array(rows)
        best = means[block[view.offered[block]]].max()
        total += float(np.maximum(best - means[block], 0.0) @ view.asked[block])
    return total


def _problem(view: SessionView, rows: NDArray[np.bool_]) -> TableProblem:
    options = view.options
    options.needs_lasting_options("an estimate of the whole problem")
    theta = view.scale.parameter(parameter(view.data))
    features = augmented(options.features, view.scale.intercept)
    if options.observations is not None:
        return LinearGame(options.features, options.observations, theta, view.noise_std)
    kind: dict[str, Any] = {"rewards": view.likelihood}
    noise = None
    if view.model.likelihood is None:  # a level says all of normal rewards
        kind, noise = {}, _noise(view, rows)
    if options.contexts is None:
        return LinearBandit(features[rows], theta, noise, **kind)
    came = np.array([view.asked[block].sum() + 1.0 for block in options.blocks])
    sets = [features[block] for block in options.blocks]
    return ContextualBandit(sets, theta, came / came.sum(), noise, **kind)


def _noise(view: SessionView, rows: NDArray[np.bool_]) -> float | Array:
    """Noise level, given or estimated."""
    residuals = view.data.residuals
    if isinstance(view.likelihood, Gaussian) and residuals is not None and residuals.outcomes:
        variance = max(residuals.errors, 1e-30) / residuals.outcomes
        largest = view.scale.unit * float(np.sqrt(variance))
        return largest if isinstance(view.noise_std, float) else largest / view.weights[rows, 0]
    return view.noise_std if isinstance(view.noise_std, float) else view.noise_std[rows]
