"""Live use: ask for the next arm, tell its reward later, over the same policies as simulation."""

from __future__ import annotations

import io
import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from os import PathLike
from typing import Any, NoReturn, Self, overload

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.clock import FAR, Clock
from sightline.engine.archive import Snapshot, read_snapshot, write_snapshot
from sightline.engine.checkpoints import power_of_ten
from sightline.engine.decisions import Decision, ExpiredDecisionError, Pending, Status
from sightline.engine.estimates import Estimates, estimates_in
from sightline.engine.guard import Guard, exclusive
from sightline.engine.journal import Event, Journal
from sightline.engine.labels import Level
from sightline.engine.ledger import Closing, new_ids, refusal, reward_value, valid_window, window
from sightline.engine.live import LiveState
from sightline.engine.options import Options, as_options
from sightline.engine.replay import check_beginning, replay
from sightline.files import write_atomically
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES, build, describe
from sightline.validation import file_path, integer, shown

__all__ = ["Session"]

Available = Iterable[str | int] | None
OptionsLike = Options | Mapping[str, ArrayLike] | ArrayLike


class Session:
    """An adaptive experiment in progress.

    Rewards may be told late, in any order, or never.  While the policy is committed to an arm,
    ``ask`` answers without computing anything and the rewards are taken note of but not learned
    from, as in simulation; a reward that arrives from an earlier exploration ends the
    commitment, because it may change the policy's mind.  Questions asked before any reward comes
    are answered from the same knowledge, so a policy that does not randomise repeats itself.

    All methods may be called from several threads, but not from a signal handler nor from a forked
    process.  Whatever is raised in the middle of a call, by Ctrl-C for example, the session is then
    as before the call or as after it.

    Parameters
    ----------
    actions : Options, mapping of str to array_like, or array_like of shape (k, d)
        The options: made by :func:`factorial`, or features by name, or features.
    policy : Policy
        How to choose among them.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, the same for all options or one for each: their
        standard deviation if Gaussian, half their range if bounded.
    seed : int
        Same seed and same rewards, same decisions (but other ids).
    reward_window : float, timedelta or str, optional
        How long to wait for a reward: seconds, or a text such as ``"2 hours"`` or ``"500 rounds"``.
        A reward that comes later is refused.
    on_timeout : "ignore" or float
        What to learn then: nothing, or this reward.  Where only successes are told, it must be 0:
        ignoring all others would estimate every option at 1.
    floor : float
        Least probability of every option in every decision, at most 1/k: so that any policy can be
        evaluated on the log.  It costs floor times the sum of all gaps per decision.
    now : callable
        Clock in seconds since 1970.
    """

    def __init__(
        self,
        actions: OptionsLike,
        policy: Policy,
        noise_std: float | ArrayLike = 1.0,
        seed: int = 0,
        *,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        floor: float = 0.0,
        now: Callable[[], float] = time.time,
    ) -> None:
        limits = window(reward_window, on_timeout)
        self._live = LiveState(as_options(actions), policy, noise_std, seed, limits, floor)
        self._now = now
        self._guard = Guard()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        actions: OptionsLike | None = None,
        policy: Policy | None = None,
        noise_std: float | ArrayLike = 1.0,
        seed: int = 0,
        *,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        floor: float = 0.0,
        now: Callable[[], float] = time.time,
    ) -> Self:
        """Begin or continue a session that survives crashes: it keeps a journal.

        When ``ask`` or ``tell`` has returned, what it did is on disk, and stays there if the
        process is killed or the power fails.  One process at a time can open a journal.

        Parameters
        ----------
        path : path
            The journal, one SQLite file; it is made if it does not exist.
        actions, policy, noise_std, seed, reward_window, on_timeout, floor, now
            As of :class:`Session`.  To continue, ``Session.open(path)`` is enough; if options and
            policy are given, all must be as when the session began.  A policy that is not part of
            the library must be given again.

        Raises
        ------
        BlockingIOError
            If the journal is open already; the message says by whom.
        """

        def begin(cls: type[Self]) -> Self:
            if actions is None or policy is None:
                raise ValueError(f"{os.fspath(path)} is new: give actions and policy")
            limits: dict[str, Any] = {"reward_window": reward_window, "on_timeout": on_timeout}
            return cls(actions, policy, noise_std, seed, **limits, floor=floor, now=now)

        journal = Journal(file_path("path", path))
        try:
            if journal.kept < 0:
                session = begin(cls)
            else:
                session = cls._reopened(journal, policy, now)
                if actions is not None and policy is not None:
                    check_beginning(journal, begin(cls)._live)
            session._live.journal = journal
            session._live.keep_snapshot()
        except BaseException:
            journal.close()
            raise
        return session

    @classmethod
    def _reopened(cls, journal: Journal, policy: Policy | None, now: Callable[[], float]) -> Self:
        found = journal.snapshot()
        assert found is not None
        sequence, content = found
        try:
            session = cls._restored(read_snapshot(io.BytesIO(content)), policy)
            session._now = now
            replay(session._live, journal.events(sequence))
        except sqlite3.DatabaseError as error:
            raise ValueError(f"{journal.path} is not a readable journal: {error}") from None
        except Exception as error:
            raise ValueError(f"{journal.path} cannot be continued: {error}") from error
        return session

    @property
    def policy(self) -> Policy:
        """The policy in use."""
        return self._live.policy

    @property
    def options(self) -> Options:
        """The options, with their names and features."""
        return self._live.options

    @overload
    def ask(self, *, available: Available = None) -> Decision: ...
    @overload
    def ask(self, count: int, *, available: Available = None) -> list[Decision]: ...

    def ask(
        self, count: int | None = None, *, available: Available = None
    ) -> Decision | list[Decision]:
        """Choose the arm for the next round, or for each of the next ones.

        Parameters
        ----------
        count : int, optional
            How many decisions to make at once, before any of their rewards is known.
        available : iterable of str or int, optional
            Options that may be chosen this time, by name or row; by default all that are not
            retired.

        Returns
        -------
        Decision
            Or a list of them, if ``count`` is given.
        """
        if count is None:
            return self._ask(1, available)[0]
        return self._ask(integer("count", count, at_least=1), available)

    @exclusive
    def _ask(self, count: int, available: Available) -> list[Decision]:
        arms = None if available is None else self._rows(available)
        now = self._expire()
        operation = self._live.perform(now, [], new_ids(count), available=arms)
        return [self._decision(one) for one in operation.decisions()]

    def _rows(self, available: object) -> tuple[int, ...]:
        if isinstance(available, str) or not isinstance(available, Iterable):
            raise ValueError(f"available must be a list of options, got {available!r}")
        return tuple(self._live.options.index(option) for option in available)

    @exclusive
    def retire(self, option: str | int) -> None:
        """Stop choosing an option; what was learned from it stays.

        Rewards of decisions for it that are still open are taken and learned from.

        Parameters
        ----------
        option : str or int
            Its name or row.
        """
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
        """Add an option; what was learned of the others tells something about it, too.

        Parameters
        ----------
        option : str
            Its name.
        features : array_like, shape (d,), optional
            Its features; in a factorial design they follow from the levels.
        levels : mapping of factor to level, optional
            What it combines, in a factorial design.
        noise_std : float, optional
            Of its rewards, where every option has a level of its own.
        """
        row = None if features is None else np.asarray(features, dtype=float).tolist()
        body = {
            "name": option,
            "features": row,
            "levels": None if levels is None else dict(levels),
            "noise_std": noise_std,
        }
        self._live.change(self._expire(), "added", body)

    @exclusive
    def tell(self, decision: Decision | str, reward: float) -> None:
        """Tell the reward of a decision.

        Telling the same reward again is accepted and changes nothing.

        Parameters
        ----------
        decision : Decision or str
            The decision, or its id.
        reward : float
            Its reward.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id.
        ClosedDecisionError
            If another reward was told before, or the decision was given up.
        ExpiredDecisionError
            If its reward window is over.
        ValueError
            If the reward is not a finite number.
        """
        self._tell([(decision, reward)])

    @exclusive
    def tell_many(
        self, rewards: Mapping[str, float] | Iterable[tuple[Decision | str, float]]
    ) -> None:
        """Tell the rewards of several decisions: all, or none if one of them is refused.

        Parameters
        ----------
        rewards : mapping or iterable of pairs
            Decisions or their ids, and rewards.
        """
        self._tell(list(rewards.items() if isinstance(rewards, Mapping) else rewards))

    def _tell(self, rewards: list[Any]) -> None:
        values = [(_id_of(decision), reward_value("reward", value)) for decision, value in rewards]
        now = self._expire()
        told: dict[str, Closing] = {}
        for id_, value in values:
            decision = self._live.ledger.open.get(id_)
            if decision is not None and id_ not in told:
                told[id_] = Closing(decision, "told", value, now)
                continue
            error = refusal(id_, told.get(id_) or self._closing(id_), value)
            if isinstance(error, ExpiredDecisionError):
                self._live.perform(now, [], late=id_)
            if error is not None:
                raise error
        if told:
            self._live.perform(now, list(told.values()))

    @exclusive
    def give_up(self, before: int) -> int:
        """Stop waiting for the rewards of decisions made before a round.

        Nothing is learned in their place; ``reward_window`` does that.  Open decisions are
        remembered, and saved, until told; where rewards can fail to come, this keeps their number
        bounded.

        Parameters
        ----------
        before : int
            Decisions of earlier rounds are closed.

        Returns
        -------
        int
            How many were still open.
        """
        limit = integer("before", before, at_least=1)
        now = self._expire()
        given_up = [
            Closing(one, "given up", math.nan, now)
            for one in self._live.ledger.open.values()
            if one.round < limit
        ]
        if given_up:
            self._live.perform(now, given_up)
        return len(given_up)

    @exclusive
    def status(self) -> Status:
        """Report on the best arm and the evidence for it."""
        self._expire()
        live, clock = self._live, self._live.clock
        report = live.evidence()
        wake = Clock(*report.wake)
        held = int(live.standing.wake_t[0])
        if report.best < 0 and held > clock.t:
            # all that a policy without a report has told
            wake = Clock(held, float(live.standing.wake_log_t[0]))
        evidence, threshold = float(report.evidence), float(report.threshold)
        return Status(
            best=int(report.best) if report.best >= 0 else None,
            settled=None if math.isnan(threshold) else evidence >= threshold,
            evidence=evidence,
            threshold=threshold,
            round=clock.t,
            next_exploration=_round_of(wake),
            explorations=int(live.standing.explorations[0]),
            pending=len(live.ledger.open),
            **live.ledger.tally._asdict(),
        )

    @exclusive
    def pending(self) -> list[Pending]:
        """List decisions whose reward has not been told, the oldest first."""
        self._expire()
        return list(self._live.ledger.open.values())

    @exclusive
    def estimates(self) -> Estimates | None:
        """Estimate the reward of every arm with its standard error; None if the policy does not."""
        self._expire()
        return estimates_in(self._live.state)

    @exclusive
    def events(self, after: int = 0) -> list[Event]:
        """List the entries of the journal in their order.

        Parameters
        ----------
        after : int
            Those with higher numbers only.
        """
        return list(self._journal().events(integer("after", after, at_least=0)))

    def _journal(self) -> Journal:
        if self._live.journal is None:
            raise RuntimeError("this session keeps no journal: begin it with Session.open")
        return self._live.journal

    def _recover(self) -> None:
        self._live.recover()

    def _expire(self) -> float:
        """Close decisions whose reward window is over, and return the time."""
        now = self._now()
        due = self._live.due(now)
        if due:
            self._live.perform(now, due)
        return now

    def _decision(self, made: Pending) -> Decision:
        options = self._live.options
        return Decision(
            id=made.id,
            arm=made.arm,
            action=options.features[made.arm].copy(),
            probability=made.probability,
            exploring=made.exploring,
            round=made.round,
            option=options.names[made.arm],
            levels={} if options.levels is None else dict(options.levels[made.arm]),
            made=made.made,
        )

    def _closing(self, id_: str) -> Closing | None:
        """Find how a decision was closed, if that is remembered."""
        found = self._live.ledger.closed.get(id_)
        if found is None and self._live.journal is not None:
            return self._live.journal.closing(id_)
        return found

    def __repr__(self) -> str:
        live = self._live
        k, d = live.options.features.shape
        levels = live.table.noise_std
        noise = f"{levels:g}" if isinstance(levels, float) else f"{k} levels"
        return (
            f"Session({k} arms in {d} dimensions, {live.policy}, noise_std={noise}, "
            f"next round {live.clock.t}, {int(live.standing.explorations[0])} rewards learned "
            f"from, {len(live.ledger.open)} decisions open)"
        )

    @exclusive
    def save(self, path: str | PathLike[str]) -> None:
        """Write the session to one file, all or nothing.

        A decision made after the last save is unknown to the loaded session, which refuses its
        reward: save before decisions leave the process, or keep a journal (:meth:`open`).
        """
        snapshot = self._live.snapshot()
        write_atomically(path, lambda file: write_snapshot(file, snapshot))

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
            As of :class:`Session`.

        Raises
        ------
        ValueError
            If the file is truncated, damaged, of another kind or of a version that cannot be read.
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
        header = snapshot.header
        saved = header["policy"]
        if policy is not None and describe(policy) != saved:
            raise ValueError(f"it was saved with {saved}, not with {describe(policy)}")
        if policy is None and saved["type"] not in POLICIES:
            raise ValueError(f"pass policy={saved['type']}(...), which is not of this library")
        features = snapshot.arrays["actions"]
        options = Options.build({**header["options"], "features": features})
        settings = header["noise_std"], header["seed"] or 0
        session = cls(options, policy or build(saved), *settings, floor=header["floor"])
        session._live.ledger.window = valid_window(*header["window"])
        session._live.fill(snapshot)
        return session

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

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__reduce__()

    def __copy__(self) -> NoReturn:
        self.__reduce__()


def _id_of(decision: object) -> str:
    """Id of a decision that is given as such or by its id; files of layout 2 had whole numbers."""
    if isinstance(decision, Decision):
        return decision.id
    if type(decision) is int and abs(decision) < FAR:
        return str(decision)
    return decision if isinstance(decision, str) else shown(decision)


def _round_of(clock: Clock) -> int | None:
    """Round as a Python integer; to 15 digits where only its logarithm is known."""
    if clock.t < FAR:
        return int(clock.t)
    return None if math.isinf(clock.log_t) else power_of_ten(clock.log_t / math.log(10.0))
