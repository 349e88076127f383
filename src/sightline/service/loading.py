"""Create the session of an experiment from a request, load it from the database, or warm it up."""

from __future__ import annotations

import contextlib
import json
import logging
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sqlalchemy import Connection

from sightline.core.likelihood import Bernoulli, Gaussian, Likelihood, Poisson
from sightline.policies.base import Policy
from sightline.policies.catalogue import build
from sightline.policies.stakes import Stakes
from sightline.service import events
from sightline.service.errors import ApiError, internal_error
from sightline.service.events import Entry, TransactionLog
from sightline.service.experiment import (
    ExperimentWriter,
    Lifecycle,
    ServiceSession,
    best_settled,
    history_point,
)
from sightline.service.limits import check_shape, shape_of
from sightline.service.schemas import Specification
from sightline.service.settings import Settings
from sightline.sessions.decisions import Window
from sightline.sessions.designs import contexts, duel, factorial, stream
from sightline.sessions.options import Options, as_options
from sightline.sessions.view import view_of
from sightline.validation import shown

_log = logging.getLogger("sightline.service")

_DESIGNS = ("options", "factors", "contexts", "duel", "stream")
#: Fields that each kind of reward may have.
_REWARD_FIELDS = {
    "gaussian": ("std",),
    "bounded": ("low", "high"),
    "bernoulli": ("link",),
    "poisson": (),
}


def create_session(wanted: Specification, settings: Settings) -> ServiceSession:
    """Create the session of a new experiment.

    ValueError if the specification is incomplete or contradictory; ApiError if it is too large.
    """
    given = [name for name in _DESIGNS if getattr(wanted, name) is not None]
    if len(given) != 1:
        raise ValueError(f"give one of {', '.join(_DESIGNS)}, got {' and '.join(given) or 'none'}")
    policy = Stakes() if wanted.policy is None else _policy(wanted.policy)
    check_shape(
        shape_of(wanted), policy, wanted.min_probability, settings
    )  # before anything is built
    options = _options(wanted)
    control_rows(wanted, options)
    if wanted.stop is not None:
        options.needs_lasting_options("stop")
    noise, likelihood = _noise(wanted)
    bounds = None if wanted.reward is None else wanted.reward.bounds
    timeout = wanted.on_timeout
    if bounds is not None and timeout != "ignore" and not bounds[0] <= timeout <= bounds[1]:
        raise ValueError(
            f"on_timeout must be from {bounds[0]:g} to {bounds[1]:g}, as rewards, got {timeout:g}"
        )
    try:
        return ServiceSession(
            options,
            policy,
            noise_std=noise,
            rewards=likelihood,
            seed=secrets.randbits(62) if wanted.seed is None else wanted.seed,
            reward_window=wanted.reward_deadline,
            on_timeout=wanted.on_timeout,
            early_rewards=wanted.early_rewards,
            min_probability=wanted.min_probability,
        )
    except (TypeError, OverflowError) as error:  # the fields of a policy may hold anything
        raise ValueError(f"policy: {error}") from None


def _policy(wanted: str | dict[str, Any]) -> Policy:
    made = build({"type": wanted} if isinstance(wanted, str) else wanted)
    if not isinstance(made, Policy):
        raise ValueError(f"policy must be the name of a policy, got {type(made).__name__}")
    return made


def _options(wanted: Specification) -> Options:
    if wanted.factors is not None:
        terms = None if wanted.interactions == "none" else wanted.interactions
        return factorial(wanted.factors, terms, wanted.forbidden)
    if wanted.interactions != "none" or wanted.forbidden:
        raise ValueError("interactions and forbidden are for factors only")
    if wanted.contexts is not None:
        return contexts(wanted.contexts)
    if wanted.duel is not None:
        return duel(wanted.duel)
    if wanted.stream is not None:
        return stream(len(wanted.stream.features), wanted.stream.max_arms, wanted.stream.features)
    return as_options(wanted.options or {})


def _noise(wanted: Specification) -> tuple[float | list[float] | None, Likelihood | None]:
    """Return the noise level, or the likelihood of the rewards."""
    rewards = wanted.reward
    if rewards is None:
        return wanted.noise_std, None
    if wanted.noise_std is not None:
        raise ValueError("give reward or noise_std, not both")
    for name in ("std", "link", "low", "high"):
        if name not in _REWARD_FIELDS[rewards.kind] and getattr(rewards, name) is not None:
            raise ValueError(f"a {rewards.kind} reward has no {name}")
    if rewards.kind == "gaussian":
        return None, Gaussian(rewards.std)
    if rewards.kind == "bernoulli":
        return None, Bernoulli(rewards.link or "logistic")
    if rewards.kind == "poisson":
        return None, Poisson()
    low, high = rewards.bounds or (0.0, 0.0)
    return 0.5 * (high - low), None  # sub-Gaussian parameter of any distribution between


def control_rows(wanted: Specification, options: Options) -> tuple[int, ...]:
    """Return the row of the control, one per context; in a duel, its item; () without a control.

    ValueError if there is no such option.
    """
    control = wanted.control
    if control is None:
        return ()
    options.needs_lasting_options("control")
    if isinstance(control, dict):
        if options.levels is None:
            raise ValueError("control must be a name: options of this experiment have no levels")
        if control not in options.levels:
            raise ValueError(f"control must be one of the options, got {shown(control)}")
        return (options.levels.index(control),)
    return options.rows_of_control(control)


def specification_in(entry: Entry) -> Specification:
    """Read the specification of an experiment from its first entry."""
    return Specification.model_validate(json.loads(entry.event.body or "{}"))


@contextlib.contextmanager
def reading_log(experiment: str) -> Iterator[None]:
    """Convert errors of a log that cannot be replayed: no request is to blame for them."""
    try:
        yield
    except ValueError as error:
        _log.exception("experiment %s cannot be read", experiment)
        detail = f"experiment {experiment} cannot be read: {error}"
        raise ApiError(500, "unreadable", detail) from error
    except KeyError as error:
        _log.exception("experiment %s cannot be read", experiment)
        raise internal_error() from error


def load_session(
    connection: Connection, experiment: str, *, first: bool = False
) -> tuple[ServiceSession, int, int] | None:
    """Load a session; return it with the numbers of its last entry and of its snapshot.

    None if there is no such experiment.  With ``first`` the whole log is replayed.
    """
    found = events.read_snapshot(connection, experiment, first=first)
    if found is None:
        return None
    lifecycle = Lifecycle.from_json(found.lifecycle)
    session = ServiceSession.from_snapshot(found.content, lifecycle)
    entries = events.later_entries(connection, experiment, found.sequence)
    return session, session.replay(entries, found.sequence), found.sequence


def load_experiment(
    connection: Connection, experiment: str, settings: Settings, now: Callable[[], float]
) -> ExperimentWriter | None:
    """Load the writing side of an experiment; None if there is none."""
    found = load_session(connection, experiment)
    if found is None:
        return None
    session, last, sequence = found
    (first,) = events.entries_after(connection, experiment, 0, 1)
    log = TransactionLog(experiment, last, sequence)
    session.write_to(log, now)
    view_of(session.live)  # computes now what depends on the options only, and keeps it
    return ExperimentWriter(session, log, specification_in(first), settings, now)


def warm_up(content: bytes, wanted: Specification | None = None) -> None:
    """Compile or load the kernels of an experiment by using a copy of its snapshot.

    With its specification, the copy is used in every way that this allows: in batches, among some
    options, and settled.  By default only in the most common ways.
    """
    session = ServiceSession.from_snapshot(content, Lifecycle())
    session.live.decisions.window = Window()  # so that rewards are learned at once
    options = session.options
    where: dict[str, Any] = {}
    if options.contexts is not None:
        where["context"] = options.contexts.names[0]
    if options.stream:
        where["options"] = np.zeros((1, options.features.shape[1]))
    made = session.ask(**where)
    session.tell(made, 1.0)  # a value that every likelihood has
    history_point(session, 0.0)
    session.status()
    if options.stream:
        return
    with contextlib.suppress(ValueError):  # the policy keeps no sums
        session.amend(made, 0.0)
    if wanted is None:
        return
    for one in session.ask(2, **where):
        session.give_up(one)
    with contextlib.suppress(ValueError):  # the policy needs all options
        session.ask(available=[made.arm], **where)
    session.effects()
    if wanted.stop is not None:
        best_settled(view_of(session.live), wanted.stop)
        session.commit([0] if options.contexts is None else list(options.contexts.starts[:-1]))
        session.ask(**where)
    if len(options) > 1:
        with contextlib.suppress(ValueError):  # the policy or the options cannot change
            session.retire(len(options) - 1)
            history_point(session, 0.0)
            session.status()
    ServiceSession.from_snapshot(session.snapshot(), Lifecycle())
