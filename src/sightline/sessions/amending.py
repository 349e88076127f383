"""Rewards that were told wrongly: what was learned from them is corrected, decisions stay.

Exact sums of all rewards are kept beside the state (:mod:`sightline.sessions.exact_data`).  An
amendment corrects them and recomputes from them everything that follows from the data, origin and
unit of the rewards included.  The state is then the one to which the right reward would have led,
had the same decisions been made: but for rounding, and for what a policy remembers of its own past
choices, such as the largest evidence that IDS ever had.

With z = (r - origin) / unit * weight, what a policy is told of a reward:

| symbol                                    | here              |
|-------------------------------------------|-------------------|
| sum of z, of one number that is seen      | ``_Moments.sums`` |
| sum of z^2 less that of their means       | ``_Moments.within`` |
"""

from __future__ import annotations

import copy
import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import refresh
from sightline.core.linalg import solve_transposed
from sightline.core.posterior.gaussian import Posterior, follow_fit
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.base import Policy, ScheduledExploration, cancel, readapt
from sightline.sessions.changes import Table
from sightline.sessions.exact_data import ExactData, Sums
from sightline.sessions.ledger import Told
from sightline.sessions.turns import Standing
from sightline.validation import SMALLEST

__all__ = ["amended"]

Array = NDArray[np.float64]


def amended(
    table: Table, policy: Policy, decision: str, arm: int, exploring: bool, was: Told, now: Told
) -> Table:
    """Put another reward in the place of one that was told.

    Parameters
    ----------
    table : Table
        Before; it stays as it is.
    policy : Policy
        The policy that has learned from it.
    decision : str
        Id of the decision.
    arm : int
        What was played.
    exploring : bool
        Whether the policy has learned from it.
    was, now : float or tuple of float
        What was told, and what is right.

    Raises
    ------
    ValueError
        If the policy keeps too little to correct it.
    """
    table.options.needs_lasting_options("amending a reward")  # others are not kept apart
    if table.data is None:
        raise ValueError(
            "no reward can be amended: the session was saved by an earlier version, which did not "
            "keep exact sums of rewards"
        )
    data = table.data.amended(decision, arm, exploring, was, now)
    copies: Any = (array.copy() for array in table.standing)
    standing = Standing(*copies)
    _set_units(standing, table, data)
    _set_totals(standing, table, data)
    state = table.state
    units, former = ([one.origin.item(), one.unit.item()] for one in (standing, table.standing))
    if exploring or not np.array_equal(units, former, equal_nan=True):
        standing.wake_t[0] = 0  # a commitment was made on other grounds
        state = copy.deepcopy(state)
        _correct(state, table, policy, _moments(standing, table, data))
    return table._replace(standing=standing, state=state, committed=(), data=data)


def _set_units(standing: Standing, table: Table, data: ExactData) -> None:
    """Find origin and unit where they are learned, as the first rewards set them."""
    if table.units.offset:
        standing.origin[0] = data.origin()
    if table.units.scale:
        standing.unit[0] = max(data.unit(), SMALLEST)  # which keeps nan


def _scales(standing: Standing, table: Table) -> Array:
    """By what a reward, less the origin, is multiplied for the policy."""
    unit = standing.unit[0]
    return table.weights.ravel() / (1.0 if math.isnan(unit) else unit)


def _set_totals(standing: Standing, table: Table, data: ExactData) -> None:
    """Recompute the total of every option, and squared deviations from its mean."""
    standing.totals[:] = data.totals(len(standing.totals))
    if table.options.per_arm == 1:
        standing.squares[0] = data.squared_deviations(_scales(standing, table))


class _Moments(NamedTuple):
    """What a policy has learned from, in its own units; see the table above."""

    counts: Array
    sums: Array
    within: Array


def _moments(standing: Standing, table: Table, data: ExactData) -> _Moments:
    scales, origin = _scales(standing, table), float(standing.origin[0])
    learned: list[Sums] = [data.learned(place) for place in range(len(scales))]
    return _Moments(
        np.array([one.n for one in learned], np.float64),
        np.array([one.sum(origin) for one in learned]) * scales,
        np.array([one.squared_deviations() for one in learned]) * scales * scales,
    )


def _correct(state: Any, table: Table, policy: Policy, moments: _Moments) -> None:
    """Recompute what a state has learned."""
    corrected: set[int] = set()
    fitted = []
    for part in parts_of(state):
        if isinstance(part, LeastSquares) and id(part.learned.theta) not in corrected:
            _require_all_data(part, table, policy)
            _correct_estimate(part, moments)
            corrected.add(id(part.learned.theta))
        elif isinstance(part, Posterior) and part.estimate is not None:
            fitted.append(part)
        elif isinstance(part, Posterior):
            _correct_posterior(part, moments)
            corrected.add(id(part.whitened))
        elif isinstance(part, ScheduledExploration):
            interpreted(cancel)(part)
    if not corrected:
        raise ValueError(f"{policy} keeps no sums of rewards, of which one could be amended")
    for part in fitted:
        interpreted(follow_fit)(part)
    readapt(state)


def _require_all_data(estimate: LeastSquares, table: Table, policy: Policy) -> None:
    """Refuse where a policy has discarded data: the reward may be among them."""
    learned, told = int(estimate.learned.rounds[0]), int(table.standing.explorations[0])
    if table.options.observations is None and learned != told:
        raise ValueError(
            f"{policy} keeps {learned} of the {told} rewards that it has learned from: none of "
            "them can be amended"
        )


def _correct_estimate(estimate: LeastSquares, moments: _Moments) -> None:
    seen = estimate.arms.observations
    shows = np.repeat(~seen.silent, seen.per_arm)
    if seen.several is not None:
        shows &= ~seen.several.blank
    estimate.arms.sums[shows] = moments.sums[shows]
    callable_for(refresh, estimate)(estimate)  # which leaves a factor of V behind
    if not estimate.noise.known:
        factor, theta = estimate.scratch.factor.tolist(), estimate.learned.theta.tolist()
        rows = (
            math.fsum(r * t for r, t in zip(row[i:], theta[i:], strict=True))
            for i, row in enumerate(factor)
        )
        estimate.noise.errors[0] = _unexplained(moments, shows, math.fsum(x * x for x in rows))


def _correct_posterior(posterior: Posterior, moments: _Moments) -> None:
    """Compute R^-T b, b = sum of y z / sigma^2 over all that was learned from."""
    rows = posterior.rows.reshape(len(moments.sums), -1)
    scaled = moments.sums / posterior.noise_std**2
    # in an order that no library of linear algebra changes
    posterior.whitened[:] = [math.fsum(column) for column in (rows * scaled[:, None]).T.tolist()]
    interpreted(solve_transposed)(posterior.factor, posterior.whitened)
    if not posterior.noise.known:
        shows = np.asarray(rows.any(axis=1))
        explained = math.fsum(posterior.whitened**2)
        posterior.noise.errors[0] = _unexplained(moments, shows, explained)


def _unexplained(moments: _Moments, shows: NDArray[np.bool_], explained: float) -> float:
    """Sum of z^2 less what the estimate explains of it: the residual sum of squares."""
    played = shows & (moments.counts > 0.0)
    between = moments.sums[played] ** 2 / moments.counts[played]
    squares = [*moments.within[played].tolist(), *between.tolist(), -explained]
    return max(math.fsum(squares), 0.0)
