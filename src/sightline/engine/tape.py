"""What a simulation records: checkpoints, running totals, and the totals at the checkpoints."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock, tick
from sightline.engine.choices import Fault, no_fault
from sightline.jit import compiled
from sightline.policies.base import Policy

__all__ = ["Tape", "blank_tape", "explore", "lose", "record"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Tape(NamedTuple):
    """Checkpoints, running totals and what was recorded."""

    mark_t: Ints  # (m,)
    mark_log_t: Array  # (m,)
    next_mark: Ints  # (1,)
    explorations: Ints  # (1,) so far
    pulls: Array  # (k,) so far
    recorded_explorations: Ints  # (m,)
    recorded_pulls: Array  # (m, k)
    lost: Array  # (2,): regret so far where arms come and go, and what rounding has left out
    recorded_lost: Array  # (m,)
    fault: Fault  # what is wrong with the last choice


def blank_tape(checkpoints: tuple[Clock, ...], k: int, policy: Policy | None = None) -> Tape:
    """Tape for these checkpoints and k arms, among which a policy chooses."""
    m = len(checkpoints)
    mark_t, mark_log_t = _marks(checkpoints)
    return Tape(
        mark_t=mark_t,
        mark_log_t=mark_log_t,
        next_mark=np.zeros(1, dtype=np.int64),
        explorations=np.zeros(1, dtype=np.int64),
        pulls=np.zeros(k),
        recorded_explorations=np.zeros(m, dtype=np.int64),
        recorded_pulls=np.zeros((m, k)),
        lost=np.zeros(2),
        recorded_lost=np.zeros(m),
        fault=no_fault(policy),
    )


@functools.lru_cache(maxsize=64)  # replications share them, and nothing writes to them
def _marks(checkpoints: tuple[Clock, ...]) -> tuple[Ints, Array]:
    t = np.array([clock.t for clock in checkpoints], dtype=np.int64)
    return t, np.array([clock.log_t for clock in checkpoints])


@compiled
def record(tape: Tape) -> None:
    """Write down the totals at a checkpoint that has been passed."""
    mark = tape.next_mark[0]
    tape.recorded_explorations[mark] = tape.explorations[0]
    for arm in range(tape.pulls.shape[0]):
        tape.recorded_pulls[mark, arm] = tape.pulls[arm]
    tape.recorded_lost[mark] = tape.lost[0]
    tape.next_mark[0] = mark + 1


@compiled
def lose(tape: Tape, gap: float) -> None:
    """Add to the regret of arms that come and go, without accumulating rounding errors."""
    more = gap - tape.lost[1]
    total = tape.lost[0] + more
    tape.lost[1] = (total - tape.lost[0]) - more
    tape.lost[0] = total


@compiled
def explore(tape: Tape, arm: int, clock: Clock) -> Clock:
    """Enter a round from which the policy learns; return the next."""
    tape.pulls[arm] += 1.0
    tape.explorations[0] += 1
    clock = tick(clock)
    if clock.t > tape.mark_t[tape.next_mark[0]]:
        record(tape)
    return clock
