"""Rewards that were told wrongly: what was learned from them is corrected, decisions stay.

Data are kept as counts and sums, so that a correction is one of a sum, after which everything that
follows from the data is computed anew.  The state is then the one to which the right reward would
have led, had the same decisions been made: but for rounding, and for what a policy remembers of its
own past choices, such as the largest evidence that IDS ever had.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.estimation.estimate import LeastSquares
from sightline.core.estimation.noise import EstimatedNoise
from sightline.core.estimation.recomputation import refresh
from sightline.core.linalg.cholesky import solve_transposed
from sightline.core.posterior.gaussian import Posterior, UnknownNoise
from sightline.core.posterior.laplace import Fitted, follow_fit
from sightline.engine.changes import Table
from sightline.engine.ledger import Told
from sightline.engine.turns import Standing
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.appointments import Appointment, cancel
from sightline.policies.base import Policy
from sightline.policies.reports import readapt
from sightline.validation import SMALLEST

__all__ = ["amend_counts", "amended"]

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
        Who has learned from it.
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
    p = table.options.per_arm
    before, after = (np.broadcast_to(np.asarray(told, np.float64), p) for told in (was, now))
    copies: Any = (array.copy() for array in table.standing)
    standing = Standing(*copies)
    amend_counts(standing, table.weights, arm, was, now)
    state = table.state
    if exploring:
        standing.wake_t[0] = 0  # a commitment was made on other grounds
        state = copy.deepcopy(state)
        units = standing.unit[0] if standing.unit[0] > 0.0 else 1.0
        told = [(x - standing.origin[0]) / units * table.weights[arm] for x in (before, after)]
        _correct(state, table, policy, arm, *told)
    return table._replace(standing=standing, state=state, committed=())


def amend_counts(standing: Standing, weights: Array, arm: int, was: Told, now: Told) -> None:
    """Correct the total of an arm, and squared deviations from its mean."""
    shift = np.subtract(now, was)
    if shift.ndim == 0:
        after, before, n = float(np.asarray(now)), float(np.asarray(was)), standing.told[arm]
        if np.isnan(standing.unit[0]):  # all rewards so far are the origin
            standing.unit[0] = max(abs(after - standing.origin[0]), SMALLEST)
        total = standing.totals[arm]
        means = total / n + (total + after - before) / n
        scale = weights[arm, 0] / standing.unit[0]
        moved = (after - before) * scale * (after + before - means) * scale
        standing.squares[0] = max(standing.squares[0] + moved, 0.0)
    standing.totals.reshape(len(weights), -1)[arm] += shift


def _correct(
    state: Any, table: Table, policy: Policy, arm: int, before: Array, after: Array
) -> None:
    """Correct what a state has learned from one outcome of an arm."""
    corrected: set[int] = set()
    fitted = []
    for part in parts_of(state):
        if isinstance(part, LeastSquares) and id(part.learned.theta) not in corrected:
            _require_all_data(part, table, policy)
            _correct_estimate(part, arm, before, after)
            corrected.add(id(part.learned.theta))
        elif isinstance(part, Posterior) and isinstance(part.seen, Fitted):
            fitted.append(part)
        elif isinstance(part, Posterior):
            _correct_posterior(part, arm, before, after)
            corrected.add(id(part.whitened))
        elif isinstance(part, Appointment):
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


def _correct_estimate(estimate: LeastSquares, arm: int, before: Array, after: Array) -> None:
    seen = estimate.arms.seen
    silent = getattr(seen, "silent", None)
    if silent is not None and silent[arm]:
        return
    noise = estimate.noise
    fit = 0.0
    if isinstance(noise, EstimatedNoise):
        callable_for(refresh, estimate)(estimate)  # which leaves a factor of V behind
        fit = _explained(estimate)
    blank = getattr(seen, "blank", None)
    for i, shift in enumerate((after - before).tolist()):
        place = arm * len(before) + i
        if blank is None or not blank[place]:
            estimate.arms.sums[place] += shift
    callable_for(refresh, estimate)(estimate)
    if isinstance(noise, EstimatedNoise):
        squares = math.fsum(after**2) - math.fsum(before**2)
        noise.errors[0] = max(noise.errors[0] + squares - (_explained(estimate) - fit), 0.0)


def _explained(estimate: LeastSquares) -> float:
    """theta-hat^T V theta-hat, in an order that no library of linear algebra changes."""
    factor, theta = estimate.scratch.factor.tolist(), estimate.learned.theta.tolist()
    rows = [
        math.fsum(r * t for r, t in zip(row[i:], theta[i:], strict=True))
        for i, row in enumerate(factor)
    ]
    return math.fsum(x * x for x in rows)


def _correct_posterior(posterior: Posterior, arm: int, before: Array, after: Array) -> None:
    """Add R^-T y shift / sigma^2 to R^-T b, for every number that is seen."""
    rows = posterior.seen.rows[arm].reshape(len(before), -1)
    explained = math.fsum(posterior.whitened**2)
    for row, value in zip(rows, (after - before).tolist(), strict=True):
        moved = row * (value / posterior.noise_std**2)
        interpreted(solve_transposed)(posterior.factor, moved)
        posterior.whitened[:] += moved
    if isinstance(posterior.noise, UnknownNoise):
        squares = math.fsum(after**2) - math.fsum(before**2)
        gain = math.fsum(posterior.whitened**2) - explained
        posterior.noise.errors[0] = max(posterior.noise.errors[0] + squares - gain, 0.0)
