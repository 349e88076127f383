"""Sessions that are made, kept and continued: in memory, in a file, or with a journal."""

from __future__ import annotations

import io
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from typing import NoReturn, Self

from numpy.typing import ArrayLike

from sightline.core.likelihood import Likelihood, build_likelihood
from sightline.files import write_atomically
from sightline.policies.base import Policy
from sightline.policies.catalogue import POLICIES, build, describe, is_described
from sightline.policies.stakes import Stakes
from sightline.sessions.archive import Snapshot, read_snapshot, write_snapshot
from sightline.sessions.games import check_window, outcome_value
from sightline.sessions.guard import Guard, exclusive
from sightline.sessions.journal import Event, Journal
from sightline.sessions.ledger import valid_window, window
from sightline.sessions.likelihoods import check_support, noise_or_likelihood, units_of
from sightline.sessions.live import LiveState
from sightline.sessions.log import Log
from sightline.sessions.options import Options, as_options
from sightline.sessions.replay import check_beginning, replay
from sightline.sessions.units import Units, valid_units
from sightline.validation import file_path, instance, integer

__all__ = ["OptionsLike", "StoredSession"]

OptionsLike = Options | Mapping[str, ArrayLike] | Sequence[str] | ArrayLike


class StoredSession:
    """What a session is beside its questions and answers; see :class:`Session`."""

    def __init__(
        self,
        actions: OptionsLike,
        policy: Policy | None = None,
        noise_std: float | ArrayLike | None = None,
        seed: int = 0,
        *,
        rewards: Likelihood | None = None,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        early_rewards: bool = False,
        floor: float = 0.0,
        units: str | Units = "auto",
        now: Callable[[], float] = time.time,
    ) -> None:
        options = as_options(actions)
        noise, likelihood = noise_or_likelihood(noise_std, rewards, options, units)
        limits = check_window(window(reward_window, on_timeout, early_rewards), options)
        if limits.reward is not None:
            limits = limits._replace(reward=outcome_value("on_timeout", limits.reward, options))
        if limits.reward is not None and likelihood is not None:
            check_support(likelihood, "on_timeout", limits.reward)
        chosen = Stakes() if policy is None else policy
        instance("policy", chosen, Policy, "a Policy such as IDS()")
        scales = units_of(units, options, chosen, likelihood)
        self._live = LiveState(options, chosen, noise, seed, limits, floor, likelihood, scales)
        self._now = now
        self._guard = Guard()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        actions: OptionsLike | None = None,
        policy: Policy | None = None,
        noise_std: float | ArrayLike | None = None,
        seed: int = 0,
        *,
        rewards: Likelihood | None = None,
        reward_window: float | timedelta | str | None = None,
        on_timeout: str | float = "ignore",
        early_rewards: bool = False,
        floor: float = 0.0,
        units: str = "auto",
        now: Callable[[], float] = time.time,
    ) -> Self:
        """Begin or continue a session that survives crashes: it keeps a journal.

        When ``ask`` or ``tell`` has returned, what it did is on disk, and stays there if the
        process is killed or the power fails.  One process at a time can open a journal.

        Parameters
        ----------
        path : path
            The journal, one SQLite file; it is made if it does not exist.
        actions, policy, noise_std, seed, rewards, reward_window, on_timeout, early_rewards
            As of :class:`Session`.
        floor, units, now
            As of :class:`Session`.  To continue, ``Session.open(path)`` is enough; if options are
            given, all must be as when the session began.  A policy that is not part of the library
            must be given again.

        Raises
        ------
        BlockingIOError
            If the journal is open already; the message says by whom.
        """

        def begin(cls: type[Self], policy: Policy | None) -> Self:
            if actions is None:
                raise ValueError(f"{os.fspath(path)} does not exist: give actions to begin there")
            return cls(
                actions,
                policy,
                noise_std,
                seed,
                rewards=rewards,
                reward_window=reward_window,
                on_timeout=on_timeout,
                early_rewards=early_rewards,
                floor=floor,
                units=units,
                now=now,
            )

        target = file_path("path", path)
        # before there is a file: what is refused leaves none behind
        new = None if target.exists() else begin(cls, policy)
        journal = Journal(target)
        try:
            if journal.kept < 0:
                session = begin(cls, policy) if new is None else new
            else:
                session = cls._reopened(journal, policy, now)
                if actions is not None:
                    check_beginning(journal, begin(cls, policy or session.policy)._live)
            session._live.journal = journal
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
            f"next round {live.clock.t}, {int(live.standing.explorations[0])} "
            f"{live.options.told}s learned from, {len(live.ledger.open)} decisions open)"
        )

    @exclusive
    def events(self, after: int = 0) -> list[Event]:
        """List the entries of the journal in their order.

        Parameters
        ----------
        after : int
            Those with higher numbers only.
        """
        return list(self._journal().events(integer("after", after, at_least=0)))

    def _journal(self) -> Log:
        if self._live.journal is None:
            raise RuntimeError("this session keeps no journal: begin it with Session.open")
        return self._live.journal

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
        game = "observations" in snapshot.arrays
        if policy is not None and not is_described(policy, saved, game=game):
            raise ValueError(f"it was saved with {saved}, not with {describe(policy)}")
        if policy is None and saved["type"] not in POLICIES:
            raise ValueError(f"pass policy={saved['type']}(...), which is not of this library")
        arrays = snapshot.arrays
        tables = {"features": arrays["actions"], "observations": arrays.get("observations")}
        options = Options.build(header["options"] | tables)
        likelihood = build_likelihood(header["rewards"])
        by_likelihood = likelihood is not None and likelihood.as_tuple is not None
        noise = None if by_likelihood else header["noise_std"]
        session = cls(
            options,
            policy or build(saved),
            noise,
            header["seed"] or 0,
            rewards=likelihood,
            floor=header["floor"],
            units=valid_units(header["units"]),
        )
        session._live.ledger.window = check_window(valid_window(*header["window"]), options)
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

    def _recover(self) -> None:
        self._live.recover()
