"""The state of a session, and the operations that change it: each done as a whole, or not at all.

Operations are planned, written down, carried out and recorded in this order.  Whatever
interrupts that, :meth:`LiveState.recover` finishes what had begun and drops what had not.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

from sightline.core.clock import Clock
from sightline.core.model import ALL_ARMS, Model, bandit_model, valid_noise_std
from sightline.core.persistence import persistent_arrays
from sightline.engine.archive import Snapshot, fill, pack, unpack, write_snapshot
from sightline.engine.journal import Journal
from sightline.engine.ledger import Closing, Ledger, Window
from sightline.engine.ledger_arrays import fill_ledger, ledger_arrays
from sightline.engine.loop import streams
from sightline.engine.operation import Operation
from sightline.engine.options import Options
from sightline.engine.turns import Outcome, answer, blank_answers, first_standing, take_outcome
from sightline.jit import callable_for, entry_for, registered
from sightline.policies.base import Evidence, Policy, inspect
from sightline.policies.catalogue import describe
from sightline.validation import integer

__all__ = ["LiveState"]

#: Events after which a journal gets a new snapshot.
SNAPSHOT_EVERY = 10_000


class LiveState:
    """Everything of a session that changes, and the configuration it began with."""

    def __init__(
        self, options: Options, policy: Policy, noise_std: object, seed: int, window: Window
    ) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(f"policy must be a Policy such as IDS(), got {policy!r}")
        self.options, self.policy = options, policy
        self.noise_std = valid_noise_std(noise_std, len(options))
        self.model: Model = bandit_model(options.features, self.noise_std)
        self._weights = self.model.needs_weights("Session").tolist()
        self.seed = integer("seed", seed, at_least=0)
        self.rng, _ = streams(self.seed)
        self.state = policy.start(self.model)
        self._compiled = registered(self.state).compiled
        self.standing = first_standing(len(options))
        self.ledger = Ledger(window)
        self.journal: Journal | None = None
        self._operation: Operation | None = None
        self._entries: dict[Any, Callable[..., None]] = {}

    @property
    def clock(self) -> Clock:
        """The next question."""
        return Clock(int(self.standing.t[0]), float(self.standing.log_t[0]))

    def evidence(self) -> Evidence:
        """Report of the policy on its best arm; without one, ``best`` is -1 and the rest nan."""
        report: Evidence = callable_for(inspect, self.state)(self.state, self.clock, ALL_ARMS)
        return report

    def due(self, now: float) -> list[Closing]:
        """Decisions whose reward window is over."""
        return self.ledger.due(now, int(self.standing.t[0]))

    def perform(
        self, now: float, closings: list[Closing], ids: list[str] | None = None, late: str = ""
    ) -> Operation:
        """Close decisions, then make decisions with these ids; or count a late reward."""
        ids = ids or []
        changed = (self.standing, self.state, self.rng)
        operation = Operation(
            now=now,
            closings=closings,
            ids=ids,
            answers=blank_answers(len(ids)),
            tally=self.ledger.tally.after(closings, bool(late)),
            late=late,
            first=int(self.standing.serial[0]) + 1,
            sequence=1 if self.journal is None else self.journal.last + 1,
            before=None if self._compiled else copy.deepcopy(changed),
        )
        self._operation = operation
        self._carry_out(operation)
        return operation

    def _carry_out(self, operation: Operation) -> None:
        """Do what is planned; from the beginning, or from where it was interrupted."""
        standing = self.standing
        for serial, closing in operation.rewards():
            if standing.serial[0] < serial:
                self._take(closing, serial)
        if standing.serial[0] < operation.last:
            self._answer(operation)
        self.ledger.enter(operation.closings, operation.decisions(), operation.tally)
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
        serial = self.standing.serial[0]
        begun = serial >= operation.first or operation.last < operation.first
        if operation.before is not None and serial < operation.last:
            self.standing, self.state, self.rng = copy.deepcopy(operation.before)
            begun = False
        if begun:
            self._carry_out(operation)
        self._operation = None

    def _take(self, closing: Closing, serial: int) -> None:
        decision = closing.decision
        weight = self._weights[decision.arm]
        outcome = Outcome(decision.round, decision.arm, closing.reward, weight, decision.exploring)
        self._call(take_outcome, (self.standing, self.state, outcome, serial))

    def _answer(self, operation: Operation) -> None:
        self._call(
            answer,
            (self.standing, self.state, ALL_ARMS, self.rng, operation.answers, operation.last),
        )

    def _call(self, kernel: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        found = self._entries.get(kernel)
        if found is None:
            found = self._entries[kernel] = entry_for(kernel, arguments, self.state)
        found(*arguments)

    def describe(self) -> dict[str, Any]:
        """Write the configuration as plain data, apart from the features."""
        levels = self.noise_std
        options = self.options.describe()
        del options["features"]
        return {
            "policy": describe(self.policy),
            "noise_std": levels if isinstance(levels, float) else levels.tolist(),
            "seed": self.seed,
            "options": options,
            "window": list(self.ledger.window),
        }

    def snapshot(self) -> Snapshot:
        """Everything, for a file."""
        header = self.describe() | {
            "rng": self.rng.bit_generator.state,
            "tally": list(self.ledger.tally),
        }
        arrays = {
            "actions": self.options.features,
            **dict(persistent_arrays(self.standing, "standing")),
            **ledger_arrays(self.ledger),
        }
        return pack(header, arrays, self.state)

    def fill(self, snapshot: Snapshot) -> None:
        """Continue from a snapshot of the same configuration."""
        unpack(snapshot, self.state)
        fill(self.standing, snapshot.arrays, "standing")
        self.rng.bit_generator.state = snapshot.header["rng"]
        fill_ledger(self.ledger, snapshot, len(self.options), int(self.standing.t[0]))
