"""Many runs until they settle, on all cores."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import NamedTuple

from sightline.core.model import Model
from sightline.experiments.executors import cores
from sightline.experiments.experiment import Experiment
from sightline.problems.bandits import LinearBandit
from sightline.sessions.settling import Settling, settle
from sightline.signals import call_uninterrupted

__all__ = ["settle_all"]


def settle_all(
    experiment: Experiment,
    marks: Sequence[int],
    model: Model,
    watch: Callable[[], None] = lambda: None,
) -> tuple[Settling, ...]:
    """Run every replication of an experiment with one problem and one policy.

    Threads, because kernels release the GIL.  The results do not depend on their number.

    Parameters
    ----------
    experiment : Experiment
        What is run; its seeds are those of ``sl.simulate``.
    marks : sequence of int
        Rounds after which to look; the last is the horizon.
    model : Model
        What the policy is told.
    watch : callable
        Called after every run.
    """
    stopped: list[bool] = []
    return call_uninterrupted(
        lambda: _settle_all(experiment, marks, model, watch, _Stop(stopped)),
        stop=functools.partial(stopped.append, True),
    )


class _Stop(NamedTuple):
    """Set by a C function, as ``call_uninterrupted`` requires."""

    set_by: list[bool]

    def is_set(self) -> bool:
        """Whether to stop."""
        return bool(self.set_by)


def _settle_all(
    experiment: Experiment,
    marks: Sequence[int],
    model: Model,
    watch: Callable[[], None],
    stop: _Stop,
) -> tuple[Settling, ...]:
    (problem,), (policy,) = experiment.problems.values(), experiment.policies.values()
    if not isinstance(problem, LinearBandit):
        raise ValueError(f"{problem.name} has no fixed arms; only those can be settled")
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
