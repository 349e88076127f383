"""Settling of runs: the first round at which the evidence for an option reaches its threshold."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, clock_at
from sightline.core.estimate import LeastSquares
from sightline.core.model import Model
from sightline.core.persistence import State
from sightline.experiments.executors import cores
from sightline.experiments.experiment import Experiment
from sightline.jit import callable_for, parts_of
from sightline.policies.base import Evidence, Policy, inspect, started
from sightline.problems.bandits import LinearBandit
from sightline.problems.delays import NO_DELAY
from sightline.sessions.effects import (
    ellipsoid_in,
    evidence_by_likelihood,
    evidence_of,
    rule_of,
)
from sightline.signals import call_uninterrupted
from sightline.simulation.loop import loop_for, new_recorder, raise_fault, streams
from sightline.simulation.pending import no_outcomes
from sightline.simulation.simulate import Stop


def settle_all(
    experiment: Experiment,
    marks: Sequence[int],
    model: Model,
    watch: Callable[[], None] = lambda: None,
) -> tuple[Settling, ...]:
    """Run every replication of an experiment with one problem and one policy.

    In threads, because kernels release the GIL; the results do not depend on their number.  The
    policy is told ``model``, and ``watch`` is called after every run.
    """
    (problem,), (policy,) = experiment.problems.values(), experiment.policies.values()
    if not isinstance(problem, LinearBandit):
        raise ValueError(f"{problem.name} has no fixed arms; only those can be settled")
    stop = _Stop([])

    def compute() -> tuple[Settling, ...]:
        with ThreadPoolExecutor(cores()) as pool:
            futures: list[Future[Settling]] = [
                pool.submit(settle, problem, policy, marks, seed, stop, model)
                for seed in experiment.seeds
            ]
            try:
                for future in as_completed(futures):
                    future.result()
                    watch()
            except BaseException:
                stop.set_by.append(True)
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return tuple(future.result() for future in futures)

    return call_uninterrupted(compute, stop=functools.partial(stop.set_by.append, True))


class _Stop(NamedTuple):
    """Set by a C function, as ``call_uninterrupted`` requires."""

    set_by: list[bool]

    def is_set(self) -> bool:
        """Whether to stop."""
        return bool(self.set_by)


_STEP = 1.05
# Questions per call of the compiled loop: between calls a stop is noticed.
_MOST_QUESTIONS = 4096


class Settling(NamedTuple):
    """When one run settled, on what, and what it played."""

    # Rounds before it was settled for the first time; inf if not within the horizon, nan if the
    # policy keeps no estimates.
    rounds: float
    best: int  # option that was settled on; -1 if none was
    pulls: NDArray[np.float64]  # shape (m, k): how often each option was played by each mark
    # Shape (m,): option in front at each mark; -1 if the policy does not say.
    leaders: NDArray[np.int64]


def settle(
    problem: LinearBandit,
    policy: Policy,
    marks: Sequence[int],
    seed: int,
    stop: Stop | None = None,
    model: Model | None = None,
) -> Settling:
    """Run a policy to the last of some marks, and find out when it settled.

    The run is that of ``simulate`` with the same seed.  It is inspected after 1, 2, 3, ... rounds
    and then each time that 5 % have been added, so that the answer is up to 5 % late, and at the
    marks, which are increasing rounds below 2^53.  A policy that has no test but keeps estimates is
    judged by the test of IDS on its data.  Setting ``stop`` from elsewhere ends the run with
    KeyboardInterrupt.  ``model`` is what the policy is told, by default all of the problem.
    """
    horizon, leaders = marks[-1], np.full(len(marks), -1)
    state = started(policy, problem.model if model is None else model)
    recorder = new_recorder(tuple(clock_at(mark) for mark in marks), problem.k, policy)
    world, (decisions, noise) = problem.world(), streams(seed)
    random = decisions, noise, decisions, decisions  # no contexts and no delays are drawn
    pending = no_outcomes(NO_DELAY, world.means.shape[1])
    advance = loop_for(state, problem)
    clock = clock_at(1)
    report = _report(state, policy, problem, clock)
    found = math.nan if math.isnan(report.threshold) else math.inf
    rounds, best = (0.0, report.best) if report.evidence >= report.threshold else (found, -1)
    inspected = 1
    while inspected <= horizon:
        while clock.t <= inspected and recorder.next_checkpoint[0] < len(marks):
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            questions = min(inspected + 1 - clock.t, _MOST_QUESTIONS)
            clock = Clock(*advance(state, world, clock, recorder, pending, *random, questions))
            raise_fault(recorder.fault, policy)
        if rounds == math.inf or inspected in marks:
            report = _report(state, policy, problem, clock)
        if inspected in marks:
            leaders[marks.index(inspected)] = report.best
        if rounds == math.inf:
            committed = recorder.explorations[0] < clock.t - 1
            settled = committed and policy.settles_by_committing
            if settled or report.evidence >= report.threshold:
                rounds, best = float(inspected), report.best
        later = [mark for mark in marks if mark > inspected]
        inspected = max(inspected + 1, min([math.ceil(inspected * _STEP), *later[:1]]))
    return Settling(rounds, int(best), recorder.recorded_pulls, leaders)


def _report(state: State, policy: Policy, problem: LinearBandit, clock: Clock) -> Evidence:
    """Evidence as the policy reports it, or as IDS would on its data."""
    report: Evidence = callable_for(inspect, state)(state, clock, ALL_ARMS)
    if not math.isnan(report.threshold):
        return report
    if problem.likelihood_tuple is not None:
        for part in parts_of(state):
            if isinstance(part, LeastSquares):
                pulls, sums = part.arms.pulls, part.arms.sums
                return evidence_by_likelihood(problem.model, pulls, sums, clock, rule_of(policy))
        return report
    ellipsoid = ellipsoid_in(state, problem.actions, problem.noise_std)
    if ellipsoid is None:
        return report
    return evidence_of(ellipsoid, problem.actions, clock, rule_of(policy))
