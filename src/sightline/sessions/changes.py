"""Options that come and go while a session runs: what was learned stays, as it lives in theta.

The table of options only grows: the data of a retired option are still data.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet, some_arms
from sightline.core.context_distribution import ContextDistribution
from sightline.core.estimate import LeastSquares, Noise
from sightline.core.least_squares import refresh
from sightline.core.likelihood import Gaussian, Likelihood
from sightline.core.model import (
    Model,
    bandit_model,
    common_noise,
    game_model,
    stream_model,
    valid_noise_std,
)
from sightline.core.persistence import persistent_arrays
from sightline.core.posterior.gaussian import Posterior, follow_fit
from sightline.jit import callable_for, interpreted, parts_of
from sightline.policies.base import (
    Policy,
    ScheduledExploration,
    readapt,
    started,
    write_probabilities,
)
from sightline.policies.stakes import OpenDecisions
from sightline.sessions.exact_data import ExactData
from sightline.sessions.journal import Event
from sightline.sessions.options import Options
from sightline.sessions.turns import Standing
from sightline.sessions.units import GIVEN, Units, augmented
from sightline.validation import number, scale

__all__ = [
    "Change",
    "Table",
    "first_table",
    "grown",
    "knows_probabilities",
    "offer_of",
    "offers_of",
    "prior_signal",
    "table_committed",
    "table_without",
    "valid_floor",
]


class Table(NamedTuple):
    """Options of a session, with all that has one entry per option.

    Attributes
    ----------
    options : Options
        All that there ever were.
    retired : frozenset of int
        Which are gone.
    noise_std : float or ndarray
        Noise level of all options, or of each.
    weights : ndarray, shape (k, p)
        By what an outcome of each is multiplied for the policy, so that all have the same noise.
    model : Model
        What the policy is told of them.
    state : NamedTuple
        What the policy knows.
    standing : Standing
        Where the session stands.
    likelihood : Likelihood or None
        Likelihood of the rewards, if they are no normal ones of a known level.
    committed : tuple of int
        What is played from now on without asking the policy: an arm, or one for every context.
        Nothing while the policy is asked.
    units : Units
        How the policy is told rewards and features.
    data : ExactData or None
        All rewards that were told; None where they cannot be amended: options that are new in every
        round, and files of earlier layouts.
    """

    options: Options
    retired: frozenset[int]
    noise_std: Any
    weights: NDArray[np.float64]
    model: Model
    state: Any
    standing: Standing
    likelihood: Likelihood | None = None
    committed: tuple[int, ...] = ()
    units: Units = GIVEN
    data: ExactData | None = None


class Change(NamedTuple):
    """Another table: what an operation is to decisions.

    Attributes
    ----------
    now : float
        When, in seconds since 1970.
    kind : str
        ``"added"``, ``"retired"``, ``"amended"`` or ``"committed"``.
    body : dict
        Arguments of :func:`grown`, :func:`table_without`, :func:`~engine.amending.amended` or
        :func:`table_committed`.
    sequence : int
        Number of its entry in the journal.
    table : Table
        What it leads to.
    """

    now: float
    kind: str
    body: dict[str, Any]
    sequence: int
    table: Table

    def event(self) -> Event:
        """Entry for a journal."""
        body = self.body
        told = body["now"] if self.kind == "amended" else None
        return Event(
            self.sequence,
            self.kind,
            self.now,
            body.get("decision"),
            reward=told if isinstance(told, float) else None,
            body=json.dumps(body),
        )


def first_table(
    options: Options,
    policy: Policy,
    noise_std: object,
    standing: Standing,
    likelihood: Likelihood | None = None,
    units: Units = GIVEN,
) -> Table:
    """Before any data."""
    values = None if likelihood is None else likelihood.as_tuple
    if values is not None and options.observations is not None:
        raise ValueError(
            f"rewards={likelihood} needs options that show their own rewards; these are those of a "
            "game"
        )
    features = augmented(options.features, units.intercept)
    weights = np.ones((len(options), 1))
    levels: Any = 1.0
    if options.stream:
        levels = scale("noise_std", noise_std) if values is None else 1.0
        model = stream_model(len(features), features.shape[1], levels, values)
    elif values is not None:
        model = bandit_model(features, likelihood=values)
    else:
        levels, weights, model = _table_of_noise(options, features, noise_std)
    if options.contexts is not None:
        model = dataclasses.replace(model, contexts=options.contexts.contexts())
    if isinstance(likelihood, Gaussian):
        model = model.without_noise_level(likelihood.guess)
    model = dataclasses.replace(model, intercept=units.intercept != 0.0)
    state = started(policy, model)
    return Table(
        options,
        frozenset(),
        levels,
        weights,
        model,
        state,
        standing,
        likelihood,
        units=units,
        data=None if options.stream else ExactData(options.per_arm, units.offset),
    )


def _table_of_noise(
    options: Options, features: NDArray[np.float64], noise_std: object
) -> tuple[Any, NDArray[np.float64], Model]:
    """Noise levels, weights of outcomes, and model, of options that stay."""
    k, p = len(options), options.per_arm
    levels = valid_noise_std(noise_std, k, p)
    # one level for all, one per option, or one per number that it shows
    each = np.reshape(levels, (1, 1) if isinstance(levels, float) else (k, -1))
    weights = np.broadcast_to(common_noise(levels) / each, (k, p)).copy()
    if options.observations is not None:
        return levels, weights, game_model(features, options.observations, levels)
    return levels, weights, bandit_model(features, levels)


def offer_of(
    table: Table, policy: Policy, available: Any = None, context: int | None = None
) -> ActionSet:
    """Offer of options that are not retired, or of those among them that are named.

    Where there are contexts, none is retired, and those that are named are of the present one.
    """
    if available is None and not table.retired:
        contexts = table.model.contexts
        return ALL_ARMS if contexts is None or context is None else contexts.offer(context)
    if context is not None and not policy.supports.masks_in_contexts:
        raise ValueError(
            f"{policy} cannot choose among some options of a context only; LinUCB and "
            "ThompsonSampling can"
        )
    if not policy.supports.masks:
        raise ValueError(
            f"{policy} cannot choose among some of its options only; Stakes, IDS with half-spaces "
            "and value gaps, LinUCB, LinMED, ThompsonSampling, TopTwo and EpsilonGreedy can"
        )
    flags = np.zeros(len(table.options), dtype=np.bool_)
    flags[list(range(len(flags)) if available is None else available)] = True
    flags[list(table.retired)] = False
    if not flags.any():
        raise ValueError("no option is left to choose: all are retired or not available")
    return some_arms(flags)


def offers_of(table: Table, policy: Policy) -> list[ActionSet]:
    """All that is offered in one decision or another: the options, or those of every context."""
    contexts = table.model.contexts
    if contexts is None:
        return [offer_of(table, policy)]
    return [contexts.offer(context) for context in range(len(contexts))]


def valid_floor(floor: object, table: Table, policy: Policy) -> float:
    """Return a least probability that all options can have."""
    value = number("floor", floor, at_least=0)
    blocks = table.options.contexts
    k = len(table.options) - len(table.retired)
    if blocks is not None:
        k = max(map(len, blocks.blocks()))
    if value * k > 1.0:
        where = "" if blocks is None else " in a context"
        many = f"can be {k} options" if table.options.stream else f"are {k} options{where}"
        raise ValueError(f"floor must be at most 1/{k}, as there {many}, got {floor!r}")
    if value > 0.0 and policy.randomises and not knows_probabilities(table.state):
        raise ValueError(
            f"floor needs the probabilities of {policy}: "
            f"register_policy(..., probabilities=...) writes them, or "
            "randomises = False says that there is none"
        )
    return value


def knows_probabilities(state: Any) -> bool:
    """Whether a policy has told how to find the probabilities of all its arms."""
    return write_probabilities.dispatch(type(state)) is not write_probabilities.dispatch(object)


def prior_signal(state: Any) -> float:
    """Find the standard deviation of theta before any data, over that of the noise."""
    for part in parts_of(state):
        if isinstance(part, LeastSquares):
            return 1.0 / math.sqrt(part.regulariser)
        if isinstance(part, Posterior):
            return 1.0 / (float(part.factor[0, 0]) * part.noise_std)
    return 1.0


def table_without(table: Table, policy: Policy, arm: int) -> Table:
    """Retire an option."""
    table.options.needs_fixed_options("retiring an option")
    changed = table._replace(
        retired=table.retired | {arm},
        standing=_copied(table.standing, len(table.options)),
        committed=(),
    )
    offer_of(changed, policy)  # which refuses what cannot be done
    return changed


def table_committed(table: Table, policy: Policy, arms: Sequence[int]) -> Table:
    """Play an arm from now on, or one in every context; another change of the table ends that."""
    table.options.needs_lasting_options("committing to one")
    rows = table.options.contexts
    blocks = [range(len(table.options))] if rows is None else rows.blocks()
    if len(arms) != len(blocks):
        raise ValueError(f"{len(blocks)} arms are committed to at once, got {len(arms)}")
    for arm, block in zip(arms, blocks, strict=True):
        if arm not in block or arm in table.retired:
            raise ValueError(f"arm {arm} cannot be committed to: it is not on offer")
    return table._replace(committed=tuple(arms))


def grown(
    table: Table,
    policy: Policy,
    name: str,
    features: ArrayLike | None,
    levels: Any = None,
    noise_std: float | None = None,
) -> Table:
    """Add an option, with what has been learned so far."""
    options = table.options.with_option(name, features, levels)
    k = len(options)
    if noise_std is not None and table.model.likelihood is not None:
        raise ValueError(f"noise_std must be left out where rewards are {table.likelihood}")
    if noise_std is None and not isinstance(table.noise_std, float):
        raise ValueError("noise_std must be given for the new option, as every option has its own")
    before = np.broadcast_to(table.noise_std, k - 1)
    noise: Any = table.noise_std if noise_std is None else np.append(before, noise_std)
    standing = _copied(table.standing, k)
    new = first_table(options, policy, noise, standing, table.likelihood, table.units)
    standing.squares[0] *= (new.weights[0, 0] / table.weights[0, 0]) ** 2
    _adopt(new, table, policy)
    return new._replace(retired=table.retired, data=table.data)


def _copied(standing: Standing, k: int) -> Standing:
    """Copy where a session stands, for k options, with no commitment: it was among others."""
    copies = {name: array.copy() for name, array in standing._asdict().items()}
    for name in ("asked", "told", "totals"):
        copies[name] = np.zeros(k, dtype=copies[name].dtype)
        copies[name][: len(getattr(standing, name))] = getattr(standing, name)
    copies["wake_t"][0] = 0
    return Standing(**copies)


def _adopt_noise(new: Noise, old: Noise, ratio: float) -> None:
    """Fill in an estimate of the noise, in units that are smaller by a ratio."""
    new.errors[...] = old.errors * ratio**2
    new.weight[...] = old.weight


def _adopt(new: Table, old: Table, policy: Policy) -> None:
    """Fill in what was learned about the first options of a table, which were all.

    Estimates, open decisions, and single numbers.  A policy that keeps more about its options
    is refused.
    """
    k = len(old.options)
    weights = new.weights[:k, 0] / old.weights[:, 0]
    adopted, fitted = set(), []
    for part, known in zip(parts_of(new.state), parts_of(old.state), strict=True):
        if isinstance(part, LeastSquares) and id(part.learned.theta) in adopted:
            continue  # a view of what has been adopted, which is filled before it is read
        if isinstance(part, LeastSquares):
            part.arms.pulls[:k] = known.arms.pulls
            part.arms.sums[:k] = known.arms.sums * weights
            part.learned.rounds[0] = known.learned.rounds[0]
            _adopt_noise(part.noise, known.noise, weights[0])
            callable_for(refresh, part)(part)
        elif isinstance(part, Posterior) and part.estimate is not None:
            fitted.append(part)
        elif isinstance(part, Posterior):
            # an unknown noise level is the unit, and it is that of the noisiest option
            ratio = 1.0 if part.noise.known else weights[0]
            part.factor[...] = known.factor * ratio
            part.whitened[...] = known.whitened * ratio
            _adopt_noise(part.noise, known.noise, ratio)
        elif isinstance(part, OpenDecisions) and not part.stream:
            part.pulls[:k] = known.pulls
        elif isinstance(part, ScheduledExploration | ContextDistribution):
            pass  # the one was made among other options, of the other there is one context
        else:
            continue
        adopted |= {id(array) for _, array in persistent_arrays(part)}
    known_arrays = dict(persistent_arrays(old.state))
    for name, array in persistent_arrays(new.state):
        if id(array) in adopted:
            continue
        if array.shape != (1,):
            raise ValueError(
                f"{policy} cannot be given another option: it keeps {name} beside its estimates"
            )
        array[...] = known_arrays[name]
    for part in fitted:
        interpreted(follow_fit)(part)
    readapt(new.state)
