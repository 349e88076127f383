"""Compilation of kernels in several processes at once, before anything runs.

Numba compiles one kernel at a time per process, and kernels are kept on disk, where other
processes find them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
import signal
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple

from sightline.experiments.executors import cores
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES
from sightline.problems import end_of_optimism
from sightline.sessions.session import Session
from sightline.simulation.simulate import simulate

_HORIZON = 1000  # of policies that have to be told one; kernels are the same for all


class Job(NamedTuple):
    """A call that compiles kernels."""

    name: str  # for messages
    function: Callable[..., Any]  # at the top level of a module, so that other processes find it
    arguments: tuple[Any, ...]


def compile_in_processes(
    jobs: Iterable[Job], report: Callable[[str, float], None] = lambda name, seconds: None
) -> None:
    """Do jobs in as many processes as there are cores, so that their kernels are on disk.

    ``report`` is called with the name and the seconds of each finished job.  BrokenExecutor is
    raised if a process was killed, as for want of memory.
    """
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")  # a forked process inherits locks of threads
    ignore_interrupts = signal.SIGINT, signal.SIG_IGN  # the parent handles them
    with ProcessPoolExecutor(cores(), context, signal.signal, ignore_interrupts) as pool:
        try:
            futures = {pool.submit(_seconds_of, job): job.name for job in jobs}
            for future in as_completed(futures):
                report(futures[future], future.result())
        except BaseException:
            # Compiling cannot be interrupted, and may take a minute: do not wait for it.
            pool.shutdown(wait=False, cancel_futures=True)
            for child in set(multiprocessing.active_children()) - others:
                child.terminate()
            raise


def _seconds_of(job: Job) -> float:
    began = time.perf_counter()
    job.function(*job.arguments)
    return time.perf_counter() - began


def exercise(policy: Policy) -> None:
    """Call every kernel of a policy once, as a simulation, a session and the service do.

    Rewards are Gaussian in the simulation; with other rewards the loop is compiled when it is
    first run.
    """
    problem = end_of_optimism()
    simulate(problem, policy, 1)
    # as users begin a session: with a noise level, and without one if the policy learns it
    levels = [problem.noise_std, None] if policy.supports.unknown_noise else [problem.noise_std]
    for noise_std, is_served in itertools.product(levels, (False, True)):
        session = Session(problem.actions, policy, noise_std)
        session._live.states_probabilities = is_served
        decision = session.ask()
        session.tell(decision.id, 0.0)
    with contextlib.suppress(ValueError):  # of policies that keep no sums
        session.amend(decision.id, 1.0)
    session.status()
    session.estimates()


def default_policies() -> dict[str, Policy]:
    """Every policy of the library with its default configuration, by name."""
    policies = {}
    for name, cls in sorted(POLICIES.items(), key=lambda item: item[0].lower()):
        needed = [
            field.name
            for field in dataclasses.fields(cls)  # type: ignore[arg-type]
            if field.default is field.default_factory is dataclasses.MISSING
        ]
        policies[name] = cls(**dict.fromkeys(needed, _HORIZON))
    return policies
