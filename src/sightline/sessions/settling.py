"""When a run settles: the first round at which the evidence for an option reaches its threshold.

The run is the one that ``simulate`` makes with the same seed.  It is looked at after 1, 2, 3, ...
rounds and then each time that 5 % have been added, so the answer is up to 5 % late.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS
from sightline.core.clock import Clock, clock_at
from sightline.core.confidence import ConfidenceRule
from sightline.core.confidence_rules import LogDet
from sightline.core.estimate import LeastSquares
from sightline.core.least_squares import refresh
from sightline.core.model import Model
from sightline.core.persistence import State
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.base import Evidence, Policy, inspect, started
from sightline.policies.lin_ucb import LinUCB
from sightline.problems.bandits import LinearBandit
from sightline.problems.delays import NO_DELAY
from sightline.sessions.ellipsoid import ellipsoid_in, evidence_of
from sightline.simulation.loop import loop_for, new_recorder, raise_fault, streams
from sightline.simulation.pending import no_outcomes
from sightline.simulation.simulate import Stop

__all__ = ["Settling", "bound_of", "evidence_by_likelihood", "rule_of", "settle"]

_STEP = 1.05
# Questions per call of the compiled loop: between calls a stop is noticed.
_MOST_QUESTIONS = 4096


class Settling(NamedTuple):
    """When one run settled, on what, and what it played.

    Attributes
    ----------
    rounds : float
        Rounds before it was settled for the first time; inf if not within the horizon, nan if the
        policy keeps nothing to tell it from.
    best : int
        Option that was settled on; -1 if none was.
    pulls : ndarray, shape (m, k)
        Times each option was played by each mark.
    leaders : ndarray, shape (m,)
        Option in front at each mark; -1 if the policy does not say.
    """

    rounds: float
    best: int
    pulls: NDArray[np.float64]
    leaders: NDArray[np.int64]


def settle(
    problem: LinearBandit,
    policy: Policy,
    marks: Sequence[int],
    seed: int,
    stop: Stop | None = None,
    model: Model | None = None,
) -> Settling:
    """Run a policy to the last of some marks and find out when it settled.

    A policy that has no test of its own but keeps estimates is judged by that of IDS on its data.

    Parameters
    ----------
    problem : LinearBandit
        The world.
    policy : Policy
        What is run in it.
    marks : sequence of int
        Rounds after which to look, increasing and below 2^53.
    seed : int
        Same seed, same run.
    stop : threading.Event, optional
        Set it from elsewhere to end the run with KeyboardInterrupt.
    model : Model, optional
        What the policy is told, if not all that the problem says.
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
    looks = 1
    while looks <= horizon:
        while clock.t <= looks and recorder.next_checkpoint[0] < len(marks):
            if stop is not None and stop.is_set():
                raise KeyboardInterrupt
            questions = min(looks + 1 - clock.t, _MOST_QUESTIONS)
            clock = Clock(*advance(state, world, clock, recorder, pending, *random, questions))
            raise_fault(recorder.fault, policy)
        if rounds == math.inf or looks in marks:
            report = _report(state, policy, problem, clock)
        if looks in marks:
            leaders[marks.index(looks)] = report.best
        if rounds == math.inf:
            committed = recorder.explorations[0] < clock.t - 1
            settled = committed and policy.settles_by_committing
            if settled or report.evidence >= report.threshold:
                rounds, best = float(looks), report.best
        later = [mark for mark in marks if mark > looks]
        looks = max(looks + 1, min([math.ceil(looks * _STEP), *later[:1]]))
    return Settling(rounds, int(best), recorder.recorded_pulls, leaders)


def rule_of(policy: Policy) -> ConfidenceRule:
    """Confidence rule of a policy, ``LogDet()`` if it has none."""
    rule = getattr(policy, "confidence", None)
    return rule if isinstance(rule, ConfidenceRule) else LogDet()


def bound_of(rule: ConfidenceRule) -> float | None:
    """S of a rule as the prior of an ellipsoid, for which 0 is too little; None if not known."""
    return None if rule.norm_bound is None else rule.norm_bound or 1.0


def evidence_by_likelihood(
    model: Model,
    pulls: NDArray[np.float64],
    sums: NDArray[np.float64],
    clock: Clock,
    rule: ConfidenceRule,
) -> Evidence:
    """Report what LinUCB would on clicks or counts: a likelihood ratio against its threshold."""
    state: Any = LinUCB(rule, regulariser="matched").start(model)
    state.estimate.arms.pulls[:], state.estimate.arms.sums[:] = pulls, sums
    state.estimate.learned.rounds[0] = int(pulls.sum())
    interpreted(refresh)(state.estimate)  # kernels would be compiled for this alone
    report: Evidence = interpreted(inspect)(state, clock, ALL_ARMS)
    return report


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
