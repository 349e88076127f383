"""State of a session, and the operations that change it.

Every operation is planned, executed and recorded, in this order.  A signal handler may raise
between any two instructions of the interpreter.  :class:`LiveState` therefore keeps an operation
until it is recorded, and executing it again from any point leads to the same state: the serial
numbers of the kernels tell which of them have run, and all other writes may be repeated.
:meth:`LiveState.recover` finishes an operation that has begun and drops one that has not.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ALL_ARMS, ActionSet, block, number_offered, some_arms
from sightline.core.clock import Clock
from sightline.core.estimate import LeastSquares
from sightline.core.likelihood import Likelihood, describe_likelihood
from sightline.core.model import check_signal
from sightline.core.persistence import check_consistency, persistent_arrays
from sightline.core.posterior.gaussian import Posterior
from sightline.jit import callable_for, entry_for, parts_of, registered
from sightline.policies.base import Evidence, Policy, at_stake, inspect, write_probabilities
from sightline.policies.catalogue import describe
from sightline.sessions.attributes import NO_ATTRIBUTES, Attributes, attributes_to_text
from sightline.sessions.decisions import (
    Closing,
    ClosingCounts,
    Decisions,
    Pending,
    PlannedSums,
    Received,
    UnlearnableRewardError,
    Window,
    decision_arrays,
    fill_decisions,
    is_missing,
    numbers_told,
)
from sightline.sessions.estimates import Estimates, differences_in, estimates_in, mean_outcome_in
from sightline.sessions.journal import (
    Event,
    Log,
    actions_to_bytes,
    support_to_bytes,
    told_to_event,
)
from sightline.sessions.kernels import (
    Answers,
    Counters,
    Feedback,
    Mixing,
    Support,
    accept,
    answer,
    answer_with_probabilities,
    initial_counters,
    new_answers,
    record_outcomes,
    record_reward,
    show_arms,
    supports_in,
)
from sightline.sessions.options import Options
from sightline.sessions.rewards import Units, augmented
from sightline.sessions.snapshot import Snapshot, fill, pack, unpack, write_snapshot
from sightline.sessions.table import (
    OptionTable,
    add_option,
    amend,
    commit_to,
    first_table,
    retire_option,
)
from sightline.simulation.loop import raise_fault, streams
from sightline.validation import integer, number, shown

#: Events after which a journal gets a new snapshot.
SNAPSHOT_EVERY = 10_000
#: Open decisions that a batch of a deterministic policy takes into account, the latest ones.
MOST_OPEN = 1000
#: Distance of a reward from the origin, in units, above which the state after it is checked.
_LARGE = 1e5
#: Changes of the table, by the kind of their events.
_CHANGES: dict[str, Callable[..., OptionTable]] = {
    "added": add_option,
    "retired": retire_option,
    "amended": amend,
    "committed": commit_to,
}


class Change(NamedTuple):
    """A planned change of the table."""

    now: float  # time in seconds since 1970
    kind: str  # ``"added"``, ``"retired"``, ``"amended"`` or ``"committed"``
    body: dict[str, Any]  # arguments of the function of this kind
    sequence: int  # number of its event in the journal
    table: OptionTable  # the table after the change

    def event(self) -> Event:
        """Event for the journal."""
        told = self.body["now"] if self.kind == "amended" else None
        return Event(
            self.sequence,
            self.kind,
            self.now,
            self.body.get("decision"),
            reward=told if isinstance(told, float) else None,
            body=json.dumps(self.body),
        )


@dataclass(slots=True)  # not frozen: that would cost two microseconds per operation
class Operation:
    """A planned operation: close some decisions, then make others."""

    now: float  # time in seconds since 1970
    closings: list[Closing]  # decisions to close, in this order
    ids: list[str]  # ids of the decisions to make
    answers: Answers  # space for the new decisions; the next operation may reuse it
    available: tuple[int, ...] | None  # arms that may be chosen; None for all that are not retired
    context: int | None  # number of the context; None without contexts
    actions: NDArray[np.float64] | None  # shape (n, d): arms of the question of a stream
    counts: ClosingCounts  # counts of closed decisions after the operation
    late: str  # id of a decision whose reward came too late, if the operation only counts that
    first: int  # serial number of the first kernel
    sequence: int  # number of the first event in the journal
    # Copy of counters, policy state and generator.  It is kept for policies in plain Python, which
    # a signal can interrupt halfway, and for rewards large enough to overflow.
    before: tuple[Any, ...] | None
    received: dict[str, Received]  # rewards to hold until the windows of their decisions close
    sums: PlannedSums | None = None  # exact sums of rewards after the operation
    attributes: Sequence[Attributes] = ()  # of each new decision; empty if none has any
    # Shape (n, k): probabilities of all options in each new decision, where they are found
    distributions: NDArray[np.float64] | None = None
    _made: list[Pending] | None = None
    _supports: tuple[Support | None, ...] | None = None

    @property
    def last(self) -> int:
        """Serial number of the last kernel; ``first - 1`` if no kernel runs."""
        closings = sum(map(_concerns_policy, self.closings)) if self.closings else 0
        return self.first - 1 + closings + bool(self.ids)

    def feedback(self) -> Iterator[tuple[int, Closing]]:
        """List closings that a kernel processes, with the serial numbers of the kernels."""
        return enumerate(filter(_concerns_policy, self.closings), self.first)

    def decisions(self) -> list[Pending]:
        """Decisions made, after the kernel has run."""
        if self._made is None:
            columns = [column.tolist() for column in self.answers[:4]]
            recorded = self.attributes or [NO_ATTRIBUTES] * len(self.ids)
            self._made = [
                Pending(id_, arm, exploring, round_, chance, self.now, self._features(arm), row)
                for id_, round_, arm, chance, exploring, row in zip(
                    self.ids, *columns, recorded, strict=True
                )
            ]
        return self._made

    def supports(self) -> tuple[Support | None, ...]:
        """Probabilities of all options in each decision made, after the kernel has run."""
        if self._supports is None:
            self._supports = supports_in(self.answers, self.distributions)
        return self._supports

    def _features(self, arm: int) -> tuple[float, ...] | None:
        return None if self.actions is None else tuple(self.actions[arm].tolist())

    def events(self) -> list[Event]:
        """Events for the journal."""
        numbers = itertools.count(self.sequence)
        events = [
            Event(next(numbers), one.ending, self.now, one.decision.id, **told_to_event(one.reward))
            for one in self.closings
        ]
        events += [
            Event(next(numbers), "received", self.now, id_, **told_to_event(one.reward))
            for id_, one in self.received.items()
        ]
        questions: int | None = len(self.ids)
        body = None if self.available is None else json.dumps(self.available)
        actions = None if self.actions is None else actions_to_bytes(self.actions)
        supports: list[bytes | None] = [None] * len(self.ids)
        if self.distributions is not None:
            supports = [support_to_bytes(support) for support in self.supports()]
        for made, support in zip(self.decisions(), supports, strict=True):
            event = Event(
                next(numbers),
                "asked",
                self.now,
                made.id,
                made.round,
                made.arm,
                None if math.isnan(made.probability) else made.probability,
                made.exploring,
                questions=questions,
                body=body,
                context=self.context,
                attributes=attributes_to_text(made.attributes) if made.attributes else None,
                support=support,
                actions=actions,
            )
            events.append(event)
            questions = body = actions = None  # only the first event of a batch has them
        if self.late:
            events.append(Event(next(numbers), "late", self.now, self.late))
        return events


def _concerns_policy(closing: Closing) -> bool:
    return closing.decision.exploring or not is_missing(closing.reward)


def offer_of(
    table: OptionTable, policy: Policy, available: Any = None, context: int | None = None
) -> ActionSet:
    """Return the action set of all options that are not retired, or of the available ones.

    With contexts no option is retired, and available options are those of the given context.
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


def valid_min_probability(min_probability: object, table: OptionTable, policy: Policy) -> float:
    """Return a minimum probability that all options can have."""
    value = number("min_probability", min_probability, at_least=0)
    k = max(map(len, table.options.blocks)) - len(table.retired)  # with contexts none is retired
    if value * k > 1.0:
        where = "" if table.options.contexts is None else " in a context"
        many = f"can be {k} options" if table.options.stream else f"are {k} options{where}"
        raise ValueError(
            f"min_probability must be at most 1/{k}, as there {many}, got {min_probability!r}"
        )
    if value > 0.0 and policy.randomises and not knows_probabilities(table.state):
        raise ValueError(
            f"min_probability needs the probabilities of {policy}: "
            f"register_policy(..., probabilities=...) writes them, or "
            "randomises = False says that there is none"
        )
    return value


def knows_probabilities(state: Any) -> bool:
    """Whether the policy of a state can compute the probabilities of all its arms."""
    return write_probabilities.dispatch(type(state)) is not write_probabilities.dispatch(object)


def least_evident(reports: list[Evidence]) -> Evidence:
    """Report with the least evidence; the first one among equals."""
    return min(reports, key=lambda report: report.evidence)


def _prior_signal(state: Any) -> float:
    """Prior standard deviation of theta, divided by that of the noise."""
    for part in parts_of(state):
        if isinstance(part, LeastSquares):
            return 1.0 / math.sqrt(part.regulariser)
        if isinstance(part, Posterior):
            return 1.0 / (float(part.factor[0, 0]) * part.noise_std)
    return 1.0


class LiveState:
    """Everything of a session that changes, and the configuration it began with.

    With ``states_probabilities`` every decision finds the probabilities of all options, not only
    that of its own, and ``supports`` has those of the latest decisions.  This costs about as much
    as a second decision.
    """

    def __init__(
        self,
        options: Options,
        policy: Policy,
        noise_std: object,
        seed: int,
        window: Window,
        min_probability: float,
        likelihood: Likelihood | None,
        units: Units,
    ) -> None:
        self.policy = policy
        #: The policy in use: without the scale of rewards that its defaults assume.
        self.acting = policy.with_unknown_scale() if units.learned else policy
        counters = initial_counters(len(options), options.per_arm, units)
        self.table = first_table(options, self.acting, noise_std, counters, likelihood, units)
        self.seed = integer("seed", seed, at_least=0)
        self.rng, _ = streams(self.seed)
        self._compiled, is_builtin = registered(self.state)
        self._cannot_stop_halfway = self._compiled and is_builtin
        self._has_formula = is_builtin and not policy.probability_by_draws
        self._unused = np.random.Generator(np.random.PCG64(0))
        self.decisions = Decisions(window)
        self.min_probability = valid_min_probability(min_probability, self.table, policy)
        self.journal: Log | None = None
        self.states_probabilities = False
        self.supports: tuple[Support | None, ...] = ()
        self._operation: Operation | Change | None = None
        self._entries: dict[Any, Callable[..., None]] = {}
        self._prior = _prior_signal(self.state)
        self._space = new_answers(0, policy), new_answers(1, policy)  # for most operations

    @property
    def options(self) -> Options:
        """All options, including retired ones."""
        return self.table.options

    @property
    def counters(self) -> Counters:
        """Clock, commitment and counts."""
        return self.table.counters

    @property
    def state(self) -> Any:
        """State of the policy."""
        return self.table.state

    @property
    def clock(self) -> Clock:
        """Round of the next decision."""
        return Clock(int(self.counters.t[0]), float(self.counters.log_t[0]))

    @property
    def origin(self) -> float:
        """Reward that the policy receives as 0."""
        found = self.counters.origin.item()
        return 0.0 if math.isnan(found) else found

    @property
    def unit(self) -> float:
        """Difference of rewards that the policy receives as 1."""
        found = self.counters.unit.item()
        return 1.0 if math.isnan(found) else found

    def reports(self) -> list[Evidence]:
        """Evidence of the policy for its best arm, or for that of every context in their order.

        Without a test in the policy, or in a stream, the arm is -1 and all numbers are nan.
        """
        if self.options.stream:
            return [Evidence(-1, math.nan, math.nan, self.clock)]
        ask = callable_for(inspect, self.state)
        contexts = self.table.model.contexts
        if contexts is None:
            offers = [offer_of(self.table, self.policy)]
        else:
            offers = [contexts.offer(context) for context in range(len(contexts))]
        return [ask(self.state, self.clock, offer) for offer in offers]

    def evidence(self) -> Evidence:
        """Evidence of the policy; with contexts, that of the context with the least."""
        return least_evident(self.reports())

    def at_stake(self) -> tuple[float, float]:
        """Return expected loss per round and price of a nat, over all contexts; nan if unknown."""
        if self.options.stream:
            return math.nan, math.nan
        contexts = self.table.model.contexts
        offer: Any = offer_of(self.table, self.policy) if contexts is None else contexts.offer(0)
        loss, price = callable_for(at_stake, self.state)(self.state, self.clock, offer)
        if math.isnan(loss):
            return math.nan, math.nan
        return self.unit * float(loss), self.unit * float(price)

    def estimates(self) -> Estimates | None:
        """Estimate every arm.

        In a stream, estimate every coordinate of theta.  In a duel, estimate the difference of
        every item to the best.
        """
        origin = 0.0  # of differences and slopes
        if self.options.items is not None:
            found = differences_in(self.state, len(self.options.items))
        elif self.options.stream:
            d = self.options.features.shape[1]
            slopes = np.eye(d, self.table.model.rewards.shape[1])  # without the intercept
            found = estimates_in(self.state, slopes)
        else:
            found, origin = estimates_in(self.state), self.origin
        if found is None:
            return None
        means, errors = origin + self.unit * found.means, self.unit * found.standard_errors
        return found._replace(means=means, standard_errors=errors)

    def due(self, now: float, most: int | None = None) -> list[Closing]:
        """Find the decisions whose reward window is over: the oldest ``most`` of them."""
        return self.decisions.due(now, self.counters.t.item(), most)

    def change(self, now: float, kind: str, body: dict[str, Any]) -> None:
        """Change the table: add or retire an option, amend a reward, or commit to an option."""
        if self.journal is not None:
            self.journal.require_open()
        table = _CHANGES[kind](self.table, self.acting, **body)
        valid_min_probability(self.min_probability, table, self.policy)
        if kind == "retired":
            offer_of(table, self.policy)  # refuses what the policy cannot do
        self._operation = Change(now, kind, body, self._next_sequence(), table)
        self._execute_change(self._operation)

    def _execute_change(self, change: Change) -> None:
        self.table, self._entries = change.table, {}
        if change.kind == "amended":
            self.decisions.amend(change.body["decision"], change.body["now"])
        if self.journal is not None:
            self.journal.append([change.event()])
        self._operation = None

    def _next_sequence(self) -> int:
        return 1 if self.journal is None else self.journal.last + 1

    def perform(
        self,
        now: float,
        closings: list[Closing],
        ids: list[str] | None = None,
        late: str = "",
        available: tuple[int, ...] | None = None,
        context: int | None = None,
        actions: NDArray[np.float64] | None = None,
        received: dict[str, Received] | None = None,
        attributes: Sequence[Attributes] = (),
    ) -> Operation:
        """Close decisions, then make decisions with these ids; see :class:`Operation`.

        ``actions`` are rows that :meth:`new_rows` has returned.
        """
        if self.journal is not None:
            self.journal.require_open()
        ids = ids or []
        if available is not None:
            offer_of(self.table, self.policy, available, context)  # refuses what cannot be done
        table = self.table
        whole = self._cannot_stop_halfway and not self._may_overflow(closings)
        state = None if whole else copy.deepcopy((table.counters, table.state, self.rng))
        operation = Operation(
            now=now,
            closings=closings,
            ids=ids,
            answers=self._space[len(ids)] if len(ids) < 2 else new_answers(len(ids), self.policy),
            available=available,
            context=context,
            actions=actions,
            counts=self.decisions.counts.after(closings, bool(late)),
            late=late,
            first=table.counters.serial.item() + 1,
            sequence=self._next_sequence(),
            before=state,
            received=received or {},
            attributes=attributes,
            sums=table.sums.plan(closings) if closings and table.sums is not None else None,
        )
        self._operation = operation
        self._execute(operation)
        return operation

    def _execute(self, operation: Operation) -> None:
        """Execute an operation, from the beginning or from where it was interrupted."""
        done = self.counters.serial
        if operation.closings:
            for serial, closing in operation.feedback():
                if done.item() < serial:
                    self._record(closing, serial)
        if operation.before is not None and self._may_overflow(operation.closings):
            self._require_finite(operation)
        if operation.ids and done.item() < operation.last:
            self._answer(operation)
        made = operation.decisions()
        if operation.ids and self.states_probabilities:
            self.supports = operation.supports()
        self.decisions.enter(operation.closings, made, operation.counts, operation.received)
        if operation.sums is not None and self.table.sums is not None:
            self.table.sums.enter(operation.sums)
        if operation.closings:
            before = operation.counts.closed - len(operation.closings)
            self.table.history.enter(before, operation.closings)
        if operation.distributions is not None:
            self._enter_draws(operation, operation.distributions)
        if self.journal is not None:
            self.journal.append(operation.events())
        self._operation = None
        self.keep_snapshot(SNAPSHOT_EVERY)

    def _enter_draws(self, operation: Operation, distributions: NDArray[np.float64]) -> None:
        """Enter the probabilities of decisions, where those of all options are known."""
        rounds, arms = (column.tolist() for column in operation.answers[:2])
        self.table.history.enter_draws(rounds, arms, distributions)

    def recover(self) -> None:
        """Finish an interrupted operation, or drop it if none of its kernels has run."""
        operation = self._operation
        if operation is None:
            return
        if isinstance(operation, Change):
            self._execute_change(operation)
            return
        serial = self.counters.serial[0]
        begun = serial >= operation.first or operation.last < operation.first
        if operation.before is not None and serial < operation.last:
            self._go_back(operation)
            begun = False
        if begun:
            self._execute(operation)
        self._operation = None

    def _go_back(self, operation: Operation) -> None:
        """Restore the state before an operation."""
        assert operation.before is not None
        counters, state, rng = copy.deepcopy(operation.before)
        self.table, self.rng = self.table._replace(counters=counters, state=state), rng

    def _may_overflow(self, closings: list[Closing]) -> bool:
        """Whether a reward is so large that the state after it may not be finite."""
        if not closings:
            return False
        origin, limit = self.origin, _LARGE * self.unit
        return any(
            abs(value - origin) > limit
            for closing in closings
            for value in numbers_told(closing.reward)
        )

    def _require_finite(self, operation: Operation) -> None:
        """Refuse rewards that lead to an inconsistent state, before they are recorded."""
        try:
            check_consistency(self.state)
            check_consistency(self.counters, "counters")
        except ValueError as error:
            self._go_back(operation)
            self._operation = None
            told = [one.reward for one in operation.closings if not is_missing(one.reward)]
            raise UnlearnableRewardError(
                f"{shown(told[0] if len(told) == 1 else told)} cannot be learned from: {error}"
            ) from None

    def keep_snapshot(self, events: int = 1) -> None:
        """Write a snapshot to the journal, if it has this many events since the last one."""
        if self.journal is not None and self.journal.last - self.journal.kept >= events:
            content = io.BytesIO()
            write_snapshot(content, self.snapshot())
            self.journal.keep_snapshot(content.getvalue())

    def _call(self, kernel: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Call a kernel, looking up its machine code only once."""
        key = kernel, type(arguments[2])  # feedback, or an offer
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = entry_for(kernel, arguments, self.state)
        found(*arguments)

    def _record(self, closing: Closing, serial: int) -> None:
        """Record the reward of a decision, or that it is missing."""
        decision = closing.decision
        arm, told = decision.arm, closing.reward
        place, kernel = arm, record_reward
        reward: Any = told
        weight: Any = float(self.table.weights[arm, 0])
        if self.options.per_arm > 1:
            kernel = record_outcomes
            reward = np.broadcast_to(told, self.options.per_arm).astype(np.float64)
            weight = self.table.weights[arm]
        elif decision.features is not None:  # later questions have replaced the arms of a stream
            place = len(self.options)
            row = augmented(np.array([decision.features]), self.table.units.intercept)
            self._call(show_arms, (self.state, row, place))
        feedback = Feedback(decision.round, arm, place, reward, weight, decision.exploring)
        self._call(kernel, (self.counters, self.state, feedback, serial))

    def new_rows(self, options: object) -> NDArray[np.float64] | None:
        """Validate the options that come with a question; None where none do."""
        rows = self.options.new_rows(options)
        if rows is not None:
            check_signal(rows, self._prior, str(self.policy))
        return rows

    def _answer(self, operation: Operation) -> None:
        """Make the decisions of an operation."""
        offer: ActionSet
        if operation.actions is not None:
            rows = augmented(operation.actions, self.table.units.intercept)
            offer = block(0, len(rows))
            self._call(show_arms, (self.state, rows, 0))
        else:
            offer = offer_of(self.table, self.policy, operation.available, operation.context)
        answers, counters = operation.answers, self.counters
        if operation.available is not None:
            # a commitment is to the best of all options: leave it as it is
            none = initial_counters(0)
            counters = counters._replace(arm=none.arm, probability=none.probability)
            counters = counters._replace(wake_t=none.wake_t, wake_log_t=none.wake_log_t)
        is_new = operation.actions is not None
        serial = operation.last
        arguments = (counters, self.state, offer, is_new, self.rng, answers, serial)
        if self._plays_committed(operation):
            self._call(accept, (counters, self.state, answers, serial))
        elif len(operation.ids) > 1 and not self.policy.randomises and self.min_probability == 0.0:
            self._fill_batch(offer, answers)
            self._call(accept, (counters, self.state, answers, serial))
        elif self.min_probability > 0.0 or self._finds_probabilities():
            mixing = self._mixing(offer, len(operation.ids))
            if self.states_probabilities:  # before the kernel runs: recovery does not repeat it
                operation.distributions = mixing.distributions
            self._call(answer_with_probabilities, (*arguments, mixing, self._spare()))
        else:
            self._call(answer, arguments)
        raise_fault(answers.fault, self.policy)

    def _plays_committed(self, operation: Operation) -> bool:
        """Choose the arm that the session was committed to, if there is one and it is available."""
        committed = self.table.committed
        if not committed:
            return False
        arm = committed[operation.context or 0]
        if operation.available is not None and arm not in operation.available:
            return False
        answers = operation.answers
        answers.arms[:], answers.probabilities[:], answers.exploring[:] = arm, 1.0, False
        return True

    def _finds_probabilities(self) -> bool:
        """Whether to find probabilities of a policy that min_probability does not need.

        A policy whose probabilities are estimated by thousands of draws finds them only where
        kernels are compiled, and not in streams, where they would cost 40 to 300 times as much as
        the decision.
        """
        if self.policy.probability_by_draws:
            wanted = self._compiled and not self.options.stream
        else:
            wanted = self.states_probabilities and self.policy.randomises
        return wanted and knows_probabilities(self.state)

    def _mixing(self, offer: ActionSet, count: int) -> Mixing:
        k = len(self.options)
        return Mixing(
            self.min_probability,
            number_offered(offer, k),
            np.zeros(k),
            self.policy.probability_by_draws,
            np.zeros(1, dtype=np.bool_),
            np.zeros((count if self.states_probabilities else 0, k)),
        )

    def _spare(self) -> np.random.Generator:
        """Make a generator of this round for draws that estimate probabilities.

        A separate one, so that decisions are the same with and without probabilities.  Built-in
        policies with a formula draw nothing, and making a generator would take longer.
        """
        if self._has_formula:
            return self._unused
        seed = np.random.SeedSequence(self.seed, spawn_key=(2, int(self.counters.t[0])))
        return np.random.Generator(np.random.PCG64(seed))

    def _fill_batch(self, offer: ActionSet, answers: Answers) -> None:
        """Make several decisions at once with a deterministic policy, which would repeat itself.

        Each decision is made as if the outcomes of all open decisions had come, at their estimated
        means (Desautels, Krause and Burdick, 2014).  That leaves the estimates as they are and
        reduces their uncertainty.  It works on copies: the policy learns nothing from it.
        """
        counters, state, rng = copy.deepcopy((self.counters, self.state, self.rng))
        # estimated means are in the units of the policy
        counters = counters._replace(origin=np.zeros(1), unit=np.ones(1))

        def hallucinate(t: int, arm: int) -> None:
            kernel = record_reward
            reward: Any = None
            weight: Any = float(self.table.weights[arm, 0])
            if self.options.observations is None:
                means = estimates_in(state)
                if means is not None:
                    reward = float(means.means[arm])
            else:
                weight = 1.0
                outcome = mean_outcome_in(state, arm)
                if outcome is not None and len(outcome) > 1:
                    kernel, reward, weight = record_outcomes, outcome, np.ones(len(outcome))
                elif outcome is not None:
                    reward = float(outcome[0])
            if reward is not None:
                feedback = Feedback(t, arm, arm, reward, weight, learns=True)
                self._call(kernel, (counters, state, feedback, 0))

        for decision in itertools.islice(reversed(self.decisions.open.values()), MOST_OPEN):
            if decision.exploring:
                hallucinate(decision.round, decision.arm)
        for i in range(len(answers.arms)):
            one = new_answers(1, self.policy)
            self._call(answer, (counters, state, offer, False, rng, one, 0))
            raise_fault(one.fault, self.policy)
            for column, value in zip(answers[:4], one[:4], strict=True):
                column[i] = value[0]
            if one.exploring[0]:
                hallucinate(int(one.rounds[0]), int(one.arms[0]))

    def describe(self) -> dict[str, Any]:
        """Return the configuration as plain data, without :meth:`options_arrays`."""
        levels = self.table.noise_std
        return {
            "policy": describe(self.policy),
            "noise_std": levels if isinstance(levels, float) else levels.tolist(),
            "rewards": describe_likelihood(self.table.likelihood),
            "seed": self.seed,
            "options": self.options.describe_labels(),
            "window": list(self.decisions.window),
            "min_probability": self.min_probability,
            "units": list(self.table.units),
        }

    def options_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Arrays of the options, for files."""
        observations = self.options.observations
        shown_ = {} if observations is None else {"observations": observations}
        return {"actions": self.options.features, **shown_}

    def snapshot(self) -> Snapshot:
        """Everything, for a file."""
        header = self.describe() | {
            "rng": self.rng.bit_generator.state,
            "counts": list(self.decisions.counts),
            "retired": sorted(self.table.retired),
            "committed": list(self.table.committed),
            "attributes": dict(self.decisions.attributes),
            "sums": None if self.table.sums is None else self.table.sums.describe(),
            "history": self.table.history.describe(),
        }
        arrays = {
            **self.options_arrays(),
            **dict(persistent_arrays(self.counters, "counters")),
            **decision_arrays(self.decisions, self.options),
            **self.table.history.arrays(),
        }
        return pack(header, arrays, self.state)

    def fill(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same configuration."""
        header = snapshot.header
        if header["retired"]:
            self.options.needs_fixed_options("a retired option")
        retired = frozenset(self.options.index(arm) for arm in header["retired"])
        self.table = self.table._replace(retired=retired)
        offer_of(self.table, self.policy)
        if header["committed"]:
            self.table = commit_to(self.table, self.policy, header["committed"])
        unpack(snapshot, self.state)
        fill(self.counters, snapshot.arrays, "counters")
        check_consistency(self.counters, "counters")
        self.rng.bit_generator.state = header["rng"]
        fill_decisions(self.decisions, snapshot, self.options, int(self.counters.t[0]))
        if self.table.sums is not None:
            self.table.sums.fill(header["sums"], len(self.counters.totals))
        history, closed = self.table.history, self.decisions.counts.closed
        history.fill(header["history"], snapshot.arrays, closed)
