"""``simulate``: one run of a policy on a problem, recorded at checkpoints, to any horizon.

Rounds are Python integers of any size: 10^1000 does not fit any array or float.  The compiled loop
of :mod:`sightline.simulation.loop` is called for about 50 ms at a time, so that the interpreter can
react to Ctrl-C and to ``stop`` between two calls.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline.core.clock import FAR, Clock, clock_at
from sightline.core.linalg import Array, Ints
from sightline.policies.base import Policy, started
from sightline.problems.base import Problem
from sightline.problems.delays import valid_delay
from sightline.simulation.loop import (
    context_stream,
    delay_stream,
    is_compiled,
    loop_for,
    new_recorder,
    raise_fault,
    streams,
)
from sightline.simulation.pending import more_space, no_outcomes
from sightline.validation import entries, event, instance, integer, shown

_LARGEST_EXPONENT = 4000  # Python prints integers of at most 4300 digits


def log_spaced(horizon: int, per_decade: int = 20, at_most: int = 400) -> list[int]:
    """Choose rounds from 1 to ``horizon`` that are evenly spaced in log t.

    Parameters
    ----------
    horizon : int
        Last round.
    per_decade : int
        Rounds per factor of ten, fewer if that would be more than ``at_most`` in all.
    at_most : int
        Largest number of intervals.
    """
    horizon = integer("horizon", horizon, at_least=1)
    return list(_log_spaced(horizon, per_decade, at_most))


@functools.lru_cache(maxsize=64)  # replications share them
def _log_spaced(horizon: int, per_decade: int, at_most: int) -> tuple[int, ...]:
    log_horizon = math.log10(horizon)
    count = max(1, min(at_most, math.ceil(per_decade * log_horizon)))
    rounds = {min(power_of_ten(log_horizon * i / count), horizon) for i in range(count)}
    return tuple(sorted(rounds | {horizon}))


def power_of_ten(exponent: float) -> int:
    """10^exponent, rounded, also where it does not fit a float."""
    if exponent < 15:
        return round(math.pow(10.0, exponent))
    whole = math.floor(exponent)
    leading = round(math.pow(10.0, exponent - whole + 15))
    return leading * int(10 ** (whole - 15))


def valid_checkpoints(checkpoints: Iterable[int] | None, horizon: int) -> Sequence[int]:
    """Check the rounds to record, or choose them."""
    if checkpoints is None:
        return log_spaced(horizon)
    given = entries("checkpoints", checkpoints, "a list of rounds")
    rounds = [integer("checkpoints", t, at_least=1) for t in given]
    for earlier, later in itertools.pairwise(rounds):
        if earlier >= later:
            raise ValueError(
                f"checkpoints must be strictly increasing, got {shown(later)} after "
                f"{shown(earlier)}"
            )
    if rounds[-1] > horizon:
        raise ValueError(
            f"checkpoints must not exceed the horizon {shown(horizon)}, got {shown(rounds[-1])}"
        )
    return rounds


def round_array(rounds: Sequence[int]) -> NDArray[Any]:
    """Make an array of rounds; of Python integers where the last one exceeds 64 bits."""
    return np.array(rounds, dtype=np.int64 if rounds[-1] <= sys.maxsize else object)


def parse_rounds(name: str, value: Any) -> int:
    """Read a number of rounds from an integer or a text such as ``10^6``, ``2e6``, ``1_000``."""
    if not isinstance(value, str):
        return integer(name, value, at_least=1)
    found = re.fullmatch(r"(\d+)(?:(e|\^|\*\*)(\d{1,4}))?", value.replace("_", "").strip())
    if not found or len(found[1]) > _LARGEST_EXPONENT:
        raise ValueError(f"{name} must be a number of rounds such as 10^6, got {shown(value)}")
    base, sign, exponent = int(found[1]), found[2], int(found[3] or 1)
    if sign and exponent * (1 if sign == "e" else len(found[1])) > _LARGEST_EXPONENT:
        raise ValueError(f"{name} must be at most 10^{_LARGEST_EXPONENT}, got {shown(value)}")
    rounds = base * 10**exponent if sign == "e" else base**exponent
    return integer(name, rounds, at_least=1)


def rounds_text(rounds: int) -> str:
    """Write rounds so that :func:`parse_rounds` reads them: ``10^6``, or all digits."""
    exponent = round(math.log10(rounds))
    return f"10^{exponent}" if exponent > 2 and rounds == 10**exponent else str(rounds)


# Seconds per call of the compiled loop: between calls the interpreter sees Ctrl-C.
_PATIENCE = 0.05
# Questions of the first call, which shows how long one takes; and by how much the next may grow.
_FIRST_QUESTIONS, _GROWTH = 16, 1024


class Stop(Protocol):
    """An event of the modules threading or multiprocessing."""

    def is_set(self) -> bool:
        """Whether to stop."""


@dataclass(frozen=True)
class Trajectory:
    """One simulated run, recorded at checkpoints: what ``simulate`` returns.

    (An experiment of many runs, ``sl.run``, returns :class:`~sightline.types.Results`.)

    Attributes
    ----------
    t : ndarray, shape (m,)
        Rounds played; Python integers (dtype object) where they exceed 64 bits.
    log_t : ndarray, shape (m,)
        Their logarithms.
    regret : ndarray, shape (m,)
        Sum of the true gaps of all arms played, exact up to rounding; inf beyond 1.8e308.
    explorations : ndarray, shape (m,)
        Rounds from which the policy learned.
    pulls : ndarray, shape (m, k)
        Times each arm was played; exact below 2^53 rounds, inf beyond 1.8e308.
    """

    t: NDArray[Any]
    log_t: Array
    regret: Array
    explorations: Ints
    pulls: Array


def valid_horizon(horizon: int, policy: Policy, delay: object = None) -> int:
    """Return ``horizon`` if the policy can get there, with outcomes that come late or not."""
    horizon = integer("horizon", horizon, at_least=1)
    if delay is not None and horizon >= FAR:
        raise ValueError(f"horizon must be below 2**53 with a delay, got {shown(horizon)}")
    if horizon >= FAR and not policy.any_horizon:
        raise ValueError(
            f"{policy} learns from nearly every round, and a run costs each of them: horizon must "
            f"be below 2**53, got about 10**{math.log10(horizon):.0f}"
        )
    return horizon


def check_lasting(problem: Problem, horizon: int, delay: object) -> None:
    """Refuse what needs arms that come again, where they are new in every round."""
    if problem.model.stream:
        if delay is not None:
            raise ValueError("delay needs arms that stay; this problem has new arms in every round")
        integer("horizon", horizon, at_least=1, at_most=FAR - 1)


def is_interpreted(problem: Problem, policy: Policy) -> bool:
    """Whether a run goes through the interpreter, which only one thread at a time can use."""
    return not is_compiled(policy.start(problem.model), problem)


@functools.lru_cache(maxsize=64)
def _marks(rounds: tuple[int, ...]) -> tuple[tuple[Clock, ...], Array]:
    """Clocks and logarithms of checkpoints, which replications share."""
    return tuple(map(clock_at, rounds)), np.array([math.log(t) for t in rounds])


def simulate(
    problem: Problem,
    policy: Policy,
    horizon: int,
    seed: int | np.random.SeedSequence = 0,
    checkpoints: Iterable[int] | None = None,
    *,
    delay: int | str | None = None,
    stop: Stop | None = None,
) -> Trajectory:
    """Run a policy on a problem.

    The cost is that of the rounds in which the policy explores; a commitment is one step,
    however long it holds.  Memory does not grow with the horizon.

    Parameters
    ----------
    problem : LinearBandit, ContextualBandit, LinearGame or StreamBandit
        Problem to simulate.
    policy : Policy
        Policy to run.
    horizon : int
        Number of rounds: any Python integer, ``10**1000`` included, for a policy that commits;
        below 2^53 for one that learns from nearly every round (``policy.any_horizon``).
    seed : int or numpy.random.SeedSequence
        Same seed, same run.  Policies run with the same seed face the same noise.
    checkpoints : iterable of int, optional
        Rounds after which to record; the default is evenly spaced in log t up to the horizon.
    delay : int or str, optional
        Outcomes that come late: after so many more rounds, always or on average
        (``"geometric:100"``), or at the end of every so many rounds (``"batches:50"``).
    stop : threading.Event or multiprocessing.Event, optional
        Set it from elsewhere to end the run with KeyboardInterrupt.

    Returns
    -------
    Trajectory
        Regret, explorations and pulls at the checkpoints.
    """
    if not isinstance(problem, Problem):
        raise ValueError(f"problem must be a LinearBandit, got {type(problem).__name__}")
    instance("policy", policy, Policy, "a Policy such as IDS()")
    check_lasting(problem, horizon, delay)
    lateness = valid_delay(delay)
    horizon = valid_horizon(horizon, policy, delay)
    rounds = tuple(valid_checkpoints(checkpoints, horizon))
    event("stop", stop)
    clocks, log_t = _marks(rounds)
    state = started(policy, problem.model, delays=delay is not None)
    world = problem.world()
    recorder = new_recorder(clocks, len(problem.gaps), policy)
    decisions, noise = streams(seed)
    fixed = problem.model.contexts is None and not problem.model.stream
    contexts = decisions if fixed else context_stream(seed)
    delays = decisions if delay is None else delay_stream(seed)
    random = decisions, noise, contexts, delays
    pending = no_outcomes(lateness, world.means.shape[1])
    advance = loop_for(state, problem)
    clock = clock_at(1)
    questions = _FIRST_QUESTIONS
    while recorder.next_checkpoint[0] < len(rounds):
        if stop is not None and stop.is_set():
            raise KeyboardInterrupt
        began = time.perf_counter()
        clock = Clock(*advance(state, world, clock, recorder, pending, *random, questions))
        raise_fault(recorder.fault, policy)
        seconds = time.perf_counter() - began
        growth = min(_PATIENCE / max(seconds, 1e-9), _GROWTH)
        questions = max(int(questions * growth), 1)
        if pending.size[0] == len(pending.told):
            pending = more_space(pending)
    pulls, regret = recorder.recorded_pulls, recorder.recorded_regret
    if not problem.model.stream:  # from pulls: no sum over rounds, so nothing is lost
        costly = problem.gaps > 0  # 0 * inf is not a regret
        regret = pulls[:, costly] @ problem.gaps[costly]
    return Trajectory(
        round_array(rounds), log_t.copy(), regret, recorder.recorded_explorations, pulls
    )
