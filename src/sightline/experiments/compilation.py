"""The kernel cache: fill it in several processes before anything runs, and list its contents.

Numba compiles one kernel at a time per process, and kernels are kept on disk, where other
processes find them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Any, NamedTuple, cast

from sightline.bounds.asymptotic import lower_bound
from sightline.core.clock import log_round
from sightline.core.likelihood import Bernoulli, Gaussian, Likelihood, Poisson
from sightline.experiments.executors import cores, follow_parent
from sightline.jit import ORIGINS, NotKeptError, native, only_kept
from sightline.policies.base import Policy, Supports, started
from sightline.policies.catalogue import POLICIES
from sightline.policies.ids import IDS
from sightline.problems import (
    LinearBandit,
    contextual_simple,
    dueling,
    end_of_optimism,
    heteroscedastic,
    semi_bandit,
    sphere_stream,
)
from sightline.problems.base import Problem
from sightline.sessions.designs import contexts, duel, stream
from sightline.sessions.session import Session
from sightline.simulation.loop import walk
from sightline.simulation.simulate import simulate
from sightline.simulation.trace import information_gains

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
    with ProcessPoolExecutor(cores(), context, follow_parent) as pool:
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


class Setting(NamedTuple):
    """A kind of problem or session, and a call that runs a policy in it."""

    name: str
    takes: Callable[[Policy], bool]
    run: Callable[[Policy], object]


def _simulated(
    name: str, problem: Callable[[], Problem], takes: Callable[[Supports], bool]
) -> Setting:
    return Setting(
        f"simulate {name}",
        lambda policy: takes(policy.supports),
        lambda policy: _simulate(problem(), policy),
    )


def _simulate(problem: Problem, policy: Policy) -> None:
    try:
        started(policy, problem.model)
    except ValueError:  # refused for a reason that ``supports`` does not state
        return
    simulate(problem, policy, 1)


def _watch(policy: Policy) -> None:
    problem = end_of_optimism()
    for step in itertools.islice(walk(problem, started(policy, problem.model), 0), 2):
        log_round(step.clock)
    information_gains(problem, ["halfspace"], 2, driver=cast(IDS, policy))


def _live(
    name: str,
    session: Callable[[Policy], Session],
    takes: Callable[[Supports], bool],
    *,
    masks: bool = False,
    batches: bool = True,
    **question: Any,
) -> Setting:
    def run(policy: Policy) -> None:
        for states_probabilities in (False, True):  # without a log and with one
            try:
                live = session(policy)
            except ValueError:  # refused for a reason that ``supports`` does not state
                return
            live._live.states_probabilities = states_probabilities
            decision = live.ask(**question)
            live.tell(decision.id, 1.0)
            with contextlib.suppress(ValueError):  # of policies that keep no sums
                live.amend(decision.id, 0.0)
            if masks and policy.supports.masks:
                live.ask(available=("a", "b"))
            if batches and policy.randomises:
                live.ask(count=2, **question)
        live.status()
        live.estimates()

    return Setting(f"session with {name}", lambda policy: takes(policy.supports), run)


_ARMS = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]
_NAMED = {"a": _ARMS[0], "b": _ARMS[1], "c": _ARMS[2]}
_SETS = {"one": _ARMS, "two": _ARMS[:2]}


def _bandit(rewards: Likelihood | None = None) -> LinearBandit:
    return LinearBandit(_ARMS, [-0.5, -1.0], rewards=rewards)


SETTINGS = (
    _simulated("a bandit", end_of_optimism, lambda _: True),
    _simulated("a bandit of clicks", lambda: _bandit(Bernoulli()), lambda s: s.likelihoods),
    _simulated("a bandit of counts", lambda: _bandit(Poisson()), lambda s: s.likelihoods),
    _simulated("unknown noise", lambda: _bandit(Gaussian(std=None)), lambda s: s.unknown_noise),
    _simulated("noise per arm", heteroscedastic, lambda s: s.noise_per_arm),
    _simulated("contexts", contextual_simple, lambda s: s.contexts),
    _simulated("a game", dueling, lambda s: s.games),
    _simulated("a game with several outcomes", semi_bandit, lambda s: s.games),
    _simulated("a stream", sphere_stream, lambda s: s.streams),
    Setting("rounds one by one", lambda policy: isinstance(policy, IDS), _watch),
    _live("learned units", lambda p: Session(_NAMED, p), lambda s: s.unknown_noise, masks=True),
    _live("known noise", lambda p: Session(_NAMED, p, 0.5), lambda _: True, masks=True),
    _live(
        "clicks",
        lambda p: Session(_NAMED, p, rewards=Bernoulli()),
        lambda s: s.likelihoods,
        masks=True,
    ),
    _live(
        "counts",
        lambda p: Session(_NAMED, p, rewards=Poisson()),
        lambda s: s.likelihoods,
        masks=True,
    ),
    _live(
        "contexts",
        lambda p: Session(contexts(_SETS), p),
        lambda s: s.contexts and s.unknown_noise,
        context="one",
    ),
    _live(
        "contexts and clicks",
        lambda p: Session(contexts(_SETS), p, rewards=Bernoulli()),
        lambda s: s.contexts and s.likelihoods,
        context="one",
    ),
    _live(
        "a stream",
        lambda p: Session(stream(2, 3), p),
        lambda s: s.streams and s.unknown_noise,
        batches=False,
        options=_ARMS,
    ),
    _live("duels", lambda p: Session(duel(_NAMED), p), lambda s: s.games),
)


def compile_natively(policy: Policy) -> None:
    """Compile every kernel of a policy for this processor, in all settings that it takes."""
    with native():
        for setting in SETTINGS:
            if setting.takes(policy):
                setting.run(policy)


def compile_bounds() -> None:
    """Compile what lower bounds need."""
    with native():
        for problem in (end_of_optimism(), contextual_simple(), dueling(), _bandit(Bernoulli())):
            lower_bound(problem)
        lower_bound(contextual_simple()).at(1000)


def origins(policy: Policy) -> dict[str, str]:
    """Where the kernels of a policy are found, by setting; to be called in a new process.

    ``"cache"``: all in the user's cache; ``"package"``: some come from the package of shipped
    kernels; ``"missing"``: some would be compiled.  Those that earlier settings have loaded do not
    count.
    """
    found = {}
    for setting in SETTINGS:
        if setting.takes(policy):
            before = ORIGINS.copy()
            try:
                with only_kept(strict=True):
                    setting.run(policy)
                loaded = ORIGINS - before or ORIGINS  # none, if earlier settings need the same
                found[setting.name] = "package" if loaded["package"] else "cache"
            except NotKeptError:
                found[setting.name] = "missing"
    return found


def find_origins(policies: Mapping[str, Policy]) -> Iterator[tuple[str, dict[str, str]]]:
    """Where the kernels of policies are found, each in a process that has loaded no others."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores(), context, follow_parent, max_tasks_per_child=1) as pool:
        yield from zip(policies, pool.map(origins, policies.values()), strict=True)


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
