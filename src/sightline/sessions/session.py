"""``sl.Session``: a live experiment that asks for decisions and learns from rewards told later.

A session uses the policies of the simulation.  Threads of the process that made it take turns.
Signal handlers must not call it: a handler interrupts the main thread, which may be in the middle
of a call of the session.
"""

from __future__ import annotations

import dataclasses
import functools
import io
import math
import os
import sqlite3
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, NoReturn, ParamSpec, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.clock import FAR, Clock
from sightline.core.likelihood import Bernoulli, Gaussian, Likelihood, build_likelihood
from sightline.files import write_atomically
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES, build, describe
from sightline.policies.stakes import Stakes
from sightline.sessions.attributes import Attributes, attributes_of_decisions, check_names
from sightline.sessions.decisions import (
    Check,
    ClosedDecisionError,
    Closing,
    Decision,
    DecisionError,
    ExpiredDecisionError,
    Pending,
    Received,
    RefusedRewardsError,
    Status,
    Told,
    UnlearnableRewardError,
    advice_in,
    date_of,
    new_ids,
    outcome_value,
    refusal,
    reward_value,
    several_numbers,
    unknown,
    valid_window,
    window,
)
from sightline.sessions.effects import Effect, valid_delta
from sightline.sessions.estimates import Estimates
from sightline.sessions.journal import Event, Journal, Log, check_beginning, replay
from sightline.sessions.options import Level, Options, as_options
from sightline.sessions.rewards import (
    Units,
    check_support,
    looks_like_clicks,
    noise_or_likelihood,
    only_value,
    units_of,
    valid_units,
)
from sightline.sessions.snapshot import Snapshot, read_snapshot, write_snapshot
from sightline.sessions.state import LiveState, least_evident
from sightline.sessions.view import JournalContents, SessionView, view_of
from sightline.simulation.simulate import power_of_ten
from sightline.validation import file_path, instance, integer, one_of, shown

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from sightline.report.experiment_analysis import Facts
    from sightline.report.experiment_report import Report

#: Digits of a round above which it counts as never, because Python does not print longer integers.
_MOST_DIGITS = 4_000.0

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Session")
OptionsLike = Options | Mapping[str, ArrayLike] | Sequence[str] | ArrayLike
Available = Iterable[str | int] | None
Context = str | int | None
AttributesLike = Attributes | Sequence[Attributes] | None


class Guard:
    """Non-reentrant, per-process lock: its holder and other processes get an error at once."""

    def __init__(self) -> None:
        # C code takes it and sets its owner in one step, which no signal can interrupt
        self.lock: Any = threading.RLock()
        self._process = os.getpid()

    def check(self) -> None:
        """Refuse callers that must not wait for the lock."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this session belongs to process {self._process}, and this is process "
                f"{os.getpid()}, forked from it: both would give out the same decisions; let one "
                "process ask for all of them, or begin a session in each"
            )
        if self.lock._is_owned():
            raise RuntimeError(
                "the session was interrupted at work by a signal handler that calls it; "
                "let the handler set a flag, and act on it afterwards"
            )


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Run a method for one caller at a time, after the session has recovered."""

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        self._guard.check()
        with self._guard.lock:
            self._recover()
            return method(self, *args, **kwargs)

    return call


class Session:
    """An adaptive experiment in progress.

    Rewards may be told late, in any order, or never.  While the policy is committed to an arm,
    ``ask`` answers without computing anything, and the policy does not learn from the rewards, as
    in simulation.  A late reward of an earlier exploration ends the commitment, because it may
    change the decision.  Decisions made before any new reward rest on the same data, so that a
    deterministic policy repeats itself.

    All methods may be called from several threads, but not from a signal handler nor from a forked
    process.  An exception in the middle of a call, such as Ctrl-C, leaves the session as before the
    call or as after it.

    Parameters
    ----------
    options : Options, mapping of str to array_like, array_like of shape (k, d), or list of str
        The options: made by :func:`factorial`, :func:`contexts`, :func:`stream`, :func:`duel` or
        :func:`game`, or features by name, or features.  Options with names only, such as
        ``["A", "B"]``, are independent: the rewards of one say nothing about another.
    policy : Policy, optional
        Policy that chooses among them; :class:`Stakes` by default.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, the same for all options or one for each: their
        standard deviation if Gaussian, half their range if bounded.  In a game, of the outcomes.
        By default it is learned from the rewards, except in duels, where it is 1.  Not allowed
        beside ``rewards``, except that beside ``Gaussian(std=None)`` levels of each option
        are relative to one another.
    seed : int
        The same seed and the same rewards lead to the same decisions, with other ids.
    rewards : Bernoulli, Poisson or Gaussian, optional
        Likelihood of the rewards: clicks, counts or normal ones.  Where it says more than a noise
        level, far fewer rewards settle the answer: at a rate of 2 % a twelfth of what
        ``noise_std=0.5`` needs.  Features then add up to the log odds of a click, or to the log of
        a mean count.
    reward_window : float, timedelta or str, optional
        How long to wait for a reward: seconds, or a text such as ``"2 hours"`` or ``"500 rounds"``;
        at most 1e10 seconds or 10**15 rounds.  Later rewards are refused.  All rewards enter the
        estimate when their window closes, so that what is learned does not depend on which of them
        are told sooner.
    on_timeout : "ignore" or float
        Reward to learn when the window closes without one; "ignore" to learn nothing.  If only
        successes are told it must be 0: ignoring all others would estimate every option at 1.  In
        a duel it is what ``tell`` takes: 0.5 is a tie.
    early_rewards : bool
        Let rewards enter the estimate when they are told.  This is right only if whether and when a
        reward is told does not depend on the reward; it needs ``on_timeout="ignore"``.
    min_probability : float
        Minimum probability of every option in every decision, at most 1/k, where k is the number of
        options in the largest context.  The log can then evaluate any policy.  With 0 it cannot:
        where an option has probability 0, the log says nothing about policies that choose it, and
        most policies give most options probability 0.  Decide this before the experiment begins;
        it costs up to min_probability times the sum of all gaps per decision.  With
        :func:`stream`, k is the largest number of options.
    units : {"auto", "given", "learned"}
        Whether offset and scale of the rewards are learned.  Decisions then do not change if all
        rewards are multiplied by a number, or have a number added, and defaults of the policy that
        assume a scale (a prior, a bound on the norm of theta) are replaced by what the data tell.
        By default they are learned, unless the policy was given such a prior or bound other than
        its default.  With ``"given"`` the model is that of :func:`simulate`: rewards and features
        as they are, and ``noise_std=1`` by default.
    now : callable
        Clock in seconds since 1970.
    """

    def __init__(
        self,
        options: OptionsLike,
        policy: Policy | None = None,
        noise_std: float | ArrayLike | None = None,
        seed: int = 0,
        *,
        rewards: Likelihood | None = None,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        early_rewards: bool = False,
        min_probability: float = 0.0,
        units: str | Units = "auto",
        now: Callable[[], float] = time.time,
    ) -> None:
        table = as_options(options)
        noise, likelihood = noise_or_likelihood(noise_std, rewards, table, units)
        limits = window(table, reward_window, on_timeout, early_rewards)
        if limits.reward is not None:
            limits = limits._replace(reward=outcome_value("on_timeout", limits.reward, table))
        if limits.reward is not None and likelihood is not None:
            check_support(likelihood, "on_timeout", limits.reward)
        chosen = Stakes() if policy is None else policy
        instance("policy", chosen, Policy, "a Policy such as IDS()")
        scales = units_of(units, table, chosen, likelihood)
        self._live = LiveState(
            table, chosen, noise, seed, limits, min_probability, likelihood, scales
        )
        self._now = now
        self._guard = Guard()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        options: OptionsLike | None = None,
        policy: Policy | None = None,
        noise_std: float | ArrayLike | None = None,
        seed: int = 0,
        *,
        rewards: Likelihood | None = None,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        early_rewards: bool = False,
        min_probability: float = 0.0,
        units: str = "auto",
        now: Callable[[], float] = time.time,
    ) -> Self:
        """Begin or continue a session that survives crashes, because it keeps a journal.

        When ``ask`` or ``tell`` returns, its effect is on disk, and survives if the process is
        killed or the power fails.  One process at a time can open a journal.  The journal
        records the probabilities of all options in every decision, as far as the policy knows
        them.

        Parameters
        ----------
        path : path
            The journal, one SQLite file, created if it does not exist.
        options, policy, noise_std, seed, rewards, reward_window, on_timeout, early_rewards
            As in :class:`Session`.
        min_probability, units, now
            As in :class:`Session`.  To continue, ``Session.open(path)`` is enough; if options are
            given, everything must be as when the session began.  A policy that is not part of the
            library must be given again.

        Raises
        ------
        BlockingIOError
            If the journal is open already; the message says by whom.
        """

        def begin(cls: type[Self], policy: Policy | None) -> Self:
            if options is None:
                raise ValueError(f"{os.fspath(path)} does not exist: give options to begin there")
            return cls(
                options,
                policy,
                noise_std,
                seed,
                rewards=rewards,
                reward_window=reward_window,
                on_timeout=on_timeout,
                early_rewards=early_rewards,
                min_probability=min_probability,
                units=units,
                now=now,
            )

        target = file_path("path", path)
        # before the file exists, so that refused arguments leave none behind
        new = None if target.exists() else begin(cls, policy)
        journal = Journal(target)
        try:
            if journal.kept < 0:
                session = begin(cls, policy) if new is None else new
            else:
                session = cls._reopened(journal, policy, now)
                if options is not None:
                    check_beginning(journal, begin(cls, policy or session.policy)._live)
            session._live.journal = journal
            session._live.states_probabilities = True
            session._live.keep_snapshot()
        except BaseException:
            journal.close()
            raise
        return session

    @classmethod
    def _reopened(cls, journal: Log, policy: Policy | None, now: Callable[[], float]) -> Self:
        found = journal.snapshot()
        assert found is not None
        sequence, content = found
        try:
            session = cls._restored(read_snapshot(io.BytesIO(content)), policy)
            session._now = now
            session._live.states_probabilities = True  # as when the events were written
            replay(session._live, journal.events(sequence))
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{journal.path} is not a readable journal: {error}") from None
        except Exception as error:
            raise ValueError(f"{journal.path} cannot be continued: {error}") from error
        return session

    @classmethod
    def load(
        cls,
        path: str | PathLike[str],
        policy: Policy | None = None,
        *,
        now: Callable[[], float] = time.time,
    ) -> Self:
        """Continue a saved session, bit for bit.

        Parameters
        ----------
        path : path
            File written by :meth:`save`.
        policy : Policy, optional
            Needed for a policy that is not part of the library: the one that was saved.
        now : callable
            As in :class:`Session`.

        Raises
        ------
        ValueError
            If the file is truncated, damaged, of another kind or of an unsupported version.
        """
        with open(file_path("path", path), "rb") as file:
            try:
                session = cls._restored(read_snapshot(file), policy)
            except Exception as error:  # a damaged archive can raise nearly anything
                message = f"{os.fspath(path)} is not a readable session: {error}"
                raise ValueError(message) from error
        session._now = now
        return session

    @classmethod
    def _restored(cls, snapshot: Snapshot, policy: Policy | None) -> Self:
        header, arrays = snapshot.header, snapshot.arrays
        saved = header["policy"]
        if policy is not None and describe(policy) != saved:
            raise ValueError(f"it was saved with {saved}, not with {describe(policy)}")
        if policy is None and saved["type"] not in POLICIES:
            raise ValueError(f"pass policy={saved['type']}(...), which is not part of this library")
        tables = {"features": arrays["actions"], "observations": arrays.get("observations")}
        options = Options.build(header["options"] | tables)
        likelihood = build_likelihood(header["rewards"])
        by_likelihood = likelihood is not None and likelihood.as_tuple is not None
        session = cls(
            options,
            policy or build(saved),
            None if by_likelihood else header["noise_std"],
            header["seed"],
            rewards=likelihood,
            min_probability=header["min_probability"],
            units=valid_units(header["units"]),
        )
        session._live.decisions.window = valid_window(options, *header["window"])
        session._live.fill(snapshot)
        return session

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write the session to one file, all or nothing.

        A decision made after the last save is unknown to the loaded session, which refuses its
        reward: save before decisions leave the process, or keep a journal (:meth:`open`).
        """
        snapshot = self._live.snapshot()
        write_atomically(path, lambda file: write_snapshot(file, snapshot))

    def close(self) -> None:
        """Close the journal, if there is one, so that it can be opened elsewhere."""
        self._guard.check()
        with self._guard.lock:
            if self._live.journal is not None and self._live.journal.is_open:
                try:
                    self._recover()
                    self._live.keep_snapshot()
                finally:  # on a full disk as well
                    self._live.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a session cannot be pickled or copied: both would give out the same decisions; "
            "save() writes it to a file, and load() continues from there"
        )

    def _recover(self) -> None:
        self._live.recover()

    @property
    def policy(self) -> Policy:
        """The policy in use."""
        return self._live.policy

    @property
    def options(self) -> Options:
        """The options, with their names and features."""
        return self._live.options

    def __repr__(self) -> str:
        live = self._live
        k, d = live.options.features.shape
        levels = live.table.noise_std
        blocks = live.options.contexts
        where = "" if blocks is None else f"{len(blocks)} contexts and "
        noise = f"noise_std={levels:g}" if isinstance(levels, float) else f"{k} noise levels"
        if live.table.likelihood is not None:
            noise = f"rewards={live.table.likelihood}"
        arms = f"at most {k} new arms per round" if live.options.stream else f"{k} arms"
        if live.options.items is not None:
            arms = f"{k} pairs of {len(live.options.items)} options"
        return (
            f"Session({arms} in {where}{d} dimensions, {live.policy}, {noise}, "
            f"next round {live.clock.t}, {int(live.counters.explorations[0])} "
            f"{live.options.told}s learned from, {len(live.decisions.open)} decisions open)"
        )

    @overload
    def ask(
        self,
        *,
        available: Available = None,
        context: Context = None,
        options: ArrayLike | None = None,
        attributes: Attributes | None = None,
    ) -> Decision: ...
    @overload
    def ask(
        self,
        count: int,
        *,
        available: Available = None,
        context: Context = None,
        attributes: AttributesLike = None,
    ) -> list[Decision]: ...

    def ask(
        self,
        count: int | None = None,
        *,
        available: Available = None,
        context: Context = None,
        options: ArrayLike | None = None,
        attributes: AttributesLike = None,
    ) -> Decision | list[Decision]:
        """Choose the arm for the next round, or for each of the next ones.

        Parameters
        ----------
        count : int, optional
            Number of decisions to make at once, before any of their rewards is known.
        available : iterable of str or int, optional
            Options that may be chosen this time, by name or row; by default all that are not
            retired.
        context : str or int, optional
            Name or number of the present context, where there are contexts.
        options : array_like, shape (k, d), optional
            Features of the options on offer, one per row, where they are new in every round
            (:func:`stream`).
        attributes : mapping of str to str, int, float or bool, optional
            What to record beside the decision, such as ``{"country": "DE"}``; with ``count`` one
            mapping for all decisions, or a list of one for each.  At most 20, of at most 1000 bytes
            as JSON, and at most 100 names in one session.  They are kept in the journal and
            exported; the policy does not see them.  What decisions should depend on is a context.

        Returns
        -------
        Decision
            Or a list of them, if ``count`` is given.
        """
        if count is None:
            recorded = attributes_of_decisions(attributes, None)
            return self._ask(1, available, context, options, recorded)[0]
        if self.options.stream:
            raise ValueError(
                f"count must be left out where options come with the question, got {shown(count)}: "
                "ask once for each decision"
            )
        count = integer("count", count, at_least=1)
        recorded = attributes_of_decisions(attributes, count)
        return self._ask(count, available, context, options, recorded)

    @exclusive
    def _ask(
        self,
        count: int,
        available: Available,
        context: Context,
        options: ArrayLike | None,
        attributes: list[Attributes],
    ) -> list[Decision]:
        live = self._live
        check_names(live.decisions.attributes, attributes)
        if available is not None and live.options.observations is not None:
            live.options.needs_fixed_options("choosing among some options")
        number = live.options.context_number(context)
        rows = live.new_rows(options)
        if rows is not None and available is not None:
            raise ValueError(
                "available must be left out where options come with the question: give those that "
                "may be chosen as options"
            )
        arms = None
        if available is not None:
            if isinstance(available, str) or not isinstance(available, Iterable):
                raise ValueError(f"available must be a list of options, got {available!r}")
            arms = tuple(live.options.index(option, number) for option in available)
        now = self._expire()
        ids = new_ids(count)
        operation = live.perform(now, [], ids, "", arms, number, rows, attributes=attributes)
        blocks = live.options.contexts
        name = None if blocks is None or number is None else blocks.names[number]
        return [self._decision(one, name) for one in operation.decisions()]

    def _decision(self, made: Pending, context: str | None) -> Decision:
        options, arm, row = self._live.options, made.arm, made.features
        decision = object.__new__(Decision)
        decision.__dict__.update(  # two microseconds faster than its __init__
            id=made.id,
            arm=arm,
            features=options.features[arm].copy() if row is None else np.array(row),
            probability=made.probability,
            exploring=made.exploring,
            round=made.round,
            option=options.names[arm],
            levels={} if options.levels is None else dict(options.levels[arm]),
            made=made.made,
            context=context,
            pair=None if options.pairs is None else options.pairs[arm],
            attributes=dict(made.attributes),
        )
        return decision

    @exclusive
    def tell(self, decision: Decision | Pending | str, reward: ArrayLike) -> None:
        """Tell the reward of a decision; in a game, its outcome.

        Telling the same reward again is accepted and changes nothing.

        Parameters
        ----------
        decision : Decision, Pending or str
            The decision, or its id.
        reward : float, bool, str or array_like of shape (p,)
            Its reward, True being 1 and False 0, or the outcome in a game (:func:`game`), one
            number or p.  In a duel (:func:`duel`) the winner: its name, 1 if the first of
            ``decision.pair`` has won and -1 if the second has, or the probability in [0, 1] that
            the first is better; 0.5 is a tie, and 0 means, like -1, that the second has won.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id.
        ClosedDecisionError
            If another reward was told before, or the decision was given up.
        ExpiredDecisionError
            If its reward window is over.
        ValueError
            If the reward is not a finite number, or not an outcome of the game.
        """
        self._tell_one(decision, reward)

    @exclusive
    def tell_many(
        self,
        rewards: Mapping[str, Any] | Iterable[tuple[Decision | Pending | str, Any]],
    ) -> None:
        """Tell the rewards of several decisions; refused ones do not affect the others.

        Parameters
        ----------
        rewards : mapping or iterable of pairs
            Decisions or their ids, and what :meth:`tell` takes as their rewards.

        Raises
        ------
        RefusedRewardsError
            If some were refused, after all others were told: ``refused`` has the reason of each,
            by the id of its decision.
        """
        pairs = list(rewards.items() if isinstance(rewards, Mapping) else rewards)
        refused = self._tell(pairs)
        if refused:
            raise RefusedRewardsError(refused, len(pairs))

    def _tell_one(self, decision: Decision | Pending | str, reward: object) -> None:
        for error in self._tell([(decision, reward)]).values():
            raise error

    def _tell(self, rewards: list[Any]) -> dict[str, Exception]:
        """Tell the rewards that are valid; return the errors of the others by id."""
        values: list[tuple[str, Told]] = []
        refused: dict[str, Exception] = {}
        for made, reward in rewards:
            id_ = _id_of(made)
            try:
                values.append((id_, self._value(id_, reward)))
            except (ValueError, DecisionError) as reason:
                refused[id_] = reason
        now = self._expire()
        decisions = self._live.decisions
        told: dict[str, Closing] = {}
        for id_, value in values:
            decision = decisions.open.get(id_)
            if decision is not None and id_ not in told and id_ not in decisions.received:
                told[id_] = Closing(decision, "told", value, now)
                continue
            closing = told.get(id_) or self._closing(id_)
            if closing is not None and closing.ending == "told" and closing.reward == value:
                continue
            refused[id_] = refusal(id_, closing, value)
            if isinstance(refused[id_], ExpiredDecisionError):
                self._live.perform(now, [], late=id_)
        if told and decisions.window.holds:
            received = {id_: Received(one.reward, now) for id_, one in told.items()}
            self._live.perform(now, [], received=received)
        elif told:
            refused |= self._learn(now, list(told.values()))
        return refused

    def _learn(self, now: float, closings: list[Closing]) -> dict[str, Exception]:
        """Close decisions; return errors of rewards that cannot be learned from, by id."""
        try:
            self._live.perform(now, closings)
        except UnlearnableRewardError as reason:
            if len(closings) == 1:
                return {closings[0].decision.id: reason}
            each = [self._learn(now, [closing]) for closing in closings]
            return {id_: reason for refused in each for id_, reason in refused.items()}
        return {}

    def _value(self, id_: str, told: object) -> Told:
        """Reward to learn from; in a duel it depends on the decision."""
        options = self._live.options
        if options.per_arm > 1:
            return several_numbers(told, options.per_arm)
        if options.items is None:
            if isinstance(told, bool | np.bool_):
                told = float(told)
            value, likelihood = reward_value(options.told, told), self._live.table.likelihood
            if likelihood is not None:
                check_support(likelihood, "reward", value)
            return value
        made = self._live.decisions.open.get(id_)
        if made is None:
            closing = self._closing(id_)
            if closing is None:
                raise unknown(id_)
            made = closing.decision
        return outcome_value("the winner", told, options, made.arm)

    def _closing(self, id_: str) -> Closing | None:
        """How a decision was closed, or will be by a reward that waits; None if unknown."""
        decisions = self._live.decisions
        told = decisions.received.get(id_)
        if told is not None:
            return Closing(decisions.open[id_], "told", told.reward, told.when)
        found = decisions.closed.get(id_)
        if found is None and self._live.journal is not None:
            return self._live.journal.closing(id_)
        return found

    def _expire(self, limit: int | None = None) -> float:
        """Close decisions whose reward window is over, at most ``limit``, and return the time."""
        now = self._now()
        due = self._due(now, limit)
        if due:
            refused = self._learn(now, due)
            self._close_without_reward(
                now, [one.decision for one in due if one.decision.id in refused]
            )
        return now

    def _due(self, now: float, limit: int | None) -> list[Closing]:
        return self._live.due(now, limit)

    def _close_without_reward(self, now: float, decisions: list[Pending]) -> None:
        if decisions:
            given_up = [Closing(one, "given up", math.nan, now) for one in decisions]
            self._live.perform(now, given_up)

    @exclusive
    def amend(self, decision: Decision | Pending | str, reward: ArrayLike) -> None:
        """Correct the reward of a decision, or tell it if the decision is still open.

        Estimates, evidence and effects are then those that this reward would have led to, had the
        same decisions been made.  Past decisions do not change, nor does what a policy remembers of
        its own choices, such as the largest evidence of IDS.  Amending to the same reward changes
        nothing.

        Parameters
        ----------
        decision : Decision, Pending or str
            The decision, or its id.
        reward : float, str or array_like of shape (p,)
            What :meth:`tell` takes.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id; without a journal, also if it was closed long ago.
        ClosedDecisionError
            If the decision was given up.
        ExpiredDecisionError
            If its reward window is over, and no reward was told.
        ValueError
            If the policy discards data, or options are new in every round: too little is then kept.
        """
        id_ = _id_of(decision)
        value = self._value(id_, reward)
        now, closing = self._expire(), self._closing(id_)
        if id_ in self._live.decisions.received:
            if closing is not None and closing.reward != value:
                self._live.perform(now, [], received={id_: Received(value, now)})
            return
        if id_ in self._live.decisions.open:
            self._tell_one(id_, reward)
            return
        if closing is None or closing.ending != "told":
            raise refusal(id_, closing, value)
        if closing.reward == value:
            return
        made = closing.decision
        body = {
            "decision": id_,
            "arm": made.arm,
            "exploring": made.exploring,
            "played": made.round,
        }
        self._live.change(now, "amended", body | {"was": closing.reward, "now": value})

    @exclusive
    def give_up(
        self, decision: Decision | Pending | str | None = None, *, before: int | None = None
    ) -> int:
        """Stop waiting for the reward of one decision, or of all that were made before a round.

        Nothing is learned in their place; ``reward_window`` does that.  Open decisions are kept in
        memory and in files; where rewards can fail to come, this bounds their number.  Repeating
        it is accepted and changes nothing.

        Parameters
        ----------
        decision : Decision, Pending or str, optional
            The decision, or its id.
        before : int, optional
            Instead of a decision: those of earlier rounds.

        Returns
        -------
        int
            Number of decisions closed.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id.
        ClosedDecisionError
            If its reward was told before.
        ExpiredDecisionError
            If its reward window is over.
        """
        if (decision is None) == (before is None):
            raise ValueError("give_up needs a decision or before=, and not both")
        if before is not None:
            limit = integer("before", before, at_least=1)
            now = self._expire()
            found = [one for one in self._without_reward() if one.round < limit]
            self._close_without_reward(now, found)
            return len(found)
        id_ = _id_of(decision)
        now = self._expire()
        made = self._live.decisions.open.get(id_)
        if made is not None and id_ not in self._live.decisions.received:
            self._close_without_reward(now, [made])
            return 1
        closing = self._closing(id_)
        if closing is not None and closing.ending == "told":
            raise ClosedDecisionError(
                f"decision {id_} was told before: {closing.reward!r} at {date_of(closing.when)}"
            )
        if closing is None or closing.ending == "expired":
            raise refusal(id_, closing, math.nan)
        return 0

    @exclusive
    def retire(self, option: str | int) -> None:
        """Stop choosing an option; what was learned from it stays.

        Rewards of open decisions for it are still accepted and learned from.  Not for contexts
        and games, whose options are fixed.

        Parameters
        ----------
        option : str or int
            Its name or row.
        """
        self._live.options.needs_fixed_options("retiring an option")
        arm = self._live.options.index(option)
        if arm not in self._live.table.retired:
            self._live.change(self._expire(), "retired", {"arm": arm})

    @exclusive
    def add(
        self,
        option: str,
        features: ArrayLike | None = None,
        *,
        levels: Mapping[str, Level] | None = None,
        noise_std: float | None = None,
    ) -> None:
        """Add an option; what was learned of the others also says something about it.

        Not for contexts and games, whose options are fixed.

        Parameters
        ----------
        option : str
            Its name.
        features : array_like, shape (d,), optional
            Its features; in a factorial design they follow from the levels.
        levels : mapping of factor to level, optional
            Its combination of levels, in a factorial design.
        noise_std : float, optional
            Noise level of its rewards, where every option has its own.
        """
        row = None if features is None else np.asarray(features, dtype=float).tolist()
        combination = None if levels is None else dict(levels)
        body = {"name": option, "features": row, "levels": combination, "noise_std": noise_std}
        self._live.change(self._expire(), "added", body)

    @exclusive
    def status(self) -> Status:
        """Report on the best arm and the evidence for it."""
        return self._status()

    def _status(self) -> Status:
        self._expire()
        live, clock = self._live, self._live.clock
        options, likelihood, decisions = live.options, live.table.likelihood, live.decisions
        reports = live.reports()
        report = least_evident(reports)
        wake = Clock(*report.wake)
        held = int(live.counters.wake_t[0])
        if report.best < 0 and held > clock.t and not options.stream:
            # a policy without a report still has a commitment
            wake = Clock(held, float(live.counters.wake_log_t[0]))
        evidence, threshold = float(report.evidence), float(report.threshold)
        view = view_of(live, report)
        assumption = self._contradiction(view)
        doubt = assumption or view.doubt
        advice = f"{assumption} {advice_in(view.checks)}".strip() or self._advice()
        loss, price = live.at_stake()
        best, bests = None, {}
        if options.contexts is not None:
            pairs = zip(options.contexts.names, reports, strict=True)
            bests = {name: options.name_or_row(one.best) for name, one in pairs if one.best >= 0}
        elif report.best >= 0:
            best = options.name_or_row(report.best)
        return Status(
            best=best,
            settled=None if math.isnan(threshold) else evidence >= threshold and not doubt,
            evidence=evidence,
            threshold=threshold,
            round=clock.t,
            next_exploration=None if live.table.committed else _round_of(wake),
            explorations=int(live.counters.explorations[0]),
            pending=len(decisions.open) - len(decisions.received),
            waiting=len(decisions.received),
            waiting_until=decisions.waiting_until(),
            expected_loss=loss,
            price=price,
            bests=bests,
            advice=advice,
            checks=view.checks,
            unit="reward" if likelihood is None else likelihood.unit,
            **decisions.counts._asdict(),
        )

    def _contradiction(self, view: SessionView) -> str:
        """Sentence about an assumption that the data contradict, if there is one."""
        live, likelihood = self._live, self._live.table.likelihood
        pending = len(live.decisions.open) - len(live.decisions.received)
        value = only_value(live.counters.told, live.counters.totals)
        if value and not live.decisions.window.holds and pending >= live.counters.told.sum():
            return (
                f"Every reward told is {value:g}, and {pending} decisions are open: if only "
                "successes are told, reward_window and on_timeout=0 make zeros of the others."
            )
        if live.table.units.learned and isinstance(likelihood, Gaussian | Bernoulli):
            return ""  # no assumption was made
        return view.assumption

    def _advice(self) -> str:
        live = self._live
        shows_rewards = live.table.model.likelihood is None and live.options.observations is None
        if shows_rewards and looks_like_clicks(live.counters.told, live.counters.totals):
            return "All rewards are 0 or 1: rewards=Bernoulli() would learn from them faster."
        return ""

    @exclusive
    def checks(self) -> tuple[Check, ...]:
        """Check whether rewards, delays and traffic are what estimates assume.

        The checks are valid at all times: look as often as you like.  While nothing is wrong, the
        probability that any of them ever fails is at most 1 %, under the assumptions on the page
        "Checks of a live experiment".  Sentences of failed checks are also in the ``advice`` of
        :meth:`status`.

        Returns
        -------
        tuple of Check
            ``"scale"``: the spread of rewards changes by a large factor; ``"drift"``: mean rewards
            change; ``"fit"``: they do not agree with the linear model; ``"missing"``: rewards of
            some options are missing more often; ``"outliers"``: one reward decides a mean;
            ``"estimates"``: estimates differ from the means of rewards; ``"traffic"``: options are
            not chosen as often as their probabilities say; ``"delays"``: rewards take longer.
        """
        self._expire()
        return view_of(self._live).checks

    @exclusive
    def pending(self) -> list[Pending]:
        """List decisions without a reward, the oldest first."""
        self._expire()
        return [one._replace(attributes=dict(one.attributes)) for one in self._without_reward()]

    def _without_reward(self) -> list[Pending]:
        decisions = self._live.decisions
        return [one for one in decisions.open.values() if one.id not in decisions.received]

    @exclusive
    def estimates(self) -> Estimates | None:
        """Estimate the reward of every arm with its standard error; None if the policy does not.

        Where arms are new in every round, estimate every coordinate of the parameter instead.  In
        a duel, estimate every item by its mean outcome against the best so far: 2 P(it wins) - 1.
        """
        self._expire()
        found, options = self._live.estimates(), self._live.options
        names = options.columns if options.stream else options.items or options.labels
        return None if found is None else found._replace(names=names)

    def effects(self, delta: float = 0.05, norm_bound: float | None = None) -> pd.DataFrame:
        """Estimate every effect of the options, with intervals that hold at all rounds at once.

        The probability that any interval of any effect at any round misses the truth is at most
        ``delta``: look as often as you like, stop when you like, and read off the largest effect.
        All rewards count, including those that the policy did not learn from, and those that
        ``on_timeout`` assumed.  Where options are new in every round, only rewards that the policy
        has learned from count.  In a game, all outcomes count, and effects are on the mean reward,
        as far as outcomes identify it; in a duel, on the value of an item, in units of
        2 P(it wins) - 1.  For clicks they are on the log odds, for counts on the logarithm of the
        mean, and intervals are asymptotic.

        The guarantee assumes that mean rewards are linear in the features; that the noise has at
        most the given level, or is normal and of one level where that is learned; that the norm of
        theta is at most S, if that was given; and that whether and when a reward is told does not
        depend on the reward.  A warning says if the data contradict the level, or the S of the
        policy.

        Parameters
        ----------
        delta : float
            Probability of any miss at any time, between 0 and 1.
        norm_bound : float, optional
            S, in units of the reward per unit of feature.  By default that of the policy; without
            any, intervals are infinite until there are data in all directions.  A warning says if
            the data contradict it.

        Returns
        -------
        pandas.DataFrame
            One row per effect, with the columns ``term``, ``level``, ``effect``, ``lower`` and
            ``upper``: the grand mean, every level of a factor and every cell of an interaction, as
            deviations; or what one unit more of a column of the features adds.  An effect that no
            data about these options could identify is nan, with an infinite interval.
        """
        import pandas as pd

        view = self._view()
        found = view.effects(delta, norm_bound)
        doubt = view.contradiction or view.norm_contradiction(norm_bound)
        if doubt:
            warnings.warn(doubt, stacklevel=2)
        return pd.DataFrame(found, columns=list(Effect._fields))

    def plot(self, path: str | PathLike[str] | None = None, delta: float = 0.05) -> Figure:
        """Draw the state of the experiment: estimates, effects, evidence and traffic.

        Evidence and traffic are drawn over time if the session keeps a journal, otherwise as they
        are now.  Past evidence is computed by a replay of the journal: 10^5 events take seconds,
        during which other threads can use the session.  Where options are new in every round, only
        effects are drawn; in a duel, items in place of pairs.

        Parameters
        ----------
        path : path, optional
            File to write; its suffix decides the format.
        delta : float
            As in :meth:`effects`.
        """
        from sightline.report.session_figure import history_of, session_figure

        view, contents = self._view_and_contents()
        effects = view.effects(delta)
        past = None
        if contents is not None and not view.options.stream:
            first = type(self)._restored(read_snapshot(io.BytesIO(contents.first)), self.policy)
            past = history_of(first._live, contents.events, view)
        return session_figure(view, effects, delta, past, path)

    def report(
        self,
        path: str | PathLike[str] | None = None,
        *,
        title: str = "Report on an experiment",
        control: str | int | None = None,
        delta: float = 0.05,
    ) -> Report:
        """Write a page for readers who have not run the experiment, as HTML or Markdown.

        It says what was asked; which option is best and by how much, or what is not known yet;
        traffic, estimates and differences of all options; what the decisions earned against an
        equal split; traffic by day; effects; checks; missing rewards; and the method.  Intervals
        hold at all rounds at once.  Without a journal (:meth:`open`) it has no traffic over time,
        and nothing that needs the log.

        Parameters
        ----------
        path : path, optional
            File to write, ``.html`` or ``.md``.
        title : str
            Title of the page.
        control : str or int, optional
            Option, by its name or row, that others are compared with; in a duel, an item.  With
            contexts, the option of this name in every context.  By default the best option.
        delta : float
            Probability that any interval of the model ever misses; the intervals without the model
            together miss with at most the same probability.

        Returns
        -------
        Report
            With the attributes ``html`` and ``markdown``.
        """
        from sightline.report.decision_frame import decision_frame
        from sightline.report.experiment_report import experiment_report

        rows = () if control is None else self.options.rows_of_control(control)
        facts, events = self._facts(title)
        if events is None:
            why = "the session keeps no journal (Session.open begins one)"
            facts = dataclasses.replace(facts, control=rows, why_none=why)
        else:
            frame = decision_frame(events, facts.view)
            facts = dataclasses.replace(facts, control=rows, decisions=frame)
        return experiment_report(facts, valid_delta(delta), path)

    @exclusive
    def _facts(self, title: str) -> tuple[Facts, list[Event] | None]:
        """Facts and events of one moment, so that slow work can be done without the lock."""
        from sightline.report.experiment_analysis import facts_of

        journal = self._live.journal
        if journal is not None:
            journal.require_open()
        facts = facts_of(self._live, self._status(), title)
        return facts, None if journal is None else list(journal.events())

    def decisions(self) -> pd.DataFrame:
        """Return all decisions, one row each, with the columns of :meth:`export`.

        It needs a journal (:meth:`open`).
        """
        return self._decisions_and_contents()[0]

    def export(self, path: str | PathLike[str]) -> None:
        """Write all decisions to a file, one row each, for off-policy evaluation.

        It needs a journal (:meth:`open`).  Columns:

        - ``decision_id``; ``sequence``, the number of its event in the journal; ``round``;
        - ``context``, its name, where there are contexts; ``first`` and ``second``, the names of
          the two that are compared, in a duel;
        - ``option`` and ``arm``, its name and its row; ``level:`` and the name of a factor, for
          every factor; ``features``, a list, in Parquet only, and ``shows``, the observation row of
          the option in a game, where ``features`` are its reward row;
        - ``offered``, the rows of the options that could be chosen, in Parquet only, and null where
          these are all; in a stream ``actions`` instead, the features of all options that could be
          chosen: ``arm`` is a row of these;
        - ``probability``, with which the option was drawn, nan if unknown; ``support``, the rows of
          all options that could have been drawn, and ``probabilities``, theirs, in Parquet only and
          null if unknown; ``exploring``;
        - ``policy``, the name of its class, and ``policy_config_hash``, the same for policies with
          the same configuration;
        - ``asked_at``; ``reward``; ``rewarded_at``, when the decision was closed; ``received_at``,
          when its reward was told, which is earlier where rewards wait until their window closes;
          in a game ``observation`` and ``observed_at`` instead, or ``observation:0`` and so on for
          several numbers; the observation of a duel is 1 if the first has won, -1 if the second
          has;
        - ``amended``, whether the reward was amended; ``reward`` is the last one;
        - ``outcome``: ``"observed"``, ``"expired"``, ``"given up"`` or ``"open"``.  The reward of
          an expired decision is that of ``on_timeout``.  An open decision has no reward, even if
          one waits: until its window closes, only some of its kind are known;
        - ``attribute:`` and the name of an attribute, for every one that was recorded; null where
          a decision has none.  An attribute of several types is text;
        - for ``sightline audit``, which recomputes every probability: ``closed_sequence``, the
          number of the event that closed it; ``questions``, the number of decisions made at once,
          in the first of them; and in Parquet only ``available``, the rows that were available.
          The metadata of a Parquet file have the beginning of the session and all changes since:
          options added and retired, and rewards amended.

        :func:`evaluate` reads it.

        Parameters
        ----------
        path : path
            Its suffix decides the format: ``.parquet`` or ``.csv``.  The file is written as a whole
            or not at all.
        """
        from sightline.report.decision_frame import WRITERS

        write = WRITERS[one_of("suffix of the file", Path(path).suffix.lower(), WRITERS)]
        frame, contents = self._decisions_and_contents()
        write_atomically(path, lambda file: write(frame, contents, file))

    def _decisions_and_contents(self) -> tuple[pd.DataFrame, JournalContents]:
        from sightline.report.decision_frame import decision_frame

        self._journal()
        view, contents = self._view_and_contents()
        assert contents is not None
        return decision_frame(contents.events, view), contents

    @exclusive
    def events(self, after: int = 0) -> list[Event]:
        """List the events of the journal in their order.

        Parameters
        ----------
        after : int
            Only those with higher numbers.
        """
        return list(self._journal().events(integer("after", after, at_least=0)))

    def _journal(self) -> Log:
        if self._live.journal is None:
            raise RuntimeError("this session keeps no journal: begin it with Session.open")
        return self._live.journal

    @exclusive
    def _view(self) -> SessionView:
        self._expire()
        return view_of(self._live)

    @exclusive
    def _view_and_contents(self) -> tuple[SessionView, JournalContents | None]:
        """View and journal of one moment, so that slow work can be done without the lock."""
        journal = self._live.journal
        if journal is None:
            self._expire()
            return view_of(self._live), None
        journal.require_open()
        self._expire()
        found = journal.snapshot(first=True)
        assert found is not None
        return view_of(self._live), JournalContents(found[1], list(journal.events()))


def _id_of(decision: object) -> str:
    """Id of a decision that is given as such or by its id."""
    if isinstance(decision, Decision | Pending):
        return decision.id
    return decision if isinstance(decision, str) else shown(decision)


def _round_of(clock: Clock) -> int | None:
    """Round as a Python integer; to 15 digits where only its logarithm is known."""
    if clock.t < FAR:
        return int(clock.t)
    digits = clock.log_t / math.log(10.0)
    return power_of_ten(digits) if digits <= _MOST_DIGITS else None
