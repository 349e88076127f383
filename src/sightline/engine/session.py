"""Live use: ask for the next arm, tell its reward later, over the same policies as simulation."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from os import PathLike
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.core.clock import FAR, Clock, clock_at, is_before, tick
from sightline.core.model import ALL_ARMS, bandit_model, valid_noise_std
from sightline.engine.archive import Snapshot, read_snapshot, write_snapshot
from sightline.engine.checkpoints import power_of_ten
from sightline.engine.decisions import Decision, Pending, Status
from sightline.engine.estimates import Estimates, estimates_in
from sightline.engine.loop import streams
from sightline.jit import GenericFunction, interpreted, registered
from sightline.policies.base import Choice, Policy, choose, decided, inspect, update
from sightline.policies.catalogue import POLICIES, build, describe
from sightline.validation import LARGEST, integer, number

__all__ = ["Session"]

P = ParamSpec("P")
R = TypeVar("R")


class _Lock:
    """A lock that refuses its own holder, instead of waiting for ever.

    A signal handler runs in the middle of whatever its thread was doing: it may interrupt a
    session at work, whose state is then neither the one before nor the one after.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    def __enter__(self) -> None:
        if self._holder == threading.get_ident():
            raise RuntimeError(
                "the session was interrupted at work by a signal handler that calls it; "
                "let the handler set a flag, and act on it afterwards"
            )
        self._lock.acquire()
        self._holder = threading.get_ident()

    def __exit__(self, *_: object) -> None:
        self._holder = None
        self._lock.release()


class Session:
    """An adaptive experiment in progress.

    Rewards may be told late, in any order, or never.  While the policy is committed to an arm,
    ``ask`` answers without computing anything and the rewards are taken note of but not learned
    from, as in simulation; a reward that arrives from an earlier exploration ends the
    commitment, because it may change the policy's mind.  Questions asked before any reward comes
    are answered from the same knowledge, so a policy that does not randomise repeats itself.
    All methods may be called from several threads, but not from a signal handler.

    Parameters
    ----------
    actions : array_like, shape (k, d)
        Features of the options.
    policy : Policy
        How to choose among them.
    noise_std : float or array_like, shape (k,)
        Sub-Gaussian parameter of the rewards, the same for all options or one for each: their
        standard deviation if Gaussian, half their range if bounded.
    seed : int
        Same seed and same rewards, same decisions.
    """

    def __init__(
        self,
        actions: ArrayLike,
        policy: Policy,
        noise_std: float | ArrayLike = 1.0,
        seed: int = 0,
    ) -> None:
        if not isinstance(policy, Policy):
            raise ValueError(f"policy must be a Policy such as IDS(), got {policy!r}")
        self._model = bandit_model(actions, noise_std)
        self._noise_std = valid_noise_std(noise_std, len(self._model.rewards))
        self._weights = self._model.needs_weights("Session")
        self._policy = policy
        self._rng, _ = streams(integer("seed", seed, at_least=0))
        self._state = policy.start(self._model)
        self._compiled = registered(self._state).compiled
        self._clock = clock_at(1)
        self._commitment: Choice | None = None
        self._pending: dict[int, tuple[int, bool]] = {}
        self._explorations = 0
        self._lock = _Lock()

    @property
    def policy(self) -> Policy:
        """The policy in use."""
        return self._policy

    def _call(self, function: GenericFunction[P, R]) -> Callable[P, R]:
        """Find what to call: interpreted code where a part of the state is plain Python."""
        return function if self._compiled else interpreted(function)

    def ask(self) -> Decision:
        """Choose the arm for the next round."""
        with self._lock:
            clock, choice = self._clock, self._commitment
            if choice is None or not is_before(clock, choice.wake):
                choice = self._call(choose)(self._state, clock, ALL_ARMS, self._rng)
            exploring = not is_before(clock, choice.wake)
            self._commitment = None if exploring else choice
            self._clock = tick(clock)
            arm, number_ = int(choice.arm), int(clock.t)
            self._pending[number_] = (arm, exploring)
            if exploring:
                self._call(decided)(self._state, clock, arm)
        return Decision(
            id=number_,
            arm=arm,
            action=self._model.rewards[arm].copy(),
            probability=float(choice.probability),
            exploring=exploring,
            round=number_,
        )

    def tell(self, id: int, reward: float) -> None:  # noqa: A002 - the field of Decision
        """Tell the reward of a decision, once.

        Raises
        ------
        KeyError
            If no decision has this id, or it is closed already; nothing is changed.
        ValueError
            If the reward is not a finite number; nothing is changed.
        """
        value = number("reward", reward)
        if abs(value) > LARGEST:
            raise ValueError(f"reward must not exceed {LARGEST:g}, got {value:g}")
        with self._lock:
            if isinstance(id, Decision):
                raise KeyError(f"give the id of the decision, {id.id}, not the decision itself")
            whole = isinstance(id, int | np.integer)
            if not whole or id not in self._pending:
                known = whole and 1 <= id < self._clock.t
                raise KeyError(
                    f"the reward of decision {id} was told or given up before"
                    if known
                    else f"no decision has the id {id!r}"
                )
            arm, exploring = self._pending[id]
            if exploring:
                outcome = value * float(self._weights[arm])
                self._call(update)(self._state, clock_at(int(id)), arm, outcome)
                self._explorations += 1
                self._commitment = None
            del self._pending[id]

    def give_up(self, before: int) -> int:
        """Stop waiting for the rewards of decisions made before a round.

        Open decisions are remembered, and saved, until told; where rewards can fail to come,
        this keeps their number bounded.

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
        with self._lock:
            kept = {id_: entry for id_, entry in self._pending.items() if id_ >= limit}
            closed = len(self._pending) - len(kept)
            self._pending = kept
        return closed

    def status(self) -> Status:
        """Report on the best arm and the evidence for it."""
        with self._lock:
            report = self._call(inspect)(self._state, self._clock, ALL_ARMS)
            wake = Clock(*report.wake)
            if report.best < 0 and self._commitment is not None:
                wake = self._commitment.wake  # all that a policy without a report has told
            evidence, threshold = float(report.evidence), float(report.threshold)
            return Status(
                best=int(report.best) if report.best >= 0 else None,
                settled=None if math.isnan(threshold) else evidence >= threshold,
                evidence=evidence,
                threshold=threshold,
                round=int(self._clock.t),
                next_exploration=_round_of(wake),
                explorations=self._explorations,
                pending=len(self._pending),
            )

    def pending(self) -> list[Pending]:
        """Decisions whose reward has not been told, the oldest first."""
        with self._lock:
            return [Pending(id_, arm, exploring) for id_, (arm, exploring) in self._pending.items()]

    def estimates(self) -> Estimates | None:
        """Estimated reward of every arm with its standard error; None if the policy keeps none."""
        with self._lock:
            return estimates_in(self._state)

    def __repr__(self) -> str:
        k, d = self._model.rewards.shape
        levels = self._noise_levels()
        noise = f"{levels:g}" if isinstance(levels, float) else f"{k} levels"
        return (
            f"Session({k} arms in {d} dimensions, {self._policy}, noise_std={noise}, "
            f"next round {self._clock.t}, {self._explorations} rewards learned from, "
            f"{len(self._pending)} decisions open)"
        )

    def _noise_levels(self) -> float | list[float]:
        """Noise level of all arms, or of each."""
        levels = self._noise_std
        return levels if isinstance(levels, float) else levels.tolist()

    def save(self, path: str | PathLike[str]) -> None:
        """Write the session to one file, all or nothing.

        A decision made after the last save is unknown to the loaded session, which will give
        its id to another one: save before decisions leave the process.
        """
        with self._lock:
            header = {
                "policy": describe(self._policy),
                "noise_std": self._noise_levels(),
                "rng": self._rng.bit_generator.state,
                "clock": _pack_clock(self._clock),
                "commitment": self._commitment
                and {
                    "arm": int(self._commitment.arm),
                    "probability": float(self._commitment.probability),
                    "wake": _pack_clock(self._commitment.wake),
                },
                "explorations": self._explorations,
                "pending": [[id_, *entry] for id_, entry in self._pending.items()],
            }
            write_snapshot(path, Snapshot(header, self._model.rewards, self._state))

    @classmethod
    def load(cls, path: str | PathLike[str], policy: Policy | None = None) -> Session:
        """Continue a saved session, bit for bit.

        Parameters
        ----------
        path : path
            File written by :meth:`save`.
        policy : Policy, optional
            Needed for a policy that is not part of the library: the one that was saved.
        """

        def restart(header: dict[str, Any], actions: NDArray[np.float64]) -> tuple[Session, Any]:
            saved = header["policy"]
            if policy is not None and describe(policy) != saved:
                raise ValueError(f"it was saved with {saved}, not with {describe(policy)}")
            if policy is None and saved["type"] not in POLICIES:
                raise ValueError(f"pass policy={saved['type']}(...), which is not of this library")
            session = cls(actions, policy or build(saved), header["noise_std"])
            session._restore(header)
            return session, session._state

        return read_snapshot(path, restart)

    def _restore(self, header: dict[str, Any]) -> None:
        self._rng.bit_generator.state = header["rng"]
        self._clock = _unpack_clock(header["clock"])
        saved = header["commitment"]
        if saved is not None:
            self._commitment = Choice(
                saved["arm"], saved["probability"], _unpack_clock(saved["wake"])
            )
        self._explorations = header["explorations"]
        self._pending = {id_: (arm, exploring) for id_, arm, exploring in header["pending"]}


def _round_of(clock: Clock) -> int | None:
    """Round as a Python integer; to 15 digits where only its logarithm is known."""
    if clock.t < FAR:
        return int(clock.t)
    return None if math.isinf(clock.log_t) else power_of_ten(clock.log_t / math.log(10.0))


def _pack_clock(clock: Clock) -> tuple[int, str]:
    return int(clock.t), float(clock.log_t).hex()  # hex: exact, and JSON has no nan or inf


def _unpack_clock(packed: tuple[int, str]) -> Clock:
    return Clock(packed[0], float.fromhex(packed[1]))
