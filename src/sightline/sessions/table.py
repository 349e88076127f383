"""Tables of options: the options of a session with the state of its policy, and their changes.

An option can be added or retired, and a reward can be amended.  What was learned stays, also from
the rewards of a retired option, because it is about theta.

An amendment corrects the exact sums of rewards and recomputes everything that follows from them,
including origin and unit.  The state is then the one that the right reward would have led to, had
the same decisions been made.  Two things differ: rounding, and what a policy remembers of its past
choices, such as the largest evidence of IDS.

With z = (r - origin) / unit * weight, the number that a policy receives for a reward:

| symbol                                    | here              |
|-------------------------------------------|-------------------|
| sum of z, by number that an option shows  | ``_Moments.sums`` |
| sum of z^2 less that of the means         | ``_Moments.within`` |
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.context_distribution import ContextDistribution
from sightline.core.estimate import LeastSquares, Noise
from sightline.core.least_squares import refresh
from sightline.core.likelihood import Gaussian, Likelihood
from sightline.core.linalg import solve_transposed
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
from sightline.policies.base import Policy, ScheduledExploration, cancel, readapt, started
from sightline.policies.stakes import OpenDecisions
from sightline.sessions.decisions import ExactSums, RewardSums, Told
from sightline.sessions.history import BlockHistory
from sightline.sessions.kernels import Counters
from sightline.sessions.options import Options
from sightline.sessions.rewards import GIVEN, Units, augmented
from sightline.validation import SMALLEST, scale

Array = NDArray[np.float64]


class OptionTable(NamedTuple):
    """Options of a session, and everything that has one entry per option."""

    options: Options  # all options, including retired ones
    history: BlockHistory  # closed decisions by block of rounds
    retired: frozenset[int]  # rows of retired options
    noise_std: Any  # noise level of all options, or of each
    # Shape (k, p): factors of the outcomes for the policy, so that all have the same noise.
    weights: Array
    model: Model  # what the policy is told of the options
    state: Any  # state of the policy
    counters: Counters  # clock, commitment and counts
    # Likelihood of the rewards; None for normal ones of a known level.
    likelihood: Likelihood | None = None
    # An arm, or one for every context, to play without asking the policy; empty if the policy is
    # asked.
    committed: tuple[int, ...] = ()
    units: Units = GIVEN  # how rewards and features are scaled for the policy
    sums: RewardSums | None = None  # exact sums of all rewards; None for a stream


def first_table(
    options: Options,
    policy: Policy,
    noise_std: object,
    counters: Counters,
    likelihood: Likelihood | None,
    units: Units,
) -> OptionTable:
    """Table before any data."""
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
        k, p = len(options), options.per_arm
        levels = valid_noise_std(noise_std, k, p)
        # one level for all, one per option, or one per number that it shows
        each = np.reshape(levels, (1, 1) if isinstance(levels, float) else (k, -1))
        weights = np.broadcast_to(common_noise(levels) / each, (k, p)).copy()
        if options.observations is None:
            model = bandit_model(features, levels)
        else:
            model = game_model(features, options.observations, levels)
    if options.contexts is not None:
        model = dataclasses.replace(model, contexts=options.contexts.contexts())
    if isinstance(likelihood, Gaussian):
        model = model.without_noise_level(likelihood.guess)
    model = dataclasses.replace(model, intercept=units.intercept != 0.0)
    return OptionTable(
        options,
        BlockHistory(0 if options.stream else len(options)),
        frozenset(),
        levels,
        weights,
        model,
        started(policy, model),
        counters,
        likelihood,
        units=units,
        sums=None if options.stream else RewardSums(options.per_arm, units.offset),
    )


def retire_option(table: OptionTable, policy: Policy, arm: int) -> OptionTable:
    """Table without an option on offer."""
    table.options.needs_fixed_options("retiring an option")
    counters = _copied(table.counters, len(table.options))
    return table._replace(retired=table.retired | {arm}, counters=counters, committed=())


def commit_to(table: OptionTable, policy: Policy, arms: Sequence[int]) -> OptionTable:
    """Table with an arm to play from now on, or one in every context, until the next change."""
    table.options.needs_lasting_options("committing to one")
    blocks = table.options.blocks
    if len(arms) != len(blocks):
        raise ValueError(f"{len(blocks)} arms are committed to at once, got {len(arms)}")
    for arm, block in zip(arms, blocks, strict=True):
        if arm not in block or arm in table.retired:
            raise ValueError(f"arm {arm} cannot be committed to: it is not on offer")
    return table._replace(committed=tuple(arms))


def add_option(
    table: OptionTable,
    policy: Policy,
    name: str,
    features: ArrayLike | None,
    levels: Any = None,
    noise_std: float | None = None,
) -> OptionTable:
    """Table with another option, and with everything that was learned."""
    options = table.options.with_option(name, features, levels)
    k = len(options)
    if noise_std is not None and table.model.likelihood is not None:
        raise ValueError(f"noise_std must be left out where rewards are {table.likelihood}")
    if noise_std is None and not isinstance(table.noise_std, float):
        raise ValueError("noise_std must be given for the new option, as every option has its own")
    before = np.broadcast_to(table.noise_std, k - 1)
    noise: Any = table.noise_std if noise_std is None else np.append(before, noise_std)
    counters = _copied(table.counters, k)
    new = first_table(options, policy, noise, counters, table.likelihood, table.units)
    counters.squares[0] *= (new.weights[0, 0] / table.weights[0, 0]) ** 2
    _adopt(new, table, policy)
    history = table.history.with_options(k)
    return new._replace(retired=table.retired, sums=table.sums, history=history)


def _copied(counters: Counters, k: int) -> Counters:
    """Copy counters for k options, without the commitment, which was among other options."""
    copies = {name: array.copy() for name, array in counters._asdict().items()}
    for name in ("asked", "told", "totals"):
        copies[name] = np.zeros(k, dtype=copies[name].dtype)
        copies[name][: len(getattr(counters, name))] = getattr(counters, name)
    copies["wake_t"][0] = 0
    return Counters(**copies)


def _adopt_noise(new: Noise, old: Noise, ratio: float) -> None:
    """Copy an estimate of the noise into units that are smaller by a ratio."""
    new.errors[...] = old.errors * ratio**2
    new.weight[...] = old.weight


def _adopt(new: OptionTable, old: OptionTable, policy: Policy) -> None:
    """Copy what was learned about the options of the old table, the first ones of the new table.

    That is estimates, open decisions and single numbers.  A policy that keeps more about its
    options is refused.
    """
    k = len(old.options)
    weights = new.weights[:k, 0] / old.weights[:, 0]
    adopted, fitted = set(), []
    for part, known in zip(parts_of(new.state), parts_of(old.state), strict=True):
        if isinstance(part, LeastSquares) and id(part.learned.theta) in adopted:
            continue  # a view of an adopted part, filled before it is read
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
            pass  # a schedule was among other options; there is only one context
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


def amend(
    table: OptionTable,
    policy: Policy,
    decision: str,
    arm: int,
    exploring: bool,
    played: int,
    was: Told,
    now: Told,
) -> OptionTable:
    """Table with the reward ``now`` of a decision of round ``played`` in place of ``was``.

    A policy that keeps too little to correct it is refused.
    """
    table.options.needs_lasting_options("amending a reward")
    assert table.sums is not None
    sums = table.sums.amended(decision, arm, exploring, was, now)
    counters = Counters(*(array.copy() for array in table.counters))  # type: ignore[arg-type]
    if table.units.offset:
        counters.origin[0] = sums.origin()
    if table.units.scale:
        counters.unit[0] = max(sums.unit(), SMALLEST)  # nan stays nan
    counters.totals[:] = sums.totals(len(counters.totals))
    unit = counters.unit[0]
    scales = table.weights.ravel() / (1.0 if math.isnan(unit) else unit)  # of rewards less origin
    if table.options.per_arm == 1:
        counters.squares[0] = sums.squared_deviations(scales)
    state = table.state
    units, former = ([one.origin.item(), one.unit.item()] for one in (counters, table.counters))
    if exploring or not np.array_equal(units, former, equal_nan=True):
        counters.wake_t[0] = 0  # the commitment rested on other data
        state = copy.deepcopy(state)
        _correct(state, table, policy, _moments(sums, scales, float(counters.origin[0])))
    history = table.history
    if isinstance(was, float) and isinstance(now, float):
        history = history.amended(arm, played, was, now, sums.all(arm))
    return table._replace(counters=counters, state=state, committed=(), sums=sums, history=history)


class _Moments(NamedTuple):
    """What a policy has learned from, in its own units; see the table above."""

    counts: Array
    sums: Array
    within: Array


def _moments(sums: RewardSums, scales: Array, origin: float) -> _Moments:
    learned: list[ExactSums] = [sums.learned(place) for place in range(len(scales))]
    return _Moments(
        np.array([one.n for one in learned], np.float64),
        np.array([one.sum(origin) for one in learned]) * scales,
        np.array([one.squared_deviations() for one in learned]) * scales * scales,
    )


def _correct(state: Any, table: OptionTable, policy: Policy, moments: _Moments) -> None:
    """Recompute what a state has learned."""
    corrected: set[int] = set()
    fitted = []
    for part in parts_of(state):
        if isinstance(part, LeastSquares) and id(part.learned.theta) not in corrected:
            _require_all_data(part, table, policy)
            _correct_estimate(part, moments)
            corrected.add(id(part.learned.theta))
        elif isinstance(part, Posterior) and part.estimate is not None:
            fitted.append(part)
        elif isinstance(part, Posterior):
            _correct_posterior(part, moments)
            corrected.add(id(part.whitened))
        elif isinstance(part, ScheduledExploration):
            interpreted(cancel)(part)
    if not corrected:
        raise ValueError(f"{policy} keeps no sums of rewards, of which one could be amended")
    for part in fitted:
        interpreted(follow_fit)(part)
    readapt(state)


def _require_all_data(estimate: LeastSquares, table: OptionTable, policy: Policy) -> None:
    """Refuse a policy that has discarded data, since the reward may be among them."""
    learned, told = int(estimate.learned.rounds[0]), int(table.counters.explorations[0])
    if table.options.observations is None and learned != told:
        raise ValueError(
            f"{policy} keeps {learned} of the {told} rewards that it has learned from: none of "
            "them can be amended"
        )


def _correct_estimate(estimate: LeastSquares, moments: _Moments) -> None:
    observations = estimate.arms.observations
    shows = np.repeat(~observations.silent, observations.per_arm)
    if observations.several is not None:
        shows &= ~observations.several.blank
    estimate.arms.sums[shows] = moments.sums[shows]
    callable_for(refresh, estimate)(estimate)  # also leaves a factor of V in scratch
    if not estimate.noise.known:
        factor, theta = estimate.scratch.factor.tolist(), estimate.learned.theta.tolist()
        rows = (
            math.fsum(r * t for r, t in zip(row[i:], theta[i:], strict=True))
            for i, row in enumerate(factor)
        )
        estimate.noise.errors[0] = _unexplained(moments, shows, math.fsum(x * x for x in rows))


def _correct_posterior(posterior: Posterior, moments: _Moments) -> None:
    """Compute R^-T b, where b is the sum of y z / sigma^2 over everything learned from."""
    rows = posterior.rows.reshape(len(moments.sums), -1)
    scaled = moments.sums / posterior.noise_std**2
    # fsum: the result does not depend on the order in which a BLAS would add
    posterior.whitened[:] = [math.fsum(column) for column in (rows * scaled[:, None]).T.tolist()]
    interpreted(solve_transposed)(posterior.factor, posterior.whitened)
    if not posterior.noise.known:
        shows = np.asarray(rows.any(axis=1))
        explained = math.fsum(posterior.whitened**2)
        posterior.noise.errors[0] = _unexplained(moments, shows, explained)


def _unexplained(moments: _Moments, shows: NDArray[np.bool_], explained: float) -> float:
    """Residual sum of squares: sum of z^2 less the part that the estimate explains."""
    played = shows & (moments.counts > 0.0)
    between = moments.sums[played] ** 2 / moments.counts[played]
    squares = [*moments.within[played].tolist(), *between.tolist(), -explained]
    return max(math.fsum(squares), 0.0)
