"""Where a session stands, copied at one moment: from it tables and figures are made."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
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
from sightline.sessions.effects import Effect, effects, intervals
from sightline.sessions.ellipsoid import (
    Ellipsoid,
    ellipsoid_by_likelihood,
    ellipsoid_in,
    ellipsoid_of,
    evidence_at,
    evidence_of,
    least_norm,
    valid_bound,
)
from sightline.sessions.estimates import Estimates
from sightline.sessions.journal import Event
from sightline.sessions.live import LiveState, weakest
from sightline.sessions.options import Options
from sightline.sessions.settling import bound_of
from sightline.sessions.units import Scale, augmented, constant_in

__all__ = ["Record", "View", "view_of"]

_FARTHEST = 700.0  # of which exp is a number still
# Rewards from which on their variance is compared with what was told, and the logarithm of one
# over the level at which it contradicts that.
_LEAST_REWARDS, _DOUBT_LEVEL = 20, math.log(1e6)
Array = NDArray[np.float64]
Ints = NDArray[np.int64]


class Record(NamedTuple):
    """What a journal holds: the snapshot it began with, and all events since."""

    first: bytes
    events: list[Event]


@dataclass(frozen=True, eq=False)
class View:
    """A session at one moment.

    Attributes
    ----------
    options : Options
        All that there ever were.
    offered : ndarray of bool, shape (k,)
        Those that are not retired.
    policy : Policy
        Who chooses.
    rule : ConfidenceRule
        By which intervals and tests are made: that of the policy, without what it assumes where
        the scale of rewards is learned.
    model : Model
        What the policy is told of the options.
    noise_std : float or ndarray, shape (k,) or (k, p)
        Sub-Gaussian parameter of the rewards or, in a game, of the outcomes.
    clock : Clock
        Of the next question.
    asked, told, totals : ndarray, shape (k,)
        Of each option: decisions, rewards and their sum; in a game, outcomes and their sum, of
        shape (k p,) where p numbers are shown.
    sums : ndarray, shape (k p,)
        Sums of rewards less the origin, from exact sums: totals lose small differences between
        large rewards.
    estimates : Estimates or None
        Of the policy, if it keeps any.
    report : Evidence
        Of the policy; its threshold is nan if the policy has no test.  With contexts, on the one
        of which least is known.
    squares : float
        Sum of squared deviations of rewards from the mean of their option, in units of the noise;
        where options are new in every round, sum of the squares of what the policy has learned.
    weights : ndarray, shape (k, p)
        Largest noise level over that of each option.
    scale : Scale
        Coordinates and units of what the policy has learned.
    learned : Ellipsoid or None
        What the policy has learned, where options are new in every round: of other data not enough
        is kept.
    likelihood : Likelihood or None
        Likelihood of the rewards, if they are no normal ones of a known level.
    """

    options: Options
    offered: NDArray[np.bool_]
    policy: Policy
    rule: ConfidenceRule
    model: Model
    noise_std: float | Array
    clock: Clock
    asked: NDArray[Any]
    told: Ints
    totals: Array
    sums: Array
    squares: float
    weights: Array
    scale: Scale
    estimates: Estimates | None
    report: Evidence
    learned: Ellipsoid | None = None
    likelihood: Likelihood | None = None

    @property
    def has_test(self) -> bool:
        """Whether the policy itself says what is settled."""
        return not math.isnan(self.report.threshold)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """Evidence of the policy, or by the test of IDS on all rewards if it has none.

        The threshold is infinite where the data contradict what it rests on.
        """
        found = self.report
        if not self.has_test:
            found = self.tested(self.told, self.sums, self.squares, self.offered, self.clock)
        return found._replace(threshold=math.inf) if self.contradiction else found

    def tested(
        self, told: Ints, sums: Array, squares: float, offered: NDArray[np.bool_], clock: Clock
    ) -> Evidence:
        """Evidence by the test of IDS, from the data and the offer of any moment.

        With contexts, on the one of which least is known.
        """
        data = self._data(told, sums, squares, bound_of(self.rule))
        reports = []
        for rows in self._together(offered):
            found = evidence_of(data, self._features[rows], clock, self.rule)
            reports.append(found._replace(best=int(rows[found.best])))
        return weakest(reports)

    @functools.cached_property
    def _features(self) -> Array:
        """Features of all options, in the coordinates of the ellipsoid."""
        return self.scale.features(self.options.features)

    def _together(self, offered: NDArray[np.bool_]) -> list[Ints]:
        """Rows among which decisions are made: those on offer, or those of every context."""
        blocks = self.options.contexts
        return [np.flatnonzero(offered)] if blocks is None else [*map(np.array, blocks.blocks())]

    @functools.cached_property
    def contradiction(self) -> str:
        """Say in a sentence which assumption about the rewards the data contradict; mostly none.

        A false alarm has a probability below 1e-6 at each look.
        """
        if self.options.per_arm > 1 or self.told.sum() == 0:
            return ""
        if self.options.stream:
            return self._stream_contradiction()
        return self._noise_contradiction() or self.norm_contradiction(bound_of(self.rule))

    def _noise_contradiction(self) -> str:
        """Compare how rewards of the same option vary with what was told of that."""
        spare = np.maximum(self.told - 1, 0)
        count = int(spare.sum())
        law = None if self.likelihood is None else self.likelihood.as_tuple
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
        ratio = self.squares / count / common_noise(self.noise_std) ** 2
        if law is not None or ratio * count <= _largest_sum(count, 2.0 * count, 1.0):
            return ""
        if not isinstance(self.noise_std, float):
            return (
                f"Rewards vary more than noise_std allows: about {math.sqrt(ratio):.3g} times as "
                "much as these levels say; without noise_std it is learned."
            )
        return _wider_noise(self.noise_std, math.sqrt(ratio))

    def _stream_contradiction(self) -> str:
        """Compare how rewards vary around the fit with the noise level that was told.

        The residual sum of squares without a regulariser, so that a long theta is no contradiction.
        """
        data, count = self.learned, int(self.told.sum())
        if data is None or self.likelihood is not None or count < _LEAST_REWARDS:
            return ""
        sigma = common_noise(self.noise_std)
        d = data.factor.shape[0]
        gram = data.factor.T @ data.factor - data.regulariser * np.eye(d)
        target = data.factor.T @ data.whitened
        explained = float(target @ np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ target)
        ratio = max(self.squares - explained, 0.0) / (count * data.noise_std**2)
        if ratio * count <= _largest_sum(count, 2.0 * count, 1.0):
            return ""
        return _wider_noise(sigma, math.sqrt(ratio))

    def norm_contradiction(self, bound: float | None) -> str:
        """Compare the length of the parameter with a bound that was told."""
        if bound is None or self.options.stream:
            return ""
        # with a weak prior: one that follows the bound would hide that the data contradict it
        data = self._data(self.told, self.sums, self.squares, None)._replace(norm_bound=bound)
        shortest = least_norm(data, _DOUBT_LEVEL)
        if shortest <= bound:
            return ""
        return (
            f"The parameter is longer than norm_bound={bound:g} allows: its norm is at least "
            f"{shortest:.3g}; without norm_bound it is learned."
        )

    def tested_at(self, delta: float) -> list[Evidence]:
        """Evidence from all rewards against the threshold of a level that stays the same.

        Of the options on offer, or of every context in their order.  With probability at least
        1 - delta, at no round does evidence pass the threshold for an option that is not best; of
        clicks and counts that is asymptotic.  Where data contradict an assumption, the threshold
        is infinite.

        Raises
        ------
        ValueError
            If options are new in every round.
        """
        self.options.needs_lasting_options("a test of the best option")
        offered = self.offered
        if self.options.items is not None:  # a pair is never better than the better of the two
            offered = np.arange(len(self.options)) < len(self.options.items)
        reports = []
        for rows in self._together(offered):
            found = evidence_at(self.data, self._features[rows], self.clock, delta)
            if self.contradiction:  # of what the level rests on
                found = found._replace(threshold=math.inf)
            reports.append(found._replace(best=int(rows[found.best])))
        return reports

    def effects(self, delta: float, norm_bound: float | None = None) -> list[Effect]:
        """Effects with intervals; see :meth:`sightline.Session.effects`."""
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
        """Mean reward of every option, with intervals that hold at all rounds at once.

        From all rewards, whichever of them the policy has learned from, where the noise is known.
        In a duel: the mean outcome of every item against the best so far.  Of clicks and counts
        the guarantee is asymptotic, as that of :meth:`effects` is.

        Parameters
        ----------
        delta : float
            Probability of any miss at any time, between 0 and 1.

        Returns
        -------
        estimates, lower, upper : ndarray, shape (k,), or of as many numbers as there are items
            Estimates, nan where no data could tell, and the ends of their intervals.

        Raises
        ------
        ValueError
            If options are new in every round.
        """
        options = self.options
        options.needs_lasting_options("an interval for every option")
        vectors, constant = self._values, 1.0
        if options.items is not None:
            vectors, constant = vectors - vectors[self.evidence.best], 0.0
        found = intervals(options.seen, vectors, self.data, delta, self.scale, constant)
        law = None if self.likelihood is None else self.likelihood.as_tuple
        if law is None:
            return found
        values, lower, upper = (_rewards_of(law, predictors) for predictors in found)
        return values, lower, upper

    def differences(self, control: Sequence[int], delta: float) -> tuple[Array, Array, Array]:
        """Difference of every option to a control, with intervals that hold at all rounds at once.

        Of clicks and counts they are those of log odds, or of logarithms of means.

        Parameters
        ----------
        control : sequence of int
            Row of the control or, in a duel, number of the item; one for every context.
        delta : float
            Probability of any miss at any time, between 0 and 1.

        Returns
        -------
        estimates, lower, upper : ndarray, shape (k,), or of as many numbers as there are items
            As of :meth:`intervals`.
        """
        self.options.needs_lasting_options("a control")
        vectors, blocks = self._values, self.options.contexts
        base = np.full(len(vectors), control[0])
        if blocks is not None:
            for rows, row in zip(blocks.blocks(), control, strict=True):
                base[list(rows)] = row
        differences = vectors - vectors[base]
        return intervals(self.options.seen, differences, self.data, delta, self.scale, 0.0)

    @property
    def _values(self) -> Array:
        """Vectors whose products with theta are what options are worth; in a duel, items."""
        if self.options.items is None:
            return self.options.features
        return 0.5 * self.options.features[: len(self.options.items)]  # which pay an item twice

    @functools.cached_property
    def data(self) -> Ellipsoid:
        """Ellipsoid of all rewards, or of those that the policy has learned from."""
        if self.learned is not None:
            return self.learned
        return self._data(self.told, self.sums, self.squares, bound_of(self.rule))

    def _data(self, told: Ints, sums: Array, squares: float, norm_bound: float | None) -> Ellipsoid:
        """Ellipsoid of what was told, in the coordinates and units of the policy."""
        ridge_ = ridge("matched", LogDet(norm_bound=norm_bound), self.model)
        if self.likelihood is not None and self.likelihood.as_tuple is not None:
            law = self.likelihood.as_tuple
            return ellipsoid_by_likelihood(self._features, law, told, sums, norm_bound, ridge_)
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


def _wider_noise(told: float, factor: float) -> str:
    return (
        f"Rewards vary more than noise_std={told:g} allows: their standard deviation is about "
        f"{factor * told:.3g}; without noise_std it is learned."
    )


def _largest_sum(mean: float, variance: float, largest: float) -> float:
    """Bound a sum of squared deviations, whose terms have a mean of at most ``largest``.

    Rewards that are sub-Gaussian with the parameter that was told pass it with a probability of at
    most 1e-6, whatever their law (Hsu, Kakade and Zhang, 2012).  For counts it is an approximation.
    """
    return mean + math.sqrt(2.0 * _DOUBT_LEVEL * variance) + 2.0 * _DOUBT_LEVEL * largest


def _rewards_of(law: Any, predictors: Array) -> Array:
    """Mean rewards by their law; ends that are infinite become the largest that numbers allow."""
    kept = np.clip(predictors, -_FARTHEST, _FARTHEST)
    return np.array([interpreted(mean_of)(law, float(u)) for u in kept])


def view_of(live: LiveState) -> View:
    """Copy what is needed; the session may go on meanwhile."""
    standing, data = live.standing, live.table.data
    counts = np.repeat(standing.told, live.options.per_arm)
    sums = standing.totals - live.origin * counts
    if data is not None:
        sums = np.array(data.totals(len(sums), live.origin))
    offered = np.ones(len(live.options), dtype=np.bool_)
    offered[list(live.table.retired)] = False
    return View(
        options=live.options,
        offered=offered,
        policy=live.policy,
        rule=_rule(live),
        model=live.table.model,
        noise_std=live.table.noise_std,
        clock=live.clock,
        asked=standing.asked.copy(),
        told=standing.told.copy(),
        totals=standing.totals.copy(),
        sums=sums,
        squares=standing.squares.item(),
        weights=live.table.weights,
        scale=_scale(live),
        estimates=live.estimates(),
        report=live.evidence(),
        learned=_learned(live),
        likelihood=live.table.likelihood,
    )


def _rule(live: LiveState) -> ConfidenceRule:
    rule = getattr(live.acting, "confidence", None)
    if isinstance(rule, ConfidenceRule):
        return rule
    if live.table.units.learned or not live.table.model.noise_known:
        return LogDet(norm_bound=None)  # S is in units of the reward, too
    return LogDet(norm_bound=getattr(live.acting, "norm_bound", 1.0))


def _scale(live: LiveState) -> Scale:
    """Scale of what a session has learned; of a stream effects are slopes, without a constant."""
    features, intercept = live.options.features, live.table.units.intercept
    d = features.shape[1]
    if live.options.stream:  # whose options may be any
        basis = np.eye(d + (intercept != 0.0))
        return Scale(live.origin, live.unit, intercept, np.zeros(d), basis)
    return Scale(live.origin, live.unit, intercept, *_coordinates(live.options, intercept))


#: What follows from options alone, and takes a singular value decomposition.
_COORDINATES: WeakKeyDictionary[Options, tuple[float, Array, Array]] = WeakKeyDictionary()


def _coordinates(options: Options, intercept: float) -> tuple[Array, Array]:
    """Constant and basis of a scale, computed once for all looks at the same options."""
    found = _COORDINATES.get(options)
    if found is None or found[0] != intercept:
        features = options.features
        constant = constant_in(features) if intercept != 0.0 else np.zeros(features.shape[1])
        rows = augmented(features, intercept), augmented(options.seen, intercept)
        found = _COORDINATES[options] = intercept, constant, basis_of_differences(*rows)
    return found[1], found[2]


def _learned(live: LiveState) -> Ellipsoid | None:
    """Ellipsoid of what the policy has learned, where nothing else tells as much."""
    if not live.options.stream:
        return None
    table, outcomes = live.table, int(live.standing.explorations[0])
    found = ellipsoid_in(live.state, table.model.rewards[:-1], table.noise_std, outcomes=outcomes)
    return None if found is None else found._replace(noise_std=table.model.noise_std)
