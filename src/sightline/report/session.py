"""``sl.Session``: a live experiment whose effects, history and decisions can be had.

All that a session does is in the engine; here is what is made of its numbers.
"""

from __future__ import annotations

import io
import warnings
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.core.likelihood import Bernoulli, Gaussian
from sightline.files import write_atomically
from sightline.report.standing import Record, View, view_of
from sightline.sessions import session as engine
from sightline.sessions.archive import read_snapshot
from sightline.sessions.effects import Effect
from sightline.sessions.guard import exclusive
from sightline.sessions.likelihoods import only_value
from sightline.validation import one_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["Session"]


class Session(engine.Session):  # noqa: D101 - it is that of the engine's class, parameters and all
    __doc__ = engine.Session.__doc__

    def effects(self, delta: float = 0.05, norm_bound: float | None = None) -> pd.DataFrame:
        """Estimate every effect of the options, with intervals that hold at all rounds at once.

        The probability that any interval of any effect at any round misses the truth is at most
        ``delta``: look as often as you like, stop when you like, and read off the largest effect.
        All rewards count, also those that the policy did not learn from, and those that
        ``on_timeout`` put in place of missing ones.  Where options are new in every round, those
        count that the policy has learned from.  In a game, all outcomes count, and effects are
        those on the mean reward, as far as outcomes can tell; in a duel, those on the value of an
        item, in units of 2 P(it wins) - 1.  Of clicks they are those on the log odds, of counts on
        the logarithm of the mean, and intervals are asymptotic.

        The guarantee assumes that mean rewards are linear in the features; that noise is at most of
        the level that was told, or normal and of one level where that is learned; that the norm of
        theta is at most S, if that was told; and that whether and when a reward is told does not
        depend on the reward.  A warning says if the data contradict the level, or the S of the
        policy.

        Parameters
        ----------
        delta : float
            Probability of any miss at any time, between 0 and 1.
        norm_bound : float, optional
            S, in units of the reward per unit of feature.  By default what the policy was told; if
            nothing was, none is assumed, and intervals are infinite until there are data in all
            directions.  A warning says if the data contradict it.

        Returns
        -------
        pandas.DataFrame
            One row per effect, with the columns ``term``, ``level``, ``effect``, ``lower`` and
            ``upper``: the grand mean, every level of a factor and every cell of an interaction, as
            deviations; or what one unit more of a column of the features adds.  An effect that no
            data about these options could tell is nan, with an infinite interval.
        """
        import pandas as pd

        view = self._view()
        found = view.effects(delta, norm_bound)
        doubt = view.contradiction or view.norm_contradiction(norm_bound)
        if doubt:
            warnings.warn(doubt, stacklevel=2)
        return pd.DataFrame(found, columns=list(Effect._fields))

    def plot(self, path: str | PathLike[str] | None = None, delta: float = 0.05) -> Figure:
        """Draw where the experiment stands: estimates, effects, evidence and traffic.

        Evidence and traffic are drawn over time if the session keeps a journal, else as they are
        now.  Evidence of the past is found by doing everything in the journal again: 10^5 events
        take seconds, during which other threads can use the session.  Where options are new in
        every round, effects are drawn, and no more; in a duel, items in place of pairs.

        Parameters
        ----------
        path : path, optional
            File to write; its suffix decides the format.
        delta : float
            Of the intervals of :meth:`effects`.
        """
        from sightline.report.history import history_of
        from sightline.report.session_figure import session_figure

        view, record = self._view_and_record()
        shown = view.effects(delta)
        past = None
        if record is not None and not view.options.stream:
            first = type(self)._restored(read_snapshot(io.BytesIO(record.first)), self.policy)
            past = history_of(first._live, record.events, view)
        return session_figure(view, shown, delta, past, path)

    def export(self, path: str | PathLike[str]) -> None:
        """Write all decisions to a file, one row each, for off-policy evaluation.

        It needs a journal (:meth:`open`).  Columns:

        - ``decision_id``; ``sequence``, the number of its entry in the journal; ``round``;
        - ``context``, its name, where there are contexts; ``first`` and ``second``, the names of
          the two that are compared, in a duel;
        - ``option`` and ``arm``, its name and its row; ``level:`` and the name of a factor, for
          every factor; ``features``, a list, in Parquet only, and ``shows``, what the option shows
          in a game, where ``features`` are what it pays;
        - ``offered``, the rows of the options that could be chosen, in Parquet only, and null where
          these are all that there ever were; in its place ``actions``, the features of all that
          could be chosen, where options are new in every round: ``arm`` is one of these;
        - ``probability``, with which the option was drawn, nan if unknown; ``exploring``;
        - ``policy``, the name of its class, and ``policy_config_hash``, the same for policies with
          the same configuration;
        - ``asked_at``; ``reward``; ``rewarded_at``, when the decision was closed; ``received_at``,
          when its reward was told, which is earlier where rewards wait until their window closes;
          in a game, where
          rewards are not seen, ``observation`` and ``observed_at`` in their place, or
          ``observation:0`` and so on if several numbers are seen; the observation of a duel is 1
          if the first has won, -1 if the second has;
        - ``amended``, whether another reward was told before; ``reward`` is the last one;
        - ``outcome``: ``"observed"``, ``"expired"``, ``"given up"`` or ``"open"``.  Of an expired
          decision the reward is that of ``on_timeout``.  An open decision has no reward yet, even
          if one was told: until its window closes, only some of its kind are known;
        - for ``sightline audit``, which recomputes every probability: ``closed_sequence``, the
          number of the entry that closed it; ``questions``, how many were asked at once, in the
          first of them; and in Parquet only ``available``, the rows that a question was about.
          How the session began is in the metadata of a Parquet file, with all that has changed
          since: options that came and went, and rewards that were amended.

        For Open Bandit Pipeline, ``arm`` is the action and ``probability`` the pscore; it needs
        rewards, which a game does not show.

        Parameters
        ----------
        path : path
            Its suffix decides the format: ``.parquet`` or ``.csv``.  The file is written as a whole
            or not at all.
        """
        from sightline.report.decision_frame import WRITERS, decision_frame

        write = WRITERS[one_of("suffix of the file", Path(path).suffix.lower(), WRITERS)]
        self._journal()
        view, record = self._view_and_record()
        assert record is not None
        frame = decision_frame(record.events, view)
        write_atomically(path, lambda file: write(frame, record, file))

    def _contradiction(self) -> str:
        """Say which assumption the data contradict, where anything was told."""
        live = self._live
        units, likelihood = live.table.units, live.table.likelihood
        pending = len(live.ledger.open) - len(live.ledger.received)
        value = only_value(live.standing.told, live.standing.totals)
        if value and not live.ledger.window.holds and pending >= live.standing.told.sum():
            return (
                f"Every reward told is {value:g}, and {pending} decisions are open: if only "
                "successes are told, reward_window and on_timeout=0 make zeros of the others."
            )
        if units.learned and isinstance(likelihood, Gaussian | Bernoulli):
            return ""  # nothing was told
        return view_of(self._live).contradiction

    @exclusive
    def _view(self) -> View:
        self._expire()
        return view_of(self._live)

    @exclusive
    def _view_and_record(self) -> tuple[View, Record | None]:
        """Present and past, taken at one moment; what takes long is done without the lock."""
        journal = self._live.journal
        if journal is None:
            self._expire()
            return view_of(self._live), None
        journal.require_open()
        self._expire()
        found = journal.snapshot(first=True)
        assert found is not None
        return view_of(self._live), Record(found[1], list(journal.events()))
