"""Where a session stands, copied at one moment: from it tables and figures are made."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock
from sightline.engine.effects import Effect, effects, intervals
from sightline.engine.ellipsoid import Ellipsoid, ellipsoid_in, ellipsoid_of, evidence_of
from sightline.engine.estimates import Estimates
from sightline.engine.journal import Event
from sightline.engine.live import LiveState, weakest
from sightline.engine.options import Options
from sightline.engine.settling import rule_of
from sightline.policies.base import Evidence, Policy
from sightline.validation import number

__all__ = ["Record", "View", "view_of"]

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
    noise_std : float or ndarray, shape (k,) or (k, p)
        Sub-Gaussian parameter of the rewards or, in a game, of the outcomes.
    clock : Clock
        Of the next question.
    asked, told, totals : ndarray, shape (k,)
        Of each option: decisions, rewards and their sum; in a game, outcomes and their sum, of
        shape (k p,) where p numbers are shown.
    estimates : Estimates or None
        Of the policy, if it keeps any.
    report : Evidence
        Of the policy; its threshold is nan if the policy has no test.  With contexts, on the one
        of which least is known.
    learned : Ellipsoid or None
        What the policy has learned, where options are new in every round: nothing else is kept.
    """

    options: Options
    offered: NDArray[np.bool_]
    policy: Policy
    noise_std: float | Array
    clock: Clock
    asked: NDArray[Any]
    told: Ints
    totals: Array
    estimates: Estimates | None
    report: Evidence
    learned: Ellipsoid | None = None

    @property
    def has_test(self) -> bool:
        """Whether the policy itself says what is settled."""
        return not math.isnan(self.report.threshold)

    @functools.cached_property
    def evidence(self) -> Evidence:
        """Evidence of the policy, or by the test of IDS on all rewards if it has none."""
        if self.has_test:
            return self.report
        return self.tested(self.told, self.totals, self.offered, self.clock)

    def tested(
        self, told: Ints, totals: Array, offered: NDArray[np.bool_], clock: Clock
    ) -> Evidence:
        """Evidence by the test of IDS, from the data and the offer of any moment.

        With contexts, on the one of which least is known.
        """
        rule = rule_of(self.policy)
        features = self.options.features
        data = self._data(told, totals, rule.norm_bound or 1.0)
        blocks = self.options.contexts
        together = [np.flatnonzero(offered)] if blocks is None else map(np.array, blocks.blocks())
        reports = []
        for rows in together:
            found = evidence_of(data, features[rows], clock, rule)
            reports.append(found._replace(best=int(rows[found.best])))
        return weakest(reports)

    def effects(self, delta: float, norm_bound: float | None = None) -> list[Effect]:
        """Effects with intervals; see :meth:`sightline.Session.effects`."""
        bound = rule_of(self.policy).norm_bound or 1.0 if norm_bound is None else norm_bound
        if self.options.stream:
            if self.learned is None:
                raise ValueError(f"{self.policy} keeps no estimates, from which effects are found")
            data = self.learned._replace(norm_bound=number("norm_bound", bound, above=0))
        else:
            data = self._data(self.told, self.totals, bound)
        return effects(self.options, data, delta)

    def intervals(self, delta: float) -> tuple[Array, Array, Array]:
        """Mean reward of every option, with intervals that hold at all rounds at once.

        From all rewards, whichever of them the policy has learned from.  In a duel: the mean
        outcome of every item against the best so far.

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
        if options.stream:
            raise ValueError("options that are new in every round have no intervals of their own")
        vectors = options.features
        if options.items is not None:  # the first rows pay their item twice
            alone = vectors[: len(options.items)]
            vectors = 0.5 * (alone - alone[self.evidence.best])
        bound = rule_of(self.policy).norm_bound or 1.0
        data = self._data(self.told, self.totals, bound)
        return intervals(options.seen, vectors, data, delta)

    def _data(self, told: Ints, totals: Array, norm_bound: float) -> Ellipsoid:
        """Ellipsoid of what was told."""
        k, p = len(self.options), self.options.per_arm
        noise = self.noise_std
        if not isinstance(noise, float):
            noise = np.broadcast_to(noise.reshape(k, -1), (k, p)).ravel()
        return ellipsoid_of(self.options.seen, np.repeat(told, p), totals, noise, norm_bound)


def view_of(live: LiveState) -> View:
    """Copy what is needed; the session may go on meanwhile."""
    standing = live.standing
    offered = np.ones(len(live.options), dtype=np.bool_)
    offered[list(live.table.retired)] = False
    learned = None
    if live.options.stream:
        noise, features = live.table.noise_std, live.options.features
        learned = ellipsoid_in(live.state, live.policy, features, noise)
    return View(
        options=live.options,
        offered=offered,
        policy=live.policy,
        noise_std=live.table.noise_std,
        clock=live.clock,
        asked=standing.asked.copy(),
        told=standing.told.copy(),
        totals=standing.totals.copy(),
        estimates=live.estimates(),
        report=live.evidence(),
        learned=learned,
    )
