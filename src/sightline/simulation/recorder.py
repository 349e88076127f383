"""Recorder of a simulation: running totals, and their values at the checkpoints.

Pulls and explorations are counts.  Regret follows from pulls and gaps, except in a stream, where
arms do not come again: there the recorder sums the gaps.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import Clock, tick
from sightline.jit import compiled
from sightline.policies.base import Policy
from sightline.simulation.choices import Fault, no_fault

__all__ = ["Recorder", "add_regret", "explore", "new_recorder", "record"]

Ints = NDArray[np.int64]
Array = NDArray[np.float64]


class Recorder(NamedTuple):
    """Checkpoints, running totals and recorded totals: m checkpoints, k arms."""

    checkpoint_t: Ints  # (m,)
    checkpoint_log_t: Array  # (m,)
    next_checkpoint: Ints  # (1,)
    explorations: Ints  # (1,) so far
    pulls: Array  # (k,) so far
    recorded_explorations: Ints  # (m,)
    recorded_pulls: Array  # (m, k)
    regret: Array  # (2,): in a stream, the sum of gaps and its rounding error
    recorded_regret: Array  # (m,)
    fault: Fault  # description of an invalid choice


def new_recorder(checkpoints: tuple[Clock, ...], k: int, policy: Policy | None = None) -> Recorder:
    """Make a recorder for these checkpoints and the k arms of a policy."""
    m = len(checkpoints)
    checkpoint_t, checkpoint_log_t = _marks(checkpoints)
    return Recorder(
        checkpoint_t=checkpoint_t,
        checkpoint_log_t=checkpoint_log_t,
        next_checkpoint=np.zeros(1, dtype=np.int64),
        explorations=np.zeros(1, dtype=np.int64),
        pulls=np.zeros(k),
        recorded_explorations=np.zeros(m, dtype=np.int64),
        recorded_pulls=np.zeros((m, k)),
        regret=np.zeros(2),
        recorded_regret=np.zeros(m),
        fault=no_fault(policy),
    )


@functools.lru_cache(maxsize=64)  # replications share them, and nothing writes to them
def _marks(checkpoints: tuple[Clock, ...]) -> tuple[Ints, Array]:
    t = np.array([clock.t for clock in checkpoints], dtype=np.int64)
    return t, np.array([clock.log_t for clock in checkpoints])


@compiled
def record(recorder: Recorder) -> None:
    """Record the totals at the next checkpoint."""
    mark = recorder.next_checkpoint[0]
    recorder.recorded_explorations[mark] = recorder.explorations[0]
    for arm in range(recorder.pulls.shape[0]):
        recorder.recorded_pulls[mark, arm] = recorder.pulls[arm]
    recorder.recorded_regret[mark] = recorder.regret[0]
    recorder.next_checkpoint[0] = mark + 1


@compiled
def add_regret(recorder: Recorder, gap: float) -> None:
    """Add the gap of a round to the regret of a stream, by compensated summation (Kahan)."""
    more = gap - recorder.regret[1]
    total = recorder.regret[0] + more
    recorder.regret[1] = (total - recorder.regret[0]) - more
    recorder.regret[0] = total


@compiled
def explore(recorder: Recorder, arm: int, clock: Clock) -> Clock:
    """Count an exploration round; return the clock of the next round."""
    recorder.pulls[arm] += 1.0
    recorder.explorations[0] += 1
    clock = tick(clock)
    if clock.t > recorder.checkpoint_t[recorder.next_checkpoint[0]]:
        record(recorder)
    return clock
