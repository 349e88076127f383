"""The table of arms: what each pays, what playing it shows, and what is known of it.

| symbol            | here                            | shape  |
|-------------------|---------------------------------|--------|
| X                 | ``rewards``, transposed ``columns`` | (k, d) |
| Y                 | ``seen``                        | (k p, d) |
| <x, theta-hat_s>  | ``means``                       | (k,)   |
| norm of x in V_s^-1, squared | ``squared_widths``   | (k,)   |
| sum of the squared norms of the rows of Y_x in V_s^-1 | ``seen_widths`` | (k,) |
| pulls of x, sum of the outcomes of x | ``pulls``, ``sums`` | (k,), (k p,) |

Where p > 1, ``seen_widths`` are up to date after ``update_seen_widths`` only.

In a bandit Y is X: then ``seen`` says so by its class, ``SeesRewards``, and ``seen_widths`` are
``squared_widths``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet
from sightline.core.consistency import invariant, whole, within
from sightline.core.estimation.coordinates import spanning_coordinates
from sightline.core.estimation.seen import (
    SeesLaw,
    SeesLawStream,
    SeesRewards,
    SeesRow,
    SeesRows,
    SeesStream,
)
from sightline.core.model import Model
from sightline.core.persistence import persists

__all__ = ["Arms", "rows_seen", "table_of_arms", "weighted_table"]

Array = NDArray[np.float64]


@persists("means", "squared_widths", "seen_widths", "refreshed_widths", "pulls", "sums")
class Arms(NamedTuple):
    """The table of arms; see the table above."""

    rewards: Array
    columns: Array
    seen: Any  # a class of :mod:`sightline.core.estimation.seen`
    means: Array
    squared_widths: Array
    seen_widths: Array
    refreshed_widths: Array  # (k,): seen widths at the last refresh
    pulls: Array
    sums: Array
    everything: ActionSet = ALL_ARMS


@invariant(Arms)
def _check(arms: Arms, name: str) -> None:
    """Check that pulls are counts, and widths not negative beyond rounding."""
    whole(f"{name}.pulls", arms.pulls)
    for field in ("means", "sums"):
        within(f"{name}.{field}", getattr(arms, field), ends=False)
    for field in ("squared_widths", "seen_widths", "refreshed_widths"):
        widths = getattr(arms, field)
        within(f"{name}.{field}", widths, -1e-6 * float(np.abs(widths).max()), ends=False)


def table_of_arms(model: Model, reduce: bool = True) -> Arms:
    """Table of all arms, in a basis of their span unless ``reduce`` is False."""
    rewards = model.rewards
    k, p, d = model.observations.shape
    if model.stream:
        return _table(rewards.copy(), _sees_stream(model.law, k, d), 1)
    if model.shows_rewards:
        rewards = spanning_coordinates(rewards) if reduce else rewards
        return _table(rewards, _sees_reward(model.law, *rewards.shape), 1)
    rows = np.vstack([rewards, model.observations.reshape(k * p, d)])
    rows = spanning_coordinates(rows) if reduce else rows
    rewards, seen = np.ascontiguousarray(rows[:k]), np.ascontiguousarray(rows[k:])
    return _table(rewards, _sees(seen, p), p)


def weighted_table(rewards: Array, weights: Array) -> Arms:
    """Table of arms whose outcomes are rewards times a weight, in coordinates of one's own."""
    if (weights == 1.0).all():
        return _table(rewards, SeesRewards(), 1)
    return _table(rewards, _sees(weights[:, None] * rewards, 1), 1)


def rows_seen(arms: Arms) -> Array:
    """Y, flattened to one row per number that is seen."""
    own = isinstance(arms.seen, SeesRewards | SeesStream | SeesLaw | SeesLawStream)
    rows: Array = arms.rewards if own else arms.seen.rows
    return rows


def _sees_reward(law: Any, k: int, d: int) -> SeesRewards | SeesLaw:
    if law is None:
        return SeesRewards()
    return SeesLaw(law, np.zeros(k), np.zeros(k), np.zeros(d), np.zeros((d, d)))


def _sees_stream(law: Any, k: int, d: int) -> SeesStream | SeesLawStream:
    if law is None:
        return SeesStream(np.zeros((d, d)), np.zeros(d))
    return SeesLawStream(law, np.zeros(k), np.zeros((d, d)), np.zeros(d), np.zeros(d))


def _sees(rows: Array, per_arm: int) -> SeesRow | SeesRows:
    shows = np.any(rows.reshape(-1, per_arm * rows.shape[1]), axis=1)
    parts = rows, np.ascontiguousarray(rows.T), np.empty(len(rows)), np.logical_not(shows)
    if per_arm == 1:
        return SeesRow(*parts)
    k, d = len(rows) // per_arm, rows.shape[1]
    return SeesRows(
        *parts,
        per_arm,
        blank=np.logical_not(rows.any(axis=1)),
        directions=np.zeros((per_arm, d)),
        widths=np.zeros(len(rows)),
        slots=np.ascontiguousarray(rows.reshape(k, per_arm, d).transpose(2, 1, 0)).reshape(d, -1),
        images=np.zeros(len(rows)),
        factors=np.zeros((per_arm, per_arm, k)),
    )


def _table(rewards: Array, seen: Any, per_arm: int) -> Arms:
    k = len(rewards)
    widths = np.zeros(k)
    return Arms(
        rewards=rewards,
        columns=np.ascontiguousarray(rewards.T),
        seen=seen,
        means=np.zeros(k),
        squared_widths=widths,
        seen_widths=widths if isinstance(seen, SeesRewards | SeesStream) else np.zeros(k),
        refreshed_widths=np.zeros(k),
        pulls=np.zeros(k),
        sums=np.zeros(k * per_arm),
    )
