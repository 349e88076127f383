"""The state of a session, and the operations that change it: each done as a whole, or not at all.

Operations are planned, written down, carried out and recorded in this order.  Whatever
interrupts that, :meth:`LiveState.recover` finishes what had begun and drops what had not.
"""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.core.action_set import ActionSet, block, number_offered
from sightline.core.clock import Clock
from sightline.core.likelihood import Likelihood, describe_likelihood
from sightline.core.model import check_signal
from sightline.core.persistence import check_consistency, persistent_arrays
from sightline.jit import callable_for, entry_for, registered
from sightline.policies.base import Evidence, Policy, at_stake, inspect
from sightline.policies.catalogue import describe
from sightline.sessions.amending import amended
from sightline.sessions.archive import Snapshot, fill, pack, unpack, write_snapshot
from sightline.sessions.changes import (
    Change,
    Table,
    first_table,
    grown,
    knows_probabilities,
    offer_of,
    offers_of,
    prior_signal,
    table_committed,
    table_without,
    valid_floor,
)
from sightline.sessions.decisions import UnlearnableRewardError
from sightline.sessions.estimates import Estimates, differences_in, estimates_in
from sightline.sessions.imagining import fill_imagining
from sightline.sessions.ledger import Closing, Ledger, Received, Window, is_nothing, numbers_told
from sightline.sessions.ledger_arrays import fill_ledger, ledger_arrays
from sightline.sessions.log import Log
from sightline.sessions.operation import Operation
from sightline.sessions.options import Options
from sightline.sessions.supports import Support, supports_of
from sightline.sessions.turns import (
    Mixing,
    Outcome,
    Standing,
    accept,
    answer,
    answer_with_probabilities,
    blank_answers,
    first_standing,
    present,
    take_outcome,
    take_outcomes,
)
from sightline.sessions.units import GIVEN, Units, augmented
from sightline.simulation.loop import raise_fault, streams
from sightline.validation import integer, shown

__all__ = ["CHANGES", "LiveState", "weakest"]

#: Events after which a journal gets a new snapshot.
SNAPSHOT_EVERY = 10_000
#: Distance of a reward from the origin, in units, beyond which its effect on the state is checked.
_LARGE = 1e5


#: By the kind of their events.
_CHANGES: dict[str, Callable[..., Table]] = {
    "added": grown,
    "retired": table_without,
    "amended": amended,
    "committed": table_committed,
}
CHANGES = frozenset(_CHANGES)


class LiveState:
    """Everything of a session that changes, and the configuration it began with.

    Attributes
    ----------
    states_probabilities : bool
        Whether the probability of every option is found in each decision, not of its own alone:
        about one decision more each time.
    supports : tuple of Support or None
        Of the decisions that were made last, if so.
    """

    def __init__(
        self,
        options: Options,
        policy: Policy,
        noise_std: object,
        seed: int,
        window: Window,
        floor: float = 0.0,
        likelihood: Likelihood | None = None,
        units: Units = GIVEN,
    ) -> None:
        self.policy = policy
        #: The policy that acts: without what its defaults assume of the scale of rewards.
        self.acting = policy.with_unknown_scale() if units.learned else policy
        standing = first_standing(len(options), options.per_arm, units)
        self.table = first_table(options, self.acting, noise_std, standing, likelihood, units)
        self.seed = integer("seed", seed, at_least=0)
        self.rng, _ = streams(self.seed)
        self._compiled, ours = registered(self.state)
        self._trusted = self._compiled and ours
        self._formula = ours and not policy.probability_by_draws
        self._unused = np.random.Generator(np.random.PCG64(0))
        self.ledger = Ledger(window)
        self.floor = valid_floor(floor, self.table, policy)
        self.journal: Log | None = None
        self.states_probabilities = False
        self.supports: tuple[Support | None, ...] = ()
        self._operation: Operation | Change | None = None
        self._entries: dict[Any, Callable[..., None]] = {}
        self._prior = prior_signal(self.state)
        self._space = blank_answers(0, policy), blank_answers(1, policy)  # for most operations

    @property
    def options(self) -> Options:
        """All options that there ever were."""
        return self.table.options

    @property
    def standing(self) -> Standing:
        """Clock, commitment and counts."""
        return self.table.standing

    @property
    def state(self) -> Any:
        """What the policy knows."""
        return self.table.state

    @property
    def clock(self) -> Clock:
        """The next question."""
        return Clock(int(self.standing.t[0]), float(self.standing.log_t[0]))

    def reports(self) -> list[Evidence]:
        """Let the policy report on its best arm, or on that of every context, in their order.

        A policy without a report says -1 in place of the arm, and the rest is nan; so does any
        where arms are new in every round.
        """
        if self.options.stream:  # those to come are not known
            return [Evidence(-1, math.nan, math.nan, self.clock)]
        ask = callable_for(inspect, self.state)
        offers = offers_of(self.table, self.policy)
        return [ask(self.state, self.clock, offer) for offer in offers]

    def evidence(self) -> Evidence:
        """Report of the policy; with contexts, on the one of which least is known."""
        return weakest(self.reports())

    def at_stake(self) -> tuple[float, float]:
        """Ask the policy for its expected loss per round and price of a nat; nan if unknown.

        With contexts they are those of all, whichever is asked about.
        """
        if self.options.stream:
            return math.nan, math.nan
        contexts = self.table.model.contexts
        offer: Any = offer_of(self.table, self.policy) if contexts is None else contexts.offer(0)
        loss, price = callable_for(at_stake, self.state)(self.state, self.clock, offer)
        if math.isnan(loss):
            return math.nan, math.nan
        return self.unit * float(loss), self.unit * float(price)

    def estimates(self) -> Estimates | None:
        """Estimate every arm, and what arms stand for where they are new or pairs.

        Where they are new in every round, that is every coordinate of theta; where they are pairs,
        how every item falls short of the best.
        """
        origin = 0.0  # of differences and slopes
        if self.options.items is not None:
            found = differences_in(self.state, len(self.options.items))
        elif self.options.stream:
            d = self.options.features.shape[1]
            slopes = np.eye(d, self.table.model.rewards.shape[1])  # the last may be the intercept
            found = estimates_in(self.state, slopes)
        else:
            found, origin = estimates_in(self.state), self.origin
        if found is None:
            return None
        means, errors = origin + self.unit * found.means, self.unit * found.standard_errors
        return found._replace(means=means, standard_errors=errors)

    @property
    def origin(self) -> float:
        """Reward that the policy is told as 0."""
        found = self.standing.origin.item()
        return 0.0 if math.isnan(found) else found

    @property
    def unit(self) -> float:
        """How much of a reward the policy is told as 1."""
        found = self.standing.unit.item()
        return 1.0 if math.isnan(found) else found

    def due(self, now: float, most: int | None = None) -> list[Closing]:
        """Decisions whose reward window is over: the oldest, if there are more than ``most``."""
        return self.ledger.due(now, self.standing.t.item(), most)

    def change(self, now: float, kind: str, body: dict[str, Any]) -> None:
        """Change the table: :data:`_CHANGES` has the functions that say what the body is."""
        if self.journal is not None:
            self.journal.require_open()
        table = _CHANGES[kind](self.table, self.acting, **body)
        valid_floor(self.floor, table, self.policy)
        change = Change(now, kind, body, self._next_sequence(), table)
        self._operation = change
        self._carry_out_change(change)

    def _carry_out_change(self, change: Change) -> None:
        self.table, self._entries = change.table, {}
        if change.kind == "amended":
            self.ledger.amend(change.body["decision"], change.body["now"])
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
    ) -> Operation:
        """Close decisions, then make decisions with these ids; or count a late reward.

        Or take rewards that wait until the windows of their decisions close.

        Decisions are made in a context, where there are contexts, and among the rows of
        ``actions``, as :meth:`new_rows` returns them, where arms are new in every round.
        """
        if self.journal is not None:
            self.journal.require_open()
        ids = ids or []
        if available is not None:
            # which refuses what cannot be done
            offer_of(self.table, self.policy, available, context)
        table = self.table
        operation = Operation(
            now=now,
            closings=closings,
            ids=ids,
            answers=(
                self._space[len(ids)] if len(ids) < 2 else blank_answers(len(ids), self.policy)
            ),
            available=available,
            context=context,
            actions=actions,
            tally=self.ledger.tally.after(closings, bool(late)),
            late=late,
            first=table.standing.serial.item() + 1,
            sequence=1 if self.journal is None else self._next_sequence(),
            before=(
                None
                if self._trusted and not self._may_overflow(closings)
                else copy.deepcopy((table.standing, table.state, self.rng))
            ),
            received=received or {},
            data=table.data.planned(closings) if closings and table.data is not None else None,
        )
        self._operation = operation
        self._carry_out(operation)
        return operation

    def _carry_out(self, operation: Operation) -> None:
        """Do what is planned; from the beginning, or from where it was interrupted."""
        done = self.standing.serial
        if operation.closings:
            for serial, closing in operation.outcomes():
                if done.item() < serial:
                    self._take(closing, serial)
        if operation.before is not None and self._may_overflow(operation.closings):
            self._require_finite(operation)
        if operation.ids and done.item() < operation.last:
            self._answer(operation)
        ledger, made = self.ledger, operation.decisions()
        ledger.enter(operation.closings, made, operation.tally, operation.received)
        if operation.data is not None and self.table.data is not None:
            self.table.data.enter(operation.data)
        if self.journal is not None:
            self.journal.append(operation.events())
        self._operation = None
        self.keep_snapshot(SNAPSHOT_EVERY)

    def keep_snapshot(self, events: int = 1) -> None:
        """Put a snapshot into the journal, if there is one with so many events since the last."""
        if self.journal is not None and self.journal.last - self.journal.kept >= events:
            content = io.BytesIO()
            write_snapshot(content, self.snapshot())
            self.journal.keep_snapshot(content.getvalue())

    def recover(self) -> None:
        """Finish what an exception has interrupted, or drop it if nothing had been done."""
        operation = self._operation
        if operation is None:
            return
        if isinstance(operation, Change):
            self._carry_out_change(operation)
            return
        serial = self.standing.serial[0]
        begun = serial >= operation.first or operation.last < operation.first
        if operation.before is not None and serial < operation.last:
            self._go_back(operation)
            begun = False
        if begun:
            self._carry_out(operation)
        self._operation = None

    def _go_back(self, operation: Operation) -> None:
        """Restore what an operation has kept of the state before it."""
        assert operation.before is not None
        standing, state, rng = copy.deepcopy(operation.before)
        self.table, self.rng = self.table._replace(standing=standing, state=state), rng

    def _may_overflow(self, closings: list[Closing]) -> bool:
        """Whether a reward is so large that learning from it may lead to no number."""
        if not closings:
            return False
        origin, limit = self.origin, _LARGE * self.unit
        return any(
            abs(value - origin) > limit
            for closing in closings
            for value in numbers_told(closing.reward)
        )

    def _require_finite(self, operation: Operation) -> None:
        """Refuse rewards, before they are recorded, that lead to a state that no file may hold."""
        try:
            check_consistency(self.state)
            check_consistency(self.standing, "standing")
        except ValueError as error:
            self._go_back(operation)
            self._operation = None
            told = [one.reward for one in operation.closings if not is_nothing(one.reward)]
            raise UnlearnableRewardError(
                f"{shown(told[0] if len(told) == 1 else told)} cannot be learned from: {error}"
            ) from None

    def _take(self, closing: Closing, serial: int) -> None:
        decision = closing.decision
        arm, told, learns = decision.arm, closing.reward, decision.exploring
        place, take = arm, take_outcome
        reward: Any = told
        weight: Any = self.weight_of(arm)
        if self.options.per_arm > 1:
            take = take_outcomes
            reward = np.broadcast_to(told, self.options.per_arm).astype(np.float64)
            weight = self.table.weights[arm]
        elif decision.features is not None:  # the arms of its question have been replaced
            place = len(self.options)
            row = augmented(np.array([decision.features]), self.table.units.intercept)
            self.call(present, (self.state, row, place))
        outcome = Outcome(decision.round, arm, place, reward, weight, learns)
        self.call(take, (self.standing, self.state, outcome, serial))

    def weight_of(self, arm: int) -> float:
        """Say by what a reward of an arm is multiplied for the policy."""
        return float(self.table.weights[arm, 0])

    def new_rows(self, actions: object) -> NDArray[np.float64] | None:
        """Check the options that come with a question; None where none do."""
        rows = self.options.new_rows(actions)
        if rows is not None:
            check_signal(rows, self._prior, str(self.policy))
        return rows

    def _answer(self, operation: Operation) -> None:
        offer: ActionSet
        is_new = operation.actions is not None
        if operation.actions is not None:
            rows = augmented(operation.actions, self.table.units.intercept)
            offer = block(0, len(rows))
            self.call(present, (self.state, rows, 0))
        else:
            offer = offer_of(self.table, self.policy, operation.available, operation.context)
        standing = self.standing
        if operation.available is not None:
            # a question of its own: a commitment is among all options, and is not used up
            standing = standing._replace(**first_standing(0).commitment())
        arguments = (
            standing,
            self.state,
            offer,
            is_new,
            self.rng,
            operation.answers,
            operation.last,
        )
        distributions = None
        if self._plays_committed(operation):
            self.call(accept, (standing, self.state, operation.answers, operation.last))
        elif len(operation.ids) > 1 and not self.policy.randomises and self.floor == 0.0:
            fill_imagining(self, offer, operation.answers)
            self.call(accept, (standing, self.state, operation.answers, operation.last))
        elif self.floor > 0.0 or self._draws_probabilities or self._has_probabilities_to_state:
            mixing = self._mixing(offer, len(operation.ids))
            self.call(answer_with_probabilities, (*arguments, mixing, self._spare()))
            distributions = mixing.distributions
        else:
            self.call(answer, arguments)
        raise_fault(operation.answers.fault, self.policy)
        if self.states_probabilities:
            self.supports = supports_of(operation.answers, distributions)

    def _plays_committed(self, operation: Operation) -> bool:
        """Answer with what was committed to, if that is so and it is available."""
        committed = self.table.committed
        if not committed:
            return False
        arm = committed[operation.context or 0]
        if operation.available is not None and arm not in operation.available:
            return False
        answers = operation.answers
        answers.arms[:], answers.probabilities[:], answers.exploring[:] = arm, 1.0, False
        return True

    @property
    def _draws_probabilities(self) -> bool:
        """Whether the law of a policy is found by drawing though no floor needs it.

        Interpreted, thousands of draws would take a second.  New arms have a new law in every
        round, which would cost 40 to 300 times the decision itself.
        """
        return (
            self.policy.probability_by_draws
            and self._compiled
            and not self.options.stream
            and knows_probabilities(self.state)
        )

    @property
    def _has_probabilities_to_state(self) -> bool:
        """Whether the law of a policy is wanted, and has a formula."""
        return (
            self.states_probabilities
            and self.policy.randomises
            and not self.policy.probability_by_draws
            and knows_probabilities(self.state)
        )

    def _mixing(self, offer: ActionSet, count: int) -> Mixing:
        k = len(self.options)
        return Mixing(
            self.floor,
            number_offered(offer, k),
            np.zeros(k),
            self.policy.probability_by_draws,
            np.zeros(1, dtype=np.bool_),
            np.zeros((count if self.states_probabilities else 0, k)),
        )

    def _spare(self) -> np.random.Generator:
        """Make a generator for this round that decides nothing.

        Decisions are the same with and without probabilities.  Laws of the library that have a
        formula draw nothing, and making a generator takes longer than most of them.
        """
        if self._formula:
            return self._unused
        seed = np.random.SeedSequence(self.seed, spawn_key=(2, int(self.standing.t[0])))
        return np.random.Generator(np.random.PCG64(seed))

    def call(self, kernel: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        """Call a kernel, whose machine code is looked up once."""
        key = kernel, type(arguments[2])  # an outcome, or an offer of some class
        found = self._entries.get(key)
        if found is None:
            found = self._entries[key] = entry_for(kernel, arguments, self.state)
        found(*arguments)

    def describe(self) -> dict[str, Any]:
        """Write the configuration as plain data, apart from :meth:`options_arrays`."""
        levels = self.table.noise_std
        return {
            "policy": describe(self.policy),
            "noise_std": levels if isinstance(levels, float) else levels.tolist(),
            "rewards": describe_likelihood(self.table.likelihood),
            "seed": self.seed,
            "options": self.options.describe_labels(),
            "window": list(self.ledger.window),
            "floor": self.floor,
            "units": list(self.table.units),
        }

    def options_arrays(self) -> dict[str, NDArray[np.float64]]:
        """Arrays of the options, for files."""
        seen = self.options.observations
        shown = {} if seen is None else {"observations": seen}
        return {"actions": self.options.features, **shown}

    @property
    def _features_kept(self) -> int:
        """How many features are kept of an open decision: none where its arm stays."""
        return self.options.features.shape[1] if self.options.stream else 0

    def snapshot(self) -> Snapshot:
        """Everything, for a file."""
        header = self.describe() | {
            "rng": self.rng.bit_generator.state,
            "tally": list(self.ledger.tally),
            "retired": sorted(self.table.retired),
            "committed": list(self.table.committed),
            "data": None if self.table.data is None else self.table.data.describe(),
        }
        arrays = {
            **self.options_arrays(),
            **dict(persistent_arrays(self.standing, "standing")),
            **ledger_arrays(self.ledger, self._features_kept, self.options.per_arm),
        }
        return pack(header, arrays, self.state)

    def fill(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same configuration."""
        if snapshot.header["retired"]:
            self.options.needs_fixed_options("a retired option")
        retired = frozenset(self.options.index(arm) for arm in snapshot.header["retired"])
        self.table = self.table._replace(retired=retired)
        offer_of(self.table, self.policy)
        if snapshot.header["committed"]:
            self.table = table_committed(self.table, self.policy, snapshot.header["committed"])
        unpack(snapshot, self.state)
        fill(self.standing, snapshot.arrays, "standing")
        check_consistency(self.standing, "standing")
        self.rng.bit_generator.state = snapshot.header["rng"]
        k, t = len(self.options), int(self.standing.t[0])
        fill_ledger(self.ledger, snapshot, k, t, self._features_kept, self.options.per_arm)
        if snapshot.header["data"] is None:
            self.table = self.table._replace(data=None)
        elif self.table.data is not None:
            self.table.data.fill(snapshot.header["data"], k * self.options.per_arm)


def weakest(reports: list[Evidence]) -> Evidence:
    """Find the report with the least evidence; the first one among equals."""
    return min(reports, key=lambda report: report.evidence)
