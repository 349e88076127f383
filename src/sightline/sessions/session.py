"""Live use: ask for the next arm, tell its reward later, over the same policies as simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from sightline.core.clock import FAR, Clock
from sightline.policies.base import Evidence
from sightline.sessions.decisions import (
    ClosedDecisionError,
    Decision,
    DecisionError,
    ExpiredDecisionError,
    Pending,
    RefusedRewardsError,
    Status,
    UnlearnableRewardError,
)
from sightline.sessions.estimates import Estimates
from sightline.sessions.games import outcome_value, several_numbers
from sightline.sessions.guard import exclusive
from sightline.sessions.labels import Level
from sightline.sessions.ledger import (
    Closing,
    Received,
    Told,
    date_of,
    new_ids,
    refusal,
    reward_value,
    unknown,
)
from sightline.sessions.likelihoods import check_support, looks_like_clicks
from sightline.sessions.live import weakest
from sightline.sessions.options import Options
from sightline.sessions.stored import StoredSession
from sightline.simulation.simulate import power_of_ten
from sightline.validation import integer, shown

__all__ = ["Session"]

#: Digits of a round beyond which it is called never: Python does not write such numbers down.
_MOST_DIGITS = 4_000.0

Available = Iterable[str | int] | None
Context = str | int | None


class Session(StoredSession):
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
    actions : Options, mapping of str to array_like, array_like of shape (k, d), or list of str
        The options: made by :func:`factorial`, :func:`contexts`, :func:`stream`, :func:`duel` or
        :func:`game`, or features by name, or features.  Options with names only, such as
        ``["A", "B"]``, are independent: none tells anything about another.
    policy : Policy, optional
        How to choose among them; :class:`Stakes` by default.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, the same for all options or one for each: their
        standard deviation if Gaussian, half their range if bounded.  In a game, of the outcomes.
        By default it is learned from the rewards, but for duels, whose outcomes have 1.  Not
        allowed beside ``rewards``, except that beside ``Gaussian(std=None)`` levels of each option
        are relative to one another.
    seed : int
        Same seed and same rewards, same decisions (but other ids).
    rewards : Bernoulli, Poisson or Gaussian, optional
        Likelihood of the rewards: clicks, counts or normal ones.  Where it says more than a noise
        level, far fewer rewards settle the answer: at a rate of 2 % a twelfth of what
        ``noise_std=0.5`` needs.  Features then add up to the log odds of a click, or to the log of
        a mean count.
    reward_window : float, timedelta or str, optional
        How long to wait for a reward: seconds, or a text such as ``"2 hours"`` or ``"500 rounds"``;
        1e10 seconds or 10**15 rounds at most.  A reward that comes later is refused.  All rewards
        enter the estimate when their window closes, whenever they were told, so that what is
        learned does not depend on which of them are told sooner.
    on_timeout : "ignore" or float
        What to learn then: nothing, or this reward.  Where only successes are told, it must be 0:
        ignoring all others would estimate every option at 1.  In a duel, what ``tell`` takes: 0.5
        is a tie.
    early_rewards : bool
        Let rewards enter the estimate when they are told.  This is right only if whether and when a
        reward is told does not depend on the reward; it needs ``on_timeout="ignore"``.
    floor : float
        Least probability of every option in every decision, at most 1/k, k being the number of
        options in the largest context: so that any policy can be evaluated on the log.  It costs
        floor times the sum of all gaps per decision.  With :func:`stream`, k is the largest number
        of options.
    units : {"auto", "given", "learned"}
        Whether offset and scale of the rewards are learned.  Then decisions are the same if all
        rewards are multiplied by a number, or have a number added, and defaults of the policy that
        assume a scale (a prior, a bound on the norm of theta) are replaced by what the data tell.
        By default they are learned, unless the policy was given such a prior or bound other than
        its default.  With ``"given"`` the model is that of :func:`simulate`: rewards as they are,
        features as they are, and ``noise_std=1`` if nothing else is said.
    now : callable
        Clock in seconds since 1970.
    """

    @overload
    def ask(
        self,
        *,
        available: Available = None,
        context: Context = None,
        actions: ArrayLike | None = None,
    ) -> Decision: ...
    @overload
    def ask(
        self, count: int, *, available: Available = None, context: Context = None
    ) -> list[Decision]: ...

    def ask(
        self,
        count: int | None = None,
        *,
        available: Available = None,
        context: Context = None,
        actions: ArrayLike | None = None,
    ) -> Decision | list[Decision]:
        """Choose the arm for the next round, or for each of the next ones.

        Parameters
        ----------
        count : int, optional
            How many decisions to make at once, before any of their rewards is known.
        available : iterable of str or int, optional
            Options that may be chosen this time, by name or row; by default all that are not
            retired.
        context : str or int, optional
            Name or number of the present context, where there are contexts: its options are on
            offer.
        actions : array_like, shape (k, d), optional
            Features of the options on offer, one per row, where they are new in every round
            (:func:`stream`).

        Returns
        -------
        Decision
            Or a list of them, if ``count`` is given.
        """
        if count is None:
            return self._ask(1, available, context, actions)[0]
        if self.options.stream:
            raise ValueError(
                f"count must be left out where options come with the question, got {shown(count)}: "
                "ask once for each decision"
            )
        return self._ask(integer("count", count, at_least=1), available, context, actions)

    @exclusive
    def _ask(
        self, count: int, available: Available, context: Context, actions: ArrayLike | None
    ) -> list[Decision]:
        if available is not None and self._live.options.observations is not None:
            self._live.options.needs_fixed_options("choosing among some options")
        number = self._live.options.context_number(context)
        rows = self._live.new_rows(actions)
        if rows is not None and available is not None:
            raise ValueError(
                "available must be left out where options come with the question: give those that "
                "may be chosen as actions"
            )
        arms = None if available is None else self._rows(available, number)
        now = self._expire()
        operation = self._live.perform(now, [], new_ids(count), "", arms, number, rows)
        blocks = self._live.options.contexts
        name = None if blocks is None or number is None else blocks.names[number]
        return [self._decision(one, name) for one in operation.decisions()]

    def _rows(self, available: object, context: int | None) -> tuple[int, ...]:
        if isinstance(available, str) or not isinstance(available, Iterable):
            raise ValueError(f"available must be a list of options, got {available!r}")
        return tuple(self._live.options.index(option, context) for option in available)

    @exclusive
    def retire(self, option: str | int) -> None:
        """Stop choosing an option; what was learned from it stays.

        Rewards of decisions for it that are still open are taken and learned from.  Where there are
        contexts, and in a game, options stay as they are.

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
        """Add an option; what was learned of the others tells something about it, too.

        Where there are contexts, and in a game, options stay as they are.

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
    def tell(self, decision: Decision | Pending | str, reward: ArrayLike) -> None:
        """Tell the reward of a decision; in a game, what it has shown.

        Telling the same reward again is accepted and changes nothing.

        Parameters
        ----------
        decision : Decision, Pending or str
            The decision, or its id.
        reward : float, bool, str or array_like of shape (p,)
            Its reward, True being 1 and False 0, or the outcome in a game (:func:`game`), one
            number or p.  In a duel (:func:`duel`) the winner: its name, 1 if the first of
            ``decision.pair`` has won and -1 if the second has, or the probability in [0, 1] that
            the first is better; 0.5 is a tie, and 0 says, as -1 does, that the second has won.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id.
        ClosedDecisionError
            If another reward was told before, or the decision was given up.
        ExpiredDecisionError
            If its reward window is over.
        ValueError
            If the reward is not a finite number, or not what the game shows.
        """
        self._tell_one(decision, reward)

    @exclusive
    def tell_many(
        self,
        rewards: Mapping[str, Any] | Iterable[tuple[Decision | Pending | str, Any]],
    ) -> None:
        """Tell the rewards of several decisions; what is refused does not hold up the others.

        Parameters
        ----------
        rewards : mapping or iterable of pairs
            Decisions or their ids, and rewards, or what else :meth:`tell` takes.

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
        """Tell what can be told; return the rest by id, with the reasons."""
        values: list[tuple[str, Told]] = []
        refused: dict[str, Exception] = {}
        for made, reward in rewards:
            id_ = _id_of(made)
            try:
                values.append(self._value(id_, reward))
            except (ValueError, DecisionError) as reason:
                refused[id_] = reason
        now = self._expire()
        ledger = self._live.ledger
        told: dict[str, Closing] = {}
        for id_, value in values:
            decision = ledger.open.get(id_)
            if decision is not None and id_ not in told and id_ not in ledger.received:
                told[id_] = Closing(decision, "told", value, now)
                continue
            error = refusal(id_, told.get(id_) or self._closing(id_), value)
            if isinstance(error, ExpiredDecisionError):
                self._live.perform(now, [], late=id_)
            if error is not None:
                refused[id_] = error
        if told and ledger.window.holds:
            self._receive(now, {id_: one.reward for id_, one in told.items()})
        elif told:
            refused |= self._learn(now, list(told.values()))
        return refused

    def _learn(self, now: float, closings: list[Closing]) -> dict[str, Exception]:
        """Close decisions; return those whose reward cannot be learned from, with the reasons."""
        try:
            self._live.perform(now, closings)
        except UnlearnableRewardError as reason:
            if len(closings) == 1:
                return {closings[0].decision.id: reason}
            each = [self._learn(now, [closing]) for closing in closings]
            return {id_: reason for refused in each for id_, reason in refused.items()}
        return {}

    def _receive(self, now: float, rewards: dict[str, Told]) -> None:
        """Take rewards that enter the estimate when the windows of their decisions close."""
        received = {id_: Received(reward, now) for id_, reward in rewards.items()}
        self._live.perform(now, [], received=received)

    def _value(self, id_: str, told: object) -> tuple[str, Told]:
        """Id, and what is learned: in a duel it depends on the decision."""
        options = self._live.options
        if options.per_arm > 1:
            return id_, several_numbers(told, options.per_arm)
        if options.items is None:
            if isinstance(told, bool | np.bool_):
                told = float(told)
            value, likelihood = reward_value(options.told, told), self._live.table.likelihood
            if likelihood is not None:
                check_support(likelihood, "reward", value)
            return id_, value
        made = self._live.ledger.open.get(id_)
        if made is None:
            closing = self._closing(id_)
            if closing is None:
                raise unknown(id_)
            made = closing.decision
        return id_, outcome_value("the winner", told, options, made.arm)

    @exclusive
    def amend(self, decision: Decision | Pending | str, reward: ArrayLike) -> None:
        """Correct the reward of a decision; one that is still open is told.

        Estimates, evidence and effects are then those to which this reward would have led, had
        the same decisions been made: decisions stay as they are.  So does what a policy remembers
        of its own past choices, such as the largest evidence that IDS ever had.  Telling the same
        again changes nothing.

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
            If its reward window is over, and nothing had been told.
        ValueError
            If the policy discards data, or options are new in every round: too little is then kept.
        """
        id_ = _id_of(decision)
        _, value = self._value(id_, reward)
        now, closing = self._expire(), self._closing(id_)
        if id_ in self._live.ledger.received:
            if closing is not None and closing.reward != value:
                self._receive(now, {id_: value})
            return
        if id_ in self._live.ledger.open:
            self._tell_one(id_, reward)
            return
        if closing is None or closing.ending != "told":
            error = refusal(id_, closing, value)
            assert error is not None
            raise error
        if closing.reward == value:
            return
        made = closing.decision
        body = {
            "decision": id_,
            "arm": made.arm,
            "exploring": made.exploring,
            "was": closing.reward,
            "now": value,
        }
        self._live.change(now, "amended", body)

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
            if one.round < limit and one.id not in self._live.ledger.received
        ]
        if given_up:
            self._live.perform(now, given_up)
        return len(given_up)

    @exclusive
    def missing(self, decision: Decision | Pending | str) -> None:
        """Stop waiting for the reward of one decision: it will never come.

        Nothing is learned in its place.  Saying so again is accepted and changes nothing.

        Parameters
        ----------
        decision : Decision, Pending or str
            The decision, or its id.

        Raises
        ------
        UnknownDecisionError
            If no decision has this id.
        ClosedDecisionError
            If its reward was told before.
        ExpiredDecisionError
            If its reward window is over.
        """
        id_ = _id_of(decision)
        now = self._expire()
        made = self._live.ledger.open.get(id_)
        if made is not None and id_ not in self._live.ledger.received:
            self._live.perform(now, [Closing(made, "given up", math.nan, now)])
            return
        closing = self._closing(id_)
        if closing is not None and closing.ending == "told":
            raise ClosedDecisionError(
                f"decision {id_} was told before: {closing.reward!r} at {date_of(closing.when)}"
            )
        if closing is None or closing.ending == "expired":
            error = refusal(id_, closing, math.nan)
            assert error is not None
            raise error

    @exclusive
    def status(self) -> Status:
        """Report on the best arm and the evidence for it."""
        self._expire()
        live, clock = self._live, self._live.clock
        reports = live.reports()
        report = weakest(reports)
        wake = Clock(*report.wake)
        held = int(live.standing.wake_t[0])
        if report.best < 0 and held > clock.t and not live.options.stream:
            # all that a policy without a report has told
            wake = Clock(held, float(live.standing.wake_log_t[0]))
        evidence, threshold = float(report.evidence), float(report.threshold)
        doubt = self._contradiction()
        loss, price = live.at_stake()
        options, likelihood = live.options, live.table.likelihood
        blocks = options.contexts
        return Status(
            best=options.name_or_row(report.best) if report.best >= 0 and blocks is None else None,
            settled=None if math.isnan(threshold) else evidence >= threshold and not doubt,
            evidence=evidence,
            threshold=threshold,
            round=clock.t,
            next_exploration=None if live.table.committed else _round_of(wake),
            explorations=int(live.standing.explorations[0]),
            pending=len(live.ledger.open) - len(live.ledger.received),
            waiting=len(live.ledger.received),
            waiting_until=live.ledger.waiting_until(),
            expected_loss=loss,
            price=price,
            bests={} if blocks is None else _bests(options, blocks.names, reports),
            advice=doubt or self._advice(),
            unit="reward" if likelihood is None else likelihood.unit,
            **live.ledger.tally._asdict(),
        )

    def _contradiction(self) -> str:
        """Say which assumption the data contradict; :mod:`sightline.report.session` does."""
        return ""

    def _advice(self) -> str:
        live = self._live
        if live.table.model.likelihood is not None or live.options.told != "reward":
            return ""
        if looks_like_clicks(live.standing.told, live.standing.totals):
            return "All rewards are 0 or 1: rewards=Bernoulli() would learn from them faster."
        return ""

    @exclusive
    def pending(self) -> list[Pending]:
        """List decisions whose reward has not been told, the oldest first."""
        self._expire()
        ledger = self._live.ledger
        return [one for one in ledger.open.values() if one.id not in ledger.received]

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

    def _expire(self) -> float:
        """Close decisions whose reward window is over, and return the time."""
        now = self._now()
        due = self._live.due(now)
        if due:
            refused = self._learn(now, due)
            given_up = [
                Closing(one.decision, "given up", math.nan, now)
                for one in due
                if one.decision.id in refused
            ]
            if given_up:
                self._live.perform(now, given_up)
        return now

    def _decision(self, made: Pending, context: str | None) -> Decision:
        options, arm, row = self._live.options, made.arm, made.features
        decision = object.__new__(Decision)
        decision.__dict__.update(  # as its __init__ does, which takes two microseconds longer
            id=made.id,
            arm=arm,
            action=options.features[arm].copy() if row is None else np.array(row),
            probability=made.probability,
            exploring=made.exploring,
            round=made.round,
            option=options.names[arm],
            levels={} if options.levels is None else dict(options.levels[arm]),
            made=made.made,
            context=context,
            pair=None if options.pairs is None else options.pairs[arm],
        )
        return decision

    def _closing(self, id_: str) -> Closing | None:
        """Find how a decision was closed, if that is remembered, or will be by its reward."""
        ledger = self._live.ledger
        told = ledger.received.get(id_)
        if told is not None:
            return Closing(ledger.open[id_], "told", told.reward, told.when)
        found = ledger.closed.get(id_)
        if found is None and self._live.journal is not None:
            return self._live.journal.closing(id_)
        return found


def _id_of(decision: object) -> str:
    """Id of a decision that is given as such or by its id; files of layout 2 had whole numbers."""
    if isinstance(decision, Decision | Pending):
        return decision.id
    if type(decision) is int and abs(decision) < FAR:
        return str(decision)
    return decision if isinstance(decision, str) else shown(decision)


def _bests(
    options: Options, contexts: tuple[str, ...], reports: list[Evidence]
) -> dict[str, str | int]:
    """Best options by context, of those for which one is reported."""
    pairs = zip(contexts, reports, strict=True)
    return {name: options.name_or_row(one.best) for name, one in pairs if one.best >= 0}


def _round_of(clock: Clock) -> int | None:
    """Round as a Python integer; to 15 digits where only its logarithm is known."""
    if clock.t < FAR:
        return int(clock.t)
    digits = clock.log_t / math.log(10.0)
    return power_of_ten(digits) if digits <= _MOST_DIGITS else None
